"""Views and types: wrappers of `.ap`, reinterpretation, constants, and what old releases spell."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

from kernels.common import P_MAX, kernel_assert, load, tiles_of


class View(nl.NKIObject):
    """Sizes and strides over a tensor, all of it in Python; `.get()` makes the access pattern."""

    base = None
    sizes: tuple = ()
    strides: tuple = ()
    at: int = 0

    @staticmethod
    def of(tensor):
        strides, n = [], 1
        for size in reversed(tensor.shape):
            strides.insert(0, n)
            n *= size
        return View(base=tensor, sizes=tuple(tensor.shape), strides=tuple(strides), at=0)

    def part(self, dim, start, end, step=1):
        sizes = list(self.sizes)
        strides = list(self.strides)
        sizes[dim] = (end - start + step - 1) // step
        strides[dim] = self.strides[dim] * step
        at = self.at + start * self.strides[dim]
        return View(base=self.base, sizes=tuple(sizes), strides=tuple(strides), at=at)

    def split(self, dim, outer):
        sizes = list(self.sizes)
        inner = sizes[dim] // outer
        sizes[dim : dim + 1] = [outer, inner]
        strides = list(self.strides)
        strides[dim : dim + 1] = [strides[dim] * inner, strides[dim]]
        return View(base=self.base, sizes=tuple(sizes), strides=tuple(strides), at=self.at)

    def permute(self, order):
        return View(
            base=self.base,
            sizes=tuple(self.sizes[d] for d in order),
            strides=tuple(self.strides[d] for d in order),
            at=self.at,
        )

    def pick(self, dim, index):
        sizes, strides = list(self.sizes), list(self.strides)
        at = self.at + index * strides.pop(dim)
        sizes.pop(dim)
        return View(base=self.base, sizes=tuple(sizes), strides=tuple(strides), at=at)

    def spread(self, dim, size):
        kernel_assert(self.sizes[dim] == 1, f"axis {dim} has size {self.sizes[dim]}")
        sizes, strides = list(self.sizes), list(self.strides)
        sizes[dim], strides[dim] = size, 0
        return View(base=self.base, sizes=tuple(sizes), strides=tuple(strides), at=self.at)

    def get(self):
        pattern = [[s, n] for s, n in zip(self.strides, self.sizes, strict=True)]
        return self.base.ap(pattern=pattern, offset=self.at)


@nki.jit
def through_views(x, w):
    """x (b, s, h, d) -> (h, d, b * s) scaled by w (h,), every access made by a wrapper."""
    b, s, h, d = x.shape
    out = nl.ndarray((h, d, b * s), dtype=x.dtype, buffer=nl.shared_hbm)
    xv, ov = View.of(x), View.of(out)
    scale = nl.ndarray((s, h, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=scale, src=w.ap([[0, s], [1, h], [1, 1]]))
    for i in range(b):
        tile = nl.ndarray((s, h, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=xv.pick(0, i).get())
        wide = View.of(scale).spread(2, d).get()
        nisa.tensor_tensor(dst=tile, data1=tile, data2=wide, op=nl.multiply)
        for j in range(h):
            across = nl.ndarray((d, s), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=across, data=View.of(tile).pick(1, j).get())
            done = nl.ndarray((d, s), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=View.of(done).get(), src=across)
            to = ov.part(2, i * s, (i + 1) * s).pick(0, j)
            nisa.dma_copy(dst=to.get(), src=done)
    return out


@nki.jit
def bits_of(x):
    """Sign and exponent of float32 by integer operations on the same bytes; abs by clearing."""
    rows, width = x.shape
    exponent = nl.ndarray((rows, width), dtype=nl.int32, buffer=nl.shared_hbm)
    plain = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = load(x)
    raw = tile.view(nl.uint32)
    e = nl.ndarray((rows, width), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=e,
        data=raw,
        op0=nl.right_shift,
        operand0=23,
        op1=nl.bitwise_and,
        operand1=255,
    )
    signed = nl.ndarray((rows, width), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=signed, data=e, op0=nl.subtract, operand0=127)
    nisa.dma_copy(dst=exponent, src=signed)
    nisa.tensor_scalar(dst=raw, data=raw, op0=nl.bitwise_and, operand0=0x7FFFFFFF)
    nisa.dma_copy(dst=plain, src=tile)
    return exponent, plain


@nki.jit
def packed_bytes(x):
    """Four uint8 of a row as one uint32, and back in reverse order."""
    rows, width = x.shape
    words = nl.ndarray((rows, width // 4), dtype=nl.uint32, buffer=nl.shared_hbm)
    tile = load(x)
    nisa.dma_copy(dst=words, src=tile.view(nl.uint32))
    turned = nl.ndarray((rows, width), dtype=nl.uint8, buffer=nl.sbuf)
    lanes = turned.reshape((rows, width // 4, 4))
    for i in range(4):
        nisa.tensor_copy(dst=lanes[:, :, i], src=tile.reshape((rows, width // 4, 4))[:, :, 3 - i])
    back = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=back, src=turned)
    return words, back


@nki.jit
def permuted_by_constant(x, seed: int = 3):
    """The columns of x in an order that numpy draws while the kernel is traced, by a product."""
    rows, width = x.shape
    order = np.random.default_rng(seed).permutation(width)
    matrix = np.zeros((width, width), dtype=np.float32)
    matrix[order, np.arange(width)] = 1.0
    held = load(nl.shared_constant(matrix))
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    identity = nl.shared_identity_matrix(P_MAX, dtype=x.dtype)
    for row in tiles_of(rows, P_MAX):
        tile = load(x[row.start : row.end])
        across = nl.ndarray((width, row.size), dtype=x.dtype, buffer=nl.psum)
        nisa.nc_matmul(
            dst=across,
            stationary=tile,
            moving=identity[0 : row.size, 0 : row.size],
            is_transpose=True,
        )
        left = nl.copy(across)
        acc = nl.ndarray((row.size, width), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=acc, stationary=left, moving=held)
        done = nl.ndarray((row.size, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=done, src=acc, dtype=x.dtype)
        nl.store(out[row.start : row.end], value=done)
    return out


@nki.jit
def pick_columns(x, index):
    """Each row its own columns, index (rows, n), by nc_n_gather."""
    rows, n = index.shape
    out = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in tiles_of(rows, P_MAX):
        at = load(index[row.start : row.end], nl.uint32)
        got = nl.ndarray((row.size, n), dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_n_gather(dst=got, data=load(x[row.start : row.end]), indices=at)
        nisa.dma_copy(dst=out[row.start : row.end], src=got)
    return out


@nki.jit
def local_columns(x, index, each: int = 4):
    """Groups of 16 rows share their column numbers (16, n / 16), `each` columns a number."""
    rows, _width = x.shape
    n = 16 * index.shape[1]
    out = nl.ndarray((rows, n * each), dtype=x.dtype, buffer=nl.shared_hbm)
    numbers = nl.ndarray((rows, index.shape[1]), dtype=nl.uint16, buffer=nl.sbuf)
    for group in range(rows // 16):
        nisa.dma_copy(dst=numbers[16 * group : 16 * group + 16, :], src=index)
    tile = load(x)
    got = nl.ndarray((rows, n, each), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(
        dst=got,
        src_buffer=tile,
        index=numbers,
        num_elem_per_idx=each,
        num_valid_indices=n,
    )
    nisa.dma_copy(dst=out, src=got.reshape((rows, n * each)))
    return out


@nki.jit
def permuted_axes(x):
    """(a, b, c) as (c, b, a) and (b, a, c), by DMA."""
    a, b, c = x.shape
    first = nl.ndarray((c, b, a), dtype=x.dtype, buffer=nl.shared_hbm)
    second = nl.ndarray((b, a, c), dtype=x.dtype, buffer=nl.shared_hbm)
    across = nl.ndarray((c, b, a), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=across, src=x, axes=(2, 1, 0))
    nisa.dma_copy(dst=first, src=across)
    nisa.dma_copy(dst=second, src=x.permute((1, 0, 2)))
    return {"first": first, "second": second}["first"], second


@nki.jit
def returned_views(x):
    """A reshape of the output, a part of it, and the argument itself."""
    rows, width = x.shape
    out = nl.ndarray((2, rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = load(x)
    nisa.dma_copy(dst=out[0], src=tile)
    nisa.activation(dst=tile, op=nl.square, data=tile)
    nisa.dma_copy(dst=out[1], src=tile)
    return out.reshape((2 * rows, width)), out[1, :, 0 : width // 2], x


@nki.jit
def four_axes_copied(x):
    """A tile whose four free axes are walked in another order, by a copy that ACT or DVE may do."""
    rows, a, b, c, d = x.shape
    out = nl.ndarray((rows, d, b, c, a), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = load(x)
    turned = nl.ndarray(out.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(turned, tile.permute((0, 4, 2, 3, 1)))
    scaled = nl.ndarray(out.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(scaled, turned[:, :, :, :, :], engine=nisa.engine.scalar)
    nisa.dma_copy(out.reshape((rows, a * b * c * d)), scaled.reshape((rows, a * b * c * d)))
    return out


@nki.jit
def added_through_views(x, y):
    """x with every second column of every second plane of y added to it, by a DMA."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, x)
    places = out.permute((0, 2, 1, 3))
    given = y[:, 0::2, :, 0::2].permute((0, 2, 1, 3))
    nisa.dma_compute(places, [places, given], nl.add)
    return out


@nki.jit
def transposed_anywhere(x):
    """The transposing DMA writes a tile whose address is no multiple of 32."""
    rows, width = x.shape
    out = nl.ndarray((width, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((width, rows), dtype=x.dtype, buffer=nl.sbuf, address=(0, 1032))
    nisa.dma_transpose(dst=tile, src=x)
    nisa.dma_copy(out, tile)
    return out
