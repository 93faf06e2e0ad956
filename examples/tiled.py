"""A tiled product in the older API, whose loops stay loops."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def tiled(x, y):
    """xᵀ · y, in tiles of 128 × 512 and steps of 128 rows; the sizes are their multiples."""
    depth, rows = x.shape
    columns = y.shape[1]
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(rows // 128):
        for n in nl.affine_range(columns // 512):
            acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(depth // 128):
                left = nl.load(x[nl.ds(k * 128, 128), nl.ds(m * 128, 128)])
                right = nl.load(y[nl.ds(k * 128, 128), nl.ds(n * 512, 512)])
                acc += nl.matmul(left, right, transpose_x=True)
            done = nl.copy(acc, dtype=out.dtype)
            nl.store(out[nl.ds(m * 128, 128), nl.ds(n * 512, 512)], value=done)
    return out
