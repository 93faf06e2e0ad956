"""Write every broadcast in one form, and fold small constant ones that are no scalar.

Before:
    func main(a: f32[2,3]) name=spread {
      z = constant splat:00000000 : f32[]
      s = broadcast z dimensions=() : f32[2,3]
      k = constant hex:0000803f00000040 : f32[2]
      t = broadcast k dimensions=(0,) : f32[2,3]
      b = maximum a s : f32[2,3]
      c = add b t : f32[2,3]
      return c
    }

After:
    func main(a: f32[2,3]) name=spread {
      z = constant splat:00000000 : f32[]
      s = broadcast_in_dim z dimensions=() : f32[2,3]
      k = constant hex:0000803f00000040 : f32[2]
      t = constant hex:0000803f0000803f0000803f000000400000004000000040 : f32[2,3]
      b = maximum a s : f32[2,3]
      c = add b t : f32[2,3]
      return c
    }

Why: HLO's broadcast and StableHLO's broadcast_in_dim say the same; below, one rule instead of two.
A scalar stays one, because an engine takes it as an immediate. A constant vector becomes the matrix
that it stands for only while that is small; a large one would cost memory that its readers, who can
repeat a row by stepping over it, do not need.
"""

from __future__ import annotations

import math

import attrs

from ncc.ir.data import Data
from ncc.ir.mhlo import Broadcast, BroadcastInDim, Constant, Func, Let, TensorType
from ncc.ir.mhlo_edit import constants_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "unify-broadcasts"
BUDGET = 64  # elements of a folded broadcast


def apply(func: Func, target: Target) -> Func:
    constants = constants_of(func)
    body: list[Let] = []
    changed = False
    for let in func.body:
        if isinstance(let.op, Broadcast):
            kind = let.types[0]
            assert isinstance(kind, TensorType)
            op = unified(let.op, constants.get(let.op.operand), kind)
            let = Let(let.names, op, let.types, let.symbol, let.origin.by(NAME))
            changed = True
        body.append(let)
    return attrs.evolve(func, body=tuple(body)) if changed else func


def unified(
    op: Broadcast, constant: Constant | None, kind: TensorType
) -> Constant | BroadcastInDim:
    if constant and constant.data.shape and math.prod(kind.shape) <= BUDGET:
        return Constant(repeated(constant.data, op.dimensions, kind.shape))
    return BroadcastInDim(op.operand, op.dimensions)


def repeated(known: Data, dims: tuple[int, ...], shape: tuple[int, ...]) -> Data:
    """The values of the broadcast. The dimensions ascend, since fold-constants."""
    import numpy as np

    sizes = [1] * len(shape)
    for i, d in enumerate(dims):
        sizes[d] = known.shape[i]
    wide = np.broadcast_to(known.array().reshape(sizes), shape)
    return Data(known.dtype, shape, wide.tobytes())


PASS = define(
    __name__,
    __doc__,
    apply,
    source="mhlo",
    gives=("no-broadcast-is-left",),
    after={"fold-constants": "it moves converts below broadcasts, and orders their dimensions"},
    real="CanonicalizeForTensorizer",
    job="F0",
    sure="confirmed",
)
