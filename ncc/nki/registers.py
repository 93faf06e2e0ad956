"""Registers as a kernel holds them: values that only the machine knows, while the kernel runs.

A `VirtualRegister` is written and read by the register calls of `nki.isa`. An `NkiScalar` is a
number: `+`, `-` and `*` on it are recorded and give a new one. Both serve as an index, as a
`scalar_offset` and as a bound of a device loop. Python cannot look into either.
"""

from __future__ import annotations

from operator import index as as_int
from typing import Any, NoReturn, cast

from ncc.ir.kernel import Imm, Reg
from ncc.nki.trace import current, wrong_type

Form = tuple[tuple[tuple[str, int], ...], int]  # Σ factor · register + constant

IF = "guard with a device loop: nl.while_loop(register, body), or nl.fori_loop(0, register, body)"
COMPUTE = "load the value with nisa.scalar_load: an NkiScalar takes +, - and *"
SLICE = (
    "slice with nl.ds(register, size) in a range whose step is the size; to compute, take an"
    " NkiScalar: the index of nl.fori_loop, or nisa.scalar_load"
)
FIXED = (
    "a bound of a Python loop or a shape is known while tracing; nl.fori_loop counts to a register"
)


class Held:
    """What both have in common: the machine's register, and what Python may not ask."""

    __slots__ = ("frozen", "reg")

    def __init__(self, reg: Reg, frozen: bool = False) -> None:
        self.reg, self.frozen = reg, frozen

    @property
    def dtype(self) -> Any:
        from ncc.nki.dtypes import dtype_of

        return dtype_of(self.reg.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reg.name})"

    def _refuse(self, what: str, hint: str) -> NoReturn:
        kind = type(self).__name__
        raise wrong_type("NCC364", f"{what} of a {kind} is known only to the machine", hint)

    def __bool__(self) -> bool:
        self._refuse("the truth value", IF)

    def __int__(self) -> int:
        self._refuse("the value", FIXED)

    def __index__(self) -> int:
        self._refuse("the value", FIXED)

    def __float__(self) -> float:
        self._refuse("the value", FIXED)

    def __iter__(self) -> NoReturn:
        self._refuse("the content", IF)

    def __eq__(self, other: object) -> bool:
        if other is None or other is self:
            return other is self
        if isinstance(other, int | float | Held):
            self._refuse("a comparison", IF)
        return False

    __hash__ = object.__hash__

    def _compared(self, other: Any) -> NoReturn:
        self._refuse("a comparison", IF)

    __lt__ = __le__ = __gt__ = __ge__ = _compared

    def _computed(self, other: Any = None) -> NoReturn:
        self._refuse("a quotient, remainder, power or bit pattern", COMPUTE)

    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _computed
    __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _computed
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __invert__ = __abs__ = _computed


class VirtualRegister(Held):
    """A register of the machine; `frozen` is the index of a device loop, which only that writes."""

    __slots__ = ()

    def _sum(self, other: Any = None) -> NoReturn:
        self._refuse("a sum, difference or product", SLICE)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __pos__ = _sum


class NkiScalar(Held):
    """A whole number that the machine computes; 32 bits, which wrap around.

    `form` remembers how it was made of other numbers, so that the size of `t[i * 4 : i * 4 + 4]` is
    known while tracing.
    """

    __slots__ = ("form",)

    def __init__(self, reg: Reg, frozen: bool = False, form: Form | None = None) -> None:
        super().__init__(reg, frozen)
        self.form: Form = form or (((reg.name, 1),), 0)

    def distance(self, start: object) -> int | None:
        """How far this is from `start`; None when only the machine knows."""
        form = _form(start)
        return None if form is None or form[0] != self.form[0] else self.form[1] - form[1]

    def _alu(self, op: str, a: Any, b: Any, form: Form | None) -> NkiScalar:
        trace = current("arithmetic on an NkiScalar")
        made = trace.register(self.reg.dtype)
        trace.emit("register_alu", {"dst": made, "a": _operand(a), "b": _operand(b)}, {"op": op})
        return NkiScalar(made, form=form)

    def __add__(self, other: Any) -> NkiScalar:
        theirs = _whole(other)
        return self._alu("add", self, other, _sum(self.form, theirs, 1))

    __radd__ = __add__

    def __sub__(self, other: Any) -> NkiScalar:
        return self._alu("subtract", self, other, _sum(self.form, _whole(other), -1))

    def __rsub__(self, other: Any) -> NkiScalar:
        return self._alu("subtract", other, self, _sum(_whole(other), self.form, -1))

    def __mul__(self, other: Any) -> NkiScalar:
        factors, number = _whole(other)
        form = _sum(((), 0), self.form, number) if not factors else None
        return self._alu("multiply", self, other, form)

    __rmul__ = __mul__

    def __neg__(self) -> NkiScalar:
        return 0 - self

    def __pos__(self) -> NkiScalar:
        return self


def _sum(a: Form, b: Form, times: int) -> Form:
    found = dict(a[0])
    for name, factor in b[0]:
        found[name] = found.get(name, 0) + factor * times
    kept = tuple(sorted((name, factor) for name, factor in found.items() if factor))
    return kept, a[1] + b[1] * times


def _form(value: object) -> Form | None:
    if isinstance(value, NkiScalar):
        return value.form
    if isinstance(value, Held):
        return ((value.reg.name, 1),), 0
    try:
        return (), as_int(cast(Any, value))
    except TypeError:
        return None


def _whole(value: object) -> Form:
    """The form of an operand; NCC364 for what is neither a whole number nor a register."""
    form = _form(value)
    if form is None:
        said = f"an NkiScalar computes with whole numbers, not with {value!r:.60}"
        raise wrong_type("NCC364", said, "an int, another NkiScalar, or nisa.scalar_load of a tile")
    return form


def _operand(value: Any) -> Reg | Imm:
    return value.reg if isinstance(value, Held) else Imm(as_int(value))
