"""Rules 4: the form of BIR and its operands.

Most examples are one program, a product of two small matrices, with one word changed.
"""

from __future__ import annotations

from typing import TypedDict

from ncc.rules import Rule

FACTS = (
    "every-instruction-has-one-engine,no-abstract-copy-is-left,no-loop-is-left,"
    "no-matmul-has-a-flag,operands-are-bound,patterns-are-physical"
)
PROGRAM = f"""# ncc bir target=trn2 after=unroll facts={FACTS}
module dot gen3
  func sg0000
    set w bfloat16 (8,4) kind=ExternalInput
      loc w DRAM (1,64)
    set x bfloat16 (8,6) kind=ExternalInput
      loc x DRAM (1,96)
    set out float32 (4,6) kind=ExternalOutput
      loc out DRAM (1,96)
    set w_t bfloat16 (8,4) memory=SB
      loc w_t SB (8,8)
    set x_t bfloat16 (8,6) memory=SB
      loc x_t SB (8,12)
    set acc float32 (4,6) memory=PSUM
      loc acc PSUM (4,24)
    set out_t float32 (4,6) memory=SB
      loc out_t SB (4,24)
    block Block1
      i0 = Load DMA w_t:bfloat16[[4,8],[1,4]] <- w:bfloat16[[4,8],[1,4]]
      i1 = Load DMA x_t:bfloat16[[6,8],[1,6]] <- x:bfloat16[[6,8],[1,6]]
      i2 = Matmult PE acc:float32[[6,4],[1,6]] <- x_t:bfloat16[[6,8],[1,6]] w_t:bfloat16[[4,8],[1,4]]
      i3 = TensorCopy DVE out_t:float32[[6,4],[1,6]] <- acc:float32[[6,4],[1,6]]
      i4 = Save DMA out:float32[[6,4],[1,6]] <- out_t:float32[[6,4],[1,6]]
      i5 = Exit ALL
"""


class Pair(TypedDict):
    wrong: str
    right: str
    how: str


def _but(right: str, wrong: str, program: str = PROGRAM) -> Pair:
    """The program with one part changed, and as it is."""
    return {
        "wrong": program.replace(right, wrong, 1),
        "right": program,
        "how": "compile FILE --stop-after bir-dce",
    }


TILES = """# ncc bir target=trn2 after=penguin-to-bir facts=no-matmul-has-a-flag
module copy gen3
  func sg0000
    set x float32 (6,3) kind=ExternalInput
    set y float32 (6,3) kind=ExternalOutput
    set x_t float32 (2,3,3) memory=SB partition_dim=1
    block Block1
      for.i = Loop ALL axis=(i,0,2,1)
        block block0
          load = AbstractCopy DMA x_t[i,p,f|p:3|f:3] <- x[3*i+p,f|p:3|f:3]
          store = AbstractCopy DMA y[3*i+p,f|p:3|f:3] <- x_t[i,p,f|p:3|f:3]
      exit = Exit ALL
"""
# the same with its operands bound
BOUND = """# ncc bir target=trn2 after=finalize-insts facts=every-instruction-has-one-engine,no-matmul-has-a-flag,operands-are-bound
module copy gen3
  func sg0000
    set x float32 (6,3) kind=ExternalInput
      loc x DRAM (1,72)
    set y float32 (6,3) kind=ExternalOutput
      loc y DRAM (1,72)
    set x_t float32 (3,3) memory=SB
      loc x_t SB (3,12)
    block Block1
      for.i = Loop ALL axis=(i,0,2,1)
        block block0
          load = AbstractCopy DMA x_t():float32[[3,3],[1,3]] <- x():float32[[3,3],[1,3]]+9*i
          store = AbstractCopy DMA y():float32[[3,3],[1,3]]+9*i <- x_t():float32[[3,3],[1,3]]
      exit = Exit ALL
"""

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC400",
        "no such opcode",
        "An instruction's opcode is one of the 110 of the table.",
        "The message names the nearest opcode.",
        names=("BIR301",),
    ),
    Rule(
        "NCC401",
        "unknown key",
        "An instruction has only the keys of its opcode, and an object of a document only known ones.",
        "Remove the key, or give it to an instruction whose opcode has it.",
        names=("BIR015",),
    ),
    Rule(
        "NCC402",
        "a name that is there twice",
        "Location sets, locations, instructions, queues and functions each have one name of their own.",
        "Rename one of the two.",
        **_but("i3 = TensorCopy", "i2 = TensorCopy"),
    ),
    Rule(
        "NCC403",
        "too few or too many operands",
        "An opcode says how many operands it reads and writes, by position.",
        "Give every operand of the opcode, in the order of its table row.",
        names=tuple(f"BIR{n:03}" for n in (*range(6, 14), 406, 407)),
        **_but(" w_t:bfloat16[[4,8],[1,4]]\n      i3", "\n      i3"),
    ),
    Rule(
        "NCC404",
        "a name that is nothing",
        "A location, a location set or an earlier instruction that is named must exist.",
        "The message names the nearest name; locations are listed under their set.",
        names=("BIR014", "BIR016", "BIR017", "BIR036", "BIR045", "BIR046", "BIR047", "BIR048"),
        **_but("<- acc:float32", "<- ack:float32"),
    ),
    Rule(
        "NCC405",
        "bank and address disagree",
        "`bank` of a placed PSUM location is its `addr` divided by 2048.",
        "Change one of the two.",
        **_but(
            " bank=1",
            "",
            PROGRAM.replace("PSUM (4,24)", "PSUM (4,24) addr=2048 bank=1 allocated=true"),
        ),
    ),
    Rule(
        "NCC406",
        "an engine that cannot run it",
        "An instruction stands in the stream of an engine that has its opcode.",
        "Choose an engine that the message lists.",
        names=("BIR606", "BIR444"),
        **_but("TensorCopy DVE", "TensorCopy PE"),
    ),
    Rule(
        "NCC407",
        "an operand in the wrong memory",
        "Each operand of an opcode may lie in certain memories only: products in PSUM, what PE reads in "
        "SBUF, one end of a DMA in DRAM; Pool reaches no PSUM.",
        "Copy the operand to a memory that the message names.",
        names=("BIR412", "pool_psum"),
        **_but("TensorCopy DVE", "TensorCopy Pool"),
    ),
    Rule(
        "NCC408",
        "a pattern of the wrong form",
        "An access pattern has two to five pairs that count at least 1; on chip the first one walks "
        "consecutive partitions, so its step is the elements of one partition.",
        "Write the partition pair first, and no more than four others.",
        names=("BIR049", "BIR003", "BIR023", "BIR024"),
        **_but("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[1,6],[6,4]]"),
    ),
    Rule(
        "NCC409",
        "an access outside its location",
        "Every element that a pattern walks lies in its location, and on chip inside one partition's part.",
        "Change the offset, the steps or the counts, or make the location larger.",
        names=("BIR037", "BIR038", "BIR228", "BIR229"),
        **_but("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[6,4],[1,6]]+1"),
    ),
    Rule(
        "NCC410",
        "a statement that is no instruction",
        "Code generation takes tile ops of the ISA level, over tensors that have a home.",
        "Lower the op first: select-insts makes instructions of element-wise ops.",
    ),
    Rule(
        "NCC411",
        "a tile that no pattern walks",
        "A tile walks consecutive partitions and a sum of axes everywhere else.",
        "Index the partition dimension by its whole axis, and use modulo indices for blocks only.",
        **_but("x_t[i,p,f|p:3|f:3] <- x[3*i+p", "x_t[i,2*p,f|p:3|f:3] <- x[3*i+p", TILES),
    ),
    Rule(
        "NCC412",
        "a copy between DRAM and PSUM",
        "No DMA reaches PSUM, so nothing is copied between DRAM and PSUM in one step.",
        "Copy to SBUF first.",
        names=("lower_ac",),
        **_but(
            "memory=SB\n      loc x_t SB (3,12)", "memory=PSUM\n      loc x_t PSUM (3,12)", BOUND
        ),
    ),
    Rule(
        "NCC413",
        "a DMA that would convert",
        "A DMA copies bytes; both sides have one type.",
        "Load it as it is, and convert with an engine copy.",
        **_but("<- x:bfloat16[[6,8],[1,6]]", "<- x:float16[[6,8],[1,6]]"),
    ),
    Rule(
        "NCC414",
        "a block that a tensor does not have",
        "In every iteration a block index lies inside its dimension.",
        "Compare the loop's trips with the tensor's block dimensions.",
        **_but("axis=(i,0,2,1)", "axis=(i,0,3,1)", TILES),
    ),
    Rule(
        "NCC415",
        "too many instructions",
        "Unrolling gives at most 4,000,000 instructions; the real compiler's ceiling is 24,999,999.",
        "Make the tiles larger, or compile a smaller program.",
        names=("compiler generated too many instructions",),
    ),
    Rule(
        "NCC416",
        "a product larger than the array",
        "One matmul has at most 128 rows to add up, 128 stationary and 512 moving columns.",
        "Cut the product into tiles of at most that.",
        names=("BIR039", "BIR040", "BIR041"),
    ),
    Rule(
        "NCC417",
        "matmul operands that do not match",
        "Both operands have the same partitions, the result has the stationary columns as partitions and "
        "the moving ones inside, and either both operands are 32 bits wide or neither. A perf_mode "
        "reads 8-bit floats in pairs; other types have none.",
        "Compare the three patterns; convert one operand when only the widths differ.",
        names=("BIR034",),
        **_but(
            "acc:float32[[6,4],[1,6]] <- x_t:bfloat16[[6,8],[1,6]]",
            "acc:float32[[6,4],[1,6]] <- x_t:bfloat16[[6,7],[1,6]]",
        ),
    ),
    Rule(
        "NCC418",
        "an impossible tile of the array",
        "tile_size and tile_position are given together, with sides of 32, 64 or 128, a start at a "
        "multiple of the side, and no less room than the operands take.",
        "Leave both out, or give a tile that holds the operands.",
        names=tuple(f"BIR{n:03}" for n in (*range(50, 55), 57, 58)),
        **_but("[1,4]]\n      i3", "[1,4]] tile_size=(32,32)\n      i3"),
    ),
    Rule(
        "NCC419",
        "two tensors from PSUM",
        "An instruction reads at most one tensor from PSUM; a column with one value a partition is none.",
        "Copy one of them to SBUF first.",
        names=("BVF027", "BVF028"),
        **_but(
            "i3 = TensorCopy DVE out_t:float32[[6,4],[1,6]] <- acc:float32[[6,4],[1,6]]",
            "i3 = TensorTensor DVE out_t:float32[[6,4],[1,6]] <- acc:float32[[6,4],[1,6]] "
            "acc:float32[[6,4],[1,6]] op=add",
        ),
    ),
    Rule(
        "NCC420",
        "element counts that differ",
        "What is read element by element has as many elements as the result; a column has one a partition.",
        "Compare the counts of the patterns.",
        names=("L14",),
        **_but("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[6,4],[1,5]]"),
    ),
    Rule(
        "NCC422",
        "a block that does not end",
        "No block is empty, each ends with a terminator for every engine in it, and nothing follows that.",
        "End the last block with `exit = Exit ALL`.",
        names=tuple(f"BIR{n:03}" for n in (78, 79, 80, 82, 83, 84, 85, 107, 108, 109)),
        **_but("      i5 = Exit ALL\n", ""),
    ),
    Rule(
        "NCC423",
        "something that should be gone",
        "Once operands are bound there is no tile, and once loops are unrolled no loop and no operand "
        "with a loop variable.",
        "Start at an earlier pass, or take the fact out of the stage's first line.",
        names=tuple(f"BIR{n:03}" for n in (430, 431, 432, 433, 434, 435)),
        **_but("w_t:bfloat16[[4,8],[1,4]] <- w:", "w_t():bfloat16[[4,8],[1,4]] <- w:"),
    ),
    Rule(
        "NCC424",
        "an accumulation flag too early, or none",
        "mm-acc-flags writes the flags, and no other pass before it; a flag is START 1 or ACCUMULATE 4, "
        "and STOP 2 with either or neither.",
        "Say accumulate=true where a product is added to the ones before it.",
        names=("BIR310",),
        **_but("[1,4]]\n      i3", "[1,4]] accumulation_flag=3\n      i3"),
    ),
    Rule(
        "NCC425",
        "an abstract copy is left",
        "lower-ac makes a load, a save or an engine copy of every AbstractCopy.",
        "Run lower-ac, or write the copy's own opcode.",
        names=("BIR439",),
        **_but("i0 = Load DMA", "i0 = AbstractCopy DMA"),
    ),
    Rule(
        "NCC426",
        "a document that cannot be read",
        "A BIR document is JSON of version 2 whose objects have every key that they need, each of its type.",
        "Compare with what `to_json` writes; version 1 is not read.",
        names=("BIR015", "BIR091", "BIR096", "BIRSERDES001"),
    ),
    Rule(
        "NCC427",
        "a word that a key does not take",
        "ALU operations, activation functions and modes are words of fixed lists.",
        "The message names the nearest word.",
        names=("BIR532", "BIR533", "L16"),
        **_but(
            "i3 = TensorCopy DVE out_t:float32[[6,4],[1,6]] <- acc:float32[[6,4],[1,6]]",
            "i3 = Activation Activation out_t:float32[[6,4],[1,6]] <- acc:float32[[6,4],[1,6]] func=Reluu",
        ),
    ),
    Rule(
        "NCC428",
        "an immediate that is not allowed",
        "An immediate is an integer, fp32, fp16 or bf16, is only read, and before trn2 is a bias of Copy "
        "and Reciprocal only.",
        "Give the value as a column with one number a partition.",
        names=tuple(f"BIR{n:03}" for n in (*range(114, 122), 605)),
    ),
    Rule(
        "NCC429",
        "an address that is not aligned",
        "A location starts at a multiple of its element's size, and a view's elements fill its partition.",
        "Move the location, or view it as its own type.",
        names=("BIR429", "L6"),
        **_but(
            "loc x_t SB (8,12)",
            "loc x_t SB (8,12) addr=33 allocated=true",
        ),
    ),
    Rule(
        "NCC430",
        "an output with bytes that nothing wrote",
        "Every byte of every output comes from an input, a constant or a computation.",
        "Write the whole output; a tile that was loaded in part was perhaps stored in full.",
        names=("BIR182",),
    ),
    Rule(
        "NCC431",
        "a PSUM cell in the wrong state",
        "A matmul without START adds to cells that something wrote; an engine reads a cell only after "
        "STOP; a START zeroes no cell whose group is open.",
        "Compare the flags of the group's matmuls, in order, with the ones of other groups in its bank.",
        names=("L10",),
    ),
    Rule(
        "NCC432",
        "an address outside memory",
        "Every byte that an instruction touches exists.",
        "The message names the location and the access.",
    ),
    Rule(
        "NCC433",
        "an opcode without a meaning here",
        "The interpreter knows what the opcodes of the compiled path do.",
        "Use other instructions; the rest comes with the kernels.",
    ),
    Rule(
        "NCC434",
        "a location set that does not add up",
        "A set has one location a block, each as large as its shape says, in the set's memory; "
        "dtype, kind and memory are known words.",
        "Compare the set's shape with its locations.",
        names=("BIR299", "BIR300", "BIR023"),
        **_but("loc w_t SB (8,8)", "loc w_t SB (8,6)"),
    ),
    Rule(
        "NCC435",
        "an engine that is not chosen yet",
        "From finalize-insts on every instruction has one engine.",
        "Write one of the engines.",
        **_but("TensorCopy DVE", "TensorCopy DVE|Activation"),
    ),
    Rule(
        "NCC436",
        "an opcode that is not there",
        "Abstract opcodes stand for families, and some opcodes come with a later machine.",
        "Use an opcode that this target has.",
        names=("BIR530", "BIR531", "BIR534"),
        **_but("i2 = Matmult PE", "i2 = MatmultBase PE"),
    ),
    Rule(
        "NCC437",
        "a product across PSUM banks",
        "The result of one matmul lies in one bank of 2048 bytes a partition.",
        "Cut the moving operand at the bank.",
        names=("BIR110",),
    ),
)
