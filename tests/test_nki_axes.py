"""Loops of the older API are axes of the kernel: folded from turns, unrolled to the same again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

import ncc.nki.old.isa as nisa
import ncc.nki.old.language as nl
from ncc.errors import NccError
from ncc.interp import kernel as meaning
from ncc.ir import kernel_binary, kernel_fold
from ncc.ir.kernel import Access, AxisLoop, Kernel, KernelOp, Statement
from ncc.ir.kernel_axes import axes_of, unrolled
from ncc.ir.kernel_print import show_kernel
from ncc.ir.lower.kernel import lower
from ncc.ir.penguin import Function, KernelNode, Tensor
from ncc.ir.penguin_print import show
from ncc.ir.penguin_text import parse
from ncc.nki import old as nki
from ncc.nki.binding import bind
from ncc.target import target

TRN2 = target("trn2")
RNG = np.random.default_rng(3)


def traced(func: Callable[..., Any], *arrays: Any) -> tuple[Kernel, Kernel]:
    """The kernel with its axes, and as it was recorded."""
    recorded: list[Kernel] = []
    real = kernel_fold.folded

    def kept(kernel: Kernel, loops: Any) -> Kernel:
        recorded.append(kernel)
        return real(kernel, loops)

    kernel = nki.jit(func)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_fold, "folded", kept)
        found = kernel.specialisation(bind(kernel.func, arrays, {}, TRN2), TRN2, True)
    return found.kernels[0], recorded[0]


class Same:
    """Whether two kernels without axes differ in nothing but names."""

    def __init__(self, a: Kernel, b: Kernel) -> None:
        self.a, self.b = ({x.name: x for x in one.buffers} for one in (a, b))
        self.names: dict[str, str] = {}
        assert len(a.body) == len(b.body)
        for one, two in zip(a.body, b.body, strict=True):
            self.op(one, two)
        assert len(set(self.names.values())) == len(self.names)

    def op(self, one: Statement, two: Statement) -> None:
        assert isinstance(one, KernelOp) and isinstance(two, KernelOp)
        assert (one.op, repr(one.keys), one.engine) == (two.op, repr(two.keys), two.engine)
        assert (one.origin.file, one.origin.line) == (two.origin.file, two.origin.line)
        for (role, x), (other, y) in zip(one.args, two.args, strict=True):
            assert role == other
            self.arg(x, y)

    def arg(self, x: Any, y: Any) -> None:
        if not isinstance(x, Access):
            assert repr(x) == repr(y)
            return
        assert self.names.setdefault(x.buffer, y.buffer) == y.buffer
        a, b = self.a[x.buffer], self.b[y.buffer]
        assert attrs.evolve(a, name="") == attrs.evolve(b, name="")
        assert attrs.evolve(x, buffer="", moves=()) == attrs.evolve(y, buffer="", moves=())
        for one, two in zip(x.moves, y.moves, strict=True):
            self.arg(one.source, two.source)


def node(kernel: Kernel) -> Function:
    """A Penguin function of this kernel alone."""
    bound = [b for b in kernel.buffers if b.kind in ("input", "inout", "output")]
    found = tuple(
        Tensor(b.name, b.dtype, b.shape, "input" if b.kind == "input" else "output", "dram")
        for b in bound
    )
    args = tuple((x, x) for x in kernel.params)
    outs = tuple((b.name, b.name) for b in bound if b.kind != "input")
    return Function("f", found, (KernelNode("k", (kernel,), args, outs),))


def loops(kernel: Kernel) -> list[tuple[str, str, int]]:
    return [(one.name, one.kind, one.count) for one in axes_of(kernel.body)]


# ---- kernels -------------------------------------------------------------------------------------


def matmul(lhs_t: Any, rhs: Any) -> Any:
    k_size, m_size = lhs_t.shape
    n_size = rhs.shape[1]
    out = nl.ndarray((m_size, n_size), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(m_size // 32):
        for n in nl.affine_range(n_size // 64):
            acc = nl.zeros((32, 64), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(k_size // 16):
                left = nl.load(lhs_t[k * 16 : (k + 1) * 16, m * 32 : (m + 1) * 32])
                right = nl.load(rhs[k * 16 : (k + 1) * 16, n * 64 : (n + 1) * 64])
                acc += nl.matmul(left, right, transpose_x=True)
            done = nl.copy(acc, dtype=out.dtype)
            nl.store(out[m * 32 : (m + 1) * 32, n * 64 : (n + 1) * 64], value=done)
    return out


def hoisted(lhs_t: Any, rhs: Any) -> Any:
    """The same with the loads before the products, in tensors of blocks."""
    k_size, m_size = lhs_t.shape
    out = nl.ndarray((m_size, rhs.shape[1]), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    i_k, i_n = nl.mgrid[0:16, 0:64]
    for m in nl.affine_range(m_size // 32):
        left = nl.ndarray((k_size // 16, nl.par_dim(16), 32), lhs_t.dtype, buffer=nl.sbuf)
        right = nl.ndarray((k_size // 16, nl.par_dim(16), rhs.shape[1]), rhs.dtype, buffer=nl.sbuf)
        for k in nl.affine_range(k_size // 16):
            left[k] = nl.load(lhs_t[k * 16 : k * 16 + 16, m * 32 : m * 32 + 32])
            right[k] = nl.load(rhs[k * 16 : k * 16 + 16, :])
        for n in nl.affine_range(rhs.shape[1] // 64):
            acc = nl.zeros((32, 64), nl.float32, buffer=nl.psum)
            for k in nl.sequential_range(k_size // 16):
                acc += nisa.nc_matmul(left[k], right[k, i_k, n * 64 + i_n])
            nl.store(out[m * 32 : m * 32 + 32, n * 64 : n * 64 + 64], value=acc)
    return out


def tails(x: Any) -> Any:
    """Rows in tiles of 32, the last one masked; odd tiles are doubled."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:32, 0 : x.shape[1]]
    for t in nl.affine_range(-(-x.shape[0] // 32)):
        inside = t * 32 + i_p < x.shape[0]
        tile = nl.load(x[t * 32 + i_p, i_f], mask=inside)
        nl.store(out[t * 32 + i_p, i_f], value=nl.exp(tile), mask=inside)
    for t in nl.sequential_range(x.shape[0] // 32):
        tile = nl.load(out[t * 32 : t * 32 + 32, :])
        if t % 2:
            tile = tile + tile
        nl.store(out[t * 32 : t * 32 + 32, :], value=tile)
    return out


def carried(x: Any) -> Any:
    """A running sum, columns backwards; the tile of the turn before is read."""
    total = nl.load(x[:, x.shape[1] - 1 :])
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in nl.sequential_range(x.shape[1] - 1):
        at = x.shape[1] - 2 - t
        total[...] = total + nl.load(x[:, at : at + 1])
        nl.store(out[:, at : at + 1], value=total)
    nl.store(out[:, x.shape[1] - 1 :], value=nl.load(x[:, x.shape[1] - 1 :]))
    return out


def window(x: Any) -> Any:
    """Each turn reads the tiles of two turns of a loop before: no turn has its own."""
    tiles = nl.ndarray((5, nl.par_dim(x.shape[0]), 8), x.dtype, buffer=nl.sbuf)
    for k in nl.affine_range(5):
        tiles[k] = nl.load(x[:, k * 8 : k * 8 + 8])
    out = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.shared_hbm)
    for k in nl.affine_range(4):
        nl.store(out[:, k * 8 : k * 8 + 8], value=tiles[k] + tiles[k + 1])
    return out


def uneven(x: Any) -> Any:
    """Loops that leave early, that are nested in a triangle, and that run side by side."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i, j in zip(nl.affine_range(3), nl.affine_range(3), strict=False):
        nl.store(out[:, i * 8 : i * 8 + 8], value=nl.load(x[:, j * 8 : j * 8 + 8]))
    for i in nl.affine_range(3, 5):
        tile = nl.load(x[:, i * 8 : i * 8 + 8])
        for _ in nl.affine_range(i):
            tile[...] = tile + tile
        nl.store(out[:, i * 8 : i * 8 + 8], value=tile)
    for k in nl.affine_range(40, 48, 2):
        if k == 46:
            break
        nl.store(out[:, k : k + 2], value=nl.load(x[:, k : k + 2]))
    nl.store(out[:, 46:], value=nl.load(x[:, 46:]))
    return out


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


AB = (normal(48, 64), normal(48, 128))
CASES: list[tuple[Callable[..., Any], Sequence[Any], list[tuple[str, str, int]]]] = [
    (matmul, AB, [("m", "affine_range", 2), ("n", "affine_range", 2), ("k", "affine_range", 3)]),
    (
        hoisted,
        AB,
        [
            *(("m", "affine_range", 2), ("k", "affine_range", 3), ("n", "affine_range", 2)),
            ("k_2", "sequential_range", 3),
        ],
    ),
    (tails, (normal(112, 5),), [("t", "affine_range", 3)]),
    (carried, (normal(7, 9),), [("t", "sequential_range", 8)]),
    (window, (normal(6, 40),), [("k", "affine_range", 5), ("k_2", "affine_range", 4)]),
    (uneven, (normal(4, 48),), []),
]
each = pytest.mark.parametrize(
    ("kernel", "arrays", "wanted"), CASES, ids=lambda x: getattr(x, "__name__", "")
)


@each
def test_turns_fold_and_unroll_to_what_was_recorded(
    kernel: Any, arrays: Any, wanted: list[tuple[str, str, int]]
) -> None:
    found, recorded = traced(kernel, *arrays)
    if wanted:
        assert loops(found) == wanted
    Same(recorded, unrolled(found))
    given = dict(zip(found.params, arrays, strict=True))
    told, meant = (meaning.run([one], given, TRN2) for one in (found, recorded))
    for result in found.results:
        np.testing.assert_array_equal(told[result.buffer], meant[result.buffer])


@each
def test_a_kernel_with_axes_reads_back(kernel: Any, arrays: Any, wanted: Any) -> None:
    found, recorded = traced(kernel, *arrays)
    module = node(found)
    text = show(module)
    assert parse(text) == module
    assert show(parse(text)) == text
    scope: dict[str, Any] = {}
    exec(compile(text, "stage.py", "exec"), scope)  # the text is a program
    assert scope["f"].module == module
    assert kernel_binary.unpack(kernel_binary.pack((found,))) == (found,)
    folded, plain = lower(found, TRN2), lower(recorded, TRN2)
    assert [(i.opcode, i.engine, i.keys) for b in folded.blocks for i in b.insts] == [
        (i.opcode, i.engine, i.keys) for b in plain.blocks for i in b.insts
    ]
    assert len(folded.sets) == len(plain.sets)


@each
def test_compiled_and_simulated_agree(kernel: Any, arrays: Any, wanted: Any) -> None:
    if kernel not in (hoisted, tails):
        return
    made = nki.jit(kernel)
    np.testing.assert_array_equal(made(*arrays), nki.simulate_kernel(made, *arrays))


def test_the_trace_of_a_matmul_reads_like_the_kernel() -> None:
    found, _ = traced(matmul, *AB)
    lines = [one.split("  #")[0] for one in show_kernel(found, "")]
    at = lines.index("    for m in affine_range(2):")
    assert lines[at : at + 8] == [
        "    for m in affine_range(2):",
        "        for n in affine_range(2):",
        "            for k in affine_range(3):",
        "                i0 = nisa.dma_copy(dst=t4, src=lhs_t[16*k:16*k+16, 32*m:32*m+32])",
        "                i1 = nisa.dma_copy(dst=t5, src=rhs[16*k:16*k+16, 64*n:64*n+64])",
        '                i3 = nisa.nc_matmul(dst=t3, stationary=t4, moving=t5, accumulate=("k",))',
        lines[at + 6],
        "            " + lines[at + 7].strip(),
    ]
    own = {b.name: b.axis for b in found.buffers if b.axis}
    assert own["t4"] == own["t5"] == "k" and own["t3"] == "n"


def test_tiles_that_outlive_their_turn_are_blocks() -> None:
    found, _ = traced(hoisted, *AB)
    assert [(b.axis, b.blocks) for b in found.buffers if b.blocks] == [("m", 3), ("m", 3)]
    found, _ = traced(window, *CASES[4][1])
    assert [b.blocks for b in found.buffers if b.blocks] == [5]


def test_a_fault_in_a_loop_names_the_line() -> None:
    def kernel(x: Any) -> Any:
        for k in nl.affine_range(3):
            nl.load(x[k * 8 : k * 8 + 200, :])

    with pytest.raises(NccError) as caught:
        traced(kernel, normal(300, 4))
    assert caught.value.place.file == "test_nki_axes.py" and caught.value.place.line


def test_an_access_that_leaves_in_some_turn_is_found() -> None:
    found, _ = traced(matmul, *AB)
    loop = found.body[0]
    assert isinstance(loop, AxisLoop)
    wrong = attrs.evolve(found, body=(attrs.evolve(loop, count=3),))
    from ncc.ir.kernel_laws import kernels_are_sound

    codes = {fault.code for fault in kernels_are_sound(node(wrong), TRN2)}
    assert codes == {"NCC292"}
    assert not list(kernels_are_sound(node(found), TRN2))
    inner = attrs.evolve(found, body=loop.body)
    assert {f.code for f in kernels_are_sound(node(inner), TRN2)} == {"NCC289"}
