"""HLO text: every form reads, prints, and reads back to an equal module."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from generate import program, programs
from hypothesis import given, settings

from ncc.errors import NccError
from ncc.front.hlo import parse
from ncc.ir.hlo import Called, EntryLayout, Literal
from ncc.ir.hlo_laws import LAWS
from ncc.ir.hlo_literal import array_of, read_literal, show_literal
from ncc.ir.hlo_text import read_array, show, show_shape
from ncc.target import TARGETS

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.hlo"))


def again(text):
    """The module of `text`, after a round trip that must change nothing."""
    module = parse(text, "t.hlo")
    shown = show(module)
    assert parse(shown) == module
    assert show(parse(shown)) == shown
    return module


def lawful(module):
    target = TARGETS["trn2"]
    for law in LAWS:
        for node in module.computations if law.node else (module,):
            found = law.check(node, module, target) if law.node else law.check(node, target)
            assert [str(x) for x in found] == []


def entry(*lines):
    return "\n".join(["HloModule t", "", "ENTRY %main {", *lines, "}", ""])


@settings(derandomize=True, max_examples=40, deadline=None)
@given(programs())
def test_generated_programs_read_back(text):
    lawful(again(text))


@pytest.mark.parametrize("seed", range(12))
def test_the_same_seed_gives_the_same_program(seed):
    assert program(seed) == program(seed)
    assert show(parse(program(seed))) == program(seed)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_print_as_they_are_written(path):
    text = path.read_text()
    if text.startswith("HloModule"):
        lawful(again(text))
        assert show(parse(text)) == text


# One instruction each, with the operands that it reads as parameters in front
CORPUS = [
    "%r = f32[4,8]{1,0} add(%a, %b)",
    "%r = f32[4,8]{1,0} add(f32[4,8]{1,0} %a, f32[4,8]{1,0} %b)",
    "%r = f32[4,8]{1,0} exponential(%a)",
    "%r = (f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%a, %b)",
    '%r = ((f32[4,8]{1,0}, ()), f32[]) custom-call(%a), custom_call_target="top"',
    "%r = bf16[4,8]{1,0:T(8,128)(2,1)S(1)} convert(%a)",
    "%r = f32[4,8]{1,0:T(8,128)E(32)} copy(%a)",
    "%r = f32[4,8]{0,1:T(2,128)(*,8)S(5)} copy(%a)",
    "%r = f32[4,8]{1,0:D(D,C)} copy(%a)",
    "%r = f32[4,8]{1,0:D(D,S)#(u32)*(u8)} copy(%a)",
    "%r = f32[<=4,8]{1,0} set-dimension-size(%a, %n), dimensions={0}",
    '%r = f32[?,8]{1,0} custom-call(%a), custom_call_target="x"',
    "%r = f32[8,4]{1,0} transpose(%a), dimensions={1,0}",
    "%r = f32[32]{0} reshape(%a)",
    "%r = f32[4,8,2]{2,1,0} broadcast(%a), dimensions={0,1}",
    "%r = f32[4]{0} reduce(%a, %z), dimensions={1}, to_apply=%sum",
    "%r = pred[4,8]{1,0} compare(%a, %b), direction=LT, type=TOTALORDER",
    "%r = f32[4,8]{1,0} select(%p, %a, %b)",
    "%r = f32[4,8]{1,0} clamp(%z, %a, %z)",
    "%r = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
    "operand_precision={highest,highest}",
    "%r = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
    "algorithm=dot_bf16_bf16_f32",
    "%r = f32[4,16]{1,0} concatenate(%a, %b), dimensions={1}",
    "%r = f32[2,6]{1,0} slice(%a), slice={[0:4:2], [2:8]}",
    "%r = f32[4,8]{1,0} reverse(%a), dimensions={0,1}",
    "%r = f32[5,7]{1,0} pad(%a, %z), padding=0_1x-2_1_0",
    "%r = s32[4,8]{1,0} iota(), iota_dimension=1",
    "%r = f32[4,8]{1,0} map(%a, %b), dimensions={0,1}, to_apply=%sum",
    "%r = f32[4,8]{1,0} reduce-window(%a, %z), window={size=1x2 stride=1x1 pad=0_0x0_1}, "
    "to_apply=%sum",
    "%r = f32[1,2,2,3]{3,2,1,0} convolution(%c, %k), window={size=2x2 pad=0_1x0_1 rhs_dilate=1x2}, "
    "dim_labels=b01f_01io->b01f, feature_group_count=1",
    "%r = f32[2,3]{1,0} gather(%a, %i), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}, indices_are_sorted=true",
    "%r = f32[4,8]{1,0} scatter(%a, %i, %u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%sum",
    "%r = f32[2,8]{1,0} dynamic-slice(%a, %n, %n), dynamic_slice_sizes={2,8}",
    "%r = f32[4,8]{1,0} dynamic-update-slice(%a, %u, %n, %n)",
    "%r = (f32[4,8]{1,0}, s32[4,8]{1,0}) sort(%a, %j), dimensions={1}, is_stable=true, "
    "to_apply=%less",
    "%r = f32[4,8]{1,0} all-reduce(%a), channel_id=1, replica_groups={{0,1},{2,3}}, "
    "use_global_device_ids=true, to_apply=%sum",
    "%r = f32[4,8]{1,0} all-reduce(%a), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%sum",
    "%r = f32[8,8]{1,0} all-gather(%a), channel_id=3, replica_groups=[1,2]<=[2], dimensions={0}",
    "%r = f32[4,8]{1,0} collective-permute(%a), source_target_pairs={{0,1},{1,0}}",
    "%r = f32[4,8]{1,0} while(%a), condition=%less, body=%loop",
    "%r = f32[4,8]{1,0} conditional(%n, %a, %b), branch_computations={%loop, %loop2}",
    "%r = f32[4,8]{1,0} conditional(%q, %a, %b), true_computation=%loop, false_computation=%loop2",
    "%r = f32[4,8]{1,0} call(%a), to_apply=%loop",
    "%r = f32[4,8]{1,0} fusion(%a), kind=kLoop, calls=%loop",
    "%r = f32[4,8]{1,0} fusion(%a), kind=kOutput, output_to_operand_aliasing={{}: (0, {})}, "
    "calls=%loop",
    '%r = f32[4,8]{1,0} custom-call(%a), custom_call_target="a \\"b\\" }", '
    "operand_layout_constraints={f32[4,8]{1,0}}, api_version=API_VERSION_STATUS_RETURNING, "
    'custom_call_has_side_effect=true, backend_config="{\\"x\\": 1}"',
    '%r = f32[4,8]{1,0} custom-call(%a), custom_call_target="x", '
    'backend_config={"kind":"}","deep":{"list":[1,2,{"y":null}]},"n":-1.5}',
    '%r = f32[4,8]{1,0} add(%a, %b), metadata={op_type="add" op_name="jit(f)/a{b}" '
    'source_file="/x y/z.py" source_line=3 source_end_line=4 stack_frame_id=2}',
    "%r = f32[4,8]{1,0} add(%a, %b), sharding={devices=[2,1]0,1}",
    "%r = f32[4,8]{1,0} add(%a, %b), sharding={devices=[2,1,2]<=[2,2]T(1,0) "
    "last_tile_dim_replicate}",
    "%r = (f32[4,8]{1,0}) tuple(%a), sharding={{maximal device=3}}",
    '%r = f32[4,8]{1,0} add(%a, %b), frontend_attributes={_xla="true",tag="{}"}',
    "%r = f32[4,8]{1,0} add(%a, %b), control-predecessors={%a, %n}",
    "%r = f32[4,8]{1,0} add(%a, %b), statistics={visualizing_index=1,stat-1=33,stat-2=44}",
    "%r = f32[4,8]{1,0} never-heard-of(%a, %b), who={knows=[1] {2}}, what=x:y@2/z",
    "%r = token[] after-all()",
    '%r = (f32[4,8]{1,0}, token[]) infeed(%t), infeed_config="\\001"',
    "%r = u32[4]{0} rng-bit-generator(%a), algorithm=rng_threefry",
    '%r = f32[4,8]{1,0} domain(%a), domain={kind="sharding", entry={replicated}, '
    "exit={maximal device=1}}",
    "%r = f32[4,8]{1,0} get-tuple-element(%v), index=0",
    "%r = f32[4,8]{1,0} reduce-precision(%a), exponent_bits=5, mantissa_bits=10",
    "%r = c64[4,5]{1,0} fft(%a), fft_type=RFFT, fft_length={8}",
    "%r = f32[4,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
    "sparsity=L.1@2:4",
    "%r = ((f32[4,8]{1,0}), f32[4,8]{1,0}, s32[]) async-start(%a), calls=%loop",
    '%r = s4[8]{0:E(4)} custom-call(%a), custom_call_target="x"',
]
PARAMS = """  %a = f32[4,8]{1,0} parameter(0)
  %b = f32[4,8]{1,0} parameter(1)
  %n = s32[] parameter(2)
  %z = f32[] parameter(3)
  %p = pred[4,8]{1,0} parameter(4)
  %q = pred[] parameter(5)
  %i = s32[2,1]{1,0} parameter(6)
  %u = f32[2,8]{1,0} parameter(7)
  %v = (f32[4,8]{1,0}, s32[]) parameter(8)
  %c = f32[1,2,2,3]{3,2,1,0} parameter(9)
  %k = f32[2,2,3,3]{3,2,1,0} parameter(10)
  %j = s32[4,8]{1,0} parameter(11)
  %t = token[] parameter(12)
"""
HELPERS = """%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%less (l: f32[4,8]) -> pred[] {
  %l = f32[4,8]{1,0} parameter(0)
  ROOT %yes = pred[] constant(true)
}

%loop (m: f32[4,8]) -> f32[4,8] {
  ROOT %m = f32[4,8]{1,0} parameter(0)
}

%loop2 (m: f32[4,8]) -> f32[4,8] {
  ROOT %m = f32[4,8]{1,0} parameter(0)
}
"""


@pytest.mark.parametrize("line", CORPUS, ids=lambda s: s.split("(%")[0].split()[-1][:24])
def test_the_corpus_reads_back(line):
    text = f"HloModule c\n\n{HELPERS}\nENTRY %main {{\n{PARAMS}  ROOT {line}\n}}\n"
    module = again(text)
    assert (
        f"  ROOT {line}\n" in show(module).replace("/*index=5*/", "") or "f32[4,8]{1,0} %a" in line
    )
    if "sparsity" not in line and "sort(" not in line:
        lawful(module)


def test_the_corpus_is_kept_line_by_line():
    """Operand shapes go, everything else stands as it was written."""
    line = CORPUS[1]
    text = f"HloModule c\n\nENTRY %main {{\n{PARAMS}  ROOT {line}\n}}\n"
    assert "ROOT %r = f32[4,8]{1,0} add(%a, %b)\n" in show(parse(text))


def test_names_need_no_percent():
    plain = """HloModule jit_f, entry_computation_layout={(f32[3]{0})->f32[3]{0}}

    relu.1 {
      x.2 = f32[3]{0} parameter(0)
      ROOT y.3 = f32[3]{0} maximum(x.2, x.2), control-predecessors={x.2}
    }

    ENTRY main.4 {
      Arg_0.5 = f32[3]{0} parameter(0), sharding={replicated}
      ROOT call.6 = f32[3]{0} call(Arg_0.5), to_apply=relu.1
    }
    """
    module = again(plain)
    assert module.entry == "main.4"
    assert module.main().returned().get("to_apply") == Called(("relu.1",))
    text = show(module)
    assert "%call.6 = f32[3]{0} call(%Arg_0.5), to_apply=%relu.1" in text
    assert "control-predecessors={%x.2}" in text
    lawful(module)


def test_comments_blanks_and_line_ends_mean_nothing():
    text = entry(
        "  // the first",
        "  %a = (f32[1]{0}, f32[2]{0}, f32[3]{0}, f32[4]{0}, f32[5]{0}, /*index=5*/f32[6]{0})",
        '       parameter ( 0 ) , metadata={op_name="a"',
        "         source_line=3}  /* over",
        "  two lines */",
        "  ROOT %r = f32[6]{0} get-tuple-element(/*index=0*/ %a),index=5",
    ).replace("\n", "\r\n")
    module = again(text)
    first, second = module.main().instructions
    assert first.get("metadata") == '{op_name="a" source_line=3}'
    assert "/*index=5*/f32[6]{0})" in show(module)
    assert (second.name, second.get("index")) == ("r", "5")


def test_every_node_knows_its_line():
    module = parse(
        "\n\n" + entry("  %a = f32[] parameter(0)", "    ROOT %b = f32[] copy(%a)"), "d/x.hlo", 10
    )
    (main,) = module.computations
    assert [(x.origin.file, x.origin.line, x.origin.column) for x in main.instructions] == [
        ("x.hlo", 15, 3),
        ("x.hlo", 16, 10),
    ]
    assert (main.origin.line, main.origin.column) == (14, 7)


def test_module_attributes_and_tables():
    text = (
        "HloModule m.1, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (2, {}) }, "
        "entry_computation_layout={(f32[4]{0}, /*index=1*/(s32[], f32[2,3]{0,1}))->(f32[4]{0})}, "
        'replica_count=2, frontend_attributes={a="b"}\n\n'
        'FileNames\n1 "a b.py"\n2 "c.py"\n\nFunctionNames\n1 "f"\n\n'
        "FileLocations\n1 {file_name_id=1 function_name_id=1 line=3}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n"
        "ENTRY %main {\n  %a = f32[4]{0} parameter(0)\n  %b = (s32[], f32[2,3]{0,1}) parameter(1)\n"
        '  ROOT %r = (f32[4]{0}) tuple(%a)\n}, execution_thread="main"\n'
    )
    module = again(text)
    lawful(module)
    layout = module.layout()
    assert isinstance(layout, EntryLayout) and len(layout.params) == 2
    assert [s.title for s in module.sections] == [
        "FileNames",
        "FunctionNames",
        "FileLocations",
        "StackFrames",
    ]
    assert module.sections[0].rows == ((1, '"a b.py"'), (2, '"c.py"'))
    assert show(module).endswith('}, execution_thread="main"\n')


def test_the_last_line_is_the_root_when_none_is_marked():
    module = again(entry("  %a = f32[] parameter(0)", "  %b = f32[] copy(%a)"))
    assert module.main().root == "b"


@pytest.mark.parametrize(
    "text",
    [
        "f32[]",
        "bf16[128,512]{1,0}",
        "s4[3]{0:E(4)}",
        "f32[<=4,8]{1,0}",
        "f32[?,?]",
        "pred[0]{0}",
        "u8[2,3,4]{2,0,1:T(2,128)(4,1)S(3)}",
        "c128[7]{0}",
        "f8e4m3b11fnuz[1]{0}",
        "token[]",
    ],
)
def test_shapes_print_as_written(text):
    assert show_shape(read_array(text)) == text


# ---------------------------------------------------------------------------------------- literals


def literal(shape, text):
    made = read_literal(text, read_array(shape))
    assert isinstance(made, Literal)
    assert read_literal(show_literal(made), read_array(shape)) == made
    return made


def bits(made, width):
    return np.frombuffer(made.raw, f"u{width}").tolist()


def test_floats_that_others_lose():
    made = literal("f32[6]", "{inf, -inf, nan, -0.0, 1e-45, 3.4028235e+38}")
    assert bits(made, 4) == [0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 1, 0x7F7FFFFF]
    assert show_literal(made) == "{inf, -inf, nan, -0.0, 1e-45, 3.4028235e+38}"
    assert bits(literal("f32[2]", "{-0, 0}"), 4) == [0x80000000, 0]


def test_a_nan_keeps_its_bits():
    assert bits(literal("f32[]", "nan(0x400123)"), 4) == [0x7FC00123]
    assert show_literal(literal("f32[]", "nan(0x400123)")) == "nan(0x400123)"
    assert bits(literal("f32[]", "-nan(0x1)"), 4) == [0xFF800001]
    assert bits(literal("bf16[2]", "{-nan, nan(0x41)}"), 2) == [0xFFC0, 0x7FC1]
    assert bits(literal("f16[]", "nan"), 2) == [0x7E00]
    assert bits(literal("f64[]", "nan(0x8000000000001)"), 8) == [0x7FF8000000000001]
    assert bits(literal("f8e4m3fn[2]", "{nan, -nan}"), 1) == [0x7F, 0xFF]
    assert bits(literal("f8e4m3[2]", "{nan, -inf}"), 1) == [0x7C, 0xF8]
    assert bits(literal("f8e5m2[2]", "{nan(0x3), inf}"), 1) == [0x7F, 0x7C]


def test_narrow_floats_are_rounded_once():
    made = literal("bf16[3]", "{1.00390625, -inf, 3.3895e38}")
    assert bits(made, 2) == [0x3F80, 0xFF80, 0x7F7F]
    # a float32 in between would round 1 + 2^-8 + 2^-40 down to the tie, and the tie to even
    assert bits(literal("bf16[]", repr(1 + 2**-8 + 2**-40)), 2) == [0x3F81]
    assert bits(literal("f8e4m3fn[4]", "{448, 0.0625, -0.0, 1.0625}"), 1) == [
        0x7E,
        0x18,
        0x80,
        0x38,
    ]


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e4m3fn", "f8e5m2", "f8e3m4", "bf16", "f16"])
def test_every_bit_pattern_survives(dtype):
    width = 1 if dtype.startswith("f8") else 2
    count = 256**width
    raw = np.arange(count, dtype=f"u{width}").tobytes()
    made = Literal(dtype, (count,), raw)
    assert read_literal(show_literal(made), read_array(f"{dtype}[{count}]")) == made


def test_random_float32_and_float64_survive():
    rng = np.random.default_rng(0)
    for dtype, width in (("f32", 4), ("f64", 8), ("c64", 8), ("c128", 16)):
        made = Literal(dtype, (500,), rng.bytes(500 * width))
        assert read_literal(show_literal(made), read_array(f"{dtype}[500]")) == made


def test_hex_floats():
    assert array_of(literal("f32[3]", "{0x1.8p3, -0x1p-149, 0x1.fffffep127}")).tolist() == [
        12.0,
        -(2.0**-149),
        float(np.finfo(np.float32).max),
    ]


def test_truth_and_whole_numbers():
    assert array_of(literal("pred[4]", "{true, false, 1, 0}")).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert show_literal(literal("pred[2]", "{1, 0}")) == "{true, false}"
    wide = literal("u64[2]", "{18446744073709551615, 4294967296}")
    assert bits(wide, 8) == [2**64 - 1, 2**32]
    assert show_literal(literal("s64[]", "-9223372036854775808")) == "-9223372036854775808"
    assert array_of(literal("s4[3]", "{-8, 7, 0x3}")).astype(int).tolist() == [-8, 7, 3]
    assert bits(literal("u64[]", "5000000000"), 8) == [5000000000]


def test_nesting_splat_and_nothing():
    made = literal("s32[2,3]", "{ { 1, 2, 3 }, {4,5,6} }")
    assert array_of(made).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert show_literal(made) == "{ {1, 2, 3}, {4, 5, 6} }"
    assert literal("s32[2,3]", "{ /*i0=0*/ {1, 2, 3}, /*i0=1*/ {4, 5, 6} }") == made
    assert array_of(literal("f32[2,2]", "7")).tolist() == [[7, 7], [7, 7]]
    assert literal("f32[0]", "{}").raw == b""
    assert literal("f32[2,0]", "{ {}, {} }") == literal("f32[2,0]", "{}")
    assert array_of(literal("f32[1,1,1]", "{ { {5} } }")).tolist() == [[[5]]]
    assert literal("s32[2,2]", "s32[2,2] { { 1, 2 }, { 3, 4 } }") == literal(
        "s32[2,2]", "{{1,2},{3,4}}"
    )


def test_complex_numbers_and_tuples():
    made = literal("c64[2]", "{(1, -2), (nan, inf)}")
    assert bits(made, 4) == [0x3F800000, 0xC0000000, 0x7FC00000, 0x7F800000]
    assert literal("c64[]", "(nan(0x400001), -0.0)").raw.hex() == "0100c07f00000080"
    text = entry("  ROOT %k = (s32[], f32[2]{0}, (pred[])) constant((7, {1, -0.0}, (true)))")
    assert "constant((7, {1, -0.0}, (true)))" in show(again(text))


def test_a_large_literal_is_read():
    words = ", ".join(["1.5"] * 200_000)
    made = read_literal(f"{{{words}}}", read_array("f32[200000]"))
    assert isinstance(made, Literal) and len(made.raw) == 800_000


@pytest.mark.parametrize(
    ("shape", "text", "said"),
    [
        ("f32[4]", "{...}", "this dump left the values out; dump with large constants"),
        (
            "f32[2,2]",
            "{ {...}, {1, 2} }",
            "this dump left the values out; dump with large constants",
        ),
        ("f32[3]", "{1, 2}", "dimension 0 has 3 elements, was given 2"),
        ("f32[2,3]", "{ {1, 2, 3}, {4, 5} }", "dimension 1 has 3 elements, was given 2"),
        ("f32[2,3]", "{ {1, 2, 3} }", "dimension 0 has 2 elements, was given 1"),
        ("f32[2]", "{ {1, 2} }", "braces nest 2 deep, the shape is [2]"),
        ("f32[2,2]", "{1, 2}", "values stand 1 braces deep, the shape is [2,2]"),
        ("f32[0]", "{1}", "a literal of [0] has no values, was given some"),
        ("f32[2]", "{1, 2", "a { has no }"),
        ("f32[2]", "{1, , 2}", "a value is missing between two commas"),
        ("f32[]", "1, 2", "a literal without braces is one value, was given 2"),
        ("f32[]", "one", "cannot read 'one' as f32, expected a number"),
        ("f32[]", "1e39", "1e39 does not fit f32"),
        ("f16[]", "65520", "65520 does not fit f16"),
        ("f8e4m3fn[]", "1000", "1000 does not fit f8e4m3fn"),
        ("f8e4m3fn[]", "inf", "inf does not fit f8e4m3fn"),
        (
            "f32[]",
            "nan(0x7ff8000000000000)",
            "nan(0x7ff8000000000000) does not fit f32, whose mantissa has 23 bits",
        ),
        (
            "s32[]",
            "2147483648",
            "2147483648 does not fit s32, which holds -2147483648 to 2147483647",
        ),
        ("u8[]", "-1", "-1 does not fit u8, which holds 0 to 255"),
        (
            "u64[]",
            "18446744073709551616",
            "18446744073709551616 does not fit u64, which holds 0 to 18446744073709551615",
        ),
        ("s32[]", "1.5", "cannot read '1.5' as s32, expected a whole number"),
        ("pred[]", "2", "cannot read '2' as pred, expected true or false"),
        ("c64[]", "(1)", "cannot read (1) as a complex value `(re, im)`"),
        ("token[]", "0", "token has no literal"),
        ("f32[<=2]", "{1, 2}", "a literal has no dynamic dimension"),
    ],
)
def test_a_literal_that_does_not_fit_is_refused(shape, text, said):
    with pytest.raises(ValueError) as fault:
        read_literal(text, read_array(shape))
    assert str(fault.value) == said


# ------------------------------------------------------------------------------------------- slips

GOOD = entry("  %a = f32[4]{0} parameter(0)", "  ROOT %b = f32[4]{0} add(%a, %a)")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("add(%a, %a)", "add(%a, %a", "NCC101 x.hlo:6:1: found `}`, expected `)` or `,`"),
        ("add(%a, %a)", "add %a", "NCC101 x.hlo:5:27: found `%a`, expected `(`"),
        ("= f32[4]{0} add", "f32[4]{0} add", "NCC101 x.hlo:5:11: found `f32[4]{0}`, expected `=`"),
        (
            "f32[4]{0} add",
            "add",
            "NCC101 x.hlo:5:13: found `add(%a, %a)`, expected a shape such as `f32[2,3]{1,0}` or `(`",
        ),
        (
            "f32[4]{0} add",
            "f32[4,x]{0} add",
            "NCC101 x.hlo:5:13: cannot read 'x' as a dimension of f32[4,x]{0}",
        ),
        (
            "f32[4]{0} add",
            "f32[4]{0:Q} add",
            "NCC101 x.hlo:5:13: cannot read 'Q' in the layout {0:Q}",
        ),
        (
            "f32[4]{0} add",
            "f33[4]{0} add",
            "NCC105 x.hlo:5:13: HLO has no element type f33 (did you mean f32?)",
        ),
        (
            "add(%a, %a)",
            "add(%a, %a), dimensions=",
            "NCC101 x.hlo:6:1: found `}`, expected a value",
        ),
        (
            "add(%a, %a)",
            "add(%a, %a) dimensions={}",
            "NCC101 x.hlo:5:46: found `{}`, expected a shape such as `f32[2,3]{1,0}` or `(`",
        ),
        ("add(%a, %a)", "add(%a, %a), x={{1", "NCC101 x.hlo:5:38: this { is not closed"),
        ("add(%a, %a)", 'add(%a, %a), x="1', "NCC101 x.hlo:5:38: this quote is not closed"),
        (
            "add(%a, %a)",
            "add(%a, %a), x=1, x=2",
            "NCC101 x.hlo:5:41: the attribute x stands twice",
        ),
        (
            "parameter(0)",
            "parameter()",
            "NCC101 x.hlo:4:18, a: a parameter has its number in parentheses, as in `parameter(0)`",
        ),
        (
            "add(%a, %a)",
            "constant({...})",
            "NCC103 x.hlo:5:23, b: this dump left the values out; dump with large constants",
        ),
        (
            "add(%a, %a)",
            "constant({1, 2})",
            "NCC104 x.hlo:5:23, b: dimension 0 has 4 elements, was given 2",
        ),
        (
            "\n}\n",
            "\n",
            "NCC101 x.hlo:5: the text ends where `ROOT`, a name, `}` or `,` must stand",
        ),
        ("  %a", "  ROOT %a", "NCC107 x.hlo:5:3: main has two ROOTs, a and b"),
        (
            "ENTRY %main",
            "%main (a: f32[5]) -> f32[4]",
            "NCC107 x.hlo:3:8, a: the header says f32[5], the parameter is f32[4]",
        ),
        (
            "ENTRY %main",
            "%main () -> f32[4]",
            "NCC107 x.hlo:3:1, main: the header has 0 parameters, the body 1",
        ),
        (
            "ENTRY %main",
            "%main (a: f32[4]) -> f32[5]",
            "NCC107 x.hlo:3:1, main: the header says that it returns f32[5], its root is f32[4]",
        ),
        (
            "add(%a, %a)",
            "add(f32[5]{0} %a, %a)",
            "NCC108 x.hlo:5:37, b: reads a as f32[5], which is f32[4]",
        ),
        (
            "HloModule t",
            "HloModule t, entry_computation_layout={f32[4]}",
            "NCC101 x.hlo:1:39: the layout of the entry has the form {(shape, ...)->shape}",
        ),
        (
            "HloModule t",
            "module @t {",
            "NCC102 x.hlo:1: this is not HLO text: it begins with `module`, expected `HloModule NAME` (this looks like StableHLO; in JAX, `lowered.as_text(dialect='hlo')` gives HLO text)",
        ),
    ],
)
def test_a_slip_is_one_sentence_with_its_place(old, new, said):
    assert old in GOOD
    with pytest.raises(NccError) as fault:
        parse(GOOD.replace(old, new, 1), "dir/x.hlo")
    assert str(fault.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "NCC102 x: the text is empty, expected `HloModule NAME`"),
        ("\n // only\n", "NCC102 x: the text is empty, expected `HloModule NAME`"),
        ("\x7fELF\0\0", "NCC102 x:1: this is not text, expected `HloModule NAME`"),
        (
            "\nhello world",
            "NCC102 x:2: this is not HLO text: it begins with `hello`, expected `HloModule NAME`",
        ),
        ("HloModule t", "NCC107 x:1:11, t: no computation is marked ENTRY"),
        ("HloModule", "NCC101 x:1: the text ends where a name must stand"),
    ],
)
def test_what_is_no_module_is_said(text, said):
    with pytest.raises(NccError) as fault:
        parse(text, "x")
    assert str(fault.value).replace("NCC102 x:1: the text", "NCC102 x: the text") == said


@settings(derandomize=True, max_examples=60, deadline=None)
@given(programs(), programs())
def test_broken_text_never_ends_in_a_traceback(text, other):
    """Cut, or joined with another at any place: a module or a sentence."""
    for at in (len(text) // 3, len(text) // 2, len(text) * 5 // 7):
        for broken in (text[:at], text[:at] + other[at:], text[:at] + '}{"' + text[at:]):
            try:
                parse(broken, "x.hlo")
            except NccError as fault:
                assert fault.code in ("NCC101", "NCC104", "NCC105", "NCC107", "NCC108")


def test_deep_nesting_is_no_traceback():
    deep = "(" * 5000 + "f32[]" + ")" * 5000
    with pytest.raises(NccError) as fault:
        parse(entry(f"  ROOT %a = {deep} parameter(0)"), "x")
    assert "tuples nest more than 64 deep" in str(fault.value)
    with pytest.raises(NccError):
        parse(entry("  ROOT %a = f32[] parameter(0), x=" + "{" * 5000 + "}" * 5000), "x")
