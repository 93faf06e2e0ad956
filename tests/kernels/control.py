"""Loops of the device, registers, and two cores that meet."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import P_MAX, load, program_info, tiles_of


@nki.jit
def scaled_blocks(x, factor: float):
    """Block after block by fori_loop; the state lies in SBUF."""
    rows, width = x.shape
    blocks = rows // P_MAX
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((P_MAX, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((P_MAX, 1), dtype=nl.float32, buffer=nl.sbuf)

    def body(i):
        tile = nl.ndarray((P_MAX, width), dtype=x.dtype, buffer=nl.sbuf)
        view = x.reshape((blocks, P_MAX, width))
        nisa.dma_copy(
            dst=tile,
            src=view.ap([[width, P_MAX], [1, width]], scalar_offset=i, indirect_dim=0),
        )
        nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=factor)
        part = nl.ndarray((P_MAX, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(part, nl.add, tile, axis=1)
        nisa.tensor_tensor(total, total, part, op=nl.add)
        nisa.dma_copy(
            dst=out.reshape((blocks, P_MAX, width)).ap(
                [[width, P_MAX], [1, width]], scalar_offset=i, indirect_dim=0
            ),
            src=tile,
        )

    nl.fori_loop(0, blocks, body)
    nisa.dma_copy(sums, total)
    return out, sums


@nki.jit
def sum_of_first(x, count):
    """The sum of the first count[0, 0] blocks of x (blocks, 128, width): bound known at run time."""
    _blocks, rows, width = x.shape
    out = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((rows, width), dtype=nl.float32)
    limit = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=limit, src=count)
    bound = nisa.register_alloc()
    nisa.register_load(bound, limit)
    for i in nl.dynamic_range(0, bound):
        tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(
            dst=tile,
            src=x.ap([[width, rows], [1, width]], scalar_offset=i, indirect_dim=0),
        )
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def halve_until(x, steps):
    """x / 2 ** steps[0, 0], by a loop that ends when the count is 0."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, left = load(x), load(steps)
    first = nisa.register_alloc(left)

    def body(register):
        nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=0.5)
        nisa.tensor_scalar(left, left, op0=nl.subtract, operand0=1)
        again = nisa.register_alloc()
        nisa.register_load(again, left)
        return again

    nl.while_loop(first, body)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def sum_on_both(x):
    """Each core sums its half of the rows, the cores swap, and each writes half of the columns."""
    programs, me = program_info("sum_on_both")
    rows, width = x.shape
    out = nl.ndarray((P_MAX, width), dtype=nl.float32, buffer=nl.shared_hbm)
    mine = nl.zeros((P_MAX, width), dtype=nl.float32)
    blocks = tiles_of(rows, P_MAX)
    for block in blocks[me::programs]:
        nisa.tensor_tensor(mine, mine, load(x[block.start : block.end], nl.float32), op=nl.add)
    if programs > 1:
        theirs = nl.ndarray(mine.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
        nisa.tensor_tensor(mine, mine, theirs, op=nl.add)
    share = width // programs
    at = nl.ds(me * share, share)
    nisa.dma_copy(dst=out[:, at], src=mine[:, at])
    return out


@nki.jit
def through_shared_memory(x):
    """Core 0 writes the doubled rows, both wait, and each reads what the other half needs."""
    programs, me = program_info("through_shared_memory")
    rows, width = x.shape
    middle = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm, name="middle")
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm, name="turned")
    half = rows // programs
    tile = load(x[me * half : me * half + half])
    nisa.activation(dst=tile, op=nl.copy, data=tile, scale=2.0)
    nisa.dma_copy(dst=middle[nl.ds(me * half, half), :], src=tile)
    if programs == 2:
        nisa.core_barrier(middle, (0, 1))
    other = programs - 1 - me
    again = load(middle[other * half : other * half + half])
    nisa.dma_copy(dst=out[nl.ds(me * half, half), :], src=again)
    return out


@nki.jit
def windows(x, starts, size: int = 8):
    """Window i of each row begins at starts[i]; twice it goes to the same place of the result."""
    rows, width = x.shape
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, begin = load(x), load(starts)
    made = nl.zeros((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(starts.shape[1]):
        at = nisa.register_alloc(begin[:, i : i + 1])
        view = {"pattern": [[width, rows], [1, size]], "scalar_offset": at, "indirect_dim": 1}
        nisa.tensor_tensor(
            dst=made.ap(**view), data1=tile.ap(**view), data2=tile.ap(**view), op=nl.add
        )
    nisa.dma_copy(dst=out, src=made)
    return out


@nki.jit
def chosen_block_product(a, b, block, size: int = 10):
    """a.T times the columns of b that a block number chooses while the kernel runs."""
    k, m = a.shape
    blocks = b.shape[1] // size
    out = nl.ndarray((m, size), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right, number = load(a), load(b).reshape((k, blocks, size)), load(block)
    acc = nl.ndarray((m, size), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(acc, left, right.select(1, number))
    nisa.dma_copy(dst=out, src=nl.copy(acc))
    return out
