# intent: a kernel for two cores, which meet at a barrier and exchange a tile
# kernel: pair
# arg: x=f32[8,6]
# expect penguin-to-bir: 1 NKIKLIRKernel, `lnc_size=2`
# expect lnc-split: 2 NKIKLIRKernel, `core 1`, `core=1`
# expect translate-nki: `func=halves_1`
# expect inline-kernels: 4 CoreBarrier, 2 TensorScalar, `kind=InternalInterface`
# expect lnc-barriers: `cores=(0,1) id=2`
# expect encode: 4 CoreBarrier, `kind=shared`
# expect pack: `sg01/def.json`, `"lnc_size": 2`
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def halves(x):
    """Each core doubles one half of x, and returns the other's half added to what it sends."""
    rows, columns = x.shape
    core, mine = nl.program_id(0), rows // 2
    other = 1 - core
    out = nl.ndarray((rows, columns), x.dtype, buffer=nl.shared_hbm, name="out")
    held = nl.ndarray((rows, columns), x.dtype, buffer=nl.shared_hbm, name="held")
    tile = nl.ndarray((mine, columns), x.dtype, buffer=nl.sbuf, name="tile")
    theirs = nl.ndarray((mine, columns), x.dtype, buffer=nl.sbuf, name="theirs")
    nisa.dma_copy(dst=tile, src=x[mine * core : mine * core + mine])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=held[mine * core : mine * core + mine], src=tile)
    nisa.sendrecv(src=tile, dst=theirs, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    nisa.core_barrier(held, (0, 1))
    nisa.dma_copy(dst=tile, src=held[mine * other : mine * other + mine])
    nisa.tensor_tensor(dst=tile, data1=tile, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[mine * core : mine * core + mine], src=tile)
    return out


pair = halves[2]
