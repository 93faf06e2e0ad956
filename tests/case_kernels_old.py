"""The kernels of the cases H03 and H04, in the older API."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def rows(x, count):
    """H03: more rows than there are partitions."""
    out = nl.ndarray((count, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x[0:count, :]))
    return out


@nki.jit
def masked(x):
    """H04: rows 0 to 69 and columns 3 to 299 of x, 7 elsewhere."""
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.full((128, 512), 7.0, dtype=nl.float32))
    ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]
    mask = (ip < 70) & (jf < 300) & (jf >= 3)
    v = nl.load(x[ip, jf], mask=mask)
    nl.store(out[ip, jf], v, mask=mask)
    return out


@nki.jit
def either(x):
    """H04: masks joined with `|`."""
    ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]
    v = nl.load(x[ip, jf], mask=(ip < 70) | (jf < 300))
    return v


@nki.jit
def by_data(x):
    """H04: a mask on the values of a tile."""
    v = nl.load(x)
    w = nl.load(x, mask=v > 0)
    return w
