"""Facts of order, flags and synchronisation, from bind-dma on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ncc.errors import NccError
from ncc.ir.bir import Inst, Module
from ncc.ir.bir_keys import ACCUMULATE, START, STOP
from ncc.ir.bir_loops import crossing, line
from ncc.ir.clocks import (
    DMAS,
    ENGINES,
    QUEUES,
    SEMAPHORES,
    SILENT,
    UNITS,
    WAITS,
    Clocks,
    needs,
    unit_of,
)
from ncc.ir.conflicts import clashes, flows
from ncc.ir.core import Law
from ncc.ir.footprints import (
    BANK,
    PSUM,
    Footprints,
    Rect,
    covers,
    is_copying_transpose,
    key_of,
    meets,
    same_bytes,
    window,
)
from ncc.target import Target


def _insts(module: Module) -> tuple[Inst, ...]:
    return line(module.functions[0])


def _each_block(
    check: Callable[[Module, tuple[Inst, ...], int], Iterator[NccError]],
) -> Callable[[Module, Target], Iterator[NccError]]:
    """A check of every block on its own: at a border all engines meet."""

    def whole(module: Module, target: Target) -> Iterator[NccError]:
        for number, block in enumerate(module.functions[0].blocks):
            yield from check(module, block.insts, number)

    return whole


def _wrong(code: str, inst: Inst, said: str, hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def every_dma_has_a_queue(inst: Any, module: Module, target: Target) -> Iterator[NccError]:
    """A DMA stands in a stream that may trigger it, and its queue is that engine's."""
    if type(inst) is not Inst or inst.opcode not in DMAS:
        return
    if inst.engine not in target.dma_engines:
        allowed = ", ".join(target.dma_engines)
        said = f"{inst.engine} cannot trigger a DMA on {target.name}; {allowed} can"
        yield _wrong("NCC601", inst, said)
    elif key_of(inst, "queue", "") != QUEUES[inst.engine]:
        queue = key_of(inst, "queue", "") or "none"
        said = f"has queue {queue}, but {inst.engine} owns {QUEUES[inst.engine]}"
        yield _wrong("NCC601", inst, said)
    elif all(queue.name != QUEUES[inst.engine] for queue in module.queues):
        yield _wrong("NCC601", inst, f"queue {QUEUES[inst.engine]} is not declared")


def every_engine_is_named(inst: Any, module: Module, target: Target) -> Iterator[NccError]:
    """Each instruction stands in one of the five streams."""
    if type(inst) is Inst and inst.engine not in ENGINES:
        said = f"{inst.opcode} is on engine {inst.engine}, which has no stream"
        yield _wrong("NCC607", inst, said)


@_each_block
def edges_cover_conflicts(
    module: Module, insts: tuple[Inst, ...], number: int
) -> Iterator[NccError]:
    """Of two accesses to one byte, one of them a write, edges or one stream order the pair."""
    footprints = Footprints(module)
    accesses = footprints.all(insts)
    names = {inst.name: n for n, inst in enumerate(insts)}
    places = footprints.places
    pairs = zip(flows(accesses, places), clashes(accesses, places), strict=True)
    edges: list[set[int]] = []
    for n, (inst, (flow, clash)) in enumerate(zip(insts, pairs, strict=True)):
        edges.append({names[name] for name, _ in inst.deps if names.get(name, n) < n})
        for other in sorted((flow.keys() | clash.keys()) - edges[n]):
            first = insts[other]
            if first.engine == inst.engine and first.opcode not in DMAS:
                continue
            if not _reaches(edges, insts, n, other):
                kind = flow.get(other) or clash[other]
                said = f"touches bytes of {first.name} ({kind}), and no edge orders the two"
                maker = "flow-deps" if kind == "Flow" else "anti-deps"
                hint = f"it needs an edge to {first.name}, which {maker} finds"
                yield _wrong("NCC610", inst, said, hint)


def _reaches(edges: list[set[int]], insts: tuple[Inst, ...], start: int, goal: int) -> bool:
    """Whether edges and streams lead back from one instruction to an earlier one."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        at = todo.pop()
        before = set(edges[at])
        stream = next((k for k in range(at - 1, goal - 1, -1) if _same(insts, k, at)), None)
        if stream is not None:
            before.add(stream)
        for other in before - seen:
            if other == goal:
                return True
            if other > goal:
                seen.add(other)
                todo.append(other)
    return False


def _same(insts: tuple[Inst, ...], a: int, b: int) -> bool:
    """Whether an earlier instruction is complete because a later one of its stream starts."""
    return insts[a].engine == insts[b].engine and insts[a].opcode not in DMAS


def _edges_read(module: Module) -> tuple[Any, ...]:
    read: list[Any] = []
    for inst in _insts(module):
        if inst.ins or inst.outs:
            read += (inst.ins, inst.outs, inst.deps)
            if inst.opcode == "Matmult":
                read.append(key_of(inst, "accumulation_flag"))
    return (*read, module.functions[0].sets)


class _Cells:
    """The state of PSUM, as rectangles per bank: open, closed, foreign or zero."""

    def __init__(self) -> None:
        self.banks: dict[int, list[tuple[Rect, str, str]]] = {}  # bytes, state, whose

    def over(self, rect: Rect) -> list[tuple[Rect, str, str]]:
        found: list[tuple[Rect, str, str]] = []
        for bank in range(rect.c0 // BANK, (rect.c1 - 1) // BANK + 1):
            found += [cell for cell in self.banks.get(bank, ()) if meets(cell[0], rect)]
        return found

    def put(self, rect: Rect, state: str, name: str) -> None:
        for bank in range(rect.c0 // BANK, (rect.c1 - 1) // BANK + 1):
            kept = [
                cell
                for cell in self.banks.get(bank, ())
                if not (covers(rect, cell[0]) or same_bytes(rect, cell[0]))
            ]
            self.banks[bank] = [*kept, (rect, state, name)]


@_each_block
def accumulation_flags_are_set(
    module: Module, insts: tuple[Inst, ...], number: int
) -> Iterator[NccError]:
    """START, ACCUMULATE and STOP stand so that every group adds up and nobody's value is wiped."""
    footprints = Footprints(module)
    cells = _Cells()
    for name in sorted(crossing(module.functions[0], number, "PSUM")):
        _, loc, _, _ = footprints.places.found[name]
        rows, columns = loc.base + loc.dims[0], loc.addr + loc.dims[1]
        cells.put(Rect(PSUM, loc.base, rows, loc.addr, columns), "closed", "an earlier block")
    for inst in insts:
        reads, writes = footprints.places.touched(inst)
        for rect in reads:
            if rect.plane == PSUM:
                yield from _read(inst, rect, cells)
        for rect in writes:
            if rect.plane != PSUM:
                continue
            if inst.opcode == "Matmult":
                yield from _multiply(inst, rect, cells, is_copying_transpose(inst, footprints.gen))
            else:
                cells.put(rect, "foreign", inst.name)


def _read(inst: Inst, rect: Rect, cells: _Cells) -> Iterator[NccError]:
    found = cells.over(rect)
    if not found:
        yield _wrong("NCC612", inst, "reads bytes of PSUM that nothing has written")
    state, name = next(((s, n) for _, s, n in reversed(found) if s != "wiped"), ("", ""))
    if state == "open":
        said = f"reads the group of {name} before a matmul with STOP has closed it"
        yield _wrong("NCC612", inst, said)
    elif found and found[-1][1] == "wiped":
        said = f"reads bytes of PSUM that the START of {found[-1][2]} has zeroed"
        yield _wrong("NCC612", inst, said)


def _multiply(inst: Inst, dest: Rect, cells: _Cells, copies: bool) -> Iterator[NccError]:
    flag = int(key_of(inst, "accumulation_flag", 0))
    if key_of(inst, "accumulate") is not None or key_of(inst, "accumulate_over") is not None:
        yield _wrong("NCC611", inst, "still has the key accumulate beside its flags")
    if not flag & (START | ACCUMULATE) or (flag & START and flag & ACCUMULATE) or flag > 7:
        said = f"has accumulation_flag {flag}; it is START 1 or ACCUMULATE 4, and STOP 2 at the end"
        yield _wrong("NCC611", inst, said)
    below = cells.over(dest)
    if flag & START and not copies:
        zone = window(inst, dest)
        for _, state, name in cells.over(zone):
            if state == "open":
                said = f"its START would zero the group of {name}, which no STOP has closed"
                yield _wrong("NCC611", inst, said)
        cells.put(zone, "wiped", inst.name)
    elif not copies and not below:
        yield _wrong("NCC611", inst, "adds to bytes of PSUM that nothing has written")
    state = "closed" if flag & STOP else "open"
    cells.put(dest, state, inst.name)


def _flags_read(module: Module) -> tuple[Any, ...]:
    read: list[Any] = []
    for inst in _insts(module):
        if inst.ins or inst.outs:
            read += (inst.ins, inst.outs)
            if inst.opcode == "Matmult":
                read.append(key_of(inst, "accumulation_flag"))
    return (*read, module.functions[0].sets)


@_each_block
def waits_cover_edges(module: Module, insts: tuple[Inst, ...], number: int) -> Iterator[NccError]:
    """Order within streams and waits say everything that the edges say, and no wait hangs."""
    clocks = Clocks()
    names: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for n, inst in enumerate(insts):
        names[inst.name] = n
        clock = clocks.start(inst.engine)
        for wait in inst.waits:
            unit = UNITS.get(wait.unit, -1)
            if unit < 0:
                yield _wrong("NCC613", inst, f"waits for {wait.unit}, which counts nothing")
                return
            if wait.count >= len(clocks.done[unit]):
                said = f"waits for {wait.unit} >= {wait.count}, which nothing before it completes"
                yield _wrong("NCC613", inst, said)
                return
            clocks.wait(clock, unit, wait.count)
        if inst.deps:
            preds = [names[name] for name, _ in inst.deps]
            for pred, unit, count in needs(preds, places, UNITS[inst.engine]):
                if clock[unit] < count:
                    first = insts[pred]
                    said = f"depends on {first.name} of {unit_of(first)}, and no wait says so"
                    hint = f"it needs {unit_of(first)} >= {count}"
                    yield _wrong("NCC613", inst, said, hint)
        unit_name = unit_of(inst)
        owed = "" if inst.opcode in SILENT else unit_name
        if [update.unit for update in inst.updates] != ([owed] if owed else []):
            told = ", ".join(update.unit for update in inst.updates) or "nothing"
            yield _wrong(
                "NCC614", inst, f"counts {told} when complete, and not {owed or 'nothing'}"
            )
            return
        unit = UNITS[unit_name]
        done = clocks.complete(n, clock, unit, inst.opcode in DMAS) if owed else 0
        places.append((unit, done))


def _sync_read(module: Module) -> tuple[Any, ...]:
    read: list[Any] = []
    for inst in _insts(module):
        if inst.deps or inst.waits or inst.updates:
            read += (inst.deps, inst.waits, inst.updates, inst.engine)
    return tuple(read)


def waits_fit_bundles(inst: Any, module: Module, target: Target) -> Iterator[NccError]:
    """An instruction has as many waits as its record holds, and at most one update."""
    if type(inst) is not Inst:
        return
    room = WAITS.get(inst.opcode, 1)
    if len(inst.waits) > room or len(inst.updates) > 1:
        said = f"has {len(inst.waits)} waits and {len(inst.updates)} updates; its record holds "
        yield _wrong("NCC615", inst, f"{said}{room} and 1")


def semaphores_are_numbered(inst: Any, module: Module, target: Target) -> Iterator[NccError]:
    """Waits and updates name the semaphore of their counter, in its own steps."""
    if type(inst) is not Inst:
        return
    steps = {queue.name: queue.num_queues for queue in module.queues}
    for wait in inst.waits:
        value = wait.count * steps.get(wait.unit, 1)
        if (wait.sem, wait.value) != (SEMAPHORES.get(wait.unit), value):
            said = f"waits for S[{wait.sem}] >= {wait.value}; {wait.unit} >= {wait.count} is "
            yield _wrong("NCC616", inst, f"{said}S[{SEMAPHORES.get(wait.unit)}] >= {value}")
    for update in inst.updates:
        step = steps.get(update.unit, 1)
        if (update.sem, update.value) != (SEMAPHORES.get(update.unit), step):
            said = f"adds {update.value} to S[{update.sem}]; {update.unit} counts by {step} in "
            yield _wrong("NCC616", inst, f"{said}S[{SEMAPHORES.get(update.unit)}]")


def _queues_read(module: Module) -> tuple[Any, ...]:
    return module.queues


FACTS: tuple[Law, ...] = (
    Law("every_dma_has_a_queue", every_dma_has_a_queue, node=True, reads=_queues_read),
    Law("edges_cover_conflicts", edges_cover_conflicts, reads=_edges_read),
    Law("accumulation_flags_are_set", accumulation_flags_are_set, reads=_flags_read),
    Law("every_engine_is_named", every_engine_is_named, node=True),
    Law("waits_cover_edges", waits_cover_edges, reads=_sync_read),
    Law("waits_fit_bundles", waits_fit_bundles, node=True),
    Law("semaphores_are_numbered", semaphores_are_numbered, node=True, reads=_queues_read),
)
