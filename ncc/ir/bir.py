"""BIR: functions of blocks of machine instructions over memory locations with access patterns.

The object model and the names are those of the BIR reference; one class `Inst` serves all 110
opcodes, which are rows of `ncc.ir.bir_opcodes`: an opcode's own keys are pairs in `Inst.keys`, and
a key that has its default is left out. Before `bind-memlocs` operands are `Tile`s (a tensor and one
index a dimension); before `unroll` they are `SymAp`s over location sets; after it they are `Ap`s
over locations. Instructions refer to each other by name.
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.ir.affine import Affine, Extent, Index
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import Data


@attrs.frozen
class Loc:
    """A placement (MemoryLocation): `dims` = (partitions, bytes per partition); DRAM: (1, bytes).

    `addr` is the byte inside the partition (in PSUM it counts from the partition's start and holds
    the bank too), or the offset inside the NEFF variable or the scratchpad; `base` is the first
    partition. Both mean something only where `allocated`.
    """

    name: str
    type: str  # DRAM, SB, PSUM
    dims: tuple[int, int]
    addr: int = 0
    base: int = 0
    bank: int = 0
    allocated: bool = False
    pinned: bool = False
    runtime_reserved: bool = False
    live: tuple[int, int] | None = None  # first and last instruction, from `liveness` on


SHARED = "InternalInterface"  # kind of a DRAM tensor that all cores know, and no caller
CLASS = {"DRAM": "Tensor", "SB": "NeuronSBTensor", "PSUM": "NeuronPSUMTensor"}


def usual_class(of: LocSet) -> str:
    """The tensor class of a set that is nothing special, by its memory."""
    return CLASS.get(of.memory, "Tensor")


@attrs.frozen
class LocSet:
    """A logical tensor (MemoryLocationSet); it owns its placements.

    `kind` is the I/O role: ExternalInput, ExternalOutput, Const, Internal; InternalInterface is
    what the cores of a program share. `shape` is the tensor's, slowest first: (blocks...,
    partitions, free...) on chip. `ring` marks a tile buffer whose locations are written again on
    purpose; only an allocator that has no other way left takes it apart into one location a value.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str = "Internal"
    memory: str = "DRAM"  # DRAM, SB, PSUM: the memory of its locations
    tensor_class: str = attrs.field(default=attrs.Factory(usual_class, takes_self=True))
    partition_dim: int = 0  # index of the partition dimension = number of block dimensions
    ring: bool = False
    no_spill: bool = False
    locs: tuple[Loc, ...] = ()  # empty before bind-memlocs
    data: Data | None = None  # of a Const
    declared: str = ""  # an input's dtype in the source, when `dtype` is a wider stand-in
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class Tile:
    """A logical operand, before bind-memlocs: `par` and `free` axes walk it, `index` says where."""

    set: str
    index: tuple[Index, ...]
    par: tuple[tuple[str, Extent], ...]
    free: tuple[tuple[str, Extent], ...]


ZERO = Affine()


@attrs.frozen
class SymAp:
    """A symbolic access pattern over a set: which location, and where in it, per iteration.

    `block` chooses the location, one index for each block dimension of the set (none in DRAM); the
    other fields are as in `Ap`, in elements, still with loop variables.
    """

    set: str
    block: tuple[Index, ...]
    dtype: str
    ap: tuple[tuple[int, Extent], ...]
    offset: Affine = ZERO


@attrs.frozen
class Ap:
    """A physical access pattern over a location: [step, num] pairs, slowest first, in elements.

    On chip pair 0 walks partitions (its step is the elements per partition of the location), the
    others walk inside one. In DRAM the address is linear and no pair walks partitions.
    """

    loc: str
    dtype: str
    ap: tuple[tuple[int, int], ...]
    offset: int = 0


@attrs.frozen
class Imm:
    """An immediate operand."""

    value: float | int
    dtype: str = "float32"


@attrs.frozen
class Reg:
    """A register operand."""

    name: str
    dtype: str = "int32"


Operand = Tile | SymAp | Ap | Imm | Reg


@attrs.frozen
class Wait:
    """Hold the instruction until counter `unit` (an engine or a queue) has counted `count`.

    `sem` is its semaphore and `value` the threshold in it, from alloc-sems on (-1 before).
    """

    unit: str
    count: int
    sem: int = -1
    value: int = -1


@attrs.frozen
class Update:
    """Add to counter `unit` on completion; `sem` and the amount `value` from alloc-sems on."""

    unit: str
    sem: int = -1
    value: int = 1


@attrs.frozen
class Inst:
    """One instruction. `deps` are (earlier instruction, kind): Flow, Output, Anti or Ordered.

    `engine` is Unassigned, Pool, Activation, PE, DMA, DVE, SP or ALL; before finalize-insts `A|B`
    means any of these.
    """

    name: str
    opcode: str
    engine: str
    ins: tuple[Operand, ...] = ()
    outs: tuple[Operand, ...] = ()
    keys: tuple[tuple[str, Any], ...] = ()  # sorted by key, only what differs from the default
    deps: tuple[tuple[str, str], ...] = ()
    waits: tuple[Wait, ...] = ()
    updates: tuple[Update, ...] = ()
    loopnest: tuple[str, ...] = ()
    axis: tuple[str, int, int, int] | None = None  # of a Loop: name, lb, ub, stride
    blocks: tuple[Block, ...] = ()  # of a region instruction
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class Block:
    """Instructions in order; the entry block is `Block1`, a loop's body `block0`."""

    name: str
    insts: tuple[Inst, ...]


@attrs.frozen
class Queue:
    """A DMA queue: the direct queue of `engine`, with its semaphore (-1 before alloc-sems)."""

    name: str
    engine: str
    semaphore: int = -1
    num_queues: int = 16


@attrs.frozen
class Function:
    name: str
    sets: tuple[LocSet, ...]
    blocks: tuple[Block, ...]
    attributes: tuple[str, ...] = ()


@attrs.frozen
class File:
    """A file beside the module, until what it holds has become part of it: the body of a kernel.

    `content` is text (a BIR document), or bytes as `hex:` and their digits.
    """

    name: str
    content: str


@attrs.frozen
class Module:
    """One virtual core's program. `name` is the program's; inputs and outputs are the sets of kind
    ExternalInput and ExternalOutput of the first function, in order."""

    name: str
    arch: str  # sunda, gen3, core_v4
    functions: tuple[Function, ...]
    queues: tuple[Queue, ...] = ()
    notes: tuple[tuple[str, Any], ...] = ()  # what an analysis measured: (key, number or word)
    files: tuple[File, ...] = ()  # what the carriers of kernels name

    @property
    def main(self) -> Function:
        return self.functions[0]


def with_insts(module: Module, insts: tuple[Inst, ...], **changes: Any) -> Module:
    """The same module with other instructions in its first function, all blocks in one line.

    `changes` are fields of the function, such as `sets=`.
    """
    from ncc.ir.bir_loops import parted

    func = module.functions[0]
    func = attrs.evolve(func, blocks=parted(func, insts), **changes)
    return attrs.evolve(module, functions=(func, *module.functions[1:]))


def with_sets(module: Module, sets: tuple[LocSet, ...]) -> Module:
    """The same module with other sets in its first function."""
    func = attrs.evolve(module.functions[0], sets=sets)
    return attrs.evolve(module, functions=(func, *module.functions[1:]))
