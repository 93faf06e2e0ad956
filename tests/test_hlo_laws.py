"""What is refused about an HLO module, each with its whole sentence."""

from __future__ import annotations

import pytest

from ncc.errors import NccError
from ncc.front.hlo import parse
from ncc.ir.hlo_laws import FACTS, LAWS, input_names, is_whole, signature
from ncc.passes import load
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
HEAD = "HloModule t\n\n"
DOT = """ENTRY %main {
  %a = f32[4,8]{1,0} parameter(0)
  %b = f32[8,3]{1,0} parameter(1)
  ROOT %c = f32[4,3]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def complaints(module, laws=LAWS):
    found = []
    for law in laws:
        for node in module.computations if law.node else (module,):
            found += law.check(node, module, TRN2) if law.node else law.check(node, TRN2)
    return [str(x) for x in found]


def first(text, laws=LAWS):
    return (complaints(parse(HEAD + text, "x.hlo"), laws) or [""])[0]


def one(*lines):
    """The entry with four parameters, then `lines`."""
    given = ["a = f32[4,8] parameter(0)", "b = f32[8,3] parameter(1)"]
    given += ["z = f32[] parameter(2)", "p = pred[4,8] parameter(3)"]
    return "ENTRY main {\n  " + "\n  ".join([*given, *lines]) + "\n}\n"


def test_a_good_program_has_no_complaint():
    assert first(DOT) == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("dot(%a, %b)", "dot(%a, %bb)", "NCC106 x.hlo:6:8, c: reads bb, which no line makes (did you mean b?)"),
        ("dot(%a, %b)", "dot(%a, %c)", "NCC106 x.hlo:6:8, c: reads c, which is made below it"),
        ("%b = f32[8,3]{1,0} parameter(1)", "%a = f32[8,3]{1,0} parameter(1)", "NCC106 x.hlo:5:3, a: a is made a second time"),
        ("parameter(1)", "parameter(2)", "NCC107 x.hlo:5:3, b: the parameters must count from 0, parameter(1) is not there"),
        ("parameter(1)", "parameter(0)", "NCC107 x.hlo:5:3, b: parameter(0) stands twice"),
        ("%a = f32[4,8]{1,0}", "%a = f32[4,8]{1,1}", "NCC109 x.hlo:4:3, a: the layout {1,1} is no order of 2 dimensions"),
        ("%a = f32[4,8]{1,0}", "%a = f32[4,8]{0}", "NCC109 x.hlo:4:3, a: the layout {0} is no order of 2 dimensions"),
        ("f32[8,3]", "f32[7,3]", "NCC110 x.hlo:6:8, c: dot contracts 8 with 7: dimension 1 of f32[4,8] and 0 of f32[7,3]"),
        ("f32[4,3]", "f32[3,4]", "NCC108 x.hlo:6:8, c: dot gives f32[4,3], written as f32[3,4]"),
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={2}", "NCC108 x.hlo:6:8, c: dot names dimension 2 of lhs, which is f32[4,8]"),
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={1,1}", "NCC108 x.hlo:6:8, c: dot names a dimension of lhs twice: 1, 1"),
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={}", "NCC110 x.hlo:6:8, c: dot contracts 0 dimensions of lhs with 1 of rhs"),
        ("dot(%a, %b)", "dot(%a, %b), lhs_batch_dims={0}, rhs_batch_dims={1}", "NCC108 x.hlo:6:8, c: dot batches 4 with 3: dimension 0 of f32[4,8] and 1 of f32[8,3]"),
        ("dot(%a, %b)", "dot(%a)", "NCC108 x.hlo:6:8, c: dot takes 2 operands, was given 1"),
        ("dot(%a, %b)", "dot(%a, %b), control-predecessors={%q}", "NCC106 x.hlo:6:8, c: comes after q, which no line makes"),
    ],
)  # fmt: skip
def test_one_word_wrong_in_a_dot(old, new, said):
    assert old in DOT
    assert first(DOT.replace(old, new, 1)) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("r = f32[4,8] add(a, b)", "add takes operands of one shape, was given f32[4,8] and f32[8,3]"),
        ("r = bf16[4,8] add(a, a)", "add gives f32[4,8], written as bf16[4,8]"),
        ("r = f32[8,4] exponential(a)", "exponential gives f32[4,8], written as f32[8,4]"),
        ("r = bf16[8,4] convert(a)", "convert keeps the dimensions [4,8], written as [8,4]"),
        ("r = f32[4,8] compare(a, a), direction=LT", "compare gives pred[4,8], written as f32[4,8]"),
        ("r = f32[4,8] select(a, a, a)", "select chooses by pred[4,8], was given f32[4,8]"),
        ("r = f32[4,8] clamp(b, a, z)", "clamp takes bounds of f32[4,8], was given f32[8,3]"),
        ("r = f32[4,8,2] broadcast(a), dimensions={0}", "broadcast takes one dimension for each of f32[4,8], was given 1"),
        ("r = f32[2,4,9] broadcast(a), dimensions={1,2}", "broadcast puts dimension 1 of size 8 at 2, which has size 9"),
        ("r = f32[4,8] broadcast(a), dimensions={0,2}", "broadcast puts dimension 1 at 2, the result is f32[4,8]"),
        ("r = f32[33] reshape(a)", "reshape keeps every element of f32[4,8], written as f32[33]"),
        ("r = f32[8,4] transpose(a), dimensions={1,1}", "transpose takes a permutation of 2 dimensions, was given [1,1]"),
        ("r = f32[4,8] transpose(a), dimensions={1,0}", "transpose gives f32[8,4], written as f32[4,8]"),
        ("r = f32[4,11] concatenate(a, b), dimensions={1}", "concatenate joins along dimension 1, f32[8,3] does not fit f32[4,11]"),
        ("r = f32[4,15] concatenate(a, a), dimensions={1}", "concatenate gives f32[4,16], written as f32[4,15]"),
        ("r = s32[4] iota(), iota_dimension=1", "iota takes iota_dimension= within s32[4], was given 1"),
        ("r = (f32[4,8]) tuple(a, b)", "tuple gives (f32[4,8], f32[8,3]), written as (f32[4,8])"),
        ("r = f32[4,8] get-tuple-element(a), index=0", "get-tuple-element takes one tuple"),
        ("r = f32[4,7] reduce(a, z), dimensions={0}, to_apply=sum", "reduce gives f32[8], written as f32[4,7]"),
        ("r = f32[4,8] call(a, z), to_apply=id", "call passes 2 operands to id, which takes 1"),
        ("r = f32[8,3] call(b), to_apply=id", "call passes f32[8,3] to id, whose x is f32[4,8]"),
        ("r = f32[8,3] call(a), to_apply=id", "call gives f32[4,8], written as f32[8,3]"),
        ("r = f32[4,8] call(a)", "call names one computation with to_apply="),
        ("r = f32[4,8] fusion(a), kind=kLoop", "fusion names one computation with calls="),
        ("r = f32[4,8] negate(a, a)", "negate takes 1 operand, was given 2"),
    ],
)  # fmt: skip
def test_a_shape_that_does_not_fit(line, said):
    helpers = (
        "sum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
        "id {\n  ROOT x = f32[4,8] parameter(0)\n}\n"
    )
    text = helpers + one(f"ROOT {line}")
    number = text[: text.index("ROOT r")].count("\n") + 3
    assert first(text) == f"NCC108 x.hlo:{number}:8, r: {said}"


def test_an_element_of_a_tuple():
    lines = (
        "t = (f32[4,8], f32[]) tuple(a, z)",
        "ROOT r = f32[] get-tuple-element(t), index=INDEX",
    )
    text = one(*lines)
    assert first(text.replace("INDEX", "1")) == ""
    assert first(text.replace("INDEX", "0")).endswith(
        "r: get-tuple-element gives f32[4,8], written as f32[]"
    )
    assert first(text.replace("INDEX", "2")).endswith(
        "r: get-tuple-element takes index= below 2, was given 2"
    )
    assert first(one("t = (f32[4,8]) tuple(a)", "ROOT r = f32[4,8] negate(t)")).endswith(
        "r: negate works on arrays, was given a tuple"
    )


def test_an_opcode_without_a_row_is_not_checked():
    assert first(one("ROOT r = f32[99] never-heard-of(a, b, z), anything={1}")) == ""


def test_calls_resolve():
    text = one("ROOT r = f32[4,8] call(a), to_apply=relu")
    assert first(text) == "NCC117 x.hlo:8:8, r: calls relu, which is not there"
    loop = "f {\n  x = f32[4,8] parameter(0)\n  ROOT y = f32[4,8] call(x), to_apply=f\n}\n" + text
    assert first(loop.replace("to_apply=relu", "to_apply=f")) == (
        "NCC117 x.hlo:3:1, f: f calls itself, directly or through others"
    )
    twice = "f {\n  ROOT x = f32[] parameter(0)\n}\n" * 2 + text
    assert first(twice) == "NCC107 x.hlo:6:1, f: the computation f stands twice"


def test_a_long_chain_of_calls_is_no_recursion():
    text = "f0 {\n  ROOT x = f32[] parameter(0)\n}\n"
    for i in range(1, 1500):
        text += (
            f"f{i} {{\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f{i - 1}\n}}\n"
        )
    text += "ENTRY m {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f1499\n}\n"
    assert first(text) == ""
    with pytest.raises(NccError) as fault:
        lowered(HEAD + text)
    assert str(fault.value).endswith("calls nest more than 200 deep")


def test_the_entry_layout_fits():
    text = (
        "HloModule t, entry_computation_layout={(f32[4,8]{1,0}, f32[8,3]{1,0})->f32[4,3]{1,0}}\n\n"
    )
    assert complaints(parse(text + DOT)) == []
    wrong = parse(text.replace("(f32[4,8]{1,0}, ", "(") + DOT, "x.hlo")
    assert complaints(wrong) == [
        "NCC107 x.hlo:3:7, main: entry_computation_layout has 1 parameters, the entry 2"
    ]
    wrong = parse(text.replace("f32[8,3]", "f32[8,4]") + DOT, "x.hlo")
    assert complaints(wrong) == [
        "NCC107 x.hlo:5:3, b: entry_computation_layout says f32[8,4], the entry f32[8,3]"
    ]
    wrong = parse(text.replace("->f32[4,3]", "->bf16[4,3]") + DOT, "x.hlo")
    assert complaints(wrong) == [
        "NCC107 x.hlo:6:8, c: entry_computation_layout returns bf16[4,3], the entry f32[4,3]"
    ]


# ----------------------------------------------------------------------------------------- facts


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ("{size=1x2 stride=1x2 pad=0_0x1_1}", ""),
        ("{size=1x2 pad=0_0x0_2}", "the window of reduce-window is padded by 2, its size is 2"),
        ("{size=1x2 rhs_dilate=1x2}", "the window of reduce-window is dilated, rhs_dilate=1x2"),
        ("{size=1x2 lhs_dilate=3x1}", "the window of reduce-window is dilated, lhs_dilate=3x1"),
    ],
)
def test_a_pooling_window_is_plain(window, said):
    line = f"ROOT r = f32[4,8] reduce-window(a, z), window={window}, to_apply=m"
    found = first(one(line), [law for law in FACTS if law.name == "windows_are_plain"])
    assert found == (f"NCC118 x.hlo:8:8, r: {said}" if said else "")


@pytest.mark.parametrize(
    ("sharding", "whole"),
    [
        ("{replicated}", True),
        ("{maximal device=0}", True),
        ("{manual}", False),
        ("{devices=[2,1]0,1}", False),
        ("{devices=[1,1,2]0,1 last_tile_dim_replicate}", True),
        ("{devices=[1,2,2]<=[4] last_tile_dim_replicate}", False),
        ("{{replicated}, {maximal device=1}}", True),
        ("{{replicated}, {devices=[2]0,1}}", False),
        ('{replicated metadata={op_name="x"}}', True),
        ("{unknown}", False),
    ],
)
def test_which_shardings_leave_a_value_whole(sharding, whole):
    assert is_whole(sharding) is whole


def sharded(on, sharding):
    text = DOT.replace(f"parameter({on})", f"parameter({on}), sharding={sharding}")
    with pytest.raises(NccError) as fault:
        load("hlo.check_sharding").apply(parse(HEAD + text, "x.hlo"), TRN2)
    return str(fault.value)


def test_a_sharded_value_is_refused_by_name():
    assert sharded(0, "{devices=[4,1]0,1,2,3}") == (
        "NCC112 x.hlo:4:3, a: parameter is sharded as {devices=[4,1]0,1,2,3}, ncc compiles for one "
        "device"
    )
    assert sharded(1, "{devices=[4,1]0,1,2,3}") == (
        "NCC112 x.hlo:5:3, b: parameter is sharded as {devices=[4,1]0,1,2,3}, ncc compiles for one "
        "device; c contracts dimension 0, which is cut over 4 devices: it would need an all-reduce"
    )


# ------------------------------------------------------------------------------------- signature


def test_the_signature_has_readable_names():
    text = """HloModule s

ENTRY %main {
  %Arg_0.1 = bf16[4,8]{1,0} parameter(0), metadata={op_name="lhs"}
  %Arg_1.2 = f32[8]{0} parameter(1), metadata={op_name="params['w']"}
  %x.4 = f8e4m3[2]{0} parameter(3), metadata={op_name="out0"}
  %x.3 = s32[] parameter(2), metadata={op_name="lambda"}
  %lhs.9 = f64[]{} parameter(4), metadata={op_name="lhs"}
  ROOT %r = (s32[], (bf16[4,8]{1,0}, f32[8]{0})) tuple(%x.3, %q)
}
"""
    module = parse(text)
    assert input_names(module) == ("lhs", "Arg_1", "lambda_", "x_4", "lhs_9")
    ins, outs = signature(module)
    assert ins == (
        ("lhs", "bfloat16", (4, 8)),
        ("Arg_1", "float32", (8,)),
        ("lambda_", "int32", ()),
        ("x_4", "float8e4", (2,)),
        ("lhs_9", "f64", ()),
    )
    assert outs == (
        ("out0", "int32", ()),
        ("out1", "bfloat16", (4, 8)),
        ("out2", "float32", (8,)),
    )


def test_one_output_is_called_out():
    ins, outs = signature(parse(HEAD + DOT))
    assert [name for name, _, _ in ins] == ["a", "b"]
    assert outs == (("out", "float32", (4, 3)),)


# --------------------------------------------------------------------------- what is not compiled


def lowered(text):
    module = parse(text, "x.hlo")
    for name in ("normalize_layouts", "assign_layouts", "descending_root"):
        module = load(f"hlo.{name}").apply(module, TRN2)
    return load("mhlo.hlo_to_mhlo").apply(module, TRN2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("r = f32[4,8] multiply(a, a)", "NCC114 x.hlo:8:8, r: multiply is not compiled; other opcodes come later"),
        ("r = f32[32] reshape(a)", "NCC114 x.hlo:8:8, r: reshape from f32[4,8] to f32[32] is not compiled; other opcodes come later"),
        ("r = f32[8,2,4] broadcast(a), dimensions={2,0}", "NCC114 x.hlo:8:8, r: broadcast that reorders dimensions of a computed value is not compiled"),
        ("r = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}, algorithm=dot_bf16_bf16_f32", "NCC114 x.hlo:8:8, r: dot with algorithm=dot_bf16_bf16_f32 is not compiled"),
        ("r = f64[4,8] convert(a)", "NCC116 x.hlo:8:8, r: f64 is not compiled; the machine computes with bf16, f16, f32, f8e4m3, f8e4m3fn and f8e5m2"),
        ("r = c64[] constant((1, 2))", "NCC116 x.hlo:8:8, r: c64 is not compiled; the machine computes with bf16, f16, f32, f8e4m3, f8e4m3fn and f8e5m2"),
        ("r = f32[<=4,8] copy(a)", "NCC119 x.hlo:8:8, r: f32[<=4,8] has a dynamic dimension; they come later"),
        ("r = (f32[]) constant((1))", "NCC119 x.hlo:8:8, r: a constant tuple is not compiled"),
        ("r = f32[3,4] dot(h, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "NCC116 x.hlo:9:8, r: dot of bf16 with f32: f32 is multiplied with f32 only (convert one of them first)"),
    ],
)  # fmt: skip
def test_what_is_not_compiled_is_refused_by_name(line, said):
    before = ["h = bf16[8,4] constant(1)"] if "dot(h" in line else []
    text = one(*before, f"ROOT {line}").replace("f32[3,4] dot", "f32[4,3] dot")
    text = text.replace("  p = pred[4,8] parameter(3)\n", "  p = f32[] parameter(3)\n")
    with pytest.raises(NccError) as fault:
        lowered(HEAD + text)
    assert str(fault.value) == said


def test_an_integer_product_is_refused_for_what_it_is():
    text = DOT.replace("f32", "s32")
    with pytest.raises(NccError) as fault:
        lowered(HEAD + text)
    assert str(fault.value) == (
        "NCC115 x.hlo:6:8, c: dot of s32: integer products are not exact on the tensor engine "
        "(convert the operands to f32 first)"
    )


def test_a_tuple_parameter_is_refused():
    text = "ENTRY m {\n  t = (f32[4], f32[]) parameter(0)\n  ROOT r = f32[4] get-tuple-element(t), index=0\n}\n"
    with pytest.raises(NccError) as fault:
        lowered(HEAD + text)
    assert str(fault.value) == (
        "NCC119 x.hlo:4:3, t: the entry's parameter is a tuple, (f32[4], f32[]) "
        "(pass its elements as parameters)"
    )


def test_a_program_that_returns_nothing_is_refused():
    text = "ENTRY m {\n  a = f32[4] parameter(0)\n  ROOT r = () tuple()\n}\n"
    with pytest.raises(NccError) as fault:
        lowered(HEAD + text)
    assert str(fault.value) == (
        "NCC119 x.hlo:5:8, r: the program returns an empty tuple: there is nothing to compute"
    )
