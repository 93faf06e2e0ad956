"""One block of online softmax: attention of 128 queries, 128 keys at a time."""

import nki
import nki.isa as nisa
import nki.language as nl

KEYS = 128  # keys a step: one a partition when P is transposed


def column():
    return nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)


@nki.jit
def flash(q, k, v):
    """softmax(q·kᵀ / √d) · v for 128 queries q [128, d], keys k and values v [n, d]."""
    rows, d = q.shape
    out = nl.ndarray((rows, d), q.dtype, buffer=nl.shared_hbm, name="out")
    qt = nl.ndarray((d, rows), q.dtype, buffer=nl.sbuf, name="qt")
    nisa.dma_transpose(qt, q)
    m, total = column(), column()  # -maximum, and the sum of the exponentials
    o = nl.ndarray((rows, d), nl.float32, buffer=nl.sbuf, name="o")
    for at in range(0, k.shape[0], KEYS):
        kt = nl.ndarray((d, KEYS), q.dtype, buffer=nl.sbuf, name=f"kt{at}")
        nisa.dma_transpose(kt, k[at : at + KEYS, :])
        vt = nl.ndarray((KEYS, d), q.dtype, buffer=nl.sbuf, name=f"v{at}")
        nisa.dma_copy(vt, v[at : at + KEYS, :])

        product = nl.ndarray((rows, KEYS), nl.float32, buffer=nl.psum, name=f"qk{at}")
        nisa.nc_matmul(product, qt, kt)
        s = nl.ndarray((rows, KEYS), nl.float32, buffer=nl.sbuf, name=f"s{at}")
        top, new = column(), column()
        nisa.tensor_scalar_reduce(s, product, nl.multiply, d**-0.5, nl.maximum, top)
        nisa.tensor_scalar(top, top, nl.multiply, -1.0)
        if at:
            nisa.tensor_tensor(new, m, top, nl.minimum)  # -max(a, b) = min(-a, -b)
        else:
            nisa.tensor_copy(new, top)

        p = nl.ndarray((rows, KEYS), q.dtype, buffer=nl.sbuf, name=f"p{at}")
        part = column()
        nisa.activation(
            p,
            nl.exp,
            s,
            bias=new,
            reduce_op=nl.add,
            reduce_res=part,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        pt = nl.ndarray((KEYS, rows), q.dtype, buffer=nl.sbuf, name=f"pt{at}")
        nisa.dma_transpose(pt, p)
        pv = nl.ndarray((rows, d), nl.float32, buffer=nl.psum, name=f"pv{at}")
        nisa.nc_matmul(pv, pt, vt)

        if at:
            alpha = column()
            nisa.activation(alpha, nl.exp, m, bias=new, scale=-1.0)  # exp(old - new)
            nisa.scalar_tensor_tensor(total, total, nl.multiply, alpha, nl.add, part)
            nisa.scalar_tensor_tensor(o, o, nl.multiply, alpha, nl.add, pv)
        else:
            nisa.tensor_copy(total, part)
            nisa.tensor_copy(o, pv)
        m = new
    inverse = column()
    nisa.reciprocal(inverse, total)
    result = nl.ndarray((rows, d), q.dtype, buffer=nl.sbuf, name="result")
    nisa.tensor_scalar(result, o, nl.multiply, inverse)
    nisa.dma_copy(out, result)
    return out
