"""The kernels of rules 360 to 389: what breaks each of them, and the same repaired."""

from __future__ import annotations

from ncc.rules.nki_examples import RUN, old

FIELDS = """import nki
import nki.language as nl

class Config(nl.NKIObject):
    rows: int

@nki.jit
def kernel(x):
    config = Config(FIELD=64)
    return x
"""
SHARED = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="out")
    y = nl.ndarray((64, ROWS), nl.float32, buffer=nl.shared_hbm, name="y")
    nisa.dma_copy(dst=out, src=x)
    return out
"""
LINES: dict[str, tuple[str, ...]] = {
    "NCC360": (
        "y = nl.load(x[nl.arange(64), :])",
        "y = nl.load(x[0:64, :])",
    ),
    "NCC361": (
        "y = nl.add(t, [1, 2])",
        "y = nl.add(t, 1)",
    ),
    "NCC362": (
        "y = nl.add(t, t[:, 0:4])",
        "y = nl.add(t[:, 4:8], t[:, 0:4])",
    ),
    "NCC363": (
        """
        for k in nl.affine_range(32 / 8):
            nisa.memset(dst=t[:, k * 8 : k * 8 + 8], value=0.0)
        """,
        """
        for k in nl.affine_range(32 // 8):
            nisa.memset(dst=t[:, k * 8 : k * 8 + 8], value=0.0)
        """,
    ),
    "NCC364": (
        """
        r = nisa.register_alloc(3)
        for k in range(r):
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        """,
        """
        def body(k):
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)

        nl.fori_loop(0, nisa.register_alloc(3), body)
        """,
    ),
    "NCC365": (
        "y = nl.sum(t, axis=0)",
        "y = nl.sum(t, axis=1)",
    ),
    "NCC366": (
        "core = nl.program_id(1)",
        "core = nl.program_id(0)",
    ),
    "NCC367": (
        """
        import nki.collectives as ncc

        ncc.all_reduce([x], [out], ncc.ReplicaGroup([[0, 1]]), nl.add)
        """,
        "nisa.dma_copy(dst=t, src=x)",
    ),
    "NCC368": (
        """
        import nki.collectives as ncc

        y = nl.ndarray((64, 32), nl.float32, buffer=nl.shared_hbm, name="y")
        z = nl.ndarray((64, 32), nl.float32, buffer=nl.shared_hbm, name="z")
        ncc.all_reduce([y], [z], ncc.ReplicaGroup([[0, 1]]), nl.add)
        """,
        "nisa.tensor_copy(dst=t, src=t)",
    ),
    "NCC369": (FIELDS.replace("FIELD", "row"), FIELDS.replace("FIELD", "rows")),
    "NCC370": (
        old("y = nl.load(x[nl.arange(64), nl.arange(32)])"),
        old("y = nl.load(x[nl.arange(64)[:, None], nl.arange(32)[None, :]])"),
    ),
    "NCC371": (
        old("y = nl.load(x[ip, jf % 7])"),
        old("y = nl.load(x[ip, jf // 1])"),
    ),
    "NCC372": (
        old("y = nl.load(x[ip, jf], mask=(ip < 8) | (jf < 4))"),
        old("y = nl.load(x[ip, jf], mask=(ip < 8) & (jf < 4))"),
    ),
    "NCC373": (
        old("y = nl.add(t, t, mask=(nl.arange(16)[None, :] < 4))"),
        old("y = nl.add(t, t, mask=(jf < 4))"),
    ),
    "NCC374": (
        old("t.assert_shape((64, 31))"),
        old("t.assert_shape((64, 32))"),
    ),
    "NCC375": (
        old(
            """
            y = nl.ndarray((2, nl.par_dim(64), 32), dtype=nl.float32, buffer=nl.sbuf)
            z = y.reshape((128, 32))
            """
        ),
        old(
            """
            y = nl.ndarray((2, nl.par_dim(64), 32), dtype=nl.float32, buffer=nl.sbuf)
            z = y.reshape((2, 64, 4, 8))
            """
        ),
    ),
    "NCC376": (
        old("t = nl.all_reduce(t, nl.add, program_axes=[0])") + "\n\nfour = kernel[4]\n",
        old("t = nl.all_reduce(t, nl.add, program_axes=[0])") + "\n\nfour = kernel[1]\n",
        RUN.replace(":kernel", ":four"),
    ),
    "NCC377": (
        old('nisa.builtin_custom_op("double", [t], [t], [])'),
        old("t = nl.multiply(t, 2)"),
    ),
    "NCC382": (
        SHARED.replace("ROWS", "32 + nl.program_id(0)"),
        SHARED.replace("ROWS", "32"),
        f"{RUN} --lnc 2",
    ),
}
