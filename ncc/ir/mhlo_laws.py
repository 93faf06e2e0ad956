"""What holds of every MHLO program, and the facts that its passes establish."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.errors import NccError
from ncc.ir.core import Law
from ncc.ir.data import DTYPES, FROM_HLO
from ncc.ir.mhlo import (
    Binary,
    Broadcast,
    BroadcastInDim,
    Constant,
    Convert,
    Copy,
    CustomCall,
    DotGeneral,
    Func,
    GetTupleElement,
    Let,
    Op,
    TensorType,
    Transpose,
    Tuple,
)
from ncc.ir.mhlo_text import head_of, operands_of, show_type
from ncc.target import Target

Type = TensorType | tuple[TensorType, ...]
FLOATS = ("bf16", "f16", "f32", "f8e4m3", "f8e4m3fn", "f8e5m2")  # what this level computes with


def nodes(func: Func) -> Iterator[Let]:
    yield from func.body


def signature(
    func: Func,
) -> tuple[
    tuple[tuple[str, str, tuple[int, ...]], ...], tuple[tuple[str, str, tuple[int, ...]], ...]
]:
    """Inputs and outputs as (name, dtype, shape)."""
    types = types_of(func)
    ins = tuple(_signed(p.name, p.type) for p in func.params)
    kinds: list[TensorType] = []
    for name in func.results:
        kind = types[name]
        kinds += [kind] if isinstance(kind, TensorType) else kind
    names = func.output_names or output_names(len(kinds))
    return ins, tuple(map(_signed, names, kinds))


def _signed(name: str, kind: TensorType) -> tuple[str, str, tuple[int, ...]]:
    return (name, FROM_HLO.get(kind.dtype, kind.dtype), kind.shape)


def output_names(count: int) -> tuple[str, ...]:
    """What the results of a program are called: `out`, or `out0`, `out1`, ..."""
    return ("out",) if count == 1 else tuple(f"out{i}" for i in range(count))


def types_of(func: Func) -> dict[str, Type]:
    """The type of every value."""
    known: dict[str, Type] = {p.name: p.type for p in func.params}
    for let in func.body:
        known.update(zip(let.names, let.types, strict=False))
    return known


# ----------------------------------------------------------------------------------- inference


def infer(op: Op, *given: Type) -> TensorType | None:
    """The result's type, or None where the op may choose it (convert, a dot's element type).

    ValueError continues the op's name into a sentence.
    """
    arrays = [x for x in given if isinstance(x, TensorType)]
    if len(arrays) != len(given):
        raise ValueError("takes arrays, was given a tuple")
    match op:
        case Binary():
            lhs, rhs = arrays
            if lhs != rhs:
                raise ValueError(f"takes two values of one type, was given {lhs} and {rhs}")
            return lhs
        case Copy():
            return arrays[0]
        case Transpose(_, permutation):
            shape = arrays[0].shape
            if sorted(permutation) != list(range(len(shape))):
                raise ValueError(f"has no permutation of {len(shape)} dimensions: {permutation}")
            return TensorType(arrays[0].dtype, tuple(shape[i] for i in permutation))
        case Constant(data):
            return TensorType(DTYPES[data.dtype][2], data.shape)
        case _:
            return None


def dot_shape(op: DotGeneral, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> tuple[int, ...]:
    """Batch dimensions, free ones of lhs, free ones of rhs; ValueError when sizes differ."""
    sides = ((lhs, op.lhs_batch, op.lhs_contract), (rhs, op.rhs_batch, op.rhs_contract))
    for shape, batch, contract in sides:
        if len({*batch, *contract}) != len(batch) + len(contract):
            raise ValueError("names a dimension twice")
        if wrong := [d for d in (*batch, *contract) if not 0 <= d < len(shape)]:
            raise ValueError(f"names dimension {wrong[0]} of {len(shape)}")
    if len(op.lhs_contract) != len(op.rhs_contract) or len(op.lhs_batch) != len(op.rhs_batch):
        raise ValueError("names more dimensions of one operand than of the other")
    for i, j in zip(op.lhs_contract, op.rhs_contract, strict=True):
        if lhs[i] != rhs[j]:
            raise ValueError(f"contracts {lhs[i]} with {rhs[j]}")
    for i, j in zip(op.lhs_batch, op.rhs_batch, strict=True):
        if lhs[i] != rhs[j]:
            raise ValueError(f"has a batch of {lhs[i]} beside one of {rhs[j]}")
    free = [n for i, n in enumerate(lhs) if i not in (*op.lhs_batch, *op.lhs_contract)]
    free += [n for i, n in enumerate(rhs) if i not in (*op.rhs_batch, *op.rhs_contract)]
    return (*(lhs[i] for i in op.lhs_batch), *free)


def complaint(let: Let, given: tuple[Type, ...]) -> str:
    """What is wrong with the type that is written for an op's result, or nothing."""
    op, kind = let.op, let.types[0]
    if isinstance(op, CustomCall):
        return aliased(op, let.types, given)
    if isinstance(op, Tuple):
        inner = tuple(x for x in given if isinstance(x, TensorType))
        return "" if inner == kind else f"gives {show_type(inner)}"
    if isinstance(op, GetTupleElement):
        (whole,) = given
        if isinstance(whole, TensorType) or not 0 <= op.index < len(whole):
            return f"has no element {op.index} in {show_type(whole)}"
        return "" if whole[op.index] == kind else f"gives {whole[op.index]}"
    if not isinstance(kind, TensorType):
        return "gives an array"
    want = infer(op, *given)
    shapes = [x.shape for x in given if isinstance(x, TensorType)]
    match op:
        case DotGeneral():
            want = TensorType(kind.dtype, dot_shape(op, *shapes))
        case Convert():
            want = TensorType(kind.dtype, shapes[0])
        case Broadcast(_, dims) | BroadcastInDim(_, dims):
            if len(dims) != len(shapes[0]) or len({*dims}) != len(dims):
                return f"maps {len(shapes[0])} dimensions to {dims}"
            for i, d in enumerate(dims):
                if not 0 <= d < len(kind.shape) or kind.shape[d] != shapes[0][i]:
                    return f"puts dimension {i} of size {shapes[0][i]} at {d} of {kind}"
            want = (
                TensorType(given[0].dtype, kind.shape) if isinstance(given[0], TensorType) else None
            )
        case _:
            pass
    return "" if want == kind else f"gives {want}"


def aliased(op: CustomCall, gives: tuple[Type, ...], given: tuple[Type, ...]) -> str:
    """What is wrong with the outputs of a kernel that are operands, or nothing: the rest of the
    kernel's types only the kernel knows."""
    if not all(isinstance(x, TensorType) for x in (*gives, *given)):
        return "takes and gives arrays"
    for output, operand in op.aliases:
        if output >= len(gives) or operand >= len(given):
            return f"has no output {output} or operand {operand} that could be one"
        if gives[output] != given[operand]:
            return f"gives operand {operand}, {given[operand]}, as output {output}"
    return ""


def _fault(code: str, let: Let, said: str) -> NccError:
    return NccError(code, said, let.origin.place(let.names[0] if let.names else ""))


# ----------------------------------------------------------------------------------------- laws


def _names_are_defined_once(func: Func, target: Target) -> Iterator[NccError]:
    known = {p.name for p in func.params}
    if len(known) < len(func.params):
        yield NccError("NCC201", "two parameters share a name")
    for let in func.body:
        if missing := [x for x in operands_of(let.op) if x not in known]:
            yield _fault("NCC201", let, f"reads {missing[0]}, which no line above defines")
        for name in let.names:
            if name in known:
                yield _fault("NCC201", let, f"{name} is defined a second time")
            known.add(name)
    if missing := [x for x in func.results if x not in known]:
        yield NccError("NCC201", f"returns {missing[0]}, which no line defines")


def _types_are_inferred(func: Func, target: Target) -> Iterator[NccError]:
    known: dict[str, Type] = {p.name: p.type for p in func.params}
    for let in func.body:
        given = [known.get(x) for x in operands_of(let.op)]
        head = head_of(let.op)
        count = max(1, len(let.types)) if isinstance(let.op, CustomCall) else 1
        if len(let.names) != count or len(let.types) != count:
            said = "one result" if count == 1 else f"{count} types"
            yield _fault("NCC202", let, f"{head} has {said}, {len(let.names)} names are written")
        elif None not in given:
            try:
                said = complaint(let, tuple(x for x in given if x is not None))
            except ValueError as refusal:
                yield _fault("NCC202", let, f"{head} {refusal}")
            else:
                if said:
                    written = ", ".join(map(show_type, let.types))
                    yield _fault("NCC202", let, f"written as {written}, but {head} {said}")
        known.update(zip(let.names, let.types, strict=False))


def _every_value_is_a_float(let: Let, func: Func, target: Target) -> Iterator[NccError]:
    for kind in let.types:
        for leaf in (kind,) if isinstance(kind, TensorType) else kind:
            if leaf.dtype not in FLOATS:
                said = f"{leaf} is not of a type that this level computes with"
                yield NccError("NCC203", said, let.origin.place(let.names[0] if let.names else ""))


def _no_tuple_is_returned(func: Func, target: Target) -> Iterator[NccError]:
    types = types_of(func)
    for name in func.results:
        if not isinstance(types.get(name), TensorType):
            yield NccError("NCC204", f"returns {name}, which is a tuple")


def _no_tuple_is_left(let: Let, func: Func, target: Target) -> Iterator[NccError]:
    if isinstance(let.op, Tuple | GetTupleElement):
        yield _fault("NCC205", let, f"{head_of(let.op)} is still there")


def _no_broadcast_is_left(let: Let, func: Func, target: Target) -> Iterator[NccError]:
    if isinstance(let.op, Broadcast):
        yield _fault("NCC206", let, "broadcast is still there; broadcast_in_dim is its one form")


def _no_constant_is_converted(func: Func, target: Target) -> Iterator[NccError]:
    constants = {let.names[0] for let in func.body if isinstance(let.op, Constant)}
    for let in func.body:
        if isinstance(let.op, Convert | Transpose) and let.op.operand in constants:
            yield _fault("NCC207", let, f"{head_of(let.op)} of a constant is still there")


def _outputs_are_named(func: Func, target: Target) -> Iterator[NccError]:
    made = {name: let for let in func.body for name in let.names}
    if len(func.output_names) != len(func.results):
        said = f"{len(func.results)} values are returned, {len(func.output_names)} are named"
        yield NccError("NCC208", said)
        return
    for name, output in zip(func.results, func.output_names, strict=True):
        let = made.get(name)
        if let is None or isinstance(let.op, Constant):
            kind = "an argument" if let is None else "a constant"
            yield NccError("NCC208", f"{output} is {name}, {kind}")
        elif let.symbol != output:
            yield _fault("NCC208", let, f"is returned as {output}, its symbol is {let.symbol!r}")


def _text(func: Func) -> tuple[object, ...]:
    """What the laws about the whole function read."""
    return (func.params, func.body, func.results)


def _outputs(func: Func) -> tuple[object, ...]:
    return (*_text(func), func.output_names)


LAWS: tuple[Law, ...] = (
    Law("names_are_defined_once", _names_are_defined_once, reads=_text),
    Law("types_are_inferred", _types_are_inferred, reads=_text),
    Law("every_value_is_a_float", _every_value_is_a_float, node=True),
)

FACTS: tuple[Law, ...] = (
    Law("no_tuple_is_returned", _no_tuple_is_returned, reads=_text),
    Law("no_tuple_is_left", _no_tuple_is_left, node=True),
    Law("no_constant_is_converted", _no_constant_is_converted, reads=_text),
    Law("no_broadcast_is_left", _no_broadcast_is_left, node=True),
    Law("outputs_are_named", _outputs_are_named, reads=_outputs),
)
