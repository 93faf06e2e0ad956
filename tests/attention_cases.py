"""Generated attention: a configuration, its arrays, what is right, and what numpy makes of it.

`right` is float64 all through. `rounded` is what a careful numpy program in the given type
computes: scores and sums in float32, P rounded for its product, the result rounded once. A kernel
is good when its errors are no larger than those, within a tenth.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from ml_dtypes import bfloat16

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {"bfloat16": bfloat16, "float16": np.float16, "float32": np.float32}
ALLOWED = 1.1  # times numpy's error
KINDS = ("plain", "causal", "window", "prior", "sink", "packed", "parallel", "long")


@attrs.frozen
class Case:
    """One call of `attention_cte`: shapes, what it hides, how it runs."""

    seed: int
    kind: str
    dtype: str
    heads: int
    shared: int  # heads of keys
    queries: int
    keys: int
    prior: int
    d: int
    scale: float | None
    causal: bool
    window: int
    sink: bool
    bounds: str  # "", packed, parallel
    transpose_p: str | float
    target: str
    cores: int

    def __str__(self) -> str:
        usual = {
            "scale": None,
            "causal": False,
            "window": 0,
            "sink": False,
            "bounds": "",
            "prior": 0,
        }
        said = {k: v for k, v in attrs.asdict(self).items() if k not in usual or v != usual[k]}
        return " ".join(f"{k}={v}" for k, v in said.items())


def case(seed: int, kind: str = "") -> Case:
    """The configuration of a seed: every kind, type, target and number of cores comes round."""
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[seed % len(KINDS)]
    shared = int(rng.choice([1, 1, 2]))
    heads = shared * int(rng.choice([1, 1, 2, 3]))
    queries, keys = (int(x) for x in rng.integers(1, [420, 1400]))
    prior = int(rng.integers(1, 900)) if kind == "prior" or rng.random() < 0.15 else 0
    causal = kind in ("causal", "prior") or rng.random() < 0.3
    window = 0
    if kind == "window" or rng.random() < 0.1:
        window = int(rng.integers(1, 700))
    target = ("trn2", "trn3", "trn1", "trn2")[seed // len(KINDS) % 4]
    bounds = kind if kind in ("packed", "parallel") else ""
    if bounds and target == "trn1":
        target = "trn2"
    if kind == "long":
        heads = shared = 1
        queries, keys = int(rng.integers(1, 150)), int(rng.integers(10_000, 17_500))
        window, prior = window * 20, prior and int(rng.integers(1, 9000))
    if causal or window:  # each query sees its own key
        keys = max(keys, queries)
    return Case(
        seed,
        kind,
        tuple(DTYPES)[seed % 3],
        heads,
        shared,
        queries,
        keys,
        prior,
        int(rng.choice([16, 40, 64, 80, 96, 128, 128])),
        [None, None, 1.0, 0.25, 0.11][int(rng.integers(5))],
        bool(causal),
        window,
        bool(kind == "sink" or rng.random() < 0.1),
        bounds,
        ["dma", "pe", 0.5, 0.3][int(rng.integers(4))],
        target,
        1 if target == "trn1" else int(rng.choice([1, 1, 2])),
    )


def arrays(one: Case) -> dict[str, Array]:
    """The arguments that are tensors, by the names of the kernel's parameters."""
    rng = np.random.default_rng([one.seed, 1])
    dtype = DTYPES[one.dtype]

    def drawn(*shape: int, spread: float = 1.0) -> Array:
        return (rng.standard_normal(shape) * spread).astype(dtype)

    size = one.d**-0.5 / (one.scale or one.d**-0.5)  # scores of about 1, whatever the scale
    found = {
        "q": drawn(one.heads, one.queries, one.d, spread=float(rng.choice([1, 3])) * size),
        "k": drawn(one.shared, one.keys, one.d),
        "v": drawn(one.shared, one.keys, one.d),
    }
    if one.prior:
        found["k_prior"] = drawn(one.shared, one.prior, one.d)
        found["v_prior"] = drawn(one.shared, one.prior, one.d)
    if one.sink:
        found["sink"] = (rng.standard_normal((one.heads, 1)) * 2).astype(np.float32)
    if one.bounds:
        low, high = limits(one, rng)
        shape = (one.heads, one.queries, 1)
        found["bound_low"] = np.broadcast_to(low[:, None], shape).astype(np.float32)
        found["bound_high"] = np.broadcast_to(high[:, None], shape).astype(np.float32)
    return found


def limits(one: Case, rng: np.random.Generator) -> tuple[Array, Array]:
    """Bounds of each query: its document (packed), or what lies before it elsewhere (parallel).

    Every query goes on seeing its own key where there is one.
    """
    total = one.prior + one.keys
    own = np.minimum(one.prior + np.arange(one.queries), total - 1)
    if one.bounds == "parallel":
        ahead = int(rng.integers(0, max(1, total - own[0])))
        return np.zeros(one.queries), np.minimum(own + 1 + ahead, total).astype(float)
    cuts = np.unique(rng.integers(1, total + 1, 4))
    edges = np.array([0, *cuts, total])
    number = np.searchsorted(edges, own, side="right") - 1
    return edges[number].astype(float), np.maximum(edges[number + 1], own + 1).astype(float)


def options(one: Case) -> dict[str, Any]:
    """The arguments that are no tensors."""
    return {
        "scale": one.scale,
        "causal": one.causal,
        "window": one.window,
        "transpose_p": one.transpose_p,
    }


def seen(one: Case, given: dict[str, Array], head: int) -> Array:
    """Which keys (columns) each query (row) sees."""
    query = one.prior + np.arange(one.queries)[:, None]
    key = np.arange(one.prior + one.keys)[None, :]
    found = np.ones((one.queries, one.prior + one.keys), bool)
    if one.causal:
        found &= key <= query
    if one.window:
        found &= query - key < one.window
    if one.bounds:
        found &= (key >= given["bound_low"][head]) & (key < given["bound_high"][head])
    return found


def attended(one: Case, given: dict[str, Array], precise: bool) -> Array:
    """softmax(scale · Q·Kᵀ) · V: in float64, or rounding where a numpy program of the type rounds."""
    dtype = DTYPES[one.dtype]
    wide: Any = np.float64 if precise else np.float32
    scale = wide(one.d**-0.5 if one.scale is None else one.scale)
    found = np.zeros((one.heads, one.queries, one.d), wide)
    for h in range(one.heads):
        n = h // (one.heads // one.shared)
        k, v = (
            np.concatenate([given[f"{x}_prior"][n], given[x][n]] if one.prior else [given[x][n]])
            for x in ("k", "v")
        )
        s = given["q"][h].astype(wide) @ k.astype(wide).T * scale
        s = np.where(seen(one, given, h), s, -np.inf)
        top = s.max(1, keepdims=True)
        if one.sink:
            top = np.maximum(top, given["sink"][h].astype(wide))
        p = np.exp(s - top)
        total = p.sum(1, keepdims=True)
        if one.sink:
            total += np.exp(given["sink"][h].astype(wide) - top)
        weights = p if precise else p.astype(dtype).astype(wide)
        found[h] = weights @ v.astype(wide) / total
    return found if precise else found.astype(dtype)


def errors(
    one: Case, given: dict[str, Array], made: Array
) -> tuple[tuple[float, float], tuple[float, float]]:
    """99th percentile and maximum of the error: of what was made, and of numpy's.

    A score in the middle of two values of P's type goes up or down as its sum over d happens to be
    ordered, and the largest error of a small result can hang on one of them. Numpy's program is
    therefore run from both ends of d; the larger of its errors counts.
    """
    right = attended(one, given, precise=True)
    turned = {**given, **{x: given[x][..., ::-1] for x in ("q", "k", "k_prior") if x in given}}
    numpys = [attended(one, x, precise=False) for x in (given, turned)]
    off = [np.abs(x.astype(np.float64) - right) for x in (made, *numpys)]
    found = [(float(np.percentile(x, 99)), float(x.max())) for x in off]
    return found[0], (max(found[1][0], found[2][0]), max(found[1][1], found[2][1]))


def traced(one: Case, given: dict[str, Array], simulated: bool = False) -> Any:
    """The kernel for a case, traced."""
    from ncc.kernels import kernel
    from ncc.nki.binding import bind
    from ncc.target import target

    made: Any = kernel("attention_cte")
    made = made[one.cores] if one.cores > 1 else made
    machine = target(one.target)
    bound = bind(made.func, (), {**given, **options(one)}, machine)
    return made.traced(bound, machine, simulated)


def run(one: Case, given: dict[str, Array], simulated: bool) -> Array:
    """The kernel's result: by the meaning of its instructions, or from its bytes."""
    from ncc.nki.outcome import delivered
    from ncc.nki.running import compiled, interpreted

    found = traced(one, given, simulated)
    ordered = [given[spec.name] for spec in found.specs]
    return delivered(found, ordered, interpreted if simulated else compiled)


def failure(one: Case) -> str:
    """What is wrong with a case: errors above numpy's, or bytes that compute something else."""
    return ratios_and_failure(one)[1]


def ratios_and_failure(one: Case) -> tuple[tuple[float, float], str]:
    """The kernel's errors over numpy's (99th percentile, maximum), and what is wrong."""
    given = arrays(one)
    made = run(one, given, simulated=True)
    ours, numpys = errors(one, given, made)
    ratios = tuple(a / b if b else float(a > 0) for a, b in zip(ours, numpys, strict=True))
    names = ("99th percentile", "maximum")
    for name, mine, theirs in zip(names, ours, numpys, strict=True):
        if not mine <= ALLOWED * theirs:
            return ratios, f"the {name} of the error is {mine:.3g}, numpy's {theirs:.3g}"
    from_bytes = run(one, given, simulated=False)
    if made.tobytes() != from_bytes.tobytes():
        count = int((made.view(np.uint8) != from_bytes.view(np.uint8)).sum())
        return ratios, f"{count} bytes differ between the simulated and the compiled kernel"
    return ratios, ""
