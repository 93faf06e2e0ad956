"""The older API: own kernels, simulated and from their bytes, against numpy; and what it refuses."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ncc.nki.old.compiler as ncc_compiler
import ncc.nki.old.isa as nisa
import ncc.nki.old.language as nl
from ncc import pack
from ncc.errors import NccError
from ncc.interp.kernel import run as interpreted
from ncc.nki import old as nki
from ncc.nki.old.index import arange
from ncc.nki.old.kernel import OldKernel
from ncc.nki.old.masks import regions
from ncc.nki.old.promote import promoted
from ncc.rules import named

BF16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(11)
INT = np.int32


def f(*shape: int) -> Any:
    return RNG.random(shape).astype(np.float32)


def close(got: Any, want: Any, tol: float = 1e-5) -> None:
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape
    scale = max(1e-9, float(np.abs(want).max()))
    assert float(np.abs(got - want).max()) <= tol * scale


def both(kernel: Any, *args: Any, want: Any, tol: float = 1e-5, out: int | None = None) -> None:
    """A kernel simulated and compiled; `out` is the argument that it writes."""
    made = kernel if isinstance(kernel, OldKernel) else nki.jit(kernel)
    for run in (functools.partial(nki.simulate_kernel, made), made):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        got = run(*given)
        if out is not None:
            got = given[out]
        if not isinstance(want, tuple):
            close(got, want, tol)
            continue
        for one, other in zip(got, want, strict=True):
            close(one, other, tol)


def elementwise(body: Any, *arrays: Any) -> Any:
    """A kernel that stores what `body` makes of the loaded arrays."""

    def kernel(*args: Any) -> Any:
        made = body(*[nl.load(a) for a in args])
        out = nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm)
        nl.store(out, made)
        return out

    return nki.simulate_kernel(nki.jit(kernel), *arrays)


# --- loads, stores, indices -----------------------------------------------------------------------


def test_index_tensors_and_masks_at_tails() -> None:
    def kernel(a: Any) -> Any:
        rows, columns = a.shape
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(64)[:, None], nl.arange(96)[None, :]
        for r in nl.affine_range(-(-rows // 64)):
            for c in nl.affine_range(-(-columns // 96)):
                keep = (r * 64 + ip < rows) & (c * 96 + jf < columns)
                t = nl.load(a[r * 64 + ip, c * 96 + jf], mask=keep)
                nl.store(out[r * 64 + ip, c * 96 + jf], nl.exp(t, mask=keep), mask=keep)
        return out

    a = f(100, 200)
    both(kernel, a, want=np.exp(a))


def test_slices_behind_the_end_wait_for_a_mask() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        ip = nl.arange(64)[:, None]
        for r in nl.affine_range(2):
            t = nl.load(a[nl.ds(r * 64, 64), 0:50], mask=r * 64 + ip < 90)
            nl.store(out[r * 64 : (r + 1) * 64, :], t * 2, mask=r * 64 + ip < 90)
        return out

    a = f(90, 50)
    both(kernel, a, want=2 * a)


def test_mgrid_by_name_by_position_and_whole() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        grid = nl.mgrid[0:32, 0:3, 0:20]
        p, x, y = grid
        t = nl.load(a[grid])
        u = nl.ndarray(t.shape, t.dtype)
        u[grid.p, 2 - x, y] = nl.copy(t[p, grid.x, 19 - grid.y])
        nl.store(out[grid], u)
        return out

    a = f(32, 3, 20)
    both(kernel, a, want=a[:, ::-1, ::-1])


def test_a_window_that_steps_and_folds_in_the_middle() -> None:
    def kernel(a: Any) -> Any:
        c, h, w = a.shape
        out = nl.ndarray((c, h // 2, w // 3), a.dtype, buffer=nl.shared_hbm)
        i = nl.mgrid[0:c, 0 : h // 2, 0:2, 0 : w // 3, 0:3]
        t = nl.load(a)
        nl.store(out, nl.max(t[i.p, 2 * i.x + i.y, 3 * i.z + i.w], axis=[2, 4]))
        return out

    a = f(24, 8, 9)
    both(kernel, a, want=a.reshape(24, 4, 2, 3, 3).max((2, 4)))


def test_a_mask_that_cuts_windows_differently() -> None:
    def kernel(a: Any) -> Any:
        c, n = a.shape
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        p, i, k = nl.mgrid[0:c, 0:n, 0:3]
        t = nl.load(a)
        inside = (i + k - 1 >= 0) & (i + k - 1 < n)
        nl.store(out, nl.sum(t[p, i + k - 1], axis=2, mask=inside))
        return out

    a = f(16, 10)
    wide = np.pad(a, ((0, 0), (1, 1)))
    both(kernel, a, want=wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:])


def test_rectangles_of_a_mask() -> None:
    p, q = arange(8)[:, None], arange(6)[None, :]
    assert regions(None, (8, 6), "") is None
    assert regions(p >= 0, (8, 6), "") is None
    assert regions(p < 0, (8, 6), "") == []
    assert regions((p < 5) & (q >= 2), (8, 6), "") == [((0, 5), (2, 6))]
    assert regions((p == 3) & (q != 2), (8, 6), "") == [((3, 4), (0, 2)), ((3, 4), (3, 6))]
    boxes = regions(p >= q, (8, 6), "")
    assert boxes is not None
    seen = np.zeros((8, 6), int)
    for (a, b), (c, d) in boxes:
        seen[a:b, c:d] += 1
    assert (seen == np.tri(8, 6, dtype=int)).all()


def test_affine_arithmetic_is_numpys() -> None:
    i, j = nl.arange(4)[:, None], nl.arange(2, 12, 5)[None, :]
    a, b = np.arange(4)[:, None], np.arange(2, 12, 5)[None, :]
    for mine, theirs in (
        (3 * i - j * 2 + 7, 3 * a - b * 2 + 7),
        (5 - i, 5 - a),
        (-(i + j), -(a + b)),
        ((8 * i + 4) // 4, (8 * a + 4) // 4),
        ((4 * i) % 4, (4 * a) % 4),
        (i * nl.arange(1)[None, :], a * 0),
    ):
        assert (mine.values() == theirs).all()
    with pytest.raises(NccError, match="NCC371"):
        _ = i // 3


def test_rows_and_starts_at_run_time() -> None:
    def kernel(a: Any, rows: Any, start: Any) -> Any:
        out = nl.ndarray((48, 20), a.dtype, buffer=nl.shared_hbm)
        one = nl.ndarray((1, 20), a.dtype, buffer=nl.shared_hbm)
        jf = nl.arange(20)[None, :]
        at = nl.load(rows[nl.arange(48)[:, None]])
        nl.store(out, nl.load(a[at[nl.arange(48)[:, None], 0], jf + 3]))
        s = nl.load(start)
        nl.store(one, nl.load(a[s[0, 1], jf]))
        return out, one

    a, rows, start = f(70, 30), RNG.permutation(70)[:48].astype(INT), np.array([[9, 33]], INT)
    both(kernel, a, rows, start, want=(a[rows, 3:23], a[33:34, :20]))


def test_rows_are_scattered_and_added() -> None:
    def kernel(a: Any, rows: Any) -> Any:
        out = nl.ndarray((40, 12), a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.zeros((40, 12), a.dtype))
        jf = nl.arange(12)[None, :]
        at, t = nl.load(rows), nl.load(a)
        nl.store(out[at, jf], t)
        nl.atomic_rmw(out[at, jf], value=t, op=np.add)
        return out

    a, rows = f(16, 12), RNG.permutation(40)[:16].astype(INT)[:, None]
    want = np.zeros((40, 12))
    want[rows[:, 0]] = 2 * a
    both(kernel, a, rows, want=want)


def test_views_on_chip_that_begin_at_run_time() -> None:
    def kernel(a: Any, at: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(40)[:, None], nl.arange(6)[None, :]
        t, s = nl.load(a), nl.load(at)
        piece = nisa.tensor_copy_dynamic_src(t[ip, s[0, 0] + 2 * jf])
        nisa.tensor_copy_dynamic_dst(dst=t[ip, s[0, 1] + jf], src=piece)
        nl.store(out, t)
        return out

    a, at = f(40, 60), np.array([[7, 50]], INT)
    want = a.copy()
    want[:, 50:56] = a[:, 7:19:2]
    both(kernel, a, at, want=want)


# --- allocation -----------------------------------------------------------------------------------


def test_blocks_are_tiles() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray((4, nl.par_dim(32), 10), a.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((2, 2, nl.par_dim(32), 10), a.dtype)
        total = nl.zeros((2, nl.par_dim(32), 10), nl.float32)
        assert t.shape == (2, 2, 32, 10)
        for i in nl.affine_range(2):
            for j in nl.affine_range(2):
                t[i, j] = nl.load(a[2 * i + j])
                t[i][j, :, 0:5] = nl.multiply(t[i, j, :, 0:5], 3.0)
                total[i] += t[i, j]
        for k in nl.affine_range(4):
            nl.store(out[k], nl.add(t[k // 2, k % 2], total[k // 2]))
        return out

    a = f(4, 32, 10)
    t = a.copy()
    t[:, :, :5] *= 3
    both(kernel, a, want=t + np.repeat(t.reshape(2, 2, 32, 10).sum(1), 2, axis=0))


def test_directives_place_blocks() -> None:
    sbuf, psum = ncc_compiler.sbuf, ncc_compiler.psum

    def banks(idx: Any, pdim_size: Any, fdim_size: Any) -> Any:
        return 3 + idx[0] % 2, 0, 0

    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((4, 64, 96), nl.float32, buffer=nl.shared_hbm)
        t = nl.ndarray(
            (4, nl.par_dim(64), 96),
            a.dtype,
            buffer=sbuf.mod_alloc(base_addr=512, num_free_tiles=(2,)),
        )
        w = nl.ndarray((nl.par_dim(64), 64), b.dtype, buffer=sbuf.mod_alloc(base_addr=0))
        acc = nl.ndarray((4, nl.par_dim(64), 96), nl.float32, buffer=psum.alloc(banks))
        w[...] = nl.load(b)
        for k in nl.affine_range(4):
            t[k] = nl.load(a[k])
            acc[k] = nisa.nc_matmul(w, t[k])
            acc[k] += nisa.nc_matmul(w, t[k])
            nl.store(out[k], acc[k])
        return out

    a, b = f(4, 64, 96), f(64, 64)
    made = nki.jit(kernel)
    both(made, a, b, want=2 * np.einsum("km,bkn->bmn", b, a))
    auto = ncc_compiler.force_auto_alloc(made)
    both(auto, a, b, want=2 * np.einsum("km,bkn->bmn", b, a))
    places = addresses(made, a, b)
    assert places[:4] == [(0, 0), (0, 512), (0, 3 * 2048), (0, 512 + 384)]
    assert addresses(auto, a, b) == []


def addresses(kernel: Any, *args: Any) -> list[Any]:
    """The places that a kernel chose, in the order of first use."""
    from ncc.nki.binding import bind
    from ncc.nki.targets import default_target

    target = default_target()
    made = kernel.specialisation(bind(kernel.func, args, {}, target), target)
    return [b.address for b in made.kernels[0].buffers if b.address is not None]


def test_constants_and_fills() -> None:
    def kernel() -> Any:
        out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
        eye = nl.load(nl.shared_identity_matrix(64, dtype=nl.bfloat16), dtype=nl.float32)
        table = nl.load(nl.shared_constant(np.arange(64 * 64).reshape(64, 64), dtype=nl.float32))
        t = nl.full((64, 64), 2.5, nl.float32)
        t[0:32, 5] = -1
        nl.store(out, nl.zeros_like(t) + t * eye + table)
        return out

    want = np.eye(64) * 2.5 + np.arange(64 * 64).reshape(64, 64)
    want[5, 5] -= 3.5
    both(kernel, want=want)


# --- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.dtype("float32"), BF16])
@pytest.mark.parametrize("transpose_x", [False, True])
def test_products_accumulate_in_psum(dtype: Any, transpose_x: bool) -> None:
    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((96, 80), nl.float32, buffer=nl.shared_hbm)
        acc = nl.zeros((nl.par_dim(96), 80), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(3):
            rows = nl.ds(k * 64, 64)
            x = nl.load(a[rows, :] if transpose_x else a[:, rows])
            acc[:, :] += nl.matmul(x, nl.load(b[rows, :]), transpose_x=transpose_x)
        nl.store(out, acc)
        return out

    a, b = f(192, 96).astype(dtype), f(192, 80).astype(dtype)
    want = a.astype(np.float64).T @ b.astype(np.float64)
    both(kernel, a if transpose_x else a.T.copy(), b, want=want)


def test_zeros_in_psum_that_nothing_wrote_read_as_zeros() -> None:
    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((32, 64), nl.float32, buffer=nl.shared_hbm)
        acc = nl.zeros((32, 64), nl.float32, buffer=nl.psum)
        part = nl.arange(40)[None, :]
        acc[nl.arange(32)[:, None], part] += nisa.nc_matmul(nl.load(a), nl.load(b))
        nl.store(out, nl.copy(acc) + 1.0)
        return out

    a, b = f(48, 32), f(48, 40)
    both(kernel, a, b, want=np.pad(a.T @ b, ((0, 0), (0, 24))) + 1)


@pytest.mark.parametrize("where", ["zeros", "ndarray", "placed", "fresh"])
def test_a_product_that_fills_a_part_is_read_whole(where: str) -> None:
    """What nobody wrote of PSUM is computed with and never stored: it begins as zeros."""

    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((45, 50), nl.float32, buffer=nl.shared_hbm)
        k, m, n, r = (
            nl.arange(64)[:, None],
            nl.arange(64)[None, :],
            nl.arange(60)[None, :],
            nl.arange(64)[:, None],
        )
        x, y = (
            nl.load(a[k, m], mask=(k < 40) & (m < 45)),
            nl.load(b[k, n], mask=(k < 40) & (n < 50)),
        )
        bank = ncc_compiler.psum.mod_alloc(base_bank=3)
        acc = {
            "zeros": lambda: nl.zeros((64, 60), nl.float32, buffer=nl.psum),
            "placed": lambda: nl.ndarray((nl.par_dim(64), 60), nl.float32, buffer=bank),
        }.get(where, lambda: nl.ndarray((64, 60), nl.float32, buffer=nl.psum))()
        if where == "fresh":
            acc = nisa.nc_matmul(x, y, mask=(k < 40) & (m < 45) & (n < 50))
        else:
            acc[0:45, 0:50] += nisa.nc_matmul(x[0:40, 0:45], y[0:40, 0:50])
        nl.store(out[r, n], nl.exp(acc)[r, n], mask=(r < 45) & (n < 50))
        return out

    a, b = f(40, 45) / 40, f(40, 50)
    both(kernel, a, b, want=np.exp(a.T @ b))


def test_masks_belong_to_the_operand_of_their_indices() -> None:
    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((70, 90), nl.float32, buffer=nl.shared_hbm)
        k, m, n = nl.arange(64)[:, None], nl.arange(96)[None, :], nl.arange(96)[None, :]
        r = nl.arange(96)[:, None]
        acc = nl.ndarray((96, 96), nl.float32, buffer=nl.psum)
        for i in nl.affine_range(2):
            deep = i * 64 + k < 100
            x = nl.load(a[i * 64 + k, m], mask=deep & (m < 70))
            y = nl.load(b[i * 64 + k, n], mask=deep & (n < 90))
            acc[r, n] += nisa.nc_matmul(x[k, m][m < 70], y[k, n], mask=deep & (n < 90))
        nl.store(out[r, n], acc[r, n], mask=(r < 70) & (n < 90))
        return out

    a, b = f(100, 70), f(100, 90)
    both(kernel, a, b, want=a.T @ b)


@pytest.mark.parametrize("mask", ["none", "all", "result", "shared"])
@pytest.mark.parametrize("load", ["rows", "columns", "turned"])
def test_tails_of_products(mask: str, load: str) -> None:
    """A mask names the indices of x, of y or of the result; what a masked load left out of the
    depth is no part of the sum."""
    width = 40 if (mask, load) == ("all", "columns") else 64

    def kernel(a: Any, b: Any) -> Any:
        (rows, depth), columns = a.shape, b.shape[1]
        out = nl.ndarray((rows, columns), nl.float32, buffer=nl.shared_hbm)
        im, ik = nl.mgrid[0:64, 0:64]
        jk, jn = nl.mgrid[0:64, 0:width]
        rm, rn = (im, jn) if mask == "shared" else nl.mgrid[0:64, 0:width]
        jk = im if mask == "shared" else jk
        for m in nl.affine_range(2):
            for n in nl.affine_range(2):
                acc = nl.zeros((64, width), nl.float32, buffer=nl.psum)
                for k in nl.affine_range(2):
                    there = (m * 64 + im < rows) & (k * 64 + ik < depth)
                    deep = k * 64 + jk < depth
                    part = a[m * 64 + im, k * 64 + ik]
                    if load == "columns":
                        x = nl.load_transpose2d(part, mask=there)
                    else:
                        x = nl.load(part, mask=there)
                        x = x if load == "rows" else nl.copy(nl.transpose(x))
                    y = nl.load(
                        b[k * 64 + jk, n * width + jn], mask=deep & (n * width + jn < columns)
                    )
                    keep = {
                        "all": there & deep & (n * width + jn < columns),
                        "result": (m * 64 + rm < rows) & (n * width + rn < columns),
                        "shared": (m * 64 + im < rows) if load == "rows" else None,
                    }.get(mask)
                    acc[rm, rn] += nl.matmul(x, y, transpose_x=load != "rows", mask=keep)
                kept = (m * 64 + rm < rows) & (n * width + rn < columns)
                nl.store(out[m * 64 + rm, n * width + rn], acc, mask=kept)
        return out

    a, b = f(100, 90), f(90, width + 21)
    both(kernel, a, b, want=a.astype(np.float64) @ b)


def test_transposes_of_every_kind() -> None:
    def kernel(a: Any, small: Any, whole: Any) -> Any:
        outs = [
            nl.ndarray(t.shape[::-1], t.dtype, buffer=nl.shared_hbm)
            for t in (a, small, whole, a, a)
        ]
        ps = nl.ndarray((100, 60), a.dtype, buffer=nl.psum)
        ps[...] = nisa.nc_transpose(nl.load(a))
        nl.store(outs[0], ps)
        nl.store(outs[1], nisa.nc_transpose(nl.load(small), engine=nisa.vector_engine))
        nl.store(outs[2], nl.transpose(nl.load(whole)))
        nl.store(outs[3], nl.load_transpose2d(a))
        nl.store(outs[4], nisa.dma_transpose(nl.load(a)))
        return tuple(outs)

    a, small = f(60, 100), f(20, 32)
    whole = RNG.integers(-120, 120, (30, 44)).astype(np.int8)
    both(kernel, a, small, whole, want=(a.T, small.T, whole.T, a.T, a.T))


def test_a_masked_result_stores_what_the_mask_left() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray((32, 20), a.dtype, buffer=nl.shared_hbm)
        t = nl.full((32, 20), 7.0, a.dtype)
        x, p, q = nl.load(a), nl.arange(32)[:, None], nl.arange(20)[None, :]
        t[p, q] = nl.add(x, 1.0, mask=(p < 10) & (q >= 4))
        t[p, q] = nl.add(x, 5.0, mask=False)
        t[p, q] = nl.multiply(x, 2.0, mask=p + q >= 40)
        nl.store(out, t)
        return out

    a = f(32, 20)
    want = np.full_like(a, 7)
    want[:10, 4:] = a[:10, 4:] + 1
    late = np.add.outer(np.arange(32), np.arange(20)) >= 40
    both(kernel, a, want=np.where(late, 2 * a, want))


# --- types and broadcasting -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (nl.float32, nl.bfloat16, nl.float32),
        (nl.float16, nl.bfloat16, nl.float32),
        (nl.float8_e4m3, nl.float8_e5m2, nl.bfloat16),
        (nl.int32, nl.float16, nl.float16),
        (nl.int8, nl.uint8, nl.int16),
        (nl.int8, nl.uint16, nl.int32),
        (nl.int32, nl.uint32, nl.float32),
        (nl.int32, nl.uint8, nl.int32),
        (nl.uint8, nl.uint16, nl.uint16),
        (nl.bool_, nl.int8, nl.int8),
    ],
)
def test_promotion(a: Any, b: Any, want: Any) -> None:
    assert promoted(a, b) is want and promoted(b, a) is want


def test_numbers_give_way_to_tiles() -> None:
    def kernel(a: Any, i: Any) -> Any:
        x, n = nl.load(a), nl.load(i)
        assert (x * 2.5).dtype == nl.bfloat16
        assert (n + 1).dtype == nl.int16
        assert (n * 0.5).dtype == nl.float32
        assert (x < 1).dtype == nl.bool_
        assert nl.add(x, n, dtype=nl.float32).dtype == np.float32
        assert nisa.activation(np.exp, x).dtype == nl.bfloat16
        assert nisa.nc_matmul(x, x).dtype == nl.float32
        assert x.astype(nl.float16).dtype == nl.float16
        out = nl.ndarray(a.shape, nl.float32, buffer=nl.shared_hbm)
        nl.store(out, n * 0.5)
        return out

    i = RNG.integers(-9, 9, (16, 16)).astype(np.int16)
    both(kernel, f(16, 16).astype(BF16), i, want=i * 0.5)


BINARY: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "less": np.less,
    "greater_equal": np.greater_equal,
    "mod": np.mod,
    "fmod": np.fmod,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    ("a", "b"), [((40, 6), (40, 6)), ((40, 1), (1, 6)), ((40, 2, 3), (40, 1, 3)), ((1, 5), (33, 5))]
)
def test_binary_functions_broadcast(name: str, a: Any, b: Any) -> None:
    x, y = f(*a) + 0.5, f(*b) + 0.5
    got = elementwise(lambda s, t: getattr(nl, name)(s, t), x, y)
    close(got, BINARY[name](x.astype(np.float64), y), 1e-5)


def test_operators_of_tiles() -> None:
    x, y = f(30, 8) + 1, f(30, 1) + 1
    got = elementwise(lambda s, t: (1 - s) / t + 2 * -s - (t - 3.0) * s**2, x, y)
    close(got, (1 - x) / y - 2 * x - (y - 3) * x**2)
    i, j = (RNG.integers(0, 99, (30, 8)).astype(INT) for _ in range(2))
    close(elementwise(lambda s, t: (s & t) | (s ^ 5), i, j), (i & j) | (i ^ 5))
    close(elementwise(lambda s, t: (s >> 1) + (t << 2), i, j), (i >> 1) + (j << 2))
    close(elementwise(lambda s, t: (s >= t) + (s == t), i, j), (i >= j) | (i == j))
    close(elementwise(lambda s, t: (s - 50) // 3 + 7 % (t + 1), i, j), (i - 50) // 3 + 7 % (j + 1))
    close(
        elementwise(lambda s, t: abs(s - t) + 1000 // +(t + 1), i, j), abs(i - j) + 1000 // (j + 1)
    )


def test_values_in_place() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        t = nl.load(a)
        t += 1.0
        t[:, 0:4] *= nl.load(a[:, 4:8])
        t[0:8] -= t[0:8, 0]
        t[...] /= 2.0
        t[:, 3] = 0
        nl.store(out, t)
        return out

    a = f(16, 8)
    t = a + 1
    t[:, :4] *= a[:, 4:]
    t[:8] -= t[:8, :1].copy()
    t /= 2
    t[:, 3] = 0
    both(kernel, a, want=t)


UNARY: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "square": np.square,
    "abs": np.abs,
    "reciprocal": np.reciprocal,
    "negative": np.negative,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": np.sign,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name: str) -> None:
    x = f(20, 14) * 4 + 0.1
    close(elementwise(getattr(nl, name), x), UNARY[name](x.astype(np.float64)), 2e-5)


def test_folds_softmax_and_norms() -> None:
    x, w = f(24, 3, 10), f(1, 3, 10)

    def kernel(a: Any, b: Any) -> Any:
        t, u = nl.load(a), nl.load(b)
        made = (
            nl.sum(t, axis=[2]),
            nl.max(t, axis=(1, 2)),
            nl.min(t, axis=1, keepdims=True),
            nl.mean(t, axis=[1, 2]),
            nl.var(t, axis=[2]),
            nl.prod(t, axis=-1),
            nl.softmax(t, axis=[2]),
            nl.rms_norm(t, u, axis=[1, 2], n=30, epsilon=1e-5),
        )
        outs = tuple(nl.ndarray(m.shape, m.dtype, buffer=nl.shared_hbm) for m in made)
        for out, m in zip(outs, made, strict=True):
            nl.store(out, m)
        return outs

    y = x.astype(np.float64)
    e = np.exp(y - y.max(2, keepdims=True))
    norm = y / np.sqrt((y**2).mean((1, 2), keepdims=True) + 1e-5) * w
    want = (
        y.sum(2),
        y.max((1, 2))[:, None],
        y.min(1, keepdims=True),
        y.mean((1, 2))[:, None],
        y.var(2),
        y.prod(2),
        e / e.sum(2, keepdims=True),
        norm,
    )
    both(kernel, x, w, want=want)


def test_choices() -> None:
    def kernel(a: Any, b: Any, i: Any) -> Any:
        x, y, n = nl.load(a), nl.load(b), nl.load(i)
        p, q = nl.arange(48)[:, None], nl.arange(32)[None, :]
        made = (
            nl.where(x > 0.5, x, 0.0),
            nl.where(nl.less(x, y), y, x),
            nisa.affine_select(pred=(p >= q), on_true_tile=x, on_false_value=-1.0),
            nisa.affine_select((p >= q) & (p < q + 4), x, -1.0),
            nl.gather_flattened(x, n),
            nisa.iota(3 * p - q + 2, dtype=nl.float32),
        )
        outs = tuple(nl.ndarray(m.shape, m.dtype, buffer=nl.shared_hbm) for m in made)
        for out, m in zip(outs, made, strict=True):
            nl.store(out, m)
        return outs

    a, b = f(48, 32), f(48, 32)
    i = RNG.integers(0, 32, (48, 5)).astype(np.uint32)
    p, q = np.arange(48)[:, None], np.arange(32)[None, :]
    want = (
        np.where(a > 0.5, a, 0),
        np.maximum(a, b),
        np.where(p >= q, a, -1),
        np.where((p >= q) & (p < q + 4), a, -1),
        np.take_along_axis(a, i.astype(int), 1),
        3 * p - q + 2,
    )
    both(kernel, a, b, i, want=want)


def test_instructions_return_tiles() -> None:
    def kernel(a: Any, b: Any, v: Any) -> Any:
        x, y, c = nl.load(a), nl.load(b), nl.load(v)
        total, scaled = nl.ndarray((40, 1), nl.float32), nl.ndarray((40, 1), nl.float32)
        stats = nl.ndarray((nl.par_dim(40), 6), nl.float32)
        stats[...] = nisa.bn_stats(x)
        top = nisa.max8(src=x)
        row = nisa.tensor_partition_reduce(np.add, x)
        made = (
            nisa.activation(np.tanh, x, bias=c, scale=2.0),
            nisa.activation_reduce(np.exp, x, reduce_op=np.add, reduce_res=total),
            total,
            nisa.tensor_scalar(x, np.subtract, c, True, op1=np.multiply, operand1=3.0),
            nisa.tensor_scalar_reduce(
                data=x, op0=np.multiply, operand0=c, reduce_op=np.max, reduce_res=scaled
            ),
            scaled,
            nisa.scalar_tensor_tensor(
                data=x, op0=np.add, operand0=1.0, op1=np.multiply, operand1=y
            ),
            nisa.tensor_tensor_scan(x, y, initial=0, op0=np.multiply, op1=np.add),
            nisa.tensor_reduce(np.max, x, axis=1, negate=True),
            nisa.bn_aggr(stats),
            top,
            nisa.nc_find_index8(data=x, vals=top, dtype=nl.uint32),
            row,
            nisa.reciprocal(y),
            nisa.memset((40, 3), value=1.5, dtype=nl.bfloat16),
        )
        outs = tuple(nl.ndarray(m.shape, m.dtype, buffer=nl.shared_hbm) for m in made)
        for out, m in zip(outs, made, strict=True):
            nl.store(out, m)
        return outs

    a, b, v = f(40, 30), f(40, 30) + 0.2, f(40, 1)
    scan = np.zeros((40, 30))
    held = np.zeros(40)
    for k in range(30):
        held = a[:, k].astype(np.float64) * held + b[:, k]
        scan[:, k] = held
    order = np.argsort(-a, axis=1, kind="stable")[:, :8]
    want = (
        np.tanh(2 * a + v),
        np.exp(a),
        np.exp(a).sum(1, keepdims=True),
        (v - a) * 3,
        a * v,
        (a * v).max(1, keepdims=True),
        (a + 1) * b,
        scan,
        -a.max(1, keepdims=True),
        np.stack([a.mean(1), a.var(1)], 1),
        np.take_along_axis(a, order, 1),
        order,
        a.sum(0, keepdims=True),
        1 / b,
        np.full((40, 3), 1.5),
    )
    both(kernel, a, b, v, want=want, tol=2e-5)


def test_a_loop_reduce_is_folded_into_its_target() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray((32, 12), a.dtype, buffer=nl.shared_hbm)
        high = nl.full((32, 12), -9.0, a.dtype)
        for k in nl.affine_range(3):
            high[...] = nl.loop_reduce(nl.load(a[k]), op=np.max, loop_indices=[k])
        nl.store(out, high)
        return out

    a = f(3, 32, 12)
    both(kernel, a, want=a.max(0))


# --- launches and calls ---------------------------------------------------------------------------


def test_a_grid_of_programs_shares_its_outputs() -> None:
    @nki.jit
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        i, j = nl.program_id(0), nl.program_id(axis=1)
        assert nl.program_ndim() == 2 and nl.num_programs() == 8 and nl.num_programs(1) == 2
        nl.store(out[i, j], nl.load(a[i, j]) * float(1 + i + 10 * j))
        return out

    a = f(4, 2, 8, 5)
    want = a * (1 + np.arange(4)[:, None] + 10 * np.arange(2)[None, :])[:, :, None, None]
    for grid in ((4, 2), (nl.nc(2) * 2, 2), (2 * nl.nc(2), 2), (nl.spmd_dim(nl.nc(2), 2), 2)):
        both(kernel[grid], a, want=want)


def test_two_cores_fold_their_tiles() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray((2, 16, 9), a.dtype, buffer=nl.shared_hbm)
        i = nl.program_id(0)
        total = nl.all_reduce(nl.load(a[i]), op=np.add, program_axes=[0])
        nl.store(out[i], total)
        return out

    a = f(2, 16, 9)
    both(nki.jit(kernel)[nl.nc(2)], a, want=np.stack([a.sum(0)] * 2))
    with pytest.raises(NccError, match="NCC376"):
        nki.simulate_kernel(nki.jit(kernel)[2], a)


def test_arguments_that_a_kernel_writes() -> None:
    def kernel(a: Any, scale: float, out: Any) -> None:
        nl.store(out, nl.load(a) * scale)

    a = f(16, 4)
    both(kernel, a, 3.0, np.zeros_like(a), want=3 * a, out=2)
    for run in (nki.baremetal(kernel), nki.benchmark(warmup=1, iters=2)(kernel), nki.trace(kernel)):
        out = np.zeros_like(a)
        assert run(a, 3.0, out) is None
        close(out, 3 * a)


def test_results_on_chip_and_in_private_memory_are_copied_out() -> None:
    def kernel(a: Any) -> Any:
        private = nl.ndarray(a.shape, a.dtype, buffer=nl.hbm)
        t = nl.load(a)
        nl.store(private, t + 1)
        nl.store(t, t * 2)
        return t, private, a

    a = f(10, 6)
    both(kernel, a, want=(2 * a, a + 1, a))


def test_benchmarks_measure() -> None:
    @nki.benchmark
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nl.store(out[nl.program_id(0)], nl.load(a[nl.program_id(0)]))
        return out

    a = f(2, 4, 4)
    close(kernel[2](a), a)
    assert kernel.benchmark_result.nc_latency.get_latency_percentile(50) > 0


def test_a_run_leaves_its_container(tmp_path: Any) -> None:
    @nki.baremetal(save_neff_name="kernel.neff", working_directory=tmp_path)
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a) + 1)
        return out

    a = f(8, 4)
    nki.simulate_kernel(kernel, a)
    assert not list(tmp_path.iterdir())
    close(kernel(a), a + 1)
    assert pack.read(tmp_path / "kernel.neff").members


def test_seeds_start_the_numbers_of_dropout() -> None:
    @nki.jit
    def kernel(seed: Any, a: Any) -> Any:
        out = nl.ndarray((3, *a.shape), a.dtype, buffer=nl.shared_hbm)
        first = nl.load(seed[0])
        rate = nl.full((a.shape[0], 1), 0.25, nl.float32)
        for i in nl.sequential_range(3):
            nl.random_seed(seed=nl.add(first[0, 0], i % 2))
            nl.store(out[i], nl.dropout(nl.load(a), rate=rate[:, 0]))
        return out

    given = np.array([7], INT), np.ones((64, 50), np.float32)
    told, ran = nki.simulate_kernel(kernel, *given), kernel(*given)
    np.testing.assert_array_equal(told, ran)
    np.testing.assert_array_equal(ran[0], ran[2])
    assert (ran[0] != ran[1]).any() and abs(ran.mean() - 0.75) < 0.02


def test_modes_and_traced_parts() -> None:
    calls: list[int] = []

    @nki.jit(mode="trace", platform_target="trn2")
    def part(t: Any, *, by: float) -> Any:
        t[:, 0:2] = t[:, 0:2] * by
        return nl.exp(t)

    @nki.jit(mode="simulation")
    def kernel(a: Any) -> Any:
        calls.append(1)
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nl.store(out, part(nl.load(a), by=2.0))
        return out

    a = f(8, 5)
    want = a.copy()
    want[:, :2] *= 2
    close(kernel(a), np.exp(want))
    close(kernel(a), np.exp(want))
    assert len(calls) == 2  # one trace a call
    close(nki.jit(kernel)(a), np.exp(want))


def test_results_are_stored_where_they_are_assigned() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray(a.shape, a.dtype)
        t[:, :] = nl.load(a)
        t[:, 0:3] = nl.exp(t[:, 0:3])
        t[:, 3:6] = nl.copy(t[:, 0:3])
        unread = nl.log(t)
        assert unread.shape == t.shape
        nl.store(out, t)
        return out

    from ncc.nki.binding import bind
    from ncc.nki.targets import default_target

    a = f(8, 6)
    made, target = nki.jit(kernel), default_target()
    kernels = made.specialisation(bind(kernel, (a,), {}, target), target).kernels
    assert [op.op for op in kernels[0].body] == [
        "dma_copy",
        "activation",
        "tensor_copy",
        "dma_copy",
    ]
    assert len(kernels[0].buffers) == 3
    got = interpreted(kernels, {"a": a}, target)
    close(got[kernels[0].results[0].buffer], np.tile(np.exp(a[:, :3]), 2))


def test_the_older_names_are_found() -> None:
    from ncc.nki.hooks import install, uninstall

    install()
    try:
        import neuronxcc.nki as theirs
        import neuronxcc.nki.compiler as compiler
        import neuronxcc.nki.isa as isa
        import neuronxcc.nki.language as language
        from neuronxcc.nki._private.private_api import sendrecv
        from neuronxcc.nki.isa.constants import oob_mode
        from neuronxcc.nki.language.constants import sizeinbytes
        from neuronxcc.nki.typing import mutable_tensor, tensor
        from neuronxcc.starfish.support.dtype import bfloat16

        assert theirs is nki and isa is nisa and language is nl
        assert compiler.sbuf == nl.sbuf and theirs.compiler is compiler
        assert oob_mode is nisa.oob_mode and callable(sendrecv)
        assert sizeinbytes(bfloat16) == 2 and tensor[2, 3] and mutable_tensor.mutable
    finally:
        uninstall()
    assert "neuronxcc" not in sys.modules


def test_keywords_that_change_nothing() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm, alignment=64)
        t = nl.zeros((16, 4), nl.float32, lazy_initialization=True)
        for i in nl.affine_range(2, directives=None, precise_schedule=True):
            t[:, :] += nl.load(a[:, :], name="a") * float(i)
        nl.store(out, nl.copy(t, engine=nisa.vector_engine, mode="x"))
        return out

    a = f(16, 4)
    with pytest.warns(UserWarning, match=r"NCC379 test_nki_old.*'alignment'"):
        close(nki.simulate_kernel(nki.jit(kernel), a), a)


# --- refusals -------------------------------------------------------------------------------------


def refused(body: Any, code: str, *words: str) -> None:
    """The kernel ends with this code, at its own line, and the sentence holds the words."""

    def kernel(a: Any) -> Any:
        out = nl.ndarray((64, 32), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, body(a) or nl.load(a))
        return out

    with pytest.raises(NccError) as caught:
        nki.simulate_kernel(nki.jit(kernel), f(64, 32))
    fault = caught.value
    assert fault.code == code
    assert fault.place.file == "test_nki_old.py" and fault.place.line
    for word in words:
        assert word in str(fault)


P, Q = arange(64)[:, None], arange(32)[None, :]


def _scoped(a: Any) -> Any:
    t: Any = None
    for _ in nl.affine_range(2):
        t = nl.load(a)
    return nl.exp(t)


def _condition(a: Any) -> Any:
    return nl.load(a) if P < 3 else None


WRONG: list[Any] = [
    (lambda a: nl.load(a[nl.arange(64), nl.arange(32)]), "NCC370", "[:, None]"),
    (lambda a: nl.load(a[P // 3, Q]), "NCC371"),
    (lambda a: nl.load(a[P, Q], mask=(P < 3) | (Q < 2)), "NCC372", "|"),
    (lambda a: nl.load(a, mask=nl.load(a) > 0.5), "NCC372", "nl.where"),
    (lambda a: nl.exp(nl.load(a), mask=nl.arange(7)[None, :] < 3), "NCC373", "7"),
    (lambda a: nl.load(a).assert_shape((64, 31)), "NCC374", "31"),
    (lambda a: nl.exp(nl.ndarray((2, nl.par_dim(64), 32), a.dtype)), "NCC375"),
    (lambda a: nl.ndarray((2, nl.par_dim(64), 32), a.dtype)[0:2, :, :], "NCC375"),
    (lambda a: nisa.builtin_custom_op("f"), "NCC377"),
    (lambda a: nl.load(a[P, 0:32]), "NCC313", "slices"),
    (lambda a: nl.load(a[P + 1, Q]), "NCC314", "64"),
    (lambda a: nl.load(a[Q, P]) if nl.load(a)[Q, P] is None else None, "NCC316"),
    (_condition, "NCC317"),
    (_scoped, "NCC318", "loop"),
    (lambda a: P.__setitem__(0, 3), "NCC324"),
    (lambda a: nl.ndarray((200, 4), a.dtype), "NCC310", "200"),
    (lambda a: nl.add(nl.load(a), nl.load(a[0:63, :])), "NCC362"),
    (lambda a: nl.exp(a), "NCC332", "HBM"),
    (lambda a: nl.sum(nl.load(a), axis=0), "NCC365"),
    (lambda a: nisa.tensor_reduce(np.add, nl.load(a), axis=0), "NCC349"),
    (lambda a: nisa.tensor_tensor(nl.load(a), nl.load(a)), "NCC330", "op"),
    (lambda a: nl.sofmax(nl.load(a), axis=1), "NCC360", "softmax"),
    (lambda a: bool(nl.load(a) > 1), "NCC317"),
    (lambda a: nl.load(a, msk=P < 3), "NCC330", "'msk'", "mask"),
    (lambda a: nl.exp(nl.load(a), dytpe=nl.bfloat16), "NCC330", "dtype"),
    (lambda a: nl.max(nl.load(a), axis=1, keep_dims=True), "NCC330", "keepdims"),
    (lambda a: nl.zeros((4, 4), nl.float32, bufer=nl.psum), "NCC330", "buffer"),
    (lambda a: nisa.nc_matmul(nl.load(a), nl.load(a), accumulate=True), "NCC330", "+="),
    (lambda a: nisa.reciprocal(data=nl.load(a), dst=nl.load(a)), "NCC330", "returns a tile"),
    (lambda a: nl.load(a)[P, nl.load(a).astype(nl.int32)], "NCC322"),
]


@pytest.mark.parametrize(("body", "code", "words"), [(w[0], w[1], w[2:]) for w in WRONG])
def test_wrong_kernels_are_refused(body: Any, code: str, words: Any) -> None:
    refused(body, code, *words)


def test_calls_outside_and_grids_inside() -> None:
    with pytest.raises(NccError, match="NCC301"):
        nl.zeros((4, 4), nl.float32)

    @nki.jit
    def inner(a: Any) -> Any:
        return nl.load(a)

    refused(lambda a: inner[2](a), "NCC304", "grid")
    with pytest.raises(NccError, match="NCC304"):
        inner[0](f(4, 4))


NAMES = (
    "err_1d_arange_not_supported",
    "err_annotation_shape_mismatch",
    "err_cannot_assign_to_index",
    "err_local_variable_used_out_of_scope",
    "err_nested_kernel_with_spmd_grid",
    "err_unsupported_expression_in_mask",
    "err_unsupported_mixing_basic_advanced_tensor_indexing",
    "err_tensor_access_out_of_bound",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_names_explain_themselves(name: str) -> None:
    rule = named(name)
    assert rule is not None and rule.fix
