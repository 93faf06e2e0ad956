"""Choose the partition axes of every op: which operand of each contraction stays in the PE array.

Before:
    from ncc.penguin import *
    with function("chain") as f:
        x = tensor("x", "bfloat16", (8, 4), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 6), kind="input", home="dram")
        v = tensor("v", "bfloat16", (6, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        h = tensor("h", "bfloat16", (4, 6))
        m, n, k = axis("m n k")
        pag("x.0", "w.0")
        pag("x.1", "out.0", "h.0")
        pag("w.1", "v.0", "h.1")
        pag("v.1", "out.1")
        TensorContractOp("h", h[m, n], x[k, m], w[k, n], axes=axes(m=4, n=6, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",),
            requires=(("lhs", ("k",)), ("rhs", ("k",))))
        TensorContractOp("out", out[m, n], h[m, k], v[k, n], axes=axes(m=4, n=3, k=6),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",),
            requires=(("lhs", ("k",)), ("rhs", ("k",))))

After:
    from ncc.penguin import *
    with function("chain") as f:
        x = tensor("x", "bfloat16", (8, 4), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 6), kind="input", home="dram")
        v = tensor("v", "bfloat16", (6, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        h = tensor("h", "bfloat16", (4, 6))
        m, n, k = axis("m n k")
        pag("x.0", "w.0")
        pag("x.1", "out.0", "h.0")
        pag("w.1", "v.0", "h.1")
        pag("v.1", "out.1")
        TensorContractOp("h", h[m, n], x[k, m], w[k, n], axes=axes(m=4, n=6, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), swap_operands=True,
            requires=(("lhs", ("k",)), ("rhs", ("k",))), partition=("n",))
        TensorContractOp("out", out[m, n], h[m, k], v[k, n], axes=axes(m=4, n=3, k=6),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",),
            requires=(("lhs", ("k",)), ("rhs", ("k",))), partition=("m",))

Why: a contraction's result has the stationary operand's free axes on its partitions, and everything
after it inherits them. One choice makes the next contraction's operand lie as it is needed, the
other costs a way through DRAM and a transpose. The choices of one connected part of the program are
tried together, cut off as soon as they cost more than the best so far; beyond 12 contractions
(4096 combinations) each takes what is cheapest next. On equal cost the lhs stays.
"""

from __future__ import annotations

import math
from itertools import pairwise

import attrs

from ncc.ir.data import size_of
from ncc.ir.penguin import ElementwiseOp, Function, TensorContractOp, TensorOp, View
from ncc.ir.penguin_layout import as_stored, count, long, movement, partition_dims
from ncc.ir.penguin_views import each_whole, sizes_of, view_axes, views_read, whole_ops
from ncc.passes.base import define
from ncc.target import Target

EXHAUSTIVE = 12  # contractions: 2^12 combinations
START = 64  # cycles before an instruction's first element
LOAD_WEIGHTS = 128
DMA_START = 1500
RUN = 512  # bytes: shorter runs cost a DMA four times as much
TURN = 128 + START + 128 + START  # a 128 x 128 block through the PE array and out of PSUM


def partition(op: TensorOp, made: dict[str, TensorOp]) -> tuple[str, ...]:
    """An elementwise op keeps the layout of its first operand that another op made and that it
    reads whole; without one, all axes but the innermost lie on partitions."""
    if not isinstance(op, ElementwiseOp):
        return op.partition
    size, order = sizes_of(op), [a.name for a in op.axes]
    units = tuple(a for a in order if size[a] == 1)
    for view in views_read(op):
        maker = made.get(view.tensor)
        if maker and set(long(view_axes(view), size)) == set(long(view_axes(op.dst), size)):
            index = view_axes(view)
            held = tuple(index[d] for d in partition_dims(maker) if index[d])
            return held or units[:1] or tuple(order[:1])
    return tuple(order[:-1])


def chosen(op: TensorOp, swap: bool, made: dict[str, TensorOp]) -> TensorOp:
    """The op with its layout."""
    if isinstance(op, TensorContractOp):
        axes = op.rhs_free_axes if swap else op.lhs_free_axes
        return attrs.evolve(op, swap_operands=swap, partition=axes)
    return attrs.evolve(op, partition=partition(op, made))


# ---- cost, in cycles ----------------------------------------------------------------------------


def transfer(view: View, op: TensorOp, on_partitions: tuple[str, ...], dtype: str) -> float:
    """Cycles of a DMA between row-major DRAM and tiles with these axes on partitions."""
    size = sizes_of(op)
    dims = long(view_axes(view), size)
    elements = count(dims, size)
    if dims and dims[-1] in on_partitions:
        return DMA_START + 4 * elements  # every element is a run of its own
    run = math.prod(size[a] for a in dims[-1:]) * size_of(dtype)
    return DMA_START + elements * size_of(dtype) / 64 * (4 if run < RUN else 1)


class Costs:
    """What each op costs, given its own layout and those of the ops that made its operands."""

    def __init__(self, module: Function, target: Target) -> None:
        self.target = target
        self.kinds = {t.name: t.kind for t in module.tensors}
        self.dtypes = {t.name: t.dtype for t in module.tensors}
        self.memo: dict[tuple[str, tuple[object, ...]], float] = {}

    def op(self, op: TensorOp, made: dict[str, TensorOp]) -> float:
        sources = tuple(partition_dims(made[v.tensor]) for v in views_read(op) if v.tensor in made)
        key = (op.name, (op.partition, getattr(op, "swap_operands", False), *sources))
        if key not in self.memo:
            self.memo[key] = self.work(op) + self.edges(op, made)
        return self.memo[key]

    def work(self, op: TensorOp) -> float:
        size = sizes_of(op)
        if isinstance(op, TensorContractOp):
            frees = (op.rhs_free_axes, op.lhs_free_axes)
            still, moving = (count(a, size) for a in (frees if op.swap_operands else frees[::-1]))
            tiles = -(-count(op.contract_axes, size) // 128) * -(-still // 128)
            rows = moving + -(-moving // 512) * (START + LOAD_WEIGHTS)
            return count(op.batch_axes, size) * tiles * rows
        rows = count(op.partition, size)
        free = count(size, size) / max(rows, 1)
        return free * -(-rows // 128) + START

    def edges(self, op: TensorOp, made: dict[str, TensorOp]) -> float:
        total = 0.0
        for view in views_read(op):
            total += self.read(op, view, made.get(view.tensor))
        if self.kinds[op.dst.tensor] == "output":
            total += transfer(op.dst, op, op.partition, self.dtypes[op.dst.tensor])
        return total

    def read(self, op: TensorOp, view: View, maker: TensorOp | None) -> float:
        """Nothing where the operand lies as it is needed; else loads, and stores of what an op
        made."""
        dtype, size = self.dtypes[view.tensor], sizes_of(op)
        wanted = op.contract_axes if isinstance(op, TensorContractOp) else op.partition
        if maker and as_stored(view, partition_dims(maker), wanted, size):
            return 0.0
        total = 0.0
        if maker and self.kinds[view.tensor] == "internal":
            total += transfer(maker.dst, maker, maker.partition, dtype)
        if not isinstance(op, TensorContractOp):
            return total + transfer(view, op, op.partition, dtype)
        kind = movement(view, dtype, op, self.target)
        if kind == "element":
            return total + transfer(view, op, long(view_axes(view), size), dtype)
        if kind == "pe":
            summed = count(op.contract_axes, size)
            rest = count(long(view_axes(view), size), size) // max(summed, 1)
            total += -(-summed // 128) * -(-rest // 128) * TURN
        return total + transfer(view, op, (), dtype)


# ---- search -------------------------------------------------------------------------------------


def search(ops: list[TensorOp], costs: Costs) -> list[TensorOp]:
    """The cheapest layouts of one part of the program, its ops in order."""
    starts = [at for at, op in enumerate(ops) if isinstance(op, TensorContractOp)]
    if len(starts) > EXHAUSTIVE:
        return greedy(ops, costs)
    runs = [ops[a:b] for a, b in pairwise((0, *starts, len(ops))) if a < b]
    best: list[TensorOp] = []
    least = math.inf

    def visit(at: int, done: list[TensorOp], made: dict[str, TensorOp], spent: float) -> None:
        nonlocal best, least
        if spent >= least:
            return
        if at == len(runs):
            best, least = done, spent
            return
        for swap in (False, True) if isinstance(runs[at][0], TensorContractOp) else (False,):
            now, found, total = dict(made), list(done), spent
            for one in runs[at]:
                op = chosen(one, swap, now)
                now[op.dst.tensor] = op
                found.append(op)
                total += costs.op(op, now)
            visit(at + 1, found, now, total)

    visit(0, [], {}, 0.0)
    return best


def greedy(ops: list[TensorOp], costs: Costs) -> list[TensorOp]:
    """Each contraction takes what is cheapest up to and including the next one."""
    done: list[TensorOp] = []
    made: dict[str, TensorOp] = {}
    for at, op in enumerate(ops):
        swap = False
        if isinstance(op, TensorContractOp):
            swap = ahead(ops[at:], True, made, costs) < ahead(ops[at:], False, made, costs)
        found = chosen(op, swap, made)
        made[found.dst.tensor] = found
        done.append(found)
    return done


def ahead(ops: list[TensorOp], swap: bool, made: dict[str, TensorOp], costs: Costs) -> float:
    """What the first op and those up to the next contraction cost with this choice."""
    made = dict(made)
    total = 0.0
    for at, op in enumerate(ops):
        found = chosen(op, swap and at == 0, made)
        total += costs.op(found, made)
        made[found.dst.tensor] = found
        if at and isinstance(op, TensorContractOp):
            break
    return total


def parts(ops: list[TensorOp]) -> list[list[TensorOp]]:
    """The ops in connected parts: an op is joined to those that made its operands."""
    of: dict[str, int] = {}
    found: dict[int, list[TensorOp]] = {}
    for number, op in enumerate(ops):
        near = sorted({of[v.tensor] for v in views_read(op) if v.tensor in of})
        mine = near[0] if near else number
        for other in near[1:]:
            for moved in found.pop(other):
                of[moved.dst.tensor] = mine
                found[mine].append(moved)
        of[op.dst.tensor] = mine
        found.setdefault(mine, []).append(op)
    place = {op.name: number for number, op in enumerate(ops)}
    return [sorted(part, key=lambda op: place[op.name]) for part in found.values()]


def apply(module: Function, target: Target) -> Function:
    ops = whole_ops(module)
    if not ops:
        return module
    costs = Costs(module, target)
    solved = {op.name: op for part in parts(ops) for op in search(part, costs)}

    def laid_out(op: TensorOp) -> TensorOp:
        return attrs.evolve(solved[op.name], origin=op.origin.by("solve-layout"))

    body = each_whole(module, laid_out)
    return attrs.evolve(module, body=body)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("requirements-are-stated", "dimensions-are-grouped"),
    gives=("layouts-are-solved",),
    real="GlobalLayout",
    job="F2",
    sure="inferred",
)
