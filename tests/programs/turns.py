# intent: a loop of the machine, whose end and offsets only it knows: blocks, branches and registers
# kernel: sum_of_first
# arg: x=f32[3,16,8]
# arg: count=int32[1,1]
# expect translate-nki: 1 DynamicForLoop, 1 TensorLoad, 1 IndirectLoad
# expect lower-branches: no DynamicForLoop, 2 CompareAndBranch, 2 AllEngineBarrier, 1 RegisterAlu
# expect liveness: `total SB (16,32) live=`
# expect expand-engines: 8 CompareAndBranch, 8 AllEngineBarrier, `IS_LTREG`
# expect alloc-regs: `%r0:int32`, `%r1:int32`
# expect encode: 8 CompareAndBranch, 2 EventSemaphoreRangeClear
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def sum_of_first(x, count):
    """The sum of as many blocks as count says."""
    out = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm, name="out")
    total = nl.zeros((16, 8), dtype=nl.float32, buffer=nl.sbuf, name="total")
    bound = nisa.register_alloc()
    nisa.register_load(bound, count)
    for i in nl.dynamic_range(0, bound):
        tile = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.sbuf, name="tile")
        block = x.ap([[8, 16], [1, 8]], scalar_offset=i, indirect_dim=0)
        nisa.dma_copy(dst=tile, src=block)
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out
