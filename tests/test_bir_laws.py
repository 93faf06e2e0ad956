"""Each law of BIR, broken once on purpose: the code and the whole sentence."""

from __future__ import annotations

import attrs
import pytest

from ncc.errors import NccError
from ncc.ir.bir import Imm, with_insts
from ncc.ir.bir_inst_laws import known_of, placement_key
from ncc.ir.bir_keys import ALU_OPS, FUNCTIONS
from ncc.ir.bir_opcodes import OPCODES, Row, key, keyed
from ncc.ir.bir_text import parse
from ncc.ir.core import Law
from ncc.rules.bir import BOUND, PROGRAM, TILES
from ncc.stages import Stage, level, read_stage
from ncc.target import TARGETS
from ncc.verify import Verifier

TRN1, TRN2 = TARGETS["trn1"], TARGETS["trn2"]


def complaint(module, target=TRN2, facts=()):
    with pytest.raises(NccError) as found:
        Verifier().check(Stage("bir", target, "input", facts, module))
    return str(found.value)


def but(*changes, program=PROGRAM):
    text = program
    for right, wrong in changes:
        assert right in text
        text = text.replace(right, wrong, 1)
    return parse(text.split("\n", 1)[1])


def accepted(module, target=TRN2, facts=()):
    Verifier().check(Stage("bir", target, "input", facts, module))


@pytest.mark.parametrize("text", [PROGRAM, TILES, BOUND])
def test_the_programs_are_legal(text):
    stage = read_stage(text)
    Verifier().check(stage)


COPY = "i3 = TensorCopy DVE out_t:float32[[6,4],[1,6]] <- acc:float32[[6,4],[1,6]]"
MATMULT = "i2 = Matmult PE acc:float32[[6,4],[1,6]] <- x_t:bfloat16[[6,8],[1,6]] w_t:bfloat16[[4,8],[1,4]]"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "TensorCopy DVE",
            "TensorCopy PE",
            "NCC406 i3: PE cannot run TensorCopy; DVE, Pool, Activation can",
        ),
        (
            "TensorCopy DVE",
            "TensorCopy DVE|SP",
            "NCC406 i3: SP cannot run TensorCopy; DVE, Pool, Activation can",
        ),
        (
            "TensorCopy DVE",
            "TensorCopy Pool",
            "NCC407 i3: TensorCopy on Pool reads acc in PSUM; operand 0 must be in SBUF",
        ),
        (
            "i2 = Matmult PE acc",
            "i2 = Matmult PE out_t",
            "NCC407 i2: Matmult writes out_t in SBUF; operand 0 must be in PSUM",
        ),
        (
            "i4 = Save DMA out:",
            "i4 = Save DMA out_t:",
            "NCC407 i4: Save writes out_t in SBUF; operand 0 must be in DRAM",
        ),
        (
            COPY,
            "i3 = TensorCopy DVE out_t:float32[[6,4],[1,6]]",
            "NCC403 i3: TensorCopy reads 0 operands and takes 1",
        ),
        (
            MATMULT,
            MATMULT.replace("<-", "acc:float32[[6,4],[1,6]] <-"),
            "NCC403 i2: Matmult writes 2 operands and takes 1",
        ),
        (
            "<- acc:float32",
            "<- ack:float32",
            "NCC404 i3: TensorCopy names ack, which is no location (did you mean acc?)",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[6,4],[6,1],[6,1],[6,1],[6,1],[1,6]]",
            "NCC408 i3: TensorCopy walks acc by [[6, 4], [6, 1], [6, 1], [6, 1], [6, 1], [1, 6]], 6 pairs; "
            "a pattern has 2 to 5",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[1,6],[6,4]]",
            "NCC408 i3: TensorCopy walks acc by [[1, 6], [6, 4]]; the first pair must walk partitions, "
            "which hold 6 elements each",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[6,4],[1,0]]",
            "NCC408 i3: TensorCopy walks acc by [[6, 4], [1, 0]]; a pair counts at least 1",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[6,4],[1,6]]+2",
            "NCC409 i3: TensorCopy walks acc by [[6, 4], [1, 6]] from element 2 of a partition and leaves "
            "its 6 elements",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[6,4],[1,6]]+6",
            "NCC409 i3: TensorCopy walks acc by [[6, 4], [1, 6]] from partition 1 and leaves its 4 partitions",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[6,4],[-1,6]]+4",
            "NCC409 i3: TensorCopy walks acc by [[6, 4], [-1, 6]] from element 4 of a partition and leaves "
            "its 6 elements",
        ),
        (
            "<- x:bfloat16[[6,8],[1,6]]",
            "<- x:bfloat16[[6,8],[1,6]]+1",
            "NCC409 i1: Load walks x by [[6, 8], [1, 6]] from element 1 and leaves its 48 elements",
        ),
        (
            "<- x:bfloat16[[6,8],[1,6]]",
            "<- x:float16[[6,8],[1,6]]",
            "NCC413 i1: Load copies float16 to bfloat16; a DMA converts nothing",
        ),
        (
            "x_t:bfloat16[[6,8],[1,6]] w_t",
            "x_t:bfloat16[[6,8],[1,5]] w_t",
            "NCC417 i2: multiplies [8,4] by [8,5] into [4,6]",
        ),
        (
            "x_t:bfloat16[[6,8],[1,6]] w_t",
            "x_t:float32[[3,8],[1,3]] w_t",
            "NCC417 i2: multiplies bfloat16 by float32; both are 32 bits wide or neither",
        ),
        (
            "x_t:bfloat16[[6,8],[1,6]] w_t:bfloat16[[4,8],[1,4]]",
            "x_t:bfloat16[[6,8],[1,6]] w_t:bfloat16[[4,8],[1,4]] perf_mode=DoubleRow",
            "NCC417 i2: multiplies bfloat16 by bfloat16; perf_mode=DoubleRow is for 8-bit floats",
        ),
        (
            "<- acc:float32[[6,4],[1,6]]",
            "<- acc:float32[[6,4],[1,5]]",
            "NCC420 i3: TensorCopy reads 20 elements and writes 24",
        ),
        (
            COPY,
            COPY.replace("TensorCopy", "TensorTensor") + " acc:float32[[6,4],[1,6]] op=add",
            "NCC419 i3: TensorTensor reads acc and acc, both in PSUM; one may be (copy one to SBUF first)",
        ),
        (
            COPY,
            COPY.replace("TensorCopy DVE", "Activation Activation") + " func=Reluu",
            "NCC427 i3: func has no value Reluu (did you mean Relu?)",
        ),
        (
            COPY,
            COPY.replace("TensorCopy DVE", "Activation Activation") + " func=Exp scale=half",
            "NCC427 i3: scale has no value half, it takes a number",
        ),
        (
            COPY,
            COPY.replace("TensorCopy DVE", "Activation Activation"),
            "NCC427 i3: Activation needs func=, one of the activation functions",
        ),
        (
            COPY,
            COPY.replace("TensorCopy", "TensorScalar") + " op1=add",
            "NCC427 i3: op0 is bypass, so op1 cannot be add",
        ),
        (
            COPY,
            COPY.replace("TensorCopy DVE", "Activation Activation")
            + " out_t:float32[[6,4],[1,2]] func=Relu",
            "NCC420 i3: Activation has a column of 4 partitions of 2 elements beside 4 partitions",
        ),
        (
            "i2 = Matmult PE",
            "i2 = MatmultBase PE",
            "NCC436 i2: MatmultBase is abstract",
        ),
        (
            COPY,
            COPY.replace("TensorCopy", "QuantizeMx"),
            "NCC436 i3: QuantizeMx does not exist on trn2",
        ),
        (
            MATMULT,
            MATMULT + " accumulation_flag=5",
            "NCC424 i2: accumulation_flag=5 is no sum of 1 or 4, and 2",
        ),
        (
            MATMULT,
            MATMULT + " tile_size=(32,32)",
            "NCC418 i2: gives tile_size or tile_position without the other",
        ),
        (
            MATMULT,
            MATMULT + " tile_position=(16,0) tile_size=(32,32)",
            "NCC418 i2: a tile of 32 rows cannot start at 16",
        ),
        (
            "i5 = Exit ALL\n",
            "",
            "NCC422 sg0000.Block1: the block Block1 ends with i4, which is no terminator",
        ),
        (
            "i5 = Exit ALL",
            "i5 = Exit ALL\n      i6 = NoOp SP",
            "NCC422 i6: i6 follows the terminator of SP",
        ),
        (
            "i5 = Exit ALL",
            "i5 = Exit SP\n      i6 = Exit SP",
            "NCC422 i6: i6 is a second terminator on SP",
        ),
        ("i4 = Save", "i3 = Save", "NCC402 i3: the instruction i3 is there twice"),
        ("loc w_t", "loc x_t", "NCC402 x_t: the location x_t is there twice"),
        ("set w_t", "set x_t", "NCC402 x_t: the location set x_t is there twice"),
        ("i5 = Exit ALL", "i5 = Exit ALL after i9(F)", "NCC404 i5: depends on i9, which is none"),
        ("i5 = Exit ALL", "i5 = Exit ALL after i5(F)", "NCC404 i5: depends on i5, itself"),
        (
            "loc w_t SB (8,8)",
            "loc w_t SB (8,10)",
            "NCC434 w_t: the location w_t is SB (8, 10), and the set's shape asks for SB (8, 8)",
        ),
        (
            "loc w_t SB (8,8)",
            "loc w_t SB (8,8)\n      loc w_u SB (8,8)",
            "NCC434 w_t: has 2 locations, and its shape (8, 4) asks for 1",
        ),
        (
            "kind=ExternalOutput",
            "kind=ExternalOutputs",
            "NCC434 out: no kind is called ExternalOutputs",
        ),
        (
            "loc acc PSUM (4,24)",
            "loc acc PSUM (4,24) addr=4096 bank=1 allocated=true",
            "NCC405 acc: acc names bank 1, and its address 4096 lies in bank 2",
        ),
        (
            "loc x_t SB (8,12)",
            "loc x_t SB (8,12) addr=33 allocated=true",
            "NCC429 x_t: x_t lies at byte 33, no multiple of the 2 bytes of bfloat16",
        ),
    ],
)
def test_a_broken_program_is_named(right, wrong, said):
    assert complaint(but((right, wrong))).startswith(said)


def test_what_is_legal_beside_it():
    """The neighbours of the faults above."""
    accepted(but(("TensorCopy DVE", "TensorCopy DVE|Activation")))
    accepted(but((MATMULT, MATMULT + " accumulation_flag=6")))
    accepted(but((MATMULT, MATMULT + " tile_position=(32,64) tile_size=(32,64)")))
    accepted(but(("i5 = Exit ALL", "i5 = Exit SP\n      i6 = Exit PE")))
    accepted(but(("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[6,4],[-1,6]]+5")))
    relu = COPY.replace("TensorCopy DVE", "Activation Activation")
    accepted(but((COPY, relu + " out_t:float32[[6,4],[1,1]] func=Relu")))


def test_products_larger_than_the_array():
    wide = but(
        ("set x_t bfloat16 (8,6)", "set x_t bfloat16 (8,514)"),
        ("loc x_t SB (8,12)", "loc x_t SB (8,1028)"),
        ("set acc float32 (4,6)", "set acc float32 (4,514)"),
        ("loc acc PSUM (4,24)", "loc acc PSUM (4,2056)"),
        (
            "x_t:bfloat16[[6,8],[1,6]] <- x:bfloat16[[6,8],[1,6]]",
            "x_t:bfloat16[[514,8],[1,6]] <- x:bfloat16[[6,8],[1,6]]",
        ),
        ("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[514,4],[1,6]]"),
        (
            MATMULT,
            "i2 = Matmult PE acc:float32[[514,4],[1,514]] <- x_t:bfloat16[[514,8],[1,514]] w_t:bfloat16[[4,8],[1,4]]",
        ),
    )
    assert complaint(wide) == "NCC416 i2: has K=8, M=4, N=514; the most are 128, 128 and 512"
    across = but(
        ("set acc float32 (4,6)", "set acc float32 (4,514)"),
        ("loc acc PSUM (4,24)", "loc acc PSUM (4,2056)"),
        ("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[514,4],[1,6]]"),
        ("PE acc:float32[[6,4],[1,6]]", "PE acc:float32[[514,4],[1,6]]+508"),
    )
    assert (
        complaint(across) == "NCC437 i2: writes banks 0 to 1 of PSUM; one product lies in one bank"
    )
    placed = but(
        ("loc acc PSUM (4,24)", "loc acc PSUM (4,24) addr=2040 allocated=true"),
    )
    assert complaint(placed).startswith("NCC437 i2: writes banks 0 to 1 of PSUM")


def test_immediates():
    relu = but(
        (COPY, COPY.replace("TensorCopy DVE", "Activation Activation") + " 0.5:float32 func=Relu")
    )
    accepted(relu)
    assert complaint(attrs.evolve(relu, arch="sunda"), TRN1) == (
        "NCC428 i3: trn1 takes an immediate bias with Copy and Reciprocal, not Relu "
        "(give the bias as a column)"
    )
    (*insts, last) = relu.main.blocks[0].insts
    odd = attrs.evolve(insts[3], ins=(insts[3].ins[0], Imm(0.5, "float8e4")))
    bad = with_insts(relu, (*insts[:3], odd, *insts[4:], last))
    assert complaint(bad) == "NCC428 i3: an immediate cannot be float8e4"


@pytest.mark.parametrize(
    ("fact", "right", "wrong", "said"),
    [
        (
            "no-matmul-has-a-flag",
            MATMULT,
            MATMULT + " accumulation_flag=3",
            "NCC424 i2: has an accumulation_flag before mm-acc-flags sets them",
        ),
        (
            "every-instruction-has-one-engine",
            "TensorCopy DVE",
            "TensorCopy DVE|Activation",
            "NCC435 i3: may run on DVE|Activation; one must be chosen",
        ),
        (
            "no-abstract-copy-is-left",
            "i4 = Save DMA",
            "i4 = AbstractCopy DMA",
            "NCC425 i4: is still an AbstractCopy",
        ),
        (
            "patterns-are-physical",
            "<- acc:float32",
            "<- acc():float32",
            "NCC423 i3: TensorCopy still has an operand with loop variables",
        ),
        (
            "every-engine-is-named",
            "i1 = Load DMA",
            "i1 = Load Activation",
            "NCC607 i0: Load is on engine DMA, which has no stream",
        ),
    ],
)
def test_a_broken_fact_is_named(fact, right, wrong, said):
    module = but((right, wrong))
    accepted(module)
    assert complaint(module, facts=(fact,)) == said


def test_facts_of_loops_and_tiles():
    tiles = but(program=TILES)
    assert complaint(tiles, facts=("no-loop-is-left",)).startswith("NCC423 for.i: Loop still holds")
    assert complaint(tiles, facts=("operands-are-bound",)).startswith(
        "NCC423 load: AbstractCopy still"
    )


@pytest.mark.parametrize("program, index", [(TILES, "y[3*i+p,f"), (BOUND, "+9*i")])
def test_a_loop_variable_that_no_loop_around_has(program, index):
    before, at, after = program.rpartition(index)
    stray = before + at.replace("i", "j") + after
    assert complaint(parse(stray.split("\n", 1)[1])) == (
        "NCC404 store: reads the loop variable j, and no loop around it has that (there is i)"
    )


def test_a_law_is_asked_again_when_a_location_changes():
    """What was legal with one placement is not taken for granted with another."""
    module = but()
    verifier = Verifier()
    verifier.check(Stage("bir", TRN2, "input", (), module))
    smaller = but(("set x_t bfloat16 (8,6)", "set x_t bfloat16 (8,5)"), ("SB (8,12)", "SB (8,10)"))
    mixed = with_insts(module, module.main.blocks[0].insts, sets=smaller.main.sets)
    with pytest.raises(NccError, match="NCC408 after next, i1: Load walks x_t"):
        verifier.check(Stage("bir", TRN2, "next", (), mixed))


def test_programs_that_are_asked_about_in_turn_keep_what_is_known_of_them():
    """Two cores: what one of them was found to be is not worked out again after the other."""
    read = but()
    one = with_insts(read, read.main.blocks[0].insts)  # nobody has asked about this one
    other = but(("set x_t bfloat16 (8,6)", "set x_t bfloat16 (8,7)"), ("(8,12)", "(8,14)"))
    keys, known = placement_key(one), known_of(one, TRN2)
    assert placement_key(other) is not keys and known_of(other, TRN2) is not known
    assert placement_key(one) is keys and known_of(one, TRN2) is known
    moved = with_insts(one, one.main.blocks[0].insts[:1])
    assert placement_key(moved) is keys and known_of(moved, TRN2) is known


def test_a_node_is_asked_once_as_long_as_it_stays():
    """Another instruction in the program is asked about, those that passed are not."""
    asked: list[str] = []

    def law(node, module, target):
        asked.append(node.name)
        return iter(())

    stages = level("bir")
    module = but()
    insts = module.main.blocks[0].insts
    verifier, laws = Verifier(), (Law("seen", law, node=True),)

    class Only:
        def get(self, part):
            return {"laws": laws, "facts": ()}.get(part) or stages.get(part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ncc.verify.level", lambda name: Only())
        verifier.check(Stage("bir", TRN2, "input", (), module))
        count = len(asked)
        again = attrs.evolve(insts[1], name="again")
        changed = with_insts(module, (insts[0], again, *insts[2:]))
        verifier.check(Stage("bir", TRN2, "next", (), changed))
    assert count == len(module.main.sets) + len(insts) and asked[count:] == ["again"]


# ---- the table of opcodes -----------------------------------------------------------------------


def test_the_table_has_every_opcode_once():
    assert [row.number for row in OPCODES.values()] == list(range(110))
    assert sum(row.abstract for row in OPCODES.values()) == 6
    assert len(ALU_OPS) == 33 and len(FUNCTIONS) == 31
    for row in OPCODES.values():
        assert isinstance(row, Row)
        assert row.least <= len(row.ins)
        assert all(set(word) <= set("SPDIR") for word in (*row.ins, *row.outs))


def test_keys_keep_what_differs_from_the_default():
    keys = keyed("Matmult", accumulate=True, perf_mode="None", tile_size=(32, 32))
    assert keys == (("accumulate", True), ("tile_size", (32, 32)))
    assert keyed("Matmult", keys, accumulate=False) == (("tile_size", (32, 32)),)
    inst = but().main.blocks[0].insts[2]
    assert key(inst, "accumulation_flag") == 0
    with pytest.raises(KeyError):
        key(inst, "func")
