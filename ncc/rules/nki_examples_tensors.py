"""The kernels of rules 310 to 329: what breaks each of them, and the same repaired."""

from __future__ import annotations

OTHER_RUN = """import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

kept = []

@nki.jit
def first(x):
    kept.append(nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="kept"))
    return x

nki.simulate(first)(np.zeros((64, 32), np.float32))

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="out")
    t = TILE
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=out, src=t)
    return out
"""
LINES: dict[str, tuple[str, ...]] = {
    "NCC310": (
        "y = nl.ndarray((256, 32), nl.float32, buffer=nl.sbuf)",
        "y = nl.ndarray((128, 2, 32), nl.float32, buffer=nl.sbuf)",
    ),
    "NCC311": (
        "y = nl.ndarray((32,), nl.float32, buffer=nl.sbuf)",
        "y = nl.ndarray((1, 32), nl.float32, buffer=nl.sbuf)",
    ),
    "NCC312": (
        'y = nl.ndarray((64, 32), "float64")',
        'y = nl.ndarray((64, 32), "float32")',
    ),
    "NCC313": (
        "nisa.memset(dst=t[:, 32 / 2], value=0.0)",
        "nisa.memset(dst=t[:, 32 // 2], value=0.0)",
    ),
    "NCC314": (
        "nisa.memset(dst=t[:, 16:40], value=0.0)",
        "nisa.memset(dst=t[:, 16 : min(40, 32)], value=0.0)",
    ),
    "NCC315": (
        "nisa.memset(dst=t[10:20, :], value=0.0)",
        "nisa.memset(dst=t[32:42, :], value=0.0)",
    ),
    "NCC316": (
        "nisa.memset(dst=t.reshape((32, 64)), value=0.0)",
        "nisa.memset(dst=t.reshape((64, 4, 8)), value=0.0)",
    ),
    "NCC317": (
        """
        if t[0, 0] < 0:
            nisa.memset(dst=t, value=0.0)
        """,
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.maximum, operand0=0.0)",
    ),
    "NCC318": (
        """
        kept = []

        def body(n):
            kept.append(nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf))
            nisa.tensor_copy(dst=kept[0], src=t)

        nl.fori_loop(0, 4, body)
        nisa.tensor_copy(dst=t, src=kept[0])
        """,
        """
        kept = [nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf)]

        def body(n):
            nisa.tensor_copy(dst=kept[0], src=t)

        nl.fori_loop(0, 4, body)
        nisa.tensor_copy(dst=t, src=kept[0])
        """,
    ),
    "NCC319": (
        OTHER_RUN.replace("TILE", "kept[0]"),
        OTHER_RUN.replace("TILE", "nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)"),
    ),
    "NCC320": (
        'y = nl.ndarray((64, 32), nl.float32, buffer="sbuf")',
        "y = nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf)",
    ),
    "NCC321": (
        "nisa.memset(dst=t.ap([32, 64]), value=0.0)",
        "nisa.memset(dst=t.ap([[32, 64], [1, 32]]), value=0.0)",
    ),
    "NCC322": (
        "nisa.tensor_copy(dst=t[:, 0:2], src=t[:, nl.ds(t[0:1, 0:1], 2)])",
        """
        nisa.memset(dst=i, value=7)
        nisa.tensor_copy(dst=t[:, 0:2], src=t[:, nl.ds(i[0:1, 0:1], 2)])
        """,
    ),
    "NCC323": (
        "nisa.tensor_copy(dst=t[:, 0:16], src=t.indirect(i[:, 0:1], 16))",
        """
        places = nl.ndarray((64, 16), nl.uint32, buffer=nl.sbuf)
        nisa.memset(dst=places, value=7)
        nisa.nc_n_gather(dst=t[:, 0:16], data=t, indices=places)
        """,
    ),
    "NCC324": (
        "t[:, 0:16] = t[:, 16:32] + 1",
        "nisa.tensor_scalar(dst=t[:, 0:16], data=t[:, 16:32], op0=nl.add, operand0=1)",
    ),
    "NCC325": (
        "y = nl.full((64, 32), 0.5, nl.int32)",
        "y = nl.full((64, 32), 0.5, nl.float32)",
    ),
    "NCC326": (
        "y = nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf, address=(96, 0))",
        "y = nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf, address=(64, 0))",
    ),
}
