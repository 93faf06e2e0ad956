"""Attention over a whole context (prefill): O = softmax(scale · Q·Kᵀ) · V, with online softmax.

Queries are taken 128 at a time, one a partition. Scores are made 512 keys a matmul (one PSUM bank)
and exponentiated 2,048 an instruction. Above 10 · 1,024 keys the keys are taken in sections of
8,192; maxima and sums stay in SBUF from section to section, and the O so far waits in HBM.

Row maxima are kept *negated*. Then the running maximum is a minimum, the subtraction of the maximum
is the bias of the exponential, exp(S - m) = exp(1 · S + (-m)), and the correction of what earlier
sections have summed up, α = exp(m_old - m_new), is one more exponential: of -(-m_old) + (-m_new).

What is known while compiling (which keys lie where, which a group of queries may see) is planned
in `attention_plan`; `attention_masks` hides scores, `attention_turns` transposes. Here is the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ncc import nki
from ncc.kernels.attention_masks import scales_exactly, take
from ncc.kernels.attention_plan import (
    GROUP,
    STEP,
    Group,
    Mask,
    Part,
    Section,
    Tile,
    groups,
    sections,
    visits,
)
from ncc.kernels.attention_turns import (
    dma_can_turn,
    dma_takes,
    load_turned,
    turn_by_dma,
    turn_by_pe,
)
from ncc.nki import isa as nisa
from ncc.nki import language as nl

Tensor = Any  # a tensor of the kernel
WIDE = 2048  # columns of one exponential


@attrs.frozen
class Setting:
    """What every head shares."""

    dtype: Any  # of the operands of each product
    scale: float
    mask: Mask
    dma_turns: bool  # the DMA can transpose this type here
    dma_share: float  # of the transposes of P, those that the DMA makes


@attrs.frozen
class Keys:
    """A tile of keys in SBUF: Kᵀ [d, keys], and V [128, steps, d] with 128 keys a step."""

    kt: Tensor
    v: Tensor


@attrs.frozen
class Head:
    """One head of queries, and what is remembered of each of its groups."""

    q: Tensor  # [Sq, d]
    out: Tensor  # [Sq, d]
    sink: Tensor | None  # [1, 1]
    bounds: list[Tensor]  # lower and upper [Sq, 1], or nothing
    maxima: Tensor  # [128, groups], negated
    sums: Tensor  # [128, groups]
    waiting: Tensor | None  # O so far [Sq, d], in HBM, where there are several sections


@attrs.frozen
class Row:
    """A group of queries at work on one section."""

    head: Head
    group: Group
    first: bool  # no section has come before
    last: bool  # none comes after

    @property
    def maximum(self) -> Tensor:
        """The running maximum of each query, negated."""
        return self.head.maxima[0 : self.group.rows, self.group.index : self.group.index + 1]

    @property
    def sum(self) -> Tensor:
        """The running sum of each query's exponentials."""
        return self.head.sums[0 : self.group.rows, self.group.index : self.group.index + 1]

    @property
    def begun(self) -> bool:
        """Whether there is a maximum and a sum already: an earlier section's, or the sink's."""
        return not self.first or self.head.sink is not None


@nki.jit
def attention_cte(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    causal: bool = False,
    window: int = 0,
    sink: Tensor | None = None,
    k_prior: Tensor | None = None,
    v_prior: Tensor | None = None,
    bound_low: Tensor | None = None,
    bound_high: Tensor | None = None,
    transpose_p: str | float = "dma",
    out: Tensor | None = None,
) -> Tensor:
    """q is [Bq, Sq, d], k and v are [Bkv, Sk, d]; the result is [Bq, Sq, d] of q's dtype.

    Bq is a multiple of Bkv: neighbours share keys (grouped queries). d is at most 128. `scale` is
    1/√d unless given. `k_prior`, `v_prior` [Bkv, Sp, d] are keys in front of k (a prefix cache);
    query i then stands at position Sp + i. `causal` hides later positions, `window` those that are
    that many or more earlier. `sink` [Bq, 1] is one more score a row, without a value. `bound_low`,
    `bound_high` [Bq, Sq, 1] float32 are run-time bounds: query i sees positions low ≤ j < high
    (packed sequences, context parallelism), from trn2 on. `transpose_p` says where P is transposed:
    `dma`, `pe`, or the share of it (0 to 1) that the DMA takes. A query that sees no key at all
    gets finite numbers without a meaning. A kernel that calls this one may give `out` itself.
    """
    sources: list[tuple[Tensor, Tensor]] = [(k, v)]
    if k_prior is not None:
        sources.insert(0, (k_prior, v_prior))
    check(q, sources, (bound_low, bound_high), sink)
    setting = set_up(q, scale, Mask(bool(causal), int(window)), transpose_p)
    if out is None:
        out = nl.ndarray(q.shape, q.dtype, buffer=nl.shared_hbm, name="out")
    prior = 0 if k_prior is None else k_prior.shape[1]
    every = sections([keys.shape[1] for keys, _ in sources])
    heads, mine = share(q.shape[0], groups(q.shape[1], prior))
    sharing = q.shape[0] // k.shape[0]  # heads of queries that read one head of keys
    limits = [x for x in (bound_low, bound_high) if x is not None]
    for n in range(k.shape[0]):
        begun: list[Head] = []
        for h in heads:
            if h // sharing == n:
                one = sink[h : h + 1] if sink is not None else None
                begun.append(begin(q[h], out[h], one, [x[h] for x in limits], len(every)))
        attend(setting, begun, mine, [(keys[n], values[n]) for keys, values in sources], every)
    return out


def check(q: Tensor, sources: Sequence[Any], bounds: Any, sink: Tensor | None) -> None:
    """The shapes and types that fit together."""
    Bq, Sq, d = q.shape
    Bkv = sources[-1][0].shape[0]
    assert d <= 128, f"d is {d}; a head has at most 128, one a partition"
    assert Bq % Bkv == 0, f"{Bq} heads of queries cannot share {Bkv} heads of keys evenly"
    for keys, values in sources:
        assert values is not None, "k_prior comes with v_prior"
        wanted = (Bkv, keys.shape[1], d)
        for x in (keys, values):
            assert tuple(x.shape) == wanted, f"keys and values are {wanted}, not {tuple(x.shape)}"
            assert x.dtype == q.dtype, f"q is {q.dtype} and its keys or values are {x.dtype}"
    low, high = bounds
    assert (low is None) == (high is None), "bound_low comes with bound_high"
    for x in bounds:
        if x is not None:
            assert tuple(x.shape) == (Bq, Sq, 1), f"bounds are {(Bq, Sq, 1)}, not {tuple(x.shape)}"
            assert x.dtype == nl.float32, f"bounds are float32, not {x.dtype}"
    if sink is not None:
        assert tuple(sink.shape) == (Bq, 1), f"sink is {(Bq, 1)}, not {tuple(sink.shape)}"


def set_up(q: Tensor, scale: float | None, mask: Mask, transpose_p: str | float) -> Setting:
    """What every head shares."""
    part = {"dma": 1.0, "pe": 0.0}.get(str(transpose_p), transpose_p)
    said = f"transpose_p is dma, pe or a share from 0 to 1, not {transpose_p!r}"
    assert not isinstance(part, str) and 0 <= part <= 1, said
    turns = dma_can_turn(q.dtype)
    value = q.shape[2] ** -0.5 if scale is None else float(scale)
    return Setting(q.dtype, value, mask, turns, float(part) if turns else 0.0)


def share(count: int, every: list[Group]) -> tuple[range, list[Group]]:
    """The heads and groups of this core: heads go round, or groups where the heads do not go up."""
    core, cores = nl.program_id(0), nl.num_programs(0)
    if count % cores == 0:
        return range(core, count, cores), every
    return range(count), every[core::cores]


def begin(q: Tensor, out: Tensor, sink: Tensor | None, bounds: list[Tensor], parts: int) -> Head:
    """A head whose groups have seen nothing yet."""
    Sq, d = q.shape
    columns = -(-Sq // GROUP)
    maxima = nl.ndarray((GROUP, columns), nl.float32, buffer=nl.sbuf, name="maxima")
    sums = nl.ndarray((GROUP, columns), nl.float32, buffer=nl.sbuf, name="sums")
    waiting = None
    if parts > 1:
        waiting = nl.ndarray((Sq, d), nl.float32, buffer=nl.private_hbm, name="waiting")
    return Head(q, out, sink, bounds, maxima, sums, waiting)


def attend(
    setting: Setting,
    heads: list[Head],
    mine: list[Group],
    sources: Sequence[Any],
    every: list[Section],
) -> None:
    """The heads that share these keys: section by section, and in each group by group."""
    if not heads:
        return
    todo = [(group, visits(setting.mask, group, every)) for group in mine]
    for group, seen in todo:
        assert seen, f"queries {group.start} to {group.start + group.rows - 1} see no key at all"
    for number, section in enumerate(every):
        parts = [part for _, seen in todo for n, found in seen if n == number for part in found]
        tiles = sorted({part.tile for part in parts})
        keys = {n: load_keys(setting, sources, section[n]) for n in tiles}
        for head in heads:
            for group, seen in todo:
                for n, parts in seen:
                    if n == number:
                        row = Row(head, group, n == seen[0][0], n == seen[-1][0])
                        one_section(setting, row, keys, parts)


def load_keys(setting: Setting, sources: Sequence[Any], tile: Tile) -> Keys:
    """Up to 512 keys: Kᵀ transposed on its way in, V as it lies, 128 keys a step."""
    k, v = sources[tile.source]
    d = k.shape[1]
    kt = nl.ndarray((d, tile.keys), setting.dtype, buffer=nl.sbuf, name="kt")
    load_turned(kt, k[tile.start : tile.start + tile.keys, :], setting.dma_turns)
    whole, rest = divmod(tile.keys, STEP)
    held = nl.ndarray((STEP, -(-tile.keys // STEP), d), setting.dtype, buffer=nl.sbuf, name="v")
    middle = tile.start + whole * STEP
    if whole:
        steps = v[tile.start : middle, :].reshape((whole, STEP, d)).permute((1, 0, 2))
        nisa.dma_copy(held[:, 0:whole, :], steps)
    if rest:
        nisa.dma_copy(held[0:rest, whole, :], v[middle : middle + rest, :])
    return Keys(kt, held)


# --- one group of queries against one section -----------------------------------------------------


def one_section(setting: Setting, row: Row, keys: dict[int, Keys], parts: tuple[Part, ...]) -> None:
    """Scores, their maximum, exponentials, their sum, and the values that they weigh."""
    if row.first and row.head.sink is not None:
        begin_with_sink(row)
    scores, tops = score(setting, row, keys, parts)
    alpha = update_maximum(row, tops)
    p = exponentials(setting, row, scores, alpha)
    o = weighted(setting, row, p, keys, parts)
    if not row.first:
        o = add_waiting(row, o, alpha)
    if row.last:
        deliver(setting, row, o)
    else:
        wait(row, o)


def column(row: Row, name: str) -> Tensor:
    """A number for each query."""
    return nl.ndarray((row.group.rows, 1), nl.float32, buffer=nl.sbuf, name=name)


def begin_with_sink(row: Row) -> None:
    """A sink is a score without a value: the maximum begins at it, and the sum at exp(0)."""
    sink = column(row, "sinks")
    assert row.head.sink is not None
    nisa.dma_copy(sink, row.head.sink.ap([[0, row.group.rows], [1, 1]]))
    nisa.tensor_scalar(row.maximum, sink, nl.multiply, -1.0)
    nisa.memset(row.sum, 1.0)


def score(
    setting: Setting, row: Row, keys: dict[int, Keys], parts: tuple[Part, ...]
) -> tuple[Tensor, Tensor]:
    """scale · Q·Kᵀ, masked, in SBUF, and the maximum of each part of it."""
    rows = row.group.rows
    limits = [load_bound(row, bound) for bound in row.head.bounds]
    # range_select does not scale: the queries are scaled before, where that rounds nothing
    before = setting.scale if limits and scales_exactly(setting.scale) else 1.0
    qt = load_queries(setting, row, before)
    width = sum(part.keys for part in parts)
    scores = nl.ndarray((rows, width), nl.float32, buffer=nl.sbuf, name="scores")
    tops = nl.ndarray((rows, len(parts)), nl.float32, buffer=nl.sbuf, name="tops")
    at = 0
    for n, part in enumerate(parts):
        product = nl.ndarray((rows, part.keys), nl.float32, buffer=nl.psum, name="product")
        nisa.nc_matmul(product, qt, keys[part.tile].kt[:, part.low : part.high])
        here, top = scores[:, at : at + part.keys], tops[:, n : n + 1]
        take(setting.mask, row.group, part, product, setting.scale / before, limits, here, top)
        at += part.keys
    return scores, tops


def load_queries(setting: Setting, row: Row, scale: float) -> Tensor:
    """Qᵀ [d, rows] of a group."""
    shape = (row.head.q.shape[1], row.group.rows)
    qt = nl.ndarray(shape, setting.dtype, buffer=nl.sbuf, name="qt")
    load_turned(qt, row.head.q[row.group.queries, :], setting.dma_turns)
    if scale != 1.0:
        nisa.tensor_scalar(qt, qt, nl.multiply, scale)
    return qt


def load_bound(row: Row, bound: Tensor) -> Tensor:
    """One side of the run-time bounds of a group."""
    held = column(row, "bound")
    nisa.dma_copy(held, bound[row.group.queries, :])
    return held


def update_maximum(row: Row, tops: Tensor) -> Tensor | None:
    """The running maximum takes in this section's; α, where something was summed up before."""
    if not row.begun:
        nisa.tensor_reduce(row.maximum, nl.maximum, tops, axis=1, negate=True)
        return None
    section, before, alpha = (column(row, name) for name in ("section", "before", "alpha"))
    nisa.tensor_reduce(section, nl.maximum, tops, axis=1, negate=True)
    nisa.tensor_copy(before, row.maximum)
    nisa.tensor_tensor(row.maximum, before, section, nl.minimum)
    nisa.activation(alpha, nl.exp, before, bias=row.maximum, scale=-1.0)
    return alpha


def exponentials(setting: Setting, row: Row, scores: Tensor, alpha: Tensor | None) -> Tensor:
    """P = exp(S - max) in the type of the products; the running sum takes in those of its rows."""
    rows, width = scores.shape
    p = nl.ndarray((rows, width), setting.dtype, buffer=nl.sbuf, name="p")
    starts = range(0, width, WIDE)
    sums = nl.ndarray((rows, len(starts)), nl.float32, buffer=nl.sbuf, name="part_sums")
    for n, at in enumerate(starts):
        here = slice(at, min(width, at + WIDE))
        nisa.activation(p[:, here], nl.exp, scores[:, here], bias=row.maximum,
                        reduce_op=nl.add, reduce_res=sums[:, n : n + 1],
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)  # fmt: skip
    if alpha is None:
        nisa.tensor_reduce(row.sum, nl.add, sums, axis=1)
        return p
    section = column(row, "section_sum")
    nisa.tensor_reduce(section, nl.add, sums, axis=1)
    nisa.tensor_scalar(row.sum, row.sum, nl.multiply, alpha, op1=nl.add, operand1=section)
    return p


def weighted(
    setting: Setting, row: Row, p: Tensor, keys: dict[int, Keys], parts: tuple[Part, ...]
) -> Tensor:
    """P·V in PSUM, 128 keys a product; the keys of P come onto partitions first."""
    rows, d = row.group.rows, row.head.q.shape[1]
    o = nl.ndarray((rows, d), nl.float32, buffer=nl.psum, name="o")
    at = 0
    for n, part in enumerate(parts):
        pt = nl.ndarray(
            (STEP, -(-part.keys // STEP), rows), setting.dtype, buffer=nl.sbuf, name="pt"
        )
        turn = turn_by_dma if dma_takes(setting.dma_share, n, len(parts)) else turn_by_pe
        turn(pt, p[:, at : at + part.keys])
        for step in range(pt.shape[1]):
            deep = min(STEP, part.keys - step * STEP)
            values = keys[part.tile].v[0:deep, part.low // STEP + step, :]
            nisa.nc_matmul(o, pt[0:deep, step, :], values)
        at += part.keys
    return o


# --- O, from section to section -------------------------------------------------------------------


def add_waiting(row: Row, o: Tensor, alpha: Tensor | None) -> Tensor:
    """O = α · O so far + this section's."""
    assert row.head.waiting is not None
    before = nl.ndarray(o.shape, nl.float32, buffer=nl.sbuf, name="o_before")
    nisa.dma_copy(before, row.head.waiting[row.group.queries, :])
    both = nl.ndarray(o.shape, nl.float32, buffer=nl.sbuf, name="o_both")
    nisa.scalar_tensor_tensor(both, before, nl.multiply, alpha, nl.add, o)
    return both


def wait(row: Row, o: Tensor) -> None:
    """O waits in HBM for the next section: SBUF is for keys."""
    assert row.head.waiting is not None
    held = nl.ndarray(o.shape, nl.float32, buffer=nl.sbuf, name="o_held")
    nisa.tensor_copy(held, o)
    nisa.dma_copy(row.head.waiting[row.group.queries, :], held)


def deliver(setting: Setting, row: Row, o: Tensor) -> None:
    """O is divided by the sums, rounded once, and leaves."""
    inverse = column(row, "inverse")
    nisa.reciprocal(inverse, row.sum)
    result = nl.ndarray(o.shape, setting.dtype, buffer=nl.sbuf, name="result")
    nisa.activation(result, nl.copy, o, scale=inverse)
    nisa.dma_copy(row.head.out[row.group.queries, :], result)
