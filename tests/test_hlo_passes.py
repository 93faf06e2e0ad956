"""HLO's passes and its meaning: layouts move, values do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from generate import BATCHES, DTYPES, inputs, program
from test_hlo_laws import complaints, lowered

from ncc.errors import NccError
from ncc.front.hlo import parse
from ncc.interp.hlo import run
from ncc.ir.hlo import Literal, TupleShape
from ncc.ir.hlo_laws import FACTS, LAWS
from ncc.ir.hlo_literal import array_of
from ncc.ir.hlo_text import show
from ncc.passes import PIPELINE, load
from ncc.stages import level
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
EXAMPLES = Path(__file__).parents[1] / "examples"
FRONT = PIPELINE[: PIPELINE.index("mhlo.name_outputs") + 1]


def same_bits(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def through(module, given, check=True):
    """Every pass down to named outputs: laws and facts hold, no value changes. The last module."""
    want = run(module, TRN2, given)
    facts: set[str] = set()
    for entry in FRONT:
        one = load(entry)
        assert set(one.needs) <= facts
        module = one.apply(module, TRN2)
        facts = {*(facts if one.source == one.target else ()), *one.gives}
        there = level(one.target)
        known = {law.printed: law for law in there.get("facts")}
        laws = (*there.get("laws"), *(known[name] for name in sorted(facts)))
        for law in laws:
            for node in there.get("nodes")(module) if law.node else (module,):
                found = law.check(node, module, TRN2) if law.node else law.check(node, TRN2)
                assert [str(x) for x in found] == [], one.name
        if one.source == one.target:
            assert one.apply(module, TRN2) is module, f"{one.name} has nothing more to do"
        if check:
            text = there.get("show")(module)
            assert there.get("parse")(text, "", 1) == module
        got = there.get("run")(module, TRN2, given, None)
        for a, b in zip(want, got, strict=True):
            same_bits(a, b)
    return module


@pytest.mark.parametrize("seed", range(48))
def test_generated_programs_keep_their_values(seed):
    dtype, batch = DTYPES[seed % 6], BATCHES[seed // 6 % 4]
    text = program(1000 + seed, dtype=dtype, batch=batch, small=True)
    through(parse(text), inputs(text, seed, whole=seed % 2 == 0))


@pytest.mark.parametrize("name", ["matmul", "batched", "mlp"])
def test_the_examples_keep_their_values(name):
    text = (EXAMPLES / f"{name}.hlo").read_text()
    through(parse(text, f"{name}.hlo"), inputs(text, 0))


def test_whole_inputs_have_exact_sums():
    """No value comes near 2^24, although three products follow each other."""
    for seed in range(20_000, 20_030):
        text = program(seed, dtype=DTYPES[seed % 6], batch=BATCHES[seed % 4], small=seed % 3 > 0)
        module, watch = parse(text), {}
        run(module, TRN2, [abs(x) for x in inputs(text, seed)], watch)
        for value in watch.values():
            wide = np.asarray(value, np.float64)
            assert np.abs(wide).max(initial=0) < 2**24
            np.testing.assert_array_equal(wide, np.rint(wide))


def test_large_programs_are_large_and_not_too_large():
    for seed in range(0, 40, 5):
        module = parse(program(seed))
        dot = next(x for x in module.main().instructions if x.opcode == "dot")
        shapes = {x.name: x.shape.dims for x in module.main().instructions if x.opcode != "tuple"}
        lhs, rhs = (shapes[x] for x in dot.operands)
        k = [lhs[d] for d in dot.ints("lhs_contracting_dims")]
        m = [
            n
            for d, n in enumerate(lhs)
            if d not in (*dot.ints("lhs_contracting_dims"), *dot.ints("lhs_batch_dims"))
        ]
        n = [
            n
            for d, n in enumerate(rhs)
            if d not in (*dot.ints("rhs_contracting_dims"), *dot.ints("rhs_batch_dims"))
        ]
        assert min(np.prod(k), np.prod(m), np.prod(n)) > 128
        assert 2 * np.prod(dot.shape.dims) * np.prod(k) <= 2_100_000_000


# ------------------------------------------------------------------------------------- known values


def outputs(text, *given):
    module = parse(text)
    last = through(module, list(given))
    return run(module, TRN2, list(given)), last


def test_batch_dimensions_that_are_not_in_front():
    """Case H12."""
    text = """HloModule h12

ENTRY %main {
  %q = f32[1,2,2,3]{3,2,1,0} parameter(0)
  %k = f32[1,3,2,3]{3,2,1,0} parameter(1)
  ROOT %r = f32[1,2,2,3]{3,2,1,0} dot(%q, %k), lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}
}
"""
    q = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    k = np.arange(18, dtype=np.float32).reshape(1, 3, 2, 3)
    (got,), _ = outputs(text, q, k)
    assert got.tolist() == [[[[5, 23, 41], [23, 149, 275]], [[50, 122, 194], [122, 302, 482]]]]


def test_a_contraction_of_nothing_is_zero():
    """Case H13, the dot."""
    text = """HloModule h13

ENTRY %main {
  %a = f32[3,0]{1,0} parameter(0)
  %b = f32[0,2]{1,0} parameter(1)
  ROOT %r = f32[3,2]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    (got,), _ = outputs(text, np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32))
    assert got.tolist() == [[0, 0]] * 3


def test_a_result_without_elements():
    text = """HloModule h13

ENTRY %main {
  %a = f32[0,4]{1,0} parameter(0)
  %b = f32[4,2]{1,0} parameter(1)
  ROOT %r = f32[0,2]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    (got,), _ = outputs(text, np.zeros((0, 4), np.float32), np.zeros((4, 2), np.float32))
    assert got.shape == (0, 2)


def test_constants_convert_exactly_and_keep_signs():
    text = """HloModule k

ENTRY %main {
  %a = bf16[2,3]{1,0} parameter(0)
  %k = f32[3,2]{0,1} constant({ {1.00390625, -0.0}, {3e-40, inf}, {-5, 1.01171875} })
  %t = f32[2,3]{1,0} transpose(%k), dimensions={1,0}
  %c = bf16[2,3]{1,0} convert(%t)
  %s = f16[] constant(2049)
  %w = f16[2,3]{1,0} broadcast(%s), dimensions={}
  %x = bf16[2,3]{1,0} convert(%w)
  %m = bf16[2,3]{1,0} maximum(%a, %c)
  ROOT %r = (bf16[2,3]{1,0}, bf16[2,3]{1,0}, bf16[2,3]{1,0}) tuple(%m, %c, %x)
}
"""
    given = np.zeros((2, 3), np.float32)
    (_, known, wide), last = outputs(text, given)
    assert np.asarray(known, np.float32).tolist() == [
        [1.0, float(np.float32(known[0, 1])), -5.0],
        [0.0, float("inf"), 1.015625],
    ]
    assert np.signbit(np.asarray(known, np.float32)[1, 0])
    assert float(np.float32(wide[0, 0])) == 2048.0
    kinds = [type(let.op).__name__ for let in last.body]
    assert "Convert" not in kinds and "Transpose" not in kinds and "Broadcast" not in kinds


def test_maximum_keeps_the_order_of_its_operands():
    """A NaN comes through as numerics.alu says, which the machine uses too."""
    from ncc.numerics import alu

    text = """HloModule nan

ENTRY %main {
  %a = f32[3]{0} parameter(0)
  %b = f32[3]{0} parameter(1)
  ROOT %r = f32[3]{0} maximum(%a, %b)
}
"""
    a = np.array([np.nan, 1, -0.0], np.float32)
    b = np.array([1, np.nan, 0.0], np.float32)
    (got,), _ = outputs(text, a, b)
    same_bits(got, alu("max", a, b))


def test_calls_fusions_and_nested_tuples_are_inlined():
    text = """HloModule n

%pair {
  %x = f32[2]{0} parameter(0)
  %y = f32[2]{0} parameter(1)
  %s = f32[2]{0} add(%x, %y)
  %i = (f32[2]{0}, f32[2]{0}) tuple(%s, %x)
  ROOT %t = ((f32[2]{0}, f32[2]{0}), f32[2]{0}) tuple(%i, %y)
}

%inner {
  %t = ((f32[2]{0}, f32[2]{0}), f32[2]{0}) parameter(0)
  ROOT %i = (f32[2]{0}, f32[2]{0}) get-tuple-element(%t), index=0
}

ENTRY %main {
  %a = f32[2]{0} parameter(0)
  %b = f32[2]{0} parameter(1)
  %t = ((f32[2]{0}, f32[2]{0}), f32[2]{0}) call(%a, %b), to_apply=%pair
  %u = ((f32[2]{0}, f32[2]{0}), f32[2]{0}) copy(%t)
  %i = (f32[2]{0}, f32[2]{0}) fusion(%u), kind=kLoop, calls=%inner
  %s = f32[2]{0} get-tuple-element(%i), index=0
  %y = f32[2]{0} get-tuple-element(%t), index=1
  ROOT %r = (f32[2]{0}, (f32[2]{0}, f32[2]{0}), f32[2]{0}) tuple(%y, %i, %s)
}
"""
    a, b = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    got, last = outputs(text, a, b)
    assert [x.tolist() for x in got] == [[10, 20], [11, 22], [1, 2], [11, 22]]
    assert last.output_names == ("out0", "out1", "out2", "out3")
    assert [let.symbol for let in last.body if let.symbol] == ["out1", "out0", "out2", "out3"]


def test_one_computation_called_twice_gets_two_names():
    text = """HloModule twice

%double {
  %x.1 = f32[2]{0} parameter(0)
  ROOT %s.2 = f32[2]{0} add(%x.1, %x.1)
}

ENTRY %main {
  %a = f32[2]{0} parameter(0)
  %b = f32[2]{0} call(%a), to_apply=%double
  ROOT %c = f32[2]{0} call(%b), to_apply=%double
}
"""
    (got,), last = outputs(text, np.array([1, 2], np.float32))
    assert got.tolist() == [4, 8]
    assert [let.names[0] for let in last.body] == ["s_2", "s_2_2"]


def test_an_argument_and_a_constant_and_a_repeated_value_are_returned():
    text = """HloModule r

ENTRY %main {
  %a = f32[2]{0} parameter(0)
  %k = f32[2]{0} constant({-0.0, 7})
  %s = f32[2]{0} add(%a, %k)
  ROOT %r = (f32[2]{0}, f32[2]{0}, f32[2]{0}, f32[2]{0}, f32[2]{0}) tuple(%s, %a, %k, %s, %a)
}
"""
    got, last = outputs(text, np.array([1, 2], np.float32))
    assert [x.tolist() for x in got] == [[1, 9], [1, 2], [0, 7], [1, 9], [1, 2]]
    assert np.signbit(got[2][0])
    assert len(set(last.results)) == 5
    assert sum(type(let.op).__name__ == "Copy" for let in last.body) == 4


def test_a_program_that_returns_its_argument():
    text = "HloModule id\n\nENTRY %m {\n  ROOT %a = f32[2]{0} parameter(0)\n}\n"
    (got,), last = outputs(text, np.array([1, 2], np.float32))
    assert got.tolist() == [1, 2]
    assert last.output_names == ("out",) and last.results == ("a_out",)


def test_reshapes_around_a_broadcast_as_jax_writes_a_bias():
    text = """HloModule bias

ENTRY %main {
  %x = f32[4,3]{1,0} parameter(0)
  %b = f32[3]{0} parameter(1)
  %r = f32[1,3]{1,0} reshape(%b)
  %i = f32[1,3]{1,0} broadcast(%r), dimensions={0,1}
  %q = f32[3]{0} reshape(%i)
  %w = f32[4,3]{1,0} broadcast(%q), dimensions={1}
  %k = f32[2,2]{1,0} constant({ {1, 2}, {3, 4} })
  %l = f32[4]{0} reshape(%k)
  %v = f32[4,3]{1,0} broadcast(%l), dimensions={0}
  %s = f32[4,3]{1,0} add(%x, %w)
  %t = f32[4,3]{1,0} add(%s, %v)
  ROOT %u = f32[4,1,3]{2,1,0} reshape(%t)
}
"""
    x, b = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([10, 20, 30], np.float32)
    (got,), _ = outputs(text, x, b)
    want = x + b + np.arange(1, 5, dtype=np.float32)[:, None]
    assert got.tolist() == want[:, None].tolist()


# ------------------------------------------------------------------------------------------ layouts

ODD = """HloModule odd, entry_computation_layout={(f32[2,3]{0,1}, f32[3,4]{1,0})->(f32[2,4]{0,1})}

ENTRY %main {
  %a = f32[2,3]{0,1} parameter(0)
  %b = f32[3,4]{1,0:T(8,128)S(1)} parameter(1)
  %k = f32[2,4]{0,1} constant({ {1, 2, 3, 4}, {5, 6, 7, 8} })
  %d = f32[2,4]{0,1} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %s = f32[2,4]{0,1} add(%d, %k)
  ROOT %r = (f32[2,4]{0,1}) tuple(%s)
}
"""


def test_a_program_in_other_layouts_is_normalised():
    module = parse(ODD)
    normal = load("hlo.normalize_layouts").apply(module, TRN2)
    assert "{0,1}" not in show(normal) and "T(8" not in show(normal)
    assert [x.opcode for x in normal.main().instructions].count("transpose") == 1
    packed = next(x for x in normal.main().instructions if x.literal)
    assert isinstance(packed.literal, Literal)
    assert array_of(packed.literal).tolist() == [[1, 5], [2, 6], [3, 7], [4, 8]]
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    (got,) = run(module, TRN2, [a, b])
    np.testing.assert_array_equal(got, a @ b + np.arange(1, 9).reshape(2, 4))
    through(module, [a, b])


def test_a_constant_of_rank_three_is_repacked():
    text = """HloModule k

ENTRY %main {
  ROOT %k = s32[2,3,4]{0,2,1} constant(LITERAL)
}
"""
    values = np.arange(24, dtype=np.int32)
    literal = Literal("s32", (2, 3, 4), values.tobytes())
    from ncc.ir.hlo_literal import show_literal

    module = parse(text.replace("LITERAL", show_literal(literal)))
    normal = load("hlo.normalize_layouts").apply(module, TRN2)
    constant, root = normal.main().instructions
    assert constant.shape.dims == (3, 4, 2)
    assert constant.literal.raw == values.reshape(2, 3, 4).transpose(1, 2, 0).tobytes()
    same_bits(*run(module, TRN2, []), *run(normal, TRN2, []))
    assert root.name == normal.main().root == "k"


def test_assigned_layouts_copy_only_where_two_meet():
    text = """HloModule meet

ENTRY %main {
  %a = f32[2,2]{1,0} parameter(0)
  %p = f32[2,2]{1,0} parameter(1)
  %b = f32[2,2]{0,1} copy(%p)
  %z = f32[] constant(0)
  %w = f32[2,2] broadcast(%z), dimensions={}
  %m = f32[2,2] maximum(%b, %w)
  %n = f32[2,2] add(%m, %b)
  %d = f32[2,2] dot(%a, %n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %r = (f32[2,2], f32[2,2]) tuple(%d, %n)
}
"""
    module = load("hlo.assign_layouts").apply(parse(text), TRN2)
    shown = show(module)
    assert "%w = f32[2,2]{0,1} broadcast" in shown  # from its reader
    assert "%n = f32[2,2]{0,1} add(%m, %b)" in shown
    assert "%n.0 = f32[2,2]{1,0} copy(%n)" in shown
    assert "dot(%a, %n.0)" in shown
    assert shown.count(" copy(") == 2
    fact = next(law for law in FACTS if law.name == "every_array_has_a_layout")
    assert complaints(module, (*LAWS, fact)) == []
    root = load("hlo.descending_root").apply(module, TRN2)
    assert isinstance(root.main().returned().shape, TupleShape)
    assert "%n.0.0" not in show(root)
    assert "tuple(%d, %n.0_2)" in show(root)
    given = [np.arange(4, dtype=np.float32).reshape(2, 2)] * 2
    for a, b in zip(run(parse(text), TRN2, given), run(root, TRN2, given), strict=True):
        same_bits(a, b)


def test_a_root_that_is_no_tuple_is_copied():
    text = """HloModule one, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{0,1}}

ENTRY %main {
  %a = f32[2,3]{1,0} parameter(0)
  ROOT %b = f32[2,3]{0,1} copy(%a)
  %dead = f32[2,3]{0,1} copy(%b)
}
"""
    module = load("hlo.descending_root").apply(parse(text), TRN2)
    assert module.main().root == "b.0"
    assert module.layout().result.layout.minor_to_major == (1, 0)
    assert complaints(module) == []


def test_what_descending_root_cannot_repair():
    text = "HloModule x\n\nENTRY %main {\n  ROOT %a = f32[2,3]{0,1} parameter(0)\n}\n"
    with pytest.raises(NccError) as fault:
        load("hlo.descending_root").apply(parse(text, "x.hlo"), TRN2)
    assert str(fault.value) == (
        "NCC113 x.hlo:4:8, descending-root, a: the parameter is not row-major, f32[2,3]{0,1}"
    )
    text = """HloModule x

ENTRY %main {
  %a = f32[2,3]{1,0} parameter(0)
  %b = f32[2,3]{0,1} copy(%a)
  %t = (f32[2,3]{0,1}) tuple(%b)
  ROOT %u = ((f32[2,3]{0,1})) tuple(%t)
}
"""
    with pytest.raises(NccError) as fault:
        load("hlo.descending_root").apply(parse(text, "x.hlo"), TRN2)
    assert str(fault.value) == (
        "NCC113 x.hlo:7:8, descending-root, u: the root ((f32[2,3]{0,1})) is no flat tuple of "
        "row-major arrays"
    )


def test_what_has_no_meaning_yet_says_so():
    text = "HloModule x\n\nENTRY %m {\n  %a = f32[2]{0} parameter(0)\n  ROOT %s = f32[2]{0} sine(%a)\n}\n"
    with pytest.raises(NccError) as fault:
        run(parse(text, "x.hlo"), TRN2, [np.zeros(2, np.float32)])
    assert str(fault.value) == "NCC114 x.hlo:5:8, s: sine is not run yet; other opcodes come later"


def test_names_below_hlo_are_identifiers():
    text = """HloModule names

ENTRY %main {
  %out = f32[2]{0} parameter(0)
  %in.1 = f32[2]{0} add(%out, %out)
  %a-b.2 = f32[2]{0} add(%in.1, %out)
  %a_b.2 = f32[2]{0} add(%a-b.2, %out)
  ROOT %lambda = f32[2]{0} add(%a_b.2, %out)
}
"""
    func = lowered(text)
    assert [p.name for p in func.params] == ["out_2"]
    assert [let.names[0] for let in func.body] == ["in_1", "a_b_2", "a_b_2_2", "lambda_"]
