"""What every ISA program obeys: legal bundles, streams that end, addresses that exist."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ncc.encode.bundle import encode_bundle
from ncc.encode.legal import complaints, stream_complaints
from ncc.encode.legal_dma import dram_reach
from ncc.encode.legal_tensor import Fields
from ncc.errors import NccError, Place
from ncc.ir.core import Cores, Law, modules_of
from ncc.ir.data import size_of
from ncc.ir.isa import STREAMS, Bundle, DmaQueue, Dram, Program, Stream, Var
from ncc.target import Target

KINDS = ("input", "output", "file", "shared", "virtual")
TOGETHER = ("input", "output", "shared")  # what every core of a program knows by the same name

Signed = tuple[str, str, tuple[int, ...]]


def nodes(program: Program) -> Iterator[Stream]:
    yield from program.streams


def signature(program: Program) -> tuple[tuple[Signed, ...], tuple[Signed, ...]]:
    """Inputs and outputs: name, dtype as the source declares it, shape."""
    inputs = [(v.name, v.declared or v.dtype, v.shape) for v in program.vars if v.kind == "input"]
    outputs = [(v.name, v.dtype, v.shape) for v in program.vars if v.kind == "output"]
    return tuple(inputs), tuple(outputs)


def every_bundle_is_legal(stream: Stream, program: Program, target: Target) -> Iterator[NccError]:
    """A bundle has bytes, and they obey the encoder's rules for this engine."""
    for number, bundle in enumerate(stream.bundles):
        place = bundle.origin.place(f"bundle {number} of {stream.engine} ({bundle.op})")
        try:
            encode_bundle(bundle, program.gen)
        except NccError as wrong:
            yield NccError(wrong.code, wrong.said, place, wrong.hint)
            continue
        for wrong in complaints(bundle, program.gen, target, stream.engine):
            yield NccError(wrong.code, wrong.said, place, wrong.hint)


def every_stream_is_whole(stream: Stream, program: Program, target: Target) -> Iterator[NccError]:
    """Exit at the end, extensions beside their DMA, pairs that agree, branches that land."""
    yield from stream_complaints(stream.bundles, stream.engine)


def streams_are_the_five(program: Program, target: Target) -> Iterator[NccError]:
    engines = tuple(s.engine for s in program.streams)
    if engines != STREAMS:
        said = f"the streams are {', '.join(engines)}, and must be {', '.join(STREAMS)}"
        yield NccError("NCC744", said, Place(value=program.name))
    if (program.neff_target, program.gen) != (target.neff, target.gen):
        said = f"records of generation {program.gen} for {program.neff_target}"
        hint = f"{target.name} is {target.neff} with generation {target.gen}"
        yield NccError("NCC744", said, Place(value=program.name), hint)


def variables_are_dense(program: Program, target: Target) -> Iterator[NccError]:
    """Numbers 1, 2, ...; inputs, outputs, files, shared and virtual ones in this order; each name
    once."""
    names: set[str] = set()
    order = -1
    for number, var in enumerate(program.vars, 1):
        place = Place(value=var.name)
        if var.id != number:
            yield NccError("NCC745", f"variable {number} has the id {var.id}", place)
        if var.name in names:
            yield NccError("NCC745", "two variables have this name", place)
        names.add(var.name)
        if var.kind not in KINDS:
            yield NccError(
                "NCC745", f"{var.kind!r} is no kind; there are {', '.join(KINDS)}", place
            )
        elif KINDS.index(var.kind) < order:
            yield NccError("NCC745", f"an {var.kind} comes after {KINDS[order]}s", place)
        else:
            order = KINDS.index(var.kind)
        if (var.data is not None) != (var.kind == "file"):
            yield NccError("NCC745", "a file has data, and nothing else has", place)


def dmas_stay_inside_variables(program: Program, target: Target) -> Iterator[NccError]:
    """Every DRAM address names a variable, and every run stays inside it."""
    sizes = {v.id: (prod(v.shape) * size_of(v.dtype), v) for v in program.vars}
    for stream, number, bundle, f in dmas(program):
        for side in ("src", "dst"):
            address = f.get(side)
            if isinstance(address, Dram) and (
                said := outside(f, side, follower(stream, number), sizes.get(address.var))
            ):
                place = bundle.origin.place(f"bundle {number} of {stream.engine}")
                yield NccError("NCC729", said, place)


def dmas(program: Program) -> Iterator[tuple[Stream, int, Bundle, Fields]]:
    """Every DMA with its stream, its number there, and its fields."""
    for stream in program.streams:
        for number, bundle in enumerate(stream.bundles):
            if bundle.op == "DmaDirect2d":
                yield stream, number, bundle, dict(bundle.fields)


def outside(f: Fields, side: str, extension: Fields, known: tuple[int, Var] | None) -> str:
    """Why one side of a DMA does not fit its variable, or ""."""
    if known is None:
        return f"{side} is in variable {f[side].var}, which there is not"
    size, var = known
    low, high = dram_reach(f, side, extension)
    if low < 0 or high > size:
        return f"{side} touches bytes {low} to {high - 1} of {var.name}, which has {size}"
    if side == "dst" and var.kind in ("input", "file"):
        return f"dst is {var.name}, which is an {var.kind} and is only read"
    return ""


def follower(stream: Stream, number: int) -> Fields:
    """The fields of the extension after a bundle; none when nothing follows."""
    after: Bundle | None = stream.bundles[number + 1] if number + 1 < len(stream.bundles) else None
    return dict(after.fields) if after is not None and after.op == "Extension" else {}


def queues_are_declared(program: Program, target: Target) -> Iterator[NccError]:
    """A DMA raises the semaphore of its engine's queue by the queue's amount."""
    owners: dict[str, DmaQueue] = {}
    semaphores: set[int] = set()
    for queue in program.queues:
        if queue.owner in owners or queue.semaphore in semaphores:
            said = (
                f"the queue of {queue.owner} with semaphore {queue.semaphore} is not the only one"
            )
            yield NccError("NCC732", said, Place(value=queue.name))
        owners[queue.owner] = queue
        semaphores.add(queue.semaphore)
    for stream, number, bundle, f in dmas(program):
        queue = owners.get(stream.engine)
        found = (f.get("semaphore", 0), f.get("sem_increment", 0))
        if queue is not None and found == (queue.semaphore, queue.num_queues):
            continue
        said = f"no queue of {stream.engine} is declared"
        if queue is not None:
            said = f"raises S[{found[0]}] by {found[1]}, and {queue.name} has"
            said = f"{said} S[{queue.semaphore}] by {queue.num_queues}"
        place = bundle.origin.place(f"bundle {number} of {stream.engine}")
        yield NccError("NCC732", said, place)


def shared_variables_agree(found: Program | Cores, target: Target) -> Iterator[NccError]:
    """What cores know together has one kind, type and shape; all know inputs and outputs."""
    known: dict[str, Var] = {}
    arguments: list[list[str]] = []
    for program in modules_of(found):
        mine = [var for var in program.vars if var.kind in TOGETHER]
        arguments.append([var.name for var in mine if var.kind != "shared"])
        for var in mine:
            first = known.setdefault(var.name, var)
            if (first.kind, first.dtype, first.shape) != (var.kind, var.dtype, var.shape):
                said = f"is {first.kind} {first.dtype} {first.shape} on one core and "
                said += f"{var.kind} {var.dtype} {var.shape} on another"
                yield NccError("NCC438", said, Place(value=var.name))
    if any(names != arguments[0] for names in arguments):
        yield NccError("NCC438", "the cores do not have the same inputs and outputs, in one order")


LAWS = (
    Law("every_bundle_is_legal", every_bundle_is_legal, node=True),
    Law("every_stream_is_whole", every_stream_is_whole, node=True),
    Law("streams_are_the_five", streams_are_the_five),
    Law("variables_are_dense", variables_are_dense),
    Law("dmas_stay_inside_variables", dmas_stay_inside_variables),
    Law("queues_are_declared", queues_are_declared),
    Law("shared_variables_agree", shared_variables_agree, together=True),
)
FACTS: tuple[Law, ...] = ()
