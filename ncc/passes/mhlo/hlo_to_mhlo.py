"""Turn the entry computation into one MHLO function, with everything that it calls inlined.

Before:
    HloModule layer

    %relu.1 (x.2: f32[4,3]) -> f32[4,3] {
      %x.2 = f32[4,3]{1,0} parameter(0)
      %zero.3 = f32[] constant(0)
      %zeros.4 = f32[4,3]{1,0} broadcast(%zero.3), dimensions={}
      ROOT %max.5 = f32[4,3]{1,0} maximum(%x.2, %zeros.4)
    }

    ENTRY %main.9 (a.6: bf16[4,8], b.7: bf16[8,3]) -> f32[4,3] {
      %a.6 = bf16[4,8]{1,0} parameter(0)
      %b.7 = bf16[8,3]{1,0} parameter(1)
      %dot.8 = f32[4,3]{1,0} dot(%a.6, %b.7), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT %call.9 = f32[4,3]{1,0} call(%dot.8), to_apply=%relu.1
    }

After:
    func main(a: bf16[4,8], b: bf16[8,3]) name=layer {
      dot_8 = dot_general a b lhs_contract=(1,) rhs_contract=(0,) : f32[4,3]  # hlo-to-mhlo:13
      zero_3 = constant splat:00000000 : f32[]  # hlo-to-mhlo:5
      zeros_4 = broadcast zero_3 dimensions=() : f32[4,3]  # hlo-to-mhlo:6
      max_5 = maximum dot_8 zeros_4 : f32[4,3]  # hlo-to-mhlo:7
      return max_5
    }

Why: a call is a way to share text; the machine runs one straight program. Layouts are settled, so
they are left behind here. The comments say which line of Before each op comes from. Each opcode is
a row of a table; one without a row is refused by name and line, here and nowhere later, because
nothing below could say which line of the source is at fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ncc.errors import NccError, listed, nearest
from ncc.ir import attention
from ncc.ir.core import Origin
from ncc.ir.custom_call import Asked, asked
from ncc.ir.data import FROM_HLO, Data
from ncc.ir.hlo import (
    ArrayShape,
    Computation,
    Instruction,
    Literal,
    Module,
    Shape,
    called,
    leaves,
    same,
)
from ncc.ir.hlo_laws import identifier, input_names, unique
from ncc.ir.hlo_text import show_shape
from ncc.ir.kernel_request import Request
from ncc.ir.mhlo import (
    Binary,
    Broadcast,
    Constant,
    Convert,
    Copy,
    CustomCall,
    DotGeneral,
    Func,
    GetTupleElement,
    Let,
    Op,
    Param,
    TensorType,
    Transpose,
    Tuple,
)
from ncc.ir.mhlo_laws import FLOATS, output_names
from ncc.passes.base import define
from ncc.target import Target

NAME = "hlo-to-mhlo"
DEEPEST = 200  # calls in calls


class Value(NamedTuple):
    """An HLO value as MHLO knows it: the name of an array or of a tuple of all its leaves."""

    name: str
    shape: Shape


class Emitter:
    """The growing body, and the names that are taken."""

    def __init__(self, module: Module, taken: set[str], target: Target) -> None:
        self.target = target
        self.others = {x.name: x for x in module.computations}
        self.taken = taken
        self.body: list[Let] = []
        self.made: dict[str, Op] = {}
        self.shapes: dict[str, Shape] = {}

    def emit(self, inst: Instruction, op: Op, shape: Shape, hint: str = "") -> Value:
        """Add one op; its name is the instruction's, made an identifier and unique."""
        name = unique(identifier(hint or inst.name), self.taken)
        types = tuple(type_of(leaf) for leaf in leaves(shape))
        kind = types[0] if isinstance(shape, ArrayShape) else types
        self.body.append(Let((name,), op, (kind,), "", origin_of(inst)))
        self.made[name], self.shapes[name] = op, shape
        return Value(name, shape)

    def emit_call(self, inst: Instruction, op: CustomCall, gives: tuple[TensorType, ...]) -> Value:
        """Add a call of a kernel; several results are a tuple of them."""
        if isinstance(inst.shape, ArrayShape):
            return self.emit(inst, op, inst.shape)
        base = identifier(inst.name)
        names = tuple(unique(f"{base}_{i}", self.taken) for i in range(len(gives)))
        self.body.append(Let(names, op, gives, "", origin_of(inst)))
        return self.emit(inst, Tuple(names), inst.shape)

    def known(self, name: str) -> bool:
        """Whether the value is a constant, perhaps through transposes, converts and broadcasts."""
        match self.made.get(name):
            case Constant():
                return True
            case Transpose(operand) | Convert(operand) | Broadcast(operand) | Copy(operand):
                return self.known(operand)
            case _:
                return False


def origin_of(inst: Instruction) -> Origin:
    return inst.origin.by(NAME)


def type_of(shape: ArrayShape) -> TensorType:
    return TensorType(shape.dtype, shape.dims)


def apply(module: Module, target: Target) -> Func:
    main = module.main()
    check_all(module)
    names = input_names(module)
    outputs = output_names(len(leaves(main.returned().shape)))
    if not outputs:
        said = "the program returns an empty tuple: there is nothing to compute"
        raise refuse("NCC119", main.returned(), said)
    emitter = Emitter(module, {*names, *outputs}, target)
    params: list[Param] = []
    args: list[Value] = []
    for name, inst in zip(names, main.params(), strict=True):
        if not isinstance(inst.shape, ArrayShape):
            said = f"the entry's parameter is a tuple, {show_shape(inst.shape, False)}"
            raise refuse("NCC119", inst, said, "pass its elements as parameters")
        params.append(Param(name, type_of(inst.shape), origin_of(inst)))
        args.append(Value(name, inst.shape))
        emitter.shapes[name] = inst.shape
    result = inline(main, args, emitter, 0)
    return Func(module.name, tuple(params), tuple(emitter.body), (result.name,))


def refuse(code: str, inst: Instruction, said: str, hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def check_all(module: Module) -> None:
    """Every opcode and type of the entry, and of what it calls, is one that is compiled."""
    reached, todo = [module.main()], [module.main()]
    others = {x.name: x for x in module.computations}
    while todo:
        for inst in todo.pop().instructions:
            for name in called(inst) if inst.opcode in ("call", "fusion") else ():
                if all(x is not others[name] for x in reached):
                    reached.append(others[name])
                    todo.append(others[name])
    every = [inst for computation in reached for inst in computation.instructions]
    for inst in every:  # first: what is wrong with an integer product is not its type alone
        if inst.opcode == "dot" and (leaf := leaves(inst.shape)[0]).dtype[0] in "su":
            said = f"dot of {leaf.dtype}: integer products are not exact on the tensor engine"
            raise refuse("NCC115", inst, said, "convert the operands to f32 first")
    for inst in every:
        check(inst)


def check(inst: Instruction) -> None:
    if inst.opcode not in (*ROWS, "parameter", "call", "fusion"):
        said = f"{inst.opcode} is not compiled; other opcodes come later"
        raise refuse("NCC114", inst, said, nearest(inst.opcode, ROWS, 0.8))
    for leaf in leaves(inst.shape):
        if leaf.dtype not in FLOATS:
            said = f"{leaf.dtype} is not compiled; the machine computes with {listed(FLOATS)}"
            raise refuse("NCC116", inst, said)
        if leaf.dynamic or -1 in leaf.dims:
            shown = show_shape(leaf, False)
            raise refuse("NCC119", inst, f"{shown} has a dynamic dimension; they come later")


def inline(computation: Computation, args: list[Value], emitter: Emitter, depth: int) -> Value:
    """The value that the computation returns for `args`."""
    if depth > DEEPEST:
        place = computation.origin.place(computation.name)
        raise NccError("NCC119", f"calls nest more than {DEEPEST} deep", place)
    env: dict[str, Value] = {}
    for inst in computation.instructions:
        given = [env[name] for name in inst.operands]
        if inst.opcode == "parameter":
            env[inst.name] = args[inst.number]
        elif inst.opcode in ("call", "fusion"):
            callee = emitter.others[called(inst)[0]]
            env[inst.name] = inline(callee, given, emitter, depth + 1)
        else:
            env[inst.name] = ROWS[inst.opcode](inst, given, emitter)
    return env[computation.root]


# ------------------------------------------------------------------------------- one row an opcode


def constant(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    if not isinstance(inst.literal, Literal):
        raise refuse("NCC119", inst, "a constant tuple is not compiled")
    dtype = FROM_HLO[inst.literal.dtype]
    op = Constant(Data(dtype, inst.literal.shape, inst.literal.raw))
    return emitter.emit(inst, op, inst.shape)


def dot(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    lhs, rhs = given
    types = [leaf.dtype for side in given for leaf in leaves(side.shape)]
    if types[0] != types[1] and "f32" in types:
        said = f"dot of {types[0]} with {types[1]}: f32 is multiplied with f32 only"
        raise refuse("NCC116", inst, said, "convert one of them first")
    for key in ("algorithm", "sparsity"):
        if inst.get(key) is not None:
            said = f"dot with {key}={inst.get(key)} is not compiled"
            raise refuse("NCC114", inst, said)
    op = DotGeneral(
        lhs.name,
        rhs.name,
        inst.ints("lhs_contracting_dims"),
        inst.ints("rhs_contracting_dims"),
        inst.ints("lhs_batch_dims"),
        inst.ints("rhs_batch_dims"),
    )
    return emitter.emit(inst, op, inst.shape)


def binary(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    return emitter.emit(inst, Binary(inst.opcode, given[0].name, given[1].name), inst.shape)


def convert(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    return emitter.emit(inst, Convert(given[0].name), inst.shape)


def copy(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    if not isinstance(inst.shape, ArrayShape):
        return given[0]
    return emitter.emit(inst, Copy(given[0].name), inst.shape)


def broadcast(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    dims = inst.ints("dimensions")
    if list(dims) != sorted(dims) and not emitter.known(given[0].name):
        said = "broadcast that reorders dimensions of a computed value is not compiled"
        raise refuse("NCC114", inst, said)
    return spread(inst, given[0], dims, emitter)


def spread(inst: Instruction, value: Value, dims: tuple[int, ...], emitter: Emitter) -> Value:
    """A broadcast; one of a broadcast is one, and one that repeats nothing is its operand."""
    if same(value.shape, inst.shape) and list(dims) == list(range(len(dims))):
        return value
    made = emitter.made.get(value.name)
    if isinstance(made, Broadcast):
        inner = Value(made.operand, emitter.shapes[made.operand])
        return spread(inst, inner, tuple(dims[d] for d in made.dimensions), emitter)
    return emitter.emit(inst, Broadcast(value.name, dims), inst.shape)


def transpose(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    order = inst.ints("dimensions")
    return emitter.emit(inst, Transpose(given[0].name, order), inst.shape)


def reshape(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    """A reshape that only adds or drops dimensions of size 1 is a broadcast, or a shorter one."""
    assert isinstance(inst.shape, ArrayShape)
    old, new = leaves(given[0].shape)[0].dims, inst.shape.dims
    if old == new:
        return given[0]
    made = emitter.made.get(given[0].name)
    if isinstance(made, Constant):
        data = Data(made.data.dtype, new, made.data.raw)
        return emitter.emit(inst, Constant(data), inst.shape)
    kept = [i for i, n in enumerate(old) if n != 1]
    where = [i for i, n in enumerate(new) if n != 1]
    if [old[i] for i in kept] == [new[i] for i in where]:
        if len(kept) == len(old):
            return spread(inst, given[0], tuple(where), emitter)
        if isinstance(made, Broadcast) and all(old[d] != 1 for d in made.dimensions):
            moved = tuple(where[kept.index(d)] for d in made.dimensions)
            inner = Value(made.operand, emitter.shapes[made.operand])
            return spread(inst, inner, moved, emitter)
    shown = f"from {show_shape(given[0].shape, False)} to {show_shape(inst.shape, False)}"
    said = f"reshape {shown} is not compiled; other opcodes come later"
    raise refuse("NCC114", inst, said)


def custom_call(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    """A kernel by its name: traced for what it takes, checked against what it is to give."""
    if any(not isinstance(value.shape, ArrayShape) for value in given):
        raise refuse("NCC119", inst, "custom-call takes arrays, was given a tuple")
    types = [type_of(leaf) for value in given for leaf in leaves(value.shape)]
    gives = tuple(type_of(leaf) for leaf in leaves(inst.shape))
    try:
        call, given = plain_call(inst, asked(inst), given, emitter)
        types = types[: len(given)]
        takes = tuple((FROM_HLO[kind.dtype], kind.shape or (1,)) for kind in types)
        request = Request(call.target, takes, call.config)
        typed = [(FROM_HLO[kind.dtype], kind.shape) for kind in gives]
        request.check(emitter.target, typed, call.aliases)
    except ValueError as said:
        raise refuse("NCC124", inst, f"custom-call {said}") from None
    except NccError as fault:
        raise refuse(fault.code, inst, fault.said, fault.hint) from fault
    names = tuple(as_array(inst, value, emitter) for value in given)
    op = CustomCall(names, call.target, call.config, call.aliases)
    return emitter.emit_call(inst, op, gives)


def plain_call(
    inst: Instruction, call: Asked, given: list[Value], emitter: Emitter
) -> tuple[Asked, list[Value]]:
    """An attention call as the call of its kernel, whose scale is a value known here."""
    if call.target not in attention.TARGETS:
        return call, given
    shapes, gives = [leaves(value.shape)[0].dims for value in given], leaves(inst.shape)[0].dims
    if said := attention.complaint(call.target, shapes, gives):
        raise ValueError(said)
    known = emitter.made.get(given[3].name) if given[3:] else None
    if given[3:] and not isinstance(known, Constant):
        raise ValueError(f"of {call.target} has a scale that is no constant")
    scale = float(known.data.array()) if isinstance(known, Constant) else 1.0
    return attention.plain_call(call, gives, scale), given[:3]


def as_array(inst: Instruction, value: Value, emitter: Emitter) -> str:
    """The value; a scalar as an array of one element, which is what a kernel can be given."""
    (leaf,) = leaves(value.shape)
    if leaf.dims:
        return value.name
    one = ArrayShape(leaf.dtype, (1,))
    return emitter.emit(inst, Broadcast(value.name, ()), one, f"{value.name}_array").name


def make_tuple(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    """A tuple holds its leaves; a tuple inside it is taken apart."""
    names: list[str] = []
    for value in given:
        names += parts(inst, value, emitter)
    return emitter.emit(inst, Tuple(tuple(names)), inst.shape)


def parts(inst: Instruction, value: Value, emitter: Emitter) -> list[str]:
    if isinstance(value.shape, ArrayShape):
        return [value.name]
    return [
        emitter.emit(inst, GetTupleElement(value.name, i), leaf, f"{value.name}_{i}").name
        for i, leaf in enumerate(leaves(value.shape))
    ]


def element(inst: Instruction, given: list[Value], emitter: Emitter) -> Value:
    whole = given[0].shape
    assert not isinstance(whole, ArrayShape)
    index = int(str(inst.get("index")))
    first = sum(len(leaves(part)) for part in whole.parts[:index])
    if isinstance(inst.shape, ArrayShape):
        return emitter.emit(inst, GetTupleElement(given[0].name, first), inst.shape)
    inner = [
        emitter.emit(inst, GetTupleElement(given[0].name, first + i), leaf).name
        for i, leaf in enumerate(leaves(inst.shape))
    ]
    return emitter.emit(inst, Tuple(tuple(inner)), inst.shape)


ROWS: dict[str, Callable[[Instruction, list[Value], Emitter], Value]] = {
    "constant": constant,
    "dot": dot,
    "add": binary,
    "maximum": binary,
    "convert": convert,
    "copy": copy,
    "broadcast": broadcast,
    "transpose": transpose,
    "reshape": reshape,
    "tuple": make_tuple,
    "get-tuple-element": element,
    "custom-call": custom_call,
}

PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    target="mhlo",
    needs=("nothing-is-sharded", "entry-is-descending", "outputs-are-descending"),
    after={"descending-root": "layouts end here, so the outputs must have theirs"},
    real="HloToMhlo",
    job="F0",
    sure="confirmed",
)
