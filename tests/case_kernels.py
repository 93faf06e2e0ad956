"""The kernels of the cases H01 to H10, in today's API."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def three_wide(A, B):
    """H01."""
    C = nl.ndarray(A.shape, A.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="a")
    b = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="b")
    c = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="c")
    nisa.dma_copy(dst=a, src=A)
    nisa.dma_copy(dst=b, src=B)
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=C, src=c)
    return C


@nki.jit
def two_wide(A, B):
    """H01, the sum written over one of its operands."""
    C = nl.ndarray(A.shape, A.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="a")
    b = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="b")
    nisa.dma_copy(dst=a, src=A)
    nisa.dma_copy(dst=b, src=B)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=C, src=a)
    return C


@nki.jit
def one_product(w, x):
    """H02 (a): 1024 columns in one product."""
    out = nl.ndarray((128, 1024), nl.float32, buffer=nl.shared_hbm)
    w_t, x_t = nl.load(w), nl.load(x)
    p = nl.ndarray((128, 1024), nl.float32, buffer=nl.psum, name="p")
    nisa.nc_matmul(p, w_t, x_t)
    nl.store(out, nl.copy(p))
    return out


@nki.jit
def two_products(w, x):
    """H02 (b): the same as two products."""
    out = nl.ndarray((128, 1024), nl.float32, buffer=nl.shared_hbm)
    w_t, x_t = nl.load(w), nl.load(x)
    p = nl.ndarray((128, 1024), nl.float32, buffer=nl.psum, name="p")
    nisa.nc_matmul(p[:, 0:512], w_t, x_t[:, 0:512])
    nisa.nc_matmul(p[:, 512:1024], w_t, x_t[:, 512:1024])
    nl.store(out, nl.copy(p))
    return out


@nki.jit
def many_sums(w, x, count):
    """H02 (c): `count` sums of a bank each that grow at once."""
    out = nl.ndarray((count, 128, 512), nl.float32, buffer=nl.shared_hbm)
    w_t, x_t = nl.load(w), nl.load(x)
    sums = []
    for n in range(count):
        sums.append(nl.ndarray((128, 512), nl.float32, buffer=nl.psum, name=f"p{n}"))
    for half in range(2):
        for one in sums:
            nisa.nc_matmul(one, w_t, x_t[:, 512 * half : 512 * half + 512])
    for n, one in enumerate(sums):
        nl.store(out[n], nl.copy(one))
    return out


@nki.jit
def rows(x, count):
    """H03: more rows than there are partitions."""
    out = nl.ndarray((count, 64), nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((count, 64), nl.float32, buffer=nl.sbuf, name="t")
    nisa.dma_copy(dst=t, src=x[0:count, :])
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def reused(A, address=None):
    """H07: one tile, used by four iterations."""
    out = nl.ndarray(A.shape, A.dtype, buffer=nl.shared_hbm, name="O")
    tmp = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf, name="tmp", address=address)
    for i in range(4):
        nisa.dma_copy(dst=tmp, src=A[i])
        nisa.tensor_scalar(dst=tmp, data=tmp, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[i], src=tmp)
    return out


@nki.jit
def overlap(w, x, parts):
    """H08: a product over all columns, begun in `parts` writes, and another over the right half."""
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    w_t, x_t = nl.load(w), nl.load(x)
    p = nl.ndarray((128, 512), nl.float32, buffer=nl.psum, name="p")
    width = 512 // parts
    for n in range(parts):
        part = slice(width * n, width * n + width)
        nisa.nc_matmul(p[:, part], w_t, x_t[:, part])
    nisa.nc_matmul(p[:, 256:512], w_t, x_t[:, 512:768])
    nl.store(out, nl.copy(p))
    return out


@nki.jit
def beside(w, x):
    """H08's kind: a product beside a value that its START would zero."""
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    w_t, x_t = nl.load(w), nl.load(x)
    p = nl.ndarray((128, 256), nl.float32, buffer=nl.psum, name="p", address=(0, 0))
    q = nl.ndarray((128, 256), nl.float32, buffer=nl.psum, name="q", address=(0, 1024))
    nisa.tensor_copy(dst=q, src=x_t[:, 0:256])
    nisa.nc_matmul(p, w_t, x_t[:, 256:512])
    both = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=both[:, 0:256], src=p)
    nisa.tensor_copy(dst=both[:, 256:512], src=q)
    nl.store(out, both)
    return out


@nki.jit
def by_pairs(src, end):
    """H09: columns copied two by two by a device loop."""
    out = nl.ndarray((32, 16), nl.float32, buffer=nl.shared_hbm)
    source = nl.load(src)
    dst = nl.ndarray((32, 16), nl.float32, buffer=nl.sbuf, name="dst")
    nisa.memset(dst=dst, value=-1.0)
    for r in nl.dynamic_range(0, end, 2):
        nisa.tensor_copy(dst=dst[:, nl.ds(r, 2)], src=source[:, nl.ds(r, 2)])
    nl.store(out, dst)
    return out


@nki.jit
def by_pairs_of_scalars(src, end):
    """H09, written as `dst[:, r : r + 2]`."""
    out = nl.ndarray((32, 16), nl.float32, buffer=nl.shared_hbm)
    source = nl.load(src)
    dst = nl.ndarray((32, 16), nl.float32, buffer=nl.sbuf, name="dst")
    nisa.memset(dst=dst, value=-1.0)

    def body(r):
        nisa.tensor_copy(dst=dst[:, r : r + 2], src=source[:, r : r + 2])

    nl.fori_loop(0, end, body, 2)
    nl.store(out, dst)
    return out


@nki.jit
def by_pairs_of_registers(src):
    """H09: `r + 2` of a register, which earlier releases cannot form."""
    source = nl.load(src)
    for r in nl.dynamic_range(0, 16, 2):
        nisa.tensor_copy(dst=source[:, r : r + 2], src=source[:, r : r + 2])
    return src


@nki.jit
def by_pairs_up_to(src, end):
    """H09, the end read from a tensor."""
    out = nl.ndarray((32, 16), nl.float32, buffer=nl.shared_hbm)
    source, last = nl.load(src), nl.load(end)
    dst = nl.ndarray((32, 16), nl.float32, buffer=nl.sbuf, name="dst")
    nisa.memset(dst=dst, value=-1.0)
    stop = nisa.register_alloc(0)
    nisa.register_load(dst=stop, src=last)
    for r in nl.dynamic_range(0, stop, 2):
        nisa.tensor_copy(dst=dst[:, nl.ds(r, 2)], src=source[:, nl.ds(r, 2)])
    nl.store(out, dst)
    return out


@nki.jit
def exact(a, b):
    """H10: integers that are multiplied as integers."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.multiply)
    nl.store(out, x)
    return out


@nki.jit
def rounded(a, b):
    """H10: the same on the vector engine, which computes in float32."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.multiply, engine=nisa.engine.vector)
    nl.store(out, x)
    return out
