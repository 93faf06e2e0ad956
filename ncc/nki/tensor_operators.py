"""What Python may and may not do with a tensor: its values are known only to the machine."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NoReturn

from ncc.nki.tensor_base import TensorBase
from ncc.nki.trace import current, wrong_type

# NumPy's functions on two operands that a kernel may write with an operator: `np.float32(2) * t`
UNARY = ("negative", "invert", "abs")
INFIX = frozenset(
    {"add", "subtract", "multiply", "divide", "remainder", "power", "less", "greater"}
    | {"less_equal", "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor"}
    | {"left_shift", "right_shift"}
)
TRUTH = "values exist only while the machine runs: use nl.where, a predicate or a device loop"


class Operators(TensorBase):
    """`==` is identity, as Python gives it; arithmetic makes a new tile through `nki.language`."""

    __slots__ = ()

    def _python(self, what: str) -> NoReturn:
        raise wrong_type("NCC317", f"{what} of the tensor {self.shown} is not known here", TRUTH)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        """An operator between a NumPy number and the tensor; NCC317 for NumPy's other functions."""
        name: str = ufunc.__name__
        if method == "__call__" and name in ("equal", "not_equal"):
            return (inputs[0] is inputs[1]) == (name == "equal")
        if method == "__call__" and not more and name in INFIX:
            return self._compute("mod" if name == "remainder" else name, *inputs)
        self._numpy(name)

    def __array_function__(self, function: Any, *ignored: Any) -> NoReturn:
        self._numpy(function.__name__)

    def _numpy(self, name: str) -> NoReturn:
        said = f"numpy.{name} computes at once, and the values of the tensor {self.shown}"
        hint = "use the functions of nki.language, or the calls of nki.isa"
        raise wrong_type("NCC317", f"{said} exist only while the machine runs", hint)

    def __bool__(self) -> bool:
        self._python("the truth value")

    def __int__(self) -> int:
        self._python("the integer value")

    def __index__(self) -> int:
        self._python("the integer value")

    def __float__(self) -> float:
        self._python("the value")

    def __contains__(self, value: object) -> bool:
        self._python("the content")

    def __array__(self, *args: Any, **more: Any) -> Any:
        self._python("the content")

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        whole: Any = self
        return (whole[i] for i in range(self.shape[0]))

    def __setitem__(self, index: Any, value: Any) -> None:
        if TensorBase.assign is not None and current("an assignment").old:
            TensorBase.assign(self, index, value)
            return
        if isinstance(value, TensorBase) and value.storage is self.storage:
            return  # `t[i] op= x` whose operator wrote in place
        hint = "nisa.tensor_copy(dst=t[...], src=value), or dst= of the call that computes it"
        said = f"{self.shown}[...] = value is no instruction"
        raise wrong_type("NCC324", said, hint)

    def _compute(self, name: str, a: Any, b: Any = None) -> Any:
        if TensorBase.operate is not None and current(f"nl.{name}").old:
            return TensorBase.operate(name, a, b)
        function = getattr(import_module("ncc.nki.language"), name)
        return function(a) if name in UNARY else function(a, b)

    def __add__(self, other: Any) -> Any:
        return self._compute("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._compute("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._compute("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._compute("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._compute("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._compute("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._compute("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._compute("divide", other, self)

    def _older(self, name: str, a: Any, b: Any = None) -> Any:
        """An operator that only tiles of the older API have."""
        if TensorBase.operate is None or not current(f"nl.{name}").old:
            return NotImplemented
        return TensorBase.operate(name, a, b)

    def __floordiv__(self, other: Any) -> Any:
        return self._older("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._older("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._compute("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._compute("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._compute("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._compute("power", other, self)

    def __abs__(self) -> Any:
        return self._compute("abs", self)

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return self._compute("negative", self)

    def __invert__(self) -> Any:
        return self._compute("invert", self)

    def __and__(self, other: Any) -> Any:
        return self._compute("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._compute("bitwise_and", other, self)

    def __or__(self, other: Any) -> Any:
        return self._compute("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._compute("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self._compute("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._compute("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self._compute("left_shift", self, other)

    def __rshift__(self, other: Any) -> Any:
        return self._compute("right_shift", self, other)

    def __lt__(self, other: Any) -> Any:
        return self._compute("less", self, other)

    def __le__(self, other: Any) -> Any:
        return self._compute("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._compute("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._compute("greater_equal", self, other)
