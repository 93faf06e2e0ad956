"""Loops of the device whose bounds, ends and offsets are data."""

import nki
import nki.isa as nisa
import nki.language as nl


def held(count):
    """The one number of an int32 tensor, as a number that the machine computes with."""
    tile = nl.ndarray(count.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=count)
    return nisa.scalar_load(tile[0:1, 0:1])


@nki.jit
def product_of_first(a, b, count):
    """Σ a[i]ᵀ b[i] over the first count blocks: a group in each turn, the sum in SBUF."""
    _, depth, rows = a.shape
    columns = b.shape[2]
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((rows, columns), dtype=nl.float32, buffer=nl.sbuf)

    def body(i):
        left = nl.ndarray((depth, rows), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((depth, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(
            dst=left, src=a.ap([[rows, depth], [1, rows]], scalar_offset=i, indirect_dim=0)
        )
        nisa.dma_copy(
            dst=right, src=b.ap([[columns, depth], [1, columns]], scalar_offset=i, indirect_dim=0)
        )
        acc = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=acc, stationary=left, moving=right)
        part = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=part, op=nl.copy, data=acc)
        nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)

    nl.fori_loop(0, held(count), body)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def carried_product(a, b, count):
    """The same, and the sum stays in PSUM from turn to turn."""
    _, depth, rows = a.shape
    columns = b.shape[2]
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.zeros((rows, columns), dtype=nl.float32, buffer=nl.psum)

    def body(i):
        left = nl.ndarray((depth, rows), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((depth, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(
            dst=left, src=a.ap([[rows, depth], [1, rows]], scalar_offset=i, indirect_dim=0)
        )
        nisa.dma_copy(
            dst=right, src=b.ap([[columns, depth], [1, columns]], scalar_offset=i, indirect_dim=0)
        )
        nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=True)
        other = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=other, stationary=left, moving=right, accumulate=False)
        nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=True)

    nl.fori_loop(0, held(count), body)
    got = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=got, src=acc)
    nisa.dma_copy(dst=out, src=got)
    return out


@nki.jit
def shifted_rows(x, starts):
    """Row i of the result is row starts[0, i] of x, for as many as starts[1, 0] says."""
    width = x.shape[1]
    most = starts.shape[1]
    out = nl.ndarray((most, width), dtype=x.dtype, buffer=nl.shared_hbm)
    empty = nl.zeros((most, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=out, src=empty)
    bound, at = nisa.register_alloc(), nisa.register_alloc()
    nisa.register_load(bound, starts[1:2, 0:1])
    for i in nl.dynamic_range(0, bound):
        nisa.register_load(at, starts[0:1, nl.ds(i, 1)])
        row = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=x[nl.ds(at, 1), 0:width])
        nisa.activation(dst=row, op=nl.exp, data=row)
        nisa.dma_copy(dst=out[nl.ds(i, 1), 0:width], src=row)
    return out


@nki.jit
def triangle(x, count):
    """Two loops, the inner one as long as the outer index: t += x, count (count - 1) / 2 times."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    outer = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    total = nl.zeros(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    seen = nisa.register_alloc(0)
    number = held(count)

    def body(i):
        def inner(j):
            nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
            nisa.register_move(seen, i * 10 + j)

        nl.fori_loop(0, i, inner)

    nl.fori_loop(0, number, body)
    nisa.register_store(outer[0:1, 0:1], seen)
    nisa.scalar_store(outer[0:1, 1:2], number * 3 - 1)
    nisa.dma_copy(dst=out, src=total)
    return out, outer


@nki.jit
def collatz(start):
    """How many steps the sequence takes from start to 1: an end that only the data knows."""
    out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    value = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=value, src=start)
    steps = nl.zeros((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    one = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1)

    def changed(dst, src, operand, op):
        nisa.tensor_scalar(dst=dst, data=src, op0=op, operand0=operand)

    def left():
        tile = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        changed(tile, value, 1, nl.subtract)
        register = nisa.register_alloc()
        nisa.register_load(register, tile)
        return register

    def body(_):
        odd = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        half = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        more = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        changed(odd, value, 1, nl.bitwise_and)
        changed(half, value, 1, nl.right_shift)
        # half + odd · (3 value + 1 − half)
        nisa.tensor_scalar(
            dst=more, data=value, op0=nl.multiply, operand0=3, op1=nl.add, operand1=1
        )
        nisa.tensor_tensor(dst=more, data1=more, data2=half, op=nl.subtract)
        nisa.tensor_tensor(dst=more, data1=more, data2=odd, op=nl.multiply)
        nisa.tensor_tensor(dst=value, data1=half, data2=more, op=nl.add)
        nisa.tensor_tensor(dst=steps, data1=steps, data2=one, op=nl.add)
        return left()

    nl.while_loop(left(), body)
    nisa.dma_copy(dst=out, src=steps)
    return out


@nki.jit
def exchanged(x, count):
    """Each core has half of the rows; in every turn they scale them and change sides."""
    rows, width = x.shape
    half, me = rows // 2, nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((half, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[nl.ds(me * half, half)])

    def body(_):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.5)
        nisa.dma_copy(dst=between[nl.ds(me * half, half)], src=tile)
        nisa.core_barrier(data=between, cores=(0, 1))
        nisa.dma_copy(dst=tile, src=between[nl.ds((1 - me) * half, half)])
        nisa.core_barrier(data=between, cores=(0, 1))

    nl.fori_loop(0, held(count), body)
    nisa.dma_copy(dst=out[nl.ds(me * half, half)], src=tile)
    return out
