"""What holds of every HLO module, and the facts that its passes establish."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from ncc.errors import NccError, nearest
from ncc.ir.core import Law
from ncc.ir.data import FROM_HLO
from ncc.ir.hlo import (
    PREDECESSORS,
    ArrayShape,
    Called,
    Computation,
    EntryLayout,
    Instruction,
    Literal,
    Module,
    Shape,
    TupleLiteral,
    TupleShape,
    called,
    is_descending,
    leaves,
    same,
)
from ncc.ir.hlo_literal import TYPES
from ncc.ir.hlo_shapes import complaints
from ncc.ir.hlo_text import show_layout, show_shape
from ncc.target import Target

Signed = tuple[str, str, tuple[int, ...]]
OP_NAME = re.compile(r'\bop_name="([A-Za-z_]\w*)"')


def nodes(module: Module) -> Iterator[Computation]:
    yield from module.computations


# ------------------------------------------------------------------------------------ signature


def signature(module: Module) -> tuple[tuple[Signed, ...], tuple[Signed, ...]]:
    """Inputs and outputs of the entry as (name, dtype, shape); tuples leaf by leaf."""
    main = module.main()
    params = main.params()
    names = input_names(module)
    ins: list[Signed] = []
    for name, inst in zip(names, params, strict=True):
        parts = leaves(inst.shape)
        for i, leaf in enumerate(parts):
            shown = name if isinstance(inst.shape, ArrayShape) else f"{name}_{i}"
            ins.append((shown, FROM_HLO.get(leaf.dtype, leaf.dtype), leaf.dims))
    outs = leaves(main.returned().shape)
    shown_outs = ["out"] if len(outs) == 1 else [f"out{i}" for i in range(len(outs))]
    return tuple(ins), tuple(
        (name, FROM_HLO.get(leaf.dtype, leaf.dtype), leaf.dims)
        for name, leaf in zip(shown_outs, outs, strict=True)
    )


def input_names(module: Module) -> tuple[str, ...]:
    """What the entry's parameters are called below HLO: what the framework called them, if that
    can stand in a program, else the instruction's own name without its number."""
    main = module.main()
    count = len(leaves(main.returned().shape))
    taken = {"out"} if count == 1 else {f"out{i}" for i in range(count)}
    found: list[str] = []
    for inst in main.params():
        meta = inst.get("metadata")
        said = OP_NAME.search(meta) if isinstance(meta, str) else None
        name = said[1] if said else re.sub(r"\.\d+\Z", "", inst.name)
        found.append(unique(identifier(name), taken, identifier(inst.name)))
    return tuple(found)


def identifier(name: str) -> str:
    """The nearest Python identifier: `dot.3` becomes `dot_3`."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    if word[:1].isdigit() or not word:
        word = f"v{word}"
    return f"{word}_" if keyword.iskeyword(word) else word


def unique(name: str, taken: set[str], second: str = "") -> str:
    """`name`, or `second`, or `name` with the first number that makes it new; then it is taken."""
    shown = name
    if shown in taken and second:
        shown = second
    number = 1
    while shown in taken:
        number += 1
        shown = f"{name}_{number}"
    taken.add(shown)
    return shown


# ----------------------------------------------------------------------------------------- laws


def _fault(code: str, inst: Instruction | Computation, said: str, hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def _names_resolve(computation: Computation, module: Module, target: Target) -> Iterator[NccError]:
    """Every value is made once, before it is read."""
    known: set[str] = set()
    every = {x.name for x in computation.instructions}
    for inst in computation.instructions:
        for name in inst.operands:
            if name in known:
                continue
            if name in every:
                yield _fault("NCC106", inst, f"reads {name}, which is made below it")
            else:
                hint = nearest(name, known)
                yield _fault("NCC106", inst, f"reads {name}, which no line makes", hint)
        if inst.name in known:
            yield _fault("NCC106", inst, f"{inst.name} is made a second time")
        known.add(inst.name)
        before = inst.get(PREDECESSORS)
        for name in before.names if isinstance(before, Called) else ():
            if name not in every:
                yield _fault("NCC106", inst, f"comes after {name}, which no line makes")
    if computation.root not in every:
        yield _fault("NCC107", computation, f"the root {computation.root} is not there")


def _parameters_are_dense(
    computation: Computation, module: Module, target: Target
) -> Iterator[NccError]:
    params = computation.params()
    for i, inst in enumerate(params):
        if inst.number != i:
            said = f"the parameters must count from 0, parameter({i}) is not there"
            if i and params[i - 1].number == inst.number:
                said = f"parameter({inst.number}) stands twice"
            yield _fault("NCC107", inst, said)
            return


def _shapes_fit(computation: Computation, module: Module, target: Target) -> Iterator[NccError]:
    known = {x.name: x.shape for x in computation.instructions}
    others = {x.name: x for x in module.computations}
    for inst in computation.instructions:
        if any(name not in known for name in inst.operands):
            continue  # names_resolve says so
        for said in complaints(inst, tuple(known[x] for x in inst.operands), others):
            code = "NCC110" if inst.opcode == "dot" and said.startswith("contracts ") else "NCC108"
            yield _fault(code, inst, f"{inst.opcode} {said}")


def _literals_fit(computation: Computation, module: Module, target: Target) -> Iterator[NccError]:
    for inst in computation.instructions:
        if inst.literal is not None and not _holds(inst.literal, inst.shape):
            yield _fault("NCC104", inst, f"the literal is not of shape {show_shape(inst.shape)}")


def _holds(literal: Literal | TupleLiteral, shape: Shape) -> bool:
    if isinstance(literal, TupleLiteral):
        return (
            isinstance(shape, TupleShape)
            and len(shape.parts) == len(literal.parts)
            and all(map(_holds, literal.parts, shape.parts))
        )
    return isinstance(shape, ArrayShape) and (literal.dtype, literal.shape) == (
        shape.dtype,
        shape.dims,
    )


def _layouts_are_permutations(
    computation: Computation, module: Module, target: Target
) -> Iterator[NccError]:
    for inst in computation.instructions:
        for leaf in leaves(inst.shape):
            if not leaf.layout:
                continue
            order = leaf.layout.minor_to_major
            rank = len(leaf.dims)
            if sorted(order) != list(range(rank)):
                shown = show_layout(leaf.layout)
                said = f"the layout {shown} is no order of {rank} dimensions"
                yield _fault("NCC109", inst, said)


def _types_are_known(
    computation: Computation, module: Module, target: Target
) -> Iterator[NccError]:
    for inst in computation.instructions:
        for leaf in leaves(inst.shape):
            if leaf.dtype not in TYPES:
                said = f"HLO has no element type {leaf.dtype}"
                yield _fault("NCC105", inst, said, nearest(leaf.dtype, TYPES))


def _computations_resolve(module: Module, target: Target) -> Iterator[NccError]:
    """Names are unique, calls find what they call, and nothing calls itself."""
    known: dict[str, Computation] = {}
    for computation in module.computations:
        if computation.name in known:
            said = f"the computation {computation.name} stands twice"
            yield _fault("NCC107", computation, said)
            return
        known[computation.name] = computation
    if module.entry not in known:
        yield NccError("NCC107", f"the entry {module.entry} is not there")
    calls: dict[str, list[str]] = {}
    for computation in module.computations:
        for inst in computation.instructions:
            for name in called(inst):
                if name not in known:
                    hint = nearest(name, known)
                    yield _fault("NCC117", inst, f"calls {name}, which is not there", hint)
                    return
                calls.setdefault(computation.name, []).append(name)
    if loop := _loop(calls):
        said = f"{loop} calls itself, directly or through others"
        yield _fault("NCC117", known[loop], said)


def _loop(calls: dict[str, list[str]]) -> str:
    """A computation that reaches itself, or nothing. No recursion: chains may be long."""
    done: set[str] = set()
    for start in calls:
        path: list[str] = [start]
        todo = [iter(calls[start])]
        active = {start}
        while todo:
            name = next(todo[-1], "")
            if not name:
                todo.pop()
                last = path.pop()
                active.discard(last)
                done.add(last)
            elif name in active:
                return name
            elif name not in done:
                path.append(name)
                active.add(name)
                todo.append(iter(calls.get(name, ())))
    return ""


def _entry_layout_fits(module: Module, target: Target) -> Iterator[NccError]:
    layout = module.layout()
    if not layout:
        return
    main = module.main()
    params = main.params()
    if len(layout.params) != len(params):
        said = f"entry_computation_layout has {len(layout.params)} parameters"
        yield _fault("NCC107", main, f"{said}, the entry {len(params)}")
        return
    for shape, inst in zip(layout.params, params, strict=True):
        if not same(shape, inst.shape):
            said = f"entry_computation_layout says {show_shape(shape, False)}"
            yield _fault("NCC107", inst, f"{said}, the entry {show_shape(inst.shape, False)}")
    result = main.returned()
    if not same(layout.result, result.shape):
        said = f"entry_computation_layout returns {show_shape(layout.result, False)}"
        yield _fault("NCC107", result, f"{said}, the entry {show_shape(result.shape, False)}")


def _computations(module: Module) -> tuple[object, ...]:
    return (module.computations, module.attributes)


LAWS: tuple[Law, ...] = (
    Law("types_are_known", _types_are_known, node=True),
    Law("names_resolve", _names_resolve, node=True),
    Law("parameters_are_dense", _parameters_are_dense, node=True),
    Law("layouts_are_permutations", _layouts_are_permutations, node=True),
    Law("literals_fit", _literals_fit, node=True),
    Law("computations_resolve", _computations_resolve, reads=_computations),
    Law("shapes_fit", _shapes_fit, node=True),
    Law("entry_layout_fits", _entry_layout_fits, reads=_computations),
)


# ---------------------------------------------------------------------------------------- facts


def _windows_are_plain(
    computation: Computation, module: Module, target: Target
) -> Iterator[NccError]:
    """Pooling windows are not dilated, and no padding reaches the window's size."""
    for inst in computation.instructions:
        if inst.opcode not in ("reduce-window", "select-and-scatter"):
            continue
        window = inst.get("window")
        if not isinstance(window, str):
            continue
        parts = {k: v for k, _, v in (word.partition("=") for word in window[1:-1].split())}
        sizes = parts.get("size", "").split("x")
        for key in ("lhs_dilate", "rhs_dilate"):
            if any(n != "1" for n in parts.get(key, "1").split("x")):
                said = f"the window of {inst.opcode} is dilated, {key}={parts[key]}"
                yield _fault("NCC118", inst, said)
        for size, pads in zip(sizes, parts.get("pad", "").split("x"), strict=False):
            for pad in pads.split("_"):
                if pad.lstrip("-").isdecimal() and size.isdecimal() and int(pad) >= int(size):
                    said = f"the window of {inst.opcode} is padded by {pad}, its size is {size}"
                    yield _fault("NCC118", inst, said)


def _nothing_is_sharded(
    computation: Computation, module: Module, target: Target
) -> Iterator[NccError]:
    for inst in computation.instructions:
        sharding = inst.get("sharding")
        if isinstance(sharding, str) and not is_whole(sharding):
            yield _fault("NCC112", inst, f"{inst.opcode} is sharded as {sharding}")


def is_whole(sharding: str) -> bool:
    """Whether every device holds all of the value, or one device does."""
    if sharding.startswith("{{"):  # one sharding for each element of a tuple
        return all(is_whole(f"{{{part}}}") for part in re.findall(r"\{([^{}]*)\}", sharding))
    inside = re.sub(r"\s*metadata=.*", "", sharding.strip("{} "))
    tiles = re.fullmatch(r"devices=\[([\d,]+)\]\S* last_tile_dim_replicate", inside)
    if tiles:  # the last number counts the devices that hold the same part
        return all(n == "1" for n in tiles[1].split(",")[:-1])
    return inside in ("replicated", "") or bool(re.fullmatch(r"maximal device=\d+", inside))


def _entry_is_descending(module: Module, target: Target) -> Iterator[NccError]:
    main = module.main()
    for inst in main.params():
        if not is_descending(inst.shape):
            said = f"the parameter is not row-major, {show_shape(inst.shape)}"
            yield _fault("NCC113", inst, said)
    layout = module.layout() or EntryLayout((), TupleShape(()))
    for shape in (*layout.params, layout.result):
        if not is_descending(shape):
            said = f"entry_computation_layout is not row-major, {show_shape(shape)}"
            yield _fault("NCC113", main, said)


def _every_array_has_a_layout(
    computation: Computation, module: Module, target: Target
) -> Iterator[NccError]:
    for inst in computation.instructions:
        for leaf in leaves(inst.shape):
            if leaf.dims and not leaf.layout and TYPES[leaf.dtype][1] != "none":
                yield _fault("NCC109", inst, f"{show_shape(inst.shape)} has no layout")


def _outputs_are_descending(module: Module, target: Target) -> Iterator[NccError]:
    root = module.main().returned()
    if not is_descending(root.shape):
        yield _fault("NCC113", root, f"the output is not row-major, {show_shape(root.shape)}")


FACTS: tuple[Law, ...] = (
    Law("windows_are_plain", _windows_are_plain, node=True),
    Law("nothing_is_sharded", _nothing_is_sharded, node=True),
    Law("entry_is_descending", _entry_is_descending, reads=_computations),
    Law("every_array_has_a_layout", _every_array_has_a_layout, node=True),
    Law("outputs_are_descending", _outputs_are_descending, reads=_computations),
)
