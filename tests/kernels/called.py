import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def addto(acc, x, factor=1.0):
    t = nl.ndarray(acc.shape, acc.dtype, buffer=nl.sbuf)
    u = nl.ndarray(x.shape, acc.dtype, buffer=nl.sbuf)
    nisa.dma_copy(t, acc)
    nisa.dma_copy(u, x)
    nisa.tensor_scalar(u, u, nl.multiply, factor)
    nisa.tensor_tensor(t, t, u, nl.add)
    nisa.dma_copy(acc, t)
    return acc


@nki.jit
def both(x, y):
    s = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    p = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(a, x)
    nisa.dma_copy(b, y)
    c = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    d = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_tensor(c, a, b, nl.add)
    nisa.tensor_tensor(d, a, b, nl.multiply)
    nisa.dma_copy(s, c)
    nisa.dma_copy(p, d)
    return s, p
