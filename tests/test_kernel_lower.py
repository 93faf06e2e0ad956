"""Kernels from hand-built ops to bytes: what the machine computes is what the interpreter says."""

from __future__ import annotations

import attrs
import numpy as np
from kernel_lower_tools import Builder, T, agree

from ncc.ir.kernel import DeviceWhile, Reg
from ncc.ir.lower.kernel import lower
from ncc.target import TARGETS


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


def io(b: Builder, name: str, dtype: str, rows: int, *free: int) -> T:
    """A tile that holds an input."""
    x, t = b.input(name, dtype, (rows, *free)), b.sb(f"{name}_t", dtype, rows, *free)
    b.emit("dma_copy", dst=t, src=x)
    return t


def out(b: Builder, name: str, t: T) -> None:
    y = b.output(name, t.dtype or t.buffer.dtype, t.shape)
    b.emit("dma_copy", dst=y, src=t)


def test_steps_and_counts_beyond_a_record() -> None:
    """A row of 70,000 bytes, steps of 40,000 elements, five dimensions."""
    b = Builder()
    t = io(b, "x", "uint8", 4, 70000)
    u = b.sb("u", "uint8", 4, 70000)
    b.emit("tensor_scalar", dst=u, data=t, op0="add", operand0=1.0)
    far = t.ap(((70000, 4), (40000, 2), (3, 5)), 7)
    v = b.sb("v", "uint8", 4, 10)
    b.emit("tensor_copy", "vector", dst=v, src=far)
    deep = t.ap(((70000, 4), (30000, 2), (7000, 2), (1000, 3), (100, 2), (3, 5)), 2)
    w, r = b.sb("w", "float32", 4, 120), b.sb("r", "float32", 4, 1)
    b.emit(
        "activation",
        dst=w,
        data=deep,
        op="copy",
        reduce_op="add",
        reduce_cmd="reset_reduce",
        reduce_res=r,
    )
    m = b.sb("m", "uint8", 4, 4)
    b.emit("tensor_reduce", dst=m, data=deep, op="maximum", axis=(3, 4, 5))
    for name, x in (("a", u), ("b", v), ("c", w), ("d", r), ("e", m)):
        out(b, name, x)
    agree(b.kernel())


def test_more_elements_than_a_counter_holds() -> None:
    b = Builder()
    t = io(b, "x", "uint8", 3, 66000)
    top, total = b.sb("top", "float32", 3, 1), b.sb("total", "float32", 3, 1)
    b.emit("tensor_reduce", dst=top, data=t, op="maximum", axis=(1,))
    b.emit("tensor_reduce", dst=total, data=t, op="add", axis=(1,))
    out(b, "a", top)
    out(b, "b", total)
    agree(b.kernel())


def test_narrow_psum_tiles_that_have_addresses() -> None:
    """Four 16-bit tiles in one bank: wide they do not fit there, and are placed anew."""
    b = Builder()
    t = io(b, "x", "bfloat16", 128, 128)
    for i in range(8):
        p = b.psum(f"p{i}", "bfloat16", 128, 128, at=(0, 256 * (i % 8)))
        b.emit("nc_transpose", "tensor", dst=p, data=t)
        u = b.sb(f"u{i}", "bfloat16", 128, 128)
        b.emit("tensor_copy", dst=u, src=p)
        out(b, f"y{i}", u)
    agree(b.kernel())


def test_wide_psum_tiles_keep_their_addresses() -> None:
    b = Builder()
    w, x = io(b, "w", "bfloat16", 128, 128), io(b, "x", "bfloat16", 128, 512)
    sums = [b.psum(f"p{i}", "float32", 128, 512, at=(0, 2048 * i)) for i in range(8)]
    for k in range(2):
        for p in sums:
            b.emit("nc_matmul", dst=p, stationary=w, moving=x, accumulate=k > 0)
    for i, p in enumerate(sums):
        u = b.sb(f"u{i}", "float32", 128, 512)
        b.emit("tensor_copy", dst=u, src=p)
        out(b, f"y{i}", u)
    agree(b.kernel())


def test_sums_side_by_side_in_one_bank_begin_one_after_another() -> None:
    """The second round of a quarter begins while the others are still needed."""
    b = Builder()
    w, x = io(b, "w", "bfloat16", 128, 64), io(b, "x", "bfloat16", 128, 128)
    p = b.psum("p", "float32", 64, 512)
    u = b.sb("u", "float32", 64, 512)
    for k in range(4):
        b.emit("nc_matmul", dst=p[:, 128 * k : 128 * k + 128], stationary=w, moving=x)
    for k in (2, 0):
        part = p[:, 128 * k : 128 * k + 128]
        b.emit("tensor_copy", dst=u[:, 128 * k : 128 * k + 128], src=part)
        b.emit("nc_matmul", dst=part, stationary=w, moving=x, accumulate=False)
        b.emit("nc_matmul", dst=part, stationary=w, moving=x, accumulate=True)
    v = b.sb("v", "float32", 64, 512)
    b.emit("memset", dst=u[:, 128:256], value=0)
    b.emit("memset", dst=u[:, 384:512], value=0)
    b.emit("tensor_copy", dst=v, src=p)
    out(b, "a", u)
    out(b, "b", v)
    agree(b.kernel())


def test_a_kernel_that_fills_sbuf_works_in_place() -> None:
    b = Builder()
    t = io(b, "x", "float32", 128, 26000)
    b.emit("tensor_scalar", dst=t, data=t, op0="multiply", operand0=2.0)
    b.emit("tensor_scalar", dst=t, data=t, op0="add", operand0=1.0)
    out(b, "y", t)
    agree(b.kernel())


def test_order_that_was_asked_for_survives_cutting() -> None:
    b = Builder()
    t = io(b, "x", "float32", 128, 64)
    u = b.sb("u", "float32", 128, 64)
    turned = u.ap(((64, 128), (1, 8), (8, 8)))
    first = b.emit("dma_copy", dst=turned, src=t)
    b.emit("memset", "unknown", (first,), dst=b.sb("z", "float32", 128, 4), value=0)
    out(b, "y", u)
    agree(b.kernel())


def test_a_loop_until_a_register_is_0_is_one_region() -> None:
    b = Builder()
    io(b, "x", "float32", 128, 64)
    kernel = b.kernel()
    loop = DeviceWhile("w", Reg("r"), kernel.body)
    nothing = lower(attrs.evolve(kernel, body=(loop,)), TARGETS["trn2"])
    assert [x.opcode for x in nothing.blocks[0].insts] == ["Exit"]  # nobody wrote the register
    b.emit("register_move", "sync", dst=Reg("r"), src=1)
    made = lower(attrs.evolve(b.kernel(), body=(b.body[-1], loop)), TARGETS["trn2"])
    assert [x.opcode for x in made.blocks[0].insts] == ["RegisterMove", "DoWhile", "Exit"]


def test_a_draw_that_nobody_reads_still_turns_the_generator() -> None:
    b = Builder()
    t, u = b.sb("t", "uint32", 128, 8), b.sb("u", "uint32", 128, 8)
    b.emit("rng", dst=t)
    b.emit("rng", dst=u)
    out(b, "y", u)
    agree(b.kernel())
