"""What a finished trace of the older API still lacks: results go straight to where they are stored.

`t[...] = call(...)` was recorded as the call into a tile of its own and a copy. Where nothing else
reads that tile, the call writes the target itself; results that nothing reads are dropped.
"""

from __future__ import annotations

import attrs

from ncc.ir.kernel import Access, Arg, KernelOp, Statement
from ncc.ir.kernel_ops import OPS, role_of
from ncc.nki.old.loops import moved
from ncc.nki.trace import Trace

# one element of the result for each element of the operands, in their order
ELEMENTWISE = frozenset(
    {"tensor_tensor", "tensor_scalar", "scalar_tensor_tensor", "activation", "tensor_copy"}
    | {"reciprocal", "select_reduce", "range_select", "tensor_scalar_reduce", "dropout"}
)
# whose result may be of any dtype and in SBUF or PSUM
ANYWHERE = ELEMENTWISE - {"dropout"} | {"tensor_reduce", "memset", "bn_stats", "bn_aggr"}
SBUF_ONLY = frozenset({"dma_copy", "affine_select", "iota", "tensor_tensor_scan", "max8"})
KEPT = frozenset({"rng", "set_rng_seed", "rand_set_state", "device_print", "dropout"})
FLOATS = frozenset({"float32"})


def finished(trace: Trace) -> None:
    """Shorten the recorded body."""
    body = trace.bodies[0]
    trace.bodies[0] = _read(_folded(body, trace), trace)
    moved(trace.ran, body, trace.bodies[0])
    used = _buffers(trace.bodies[0])
    for name in [n for n in trace.storages if n in trace.temporary and n not in used]:
        del trace.storages[name]


def _accesses(arg: Arg) -> list[Access]:
    """An operand's access, and those that its moves read."""
    if not isinstance(arg, Access):
        return []
    found = [arg]
    for move in arg.moves:
        if isinstance(move.source, Access):
            found.extend(_accesses(move.source))
    return found


def _writes(op: KernelOp, role: str) -> bool:
    word = role_of(op.op, role) or role
    return word.rstrip("?*") in {w.rstrip("?*") for w in OPS[op.op].writes}


def _touched(op: KernelOp) -> list[str]:
    return [a.buffer for _, arg in op.args for a in _accesses(arg)]


def _buffers(body: list[Statement]) -> set[str]:
    return {name for op in body if isinstance(op, KernelOp) for name in _touched(op)}


# --- copies ---------------------------------------------------------------------------------------


def _folded(body: list[Statement], trace: Trace) -> list[Statement]:
    """A call and the copy right behind it as one, where the tile between them serves only that."""
    uses: dict[str, int] = {}
    for op in body:
        if isinstance(op, KernelOp):
            for name in _touched(op):
                uses[name] = uses.get(name, 0) + 1
    pairs: dict[str, int] = {}
    candidates: list[tuple[int, str]] = []
    for k in range(len(body) - 1):
        first, second = body[k], body[k + 1]
        if isinstance(first, KernelOp) and isinstance(second, KernelOp):
            name = _between(first, second, trace)
            if name:
                pairs[name] = pairs.get(name, 0) + 2
                candidates.append((k, name))
    gone: set[int] = set()
    found = list(body)
    for k, name in candidates:
        if pairs[name] != uses[name] or k in gone:
            continue
        first, second = found[k], found[k + 1]
        if isinstance(first, KernelOp) and isinstance(second, KernelOp):
            found[k] = _joined(first, second)
            gone.add(k + 1)
    return [op for k, op in enumerate(found) if k not in gone]


def _between(first: KernelOp, second: KernelOp, trace: Trace) -> str:
    """The tile that `first` writes and `second` only copies; empty where the two cannot be one."""
    if second.op != "tensor_copy" or second.engine != "unknown" or second.after or first.after:
        return ""
    made, source, target = first.arg("dst"), second.arg("src"), second.arg("dst")
    if not (isinstance(made, Access) and isinstance(source, Access) and isinstance(target, Access)):
        return ""
    name = made.buffer
    if name not in trace.temporary or made != source or target.buffer == name or target.moves:
        return ""
    if first.op not in ANYWHERE and first.op not in SBUF_ONLY:
        return ""
    to, between = trace.storages[target.buffer].buffer, trace.storages[name].buffer
    if to.memory not in ("sbuf", "psum") or between.memory != "sbuf":
        return ""
    if to.memory == "psum" and (first.op in SBUF_ONLY or first.engine == "gpsimd"):
        return ""
    if first.op == "dma_copy" and made.dtype != target.dtype:
        return ""
    exact = made.dtype == target.dtype
    if not exact and (made.dtype not in FLOATS or first.op in ("memset", "iota")):
        return ""
    if to.address is not None and first.op not in ELEMENTWISE:
        return ""
    for role, arg in first.args:
        for one in _accesses(arg):
            if one.buffer != target.buffer or (role == "dst" and one == made):
                continue
            if apart(one, target):
                continue
            alike = one.pairs == target.pairs and one.offset == target.offset
            if first.op not in ELEMENTWISE or not alike or one.dtype != target.dtype:
                return ""
            if _writes(first, role):
                return ""
    return name


def apart(a: Access, b: Access) -> bool:
    """Whether two accesses of one tile surely share no element: their columns lie apart."""
    step, _ = a.pairs[0]
    if a.moves or b.moves or a.dtype != b.dtype or b.pairs[0][0] != step or step < 1:
        return False
    spans: list[tuple[int, int]] = []
    for one in (a, b):
        low = high = one.offset % step
        for by, count in one.pairs[1:]:
            far = by * (count - 1)
            low, high = (low + far, high) if far < 0 else (low, high + far)
        spans.append((low, high))
    return spans[0][1] < spans[1][0] or spans[1][1] < spans[0][0]


def _joined(first: KernelOp, second: KernelOp) -> KernelOp:
    target = second.arg("dst")
    assert target is not None
    args = tuple((r, target if r == "dst" else a) for r, a in first.args)
    return attrs.evolve(first, args=args)


# --- results that nothing reads -------------------------------------------------------------------


def _read(body: list[Statement], trace: Trace) -> list[Statement]:
    """Without the calls whose results are all read by nobody."""
    needed: set[str] = set()
    kept: list[Statement] = []
    for op in reversed(body):
        if isinstance(op, KernelOp):
            outs = [a.buffer for r, a in op.args if _writes(op, r) and isinstance(a, Access)]
            dead = outs and all(o in trace.temporary and o not in needed for o in outs)
            if dead and op.op not in KEPT:
                continue
            for role, arg in op.args:
                plain = _writes(op, role) and role not in OPS[op.op].more
                for one in _accesses(arg)[1 if plain else 0 :]:
                    needed.add(one.buffer)
        kept.append(op)
    return kept[::-1]
