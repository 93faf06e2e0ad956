"""NKI, ops with an accumulator: activations, reductions on the way, scans (NKI reference 7.3, 7.4).

ACT and DVE have 128 float32 accumulators each, one a partition. `idle` leaves them, `reset` loads
the identity, `reduce` folds on, `reset_reduce` folds from the identity, `load_reduce` from a seed.
`reduce_res` receives them after the instruction.
"""

from __future__ import annotations

import numpy as np

from ncc import numerics, numerics_rows
from ncc.errors import NccError
from ncc.interp.kernel_call import Call, against, alike
from ncc.interp.kernel_memory import Array
from ncc.interp.kernel_vector import alu_name, stage
from ncc.ir.kernel_selectors import ACTIVATION

IDLE, RESET, REDUCE, RESET_REDUCE, LOAD_REDUCE = [
    "idle",
    "reset",
    "reduce",
    "reset_reduce",
    "load_reduce",
]


def accumulate(
    c: Call, file: Array, op: str, values: Array, seed: Array | None = None, none: float = np.nan
) -> None:
    """Fold a row's values into its accumulator, as the command says; hand it to `reduce_res`.

    `none` is what the accumulator starts from, where that is not the identity of `op`.
    """
    rows, command = values.shape[0], c.key["reduce_cmd"]
    first = numerics_rows.IDENTITY[op] if np.isnan(none) else none
    if command in (RESET, RESET_REDUCE):
        file[:rows] = first
    elif command == LOAD_REDUCE and seed is not None:
        file[:rows] = np.broadcast_to(seed.reshape(-1), (rows,))
    if command in (REDUCE, RESET_REDUCE, LOAD_REDUCE):
        file[:rows] = numerics_rows.folded(op, values, file[:rows])
    if c.has("reduce_res"):
        out = file[:rows].reshape(rows, 1)
        c.store("reduce_res", -out if c.key.get("reduce_res_negate") else out)


def activation(c: Call) -> None:
    """f(data · scale + bias); the sum takes values before they are rounded."""
    x = c.read("data")
    y = applied(c.key["op"], x, against(x, c.scalar("scale", 1.0)), against(x, c.scalar("bias")))
    c.store("dst", y)
    accumulate(c, c.core.act, alu_name(c.key["reduce_op"] or "add"), y)


def applied(op: str, x: Array, scale: Array, bias: Array, alpha: float = 0.0) -> Array:
    """An activation function by NKI's name."""
    name = ACTIVATION.get(op)
    if name is None:
        raise NccError("NCC282", f"{op} is no activation function")
    if name == "Copy" and not (_is(scale, 1.0) and _is(bias, 0.0)):
        name = "Identity"
    return numerics.activation(name, x, scale, bias, alpha)


def _is(x: Array, value: float) -> bool:
    return not x.ndim and float(x) == value


def activate2(c: Call) -> None:
    """f((data op0 imm0) op1 imm1)."""
    x = stage(c.key["op0"] or "bypass", c.read("data"), c.scalar("imm0"), c.key["reverse0"])
    x = stage(c.key["op1"] or "bypass", x, c.scalar("imm1"), c.key["reverse1"])
    one, zero = np.ones((), np.float32), np.zeros((), np.float32)
    y = applied(c.key["op"], x, one, zero, float(np.float32(c.key["relu_param"])))
    c.store("dst", y)
    accumulate(c, c.core.act, alu_name(c.key["reduce_op"] or "add"), y)


def exponential(c: Call) -> None:
    """e to the power of (src − max_value)."""
    x = c.read("src")
    y = numerics.activation("Exp", numerics.alu("subtract", x, against(x, c.scalar("max_value"))))
    c.store("dst", y)
    accumulate(c, c.core.dve, "add", y, c.scalar("reduce_init"))


def tensor_scalar_reduce(c: Call) -> None:
    """data op0 operand0, and its fold a row."""
    x = c.read("data")
    y = stage(c.key["op0"], x, c.scalar("operand0"), c.key["reverse0"])
    c.store("dst", y)
    op = alu_name(c.key["reduce_op"] or "add")
    accumulate(c, c.core.dve, op, y, c.scalar("reduce_init"))


def tensor_scalar_cumulative(c: Call) -> None:
    """r = (src op0 imm0) op1 r at every element; dst receives each r."""
    x = c.rows("src")
    t = stage(c.key["op0"], x, c.scalar("imm0"), False)
    op, rows, file = alu_name(c.key["op1"]), x.shape[0], c.core.dve
    command = c.key["reduce_cmd"]
    if command in (RESET, RESET_REDUCE):
        file[:rows] = numerics_rows.IDENTITY[op]
    elif command == LOAD_REDUCE:
        file[:rows] = np.broadcast_to(c.scalar("imm1").reshape(-1), (rows,))
    steps = np.concatenate([file[:rows, None], t.reshape(rows, -1)], axis=1)
    walk = numerics_rows.running(op, steps, swapped=True)
    file[:rows] = walk[:, -1]
    c.store("dst", walk[:, 1:])


def tensor_tensor_scan(c: Call) -> None:
    """r = (data0 op0 r) op1 data1 at every element; the carried r is float32."""
    a, b = alike(c.rows("data0"), c.rows("data1"))
    first = np.broadcast_to(c.scalar("initial").reshape(-1), (a.shape[0],))
    op0, op1 = alu_name(c.key["op0"]), alu_name(c.key["op1"])
    swap0, swap1 = not c.key["reverse0"], bool(c.key["reverse1"])
    c.store("dst", numerics_rows.scan(op0, op1, a, b, first, swap0, swap1))


def select_reduce(c: Call) -> None:
    """on_true where the predicate is not zero, else on_false; the largest a row."""
    choose = c.rows("predicate") != 0
    choose = ~choose if c.key["reverse_pred"] else choose
    x = numerics.widen(c.rows("on_true"))
    y = np.where(choose, x, against(x, c.scalar("on_false")))
    c.store("dst", y)
    accumulate(c, c.core.dve, alu_name(c.key["reduce_op"]), y, none=numerics.FP32_MIN)


def range_select(c: Call) -> None:
    """on_true where the element's place in its row lies within two bounds, else −FLT_MAX."""
    x = numerics.widen(c.rows("on_true_tile"))
    start = int(c.key["range_start"])
    place = np.arange(start, start + x.shape[1], dtype=np.int64).astype(np.float32)[None, :]
    keep = np.ones(x.shape, np.bool_)
    for i in range(2):
        keep &= numerics.alu(alu_name(c.key[f"comp_op{i}"]), place, c.scalar(f"bound{i}")) != 0
    y = np.where(keep, x, np.float32(numerics.FP32_MIN))
    c.store("dst", y)
    accumulate(c, c.core.dve, alu_name(c.key["reduce_op"]), y, none=numerics.FP32_MIN)


MEANING = {
    "activation": activation,
    "activate2": activate2,
    "exponential": exponential,
    "tensor_scalar_reduce": tensor_scalar_reduce,
    "tensor_scalar_cumulative": tensor_scalar_cumulative,
    "tensor_tensor_scan": tensor_tensor_scan,
    "select_reduce": select_reduce,
    "range_select": range_select,
}
