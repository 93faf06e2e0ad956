"""NKI, random numbers: deterministic, from the generators of `ncc.numerics_random`."""

from __future__ import annotations

import numpy as np

from ncc import numerics, numerics_random
from ncc.interp.kernel_call import Call, against
from ncc.interp.kernel_memory import kind_of


def _words(c: Call, engine: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    rows, count = c.count()
    return numerics_random.draw(c.core.generator(engine), rows, count)


def rng(c: Call) -> None:
    """The low bits of random words; a float destination gets numbers in [0, 1)."""
    words = _words(c, c.op.engine)
    kind = kind_of(c.dtype("dst"))
    if kind.kind in "iu":
        c.write("dst", words.astype(kind))
    else:
        c.store("dst", numerics_random.uniform(words))


def rand2(c: Call) -> None:
    """Uniform float32 numbers from min to max."""
    u = numerics_random.uniform(_words(c, "vector"))
    low, high = against(u, c.scalar("min")), against(u, c.scalar("max", 1.0))
    span = numerics.alu("subtract", high, low)
    c.store("dst", numerics.alu("add", numerics.alu("mult", u, span), low))


def dropout(c: Call) -> None:
    """Zero with the given probability; what stays keeps its value."""
    x = c.rows("data")
    u = numerics_random.uniform(_words(c, "vector"))
    c.store("dst", np.where(u < against(u, c.scalar("prob")), np.float32(0), numerics.widen(x)))


def set_rng_seed(c: Call) -> None:
    seed = int(c.rows("src_seeds").astype(np.int64)[0, 0])
    name = "gpsimd" if c.op.engine == "gpsimd" else "vector"
    engines = [name] if c.op.engine != "unknown" else ["gpsimd", "vector"]
    for engine in engines:
        count = 1 if engine == "gpsimd" else 4
        c.core.random[engine] = numerics_random.seeded(seed, count)


def _engine(c: Call, words: int) -> str:
    """The engine whose states have so many words a lane, where the call names none."""
    if c.op.engine != "unknown":
        return c.op.engine
    return "gpsimd" if words <= numerics_random.STATE else "vector"


def rand_set_state(c: Call) -> None:
    x = c.rows("src_seeds")
    states = c.core.generator(_engine(c, x.shape[1]))
    flat = states.reshape(states.shape[0], -1)
    words = min(flat.shape[1], x.shape[1])
    flat[: x.shape[0], :words] = x[:, :words].astype(np.uint32)


def rand_get_state(c: Call) -> None:
    rows, count = c.count()
    states = c.core.generator(_engine(c, count))
    flat = states.reshape(states.shape[0], -1)
    out = np.array(c.rows("dst"))
    words = min(flat.shape[1], count)
    out[:, :words] = flat[:rows, :words].astype(out.dtype)
    c.write("dst", out)


MEANING = {
    "rng": rng,
    "rand2": rand2,
    "dropout": dropout,
    "set_rng_seed": set_rng_seed,
    "rand_set_state": rand_set_state,
    "rand_get_state": rand_get_state,
}
