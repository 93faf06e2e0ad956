"""BIR programs for the tests of memory, built line by line."""

from __future__ import annotations

import numpy as np

from ncc.interp.bir import run
from ncc.ir.bir import Ap, Block, Function, Inst, Loc, LocSet, Module
from ncc.ir.data import size_of
from ncc.target import TARGETS

TRN1, TRN2 = TARGETS["trn1"], TARGETS["trn2"]


class Program:
    """A straight line that grows: sets by `dram` and `tile`, instructions by the other methods."""

    def __init__(self, arch="gen3"):
        self.arch, self.sets, self.insts = arch, [], []

    def dram(self, name, shape, dtype="float32", kind="Internal"):
        size = int(np.prod(shape)) * size_of(dtype)
        loc = Loc(name, "DRAM", (1, size))
        self.sets.append(LocSet(name, dtype, tuple(shape), kind=kind, locs=(loc,)))
        return name

    def tile(self, name, parts, cols, dtype="float32", memory="SB", count=1, **more):
        dims = (parts, cols * size_of(dtype))
        names = [name] if count == 1 else [f"{name}_{i}" for i in range(count)]
        locs = tuple(Loc(n, memory, dims) for n in names)
        shape = (parts, cols) if count == 1 else (count, parts, cols)
        self.sets.append(
            LocSet(
                name,
                dtype,
                shape,
                memory=memory,
                partition_dim=len(shape) - 2,
                locs=locs,
                **more,
            )
        )
        return names[0] if count == 1 else names

    def find(self, name):
        return next((s, x) for s in self.sets for x in s.locs if x.name == name)

    def at(self, name, rows=None, cols=None, offset=0, pairs=None):
        """An access: all of a location, or rows × cols from an offset in elements."""
        owner, _ = self.find(name)
        if pairs is None:
            width = owner.shape[-1]
            pairs = ((width, rows or owner.shape[-2]), (1, cols or width))
        return Ap(name, owner.dtype, tuple(pairs), offset)

    def op(self, opcode, engine, outs, ins, **keys):
        name = f"i{len(self.insts)}"
        outs = tuple(self.at(x) if isinstance(x, str) else x for x in outs)
        ins = tuple(self.at(x) if isinstance(x, str) else x for x in ins)
        self.insts.append(Inst(name, opcode, engine, ins, outs, tuple(sorted(keys.items()))))
        return name

    def load(self, dst, src):
        return self.op("Load", "DMA", [dst], [src])

    def save(self, dst, src):
        return self.op("Save", "DMA", [dst], [src])

    def copy(self, dst, src):
        return self.op("TensorCopy", "DVE", [dst], [src])

    def add(self, dst, a, b):
        return self.op("TensorTensor", "DVE", [dst], [a, b], op="add")

    def matmul(self, dst, moving, stationary, accumulate=False):
        keys = {"accumulate": True} if accumulate else {}
        return self.op("Matmult", "PE", [dst], [moving, stationary], **keys)

    def module(self):
        func = Function("sg0000", tuple(self.sets), (Block("Block1", tuple(self.insts)),))
        return Module("f", self.arch, (func,))


def through(module, target, *passes):
    """The module after some passes, each given by its PASS."""
    for one in passes:
        module = one.apply(module, target)
    return module


def locs(module):
    return {x.name: x for s in module.main.sets for x in s.locs}


def insts(module):
    return module.main.blocks[0].insts


def lines(module):
    """The instructions as short words: name, opcode, destinations, sources."""
    return [
        f"{i.name} {i.opcode} {','.join(x.loc for x in i.outs)} <- {','.join(x.loc for x in i.ins)}"
        for i in insts(module)
    ]


def outputs(module, target=TRN2, seed=0):
    """What a module computes from random whole numbers."""
    draw = np.random.default_rng(seed)
    takes = [s for s in module.main.sets if s.kind == "ExternalInput"]
    return run(module, target, [draw.integers(-8, 9, s.shape).astype(np.float32) for s in takes])


def same(before, after, target=TRN2):
    """Whether two modules compute the same outputs, bit for bit."""
    pairs = zip(outputs(before, target), outputs(after, target), strict=True)
    return all(np.array_equal(a.astype(np.float32), b.astype(np.float32)) for a, b in pairs)


def complaints(module, target, *facts):
    """The first complaint of each named fact."""
    from ncc.ir.bir_memory_laws import FACTS

    found = []
    for law in FACTS:
        if law.printed in facts or not facts:
            nodes = insts(module) if law.node else [None]
            for node in nodes:
                args = (node, module, target) if law.node else (module, target)
                found += [f"{law.printed}: {x}" for x in law.check(*args)][:1]
    return found
