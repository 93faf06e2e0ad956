"""Rules 9: the machine that runs the bytes."""

from __future__ import annotations

from ncc.rules import Rule

# Two programs that run, on which the rules show what they refuse: y = max(x, 0), and c = aᵀ · b.
RELU = """\
# ncc isa target=trn2 after=input
program relu target=cayman gen=3
var x id=1 kind=input dtype=float32 shape=(4,8)
var y id=2 kind=output dtype=float32 shape=(4,8)
queue qSP owner=SP semaphore=12 num_queues=16
stream PE
stream Activation
stream Pool
stream DVE
  TensorScalar wait=S12>=16 src=sb[0]+0x0[1:8] in_dtype=float32 out_dtype=float32 nchan=4 op0=max \
dst=sb[0]+0x20[1:8] update=S3++
  Exit
stream SP
  DmaDirect2d semaphore=12 sem_increment=16 src=v1+0x0 src_step=(32,0) src_num=(4,1) src_size=32 \
dst=sb[0]+0x0 dst_step=(262144,0) dst_num=(4,1) dst_size=32 src_dtype=float32 dst_dtype=float32
  DmaDirect2d wait=S3>=1 semaphore=12 sem_increment=16 src=sb[0]+0x20 src_step=(262144,0) \
src_num=(4,1) src_size=32 dst=v2+0x0 dst_step=(32,0) dst_num=(4,1) dst_size=32 \
src_dtype=float32 dst_dtype=float32
  Exit wait=S12>=32
"""
DOT = """\
# ncc isa target=trn2 after=input
program dot target=cayman gen=3
var a id=1 kind=input dtype=bfloat16 shape=(16,8)
var b id=2 kind=input dtype=bfloat16 shape=(16,4)
var c id=3 kind=output dtype=float32 shape=(8,4)
queue qSP owner=SP semaphore=12 num_queues=16
stream PE
  LoadStationary wait=S12>=32 src=sb[0]+0x0[1:8] in_dtype=bfloat16 num_active_rows=16 \
num_active_cols=8 row_grp=1 col_grp=1
  Matmul moving=sb[0]+0x40[1:4] in_dtype=bfloat16 num_active_rows=16 num_active_cols=8 \
psum_flags=3 row_grp=1 col_grp=1 dst=ps[0]bank0+0x0[1:4] update=S0++
  Exit
stream Activation
stream Pool
stream DVE
  Copy wait=S0>=1 src=ps[0]bank0+0x0[1:4] in_dtype=float32 out_dtype=float32 nchan=8 \
dst=sb[0]+0x80[1:4] update=S3++
  Exit
stream SP
  DmaDirect2d semaphore=12 sem_increment=16 src=v1+0x0 src_step=(16,0) src_num=(16,1) src_size=16 \
dst=sb[0]+0x0 dst_step=(262144,0) dst_num=(16,1) dst_size=16 src_dtype=bfloat16 dst_dtype=bfloat16
  DmaDirect2d semaphore=12 sem_increment=16 src=v2+0x0 src_step=(8,0) src_num=(16,1) src_size=8 \
dst=sb[0]+0x40 dst_step=(262144,0) dst_num=(16,1) dst_size=8 src_dtype=bfloat16 dst_dtype=bfloat16
  DmaDirect2d wait=S3>=1 semaphore=12 sem_increment=16 src=sb[0]+0x80 src_step=(262144,0) \
src_num=(8,1) src_size=16 dst=v3+0x0 dst_step=(16,0) dst_num=(8,1) dst_size=16 \
src_dtype=float32 dst_dtype=float32
  Exit wait=S12>=48
"""
POOL = "stream Pool\n"
ACTIVATION = "stream Activation\n"
EXP = """\
  Activate wait=S12>=16 src=sb[0]+0x0[1:8] in_dtype=float32 bias_dtype=float32 \
out_dtype=float32 bias_src_n=instruction scale=1065353216 nchan=4 act_func=Exp \
dst=sb[0]+0x40[1:8]
  Exit
"""
SHUFFLE = """\
  StreamShuffle src=sb[0]+0x0[1:8] in_dtype=float32 out_dtype=float32 nchan=32 \
dst=sb[0]+0x80[1:8]
"""


def broken(program: str, part: str, by: str) -> str:
    """The program with one part of it replaced."""
    return program.replace(part, by, 1)


RULES: tuple[Rule, ...] = (
    Rule(
        "NCC900",
        "not modelled",
        "The machine runs the bundles whose effect the ISA reference gives, and refuses the others.",
        "Use an instruction that the machine runs; `ncc explain --unchecked` lists the rest.",
        wrong=broken(
            RELU,
            POOL,
            POOL + "  SyncBarrier\n  Exit\n",
        ),
        right=RELU,
        how="run FILE",
    ),
    Rule(
        "NCC901",
        "deadlock",
        "Some engine must be able to go on until every stream has ended.",
        "Look for the update that the named waits need: it is missing, or stands behind them.",
        wrong=broken(DOT, " update=S0++", ""),
        right=DOT,
        how="run FILE",
    ),
    Rule(
        "NCC902",
        "race",
        "Two engines that touch the same bytes, one of them writing, need a wait between them.",
        "Make the later one wait for the counter that the earlier one raises.",
        names=("Racecheck", "Data race detected"),
        wrong=broken(RELU, " wait=S12>=16", ""),
        right=RELU,
        how="run FILE",
    ),
    Rule(
        "NCC903",
        "unwritten bytes",
        "Bytes that nobody wrote must not reach an output, a branch, an index or a semaphore.",
        "Write the bytes first (a load, a memset), or read fewer of them.",
        names=("BIR182",),
        wrong=broken(RELU, "src=sb[0]+0x0[1:8]", "src=sb[0]+0x40[1:8]"),
        right=RELU,
        how="run FILE",
    ),
    Rule(
        "NCC904",
        "exit without waiting",
        "An engine ends only when every DMA that it issued is known complete to it.",
        "Let the Exit wait for the engine's own queue: 16 times the number of its DMAs.",
        wrong=broken(RELU, "Exit wait=S12>=32", "Exit wait=S12>=16"),
        right=RELU,
        how="run FILE",
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
        wrong=broken(DOT, "psum_flags=3", "psum_flags=1"),
        right=DOT,
        how="run FILE",
    ),
    Rule(
        "NCC908",
        "accumulates on unwritten cells",
        "A matmul without START adds only to cells that a START zeroed or that were written.",
        "Set START on the first matmul of the group.",
        names=("A18",),
        wrong=broken(DOT, "psum_flags=3", "psum_flags=2"),
        right=DOT,
        how="run FILE",
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
        wrong=broken(RELU, POOL, POOL + "  DMATrigger queue=q block=1\n  Exit\n"),
        right=RELU,
        how="run FILE",
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
        wrong=broken(RELU, ACTIVATION, ACTIVATION + EXP),
        right=broken(RELU, ACTIVATION, ACTIVATION + "  ActivationTableLoad\n" + EXP),
        how="run FILE",
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
        wrong=broken(RELU, "stream DVE\n", "stream DVE\n" + SHUFFLE),
        right=RELU,
        how="run FILE",
    ),
    Rule(
        "NCC920",
        "halted",
        "A program ends with Exit; Halt stops the engine and the run with it.",
        "Replace Halt by Exit.",
        wrong=broken(RELU, POOL, POOL + "  Halt\n  Exit\n"),
        right=RELU,
        how="run FILE",
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
