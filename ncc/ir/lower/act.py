"""Kernels' activations, and everything that folds into an accumulator on its way.

An accumulator is a hidden tile of its engine: an instruction that folds into it cannot be cut in
pieces without another rounding, so an operand with more pairs than its record has is put into a
row first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncc.ir.bir import Ap, Imm, Operand
from ncc.ir.kernel_selectors import ACTIVATION
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.magnitude import COMPARES
from ncc.ir.lower.vector import alu, one_in_psum, scalars, step
from ncc.ir.walks import collapsed

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

COMMANDS = {
    "idle": "Idle",
    "reset": "Zero",
    "reduce": "AddAccumulate",
    "reset_reduce": "ZeroAccumulate",
    "load_reduce": "LoadAccumulate",
}
FOLDS = ("reduce", "reset_reduce", "load_reduce")
IDENTITY = {
    "add": 0.0,
    "subtract": 0.0,
    "mult": 1.0,
    "max": float("-inf"),
    "min": float("inf"),
}
COUNT = 0xFFFF


def whole(m: Lowering, walk: Walk, free: int) -> Walk:
    """An operand that one record can hold: itself, or its elements in a row."""
    pairs = collapsed(walk.free)
    fits = len(pairs) <= free and all(abs(s) <= 0x7FFF and n <= COUNT for s, n in pairs)
    if fits:
        return walk
    return m.compact(walk)


def result(m: Lowering, dst: Walk, free: int) -> Walk:
    """The same for a destination; `finish` copies."""
    pairs = collapsed(dst.free)
    if len(pairs) > free or any(abs(s) > 0x7FFF or n > COUNT for s, n in pairs):
        return m.temp(dst)
    if dst.memory == "PSUM" and not m.in_bank(_part(dst), dst, 0):
        return m.temp(dst)
    return m.rounded(dst)


def _part(dst: Walk) -> Any:
    from ncc.ir.kernel_walks import Part

    return Part(tuple((num, (step,)) for step, num in collapsed(dst.free)), (0,))


def finish(m: Lowering, out: Walk, dst: Walk) -> None:
    if out.loc != dst.loc:
        from ncc.ir.lower.move import copied

        copied(m, dst, out)


# --- activations ----------------------------------------------------------------------------------


def function(m: Lowering, op: str) -> str:
    name = ACTIVATION.get(op)
    if name is None:
        raise m.refuse(f"evaluates {op}, which is no activation function")
    return name


def activate(
    m: Lowering,
    dst: Walk,
    data: Walk,
    func: str,
    scale: Operand,
    bias: Operand | None,
    command: str = "idle",
    alpha: float = 0.0,
) -> None:
    """func(scale · data + bias); `command` folds the values into ACT's accumulator."""
    plain = isinstance(scale, Imm) and scale.value == 1.0
    nothing = bias is None or (isinstance(bias, Imm) and bias.value == 0.0)
    if func == "Copy" and not (plain and nothing):
        func = "Identity"
    keys: dict[str, Any] = {"func": func, "acc": COMMANDS[command], "alpha": alpha}
    more: list[Operand] = []
    if not nothing:
        assert bias is not None
        if m.target.level < 30 and isinstance(bias, Imm):
            bias = constant(m, data.rows, float(bias.value), m.stands(data))
        more.append(bias)
    if isinstance(scale, Imm):
        keys["scale"] = float(scale.value)
    else:
        if not more:
            more.append(Imm(0.0))
        more.append(scale)
    if command not in FOLDS:
        m.elementwise("Activation", "Activation", dst, (data,), more, **keys)
        return
    out = result(m, dst, 3)
    source = whole(m, data, 3)
    pieces = m.accesses((source, out), 3)
    if len(pieces) > 1:  # counts that share no factor
        source = m.compact(source)
        out = m.temp(dst) if out is dst else out
        pieces = m.accesses((source, out), 3)
    for n, (x, y) in enumerate(pieces):
        if n:
            keys["acc"] = "AddAccumulate"
        m.emit("Activation", "Activation", (y,), (x, *more), **keys)
    finish(m, out, dst)


def constant(m: Lowering, rows: int, value: float, first: int = 0) -> Ap:
    """A column of one number."""
    from ncc.ir.lower.move import bits_of

    held = m.tile(first + rows, (1,), "float32").partition(first, rows)
    m.memset(held, bits_of(value, "float32"))
    return held.ap()


def activation(m: Lowering) -> None:
    data, dst = m.walk("data"), m.walk("dst")
    func = function(m, m.key("op"))
    scale = m.scalar("scale", dst.rows) or Imm(1.0)
    command = str(m.key("reduce_cmd"))
    if command in FOLDS and (m.key("reduce_op") or "add") != "add":
        raise m.refuse(f"folds with {m.key('reduce_op')}, and ACT only adds")
    activate(m, dst, data, func, scale, m.scalar("bias", dst.rows), command)
    read_act(m)


def read_act(m: Lowering) -> None:
    out = m.maybe("reduce_res")
    if out is not None:
        held = m.rounded(out)
        m.emit("ActivationReadAccumulator", "Activation", (held.ap(),))
        m.finish(held, out)


def read_dve(m: Lowering, negated: bool = False) -> None:
    out = m.maybe("reduce_res")
    if out is not None:
        held = m.rounded(out)
        m.emit("DveReadAccumulator", "DVE", (held.ap(),), negated=negated)
        m.finish(held, out)


def activate2(m: Lowering) -> None:
    """f((data op0 imm0) op1 imm1): a scale and a bias where they say the same."""
    data, dst = m.walk("data"), m.walk("dst")
    func = function(m, m.key("op"))
    command, fold = str(m.key("reduce_cmd")), m.key("reduce_op") or "add"
    stages = [x for x in (step(m, 0, dst.rows), step(m, 1, dst.rows)) if x[0] != "bypass"]
    scale, bias = Imm(1.0), None
    done = True
    for n, (op, scalar, swap) in enumerate(stages):
        if op == "mult" and n == 0:
            scale = scalar
        elif op == "add" and bias is None:
            bias = scalar
        elif op == "subtract" and bias is None and not swap and isinstance(scalar, Imm):
            bias = Imm(-float(scalar.value))
        else:
            done = False
    source = data
    if not done:
        source = m.temp(dst, "float32")
        scalars(m, "DVE", source, data, stages)
        scale, bias = Imm(1.0), None
    alpha = float(m.key("relu_param"))
    if command not in FOLDS or fold == "add":
        activate(m, dst, source, func, scale, bias, command, alpha)
        read_act(m)
        return
    if fold in COMPARES:
        said = f"folds with {fold}, which no accumulator does"
        raise m.refuse(said, "fold the magnitudes (nl.abs) with maximum or minimum")
    held = m.temp(dst, "float32")
    activate(m, held, source, func, scale, bias, alpha=alpha)
    fold_into(m, dst, held, "add", Imm(0.0), alu(m, fold), command, None)
    read_dve(m)


def exponential(m: Lowering) -> None:
    """e to the power of (src − max): ACT's function; DVE folds."""
    src, dst = m.walk("src"), m.walk("dst")
    top = m.scalar("max_value", dst.rows)
    if isinstance(top, Ap):
        held = m.tile(m.stands(src) + dst.rows, (1,), "float32").partition(m.stands(src), dst.rows)
        m.emit("TensorScalar", "DVE", (held.ap(),), (top,), op0="mult", const0=-1.0)
        bias: Operand | None = held.ap()
    else:
        bias = Imm(-float(top.value)) if isinstance(top, Imm) and top.value else None
    command = str(m.key("reduce_cmd"))
    if command == "idle" and m.op.arg("reduce_res") is None:
        activate(m, dst, src, "Exp", Imm(1.0), bias)
        return
    held = m.temp(dst, "float32")
    activate(m, held, src, "Exp", Imm(1.0), bias)
    fold_into(m, dst, held, "add", Imm(0.0), "add", command, m.scalar("reduce_init", dst.rows))
    read_dve(m)


# --- folds of DVE ---------------------------------------------------------------------------------


def set_dve(m: Lowering, rows: int, value: float | Operand, first: int = 0) -> None:
    """The accumulators of DVE := a number, or a column of numbers."""
    column = constant(m, rows, 0.0, first)
    m.emit(
        "TensorScalarCache",
        "DVE",
        (column,),
        (column, Imm(0.0), Imm(value) if isinstance(value, float | int) else value),
        op0="add",
        op1="add",
        mode="Reduce",
        acc="LoadAccumulate",
    )


def fold_into(
    m: Lowering,
    dst: Walk,
    data: Walk,
    op0: str,
    scalar: Operand,
    fold: str,
    command: str,
    seed: Operand | None,
    mode: str = "Reduce",
) -> None:
    """dst = data op0 scalar, folded with `fold` into DVE's accumulator."""
    if fold not in IDENTITY:
        raise m.refuse(f"folds with {fold}, which DVE's accumulator has not")
    if command not in FOLDS:
        scalars(m, "DVE", dst, data, [(op0, scalar, False)])
        if command == "reset":
            set_dve(m, dst.rows, IDENTITY[fold], m.stands(data))
        return
    out, source = result(m, dst, 3), whole(m, data, 3)
    pieces = m.accesses((source, out), 3)
    if len(pieces) > 1:
        source = m.compact(source)
        out = m.temp(dst) if out is dst else out
        pieces = m.accesses((source, out), 3)
    more = (scalar, seed or Imm(0.0)) if command == "load_reduce" else (scalar,)
    keys: dict[str, Any] = {"op0": op0, "op1": fold, "mode": mode, "acc": COMMANDS[command]}
    for n, (x, y) in enumerate(pieces):
        if n:
            keys["acc"], more = "AddAccumulate", (scalar,)
        m.emit("TensorScalarCache", "DVE", (y,), (x, *more), **keys)
    finish(m, out, dst)


def floats(m: Lowering, walk: Walk) -> Walk:
    """A source of a float type: the records that fold take no integers."""
    if "float" in walk.dtype:
        return walk
    held = m.temp(walk, "float32")
    m.copy(held, walk)
    return held


def float_result(m: Lowering, dst: Walk) -> Walk:
    return dst if "float" in dst.dtype else m.temp(dst, "float32")


def tensor_scalar_reduce(m: Lowering) -> None:
    data, dst = floats(m, m.walk("data")), m.walk("dst")
    op0, scalar, swap = step(m, 0, dst.rows)
    if op0 == "bypass":
        op0, scalar = "add", Imm(0.0)
    fold, command = alu(m, m.key("reduce_op") or "add"), str(m.key("reduce_cmd"))
    if swap:  # no such record: the stage first, then the fold
        held = m.temp(dst, "float32")
        scalars(m, "DVE", held, data, [(op0, scalar, swap)])
        data, op0, scalar = held, "add", Imm(0.0)
    out = float_result(m, dst)
    fold_into(m, out, data, op0, scalar, fold, command, m.scalar("reduce_init", dst.rows))
    finish(m, out, dst)
    read_dve(m, bool(m.key("reduce_res_negate")))


def tensor_scalar_cumulative(m: Lowering) -> None:
    data, dst = floats(m, m.walk("src")), m.walk("dst")
    op0, scalar, _ = step(m, 0, dst.rows)
    if op0 == "bypass":
        op0, scalar = "add", Imm(0.0)
    out = float_result(m, dst)
    command = str(m.key("reduce_cmd"))
    if command not in FOLDS:
        raise m.refuse(f"runs with reduce_cmd {command}, which folds nothing")
    seed = m.scalar("imm1", dst.rows)
    if m.target.level < 30:
        from ncc.ir.lower.first import cumulative

        stage = (op0, scalar, False)
        cumulative(m, dst, data, stage, alu(m, m.key("op1")), command, seed)
        return
    fold_into(m, out, data, op0, scalar, alu(m, m.key("op1")), command, seed, "Cumulative")
    finish(m, out, dst)


def tensor_tensor_scan(m: Lowering) -> None:
    a, b, dst = m.walk("data0"), m.walk("data1"), m.walk("dst")
    a, b = one_in_psum(m, a, b)
    first = m.scalar("initial", dst.rows)
    assert first is not None
    if m.target.level < 30:
        from ncc.ir.lower.first import scan

        scan(m, dst, a, b, first)
        return
    out = result(m, dst, 2)
    a, b = whole(m, a, 2), whole(m, b, 2)
    pieces = m.accesses((a, b, out), 2)
    if len(pieces) > 1:
        a, b = m.compact(a), m.compact(b)
        out = m.temp(dst) if out is dst else out
        pieces = m.accesses((a, b, out), 2)
    if len(pieces) > 1:
        raise m.refuse(f"scans {dst.count} elements a partition; a record counts to {COUNT}")
    for x, y, z in pieces:
        m.emit(
            "TensorScalarPtr",
            "DVE",
            (z,),
            (x, y, first),
            op0=alu(m, m.key("op0")),
            op1=alu(m, m.key("op1")),
            reverse0=bool(m.key("reverse0")),
            reverse1=bool(m.key("reverse1")),
            is_tensor_tensor_scan=True,
        )
    finish(m, out, dst)


LOWER = {
    "activation": activation,
    "activate2": activate2,
    "exponential": exponential,
    "tensor_scalar_reduce": tensor_scalar_reduce,
    "tensor_scalar_cumulative": tensor_scalar_cumulative,
    "tensor_tensor_scan": tensor_tensor_scan,
}
