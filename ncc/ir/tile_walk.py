"""Walking and changing tile programs: every op in its loops, and accumulation groups as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from ncc.ir.affine import Affine
from ncc.ir.core import unchanged
from ncc.ir.penguin import (
    Axis,
    Loop,
    MatMulOp,
    Operand,
    Statement,
    Tensor,
    TileElementwiseOp,
    TileOp,
    View,
    axis_index,
)
from ncc.ir.penguin_views import READS, SCALARS, views_read
from ncc.ir.tiling import put, put_extent

Body = tuple[Statement, ...]
AXES = ("par", "free", "contract")


def rewrite(body: Body, change: Callable[[TileOp], Iterable[Statement]]) -> Body:
    """The body with every tile op replaced by what `change` makes of it; what stays is the same
    object."""
    return each_statement(body, lambda one: change(one) if isinstance(one, TileOp) else (one,))


def each_statement(body: Body, change: Callable[[Statement], Iterable[Statement]]) -> Body:
    """The body with every statement replaced, the inner ones first."""
    found: list[Statement] = []
    for one in body:
        if isinstance(one, Loop):
            inside = each_statement(one.body, change)
            if inside is not one.body:
                one = Loop(one.axis, one.trips, one.kind, inside, one.origin)
        found += change(one)
    return body if unchanged(found, body) else tuple(found)


def tile_ops(body: Body) -> Iterator[TileOp]:
    """Every tile op in program order, loops opened."""
    for one in body:
        if isinstance(one, Loop):
            yield from tile_ops(one.body)
        elif isinstance(one, TileOp):
            yield one


def nested(body: Body, outside: tuple[Loop, ...] = ()) -> Iterator[tuple[TileOp, tuple[Loop, ...]]]:
    """Every tile op with the loops around it, outermost first."""
    for one in body:
        if isinstance(one, Loop):
            yield from nested(one.body, (*outside, one))
        elif isinstance(one, TileOp):
            yield one, outside


def group(one: Statement) -> MatMulOp | None:
    """The matmul whose accumulation group this statement is as a whole: when the statement is done,
    the result is complete."""
    while isinstance(one, Loop) and one.kind == "accumulate":
        inside = [x for x in one.body if isinstance(x, MatMulOp) or _adds(x)]
        if len(inside) != 1:
            return None
        one = inside[0]
    return one if isinstance(one, MatMulOp) else None


def _adds(one: Statement) -> bool:
    return isinstance(one, Loop) and one.kind == "accumulate"


def after_groups(body: Body, more: Callable[[MatMulOp], Iterable[Statement]]) -> Body:
    """The body with `more` put right after each accumulation group."""
    found: list[Statement] = []
    for one in body:
        matmul = group(one)
        if isinstance(one, Loop) and not matmul:
            inside = after_groups(one.body, more)
            if inside is not one.body:
                one = Loop(one.axis, one.trips, one.kind, inside, one.origin)
        found.append(one)
        if matmul:
            found += more(matmul)
    return body if unchanged(found, body) else tuple(found)


def with_reads(op: TileOp, change: Callable[[View], View]) -> TileOp:
    """The op with its operands changed; the op itself when none is."""
    fields: dict[str, Operand | tuple[Operand, ...]] = {}
    for name in (*READS, *SCALARS):
        found = getattr(op, name, None)
        if isinstance(found, View) and (new := change(found)) is not found:
            fields[name] = new
    if isinstance(op, TileElementwiseOp):
        srcs = tuple(change(x) if isinstance(x, View) else x for x in op.srcs)
        if not unchanged(srcs, op.srcs):
            fields["srcs"] = srcs
    return attrs.evolve(op, **fields) if fields else op


def readers(body: Body) -> dict[str, list[TileOp]]:
    """The ops that read each tensor, in program order."""
    found: dict[str, list[TileOp]] = {}
    for op in tile_ops(body):
        for name in dict.fromkeys(view.tensor for view in views_read(op)):
            found.setdefault(name, []).append(op)
    return found


def shifted(one: Statement, values: Mapping[str, Affine]) -> Statement:
    """The statement with loop variables replaced by sums."""
    if isinstance(one, Loop):
        body = tuple(shifted(x, values) for x in one.body)
        return Loop(one.axis, one.trips, one.kind, body, one.origin)
    if not isinstance(one, TileOp):
        return one  # a kernel indexes by no axis

    def moved(view: View) -> View:
        return View(view.tensor, tuple(put(i, values) for i in view.index))

    fields = {"dst": moved(one.dst)}
    axes = {
        name: tuple(Axis(a.name, put_extent(a.extent, values)) for a in getattr(one, name))
        for name in AXES
        if hasattr(one, name)
    }
    return attrs.evolve(with_reads(one, moved), **fields, **axes)


def apart(body: Body, tensors: Iterable[Tensor]) -> Body:
    """The body with loops and axes named apart from all tensors."""
    held = {t.name for t in tensors}
    taken = axis_names(body)
    names: dict[str, str] = {}
    for name in sorted(taken & held):
        other = name
        while other in taken or other in held:
            other += "_"
        taken.add(other)
        names[name] = other
    return tuple(_renamed(one, names) for one in body) if names else body


def axis_names(body: Body) -> set[str]:
    """The names of all loops, and of all axes of tiles."""
    found: set[str] = set()
    for op, loops in nested(body):
        found |= {loop.axis for loop in loops}
        found |= {a.name for field in AXES for a in getattr(op, field, ())}
    return found


def _renamed(one: Statement, names: Mapping[str, str]) -> Statement:
    if isinstance(one, Loop):
        body = tuple(_renamed(x, names) for x in one.body)
        return Loop(names.get(one.axis, one.axis), one.trips, one.kind, body, one.origin)
    if not isinstance(one, TileOp):
        return one
    one = shifted(one, {name: axis_index(other) for name, other in names.items()})
    fields = {
        field: tuple(Axis(names.get(a.name, a.name), a.extent) for a in getattr(one, field))
        for field in AXES
        if hasattr(one, field)
    }
    if isinstance(one, MatMulOp):
        return attrs.evolve(
            one, accumulate=tuple(names.get(a, a) for a in one.accumulate), **fields
        )
    return attrs.evolve(one, **fields)


class Fresh:
    """Names that are not taken yet, for tensors and ops alike."""

    def __init__(self, tensors: Iterable[Tensor], body: Body) -> None:
        self.taken = {t.name for t in tensors} | axis_names(body)
        self.taken |= {op.name for op in tile_ops(body)}

    def __call__(self, base: str) -> str:
        name, number = base, 1
        while name in self.taken:
            name, number = f"{base}_{number}", number + 1
        self.taken.add(name)
        return name


def is_column(operand: Operand, free: tuple[Axis, ...]) -> bool:
    """An operand with one value a partition, although the tile has several."""
    walked = {a.name for a in free}
    return (
        isinstance(operand, View)
        and bool(walked)
        and not any(name in walked for index in operand.index for name in index.names())
    )
