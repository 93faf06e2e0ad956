"""Rules 9: the machine that runs the bytes."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC900",
        "not modelled",
        "The machine runs the bundles whose effect the ISA reference gives, and refuses the others.",
        "Use an instruction that the machine runs; `ncc explain --unchecked` lists the rest.",
    ),
    Rule(
        "NCC901",
        "deadlock",
        "Some engine must be able to go on until every stream has ended.",
        "Look for the update that the named waits need: it is missing, or stands behind them.",
    ),
    Rule(
        "NCC902",
        "race",
        "Two engines that touch the same bytes, one of them writing, need a wait between them.",
        "Make the later one wait for the counter that the earlier one raises.",
        names=("Racecheck", "Data race detected"),
    ),
    Rule(
        "NCC903",
        "unwritten bytes",
        "Bytes that nobody wrote must not reach an output, a branch, an index or a semaphore.",
        "Write the bytes first (a load, a memset), or read fewer of them.",
        names=("BIR182",),
    ),
    Rule(
        "NCC904",
        "exit without waiting",
        "An engine ends only when every DMA that it issued is known complete to it.",
        "Let the Exit wait for the engine's own queue: 16 times the number of its DMAs.",
    ),
    Rule(
        "NCC905",
        "outside the memory",
        "A bundle touches only bytes that exist: of a partition, of PSUM, or of one DRAM variable.",
        "Correct the start, the steps or the counts of the pattern.",
        names=("L5",),
    ),
    Rule(
        "NCC906",
        "illegal start partition",
        "More than 64 partitions start at 0, more than 32 at 0 or 64, others at 0, 32, 64 or 96.",
        "Move the tile to a legal partition.",
        names=("A1", "L4", "BIR039"),
    ),
    Rule(
        "NCC907",
        "read or cleared an open PSUM cell",
        "A cell of an accumulation group is read, cleared or given to another only after STOP.",
        "Set STOP on the last matmul of the group, and START on the first one of its bank only.",
        names=("L10",),
    ),
    Rule(
        "NCC908",
        "accumulates on unwritten cells",
        "A matmul without START adds only to cells that a START zeroed or that were written.",
        "Set START on the first matmul of the group.",
        names=("A18",),
    ),
    Rule(
        "NCC909",
        "no such weights",
        "A Matmul finds its rows, columns and groups as its LdWeights loaded them.",
        "Load the weights again right before the Matmul.",
        names=("L8",),
    ),
    Rule(
        "NCC910",
        "step limit",
        "A run ends within its limit of bundles.",
        "Look for a branch that never falls through, or raise the limit.",
    ),
    Rule(
        "NCC911",
        "stream without its end",
        "A stream that is not empty ends with Exit, and has it nowhere else.",
        "Put one Exit at the end of the stream.",
        names=("R13",),
    ),
    Rule(
        "NCC912",
        "operands that do not fit",
        "The patterns of one bundle hold equally many elements, of types that its opcode takes.",
        "Make counts and types agree.",
        names=("L14",),
    ),
    Rule(
        "NCC913",
        "no port to that memory",
        "Pool and DMA do not reach PSUM, PE reads SBUF and writes PSUM, PSUM is written in 4 bytes.",
        "Go through SBUF, or use another engine.",
        names=("A11", "L7"),
    ),
    Rule(
        "NCC914",
        "DMA on the wrong queue",
        "A DMA stands in a stream that may trigger it and raises the semaphore of that queue by 16.",
        "Move it to SP, Activation, DVE or Pool, and name that engine's queue semaphore.",
        names=("L32", "R15"),
    ),
    Rule(
        "NCC915",
        "queue trigger refused",
        "Every DMA is a DIRECT2D in the stream; a trigger of a prepared queue block is refused.",
        "Write the transfer as DmaDirect2d.",
    ),
    Rule(
        "NCC916",
        "no such target",
        "The machine runs the records of the target that the NEFF names.",
        "Compile for that target, or run with it.",
        names=("R17",),
    ),
    Rule(
        "NCC917",
        "activation table not loaded",
        "A function that is not hard-wired needs its table set, loaded by an earlier bundle.",
        "Load a set that holds the function before the Activate.",
    ),
    Rule(
        "NCC918",
        "branch out of the stream",
        "A branch lands on a bundle of its own stream.",
        "Correct the displacement: bytes, a multiple of 64, from the branch itself.",
        names=("L31",),
    ),
    Rule(
        "NCC919",
        "index out of range",
        "An index, a shuffle lane or a register number stays within what it names.",
        "Clamp the index, or make the table longer.",
    ),
    Rule(
        "NCC920",
        "halted",
        "A program ends with Exit; Halt stops the engine and the run with it.",
        "Replace Halt by Exit.",
    ),
    Rule(
        "NCC921",
        "constant or input written",
        "Inputs and constants are read only.",
        "Write to an output or a scratch variable.",
    ),
    Rule(
        "NCC922",
        "not a transposing matmul",
        "In transpose mode each column of the moving tile holds a single 1 and zeros.",
        "Use the identity as the moving tile.",
    ),
)
