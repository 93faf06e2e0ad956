"""Wrong kernels: the source, the code and the words of the sentence that answers it.

`# here` stands at the end of the line that the sentence must name. Most cases are one or two lines
of a kernel that has the usual tiles ready (`tiled`); the others are whole files.
"""

from __future__ import annotations

from textwrap import dedent, indent

import attrs

HEAD = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

"""
TILES = """\
@nki.jit
def kernel(x, w):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="out")
    t = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf, name="t")
    k = nl.ndarray((128, 128), nl.float32, buffer=nl.sbuf, name="k")
    b = nl.ndarray((128, 512), nl.bfloat16, buffer=nl.sbuf, name="b")
    i = nl.ndarray((128, 512), nl.int32, buffer=nl.sbuf, name="i")
    p = nl.ndarray((128, 512), nl.float32, buffer=nl.psum, name="p")
    q = nl.ndarray((128, 512), nl.float32, buffer=nl.psum, name="q")
    c = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf, name="c")
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=k, src=w)
BODY
    nisa.dma_copy(dst=out, src=t)
    return out
"""
ARGS = {"x": "f32[128,512]", "w": "f32[128,128]"}


@attrs.frozen
class Wrong:
    """A kernel called `kernel` that is refused with `code`, in a sentence with these `words`."""

    name: str
    code: str
    words: tuple[str, ...]
    source: str
    args: dict[str, str] = ARGS
    ways: tuple[str, ...] = ("simulated", "compiled", "run")
    target: str = "trn2"

    @property
    def line(self) -> int:
        """The line that the sentence must name; 0 where no line is to blame."""
        lines = self.source.split("\n")
        marked = [n for n, text in enumerate(lines, 1) if text.endswith("# here")]
        assert len(marked) <= 1, f"{self.name}: one line is to blame"
        return marked[0] if marked else 0


def tiled(name: str, code: str, words: str, body: str, **more: object) -> Wrong:
    """`body` in a kernel that has tiles of every kind; the words parted by ` | `."""
    text = HEAD + TILES.replace("BODY\n", indent(dedent(body).strip("\n"), "    ") + "\n")
    return Wrong(name, code, tuple(words.split(" | ")), text, **more)  # type: ignore


def whole(name: str, code: str, words: str, source: str, **more: object) -> Wrong:
    """A whole file."""
    text = HEAD + dedent(source).strip("\n") + "\n"
    return Wrong(name, code, tuple(words.split(" | ")), text, **more)  # type: ignore


ALLOCATIONS = (
    tiled("256-rows", "", "", "y = nl.ndarray((256, 64), nl.float32, buffer=nl.sbuf, name='y')  # here"),
    tiled("129-rows", "", "", "y = nl.ndarray((129, 64), nl.float32, buffer=nl.psum)  # here"),
    tiled("one-dimension", "", "", "y = nl.ndarray((512,), nl.float32, buffer=nl.sbuf, name='y')  # here"),
    tiled("no-elements", "", "", "y = nl.ndarray((128, 0), nl.float32, buffer=nl.sbuf)  # here"),
    tiled("float64", "", "", "y = nl.ndarray((128, 8), np.float64, buffer=nl.sbuf)  # here"),
    tiled("dtype-name", "", "", "y = nl.ndarray((128, 8), 'bfloat61', buffer=nl.sbuf)  # here"),
    tiled("memory-name", "", "", "y = nl.ndarray((128, 8), nl.float32, buffer='sbuf')  # here"),
    tiled("address-in-hbm", "", "", "y = nl.ndarray((128, 8), nl.float32, buffer=nl.hbm, address=(0, 0))  # here"),
    tiled("address-partitions", "", "", "y = nl.ndarray((64, 8), nl.float32, buffer=nl.sbuf, address=(96, 0))  # here"),
    tiled("address-alignment", "", "", "y = nl.ndarray((64, 8), nl.float32, buffer=nl.sbuf, address=(0, 2))  # here"),
    tiled("address-bytes", "", "", "y = nl.ndarray((64, 1024), nl.float32, buffer=nl.psum, address=(0, 14336))  # here", ways=("compiled", "run")),
    tiled("fill", "", "", "y = nl.full((64, 8), 0.5, nl.int32)  # here"),
    tiled("keyword-ndarray", "", "", "y = nl.ndarray((64, 8), dtyp=nl.int32)  # here"),
    tiled("float-size", "", "", "y = nl.ndarray((64, 8 / 2), nl.int32)  # here"),
)
INDICES = (
    tiled("slice-end", "", "", "nisa.dma_copy(dst=t[:, 0:64], src=x[:, 480:544])  # here"),
    tiled("slice-end-rows", "", "", "nisa.tensor_copy(dst=t[64:192, :], src=t)  # here"),
    tiled("index-end", "", "", "nisa.tensor_copy(dst=t[:, 512], src=c)  # here"),
    tiled("index-negative", "", "", "nisa.tensor_copy(dst=t[:, -513], src=c)  # here"),
    tiled("too-many-indices", "", "", "nisa.tensor_copy(dst=t[0, 0, 0], src=c)  # here"),
    tiled("float-index", "", "", "nisa.tensor_copy(dst=t[:, 512 / 4], src=c)  # here"),
    tiled("text-index", "", "", "nisa.tensor_copy(dst=t[:, 'a'], src=c)  # here"),
    tiled("numpy-index", "", "", "nisa.tensor_copy(dst=t[:, np.array([1, 2, 5])], src=t[:, 0:3])  # here"),
    tiled("step-backwards", "", "", "nisa.tensor_copy(dst=t[:, ::-1], src=t)  # here"),
    tiled("empty-slice", "", "", "nisa.tensor_copy(dst=t[:, 5:5], src=t[:, 5:5])  # here"),
    tiled("ap-end", "", "", "nisa.tensor_copy(dst=t, src=t.ap([[512, 128], [1, 512]], offset=1))  # here"),
    tiled("ap-hbm-end", "", "", "nisa.dma_copy(dst=t, src=x.ap([[512, 128], [1, 512]], offset=64))  # here"),
    tiled("ap-rows", "", "", "nisa.tensor_copy(dst=t, src=c.ap([[1, 129], [0, 512]]))  # here"),
    tiled("ap-pattern", "", "", "nisa.tensor_copy(dst=t, src=t.ap([512, 128]))  # here"),
    tiled("ap-count", "", "", "nisa.tensor_copy(dst=t, src=t.ap([[512, 128], [1, 0]]))  # here"),
    tiled("start-10", "", "", "nisa.tensor_scalar(dst=t[10:20, :], data=t[10:20, :], op0=nl.multiply, operand0=2.0)  # here"),
    tiled("start-32-of-64", "", "", "nisa.memset(dst=t[32:96, :], value=0.0)  # here"),
    tiled("start-64-of-128", "", "", "nisa.activation(dst=t[32:128, :], op=nl.exp, data=t[32:128, :])  # here"),
    tiled("every-other-row", "", "", "nisa.memset(dst=t[0:64:2, :], value=0.0)  # here"),
    tiled("reshape-count", "", "", "nisa.memset(dst=t.reshape((128, 500)), value=0.0)  # here"),
    tiled("reshape-rows", "", "", "nisa.memset(dst=t.reshape((64, 1024)), value=0.0)  # here"),
    tiled("permute-rows", "", "", "nisa.tensor_copy(dst=k, src=k.permute((1, 0)))  # here"),
    tiled("broadcast", "", "", "nisa.tensor_copy(dst=t, src=k.broadcast(1, 512))  # here"),
    tiled("view-dtype", "", "", "nisa.tensor_copy(dst=t, src=c.view(nl.float8_e5m2).view(nl.float32)[:, 0:3].view(nl.int32))  # here"),
)
PYTHON = (
    tiled("if-tensor", "", "", "if t[0, 0]:  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("if-comparison", "", "", "if t[0:1, 0:1] > 0:  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("if-register", "", "", "r = nisa.register_alloc(3)\nif r:  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("if-register-comparison", "", "", "r = nisa.register_alloc(3)\nif r > 2:  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("while-register", "", "", "r = nisa.register_alloc(3)\nwhile r:  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("while-tensor", "", "", "while t[0, 0] < 3:  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("range-tensor", "", "", "for n in range(i[0, 0]):  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("range-register", "", "", "r = nisa.register_alloc(3)\nfor n in range(r):  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("nl-range-register", "", "", "r = nisa.register_alloc(3)\nfor n in nl.affine_range(r):  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("nl-range-float", "", "", "for n in nl.affine_range(512 / 128):  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("int-tensor", "", "", "n = int(i[0, 0])  # here"),
    tiled("float-tensor", "", "", "n = float(t[0, 0])  # here"),
    tiled("numpy-of-tensor", "", "", "n = np.sum(t)  # here"),
    tiled("max-of-tensors", "", "", "n = max(t[0, 0], t[0, 1])  # here"),
    tiled("shape-of-register", "", "", "r = nisa.register_alloc(3)\ny = nl.ndarray((128, r), nl.float32)  # here"),
    tiled("register-sum", "", "", "r = nisa.register_alloc(3)\ns = r + 1  # here"),
    tiled("assignment", "", "", "t[:, 0:128] = k  # here"),
    tiled("out-of-scope", "", "", """
        kept = []
        def body(n):
            kept.append(nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf, name="inner"))
            nisa.tensor_copy(dst=kept[0], src=t)
        nl.fori_loop(0, 4, body)
        nisa.tensor_copy(dst=t, src=kept[0])  # here
        """),
    tiled("loop-step", "", "", "for n in nl.dynamic_range(0, 4, 0):  # here\n    nisa.memset(dst=t, value=0.0)"),
    tiled("loop-bound", "", "", "nl.fori_loop(0, i[0, 0], lambda n: None)  # here"),
    tiled("loop-body", "", "", "nl.fori_loop(0, 4, nisa.memset(dst=t, value=0.0))  # here"),
    tiled("loop-break", "", "", "for n in nl.dynamic_range(4):  # here\n    nisa.memset(dst=t, value=0.0)\n    break"),
    tiled("loop-condition", "", "", "r = nisa.register_alloc(3)\nnl.while_loop(r, lambda c: None)  # here"),
    tiled("loop-in-fixed-order", "", "", "with nl.no_reorder():\n    nl.fori_loop(0, 4, lambda n: None)  # here"),
    tiled("write-loop-index", "", "", "for n in nl.dynamic_range(4):\n    nisa.register_move(dst=n, src=3)  # here"),
    whole("own-assertion", "", "", """
        @nki.jit
        def kernel(x):
            rows, _ = x.shape
            assert rows == 64, f"64 rows, please: {rows}"  # here
        """, args={"x": "f32[128,512]"}, ways=("run",)),
    whole("own-division", "", "", """
        def inner(x):
            return 1 / (x.shape[0] - 128)  # here

        @nki.jit
        def kernel(x):
            return inner(x)
        """, args={"x": "f32[128,512]"}, ways=("run",)),
)
CALLS = (
    whole("outside", "", "", """
        t = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)  # here

        @nki.jit
        def kernel(x):
            return x
        """, args={"x": "f32[128,512]"}, ways=("run",)),
    whole("decorator-order", "", "", """
        from nki.compiler import skip_middle_end_transformations

        @nki.jit
        @skip_middle_end_transformations
        def kernel(x):  # here
            return x
        """, args={"x": "f32[128,512]"}, ways=("run",)),
    whole("jit-target", "", "", """
        @nki.jit(platform_target="trn1")  # here
        def kernel(x):
            return x
        """, args={"x": "f32[128,512]"}, ways=("run",)),
    whole("jit-class", "", "", """
        @nki.jit  # here
        class kernel:
            pass
        """, args={"x": "f32[128,512]"}, ways=("run",)),
    whole("grid", "", "", """
        @nki.jit
        def one(x):
            return x

        kernel = one[4]  # here
        """, args={"x": "f32[128,512]"}, ways=("run",)),
    whole("nested-grid", "", "", """
        @nki.jit
        def inner(x):
            return x

        @nki.jit
        def kernel(x):
            return inner[2](x)  # here
        """, args={"x": "f32[128,512]"}),
    whole("missing-argument", "", "", """
        @nki.jit  # here
        def kernel(x, scale):
            return x
        """, args={"x": "f32[128,512]"}),
    whole("unknown-argument", "", "", """
        @nki.jit  # here
        def kernel(x, scale=1.0):
            return x
        """, args={"x": "f32[128,512]", "scael": "2.0"}),
    whole("array-of-float64", "", "", """
        @nki.jit  # here
        def kernel(x):
            return x
        """, args={"x": "f64[128,512]"}, ways=("simulated", "compiled")),
    whole("list-with-a-set", "", "", """
        @nki.jit
        def kernel(xs):
            out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=xs[0] + xs[1])  # here
            return out
        """, args={"xs": "[f32[128,512], 2.0]"}, ways=("run",)),
    whole("result-in-sbuf", "", "", """
        @nki.jit
        def kernel(x):
            t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="t")  # here
            nisa.dma_copy(dst=t, src=x)
            return t
        """, args={"x": "f32[128,512]"}),
    whole("result-view-of-sbuf", "", "", """
        @nki.jit
        def kernel(x):
            t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="t")  # here
            nisa.dma_copy(dst=t, src=x)
            return x, t[0:64, 3:9]
        """, args={"x": "f32[128,512]"}),
    whole("result-in-hbm", "", "", """
        @nki.jit
        def kernel(x):
            y = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm, name="y")  # here
            nisa.dma_copy(dst=y, src=x)
            return y
        """, args={"x": "f32[128,512]"}),
    whole("result-register", "", "", """
        @nki.jit  # here
        def kernel(x):
            return nisa.register_alloc(3)
        """, args={"x": "f32[128,512]"}),
    whole("result-never-written", "", "", """
        @nki.jit
        def kernel(x):
            y = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="y")  # here
            return y
        """, args={"x": "f32[128,512]"}),
    whole("tensor-of-another-run", "", "", """
        kept = []

        @nki.jit
        def first(x):
            kept.append(nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="old"))
            return x

        nki.simulate(first)(np.zeros((128, 512), np.float32))

        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=kept[0])  # here
            return out
        """, args={"x": "f32[128,512]"}),
    whole("object-field", "", "", """
        class Config(nl.NKIObject):
            rows: int

        @nki.jit
        def kernel(x):
            config = Config(row=3)  # here
            return x
        """, args={"x": "f32[128,512]"}),
)
ISA = (
    tiled("unknown-keyword", "", "", "nisa.tensor_copy(dst=t, source=t)  # here"),
    tiled("missing-operand", "", "", "nisa.tensor_tensor(dst=t, data1=t, op=nl.add)  # here"),
    tiled("too-many-operands", "", "", "nisa.memset(t, 0.0, nisa.engine.vector, 'm', 3)  # here"),
    tiled("unknown-call", "", "", "nisa.tensor_coppy(dst=t, src=t)  # here"),
    tiled("enum-name", "", "", "nisa.tensor_copy(dst=t, src=t, engine='vectr')  # here"),
    tiled("enum-number", "", "", "nisa.dma_copy(dst=t, src=x, dge_mode=7)  # here"),
    tiled("enum-kind", "", "", "nisa.dma_copy(dst=t, src=x, oob_mode=nisa.dge_mode.hwdge)  # here"),
    tiled("numpy-operand", "", "", "nisa.tensor_copy(dst=t, src=np.zeros((128, 512), np.float32))  # here"),
    tiled("list-operand", "", "", "nisa.tensor_copy(dst=t, src=[t, t])  # here"),
    tiled("none-operand", "", "", "nisa.tensor_copy(dst=t, src=None)  # here"),
    tiled("compute-on-hbm", "", "", "nisa.tensor_tensor(dst=t, data1=x, data2=t, op=nl.add)  # here"),
    tiled("compute-into-hbm", "", "", "nisa.activation(dst=out, op=nl.exp, data=t)  # here"),
    tiled("dma-from-psum", "", "", "nisa.dma_copy(dst=out, src=p)  # here"),
    tiled("matmul-into-sbuf", "", "", "nisa.nc_matmul(dst=t, stationary=k, moving=t)  # here"),
    tiled("matmul-from-psum", "", "", "nisa.nc_matmul(dst=p, stationary=k, moving=q)  # here"),
    tiled("matmul-from-hbm", "", "", "nisa.nc_matmul(dst=p, stationary=w, moving=t)  # here"),
    tiled("iota-in-psum", "", "", "nisa.iota(dst=p, pattern=[[1, 512]])  # here"),
    tiled("select-in-psum", "", "", "nisa.affine_select(dst=t, pattern=[[1, 512]], channel_multiplier=1, on_true_tile=p, on_false_value=0.0)  # here"),
    tiled("gpsimd-with-psum", "", "", "nisa.tensor_copy(dst=p, src=t, engine=nisa.engine.gpsimd)  # here"),
    tiled("k-differs", "", "", "nisa.nc_matmul(dst=p, stationary=k[0:64, :], moving=t)  # here"),
    tiled("k-over-128", "", "", "nisa.nc_matmul(dst=p, stationary=w.reshape((256, 64)), moving=t)  # here"),
    tiled("m-over-128", "", "", "nisa.nc_matmul(dst=p, stationary=t, moving=t)  # here"),
    tiled("n-over-512", "", "", """
        y = nl.ndarray((128, 640), nl.float32, buffer=nl.sbuf, name="y")
        nisa.nc_matmul(dst=p, stationary=k, moving=y)  # here
        """),
    tiled("over-a-bank", "", "", """
        y = nl.ndarray((128, 1024), nl.float32, buffer=nl.sbuf, name="y")
        z = nl.ndarray((128, 1024), nl.float32, buffer=nl.psum, name="z")
        nisa.nc_matmul(dst=z, stationary=k, moving=y)  # here
        """),
    tiled("across-a-bank", "", "", """
        z = nl.ndarray((128, 1024), nl.float32, buffer=nl.psum, name="z")
        nisa.nc_matmul(dst=z[:, 384:640], stationary=k, moving=t[:, 0:256])  # here
        """),
    tiled("matmul-dst-shape", "", "", "nisa.nc_matmul(dst=p[:, 0:256], stationary=k, moving=t)  # here"),
    tiled("both-in-psum", "", "", "nisa.tensor_tensor(dst=t, data1=p, data2=q, op=nl.add)  # here"),
    tiled("fp32-and-bf16", "", "", "nisa.nc_matmul(dst=p, stationary=k, moving=b)  # here"),
    tiled("matmul-of-integers", "", "", "nisa.nc_matmul(dst=p, stationary=i[:, 0:128], moving=i)  # here"),
    tiled("matmul-dst-dtype", "", "", """
        z = nl.ndarray((128, 512), nl.bfloat16, buffer=nl.psum, name="z")
        nisa.nc_matmul(dst=z, stationary=b[:, 0:128], moving=b)  # here
        """),
    tiled("counts-differ", "", "", "nisa.tensor_tensor(dst=t, data1=t[:, 0:256], data2=t, op=nl.add)  # here"),
    tiled("partitions-differ", "", "", "nisa.tensor_copy(dst=t[0:64, :], src=t)  # here"),
    tiled("dma-counts-differ", "", "", "nisa.dma_copy(dst=t, src=x[:, 0:256])  # here"),
    tiled("transpose-dtype", "", "", "nisa.nc_transpose(dst=p[:, 0:128], data=b[:, 0:128])  # here"),
    tiled("transpose-size", "", "", "nisa.nc_transpose(dst=k, data=k)  # here"),
    tiled("hwdge-dtype", "", "", "nisa.dma_copy(dst=b, src=x, dge_mode=nisa.dge_mode.hwdge)  # here"),
    tiled("dma-transpose-shape", "", "", "nisa.dma_transpose(dst=t, src=x)  # here"),
    tiled("memset-kind", "", "", "nisa.memset(dst=i, value=0.5)  # here"),
    tiled("reduce-partitions", "", "", "nisa.tensor_reduce(dst=c, op=nl.add, data=t, axis=0)  # here"),
    tiled("reduce-middle", "", "", """
        y = nl.ndarray((128, 4, 128), nl.float32, buffer=nl.sbuf, name="y")
        nisa.tensor_reduce(dst=t[:, 0:128], op=nl.add, data=y, axis=1)  # here
        """),
    tiled("reduce-dst", "", "", "nisa.tensor_reduce(dst=t, op=nl.add, data=t, axis=1)  # here"),
    tiled("bias-shape", "", "", "nisa.activation(dst=t, op=nl.exp, data=t, bias=t[:, 0:4])  # here"),
    tiled("bias-partitions", "", "", "nisa.activation(dst=t, op=nl.exp, data=t, bias=c[0:64, :])  # here"),
    tiled("scale-dtype", "", "", "nisa.activation(dst=t, op=nl.exp, data=t, scale=b[:, 0:1])  # here"),
    tiled("operand-shape", "", "", "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=k)  # here"),
    tiled("operand-text", "", "", "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0='2')  # here"),
    tiled("function-as-operator", "", "", "nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.exp)  # here"),
    tiled("operator-as-function", "", "", "nisa.activation(dst=t, op=nl.add, data=t)  # here"),
    tiled("operator-text", "", "", "nisa.tensor_tensor(dst=t, data1=t, data2=t, op='add')  # here"),
    tiled("bits-of-floats", "", "", "nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1)  # here"),
    tiled("bits-and-numbers", "", "", "nisa.tensor_scalar(dst=i, data=i, op0=nl.bitwise_and, operand0=1, op1=nl.add, operand1=1)  # here"),
    tiled("engine", "", "", "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.tensor)  # here"),
    tiled("power-engine", "", "", "nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.power, engine=nisa.engine.vector)  # here"),
    tiled("half-a-tile-position", "", "", "nisa.nc_matmul(dst=p, stationary=k, moving=t, tile_position=(0, 0))  # here"),
    tiled("tile-size", "", "", "nisa.nc_matmul(dst=p, stationary=k, moving=t, tile_position=(0, 0), tile_size=(96, 128))  # here"),
    tiled("mixed-accumulation", "", "", """
        nisa.memset(dst=p[0:64, 0:8], value=0.0)
        nisa.nc_matmul(dst=p, stationary=k, moving=t)  # here
        """),
    tiled("no-second-core", "", "", "nisa.sendrecv(src=t, dst=t, send_to_rank=1, recv_from_rank=1, pipe_id=0)  # here"),
    tiled("slots", "", "", "nisa.max8(dst=c, src=t)  # here"),
    tiled("bn-stats-width", "", "", """
        y = nl.ndarray((128, 600), nl.float32, buffer=nl.sbuf, name="y")
        nisa.bn_stats(dst=t[:, 0:6], data=y)  # here
        """),
    tiled("register-of-a-row", "", "", "r = nisa.register_alloc(0)\nnisa.register_load(dst=r, src=i[0:1, 0:4])  # here"),
    tiled("range-select-fill", "", "", "nisa.range_select(dst=t, on_true_tile=t, comp_op0=nl.less, comp_op1=nl.less, bound0=c, bound1=c, on_false_value=0.0)  # here"),
    tiled("load-reduce", "", "", "nisa.tensor_scalar_reduce(dst=t, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=c, reduce_cmd=nisa.reduce_cmd.load_reduce)  # here"),
    tiled("mx", "", "", "nisa.nc_matmul_mx(dst=p, stationary=k, moving=t, stationary_scale=c, moving_scale=c)  # here"),
    tiled("quantize-mx", "", "", "nisa.quantize_mx(dst=t, src=t, dst_scale=c)  # here"),
    tiled("later-machine", "", "", "nisa.dma_transpose(dst=k, src=w)  # here", target="trn1"),
    tiled("shuffle-mask", "", "", "nisa.nc_stream_shuffle(dst=t, src=t, shuffle_mask=[0] * 31 + [40])  # here"),
    tiled("gather-index-dtype", "", "", "nisa.nc_n_gather(dst=t, data=t, indices=i)  # here"),
    tiled("predicate-dtype", "", "", "nisa.tensor_copy_predicated(dst=t, src=t, predicate=t)  # here"),
    tiled("dynamic-start", "", "", "nisa.tensor_copy(dst=t[:, 0:2], src=t[:, nl.ds(t[0:1, 0:1], 2)])  # here"),
    tiled("matmul-indirect", "", "", "nisa.tensor_copy(dst=t[:, 0:16], src=t.indirect(i[:, 0:1], 16))  # here"),
)
LANGUAGE = (
    tiled("old-name", "", "", "n = nl.arange(128)  # here"),
    tiled("misspelt-name", "", "", "n = nl.shared_hmb  # here"),
    tiled("old-mask", "", "", "y = nl.load(x, mask=None)  # here"),
    tiled("nl-operand", "", "", "y = nl.add('x', t)  # here"),
    tiled("nl-shapes", "", "", "y = nl.add(t, k)  # here"),
    tiled("nl-fold-rows", "", "", "y = nl.sum(t, axis=0)  # here"),
    tiled("nl-matmul", "", "", "y = nl.matmul(t[0:64, 0:128], k, transpose_x=True)  # here"),
    tiled("nl-store-psum", "", "", "nl.store(out, p)  # here"),
    tiled("nl-load-rows", "", "", "y = nl.load(x.reshape((256, 256)))  # here"),
    tiled("grid-axis", "", "", "n = nl.program_id(1)  # here"),
    tiled("collective-of-an-argument", "", "", """
        import nki.collectives as ncc
        ncc.all_reduce([x], [out], ncc.ReplicaGroup([[0, 1]]), nl.add)  # here
        """),
    tiled("collective", "", "", """
        import nki.collectives as ncc
        y = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm, name="y")
        z = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm, name="z")
        ncc.all_reduce([y], [z], ncc.ReplicaGroup([[0, 1]]), nl.add)  # here
        """),
)
CASES = ALLOCATIONS + INDICES + PYTHON + CALLS + ISA + LANGUAGE
