"""The kernels of rules 3: of each rule a line or a few that break it, and the same repaired.

They stand in a kernel that has its input in the tile `t` (64 partitions of 32 elements), and PSUM
tiles `p` and `q` of the same shape, a column `c` and an int32 tile `i` beside it.
"""

from __future__ import annotations

from textwrap import dedent, indent

from ncc.rules import Rule

RUN = "run FILE:kernel --arg x=f32[64,32] --at penguin"
KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), nl.float32, buffer=nl.shared_hbm, name="out")
    t = nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf, name="t")
LINES
    nisa.dma_copy(dst=out, src=t)
    return out
"""
# tiles that some examples use beside `t`; each kernel allocates those that it names
TILES = {
    "b": 'nl.ndarray((64, 32), nl.bfloat16, buffer=nl.sbuf, name="b")',
    "c": 'nl.ndarray((64, 1), nl.float32, buffer=nl.sbuf, name="c")',
    "i": 'nl.ndarray((64, 32), nl.int32, buffer=nl.sbuf, name="i")',
    "p": 'nl.ndarray((32, 32), nl.float32, buffer=nl.psum, name="p")',
    "q": 'nl.ndarray((32, 32), nl.float32, buffer=nl.psum, name="q")',
    "y": 'nl.ndarray((64, 1024), nl.float32, buffer=nl.sbuf, name="y")',
}
LOAD = "nisa.dma_copy(dst=t, src=x)"


def kernel(lines: str) -> str:
    """The whole file of an example."""
    body = dedent(lines).strip("\n")
    words = body.replace("(", " ").replace("[", " ").replace(",", " ").replace("=", " ").split()
    made = [f"{name} = {tile}" for name, tile in TILES.items() if name in words]
    return KERNEL.replace("LINES", indent("\n".join([*made, LOAD, body]), "    "))


def shown(rule: Rule) -> dict[str, str]:
    """The example of a rule as fields of its row; empty where there is none."""
    if rule.code not in LINES:
        return {}
    wrong, right, *how = LINES[rule.code]
    return {
        "wrong": wrong if wrong.startswith("import") else kernel(wrong),
        "right": right if right.startswith("import") else kernel(right),
        "how": how[0] if how else RUN,
    }


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
OLD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(64)[:, None], nl.arange(32)[None, :]
    t = nl.load(x[ip, jf])
LINES
    nl.store(out, value=t)
    return out
"""


def old(lines: str) -> str:
    """The whole file of an example of the older API."""
    return OLD.replace("LINES", indent(dedent(lines).strip("\n"), "    "))


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
    "NCC330": (
        "nisa.tensor_copy(dst=t, source=t)",
        "nisa.tensor_copy(dst=t, src=t)",
    ),
    "NCC331": (
        "nisa.tensor_copy(dst=t, src=[t, t])",
        "nisa.tensor_copy(dst=t, src=[t, t][0])",
    ),
    "NCC332": (
        "nisa.tensor_scalar(dst=t, data=x, op0=nl.multiply, operand0=2.0)",
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)",
    ),
    "NCC333": (
        "nisa.tensor_copy(dst=t[0:32, :], src=t)",
        "nisa.tensor_copy(dst=t[0:32, :], src=t[32:64, :])",
    ),
    "NCC334": (
        "nisa.tensor_copy(dst=t[:, 0:16], src=t)",
        "nisa.tensor_copy(dst=t[:, 0:16], src=t[:, 16:32])",
    ),
    "NCC336": (
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((128, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=wide, stationary=y[:, 0:256], moving=t)
        """,
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((128, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=wide, stationary=y[:, 0:128], moving=t)
        """,
    ),
    "NCC337": (
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((32, 1024), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=wide, stationary=t, moving=y)
        """,
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((32, 1024), nl.float32, buffer=nl.psum)
        for k in range(2):
            part = slice(512 * k, 512 * k + 512)
            nisa.nc_matmul(dst=wide[:, part], stationary=t, moving=y[:, part])
        """,
    ),
    "NCC338": (
        """
        nisa.tensor_copy(dst=b, src=t)
        nisa.activation(dst=t, op=nl.exp, data=t, scale=b[:, 0:1])
        """,
        """
        nisa.tensor_copy(dst=c, src=t[:, 0:1])
        nisa.activation(dst=t, op=nl.exp, data=t, scale=c)
        """,
    ),
    "NCC339": (
        "nisa.nc_transpose(dst=b[0:32, :], data=t[0:32, :])",
        """
        turned = nl.ndarray((32, 32), nl.float32, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=t[0:32, :])
        nisa.tensor_copy(dst=b[0:32, :], src=turned)
        """,
    ),
    "NCC340": (
        """
        nisa.tensor_copy(dst=b, src=t)
        nisa.nc_matmul(dst=p, stationary=t, moving=b)
        """,
        """
        nisa.tensor_copy(dst=b, src=t)
        nisa.nc_matmul(dst=p, stationary=b, moving=b)
        """,
    ),
    "NCC341": (
        "nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.exp)",
        "nisa.activation(dst=t, op=nl.exp, data=t)",
    ),
    "NCC342": (
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1)",
        """
        nisa.tensor_copy(dst=i, src=t)
        nisa.tensor_scalar(dst=i, data=i, op0=nl.bitwise_and, operand0=1)
        """,
    ),
    "NCC343": (
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.tensor)",
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.vector)",
    ),
    "NCC344": (
        """
        nisa.nc_matmul(dst=p, stationary=t, moving=t)
        nisa.nc_matmul(dst=q, stationary=t, moving=t)
        nisa.tensor_tensor(dst=t[0:32, :], data1=p, data2=q, op=nl.add)
        """,
        """
        nisa.nc_matmul(dst=p, stationary=t, moving=t)
        nisa.nc_matmul(dst=q, stationary=t, moving=t)
        nisa.tensor_copy(dst=t[0:32, :], src=p)
        nisa.tensor_tensor(dst=t[0:32, :], data1=t[0:32, :], data2=q, op=nl.add)
        """,
    ),
    "NCC345": (
        "nisa.memset(dst=i, value=0.5)",
        "nisa.memset(dst=i, value=1)",
    ),
    "NCC346": (
        "nisa.activation(dst=t, op=nl.exp, data=t, bias=t)",
        "nisa.activation(dst=t, op=nl.exp, data=t, bias=t[:, 0:1])",
    ),
    "NCC347": (
        "nisa.dma_transpose(dst=t[0:32, :], src=x[0:32, :])",
        "nisa.nc_transpose(dst=t[0:32, :], data=t[0:32, :])",
        f"{RUN} --target trn1",
    ),
    "NCC348": (
        "nisa.nc_matmul_mx(p, t, t, stationary_scale=i, moving_scale=i)",
        "nisa.nc_matmul(p, t, t)",
    ),
    "NCC349": (
        "nisa.tensor_reduce(dst=c, op=nl.add, data=t, axis=0)",
        "nisa.tensor_reduce(dst=c, op=nl.add, data=t, axis=1)",
    ),
    "NCC350": (
        """
        nisa.memset(dst=p[0:8, 0:8], value=0.0)
        nisa.nc_matmul(dst=p, stationary=t, moving=t)
        """,
        "nisa.nc_matmul(dst=p, stationary=t, moving=t)",
    ),
    "NCC351": (
        'nisa.tensor_copy(dst=t, src=t, engine="vectr")',
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.vector)",
    ),
    "NCC352": (
        "nisa.dma_copy(dst=b, src=x, dge_mode=nisa.dge_mode.hwdge)",
        "nisa.dma_copy(dst=b, src=x)",
    ),
    "NCC353": (
        "nisa.dma_transpose(dst=t, src=x)",
        "nisa.dma_transpose(dst=t[0:32, :], src=x[0:32, :])",
    ),
    "NCC354": (
        "nisa.nc_matmul(dst=p, stationary=t, moving=t, tile_position=(0, 0))",
        """
        nisa.nc_matmul(
            dst=p, stationary=t, moving=t, tile_position=(0, 0), tile_size=(64, 128)
        )
        """,
    ),
    "NCC355": (
        "nisa.core_barrier(data=out, cores=(0, 1))",
        """
        if nl.num_programs(0) == 2:
            nisa.core_barrier(data=out, cores=(0, 1))
        """,
    ),
    "NCC356": (
        "nisa.max8(dst=c, src=t)",
        "nisa.max8(dst=t[:, 0:8], src=t)",
    ),
    "NCC357": (
        """
        nisa.memset(dst=i, value=3)
        r = nisa.register_alloc(0)
        nisa.register_load(dst=r, src=i[0:1, 0:4])
        """,
        """
        nisa.memset(dst=i, value=3)
        r = nisa.register_alloc(0)
        nisa.register_load(dst=r, src=i[0:1, 0:1])
        """,
    ),
    "NCC358": (
        """
        nisa.tensor_scalar_reduce(
            dst=t, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=c,
            reduce_cmd=nisa.reduce_cmd.load_reduce,
        )
        """,
        """
        nisa.tensor_scalar_reduce(
            dst=t, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=c,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        """,
    ),
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
