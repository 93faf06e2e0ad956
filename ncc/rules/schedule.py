"""Rules 6: order, dependences and synchronisation."""

from __future__ import annotations

from ncc.rules import Rule

FLAGS, EDGES = "accumulation-flags-are-set", "edges-cover-conflicts"
ENGINES, QUEUES = "every-engine-is-named", "every-dma-has-a-queue"
WAITS, ROOM, NUMBERS = "waits-cover-edges", "waits-fit-bundles", "semaphores-are-numbered"
STREAMS, TABLES, WARM = "every-stream-ends", "functions-have-tables", "warm-weights-are-held"
TILES = """    set a float32 (4,8) memory=SB
      loc a SB (4,32) allocated=true
    set b float32 (4,8) memory=SB
      loc b SB (4,32) addr=32 allocated=true
"""
ARRAY = """    set x bfloat16 (4,4) memory=SB
      loc x SB (4,8) allocated=true
    set w bfloat16 (4,8) memory=SB
      loc w SB (4,16) addr=8 allocated=true
    set p float32 (8,4) memory=PSUM
      loc p PSUM (8,16) allocated=true
    set q float32 (8,4) memory=PSUM
      loc q PSUM (8,16) addr=16 allocated=true
    set a float32 (8,4) memory=SB
      loc a SB (8,16) addr=32 allocated=true
"""
APART = ARRAY.replace("addr=16", "addr=2048 bank=1")
INPUT = """    set x float32 (4,8) kind=ExternalInput
      loc x DRAM (1,128) allocated=true
"""
LOAD = "a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]"
PRODUCT = "p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]]"
OTHER = PRODUCT.replace("p:", "q:")
FROM_P = "a:float32[[4,8],[1,4]] <- p:float32[[4,8],[1,4]]"
FROM_Q = FROM_P.replace("p:", "q:")
A, B = "a:float32[[8,4],[1,8]]", "b:float32[[8,4],[1,8]]"
EXP = f"{B} <- {A} func=Exp update Activation+1(1)"


OUTPUT = """    set y float32 (4,8) kind=ExternalOutput
      loc y DRAM (1,128) allocated=true
"""


def _stage(after: str, facts: tuple[str, ...], sets: str, *lines: str, queues: str = "") -> str:
    """A printed stage with one instruction a line."""
    head = f"# ncc bir target=trn2 after={after}"
    if facts:
        head += f" facts={','.join(sorted(facts))}"
    insts = "".join(f"      {line}\n" for line in lines)
    return f"{head}\nmodule m gen3\n{queues}  func sg0000\n{OUTPUT}{sets}    block Block1\n{insts}"


def _bound(sets: str, *lines: str, queues: str = "") -> str:
    return _stage("bind-dma", (QUEUES,), sets, *lines, "x = Exit ALL", queues=queues)


def _left(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines, and an Exit for each of their engines."""
    engines = dict.fromkeys(line.split()[3] for line in lines)
    return (*lines, *(f"x{n} = Exit {engine}" for n, engine in enumerate(engines)))


def _ordered(sets: str, *lines: str) -> str:
    facts = (FLAGS, EDGES, ENGINES, QUEUES)
    return _stage("expand-engines", facts, sets, *_left(lines))


def _synced(*lines: str) -> str:
    return _stage("sync-waits", (FLAGS, EDGES, ENGINES, QUEUES, WAITS), "", *_left(lines))


def _numbered(*lines: str, sets: str = "") -> str:
    facts = (FLAGS, EDGES, ENGINES, QUEUES, WAITS, ROOM, NUMBERS)
    return _stage("alloc-sems", facts, sets, *_left(lines))


def _last(sets: str, *lines: str) -> str:
    facts = (FLAGS, EDGES, ENGINES, QUEUES, WAITS, ROOM, NUMBERS, STREAMS, TABLES, WARM)
    return _stage("drop-warm-loads", facts, sets, *lines)


def _many(count: int) -> tuple[str, ...]:
    """As many registers that are live together."""
    names = [f"%v{n}:int32" for n in range(count)]
    moves = [f"m{n} = RegisterMove SP {x} <- {n}:int32 update SP+1(4)" for n, x in enumerate(names)]
    uses = [f"RegisterAlu SP {names[0]} <- {names[0]} {x} op=add update SP+1(4)" for x in names]
    return (*moves, *(f"u{n} = {use}" for n, use in enumerate(uses)), "x = Exit SP")


QUEUE = "  queue qSP SP\n"
RULES: tuple[Rule, ...] = (
    Rule(
        "NCC601",
        "a DMA without its queue",
        "A DMA stands in the stream of an engine that may trigger it, and its queue is that engine's declared one.",
        "Let bind-dma choose the engine, or name the engine's own queue and declare it.",
        (),
        _bound(INPUT + TILES, f"i0 = Load SP {LOAD} queue=qSP"),
        _bound(INPUT + TILES, f"i0 = Load SP {LOAD} queue=qSP", queues=QUEUE),
    ),
    Rule(
        "NCC602",
        "an instruction on all engines",
        "What steers an engine (registers, branches, meetings, Exit) can stand on all of them; nothing else.",
        "Write the instruction once for each engine that takes part.",
        (),
        _bound("", "i0 = NoOp ALL"),
        _bound("", "i0 = NoOp PE"),
    ),
    Rule(
        "NCC603",
        "no START for a group",
        "START zeroes the whole bank on the partitions of its column group, so a group may have it only where nothing else "
        "there is still needed; without it the group's own bytes must be zero.",
        "Give one of the two values another bank, or read the first before the second begins.",
        (),
        _bound(
            ARRAY,
            f"i0 = Matmult PE {PRODUCT}",
            f"i1 = Matmult PE {OTHER}",
            f"i2 = TensorCopy DVE {FROM_Q}",
            f"i3 = Matmult PE {OTHER}",
            f"i4 = TensorCopy DVE {FROM_P}",
        ),
        _bound(
            APART,
            f"i0 = Matmult PE {PRODUCT}",
            f"i1 = Matmult PE {OTHER}",
            f"i2 = TensorCopy DVE {FROM_Q}",
            f"i3 = Matmult PE {OTHER}",
            f"i4 = TensorCopy DVE {FROM_P}",
        ),
    ),
    Rule(
        "NCC604",
        "a sum of nothing",
        "A matmul that accumulates adds to what its destination holds, so something must have been written there.",
        "Leave `accumulate` out of the first matmul of a group.",
        (),
        _bound(ARRAY, f"i0 = Matmult PE {PRODUCT} accumulate=true"),
        _bound(ARRAY, f"i0 = Matmult PE {PRODUCT}"),
    ),
    Rule(
        "NCC605",
        "a function without a table",
        "The Activation engine evaluates the functions that are wired in or stand in one of its table sets.",
        "Use one of the functions of the table sets.",
        (),
    ),
    Rule(
        "NCC606",
        "what no record can say",
        "Each instruction is a fixed number of 64-byte records, and its operands and keys must fit their fields.",
        "Split or replace the instruction before encode.",
        (),
        _numbered(f"i0 = TensorTensor DVE {A} <- {A} {B} op=average update DVE+1(3)", sets=TILES),
        _numbered(f"i0 = TensorTensor DVE {A} <- {A} {B} op=add update DVE+1(3)", sets=TILES),
    ),
    Rule(
        "NCC607",
        "an instruction that should be gone",
        "What reaches encode stands in one of the five streams and has records of its own.",
        "Lower it to instructions that have records.",
        ("unexpected instruction at codegen",),
        _numbered("i0 = Drain PE update PE+1(0)"),
        _numbered("i0 = NoOp PE update PE+1(0)"),
    ),
    Rule(
        "NCC609",
        "no profile of DVE",
        "DVE is set up with a list of opcodes, and one list has all that the program uses.",
        "Write the work with other instructions, or let another engine do it.",
        ("no DVE profile contains all opcodes",),
    ),
    Rule(
        "NCC610",
        "a conflict without an edge",
        "Of two accesses to one byte, one of them a write, the later instruction depends on the earlier one.",
        "Add the edge, or run flow-deps and anti-deps again after moving instructions or locations.",
        ("Data race detected",),
        _ordered(TILES, f"i0 = Memset DVE {A}", f"i1 = TensorCopy Pool {B} <- {A}"),
        _ordered(TILES, f"i0 = Memset DVE {A}", f"i1 = TensorCopy Pool {B} <- {A} after i0(F)"),
    ),
    Rule(
        "NCC611",
        "flags that do not add up",
        "A group's first matmul has START or finds something to add to, the others ACCUMULATE, and no START zeroes a group "
        "that is not closed.",
        "Let mm-acc-flags set the flags after the last change of order or place.",
        (),
        _ordered(ARRAY, f"i0 = Matmult PE {PRODUCT}"),
        _ordered(ARRAY, f"i0 = Matmult PE {PRODUCT} accumulation_flag=3"),
    ),
    Rule(
        "NCC612",
        "a sum read too early",
        "A value in PSUM is read after a matmul with STOP has closed its group, and before another START zeroes it.",
        "Set STOP on the last matmul before the read.",
        (),
        _ordered(
            ARRAY,
            f"i0 = Matmult PE {PRODUCT} accumulation_flag=1",
            f"i1 = TensorCopy DVE {FROM_P} after i0(F)",
        ),
        _ordered(
            ARRAY,
            f"i0 = Matmult PE {PRODUCT} accumulation_flag=3",
            f"i1 = TensorCopy DVE {FROM_P} after i0(F)",
        ),
    ),
    Rule(
        "NCC613",
        "an edge without a wait",
        "An edge between two streams is kept by a wait for the producer's counter, or follows from other waits; a wait "
        "names a count that is reached before it.",
        "Run sync-waits after the last change of edges or order.",
        (),
        _synced("i0 = NoOp PE update PE+1", "i1 = NoOp DVE after i0(F) update DVE+1"),
        _synced("i0 = NoOp PE update PE+1", "i1 = NoOp DVE after i0(F) wait PE>=1 update DVE+1"),
    ),
    Rule(
        "NCC614",
        "a completion that nobody counts",
        "Every instruction adds one to the counter of its engine, or of its queue, when it is complete; an Exit, an "
        "EventSemaphore and a table load add nothing.",
        "Run sync-waits again: it gives each instruction its update.",
        (),
        _synced("i0 = NoOp PE"),
        _synced("i0 = NoOp PE update PE+1"),
    ),
    Rule(
        "NCC615",
        "more waits than fit",
        "A record holds one wait and one update; an EventSemaphore holds two waits.",
        "Let alloc-sems put the other waits on EventSemaphores before the instruction.",
        (),
        _numbered(
            "i0 = NoOp PE update PE+1(0)",
            "i1 = NoOp SP update SP+1(4)",
            "i2 = NoOp DVE wait PE>=1(0>=1) SP>=1(4>=1) update DVE+1(3)",
        ),
        _numbered(
            "i0 = NoOp PE update PE+1(0)",
            "i1 = NoOp SP update SP+1(4)",
            "e = EventSemaphore DVE wait PE>=1(0>=1)",
            "i2 = NoOp DVE wait SP>=1(4>=1) update DVE+1(3)",
        ),
    ),
    Rule(
        "NCC616",
        "a semaphore of another counter",
        "S[0..4] count for PE, Activation, Pool, DVE and SP in steps of one, S[8..12] for their queues in steps of 16.",
        "Let alloc-sems number the counters.",
        (),
        _numbered("i0 = NoOp PE update PE+1(3)"),
        _numbered("i0 = NoOp PE update PE+1(0)"),
    ),
    Rule(
        "NCC620",
        "a stream without an end",
        "A stream that is not empty ends with an Exit, and nothing stands behind that.",
        "Let expand-engines make the Exit of every engine that has something to do.",
        (),
        _last("", "i0 = NoOp PE update PE+1(0)", "x0 = Exit SP"),
        _last("", "i0 = NoOp PE update PE+1(0)", "x0 = Exit PE"),
    ),
    Rule(
        "NCC621",
        "a function whose table is not loaded",
        "The Activation engine evaluates exp and its like from the one table set that was loaded last.",
        "Let load-act-tables put a load before the first function of another set.",
        (),
        _last(TILES, f"i0 = Activation Activation {EXP}", "x0 = Exit Activation"),
        _last(
            TILES,
            "t0 = LoadActFuncSet Activation act_func_set_id=6",
            f"i0 = Activation Activation {EXP}",
            "x0 = Exit Activation",
        ),
    ),
    Rule(
        "NCC622",
        "weights that are not in the array",
        "A matmul that loads no weights multiplies by those that an earlier one left in its rows and columns of the array.",
        "Let drop-warm-loads decide after the last change of order or place.",
        (),
        _last(
            ARRAY,
            f"i0 = Matmult PE {PRODUCT} accumulation_flag=3 weights_loaded=true update PE+1(0)",
            "x0 = Exit PE",
        ),
        _last(
            ARRAY,
            f"i0 = Matmult PE {PRODUCT} accumulation_flag=3 update PE+1(0)",
            "x0 = Exit PE",
        ),
    ),
    Rule(
        "NCC608",
        "too many registers",
        "What an engine holds in registers at one moment is at most 62 values.",
        "Keep values that a loop only passes on in a tile, and load them where they are needed.",
        (),
        _last("", *_many(63)),
        _last("", *_many(62)),
    ),
    Rule(
        "NCC623",
        "a register without a number",
        "From alloc-regs on a register is called by its number, r0 to r61.",
        "Let alloc-regs choose the number.",
    ),
)
