"""Making instructions, and the tiles and constants that a kernel's op needs on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from ncc.ir.bir import Ap, Inst, Loc, LocSet, Operand
from ncc.ir.bir_opcodes import keyed
from ncc.ir.data import FLOATS, Data, data, eye, numpy_type, size_of
from ncc.ir.kernel import Buffer
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.pieces import Pieces, clash
from ncc.ir.lower.sets import sharing
from ncc.ir.lower.tables import ME, MEMORY, cell


class Making(Pieces):
    """Collects instructions, temporary tiles and constants."""

    def label(self, wish: str) -> str:
        name, n = wish, 0
        while name in self.labels:
            n += 1
            name = f"{wish}_{n}"
        self.labels.add(name)
        return name

    def emit(
        self,
        opcode: str,
        engine: str,
        outs: Iterable[Operand],
        ins: Iterable[Operand] = (),
        /,
        **keys: Any,
    ) -> None:
        """One instruction of the op at hand."""
        name = self.label(f"{self.op.name}{self.suffix}")
        made = keyed(opcode, **keys) if keys else ()
        reads, writes = tuple(ins), tuple(outs)
        for x in (*reads, *writes):
            if type(x) is Ap and x.loc in self.buffers and x.loc not in self.filled:
                self.fill(self.buffers[x.loc])
        for x in reads:
            if type(x) is Ap and x.loc not in self.known:
                self.fresh_values(x.loc)
        self.known.update([x.loc for x in writes if type(x) is Ap])
        origin = self.op.origin.by(ME)
        self.insts.append(
            Inst(name, opcode, engine, reads, writes, made, self.after, origin=origin)
        )

    def fill(self, buffer: Buffer) -> None:
        """A constant tile on chip is loaded before anything touches it."""
        self.filled.add(buffer.name)
        assert buffer.data is not None
        name = f"{buffer.name}.data"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.temps.append(self.const(name, buffer.data))
        self.known.add(name)
        rows, count = buffer.shape[0], prod(buffer.shape[1:])
        dtype = buffer.dtype
        source = Ap(name, dtype, ((count, rows), (1, count)))
        memory = MEMORY[buffer.memory]
        if memory == "SB":
            tile = Walk(buffer.name, dtype, memory, count, 0, ((1, count),), 0, rows)
            self.emit("Load", "DMA", (tile.ap(),), (source,))
            return
        held = self.tile(rows, (count,), dtype)
        self.emit("Load", "DMA", (held.ap(),), (source,))
        wide = cell(dtype)
        self.copy(Walk(buffer.name, wide, memory, count, 0, ((1, count),), 0, rows), held)

    def fresh_values(self, loc: str) -> None:
        """A tile that is read before anything wrote to it holds what nki.simulate shows there, or
        what was written under another name at its address."""
        buffer = self.buffers.get(loc)
        self.known.add(loc)
        if buffer is None or not buffer.on_chip or self.known & sharing(buffer, self.buffers):
            return
        dtype = buffer.dtype if buffer.memory == "sbuf" else cell(buffer.dtype)
        count = prod(buffer.shape[1:])
        bits = 4 if dtype not in FLOATS else (1 << 8 * size_of(dtype)) - 1
        walk = Walk(loc, dtype, MEMORY[buffer.memory], count, 0, ((1, count),), 0, buffer.shape[0])
        self.memset(walk, bits)

    def memset(self, walk: Walk, bits: int) -> None:
        engine = "DVE" if walk.memory == "PSUM" else "DVE|Pool"
        for ap in self.accesses((walk,), 4):
            self.emit("Memset", engine, ap, constant=bits)

    def temp(self, like: Walk, dtype: str = "", free: Sequence[int] = ()) -> Walk:
        """A new SBUF tile that stands where `like` does and holds as many elements, in a row."""
        dtype = dtype or self.wants(like)
        counts = tuple(free) or (like.count,)
        rows = like.rows if like.memory == "DRAM" else like.first % 128 + like.rows
        return self.tile(rows, counts, dtype).partition(rows - like.rows, like.rows)

    def tile(self, rows: int, free: Sequence[int], dtype: str) -> Walk:
        """A new SBUF tile."""
        wish, n = f"{self.op.name}{self.suffix}.t", 0
        while f"{wish}{n}" in self.taken:
            n += 1
        name = f"{wish}{n}"
        self.taken.add(name)
        count = prod(free)
        loc = Loc(name, "SB", (rows, count * size_of(dtype)))
        origin = self.op.origin.by(ME)
        self.temps.append(
            LocSet(name, dtype, (rows, count), memory="SB", locs=(loc,), origin=origin)
        )
        return Walk(name, dtype, "SB", count, 0, ((1, count),), 0, rows)

    def bank(self, like: Walk) -> Walk:
        """A new PSUM tile of 4-byte elements on partition 0."""
        wish, n = f"{self.op.name}{self.suffix}.p", 0
        while f"{wish}{n}" in self.taken:
            n += 1
        name = f"{wish}{n}"
        self.taken.add(name)
        count = like.count
        loc = Loc(name, "PSUM", (like.rows, count * 4))
        origin = self.op.origin.by(ME)
        shape = (like.rows, count)
        self.temps.append(
            LocSet(name, like.dtype, shape, memory="PSUM", locs=(loc,), origin=origin)
        )
        return Walk(name, like.dtype, "PSUM", count, 0, ((1, count),), 0, like.rows)

    def identity(self, dtype: str) -> Walk:
        """The identity matrix in SBUF, loaded before its first reader."""
        if dtype not in self.identities:
            import numpy as np

            name = f"identity_{dtype}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            one = data(dtype, np.ones((), numpy_type(dtype))).raw
            origin, size = self.op.origin.by(ME), size_of(dtype)
            kind = "IdentityWeightTensor"
            self.temps.append(self.const(name, eye(dtype, 128, one), kind))
            at = f"{name}.sb"
            self.taken.add(at)
            loc = Loc(at, "SB", (128, 128 * size))
            self.temps.append(
                LocSet(at, dtype, (128, 128), "Internal", "SB", kind, locs=(loc,), origin=origin)
            )
            walk = Walk(at, dtype, "SB", 128, 0, ((1, 128),), 0, 128)
            source = Ap(name, dtype, ((128, 128), (1, 128)))
            self.known.add(name)
            inner = self.insts
            self.insts = self.around[0] if self.around else inner  # before all loops
            self.emit("Load", "DMA", (walk.ap(),), (source,))
            self.insts = inner
            self.identities[dtype] = walk
        return self.identities[dtype]

    def const(self, name: str, values: Data, kind: str = "Tensor") -> LocSet:
        """A constant in DRAM."""
        size = prod(values.shape) * size_of(values.dtype)
        loc = Loc(name, "DRAM", (1, size))
        origin = self.op.origin.by(ME)
        return LocSet(
            name,
            values.dtype,
            values.shape,
            "Const",
            "DRAM",
            kind,
            locs=(loc,),
            data=values,
            origin=origin,
        )

    def copy(self, dst: Walk, src: Walk, engine: str = "DVE") -> None:
        """An engine's copy, converting where the types differ."""
        pieces = self.accesses((src, dst), 3 if engine == "Activation" else 4)
        if len(pieces) > 1 and clash(src, dst):
            self.copy(dst, self.compact(src), engine)
            return
        for source, result in pieces:
            wide = max(len(source.ap), len(result.ap)) > 4  # a record of ACT holds 3 beside rows
            self.emit("TensorCopy", "DVE" if wide else engine, (result,), (source,))

    def compact(self, walk: Walk) -> Walk:
        """The same elements in a row, in SBUF."""
        held = self.temp(walk)
        self.copy(held, walk)
        return held
