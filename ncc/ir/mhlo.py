"""MHLO: one function in SSA form, typed tensor ops in a single block.

A plain `dot` is a `dot_general` without batch dimensions. Types name dtypes as HLO does.
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import Data


@attrs.frozen
class TensorType:
    """Element type (HLO's name) and shape; prints as `bf16[128,512]`."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@attrs.frozen
class Op:
    """An op reads values by name; its class is its kind; fields other than `Ref` are attributes."""


Ref = str  # the name of a value


@attrs.frozen
class DotGeneral(Op):
    """Contract `lhs` with `rhs`; the result has batch, lhs free, then rhs free dimensions."""

    lhs: Ref
    rhs: Ref
    lhs_contract: tuple[int, ...] = ()
    rhs_contract: tuple[int, ...] = ()
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()


@attrs.frozen
class Binary(Op):
    """Combine two values of one shape element by element; `by` is `add` or `maximum`."""

    by: str
    lhs: Ref
    rhs: Ref


@attrs.frozen
class Convert(Op):
    """The same values in another element type, rounded to nearest even."""

    operand: Ref


@attrs.frozen
class Copy(Op):
    """The same value under a name of its own, in another buffer."""

    operand: Ref


@attrs.frozen
class Transpose(Op):
    """Result dimension i is operand dimension `permutation[i]`."""

    operand: Ref
    permutation: tuple[int, ...]


@attrs.frozen
class Constant(Op):
    """Known values."""

    data: Data


@attrs.frozen
class Broadcast(Op):
    """HLO's broadcast: operand dimension i becomes result dimension `dimensions[i]`."""

    operand: Ref
    dimensions: tuple[int, ...]


@attrs.frozen
class BroadcastInDim(Op):
    """The same, as the one form that is left after unify-broadcasts."""

    operand: Ref
    dimensions: tuple[int, ...]


@attrs.frozen
class Tuple(Op):
    """Several values as one."""

    operands: tuple[Ref, ...]


@attrs.frozen
class GetTupleElement(Op):
    """One value of a tuple."""

    operand: Ref
    index: int


@attrs.frozen
class CustomCall(Op):
    """A kernel by its name, with the values of its other parameters; it may give several arrays.

    `aliases` are (output, operand): the kernel writes that operand, and the output is what it is
    afterwards.
    """

    operands: tuple[Ref, ...]
    target: str
    config: tuple[tuple[str, Any], ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class Let:
    """One op with its results' names and types; `symbol` names the output that a result is."""

    names: tuple[str, ...]
    op: Op
    types: tuple[TensorType | tuple[TensorType, ...], ...]
    symbol: str = ""
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class Param:
    name: str
    type: TensorType
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class Func:
    """The module: its only function is `main`. `name` is the program's name (the HLO module's)."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Let, ...]
    results: tuple[Ref, ...]
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    slow_ins: tuple[int, ...] = ()
    slow_outs: tuple[int, ...] = ()
