"""Wrong kernels: the source, the code and the words of the sentence that answers it.

`# here` stands at the end of the line that the sentence must name. Most cases are one or two lines
of a kernel that has the usual tiles ready (`tiled`); the others are whole files.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

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


BYTES = ("compiled", "run")


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
    lnc: int = 1

    @property
    def line(self) -> int:
        """The line that the sentence must name; 0 where no line is to blame."""
        lines = self.source.split("\n")
        marked = [n for n, text in enumerate(lines, 1) if text.endswith("# here")]
        assert len(marked) <= 1, f"{self.name}: one line is to blame"
        return marked[0] if marked else 0


def tiled(name: str, code: str, words: str, body: str, **more: Any) -> Wrong:
    """`body` in a kernel that has tiles of every kind; the words parted by ` | `."""
    text = HEAD + TILES.replace("BODY\n", indent(dedent(body).strip("\n"), "    ") + "\n")
    return Wrong(name, code, tuple(words.split(" | ")), text, **more)


def whole(name: str, code: str, words: str, source: str, **more: Any) -> Wrong:
    """A whole file."""
    text = HEAD + dedent(source).strip("\n") + "\n"
    return Wrong(name, code, tuple(words.split(" | ")), text, **more)


ALLOCATIONS = (
    tiled(
        "256-rows",
        "NCC310",
        "the tensor y | 256 > 128 | partition dimension | loop over blocks of 128 rows | (128, 2, 64)",
        "y = nl.ndarray((256, 64), nl.float32, buffer=nl.sbuf, name='y')  # here",
    ),
    tiled(
        "129-rows",
        "NCC310",
        "129 > 128 | loop over blocks of 128 rows",
        "y = nl.ndarray((129, 64), nl.float32, buffer=nl.psum)  # here",
    ),
    tiled(
        "one-dimension",
        "NCC311",
        "y in sbuf | 1 dimension | (512, 1) or (1, 512)",
        "y = nl.ndarray((512,), nl.float32, buffer=nl.sbuf, name='y')  # here",
    ),
    tiled(
        "no-elements",
        "NCC311",
        "(128, 0) | 1 or more",
        "y = nl.ndarray((128, 0), nl.float32, buffer=nl.sbuf)  # here",
    ),
    tiled(
        "bytes-of-a-tile",
        "NCC311",
        "(128, 1099511627776) | 4398046511104 bytes a partition | cut it into tiles",
        "y = nl.ndarray((128, 1 << 40), nl.float32, buffer=nl.sbuf)  # here",
    ),
    tiled(
        "bytes-of-a-tensor",
        "NCC311",
        "the tensor in hbm | (1099511627776, 4) | more than 1099511627776",
        "y = nl.ndarray((1 << 40, 4), nl.float32, buffer=nl.hbm)  # here",
    ),
    tiled(
        "dtype-array",
        "NCC312",
        "[[1. 1.] [1. 1.]] is no element type",
        "y = nl.zeros((128, 8), np.ones((2, 2)), buffer=nl.sbuf)  # here",
    ),
    tiled(
        "float64",
        "NCC312",
        "float64 | nl.float32",
        "y = nl.ndarray((128, 8), np.float64, buffer=nl.sbuf)  # here",
    ),
    tiled(
        "dtype-name",
        "NCC312",
        "bfloat61 | did you mean bfloat16?",
        "y = nl.ndarray((128, 8), 'bfloat61', buffer=nl.sbuf)  # here",
    ),
    tiled(
        "memory-name",
        "NCC320",
        "'sbuf' | buffer=nl.sbuf",
        "y = nl.ndarray((128, 8), nl.float32, buffer='sbuf')  # here",
    ),
    tiled(
        "address-in-hbm",
        "NCC326",
        "hbm | nl.sbuf or nl.psum",
        "y = nl.ndarray((128, 8), nl.float32, buffer=nl.hbm, address=(0, 0))  # here",
    ),
    tiled(
        "address-partitions",
        "NCC326",
        "partitions 96 to 159 | there are 128 | 64 partitions start at 64 or below",
        "y = nl.ndarray((64, 8), nl.float32, buffer=nl.sbuf, address=(96, 0))  # here",
    ),
    tiled(
        "address-alignment",
        "NCC326",
        "byte 2 | multiples of 4 | start at byte 0",
        "y = nl.ndarray((64, 8), nl.float32, buffer=nl.sbuf, address=(0, 2))  # here",
    ),
    tiled(
        "address-bytes",
        "NCC326",
        "bytes 14336 to 18431 of the 16384 | byte 12288 or below",
        "y = nl.ndarray((64, 1024), nl.float32, buffer=nl.psum, address=(0, 14336))  # here",
        ways=("compiled", "run"),
    ),
    tiled(
        "fill",
        "NCC325",
        "int32 | 0.5 | whole number",
        "y = nl.full((64, 8), 0.5, nl.int32)  # here",
    ),
    tiled(
        "keyword-ndarray",
        "NCC330",
        "ndarray | 'dtyp' | did you mean dtype?",
        "y = nl.ndarray((64, 8), dtyp=nl.int32)  # here",
    ),
    tiled("float-size", "NCC313", "4.0 | //", "y = nl.ndarray((64, 8 / 2), nl.int32)  # here"),
)
INDICES = (
    tiled(
        "slice-end",
        "NCC314",
        "slice 480:544 of dimension 1 of x (128 x 512) | 512 elements | min(start + size, extent)",
        "nisa.dma_copy(dst=t[:, 0:64], src=x[:, 480:544])  # here",
    ),
    tiled(
        "slice-end-rows",
        "NCC314",
        "slice 64:192 of dimension 0 of t (128 x 512) | 128 elements",
        "nisa.tensor_copy(dst=t[64:192, :], src=t)  # here",
    ),
    tiled(
        "index-end",
        "NCC314",
        "index 512 of dimension 1 of t (128 x 512) | 512 elements",
        "nisa.tensor_copy(dst=t[:, 512], src=c)  # here",
    ),
    tiled(
        "index-negative",
        "NCC314",
        "index -513 of dimension 1 of t",
        "nisa.tensor_copy(dst=t[:, -513], src=c)  # here",
    ),
    tiled(
        "too-many-indices",
        "NCC314",
        "3 indices for t | 2 dimensions | one index for each dimension",
        "nisa.tensor_copy(dst=t[0, 0, 0], src=c)  # here",
    ),
    tiled(
        "float-index", "NCC313", "128.0 | //", "nisa.tensor_copy(dst=t[:, 512 / 4], src=c)  # here"
    ),
    tiled(
        "text-index",
        "NCC313",
        "t cannot be indexed with 'a' | nl.ds",
        "nisa.tensor_copy(dst=t[:, 'a'], src=c)  # here",
    ),
    tiled(
        "numpy-index",
        "NCC313",
        "array([1, 2, 5]) | .ap",
        "nisa.tensor_copy(dst=t[:, np.array([1, 2, 5])], src=t[:, 0:3])  # here",
    ),
    tiled(
        "step-backwards",
        "NCC314",
        "step -1 | 1 or more",
        "nisa.tensor_copy(dst=t[:, ::-1], src=t)  # here",
    ),
    tiled(
        "empty-slice",
        "NCC314",
        "tensor_copy: dst (t) is 128 x 0 | at least one element",
        "nisa.tensor_copy(dst=t[:, 5:5], src=t[:, 5:5])  # here",
    ),
    tiled(
        "ap-end",
        "NCC314",
        "tensor_copy: src (t) | elements 1 to 512 | partition that has 512 | offset or the counts smaller",
        "nisa.tensor_copy(dst=t, src=t.ap([[512, 128], [1, 512]], offset=1))  # here",
    ),
    tiled(
        "ap-hbm-end",
        "NCC314",
        "dma_copy: src (x) | elements 64 to 65599 of a tensor of 65536",
        "nisa.dma_copy(dst=t, src=x.ap([[512, 128], [1, 512]], offset=64))  # here",
    ),
    tiled(
        "ap-rows",
        "NCC314",
        "partitions 0 to 128 | has 128",
        "nisa.tensor_copy(dst=t, src=c.ap([[1, 129], [0, 512]]))  # here",
    ),
    tiled(
        "ap-pattern",
        "NCC321",
        "[512, 128] | [[stride, count], ...]",
        "nisa.tensor_copy(dst=t, src=t.ap([512, 128]))  # here",
    ),
    tiled(
        "ap-count",
        "NCC321",
        "[1, 0] | below 1",
        "nisa.tensor_copy(dst=t, src=t.ap([[512, 128], [1, 0]]))  # here",
    ),
    tiled(
        "start-10",
        "NCC315",
        "tensor_scalar: dst (t) covers 10 partitions from partition 10 | 0, 32, 64 or 96 | nisa.dma_copy",
        "nisa.tensor_scalar(dst=t[10:20, :], data=t[10:20, :], op0=nl.multiply, operand0=2.0)  # here",
    ),
    tiled(
        "start-32-of-64",
        "NCC315",
        "memset: dst (t) covers 64 partitions from partition 32 | 0 or 64",
        "nisa.memset(dst=t[32:96, :], value=0.0)  # here",
    ),
    tiled(
        "start-64-of-128",
        "NCC315",
        "96 partitions from partition 32 | may start at 0",
        "nisa.activation(dst=t[32:128, :], op=nl.exp, data=t[32:128, :])  # here",
    ),
    tiled(
        "every-other-row",
        "NCC315",
        "step 2 | step of 1 on dimension 0",
        "nisa.memset(dst=t[0:64:2, :], value=0.0)  # here",
    ),
    tiled(
        "reshape-count",
        "NCC316",
        "reshape(128, 500) of t (128 x 512) | 65536 elements | 64000",
        "nisa.memset(dst=t.reshape((128, 500)), value=0.0)  # here",
    ),
    tiled(
        "reshape-rows",
        "NCC316",
        "reshape(64, 1024) of t | partitions | reshape the others",
        "nisa.memset(dst=t.reshape((64, 1024)), value=0.0)  # here",
    ),
    tiled(
        "permute-rows",
        "NCC316",
        "permute(1, 0) of k (128 x 128) | partitions | nisa.nc_transpose",
        "nisa.tensor_copy(dst=k, src=k.permute((1, 0)))  # here",
    ),
    tiled(
        "broadcast",
        "NCC316",
        "broadcast(1, 512) of k | 128 elements | one can be repeated",
        "nisa.tensor_copy(dst=t, src=k.broadcast(1, 512))  # here",
    ),
    tiled(
        "view-dtype",
        "NCC316",
        "b | 3 elements of bfloat16 | 4 bytes | multiples of 2",
        "nisa.tensor_copy(dst=t[:, 0:2], src=b[:, 0:3].view(nl.float32))  # here",
    ),
)
PYTHON = (
    tiled(
        "if-tensor",
        "NCC317",
        "the truth value of the tensor t | nl.where",
        "if t[0, 0]:  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "if-comparison",
        "NCC317",
        "the truth value of the tensor | while the machine runs",
        "if t[0:1, 0:1] > 0:  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "if-register",
        "NCC364",
        "the truth value of a VirtualRegister | nl.while_loop",
        "r = nisa.register_alloc(3)\nif r:  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "if-register-comparison",
        "NCC364",
        "a comparison of a VirtualRegister | nl.while_loop",
        "r = nisa.register_alloc(3)\nif r > 2:  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "while-register",
        "NCC364",
        "the truth value of a VirtualRegister | nl.while_loop(register, body)",
        "r = nisa.register_alloc(3)\nwhile r:  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "while-tensor",
        "NCC317",
        "the truth value | device loop",
        "while t[0, 0] < 3:  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "range-tensor",
        "NCC317",
        "the integer value of the tensor i | device loop",
        "for n in range(i[0, 0]):  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "range-register",
        "NCC364",
        "the value of a VirtualRegister | nl.fori_loop counts to a register",
        "r = nisa.register_alloc(3)\nfor n in range(r):  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "nl-range-register",
        "NCC363",
        "nl.affine_range | its bound is a register | nl.fori_loop",
        "r = nisa.register_alloc(3)\nfor n in nl.affine_range(r):  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "nl-range-float",
        "NCC363",
        "4.0 | divide with //",
        "for n in nl.affine_range(512 / 128):  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled("int-tensor", "NCC317", "the integer value of the tensor i", "n = int(i[0, 0])  # here"),
    tiled("float-tensor", "NCC317", "the value of the tensor t", "n = float(t[0, 0])  # here"),
    tiled(
        "numpy-of-tensor",
        "NCC317",
        "numpy.sum | the tensor t | nki.language",
        "n = np.sum(t)  # here",
    ),
    tiled(
        "max-of-tensors",
        "NCC317",
        "the truth value of the tensor",
        "n = max(t[0, 0], t[0, 1])  # here",
    ),
    tiled(
        "shape-of-register",
        "NCC313",
        "VirtualRegister | known while tracing",
        "r = nisa.register_alloc(3)\ny = nl.ndarray((128, r), nl.float32)  # here",
    ),
    tiled(
        "register-sum",
        "NCC364",
        "sum, difference or product of a VirtualRegister | nisa.scalar_load",
        "r = nisa.register_alloc(3)\ns = r + 1  # here",
    ),
    tiled("assignment", "NCC324", "t[...] = value | nisa.tensor_copy", "t[:, 0:128] = k  # here"),
    tiled(
        "out-of-scope",
        "NCC318",
        "inner | body of a device loop that has ended | before the loop",
        """
        kept = []
        def body(n):
            kept.append(nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf, name="inner"))
            nisa.tensor_copy(dst=kept[0], src=t)
        nl.fori_loop(0, 4, body)
        nisa.tensor_copy(dst=t, src=kept[0])  # here
        """,
    ),
    tiled(
        "loop-step",
        "NCC363",
        "step of 1 or more | not 0",
        "for n in nl.dynamic_range(0, 4, 0):  # here\n    nisa.memset(dst=t, value=0.0)",
    ),
    tiled(
        "loop-bound",
        "NCC363",
        "upper | was given i | nisa.register_load",
        "nl.fori_loop(0, i[0, 0], lambda n: None)  # here",
    ),
    tiled(
        "loop-body",
        "NCC363",
        "takes a function as its body | def body(i)",
        "nl.fori_loop(0, 4, nisa.memset(dst=t, value=0.0))  # here",
    ),
    tiled(
        "loop-break",
        "NCC363",
        "left the loop | no break or return",
        "for n in nl.dynamic_range(4):  # here\n    nisa.memset(dst=t, value=0.0)\n    break",
    ),
    tiled(
        "loop-condition",
        "NCC363",
        "returns None | return the register",
        "r = nisa.register_alloc(3)\nnl.while_loop(r, lambda c: None)  # here",
    ),
    tiled(
        "loop-in-fixed-order",
        "NCC363",
        "nl.fori_loop inside nl.no_reorder | close the block",
        "with nl.no_reorder():\n    nl.fori_loop(0, 4, lambda n: None)  # here",
    ),
    tiled(
        "write-loop-index",
        "NCC357",
        "register_move cannot write dst | index of a device loop | copy it",
        "for n in nl.dynamic_range(4):\n    nisa.register_move(dst=n, src=3)  # here",
    ),
    whole(
        "own-assertion",
        "NCC308",
        "AssertionError: 64 rows, please: 128",
        """
        @nki.jit
        def kernel(x):
            rows, _ = x.shape
            assert rows == 64, f"64 rows, please: {rows}"  # here
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
    whole(
        "own-division",
        "NCC308",
        "ZeroDivisionError: division by zero",
        """
        def inner(x):
            return 1 / (x.shape[0] - 128)  # here

        @nki.jit
        def kernel(x):
            return inner(x)
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
)
CALLS = (
    whole(
        "outside",
        "NCC301",
        "nl.ndarray runs only inside a kernel | @nki.jit",
        """
        t = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)  # here

        @nki.jit
        def kernel(x):
            return x
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
    whole(
        "decorator-order",
        "NCC303",
        "@skip_middle_end_transformations stands below @nki.jit | above @nki.jit",
        """
        from nki.compiler import skip_middle_end_transformations

        @nki.jit  # here
        @skip_middle_end_transformations
        def kernel(x):
            return x
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
    whole(
        "jit-target",
        "NCC309",
        "platform_target | NEURON_PLATFORM_TARGET_OVERRIDE | --target",
        """
        @nki.jit(platform_target="trn1")  # here
        def kernel(x):
            return x
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
    whole(
        "jit-class",
        "NCC303",
        "jit takes a function | directly above a def",
        """
        @nki.jit  # here
        class kernel:
            pass
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
    whole(
        "grid",
        "NCC304",
        "one[4] | 1 or 2 | write [1] or [2]",
        """
        @nki.jit  # here
        def one(x):
            return x

        kernel = one[4]
        """,
        args={"x": "f32[128,512]"},
        ways=("run",),
    ),
    whole(
        "nested-grid",
        "NCC304",
        "inner asks for 2 cores | caller runs on 1 | without [...]",
        """
        @nki.jit
        def inner(x):
            return x

        @nki.jit
        def kernel(x):
            return inner[2](x)  # here
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "missing-argument",
        "NCC302",
        "kernel was called without its parameter scale | it takes x, scale",
        """
        @nki.jit  # here
        def kernel(x, scale):
            return x
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "unknown-argument",
        "NCC302",
        "kernel has no parameter scael | did you mean scale?",
        """
        @nki.jit  # here
        def kernel(x, scale=1.0):
            return x
        """,
        args={"x": "f32[128,512]", "scael": "2.0"},
    ),
    whole(
        "array-of-complex",
        "NCC305",
        "argument x holds complex64 | no element type of the machine",
        """
        @nki.jit  # here
        def kernel(x):
            return x
        """,
        args={"x": "c64[128,512]"},
        ways=("simulated", "compiled"),
    ),
    whole(
        "list-of-hbm",
        "NCC332",
        "xs_0 is in HBM | nisa.dma_copy",
        """
        @nki.jit
        def kernel(xs):
            out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=xs[0] + xs[1])  # here
            return out
        """,
        args={"xs": "[f32[128,512], 2.0]"},
        ways=("run",),
    ),
    whole(
        "result-in-sbuf",
        "NCC306",
        "returns t, which is in sbuf | buffer=nl.shared_hbm",
        """
        @nki.jit
        def kernel(x):
            t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="t")  # here
            nisa.dma_copy(dst=t, src=x)
            return t
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "result-view-of-sbuf",
        "NCC306",
        "returns t, which is in sbuf | buffer=nl.shared_hbm",
        """
        @nki.jit
        def kernel(x):
            t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="t")  # here
            nisa.dma_copy(dst=t, src=x)
            return x, t[0:64, 3:9]
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "result-in-hbm",
        "NCC306",
        "returns y, which is in hbm | buffer=nl.shared_hbm",
        """
        @nki.jit
        def kernel(x):
            y = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm, name="y")  # here
            nisa.dma_copy(dst=y, src=x)
            return y
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "result-register",
        "NCC306",
        "returns a register | shared_hbm",
        """
        @nki.jit  # here
        def kernel(x):
            return nisa.register_alloc(3)
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "result-never-written",
        "NCC307",
        "returns y and never writes it | copy the result into it",
        """
        @nki.jit
        def kernel(x):
            y = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="y")  # here
            return y
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "tensor-of-another-run",
        "NCC319",
        "old belongs to another run | as arguments",
        """
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
        """,
        args={"x": "f32[128,512]"},
    ),
    whole(
        "object-field",
        "NCC369",
        "Config has no field 'row' | did you mean rows?",
        """
        class Config(nl.NKIObject):
            rows: int

        @nki.jit
        def kernel(x):
            config = Config(row=3)  # here
            return x
        """,
        args={"x": "f32[128,512]"},
    ),
)
ISA = (
    tiled(
        "unknown-keyword",
        "NCC330",
        "tensor_copy takes no argument 'source' | did you mean src?",
        "nisa.tensor_copy(dst=t, source=t)  # here",
    ),
    tiled(
        "missing-operand",
        "NCC330",
        "tensor_tensor | 'data2' | dst, data1, data2, op",
        "nisa.tensor_tensor(dst=t, data1=t, op=nl.add)  # here",
    ),
    tiled(
        "too-many-operands",
        "NCC330",
        "memset takes from 2 to 4 | 5 were given",
        "nisa.memset(t, 0.0, nisa.engine.vector, 'm', 3)  # here",
    ),
    tiled(
        "flag-operator",
        "NCC351",
        "tensor_scalar takes reverse0 as True or False, was given | name the arguments",
        "nisa.tensor_scalar(t, t, nl.add, 1.0, nl.multiply, 2.0)  # here",
    ),
    tiled(
        "flag-array",
        "NCC351",
        "tensor_reduce takes negate as True or False | array([1, 2])",
        "nisa.tensor_reduce(c, nl.add, t, 1, negate=np.array([1, 2]))  # here",
    ),
    tiled(
        "operand-object",
        "NCC331",
        "tensor_copy takes a tensor as src, was given <object object> of type object",
        "nisa.tensor_copy(dst=t, src=object())  # here",
    ),
    tiled(
        "operand-array",
        "NCC331",
        "was given array([[1., 1.], [1., 1.]]) of type ndarray",
        "nisa.tensor_copy(dst=t, src=np.ones((2, 2)))  # here",
    ),
    tiled(
        "enum-array",
        "NCC351",
        "takes engine as | array([1, 2])",
        "nisa.tensor_copy(dst=t, src=t, engine=np.array([1, 2]))  # here",
    ),
    tiled(
        "bits-of-infinity",
        "NCC342",
        "bits of integers, was given inf",
        "nisa.tensor_scalar(i, i, nl.bitwise_and, float('inf'))  # here",
    ),
    tiled(
        "axis-infinite",
        "NCC349",
        "axis as numbers of dimensions, was given inf",
        "nisa.tensor_reduce(c, nl.add, t, float('inf'))  # here",
    ),
    tiled(
        "register-of-nan",
        "NCC345",
        "register_alloc takes a number as x, was given nan",
        "nisa.register_alloc(float('nan'))  # here",
    ),
    tiled(
        "unknown-call",
        "NCC360",
        "tensor_coppy | did you mean tensor_copy?",
        "nisa.tensor_coppy(dst=t, src=t)  # here",
    ),
    tiled(
        "enum-name",
        "NCC351",
        "engine.vector | 'vectr' | did you mean vector?",
        "nisa.tensor_copy(dst=t, src=t, engine='vectr')  # here",
    ),
    tiled(
        "enum-number",
        "NCC351",
        "dge_mode.swdge | was given 7",
        "nisa.dma_copy(dst=t, src=x, dge_mode=7)  # here",
    ),
    tiled(
        "enum-kind",
        "NCC351",
        "oob_mode.error and oob_mode.skip | dge_mode.hwdge",
        "nisa.dma_copy(dst=t, src=x, oob_mode=nisa.dge_mode.hwdge)  # here",
    ),
    tiled(
        "numpy-operand",
        "NCC331",
        "src | ndarray | nl.shared_constant",
        "nisa.tensor_copy(dst=t, src=np.zeros((128, 512), np.float32))  # here",
    ),
    tiled(
        "list-operand",
        "NCC331",
        "src | list | index the list",
        "nisa.tensor_copy(dst=t, src=[t, t])  # here",
    ),
    tiled(
        "none-operand",
        "NCC331",
        "tensor_copy needs src, was given None",
        "nisa.tensor_copy(dst=t, src=None)  # here",
    ),
    tiled(
        "compute-on-hbm",
        "NCC332",
        "tensor_tensor takes data1 in PSUM or SBUF | x is in HBM | nisa.dma_copy",
        "nisa.tensor_tensor(dst=t, data1=x, data2=t, op=nl.add)  # here",
    ),
    tiled(
        "compute-into-hbm",
        "NCC332",
        "activation takes dst in PSUM or SBUF | out is in HBM | store it with nisa.dma_copy",
        "nisa.activation(dst=out, op=nl.exp, data=t)  # here",
    ),
    tiled(
        "dma-from-psum",
        "NCC332",
        "dma_copy takes src in HBM or SBUF | p is in PSUM | nisa.tensor_copy",
        "nisa.dma_copy(dst=out, src=p)  # here",
    ),
    tiled(
        "matmul-into-sbuf",
        "NCC332",
        "nc_matmul takes dst in PSUM | t is in SBUF | buffer=nl.psum",
        "nisa.nc_matmul(dst=t, stationary=k, moving=t)  # here",
    ),
    tiled(
        "matmul-from-psum",
        "NCC332",
        "nc_matmul takes moving in SBUF | q is in PSUM | nisa.tensor_copy",
        "nisa.nc_matmul(dst=p, stationary=k, moving=q)  # here",
    ),
    tiled(
        "matmul-from-hbm",
        "NCC332",
        "nc_matmul takes stationary in SBUF | w is in HBM",
        "nisa.nc_matmul(dst=p, stationary=w, moving=t)  # here",
    ),
    tiled(
        "iota-in-psum",
        "NCC332",
        "iota takes dst in SBUF | p is in PSUM",
        "nisa.iota(dst=p, pattern=[[1, 512]])  # here",
    ),
    tiled(
        "select-in-psum",
        "NCC332",
        "affine_select takes on_true_tile in SBUF | p is in PSUM",
        "nisa.affine_select(dst=t, pattern=[[1, 512]], channel_multiplier=1, on_true_tile=p, on_false_value=0.0)  # here",
    ),
    tiled(
        "gpsimd-with-psum",
        "NCC343",
        "gpsimd | cannot reach PSUM | dst p (128, 512) | another engine",
        "nisa.tensor_copy(dst=p, src=t, engine=nisa.engine.gpsimd)  # here",
    ),
    tiled(
        "k-differs",
        "NCC333",
        "stationary k (64, 128) has 64 | moving t (128, 512) has 128 | dimension 0",
        "nisa.nc_matmul(dst=p, stationary=k[0:64, :], moving=t)  # here",
    ),
    tiled(
        "k-over-128",
        "NCC310",
        "256 > 128 | partition dimension",
        "y = nl.load(w.reshape((256, 64)))  # here",
    ),
    tiled(
        "m-over-128",
        "NCC336",
        "at most 128 columns of stationary | t (128, 512) has 512 | parts of 128 columns",
        "nisa.nc_matmul(dst=p, stationary=t, moving=t)  # here",
    ),
    tiled(
        "n-over-512",
        "NCC336",
        "at most 512 columns of moving | y (128, 640) has 640 | parts of 512 columns",
        """
        y = nl.ndarray((128, 640), nl.float32, buffer=nl.sbuf, name="y")
        nisa.nc_matmul(dst=p, stationary=k, moving=y)  # here
        """,
    ),
    tiled(
        "over-a-bank",
        "NCC337",
        "4096 bytes a partition | z (128, 1024) | bank holds 2048 | parts of 512 columns",
        """
        y = nl.ndarray((128, 1024), nl.float32, buffer=nl.sbuf, name="y")
        z = nl.ndarray((128, 1024), nl.float32, buffer=nl.psum, name="z")
        nisa.nc_matmul(dst=z, stationary=k, moving=y)  # here
        """,
    ),
    tiled(
        "across-a-bank",
        "NCC337",
        "bytes 1536 to 2560 | the bank of 2048 bytes | where the bank ends",
        """
        z = nl.ndarray((128, 1024), nl.float32, buffer=nl.psum, name="z")
        nisa.nc_matmul(dst=z[:, 384:640], stationary=k, moving=t[:, 0:256])  # here
        """,
    ),
    tiled(
        "matmul-dst-shape",
        "NCC334",
        "128 partitions of 512 elements | p (128, 256) has 128 of 256 | (128, 512)",
        "nisa.nc_matmul(dst=p[:, 0:256], stationary=k, moving=t)  # here",
    ),
    tiled(
        "both-in-psum",
        "NCC344",
        "data1 p (128, 512) | data2 q (128, 512) | copy one of them to SBUF",
        "nisa.tensor_tensor(dst=t, data1=p, data2=q, op=nl.add)  # here",
    ),
    tiled(
        "fp32-and-bf16",
        "NCC340",
        "stationary k (128, 128) is float32 | moving b (128, 512) is bfloat16 | nisa.tensor_copy",
        "nisa.nc_matmul(dst=p, stationary=k, moving=b)  # here",
    ),
    tiled(
        "matmul-of-integers",
        "NCC338",
        "stationary i (128, 128) is int32 | multiplies floats",
        "nisa.nc_matmul(dst=p, stationary=i[:, 0:128], moving=i)  # here",
    ),
    tiled(
        "matmul-dst-dtype",
        "NCC338",
        "dst as float32 | z (128, 512) is bfloat16 | nl.float32",
        """
        z = nl.ndarray((128, 512), nl.bfloat16, buffer=nl.psum, name="z")
        nisa.nc_matmul(dst=z, stationary=b[:, 0:128], moving=b)  # here
        """,
    ),
    tiled(
        "counts-differ",
        "NCC334",
        "dst t (128, 512) has 512 | data1 t (128, 256) has 256 | slice the free dimensions alike",
        "nisa.tensor_tensor(dst=t, data1=t[:, 0:256], data2=t, op=nl.add)  # here",
    ),
    tiled(
        "partitions-differ",
        "NCC333",
        "dst t (64, 512) has 64 | src t (128, 512) has 128",
        "nisa.tensor_copy(dst=t[0:64, :], src=t)  # here",
    ),
    tiled(
        "dma-counts-differ",
        "NCC334",
        "dst t (128, 512) has 65536 | src x (128, 256) has 32768",
        "nisa.dma_copy(dst=t, src=x[:, 0:256])  # here",
    ),
    tiled(
        "transpose-dtype",
        "NCC339",
        "p (128, 128) is float32 | b (128, 128) is bfloat16 | one dtype",
        "nisa.nc_transpose(dst=p[:, 0:128], data=b[:, 0:128])  # here",
    ),
    tiled(
        "transpose-size",
        "NCC336",
        "32 × 32 | k (128, 128) has 128 × 128 | PSUM",
        "nisa.nc_transpose(dst=k, data=k)  # here",
    ),
    tiled(
        "hwdge-dtype",
        "NCC352",
        "dge_mode.hwdge | b (128, 512) is bfloat16 | x (128, 512) is float32 | one dtype",
        "nisa.dma_copy(dst=b, src=x, dge_mode=nisa.dge_mode.hwdge)  # here",
    ),
    tiled(
        "dma-transpose-shape",
        "NCC353",
        "x (128, 512) into (512, 128) | t (128, 512) | allocate dst as (512, 128)",
        "nisa.dma_transpose(dst=t, src=x)  # here",
    ),
    tiled(
        "memset-kind",
        "NCC345",
        "i (128, 512) of int32 | 0.5 | integer",
        "nisa.memset(dst=i, value=0.5)  # here",
    ),
    tiled(
        "reduce-partitions",
        "NCC349",
        "axis 0 of data t (128, 512) is the partitions | nisa.tensor_partition_reduce",
        "nisa.tensor_reduce(dst=c, op=nl.add, data=t, axis=0)  # here",
    ),
    tiled(
        "reduce-middle",
        "NCC349",
        "axis 1 of data y (128, 4, 128) does not end at 2 | permute",
        """
        y = nl.ndarray((128, 4, 128), nl.float32, buffer=nl.sbuf, name="y")
        nisa.tensor_reduce(dst=t[:, 0:128], op=nl.add, data=y, axis=1)  # here
        """,
    ),
    tiled(
        "reduce-dst",
        "NCC334",
        "over axis 1 leaves 1 elements | dst t (128, 512) has 512",
        "nisa.tensor_reduce(dst=t, op=nl.add, data=t, axis=1)  # here",
    ),
    tiled(
        "bias-shape",
        "NCC346",
        "one number a partition as bias | t (128, 4) has 4 | (P, 1)",
        "nisa.activation(dst=t, op=nl.exp, data=t, bias=t[:, 0:4])  # here",
    ),
    tiled(
        "bias-partitions",
        "NCC333",
        "data t (128, 512) has 128 | bias c (64, 1) has 64",
        "nisa.activation(dst=t, op=nl.exp, data=t, bias=c[0:64, :])  # here",
    ),
    tiled(
        "scale-dtype",
        "NCC338",
        "scale as a number or a float32 column | b (128, 1) is bfloat16 | nl.float32",
        "nisa.activation(dst=t, op=nl.exp, data=t, scale=b[:, 0:1])  # here",
    ),
    tiled(
        "operand-shape",
        "NCC346",
        "operand0 k (128, 128) has 128 | nisa.tensor_tensor",
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=k)  # here",
    ),
    tiled(
        "operand-text",
        "NCC345",
        "a number as operand0 | '2'",
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0='2')  # here",
    ),
    tiled(
        "function-as-operator",
        "NCC341",
        "tensor_tensor cannot apply exp as op | nisa.activation(op=nl.exp)",
        "nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.exp)  # here",
    ),
    tiled(
        "operator-as-function",
        "NCC341",
        "activation cannot apply add as op | nisa.tensor_tensor(op=nl.add)",
        "nisa.activation(dst=t, op=nl.add, data=t)  # here",
    ),
    tiled(
        "operator-text",
        "NCC341",
        "'ad' | op",
        "nisa.tensor_tensor(dst=t, data1=t, data2=t, op='ad')  # here",
    ),
    tiled(
        "bits-of-floats",
        "NCC342",
        "bitwise_and | t (128, 512) is float32 | nl.int32",
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1)  # here",
    ),
    tiled(
        "bits-and-numbers",
        "NCC342",
        "bitwise_and | add | one call for each",
        "nisa.tensor_scalar(dst=i, data=i, op0=nl.bitwise_and, operand0=1, op1=nl.add, operand1=1)  # here",
    ),
    tiled(
        "engine",
        "NCC343",
        "vector, scalar or gpsimd engine, not on tensor | leave engine out",
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.tensor)  # here",
    ),
    tiled(
        "power-engine",
        "NCC343",
        "power runs on the gpsimd engine, not on vector | nisa.engine.gpsimd",
        "nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.power, engine=nisa.engine.vector)  # here",
    ),
    tiled(
        "half-a-tile-position",
        "NCC354",
        "only tile_position | pass tile_size too",
        "nisa.nc_matmul(dst=p, stationary=k, moving=t, tile_position=(0, 0))  # here",
    ),
    tiled(
        "tile-size",
        "NCC354",
        "128, 64 or 32 rows | was given 96",
        "nisa.nc_matmul(dst=p, stationary=k, moving=t, tile_position=(0, 0), tile_size=(96, 128))  # here",
    ),
    tiled(
        "mixed-accumulation",
        "NCC350",
        "accumulate=None | p (128, 512) | accumulate=True or False",
        """
        nisa.memset(dst=p[0:64, 0:8], value=0.0)
        nisa.nc_matmul(dst=p, stationary=k, moving=t)  # here
        """,
    ),
    tiled(
        "no-second-core",
        "NCC355",
        "sendrecv | runs on 1 | kernel[2]",
        "nisa.sendrecv(src=t, dst=t, send_to_rank=1, recv_from_rank=1, pipe_id=0)  # here",
    ),
    tiled(
        "slots",
        "NCC356",
        "8 elements a partition | c (128, 1) has 1 | (P, 8)",
        "nisa.max8(dst=c, src=t)  # here",
    ),
    tiled(
        "bn-stats-width",
        "NCC356",
        "1 to 512 elements | y (128, 600) has 600 | merge",
        """
        y = nl.ndarray((128, 600), nl.float32, buffer=nl.sbuf, name="y")
        nisa.bn_stats(dst=t[:, 0:6], data=y)  # here
        """,
    ),
    tiled(
        "register-of-a-row",
        "NCC357",
        "one element as src | i (1, 4) has 4",
        "r = nisa.register_alloc(0)\nnisa.register_load(dst=r, src=i[0:1, 0:4])  # here",
    ),
    tiled(
        "range-select-fill",
        "NCC345",
        "least float32 | 0.0 | nl.fp32.min",
        "nisa.range_select(dst=t, on_true_tile=t, comp_op0=nl.less, comp_op1=nl.less, bound0=c, bound1=c, on_false_value=0.0)  # here",
    ),
    tiled(
        "load-reduce",
        "NCC358",
        "reduce_cmd.load_reduce needs reduce_init | reset_reduce",
        "nisa.tensor_scalar_reduce(dst=t, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=c, reduce_cmd=nisa.reduce_cmd.load_reduce)  # here",
    ),
    tiled(
        "mx",
        "NCC348",
        "nc_matmul_mx | MX | nisa.nc_matmul",
        "nisa.nc_matmul_mx(dst=p, stationary=k, moving=t, stationary_scale=c, moving_scale=c)  # here",
    ),
    tiled(
        "quantize-mx",
        "NCC348",
        "quantize_mx | MX",
        "nisa.quantize_mx(dst=t, src=t, dst_scale=c)  # here",
    ),
    tiled(
        "later-machine",
        "NCC347",
        "dma_transpose comes with trn2 | target is trn1 | nisa.nc_transpose",
        "nisa.dma_transpose(dst=k, src=w)  # here",
        target="trn1",
    ),
    tiled(
        "shuffle-mask",
        "NCC351",
        "entries 0 to 31, or 255 | entry 31 is 40",
        "nisa.nc_stream_shuffle(dst=t, src=t, shuffle_mask=[0] * 31 + [40])  # here",
    ),
    tiled(
        "gather-index-dtype",
        "NCC338",
        "indices as uint32 | i (128, 512) is int32",
        "nisa.nc_n_gather(dst=t, data=t, indices=i)  # here",
    ),
    tiled(
        "predicate-dtype",
        "NCC338",
        "predicate t (128, 512) is float32 | uint8",
        "nisa.tensor_copy_predicated(dst=t, src=t, predicate=t)  # here",
    ),
    tiled(
        "dynamic-start",
        "NCC322",
        "t is float32 | (1, 1) int32 tile in SBUF",
        "nisa.tensor_copy(dst=t[:, 0:2], src=t[:, nl.ds(t[0:1, 0:1], 2)])  # here",
    ),
    tiled(
        "tensor-indirection",
        "NCC323",
        ".indirect of t | trn3 | nisa.nc_n_gather",
        "nisa.tensor_copy(dst=t[:, 0:16], src=t.indirect(i[:, 0:1], 16))  # here",
    ),
)
LANGUAGE = (
    whole(
        "yields",
        "NCC306",
        "kernel is a generator or async | return the results",
        """
        @nki.jit  # here
        def kernel(x):
            yield x
        """,
        args={"x": "f32[3,4]"},
        ways=("simulated", "compiled"),
    ),
    whole(
        "holds-itself",
        "NCC306",
        "kernel calls itself without an end, or returns what holds itself",
        """
        @nki.jit  # here
        def kernel(x):
            return kernel(x)
        """,
        args={"x": "f32[3,4]"},
        ways=("simulated", "compiled"),
    ),
    tiled(
        "range-without-a-step",
        "NCC363",
        "nl.affine_range takes a step that is not 0",
        "for n in nl.affine_range(0, 4, 0): pass  # here",
    ),
    tiled(
        "body-of-two",
        "NCC363",
        "nl.fori_loop calls its body with one value, and the body takes others",
        "nl.fori_loop(0, 4, lambda i, total: None)  # here",
    ),
    tiled(
        "loop-of-too-many-turns",
        "NCC363",
        "counts in 32 bits, was given 1180591620717411303424 as upper",
        "nl.fori_loop(0, 1 << 70, lambda i: None)  # here",
    ),
    tiled(
        "loop-to-a-float",
        "NCC363",
        "takes a whole number as upper, was given a float32 register",
        "nl.fori_loop(0, nisa.register_alloc(2.5), lambda i: None)  # here",
    ),
    tiled(
        "filled-with-an-array",
        "NCC325",
        "filled with a number, not array([1, 2])",
        "y = nl.full((128, 8), np.array([1, 2]), nl.float32)  # here",
    ),
    tiled(
        "identity-into-an-array",
        "NCC331",
        "nl.shared_identity_matrix takes a tensor",
        "nl.shared_identity_matrix(4, dst=np.ones((4, 4)))  # here",
    ),
    tiled(
        "no-value",
        "NCC361",
        "nl.negative of True has no value",
        "y = nl.negative(True)  # here",
    ),
    tiled(
        "name-that-is-no-text",
        "NCC330",
        "dma_copy takes name as text | 5",
        "nisa.dma_copy(t, x, name=5)  # here",
    ),
    tiled(
        "depends-on-a-number",
        "NCC330",
        "depends_on | 5 | the earlier call",
        "nisa.tensor_copy(dst=t, src=t).depends_on(5)  # here",
    ),
    tiled("tensor-plus-none", "NCC361", "nl.add takes a tile | None", "y = t + None  # here"),
    tiled(
        "numpy-function",
        "NCC317",
        "numpy.exp | the tensor t | nki.language",
        "y = np.exp(t)  # here",
    ),
    tiled(
        "numpy-of-tensors",
        "NCC317",
        "numpy.concatenate | the tensor t",
        "y = np.concatenate([t, k], axis=1)  # here",
    ),
    tiled(
        "old-name",
        "NCC360",
        "nl.arange | older API | neuronxcc.nki | slices",
        "n = nl.arange(128)  # here",
    ),
    tiled(
        "misspelt-name",
        "NCC360",
        "shared_hmb | did you mean shared_hbm?",
        "n = nl.shared_hmb  # here",
    ),
    tiled(
        "old-mask",
        "NCC330",
        "load takes no argument 'mask' | min(start + size, extent)",
        "y = nl.load(x, mask=None)  # here",
    ),
    tiled("nl-operand", "NCC361", "nl.add takes a tile | 'x'", "y = nl.add('x', t)  # here"),
    tiled(
        "nl-shapes",
        "NCC362",
        "t (128, 512) and k (128, 128) | view.broadcast",
        "y = nl.add(t, k)  # here",
    ),
    tiled(
        "nl-fold-rows",
        "NCC365",
        "nl.sum over axis 0 of t (128, 512) | nisa.tensor_partition_reduce",
        "y = nl.sum(t, axis=0)  # here",
    ),
    tiled(
        "nl-matmul",
        "NCC362",
        "contracts 64 with 128 | t (64, 128) and k (128, 128)",
        "y = nl.matmul(t[0:64, 0:128], k, transpose_x=True)  # here",
    ),
    tiled("nl-store-psum", "NCC332", "p is in PSUM | nisa.tensor_copy", "nl.store(out, p)  # here"),
    tiled(
        "nl-load-rows",
        "NCC310",
        "256 > 128 | loop over blocks of 128 rows",
        "y = nl.load(x.reshape((256, 256)))  # here",
    ),
    tiled(
        "grid-axis",
        "NCC366",
        "nl.program_id(1) | 0 axes | kernel[cores]",
        "n = nl.program_id(1)  # here",
    ),
    tiled(
        "collective-of-an-argument",
        "NCC367",
        "all_reduce | was given x | nl.shared_hbm",
        """
        import nki.collectives as ncc
        ncc.all_reduce([x], [out], ncc.ReplicaGroup([[0, 1]]), nl.add)  # here
        """,
    ),
    tiled(
        "collective",
        "NCC368",
        "all_reduce moves data between ranks | one rank",
        """
        import nki.collectives as ncc
        y = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm, name="y")
        z = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm, name="z")
        ncc.all_reduce([y], [z], ncc.ReplicaGroup([[0, 1]]), nl.add)  # here
        """,
    ),
)
# what the simulator does not know: capacity, PSUM groups, and bytes that nobody wrote
COMPILED = (
    whole(
        "three-wide-tiles",
        "NCC502",
        "a 98568 bytes (kernel.py:9) | b 98568 bytes (kernel.py:10) | c 98568 bytes (kernel.py:11) | 3 tiles | (kernel.py:14) take 295704 bytes | trn2 has 212984 | tiles smaller",
        """
        @nki.jit
        def kernel(A, B):
            C = nl.ndarray(A.shape, A.dtype, buffer=nl.shared_hbm)
            a = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="a")  # here
            b = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="b")
            c = nl.ndarray((128, 24642), nl.float32, buffer=nl.sbuf, name="c")
            nisa.dma_copy(dst=a, src=A)
            nisa.dma_copy(dst=b, src=B)
            nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)
            nisa.dma_copy(dst=C, src=c)
            return C
        """,
        args={"A": "f32[128,24642]", "B": "f32[128,24642]"},
        ways=BYTES,
    ),
    tiled(
        "one-wide-tile",
        "NCC501",
        "y takes 240000 bytes a partition | trn2 has 212984 | cut the tile",
        """
        y = nl.ndarray((128, 60000), nl.float32, buffer=nl.sbuf, name="y")  # here
        nisa.memset(dst=y, value=1.0)
        nisa.tensor_copy(dst=t, src=y[:, 0:512])
        """,
        ways=BYTES,
    ),
    tiled(
        "wide-psum-tile",
        "NCC504",
        "y takes 20480 bytes | 8 banks of trn2 have 16384 | cut the tile",
        """
        y = nl.ndarray((128, 5120), nl.float32, buffer=nl.psum, name="y")  # here
        for n in range(10):
            nisa.memset(dst=y[:, 512 * n : 512 * n + 512], value=1.0)
        nisa.tensor_copy(dst=t, src=y[:, 0:512])
        """,
        ways=BYTES,
    ),
    tiled(
        "nine-sums",
        "NCC503",
        "9 PSUM tiles | take 9 banks | trn2 has 8 | sum0 1 bank (kernel.py:18) | sum8 1 bank (kernel.py:18) | copy a finished sum to SBUF",
        """
        sums = [nl.ndarray((128, 512), nl.float32, buffer=nl.psum, name=f"sum{n}") for n in range(9)]  # here
        for one in sums + sums:
            nisa.nc_matmul(dst=one, stationary=k, moving=t)
        for one in sums:
            nisa.tensor_tensor(dst=t, data1=t, data2=one, op=nl.add)
        """,
        ways=BYTES,
    ),
    tiled(
        "sum-of-nothing",
        "NCC604",
        "adds to bytes of PSUM that nothing has written | does not accumulate",
        """
        nisa.nc_matmul(dst=p, stationary=k, moving=t, accumulate=True)  # here
        nisa.tensor_copy(dst=t, src=p)
        """,
        ways=BYTES,
    ),
    tiled(
        "half-written",
        "NCC903",
        "32768 elements that nobody wrote | output out | write them first",
        """
        y = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf, name="y")
        nisa.tensor_copy(dst=y[:, 0:256], src=t[:, 0:256])
        nisa.dma_copy(dst=out, src=y)  # here
        """,
        ways=BYTES,
    ),
    tiled(
        "row-outside",
        "NCC905",
        "row 500 of 128 | oob_mode.skip",
        """
        nisa.memset(dst=i, value=500)
        nisa.dma_copy(dst=t, src=x.ap([[512, 128], [1, 512]], vector_offset=i[:, 0:1]))  # here
        """,
        ways=BYTES,
    ),
    tiled(
        "row-outside-simulated",
        "NCC280",
        "row 0 has index 500 | 128 that x has | oob_mode.skip",
        """
        nisa.memset(dst=i, value=500)
        nisa.dma_copy(dst=t, src=x.ap([[512, 128], [1, 512]], vector_offset=i[:, 0:1]))  # here
        """,
        ways=("simulated",),
    ),
    tiled(
        "loop-past-the-end",
        "NCC280",
        "2 elements from index 16 | dimension 1 of y (128, 16), which has 16 | end the loop earlier",
        """
        y = nl.ndarray((128, 16), nl.float32, buffer=nl.sbuf, name="y")
        nisa.memset(dst=y, value=0.0)
        for r in nl.dynamic_range(0, 17, 2):
            nisa.tensor_copy(dst=t[:, nl.ds(r, 2)], src=y[:, nl.ds(r, 2)])  # here
        """,
    ),
)
OLD_KERNEL = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(64)[:, None], nl.arange(32)[None, :]
    t = nl.load(x[ip, jf])
BODY
    nl.store(out, value=t)
    return out
"""


def old(name: str, code: str, words: str, body: str, **more: Any) -> Wrong:
    """`body` in a kernel of the older API that has loaded a tile."""
    text = HEAD.replace("nki", "neuronxcc.nki").replace(
        "import neuronxcc.nki\n", "import neuronxcc.nki as nki\n"
    )
    text += OLD_KERNEL.replace("BODY\n", indent(dedent(body).strip("\n"), "    ") + "\n")
    return Wrong(name, code, tuple(words.split(" | ")), text, {"x": "f32[64,32]"}, **more)


OLDER = (
    old(
        "old-256-rows",
        "NCC310",
        "256 > 128 | partition dimension | loop over blocks of 128 rows | (128, 2, 8)",
        "y = nl.load(x.reshape((256, 8)))  # here",
    ),
    old(
        "masks-with-or",
        "NCC372",
        "cannot be built with | joined with &",
        "y = nl.load(x[ip, jf], mask=(ip < 8) | (jf < 8))  # here",
    ),
    old(
        "mask-negated",
        "NCC372",
        "~ | joined with &",
        "y = nl.load(x[ip, jf], mask=~(ip < 8))  # here",
    ),
    old(
        "mask-on-data",
        "NCC372",
        "nl.load | a tensor | nl.where",
        "y = nl.load(x[ip, jf], mask=t > 0)  # here",
    ),
    old(
        "mask-array",
        "NCC372",
        "a ndarray | comparison of nl.arange",
        "y = nl.load(x[ip, jf], mask=np.ones((64, 32), bool))  # here",
    ),
    old(
        "masks-with-and",
        "NCC317",
        "no single truth value | join masks with &",
        "y = nl.load(x[ip, jf], mask=(ip < 8) and (jf < 8))  # here",
    ),
    old(
        "mask-of-another-shape",
        "NCC373",
        "(1, 16) | (64, 32) | indices that select the tile",
        "y = nl.add(t, t, mask=nl.arange(16)[None, :] < 4)  # here",
    ),
    old(
        "if-arange",
        "NCC317",
        "no single truth value | mask=",
        "if ip < 8:  # here\n    y = nl.load(x)",
    ),
    old(
        "one-dimensional-index",
        "NCC370",
        "an index of x | nl.arange(n)[:, None]",
        "y = nl.load(x[nl.arange(64), nl.arange(32)])  # here",
    ),
    old(
        "mixed-index",
        "NCC313",
        "an index of x mixes index tensors and slices | every dimension",
        "y = nl.load(x[ip, 0:32])  # here",
    ),
    old(
        "old-out-of-bounds",
        "NCC314",
        "dimension 0 of x has 64 elements | 1 to 64 | mask=",
        "y = nl.load(x[ip + 1, jf])  # here",
    ),
    old(
        "old-slice",
        "NCC314",
        "dimension 0 of x has 64 elements | 60 to 67",
        "y = nl.load(x[nl.ds(60, 8), :])  # here",
    ),
    old(
        "index-product",
        "NCC371",
        "product of an index tensor | Python loop",
        "y = nl.load(x[ip * jf, jf])  # here",
    ),
    old("index-quotient", "NCC371", "divided by 2 | //", "y = nl.load(x[ip / 2, jf])  # here"),
    old("asserted-shape", "NCC374", "(64, 32) | (64, 31)", "t.assert_shape((64, 31))  # here"),
    old(
        "blocks",
        "NCC375",
        "2 blocks | stay as they are",
        """
        y = nl.ndarray((2, nl.par_dim(64), 32), dtype=nl.float32, buffer=nl.sbuf)
        z = y.reshape((128, 32))  # here
        """,
    ),
    old(
        "custom-operator",
        "NCC377",
        "builtin_custom_op | nki.isa",
        "nisa.builtin_custom_op('f', [], [], [])  # here",
    ),
    old(
        "old-store-shape",
        "NCC334",
        "(64, 32) | (32, 32) | one shape",
        "nl.store(out, t[0:32, :])  # here",
    ),
    old(
        "old-if-tile",
        "NCC317",
        "the truth value of the tensor | kernel.py:10 | nl.where",
        "if t[0, 0]:  # here\n    pass",
    ),
    old(
        "old-misspelt",
        "NCC360",
        "neuronxcc.nki.language has no lod | did you mean load?",
        "y = nl.lod(x)  # here",
    ),
    old(
        "old-misspelt-call",
        "NCC360",
        "neuronxcc.nki.isa has no tensor_coppy | did you mean tensor_copy?",
        "y = nisa.tensor_coppy(t)  # here",
    ),
)
PAIRS = (
    whole(
        "shared-shape",
        "NCC382",
        "float32 [64, 32] | float32 [64, 33] | differently",
        """
        @nki.jit
        def kernel(x):
            y = nl.ndarray((64, 32 + nl.program_id(0)), nl.float32, buffer=nl.shared_hbm, name="y")  # here
            return x
        """,
        args={"x": "f32[128,512]"},
        lnc=2,
    ),
    whole(
        "barrier-on-one-core",
        "NCC396",
        "core",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="out")
            if nl.program_id(0) == 0:
                nisa.core_barrier(data=out, cores=(0, 1))  # here
            nisa.dma_copy(dst=out, src=x)
            return out
        """,
        args={"x": "f32[128,512]"},
        lnc=2,
    ),
    whole(
        "no-receiver",
        "NCC396",
        "core",
        """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="out")
            t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name="t")
            nisa.dma_copy(dst=t, src=x)
            if nl.program_id(0) == 0:
                nisa.sendrecv(src=t, dst=t, send_to_rank=1, recv_from_rank=1, pipe_id=0)  # here
            nisa.dma_copy(dst=out, src=t)
            return out
        """,
        args={"x": "f32[128,512]"},
        lnc=2,
    ),
)
CASES = OLDER + PAIRS + COMPILED + ALLOCATIONS + INDICES + PYTHON + CALLS + ISA + LANGUAGE
