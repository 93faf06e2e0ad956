"""NKI's moves, products, registers, loops and meetings against definitions of their own."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from nki_ops import FLOATS, TRN2, Bench, close, covers, f64, reg, rounded

from ncc.errors import NccError
from ncc.interp.kernel import run, viewed
from ncc.ir.data import numpy_type
from ncc.ir.kernel import (
    Access,
    Buffer,
    DeviceFor,
    DeviceWhile,
    Imm,
    Kernel,
    KernelOp,
    Rows,
    Scalar,
)
from ncc.ir.kernel_ops import OPS
from ncc.target import TARGETS


def moved(view, *moves, pairs=None):
    a = view.access
    return Access(a.buffer, a.dtype, pairs or a.pairs, a.offset, moves)


# --- DMA and copies -------------------------------------------------------------------------------


@covers("dma_copy")
@pytest.mark.parametrize("seed", range(8))
def test_dma_copies_in_the_order_of_both_walks(seed):
    b = Bench(seed)
    kinds = ["float32", "bfloat16", "float16", "int32", "uint8", "float8e4"]
    from_, to = kinds[seed % 6], kinds[(seed * 5 + seed // 6) % 6]
    x = b.view("x", (6, 4, 5), from_, "hbm", low=0, high=200)
    b.view("d", (20, 6), to)
    b.op("dma_copy", {"dst": "d", "src": "x"})
    want = rounded(f64(x.values()).reshape(20, 6), to)
    np.testing.assert_array_equal(f64(b.run("d")), f64(want))


@covers("dma_copy", "tensor_copy")
@pytest.mark.parametrize("op", ["dma_copy", "tensor_copy"])
def test_equal_types_move_bits(op):
    b = Bench(0)
    nan = np.array([[0x7F800001, 0x80000000, 0xFFC00123]], np.uint32).view(np.float32)
    x = b.view("x", (1, 3), values=np.zeros((1, 3)), plain=True)
    x.flat[:] = nan.reshape(-1)
    from ncc.ir.data import Data

    x.buffer = Buffer(
        "x", "float32", (1, 3), "sbuf", "const", data=Data("float32", (1, 3), nan.tobytes())
    )
    b.view("d", (1, 3))
    b.op(op, {"dst": "d", "src": "x"})
    assert b.run("d").view(np.uint32).tolist() == nan.view(np.uint32).tolist()


@covers("dma_copy", "tensor_copy")
def test_another_dtype_reads_the_same_bytes():
    b = Bench(0)
    x = b.view("x", (4, 6), "float32", plain=True)
    low = Access("x", "uint16", ((12, 4), (2, 6)), 1)  # the upper half of each word
    d = b.view("d", (4, 6), "uint16")
    b.op("tensor_copy", {"dst": d, "src": low})
    np.testing.assert_array_equal(b.run("d"), x.values().view(np.uint16)[:, 1::2])


@covers("tensor_copy")
@pytest.mark.parametrize("engine", ["vector", "gpsimd", "scalar", "unknown"])
@pytest.mark.parametrize("seed", range(3))
def test_tensor_copy(engine, seed):
    b = Bench(seed)
    from_, to = FLOATS[seed], FLOATS[(seed + 1) % 3]
    x = b.view("x", (33, 2, 5), from_)
    b.view("d", (33, 10), to)
    n = b.view("n", (2, 3), "int32", values=np.full((2, 3), 2**24 + 1))
    b.view("m", (2, 3), "int32")
    b.op("tensor_copy", {"dst": "d", "src": "x"}, engine)
    b.op("tensor_copy", {"dst": "m", "src": n}, engine)
    found, whole = b.run("d", "m")
    np.testing.assert_array_equal(f64(found), f64(rounded(f64(x.values()).reshape(33, 10), to)))
    assert (whole == 2**24 + (engine != "scalar")).all()


@covers("dma_copy")
def test_dma_adds_where_it_reads_and_writes():
    b = Bench(2)
    x, d = b.view("x", (5, 4), "bfloat16"), b.view("d", (5, 4), "float32", "hbm")
    b.op("dma_copy", {"dst": "d", "src": "x"}, rmw="add")
    close(b.run("d"), f64(x.values()) + f64(d.values()), "float32")


@covers("dma_copy")
def test_a_start_from_memory_and_one_from_a_register():
    b = Bench(2)
    table = b.view("x", (10, 6), memory="hbm", plain=True)
    at = b.view("at", (1, 1), "int32", values=[[7]])
    b.view("d", (1, 6))
    b.view("e", (3, 6))
    one = Access("x", "float32", ((6, 1), (1, 6)), 0, (Scalar(at.access, 6, 10),))
    more = Access("x", "float32", ((6, 3), (1, 6)), 6, (Scalar(reg("r"), 6, 10),))
    b.op("register_move", {"dst": reg("r"), "src": 4})
    b.op("dma_copy", {"dst": "d", "src": one})
    b.op("dma_copy", {"dst": "e", "src": more})
    d, e = b.run("d", "e")
    np.testing.assert_array_equal(d, table.values()[7:8])
    np.testing.assert_array_equal(e, table.values()[5:8])


@covers("tensor_copy")
def test_a_start_moves_an_access_on_chip_and_a_written_one():
    b = Bench(2)
    x = b.view("x", (4, 9), plain=True)
    d = b.view("d", (4, 9), plain=True)
    b.view("v", (4, 2))
    from_ = Access("x", "float32", ((9, 4), (1, 2)), 1, (Scalar(Imm(3), 1, 9),))
    b.op("register_move", {"dst": reg("r"), "src": 3})
    from_ = Access("x", "float32", ((9, 4), (1, 2)), 1, (Scalar(reg("r"), 1, 9),))
    to = Access("d", "float32", ((9, 4), (1, 2)), 0, (Scalar(reg("r"), 2, 4),))
    b.op("tensor_copy", {"dst": to, "src": from_})
    found = b.run("d")
    want = np.array(d.values())
    want[:, 6:8] = x.values()[:, 4:6]
    np.testing.assert_array_equal(found, want)


@covers("dma_copy")
@pytest.mark.parametrize("value", [-1, 8, 100])
def test_a_start_that_is_outside_is_an_error_with_its_numbers(value):
    b = Bench(2)
    b.view("x", (8, 6), memory="hbm", plain=True)
    b.view("d", (1, 6))
    b.op("register_move", {"dst": reg("r"), "src": value})
    one = Access("x", "float32", ((6, 1), (1, 6)), 0, (Scalar(reg("r"), 6, 8),))
    b.op("dma_copy", {"dst": "d", "src": one})
    with pytest.raises(NccError, match=rf"NCC280.* index {value} leaves dimension 0 of x"):
        b.run("d")


@covers("tensor_copy")
@pytest.mark.parametrize(("value", "scale"), [(8, 1), (9, 0), (-1, 1)])
def test_a_start_on_chip_stays_inside_a_partition(value, scale):
    b = Bench(2)
    b.view("x", (4, 9), plain=True)
    b.view("d", (4, 2))
    b.op("register_move", {"dst": reg("r"), "src": value})
    from_ = Access("x", "float32", ((9, 4), (1, 2)), 0, (Scalar(reg("r"), scale, 9),))
    b.op("tensor_copy", {"dst": "d", "src": from_})
    with pytest.raises(NccError, match=rf"NCC280.* index {value} "):
        b.run("d")


@covers("dma_copy")
def test_a_start_that_is_outside_can_be_skipped():
    b = Bench(2)
    b.view("x", (8, 6), memory="hbm", plain=True)
    d = b.view("d", (1, 6))
    b.op("register_move", {"dst": reg("r"), "src": 8})
    one = Access("x", "float32", ((6, 1), (1, 6)), 0, (Scalar(reg("r"), 6, 8),))
    b.op("dma_copy", {"dst": "d", "src": one}, oob_mode="skip")
    np.testing.assert_array_equal(b.run("d"), d.values())


ROWS = [3, -1, 0, 9, 12, 3, -1000000, 11]


def gathered(b, source, dtype="float32"):
    index = b.view("index", (8, 1), "int32", values=np.array(source)[:, None])
    return Rows(index.access, 5, 12)


@covers("dma_copy")
def test_rows_are_gathered_and_those_outside_stay():
    b = Bench(2)
    table = b.view("x", (12, 5), "bfloat16", "hbm", plain=True)
    d = b.view("d", (8, 5))
    rows = gathered(b, ROWS)
    src = Access("x", "bfloat16", ((0, 8), (1, 5)), 0, (rows,))
    b.op("dma_copy", {"dst": "d", "src": src}, oob_mode="skip")
    want = np.array(d.values())
    for i, r in enumerate(ROWS):
        if 0 <= r < 12:
            want[i] = f64(table.values())[r]
    np.testing.assert_array_equal(b.run("d"), want)


@covers("dma_copy")
def test_rows_are_scattered_in_order_and_those_outside_are_dropped():
    b = Bench(2)
    table = b.view("d", (12, 5), "float32", "hbm", plain=True)
    x = b.view("x", (8, 5))
    dst = Access("d", "float32", ((0, 8), (1, 5)), 0, (gathered(b, ROWS),))
    b.op("dma_copy", {"dst": dst, "src": "x"}, oob_mode="skip")
    want = np.array(table.values())
    for i, r in enumerate(ROWS):
        if 0 <= r < 12:
            want[r] = x.values()[i]
    np.testing.assert_array_equal(b.run("d"), want)


@covers("dma_copy")
def test_both_sides_may_be_rows():
    b = Bench(2)
    table, to = (
        b.view("x", (12, 5), memory="hbm", plain=True),
        b.view("d", (12, 5), memory="hbm", plain=True),
    )
    there = [1, 2, 30, 4, 5, 6, 7, 8]
    other = b.view("other", (8, 1), "int32", values=np.array(there)[:, None])
    src = Access("x", "float32", ((0, 8), (1, 5)), 0, (gathered(b, ROWS),))
    dst = Access("d", "float32", ((0, 8), (1, 5)), 0, (Rows(other.access, 5, 12),))
    b.op("dma_copy", {"dst": dst, "src": src}, oob_mode="skip")
    want = np.array(to.values())
    for r, s in zip(there, ROWS, strict=True):
        if 0 <= r < 12 and 0 <= s < 12:
            want[r] = table.values()[s]
    np.testing.assert_array_equal(b.run("d"), want)


@covers("dma_copy")
def test_a_row_that_is_outside_is_an_error_with_its_numbers():
    b = Bench(2)
    b.view("x", (12, 5), memory="hbm", plain=True)
    b.view("d", (8, 5))
    src = Access("x", "float32", ((0, 8), (1, 5)), 0, (gathered(b, ROWS),))
    b.op("dma_copy", {"dst": "d", "src": src})
    with pytest.raises(NccError, match=r"NCC280.* row 1 has index -1, outside the 12 that x has"):
        b.run("d")


@covers("dma_copy")
def test_columns_of_gathered_rows():
    b = Bench(2)
    table = b.view("x", (12, 2, 3), memory="hbm", plain=True)
    index = b.view("index", (8, 1), "uint32", values=np.arange(8)[::-1, None])
    b.view("d", (8, 2, 2))
    src = Access("x", "float32", ((0, 8), (3, 2), (1, 2)), 1, (Rows(index.access, 6, 12),))
    b.op("dma_copy", {"dst": "d", "src": src})
    np.testing.assert_array_equal(b.run("d"), table.values()[:8][::-1, :, 1:])


@covers("dma_transpose")
@pytest.mark.parametrize(
    ("shape", "axes"), [((6, 5), (1, 0)), ((6, 2, 5), (2, 1, 0)), ((4, 2, 3, 5), (3, 1, 2, 0))]
)
@pytest.mark.parametrize("named", [False, True])
def test_dma_transpose(shape, axes, named):
    b = Bench(3)
    x = b.view("x", shape, "bfloat16", "hbm")
    b.view("d", tuple(shape[a] for a in axes), "bfloat16")
    b.op("dma_transpose", {"dst": "d", "src": "x"}, axes=axes if named else ())
    np.testing.assert_array_equal(b.run("d"), x.values().transpose(axes))


@covers("dma_transpose")
def test_dma_transpose_of_gathered_rows_reads_indices_column_by_column():
    b = Bench(3)
    table = b.view("x", (40, 3), "bfloat16", "hbm", plain=True)
    index = b.view("index", (16, 2), "uint32", low=0, high=39)
    b.view("d", (3, 32), "bfloat16")
    src = Access("x", "bfloat16", ((0, 32), (1, 3)), 0, (Rows(index.access, 3, 40),))
    b.op("dma_transpose", {"dst": "d", "src": src})
    order = index.values().T.flatten()[:32]
    np.testing.assert_array_equal(b.run("d"), table.values()[order].T)


@covers("dma_compute")
@pytest.mark.parametrize("into", [False, True])
def test_dma_compute_adds_sources(into):
    b = Bench(3)
    views = [b.view(f"x{i}", (7, 6), FLOATS[i % 3], "hbm") for i in range(4)]
    d = b.view("d", (7, 2, 3), "bfloat16")
    b.op("dma_compute", {"dst": "d"} | {f"srcs{i}": f"x{i}" for i in range(4)}, into=into)
    want = sum(f64(v.values()) for v in views)
    want = want + f64(d.values()).reshape(7, 6) if into else want
    close(b.run("d"), want, "bfloat16")


@covers("dma_compute")
@pytest.mark.parametrize("drop", [False, True])
def test_dma_compute_scatters(drop):
    b = Bench(3)
    there = [3, 9, 0, 11, 7, 1, 2, 5] if not drop else [3, 9, -1, 11, 70, 1, 2, 5]
    table, x = b.view("d", (12, 5), memory="hbm", plain=True), b.view("x", (8, 5))
    dst = Access("d", "float32", ((0, 8), (1, 5)), 0, (gathered(b, there),))
    keys = {"oob_mode": "skip"} if drop else {}
    b.op("dma_compute", {"dst": dst, "srcs0": dst, "srcs1": "x"}, **keys)
    want = f64(table.values())
    for i, r in enumerate(there):
        if 0 <= r < 12:
            want[r] += x.values()[i]
    close(b.run("d"), want, "float32")


@covers("dma_compute")
def test_dma_compute_gathers():
    b = Bench(3)
    there = [3, 9, 0, 11, 7, 1, 2, 5]
    table, d = b.view("x", (12, 5), memory="hbm", plain=True), b.view("d", (8, 5))
    src = Access("x", "float32", ((0, 8), (1, 5)), 0, (gathered(b, there),))
    b.op("dma_compute", {"dst": "d", "srcs0": src}, into=True)
    close(b.run("d"), f64(d.values()) + f64(table.values())[there], "float32")


@covers("tensor_copy_predicated")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("scalar", [False, True])
def test_tensor_copy_predicated(reverse, scalar):
    b = Bench(4)
    p = b.view("p", (6, 2, 3), "uint8", low=0, high=2)
    x, d = b.view("x", (6, 6), "bfloat16"), b.view("d", (6, 3, 2), "bfloat16")
    b.op(
        "tensor_copy_predicated",
        {"dst": "d", "src": 1.5 if scalar else "x", "predicate": "p"},
        reverse_pred=reverse,
    )
    choose = (p.values().reshape(6, 6) != 0) != reverse
    new = 1.5 if scalar else f64(x.values())
    want = np.where(choose, new, f64(d.values()).reshape(6, 6))
    np.testing.assert_array_equal(f64(b.run("d")).reshape(6, 6), want)


@covers("memset")
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, "float32"),
        (-3, "bfloat16"),
        (0.0, "uint32"),
        (7, "int8"),
        (2**31 - 1, "int32"),
        (-1, "uint16"),
        (0xFFFFFFFF, "int32"),
        (0xFFFFFFFF, "uint32"),
        (300.0, "uint8"),
    ],
)
def test_memset(value, dtype):
    b = Bench(5)
    b.view("d", (5, 2, 3), dtype)
    b.op("memset", {"dst": "d"}, value=value)
    want = {(-1, "uint16"): 0xFFFF, (0xFFFFFFFF, "int32"): -1, (300.0, "uint8"): 255}
    assert (b.run("d") == want.get((value, dtype), value)).all()


@covers("nc_stream_shuffle")
@pytest.mark.parametrize("seed", range(4))
def test_stream_shuffle(seed):
    b = Bench(seed)
    mask = [int(m) for m in b.rng.integers(0, 32, 32)]
    for i in b.rng.integers(0, 32, 5):
        mask[i] = 255
    rows = (32, 64, 96, 128)[seed]
    x, d = b.view("x", (rows, 6), "int16", low=0, high=99), b.view("d", (rows, 2, 3), "int16")
    b.op("nc_stream_shuffle", {"dst": "d", "src": "x"}, shuffle_mask=tuple(mask))
    want = np.array(d.values()).reshape(rows, 6)
    for q in range(0, rows, 32):
        for i in range(32):
            if mask[i] != 255:
                want[q + i] = x.values()[q + mask[i]]
    np.testing.assert_array_equal(b.run("d").reshape(rows, 6), want)


@covers("nc_stream_shuffle")
def test_stream_shuffle_broadcasts_one_partition_and_works_in_place():
    b = Bench(1)
    x = b.view("x", (1, 5))
    y = b.view("y", (32, 5))
    b.view("d", (32, 5))
    b.op("nc_stream_shuffle", {"dst": "d", "src": "x"}, shuffle_mask=(0,) * 32)
    turned = tuple((i + 1) % 32 for i in range(32))
    b.op("nc_stream_shuffle", {"dst": "y", "src": "y"}, shuffle_mask=turned)
    d, found = b.run("d", "y")
    np.testing.assert_array_equal(d, np.repeat(x.values(), 32, 0))
    np.testing.assert_array_equal(found, np.roll(y.values(), -1, 0))


@covers("local_gather")
@pytest.mark.parametrize(("each", "count"), [(1, -1), (4, -1), (1, 11), (8, 5), (4, 3)])
def test_local_gather(each, count):
    b = Bench(each)
    columns, taken = 2, 32 if count < 0 else count
    places = taken * each if each != 4 or count < 0 else 20  # 3 · 4 is not 20: `each` is ignored
    x = b.view("x", (48, 50), "bfloat16")
    index = b.view("i", (48, columns), "uint16", low=0, high=50 - each)
    d = b.view("d", (48, places), "bfloat16")
    b.op(
        "local_gather",
        {"dst": "d", "src_buffer": "x", "index": "i"},
        num_elem_per_idx=each,
        num_valid_indices=count,
    )
    used = each if taken * each == places else 1
    want = np.array(d.values())
    for p in range(48):
        lists = [int(index.values()[p // 16 * 16 + k % 16, k // 16]) for k in range(16 * columns)]
        for k in range(taken):
            for j in range(used):
                want[p, k * used + j] = x.values()[p, lists[k] + j]
    np.testing.assert_array_equal(b.run("d"), want)


@covers("local_gather", "nc_n_gather")
@pytest.mark.parametrize("op", ["local_gather", "nc_n_gather"])
def test_an_index_of_a_gather_that_is_outside(op):
    b = Bench(1)
    b.view("x", (16, 5))
    kind = "uint16" if op == "local_gather" else "uint32"
    b.view("i", (16, 1), kind, values=np.full((16, 1), 5))
    b.view("d", (16, 16 if op == "local_gather" else 1))
    names = ("src_buffer", "index") if op == "local_gather" else ("data", "indices")
    b.op(op, {"dst": "d", names[0]: "x", names[1]: "i"})
    with pytest.raises(NccError, match=r"NCC280.* index 5 .*5 elements"):
        b.run("d")


@covers("nc_n_gather")
def test_n_gather():
    b = Bench(1)
    x = b.view("x", (7, 3, 4), "float16")
    index = b.view("i", (7, 9), "uint32", low=0, high=11)
    b.view("d", (7, 9), "float16")
    b.op("nc_n_gather", {"dst": "d", "data": "x", "indices": "i"})
    flat = x.values().reshape(7, 12)
    want = [[flat[p, index.values()[p, k]] for k in range(9)] for p in range(7)]
    np.testing.assert_array_equal(b.run("d"), np.array(want))


# --- the tensor engine ----------------------------------------------------------------------------


@covers("nc_matmul")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8e4", "float8e5"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_products(dtype, accumulate):
    b = Bench(6)
    w, x = b.view("w", (40, 6), dtype), b.view("x", (40, 3, 5), dtype)
    d = b.view("d", (6, 15), memory="psum")
    args = {"dst": "d", "stationary": "w", "moving": "x"}
    b.op("nc_matmul", args, accumulate=accumulate, tile_position=(0, 0), tile_size=(64, 128))
    want = f64(w.values()).T @ f64(x.values()).reshape(40, 15)
    want = want + f64(d.values()) if accumulate else want
    np.testing.assert_allclose(b.run("d"), want, rtol=2e-6, atol=2e-5)


@covers("nc_matmul")
def test_a_product_is_rounded_once():
    b = Bench(6)
    b.view("w", (3, 1), "bfloat16", values=[[1], [1], [-1]])
    b.view("x", (3, 1), "bfloat16", values=[[2.0**60], [1], [2.0**60]])
    b.view("d", (1, 1), memory="psum")
    b.op("nc_matmul", {"dst": "d", "stationary": "w", "moving": "x"})
    assert b.run("d")[0, 0] == 0  # 1 is lost in float64 too, and nothing else remains
    b.fill(b.views["x"], [[2.0**40], [1], [2.0**40]])
    assert b.run("d")[0, 0] == 1  # float32 would have lost it


@covers("nc_matmul")
def test_rows_in_pairs():
    b = Bench(6)
    w, x = b.view("w", (8, 2, 6), "float8e4"), b.view("x", (8, 2, 9), "float8e4")
    b.view("d", (6, 9), memory="psum")
    args = {"dst": "d", "stationary": "w", "moving": "x"}
    b.op("nc_matmul", args, perf_mode="double_row")
    want = np.einsum("kjm,kjn->mn", f64(w.values()), f64(x.values()))
    close(b.run("d"), want, "float32")


@covers("nc_matmul", "nc_transpose")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8e4", "int32"])
@pytest.mark.parametrize("by", ["nc_matmul", "nc_transpose", "vector"])
def test_transposes_copy_bits(dtype, by):
    b = Bench(7)
    x = b.view("x", (20, 4, 3), dtype, plain=True)
    if dtype != "int32":
        nan = numpy_type(dtype).type(np.nan)
        b.fill(x, np.where(np.arange(240).reshape(20, 4, 3) % 7 == 0, nan, x.values()))
    b.view("one", (20, 20), dtype, values=np.eye(20))
    b.view("d", (12, 20), dtype, "psum" if by != "vector" else "sbuf")
    if by == "nc_matmul":
        args = {"dst": "d", "stationary": "x", "moving": "one"}
        b.op("nc_matmul", args, is_transpose=True)
    else:
        b.op("nc_transpose", {"dst": "d", "data": "x"}, "vector" if by == "vector" else "tensor")
    wanted = x.values().reshape(20, 12).T
    np.testing.assert_array_equal(f64(b.run("d")), f64(wanted))


@covers("nc_matmul")
def test_before_gen3_a_transpose_is_a_product():
    b = Bench(7)
    x = b.view("x", (4, 3), values=np.full((4, 3), np.nan))
    b.fill(x, [[1, 2, 3], [4, np.nan, 6], [7, 8, 9], [1, 1, 1]])
    b.view("one", (4, 4), values=np.eye(4))
    b.view("d", (3, 4), memory="psum")
    args = {"dst": "d", "stationary": "x", "moving": "one"}
    b.op("nc_matmul", args, is_transpose=True)
    found = b.run("d", target=TARGETS["trn1"])
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()


@covers("nc_transpose")
def test_eight_bit_elements_leave_the_array_as_sixteen_bit_ones():
    b = Bench(7)
    x = b.view("x", (5, 4), "float8e4")
    b.view("d", (4, 5, 2), "float8e4", "psum")
    b.op("nc_transpose", {"dst": "d", "data": "x"}, "tensor")
    found = b.run("d")
    np.testing.assert_array_equal(f64(found[..., 0]), f64(x.values().T))
    assert not found[..., 1].view(np.uint8).any()


# --- registers, loops, printing -------------------------------------------------------------------


@covers("register_move", "register_load", "register_store", "register_alu")
@pytest.mark.parametrize(
    ("op", "a", "c", "want"),
    [
        ("add", 2**31 - 1, 1, -(2**31)),
        ("subtract", 3, 5, -2),
        ("multiply", 1 << 20, 1 << 13, 0),
        ("less", 3, 5, 1),
        ("maximum", 3, 5, 5),
        ("bitwise_and", 6, 3, 2),
        ("right_shift", -1, 28, 15),
        ("left_shift", 3, -1, 0),
    ],
)
def test_registers(op, a, c, want):
    b = Bench(8)
    b.view("x", (1, 1), "int32", values=[[a]])
    b.view("d", (1, 1), "int32")
    b.op("register_load", {"dst": reg("r"), "src": "x"})
    b.op("register_move", {"dst": reg("s"), "src": c})
    b.op("register_alu", {"dst": reg("r"), "a": reg("r"), "b": reg("s")}, op=op)
    b.op("register_store", {"dst": "d", "src": reg("r")})
    assert b.run("d").tolist() == [[want]]


@covers("register_store", "register_load")
def test_registers_hold_floats_and_start_at_0():
    b = Bench(8)
    b.view("x", (1, 1), "bfloat16", values=[[2.5]])
    b.view("d", (1, 1), "float32")
    b.view("e", (1, 1), "int32")
    b.op("register_load", {"dst": reg("r", "float32"), "src": "x"})
    b.op("register_store", {"dst": "d", "src": reg("r", "float32")})
    b.op("register_store", {"dst": "e", "src": reg("never")})
    d, e = b.run("d", "e")
    assert d.tolist() == [[2.5]] and e.tolist() == [[0]]


def test_a_device_loop_counts():
    b = Bench(8)
    x = b.view("x", (9, 4), memory="hbm", plain=True)
    d = b.view("d", (1, 4), values=np.zeros((1, 4)))
    b.view("t", (1, 4))
    row = Access("x", "float32", ((4, 1), (1, 4)), 0, (Scalar(reg("i"), 4, 9),))
    b.op("dma_copy", {"dst": "t", "src": row})
    b.op("tensor_tensor", {"dst": d, "data1": d, "data2": "t"}, op="add")
    b.op("register_move", {"dst": reg("n"), "src": 8})
    *turn, start = b.ops
    loop = DeviceFor("l", reg("i"), Imm(1), reg("n"), 2, tuple(turn))
    close(b.run("d", body=(start, loop)), f64(x.values())[1:8:2].sum(0), "float32")


def test_a_while_loop_turns_until_its_condition_is_0():
    b = Bench(8)
    b.view("d", (1, 1), "int32", values=[[0]])
    b.op("register_move", {"dst": reg("n"), "src": 5})
    b.op("register_move", {"dst": reg("k"), "src": 0})
    start = len(b.ops)
    b.op("register_alu", {"dst": reg("n"), "a": reg("n"), "b": 1}, op="subtract")
    b.op("register_alu", {"dst": reg("k"), "a": reg("k"), "b": reg("n")}, op="add")
    b.op("register_store", {"dst": "d", "src": reg("k")})
    loop = DeviceWhile("w", reg("n"), tuple(b.ops[start:]))
    assert b.run("d", body=(*b.ops[:start], loop)).tolist() == [[10]]


def test_a_while_loop_that_does_not_end(monkeypatch):
    from ncc.interp import kernel

    monkeypatch.setattr(kernel, "TURNS", 50)
    b = Bench(8)
    b.view("d", (1, 1), "int32")
    b.op("register_move", {"dst": reg("n"), "src": 5})
    loop = DeviceWhile("w", reg("n"), ())
    with pytest.raises(NccError, match=r"NCC281 .*w has turned 50 times"):
        b.run("d", body=(*b.ops, loop))


@covers("device_print")
def test_printing():
    b = Bench(9)
    b.view("x", (2, 2), "bfloat16", values=[[1, 2], [3, 4.5]])
    b.view("d", (1, 1))
    b.op("device_print", {"tensor": "x"}, prefix="x is")
    b.op("device_print", {"tensor": reg("r")})
    said = []
    b.run("d", say=said.append)
    assert said[0].startswith("x is [[1.") and "4.5" in said[0] and said[1] == "0"


# --- several cores, memory ------------------------------------------------------------------------


def op(name, call, args, **keys):
    return KernelOp(name, call, tuple(args.items()), tuple(sorted(keys.items())))


def tile(name, buffer="sbuf"):
    return Buffer(name, "float32", (4, 6), buffer)


def whole(name):
    return Access(name, "float32", ((6, 4), (1, 6)))


def cores(body_of, lnc=2):
    x = Buffer("x", "float32", (4, 6), "shared_hbm", "input")
    y = Buffer("y", "float32", (8, 6), "shared_hbm", "output")
    found = []
    for core in range(lnc):
        buffers = (x, y, tile("a"), tile("b"), tile("s", "shared_hbm"))
        found.append(Kernel("k", buffers, ("x",), (), tuple(body_of(core)), core))
    return found


@covers("core_barrier")
def test_what_is_written_before_a_barrier_is_read_after_it():
    def body(core):
        yield op("i0", "memset", {"dst": whole("a")}, value=float(core + 1))
        if core:
            yield op("i1", "dma_copy", {"dst": whole("s"), "src": whole("x")})
        yield op("i2", "core_barrier", {"data": whole("s")}, cores=(0, 1))
        if not core:
            yield op("i3", "dma_copy", {"dst": whole("a"), "src": whole("s")})
        half = Access("y", "float32", ((6, 4), (1, 6)), 24 * core)
        yield op("i4", "dma_copy", {"dst": half, "src": whole("a")})

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    y = run(cores(body), {"x": x}, TRN2)["y"]
    np.testing.assert_array_equal(y[:4], x)
    assert (y[4:] == 2).all()


@covers("sendrecv")
def test_cores_exchange():
    def body(core):
        yield op("i0", "memset", {"dst": whole("a")}, value=float(core + 1))
        keys = {"send_to_rank": 1 - core, "recv_from_rank": 1 - core, "pipe_id": 3}
        yield op("i1", "sendrecv", {"dst": whole("b"), "src": whole("a")}, **keys)
        yield op("i2", "sendrecv", {"dst": whole("b"), "src": whole("b")}, **keys)
        half = Access("y", "float32", ((6, 4), (1, 6)), 24 * core)
        yield op("i4", "dma_copy", {"dst": half, "src": whole("b")})
        yield op("i5", "sendrecv", {"dst": whole("b"), "src": whole("a")}, **keys)
        keys = {"dst": half, "src": whole("b")}
        if core:
            yield op("i6", "dma_copy", keys)

    y = run(cores(body), {"x": np.zeros((4, 6), np.float32)}, TRN2)["y"]
    assert (y == 1).all()


def test_a_core_that_waits_alone():
    def body(core):
        if core:
            yield op("i2", "core_barrier", {}, cores=(0, 1))

    with pytest.raises(NccError, match=r"NCC396.* core 1 wait"):
        run(cores(body), {"x": np.zeros((4, 6), np.float32)}, TRN2)


def test_one_core_passes_its_barriers_and_has_no_partner():
    def body(core):
        yield op("i2", "core_barrier", {}, cores=(0, 1))
        yield op("i1", "sendrecv", {"dst": whole("b"), "src": whole("a")}, send_to_rank=1)

    with pytest.raises(NccError, match=r"NCC396 i1: sendrecv names core 1"):
        run(cores(body, 1), {"x": np.zeros((4, 6), np.float32)}, TRN2)


def test_arguments_are_copied_and_cast():
    x = Buffer("x", "bfloat16", (2, 3), "shared_hbm", "inout")
    a = Access("x", "bfloat16", ((3, 2), (1, 3)))
    kernel = Kernel("k", (x,), ("x",), (a,), (op("i0", "memset", {"dst": a}, value=2.0),))
    given = np.full((2, 3), 1.5, np.float32)
    found = run([kernel], {"x": given}, TRN2)
    assert found["x"].dtype == ml_dtypes.bfloat16 and (f64(found["x"]) == 2).all()
    assert (given == 1.5).all()
    assert viewed(found["x"], Access("x", "bfloat16", ((3, 2), (2, 2)), 0)).shape == (2, 2)


def test_fresh_memory_is_nan_or_4():
    dtypes = ["float32", "bfloat16", "float8e4", "float8_e4m3fn", "int32", "uint8"]
    buffers = tuple(Buffer(d, d, (2, 3), "sbuf") for d in dtypes)
    results = tuple(Access(d, d, ((3, 2), (1, 3))) for d in dtypes)
    found = run([Kernel("k", buffers, (), results, ())], {}, TRN2)
    for d in dtypes:
        wide = f64(found[d])
        assert (np.isnan(wide) if "float" in d else wide == 4).all(), d


def test_overlapping_addresses_are_one_memory():
    a = Buffer("a", "float32", (4, 6), "sbuf", address=(0, 64))
    b = Buffer("b", "bfloat16", (2, 4), "sbuf", address=(2, 72))
    far = Buffer("far", "float32", (4, 6), "sbuf", address=(0, 1024))
    y = Access("b", "bfloat16", ((4, 2), (1, 4)))
    kernel = Kernel(
        "k",
        (a, b, far),
        (),
        (whole("a"), y, whole("far")),
        (
            op("i0", "memset", {"dst": whole("a")}, value=1.0),
            op("i1", "memset", {"dst": y}, value=0.0),
        ),
    )
    found = run([kernel], {}, TRN2)
    want = np.ones((4, 6), np.float32)
    want[2:, 2:4] = 0
    np.testing.assert_array_equal(found["a"], want)
    assert not f64(found["b"]).any() and np.isnan(found["far"]).all()


def test_overlaps_are_found_behind_a_longer_buffer():
    whole_, first, last = (
        Buffer(name, "float32", (4, size), "sbuf", address=(0, at))
        for name, size, at in (("a", 6, 0), ("b", 1, 4), ("c", 1, 16))
    )
    one = {n: Access(n, "float32", ((1, 4), (1, 1))) for n in "bc"}
    ops = tuple(op(f"i{n}", "memset", {"dst": one[n]}, value=2.0) for n in "bc")
    body = (op("i0", "memset", {"dst": whole("a")}, value=1.0), *ops)
    kernel = Kernel("k", (whole_, first, last), (), (whole("a"),), body)
    assert run([kernel], {}, TRN2)["a"][0].tolist() == [1, 2, 1, 1, 2, 1]


def test_a_tile_goes_after_its_last_use():
    from ncc.interp.kernel_memory import Memory

    y = Buffer("y", "float32", (4, 6), "shared_hbm", "output")
    body = (
        op("i0", "memset", {"dst": whole("a")}, value=1.0),
        op("i1", "tensor_copy", {"dst": whole("b"), "src": whole("a")}),
        op("i2", "dma_copy", {"dst": whole("y"), "src": whole("b")}),
    )
    kernel = Kernel("k", (y, tile("a"), tile("b")), (), (whole("y"),), body)
    memory = Memory(kernel, {}, {})
    held = []
    for number, _ in enumerate(body):
        for name in "aby":
            memory.of(name)
        memory.forget(number)
        held.append(sorted(memory.cells))
    assert [h.count("a") + h.count("b") for h in held] == [2, 1, 1] and "y" in held[2]


def test_an_access_that_leaves_its_buffer():
    b = Bench(0)
    b.view("d", (2, 3), plain=True)
    far = Access("d", "float32", ((3, 3), (1, 3)), 0)
    b.op("memset", {"dst": far}, value=0.0)
    with pytest.raises(NccError, match="NCC280 i0: touches elements 0 to 8 of d, which has 6"):
        b.run("d")


def test_operands_that_do_not_fit_are_said_with_their_shapes():
    b = Bench(0)
    for name, shape in (("x", (2, 3)), ("y", (2, 4)), ("d", (2, 3))):
        b.view(name, shape)
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, op="add")
    with pytest.raises(NccError, match=r"NCC282 i0: tensor_tensor .* \[2, 3\], data2 \[2, 4\]"):
        b.run("d")


def test_every_op_has_a_meaning_and_a_test():
    import nki_ops
    import test_nki_ops_arith
    import test_nki_ops_rows

    assert test_nki_ops_arith and test_nki_ops_rows
    from ncc.interp.kernel import MEANING, MEET

    assert set(MEANING) | MEET == set(OPS)
    assert set(nki_ops.COVERED) == set(OPS)
