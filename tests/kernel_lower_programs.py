"""Random whole kernels: tiles that are written in parts, reused, placed and seen as other types."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_lower_tools import Builder, T

DTYPES = ("float32", "bfloat16", "float16", "int32", "uint8", "float8e4")
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "int32": 4, "uint8": 1, "float8e4": 1}
FLOATS = ("float32", "bfloat16", "float16", "float8e4")
ALU = ("add", "subtract", "multiply", "maximum", "minimum", "greater", "equal")


class Program:
    """One kernel from one seed."""

    def __init__(self, seed: int, ops: int = 30, placed: bool = False) -> None:
        self.r = np.random.default_rng(seed)
        self.b = Builder(f"random{seed}")
        self.placed, self.next, self.bank = placed, 0, 0
        self.tiles: list[T] = []
        self.sums: list[T] = []
        self.n = 0
        for _ in range(3):
            self.load()
        for _ in range(ops):
            getattr(self, str(self.r.choice(self.KINDS)))()
        for t in [*self.tiles, *self.sums]:
            self.store(t)

    KINDS = (
        *("load", "copy", "copy", "two", "two", "scalar", "scalar", "fold", "act", "fill"),
        *("matmul", "matmul", "transpose", "bits", "back", "select", "shuffle", "hbm", "stt"),
        *("odd", "odd", "odd", "affine", "narrow", "wide"),
    )

    # --- choices ----------------------------------------------------------------------------------

    def name(self, wish: str) -> str:
        self.n += 1
        return f"{wish}{self.n}"

    def pick(self, *words: Any) -> Any:
        return words[int(self.r.integers(len(words)))]

    def tile(self, dtype: str, rows: int, *free: int) -> T:
        """A new SBUF tile, or one that a program has and that has this shape."""
        old = [t for t in self.tiles if t.shape == (rows, *free) and t.buffer.dtype == dtype]
        if old and self.r.random() < 0.5:
            return old[int(self.r.integers(len(old)))]
        at = None
        if self.placed:
            size = -(-int(np.prod(free)) * SIZE[dtype] // 4) * 4
            at = (0, self.next)
            self.next += size + 4 * int(self.r.integers(3))
        made = self.b.sb(self.name("t"), dtype, rows, *free, at=at)
        self.tiles.append(made)
        self.b.emit("memset", dst=made, value=int(self.r.integers(5)))
        return made

    def source(self, *dtypes: str) -> T:
        """A tile that is written, or a part of it."""
        found = [t for t in self.tiles if not dtypes or t.buffer.dtype in dtypes]
        if not found:
            return self.load(str(self.pick(*dtypes)))
        return self.part(found[int(self.r.integers(len(found)))])

    def part(self, t: T) -> T:
        """Some of a tile: columns, every second column, a quadrant of partitions."""
        rows, *free = t.shape
        if self.r.random() < 0.3 and rows > 32:
            first = int(self.pick(*range(0, rows, 32)))
            high = min(32, rows - first)
            t = t[first : first + high]
        for axis in range(1, len(free) + 1):
            n = t.shape[axis]
            if self.r.random() < 0.3 and n > 2:
                first = int(self.r.integers(n - 1))
                index: list[Any] = [slice(None)] * (axis + 1)
                index[axis] = slice(
                    first, int(self.r.integers(first + 1, n + 1)), self.pick(1, 1, 2)
                )
                t = t[tuple(index)]
        return t

    def like(self, t: T, dtype: str = "") -> T:
        """Where something of a tile's shape can go: a new tile, or part of one that has room."""
        shape = t.shape
        room = [
            x
            for x in self.tiles
            if len(x.shape) == len(shape)
            and all(a >= b for a, b in zip(x.shape, shape, strict=True))
            and (not dtype or x.buffer.dtype == dtype)
        ]
        if room and self.r.random() < 0.5:
            to = room[int(self.r.integers(len(room)))]
            first = t.offset // self.row(t) % 128 if to.shape[0] > shape[0] else 0
            if first + shape[0] > to.shape[0] or (shape[0] > 32 and first):
                first = 0
            index: list[Any] = [slice(first, first + shape[0])]
            for a, b in zip(to.shape[1:], shape[1:], strict=True):
                at = int(self.r.integers(a - b + 1))
                index.append(slice(at, at + b))
            return to[tuple(index)]
        return self.tile(dtype or str(self.pick(*DTYPES)), *shape)

    @staticmethod
    def row(t: T) -> int:
        return int(np.prod(t.buffer.shape[1:]))

    def turned(self, t: T) -> T:
        """The same elements in another order of their free dimensions."""
        free = [t.pairs[1 + int(i)] for i in self.r.permutation(len(t.pairs) - 1)]
        return t.ap((t.pairs[0], *free), t.offset)

    def flat(self, t: T, dtype: str = "") -> T:
        """A destination with as many elements a partition, of another shape."""
        rows, count = t.shape[0], int(np.prod(t.shape[1:]))
        shapes = [(count,)]
        shapes += [(a, count // a) for a in range(2, count) if count % a == 0]
        shape = shapes[int(self.r.integers(len(shapes)))]
        pad = tuple(n + int(self.pick(0, 0, 1, 3)) for n in shape)
        made = self.tile(dtype or str(self.pick(*DTYPES)), rows, *pad)
        return made[(slice(None), *(slice(0, n) for n in shape))]

    # --- ops --------------------------------------------------------------------------------------

    def load(self, dtype: str = "") -> T:
        dtype = dtype or str(self.pick(*DTYPES))
        rows = int(self.pick(128, 128, 64, 32, 5, 1))
        free = self.pick((24,), (4, 6), (3, 2, 4), (1,), (7,))
        x = self.b.input(self.name("x"), dtype, (rows, *free))
        t = self.tile(dtype, rows, *free)
        self.b.emit("dma_copy", dst=t, src=x)
        return t

    def store(self, t: T) -> None:
        """To an output; from PSUM through SBUF, and sums in two ways."""
        if t.buffer.memory == "psum":
            held = self.b.sb(self.name("s"), t.buffer.dtype, *t.shape)
            self.b.emit("tensor_copy", dst=held, src=t)
            t = held
        y = self.b.output(self.name("y"), t.buffer.dtype, t.shape)
        self.b.emit("dma_copy", dst=y, src=t)

    def copy(self) -> None:
        src = self.source()
        self.b.emit("tensor_copy", self.pick("unknown", "vector"), dst=self.like(src), src=src)

    def odd(self) -> None:
        """Shapes that do not agree: permuted sources, flattened destinations."""
        a = self.turned(self.source())
        kind = int(self.r.integers(6))
        if kind == 0:
            self.b.emit("tensor_copy", dst=self.flat(a), src=a)
        elif kind == 1:
            self.b.emit("tensor_scalar", dst=self.flat(a), data=a, op0="add", operand0=2.0)
        elif kind == 2:
            self.b.emit("tensor_tensor", dst=self.flat(a), data1=a, data2=a, op="add")
        elif kind == 3:
            first = self.column(a)
            self.b.emit(
                "tensor_tensor_scan", dst=self.flat(a, "float32"), data0=a, data1=a, initial=first,
                op0="maximum", op1="minimum",
            )  # fmt: skip
        elif kind == 4 and a.buffer.dtype in FLOATS:
            res = self.like(T(a.buffer, ((1, a.shape[0]), (1, 1)), a.offset), "float32")
            self.b.emit(
                "tensor_scalar_reduce", dst=self.flat(a, "float32"), data=a, operand0=1.0,
                reduce_res=res, op0="add", reduce_op=self.pick("maximum", "minimum"),
            )  # fmt: skip
        else:
            self.b.emit("dma_copy", dst=self.flat(a, a.buffer.dtype), src=a)

    def affine(self) -> None:
        a = self.source("float32", "int32")
        count = int(np.prod(a.shape[1:]))
        keys: dict[str, Any] = {"pattern": ((-1, count),), "channel_multiplier": 1}
        keys["offset"] = int(self.r.integers(-3, 9))
        op = self.pick("greater", "greater_equal", "equal", "less", "less_equal", "not_equal")
        dst = self.flat(a, a.buffer.dtype)
        self.b.emit(
            "affine_select", dst=dst, on_true_tile=a, cmp_op=op, on_false_value=-7.0, **keys
        )
        keys.pop("offset")
        self.b.emit("iota", dst=self.like(a, "int32"), **keys)

    def fill(self) -> None:
        t = self.source()
        self.b.emit("memset", dst=t, value=int(self.r.integers(9)))

    def two(self) -> None:
        a = self.source()
        b = self.like(a)
        if b.offset // self.row(b) % 128 != a.offset // self.row(a) % 128:
            b = a
        self.b.emit("tensor_tensor", dst=self.like(a), data1=a, data2=b, op=self.pick(*ALU))

    def scalar(self) -> None:
        a = self.source()
        keys: dict[str, Any] = {"op0": self.pick(*ALU), "operand0": float(self.r.integers(-3, 4))}
        if self.r.random() < 0.5:
            keys |= {"op1": self.pick(*ALU), "operand1": float(self.r.integers(-3, 4))}
            keys["reverse1"] = bool(self.r.random() < 0.5)
        if self.r.random() < 0.3:
            keys["operand0"] = self.column(a)
        self.b.emit("tensor_scalar", dst=self.like(a), data=a, **keys)

    def column(self, a: T) -> T:
        """A column beside a tile: one element of each of its partitions."""
        index: list[Any] = [slice(None), *(slice(0, 1) for _ in a.shape[1:])]
        return a[tuple(index)]

    def stt(self) -> None:
        a = self.source()
        keys = {"op0": self.pick(*ALU), "op1": self.pick(*ALU)}
        scalar: Any = self.column(a) if self.r.random() < 0.5 else 2.0
        self.b.emit(
            "scalar_tensor_tensor", dst=self.like(a), data=a, operand0=scalar, operand1=a, **keys
        )

    def fold(self) -> None:
        a = self.source()
        rank = len(a.shape)
        axis = tuple(range(int(self.r.integers(1, rank)), rank))
        kept = a.shape[: axis[0]] + tuple(1 for _ in axis)
        to = self.like(T(a.buffer, tuple((1, n) for n in kept), a.offset))
        op = self.pick("add", "maximum", "minimum")
        negate = bool(self.r.random() < 0.3)
        self.b.emit("tensor_reduce", dst=to, data=a, op=op, axis=axis, negate=negate)

    def act(self) -> None:
        a = self.source(*FLOATS)
        keys: dict[str, Any] = {"op": self.pick("copy", "square", "relu", "sign", "abs")}
        if self.r.random() < 0.4:
            keys["scale"] = 2.0
        if self.r.random() < 0.4:
            keys["bias"] = self.column(a) if self.r.random() < 0.5 else 1.0
        if self.r.random() < 0.4:
            res = self.like(T(a.buffer, ((1, a.shape[0]), (1, 1)), a.offset), "float32")
            keys |= {"reduce_op": "add", "reduce_cmd": "reset_reduce", "reduce_res": res}
        self.b.emit("activation", dst=self.like(a), data=a, **keys)

    def bits(self) -> None:
        a = self.source("int32", "uint8")
        dtype = a.buffer.dtype
        op = self.pick("bitwise_and", "bitwise_or", "bitwise_xor")
        if self.r.random() < 0.5:
            n = int(self.r.integers(100))
            self.b.emit("tensor_scalar", dst=self.like(a, dtype), data=a, op0=op, operand0=n)
        else:
            self.b.emit("tensor_tensor", dst=self.like(a, dtype), data1=a, data2=a, op=op)

    def select(self) -> None:
        a = self.source()
        mask = self.like(a, "uint8")
        self.b.emit("tensor_scalar", dst=mask, data=a, op0="greater", operand0=1.0)
        dst = self.like(a, a.buffer.dtype)
        self.b.emit("tensor_copy_predicated", dst=dst, src=a, predicate=mask)

    def shuffle(self) -> None:
        whole = [t for t in self.tiles if t.shape[0] % 32 == 0]
        if whole:
            a = whole[int(self.r.integers(len(whole)))]
            mask = tuple(int(x) for x in self.r.permutation(32))
            dst = self.tile(a.buffer.dtype, *a.shape)
            self.b.emit("nc_stream_shuffle", dst=dst, src=a, shuffle_mask=mask)

    def hbm(self) -> None:
        """Out to HBM and back in another shape."""
        a = self.source()
        count = int(np.prod(a.shape))
        h = self.b.tensor(self.name("h"), a.buffer.dtype, (count,), "hbm")
        self.b.emit("dma_copy", dst=h, src=a)
        to = self.like(a)
        if self.r.random() < 0.3 and to.buffer.dtype == "float8e4":
            to = self.tile(a.buffer.dtype, *a.shape)
        self.b.emit("dma_copy", dst=to, src=h)

    def psum(self, rows: int, *free: int, dtype: str = "float32") -> T:
        old = [t for t in self.sums if t.shape == (rows, *free) and t.buffer.dtype == dtype]
        if old and (self.r.random() < 0.6 or len(self.sums) > 5):
            return old[int(self.r.integers(len(old)))]
        if len(self.sums) > 6:
            return self.b.psum(self.name("p"), dtype, rows, *free)
        made = self.b.psum(self.name("p"), dtype, rows, *free)
        self.sums.append(made)
        self.b.emit("memset", dst=made, value=int(self.pick(0, 0, 3)))
        return made

    def operand(self, columns: int) -> T:
        x = self.b.input(self.name("m"), "bfloat16", (128, columns))
        t = self.tile("bfloat16", 128, columns)
        self.b.emit("dma_copy", dst=t, src=x)
        return t

    def matmul(self) -> None:
        """A group or two into one PSUM tile, whole or by parts of its columns."""
        m, n = int(self.pick(128, 32)), int(self.pick(24, 48))
        w, x = self.operand(m), self.operand(n)
        p = self.psum(m, 48)
        first = int(self.r.integers(48 - n + 1))
        to = p[:, first : first + n]
        for k in range(int(self.r.integers(1, 4))):
            adds = k > 0 or self.r.random() < 0.2
            self.b.emit("nc_matmul", dst=to, stationary=w, moving=x, accumulate=adds)
        if self.r.random() < 0.7:
            self.b.emit("tensor_copy", dst=self.tile("float32", m, n), src=to)

    def narrow(self) -> None:
        """A 16-bit tile in PSUM: written by engines, read by engines."""
        a = self.source()
        dtype = str(self.pick("bfloat16", "float16", "int16"))
        p = self.b.psum(self.name("p"), dtype, *a.shape)
        kind = int(self.r.integers(4))
        if kind == 0:
            self.b.emit("tensor_copy", dst=p, src=a)
        elif kind == 1:
            self.b.emit("tensor_scalar", dst=p, data=a, op0="multiply", operand0=1.37)
        elif kind == 2:
            self.b.emit("tensor_tensor", dst=p, data1=a, data2=a, op="multiply")
        else:
            self.b.emit("memset", dst=p, value=3)
        if dtype == "int16":
            self.b.emit(
                "tensor_scalar", dst=self.like(a, "int32"), data=p, op0="bitwise_and", operand0=6
            )
        self.b.emit("tensor_tensor", dst=self.like(a), data1=p, data2=a, op="add")

    def wide(self) -> None:
        """A PSUM tile of several banks, read and written across their borders."""
        w, x = self.operand(32), self.operand(700)
        p = self.b.psum(self.name("p"), "float32", 32, 1100)
        self.b.emit("memset", dst=p, value=0)
        self.b.emit(
            "nc_matmul", dst=p[:, 200:700], stationary=w, moving=x[:, :500], accumulate=True
        )
        self.b.emit(
            "nc_matmul", dst=p[:, 200:700], stationary=w, moving=x[:, 100:600], accumulate=True
        )
        dst = self.tile("float32", 32, 1100)
        self.b.emit(
            "tensor_scalar", dst=p[:, 400:1000], data=p[:, 400:1000], op0="add", operand0=1.0
        )
        self.b.emit("tensor_copy", dst=dst, src=p)
        res = self.tile("float32", 32, 1)
        self.b.emit("tensor_reduce", dst=res, data=p, op="maximum", axis=(1,))

    def transpose(self) -> None:
        dtype = str(self.pick("bfloat16", "float32"))
        rows, columns = int(self.pick(128, 32, 5)), int(self.pick(24, 7))
        t = self.tile(dtype, rows, columns)
        x = self.b.input(self.name("q"), dtype, (rows, columns))
        self.b.emit("dma_copy", dst=t, src=x)
        if self.r.random() < 0.3 and rows <= 32 and columns <= 32:
            self.b.emit("nc_transpose", "vector", dst=self.tile(dtype, columns, rows), data=t)
            return
        p = self.b.psum(self.name("p"), dtype, columns, rows)
        self.b.emit("nc_transpose", "tensor", dst=p, data=t)
        self.b.emit("tensor_copy", dst=self.tile(dtype, columns, rows), src=p)

    def back(self) -> None:
        """A tile's bytes as another type of its size."""
        pairs = {"int32": "float32", "float32": "int32", "bfloat16": "float16"}
        a = self.source("int32")
        if self.r.random() < 0.5:
            seen = T(a.buffer, a.pairs, a.offset, pairs[a.buffer.dtype])
            self.b.emit(
                "tensor_scalar", dst=self.like(a, "float32"), data=seen, op0="add", operand0=1.0
            )
        else:
            rows = a.shape[0]
            row = self.row(a)
            walk = ((row * 4, rows), (1, min(row * 4, 9)))
            first = a.offset // row * row * 4
            seen = T(a.buffer, walk, first, "uint8")
            to = self.tile("uint8", rows, min(row * 4, 9))
            self.b.emit("tensor_copy", dst=to, src=seen)
