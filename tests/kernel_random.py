"""Random kernels, for tests of their text and their bytes: any op, any access inside its buffer."""

from __future__ import annotations

import math
import random

import numpy as np

from ncc.ir.core import Origin
from ncc.ir.data import data
from ncc.ir.kernel import (
    Access,
    Buffer,
    DeviceFor,
    DeviceWhile,
    Imm,
    Kernel,
    KernelOp,
    Reg,
    Rows,
    Scalar,
)
from ncc.ir.kernel_ops import OPS
from ncc.ir.kernel_print import strides_of

DTYPES = ("float32", "bfloat16", "int32", "uint8", "float8e4")
NAMES = (
    "t",
    "acc",
    "nisa",
    "x.1",
    "for",
    "a tensor",
    'quo"te',
    "reg",
    "Größe",
    "params",
    "inf",
    "f",
)


class Maker:
    """One random kernel, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.buffers: list[Buffer] = []
        self.registers: list[str] = []
        self.ops: list[str] = []

    def name(self) -> str:
        self.count += 1
        wish = self.random.choice(NAMES)
        return f"{wish}_{self.count}" if self.random.random() < 0.7 else f"{wish}{self.count}"

    def origin(self) -> Origin:
        return (
            Origin("kernel.py", self.random.randint(1, 999))
            if self.random.random() < 0.9
            else Origin()
        )

    def buffer(self, kind: str) -> Buffer:
        r = self.random
        memory = "shared_hbm" if kind != "internal" else r.choice(("hbm", "sbuf", "psum", "sbuf"))
        shape = tuple(r.choice((1, 2, 3, 5, 8)) for _ in range(r.randint(1, 4)))
        dtype = r.choice(DTYPES)
        chip = memory in ("sbuf", "psum")
        address = (r.choice((0, 32)), 8 * r.randint(0, 9)) if chip and r.random() < 0.5 else None
        held = data(dtype, np.arange(math.prod(shape)).reshape(shape)) if kind == "const" else None
        return Buffer(self.name(), dtype, shape, memory, kind, address, held, self.origin())

    def access(self, written: bool = False, moves: bool = True) -> Access:
        r = self.random
        of = r.choice([b for b in self.buffers if not written or b.kind not in ("input", "const")])
        pairs, offset = [], 0
        for dim, (stride, extent) in enumerate(zip(strides_of(of.shape), of.shape, strict=True)):
            start = r.randrange(extent)
            by = r.choice((1, 1, 2)) if dim or not of.on_chip else 1
            num = r.randint(1, (extent - start - 1) // by + 1)
            whole = r.random() < 0.4
            start, by, num = (0, 1, extent) if whole else (start, by, num)
            offset += start * stride
            if dim == 0 or whole or r.random() < 0.8:
                pairs.append((by * stride, num))
        if r.random() < 0.1 and not of.on_chip:
            pairs.insert(0, (0, 3))
        found: list[Scalar | Rows] = []
        if moves and r.random() < 0.15:
            source = Reg(r.choice(self.registers)) if self.registers else self.access(moves=False)
            found.append(Scalar(source, r.randint(1, 9), r.randint(1, 9)))
        if moves and r.random() < 0.1:
            found.append(Rows(self.access(moves=False), r.randint(1, 9), r.randint(1, 9)))
        return Access(of.name, of.dtype, tuple(pairs), offset, tuple(found))

    def value(self, usual: object) -> object:
        r = self.random
        match usual:
            case bool():
                return not usual
            case str():
                return r.choice(("add", "Ünder", 'with "quotes"', "a\\b\n"))
            case tuple():
                return r.choice(((1,), (0, (1, -2), ("x", 0.5)), (True, None)))
            case _:
                return r.choice((3, -4, 0.1, -0.0, math.inf, -math.inf, 1e-30, 7))

    def op(self) -> KernelOp:
        r = self.random
        op = r.choice(sorted(OPS))
        row = OPS[op]
        args: list[tuple[str, object]] = []
        for role in (*row.writes, *row.reads):
            mine = role in row.writes
            if role.endswith("?") and r.random() < 0.5:
                continue
            names = (
                [f"{role[:-1]}{n}" for n in range(r.randint(1, 3))]
                if "*" in role
                else [role.rstrip("?")]
            )
            for name in names:
                args.append((name, self.arg(op, name, mine)))
        keys = {k: self.value(v) for k, v in row.keys.items() if r.random() < 0.5}
        after = tuple(r.sample(self.ops, 1)) if self.ops and r.random() < 0.2 else ()
        name = self.name()
        self.ops.append(name)
        engine = r.choice(("unknown", *row.engines))
        return KernelOp(
            name, op, tuple(args), tuple(sorted(keys.items())), engine, after, self.origin()
        )

    def arg(self, op: str, role: str, written: bool) -> object:
        r = self.random
        if op.startswith("register") and written and role == "dst" and op != "register_store":
            self.registers.append(f"r{len(self.registers)}")
            return Reg(self.registers[-1], r.choice(("int32", "int32", "float32")))
        if not written and r.random() < 0.2:
            return Imm(r.choice((1, -3, 0.25, -0.0, math.inf, 2.5e-8)))
        if not written and self.registers and r.random() < 0.1:
            return Reg(r.choice(self.registers))
        return self.access(written)

    def body(self, depth: int) -> tuple[object, ...]:
        found: list[object] = []
        for _ in range(self.random.randint(0 if depth else 3, 6)):
            kind = self.random.random()
            if depth < 2 and kind < 0.12:
                name, var = self.name(), Reg(f"v{self.count}")
                self.registers.append(var.name)
                end = Reg(self.registers[0]) if kind < 0.04 else Imm(8)
                inside = self.body(depth + 1)
                self.registers.remove(var.name)
                found.append(DeviceFor(name, var, Imm(0), end, 2, inside, self.origin()))
            elif depth < 2 and kind < 0.2 and self.registers:
                one = Reg(self.random.choice(self.registers))
                found.append(DeviceWhile(self.name(), one, self.body(depth + 1), self.origin()))
            else:
                found.append(self.op())
        return tuple(found)

    def kernel(self, core: int = 0) -> Kernel:
        kinds = ("input", "inout", "output", "const", *["internal"] * self.random.randint(1, 5))
        self.buffers = [self.buffer(kind) for kind in kinds]
        params = tuple(b.name for b in self.buffers[:2])
        results = (self.access(moves=False), self.access(moves=False))
        body = self.body(0)
        return Kernel("random", tuple(self.buffers), params, results, body, core, self.origin())


def random_kernel(seed: int, core: int = 0) -> Kernel:
    return Maker(seed).kernel(core)
