# intent: a kernel by hand, with one address of its own, one tile that reuses bytes, and a loop
# kernel: exp_product
# arg: lhs_t=f32[32,16]
# arg: rhs=f32[32,24]
# expect nki-trace: 1 KernelNode, `i2 = nisa.nc_matmul(dst=acc, stationary=left, moving=right`
# expect nki-seal: `sealed=True`
# expect penguin-to-bir: 1 NKIKLIRKernel
# expect translate-nki: no NKIKLIRKernel, 1 NKIKernel
# expect inline-kernels: no NKIKernel, 1 Matmult, `pinned=true`
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def exp_product(lhs_t, rhs):
    """exp of the product of two small matrices, the left one transposed."""
    out = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.shared_hbm, name="out")
    left = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.sbuf, name="left", address=(0, 0))
    right = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.sbuf, name="right")
    acc = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.psum, name="acc")
    nisa.dma_copy(dst=left, src=lhs_t)
    nisa.dma_copy(dst=right, src=rhs)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.sbuf, name="result", address=(0, 32))
    for half in nl.affine_range(2):
        columns = nl.ds(12 * half, 12)
        nisa.activation(dst=result[:, columns], op=nl.exp, data=acc[:, columns])
    nisa.dma_copy(dst=out, src=result)
    return out


# expect lower-select: no Select, 1 Matmult
# expect check-dve-profile: 1 Matmult
