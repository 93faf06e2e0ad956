"""BIR as text: what prints reads back equal, and what is broken is named with its line."""

from __future__ import annotations

import pytest
from bir_programs import insts, modules
from hypothesis import given, settings

from ncc.errors import NccError
from ncc.ir.affine import Least, Mod, affine
from ncc.ir.bir import Ap, Block, Function, Imm, Inst, Module, Reg, SymAp, Tile, Update, Wait
from ncc.ir.bir_text import parse, show, show_inst, show_operand
from ncc.rules.bir import PROGRAM

TEXT = PROGRAM.split("\n", 1)[1]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(insts(0))
def test_every_instruction_reads_back(inst):
    module = Module("m", "gen3", (Function("f", (), (Block("b", (inst,)),)),))
    assert parse(show(module)) == module


@settings(max_examples=25, derandomize=True, deadline=None)
@given(modules())
def test_every_module_reads_back(module):
    text = show(module)
    read = parse(text)
    assert read == module
    assert show(read) == text


def test_origins_are_comments():
    text = TEXT.replace("i5 = Exit ALL", "i5 = Exit ALL  # dot.hlo:7")
    read = parse(text)
    assert read.main.blocks[0].insts[-1].origin.line == 7
    assert show(read) == text


@pytest.mark.parametrize(
    ("operand", "text"),
    [
        (Ap("t_0", "bfloat16", ((128, 64), (1, 128)), 64), "t_0:bfloat16[[128,64],[1,128]]+64"),
        (Ap("t", "int32", ((9, 4), (-1, 9)), 8), "t:int32[[9,4],[-1,9]]+8"),
        (
            SymAp(
                "t",
                (Mod(affine(1, {"k_o": 1}), 2),),
                "float32",
                ((5, Least(8, affine(20, {"m": -8}))), (1, 5)),
                affine(3, {"m": 40}),
            ),
            "t((k_o+1)%2):float32[[5,min(8,20-8*m)],[1,5]]+40*m+3",
        ),
        (
            Tile("t", (affine(0, {"p": 1}), affine(2, {"f": 1})), (("p", 4),), (("f", 3),)),
            "t[p,f+2|p:4|f:3]",
        ),
        (Tile("t", (affine(),), (), ()), "t[0||]"),
        (Imm(-0.5), "-0.5:float32"),
        (Imm(float("-inf")), "-inf:float32"),
        (Imm(3, "int32"), "3:int32"),
        (Reg("r0"), "%r0:int32"),
    ],
)
def test_operands_print_as_documented(operand, text):
    assert show_operand(operand) == text


def test_an_instruction_prints_in_one_order():
    inst = Inst(
        "mm.1",
        "Matmult",
        "PE",
        (Ap("x", "bfloat16", ((6, 8), (1, 6))), Ap("w", "bfloat16", ((4, 8), (1, 4)))),
        (Ap("p", "float32", ((6, 4), (1, 6))),),
        (("accumulation_flag", 4), ("weights_loaded", True)),
        (("mm.0", "Flow"), ("a", "Anti"), ("b", "Output"), ("c", "Ordered")),
        (Wait("qSP", 2), Wait("DVE", 1, 3, 1)),
        (Update("PE"), Update("PE", 0, 2)),
    )
    assert show_inst(inst) == (
        "mm.1 = Matmult PE p:float32[[6,4],[1,6]] <- x:bfloat16[[6,8],[1,6]] "
        "w:bfloat16[[4,8],[1,4]] accumulation_flag=4 weights_loaded=true "
        "after mm.0(F) a(A) b(O) c(X) wait qSP>=2 DVE>=1(3>=1) update PE+1 PE+2(0)"
    )


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("module dot", "modul dot", "a BIR program begins with `module NAME arch=...`"),
        ("module dot gen3", "module dot", "cannot read 'module dot', expected `module name arch`"),
        ("func sg0000", "funk sg0000", "cannot place 'funk sg0000' here"),
        ("(8,4) kind=", "(8,4) kinds=", "a set has no kinds= (did you mean kind?)"),
        ("bfloat16 (8,4) kind", "bflaot16 (8,4) kind", "no dtype is called bflaot16"),
        ("loc w DRAM (1,64)", "loc w DRAM (1,64,2)", "dims takes two numbers"),
        ("loc w DRAM (1,64)", "loc w DRAM 64", "dims is no tuple such as (4,128,256)"),
        ("i3 = TensorCopy", "i3 = TensorCpy", "no opcode is called TensorCpy (did you mean"),
        ("TensorCopy DVE", "TensorCopy DWE", "no engine is called DWE (did you mean DVE?)"),
        ("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[6,4]", "as an operand, such as t_0:"),
        ("<- acc:float32", "<- acc:flaot32", "no dtype is called flaot32"),
        ("i3 = TensorCopy", "i3 : TensorCopy", "expected `name = Opcode engine ...`"),
        ("i4 = Save", "  i4 = Save", "cannot place"),
        ("i4 = Save", " i4 = Save", "indented by an odd number of blanks"),
        ("[1,6]]\n      i5", "[1,6]] ops=add\n      i5", "Save has no key ops"),
        ("[1,6]]\n      i5", "[1,6]] after i3\n      i5", "as a dependence, such as i7(F)"),
        ("[1,6]]\n      i5", "[1,6]] wait PE\n      i5", "as a wait, such as qSP>=2"),
        ("[1,6]]\n      i5", "[1,6]] update PE\n      i5", "as an update, such as PE+1"),
        (
            "[1,6]]\n      i5",
            "[1,6]] update PE+1 after i3(F)\n      i5",
            "'after' stands in the wrong place",
        ),
    ],
)
def test_what_is_broken_is_named(right, wrong, said):
    assert right in TEXT
    with pytest.raises(NccError) as found:
        parse(TEXT.replace(right, wrong, 1), "dot.txt", 2)
    assert found.value.code == "NCC009"
    assert said in str(found.value)
    assert found.value.place.file == "dot.txt"
    line = found.value.place.line
    assert 2 <= line <= 25


@pytest.mark.parametrize("cut", range(0, len(TEXT), 37))
def test_a_cut_text_never_ends_in_a_traceback(cut):
    for text in (TEXT[:cut], TEXT[:cut] + "\x00[(", TEXT[cut:], TEXT[:cut] + '"' + TEXT[cut:]):
        try:
            parse(text)
        except NccError as said:
            assert said.code == "NCC009"
