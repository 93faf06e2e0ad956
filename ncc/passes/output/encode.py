"""Each instruction becomes the records of its engine's stream.

Before:
    module m gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128) allocated=true
        set t float32 (4,8) memory=SB
          loc t SB (4,32) allocated=true
        block Block1
          i0 = TensorCopy DVE t:float32[[8,4],[1,4]] <- t:float32[[8,4],[1,4]]+4 wait PE>=1(0>=1) update DVE+1(3)
          i1 = Exit DVE

After:
    program m target=cayman gen=3
    var x id=1 kind=input dtype=float32 shape=(4,8)
    stream PE
    stream Activation
    stream Pool
    stream DVE
      Copy wait=S0>=1 src=sb[0]+0x10[1:4] in_dtype=float32 out_dtype=float32 nchan=4 dst=sb[0]+0x0[1:4] update=S3++
      Exit
    stream SP

Why:
    An engine executes 64-byte records, in the order of its stream. A matmul is two of them, one that
    loads the weights and one that multiplies; an fp32 matmul is four, since it goes through the
    array twice. The wait of an instruction stands on its first record and its update on the last; a
    DMA names the semaphore that its queue raises. What has no encoder should be gone by now.
"""

from __future__ import annotations

import attrs

from ncc.encode.codec import SIZE
from ncc.encode.codes import UPDATE_INC, WAIT_GE
from ncc.encode.operands import Operands
from ncc.encode.records import ENCODERS, Context
from ncc.encode.records_control import resolved
from ncc.errors import NccError
from ncc.ir.bir import SHARED, Inst, LocSet, Module
from ncc.ir.bir_change import changed_by
from ncc.ir.clocks import DMAS, WAITS
from ncc.ir.isa import STREAMS, Band, Bundle, DmaQueue, Program, Stream, Var
from ncc.passes.base import define
from ncc.target import Target

NAME = "encode"
KINDS = {
    "ExternalInput": "input",
    "ExternalOutput": "output",
    "Const": "file",
    SHARED: "shared",
}
QUIET = Band()


def apply(module: Module, target: Target) -> Program:
    variables, ids = declare(module.main.sets)
    context = Context(target, Operands(module.main.sets, ids))
    streams: dict[str, list[Bundle]] = {engine: [] for engine in STREAMS}
    bands: dict[tuple[int, int, int], Band] = {}
    starts: dict[tuple[str, str], int] = {}
    blocks = module.main.blocks
    for number, block in enumerate(blocks):
        context.following = blocks[number + 1].name if number + 1 < len(blocks) else ""
        for engine in STREAMS:
            starts[engine, block.name] = len(streams[engine])
        for inst in block.insts:
            if inst.engine not in streams:
                said = f"{inst.opcode} is on engine {inst.engine}, which has no stream"
                raise NccError("NCC607", said, inst.origin.place(inst.name))
            streams[inst.engine] += bundles(inst, context, bands)
    if len(blocks) > 1:
        streams = {engine: joined(engine, found, starts) for engine, found in streams.items()}
    queues = tuple(DmaQueue(q.name, q.engine, q.semaphore, q.num_queues) for q in module.queues)
    return Program(
        module.name,
        target.neff,
        target.gen,
        tuple(Stream(engine, tuple(streams[engine])) for engine in STREAMS),
        variables,
        queues,
    )


def joined(engine: str, found: list[Bundle], starts: dict[tuple[str, str], int]) -> list[Bundle]:
    """A stream whose branches know how far away their blocks are, in bytes."""
    made: list[Bundle] = []
    for number, bundle in enumerate(found):
        where = dict(bundle.fields).get("target")
        if isinstance(where, str):
            if (engine, where) not in starts:
                said = f"branches to {where}, which is no block"
                raise NccError("NCC607", said, bundle.origin.place(where))
            away = (starts[engine, where] - number) * SIZE
            bundle = attrs.evolve(bundle, fields=resolved(bundle.fields, away))
        made.append(bundle)
    return made


def bundles(inst: Inst, context: Context, bands: dict[tuple[int, int, int], Band]) -> list[Bundle]:
    encoder = ENCODERS.get(inst.opcode)
    if encoder is None:
        said = f"{inst.opcode} has no record; it should be gone before encode"
        raise NccError("NCC607", said, inst.origin.place(inst.name))
    room = WAITS.get(inst.opcode, 1)
    if len(inst.waits) > room:
        said = f"has {len(inst.waits)} waits, and its record holds {room}"
        raise NccError("NCC606", said, inst.origin.place(inst.name), "alloc-sems divides them")
    origin = changed_by(inst.origin, NAME)
    made = encoder(context, inst)
    wait = (inst.waits[0].sem, inst.waits[0].value) if inst.waits else (-1, 0)
    update = inst.updates[0].sem if inst.updates and inst.opcode not in DMAS else -1
    last = len(made) - 1
    found: list[Bundle] = []
    for n, (name, fields) in enumerate(made):
        sem, value = wait if n == 0 else (-1, 0)
        key = (sem, value, update if n == last else -1)
        band = bands.get(key)
        if band is None:
            band = bands[key] = band_of(*key)
        if fields and fields[0][0] == "band":
            own: Band = fields[0][1]
            if n == 0 and sem >= 0:
                own = attrs.evolve(own, wait=band.wait, value=value)
            band, fields = own, ()
        found.append(Bundle(name, fields, band, origin))
    return found


def band_of(sem: int, value: int, update: int) -> Band:
    """The event band of a wait and an update, of which -1 means none."""
    if sem < 0 and update < 0:
        return QUIET
    wait = (WAIT_GE, sem) if sem >= 0 else (0, 0)
    return Band(wait, (UPDATE_INC, update) if update >= 0 else (0, 0), value)


def declare(sets: tuple[LocSet, ...]) -> tuple[tuple[Var, ...], dict[str, tuple[int, int]]]:
    """The DRAM variables, and for each location its variable and place in it.

    Inputs come first, then outputs, constants, what cores share, and scratch; numbers count from 1,
    because 0 stands for what is on chip. Scratch is one variable a location, with its own place.
    """
    variables: list[Var] = []
    ids: dict[str, tuple[int, int]] = {}
    for role, kind in KINDS.items():
        for owner in sets:
            if owner.kind != role or owner.memory != "DRAM":
                continue
            number = len(variables) + 1
            variables.append(
                Var(
                    owner.name,
                    number,
                    kind,
                    owner.dtype,
                    owner.shape,
                    data=owner.data,
                    declared=owner.declared,
                )
            )
            for loc in owner.locs:
                ids[loc.name] = (number, loc.addr)
    for owner in sets:
        if owner.kind != "Internal" or owner.memory != "DRAM":
            continue
        for loc in owner.locs:
            number = len(variables) + 1
            shape = owner.shape if len(owner.locs) == 1 else owner.shape[owner.partition_dim :]
            variables.append(Var(loc.name, number, "virtual", owner.dtype, shape, loc.addr))
            ids[loc.name] = (number, 0)
    return tuple(variables), ids


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    target="isa",
    needs=(
        "accumulation-flags-are-set",
        "every-engine-is-named",
        "semaphores-are-numbered",
        "waits-fit-bundles",
    ),
    after={"drop-warm-loads": "it decides how many records a matmul is"},
    real="codegen",
    job="W0",
    sure="confirmed",
)
