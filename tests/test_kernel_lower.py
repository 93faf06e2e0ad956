"""Kernels from hand-built ops to bytes: what the machine computes is what the interpreter says."""

from __future__ import annotations

import numpy as np
from kernel_lower_tools import Builder, agree


def matmul() -> Builder:
    b = Builder("matmul")
    lhs, rhs = b.input("lhs_t", "bfloat16", (256, 96)), b.input("rhs", "bfloat16", (256, 320))
    out = b.output("out", "float32", (96, 320))
    acc = b.psum("acc", "float32", 96, 320)
    for k in range(2):
        w, x = b.sb(f"w{k}", "bfloat16", 128, 96), b.sb(f"x{k}", "bfloat16", 128, 320)
        b.emit("dma_copy", dst=w, src=lhs[128 * k : 128 * k + 128])
        b.emit("dma_copy", dst=x, src=rhs[128 * k : 128 * k + 128])
        b.emit("nc_matmul", dst=acc, stationary=w, moving=x, accumulate=k > 0)
    res = b.sb("res", "float32", 96, 320)
    b.emit("tensor_copy", dst=res, src=acc)
    b.emit("dma_copy", dst=out, src=res)
    return b


def test_a_matmul_runs_from_bytes() -> None:
    found = agree(matmul().kernel())
    assert np.abs(found["out"]).max() > 100


def test_softmax_runs_from_bytes() -> None:
    b = Builder("softmax")
    x, y = b.input("x", "float32", (128, 96)), b.output("y", "float32", (128, 96))
    t, e = b.sb("t", "float32", 128, 96), b.sb("e", "float32", 128, 96)
    top, total, inv = (b.sb(n, "float32", 128, 1) for n in ("top", "total", "inv"))
    b.emit("dma_copy", dst=t, src=x)
    b.emit("tensor_reduce", dst=top, data=t, op="maximum", axis=(1,), negate=True)
    b.emit(
        "activation",
        dst=e,
        data=t,
        bias=top,
        op="exp",
        reduce_op="add",
        reduce_cmd="reset_reduce",
        reduce_res=total,
    )
    b.emit("reciprocal", dst=inv, data=total)
    b.emit("tensor_scalar", dst=e, data=e, operand0=inv, op0="multiply")
    b.emit("dma_copy", dst=y, src=e)
    found = agree(b.kernel(), whole=False)
    np.testing.assert_allclose(found["y"].sum(axis=1), 1.0, rtol=1e-5)
