"""MHLO: its text, its laws and facts, and what its passes leave."""

from __future__ import annotations

import numpy as np
import pytest
from generate import inputs, program
from test_hlo_laws import lowered
from test_hlo_passes import same_bits

from ncc.errors import NccError
from ncc.interp.mhlo import run
from ncc.ir.data import data
from ncc.ir.mhlo import (
    Binary,
    Broadcast,
    BroadcastInDim,
    Constant,
    Convert,
    Copy,
    CustomCall,
    DotGeneral,
    Func,
    GetTupleElement,
    Let,
    Param,
    TensorType,
    Transpose,
    Tuple,
)
from ncc.ir.mhlo_laws import FACTS, LAWS, nodes, signature
from ncc.ir.mhlo_text import FORMS, parse, show
from ncc.passes import load
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
F32 = TensorType("f32", (2, 3))
KINDS = (Binary, Broadcast, BroadcastInDim, Constant, Convert, Copy, DotGeneral)
KINDS += (CustomCall, GetTupleElement, Transpose, Tuple)

EVERY = """func main(a: f32[2,3], b: bf16[3,4,5]) name=jit_f input_names=(a,b) output_names=(out0,out1) slow_ins=(1,) slow_outs=(0,) {
  k = constant hex:0000803f00000040000040400000804000008040000000c0 : f32[2,3]
  z = constant splat:0080 : bf16[]
  i = constant eye:0000803f : f32[3,3]
  e = constant hex: : f32[0,3]
  s = add a k : f32[2,3]  # f.hlo:3
  m = maximum s k : f32[2,3]
  h = convert m : bf16[2,3]
  c = copy h : bf16[2,3]
  t = transpose k permutation=(1,0) : f32[3,2]
  w = broadcast z dimensions=() : bf16[2,3]
  x = broadcast_in_dim z dimensions=() : bf16[2,3]
  d = dot_general h b lhs_contract=(1,) rhs_contract=(0,) : f32[2,4,5]  # f.hlo:12
  g = dot_general b b lhs_contract=(2,) rhs_contract=(2,) lhs_batch=(0,) rhs_batch=(0,) symbol=out1 : f32[3,4,4]
  u = custom_call d target=f.py:g config=((scale,0.5),(words,(1,"a b"))) aliases=((0,0),) : f32[2,4,5]
  v w2 = custom_call target=two : f32[2], bf16[]
  p = tuple d g : (f32[2,4,5], f32[3,4,4])
  y = get_tuple_element p index=0 : f32[2,4,5]
  return y, g
}
"""  # fmt: skip


def complaints(func, laws=LAWS):
    found = []
    for law in laws:
        for node in nodes(func) if law.node else (func,):
            found += law.check(node, func, TRN2) if law.node else law.check(node, TRN2)
    return [str(x) for x in found]


def test_every_op_prints_and_reads_back():
    func = parse(EVERY, "f.txt")
    assert show(func) == EVERY
    assert complaints(func) == []
    assert {type(let.op) for let in func.body} == set(KINDS)
    assert {form.kind for form in FORMS.values()} == set(KINDS)
    assert func.body[4].origin.file == "f.hlo" and func.body[4].origin.line == 3


@pytest.mark.parametrize("seed", range(20))
def test_generated_programs_read_back(seed):
    func = lowered(program(3000 + seed, small=True))
    assert parse(show(func)) == func
    assert show(parse(show(func))) == show(func)


def test_signature():
    ins, outs = signature(parse(EVERY))
    assert ins == (("a", "float32", (2, 3)), ("b", "bfloat16", (3, 4, 5)))
    assert outs == (("out0", "float32", (2, 4, 5)), ("out1", "float32", (3, 4, 4)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("add a k", "add a q", "NCC201 f.hlo:3, s: reads q, which no line above defines"),
        ("return y, g", "return y, q", "NCC201 returns q, which no line defines"),
        ("m = maximum", "s = maximum", "NCC201 s: s is defined a second time"),
        ("b: bf16", "a: bf16", "NCC201 two parameters share a name"),
        ("add a k : f32[2,3]", "add a k : f32[3,2]", "NCC202 f.hlo:3, s: written as f32[3,2], but add gives f32[2,3]"),
        ("add a k", "add a t", "NCC201 f.hlo:3, s: reads t, which no line above defines"),
        ("maximum s k", "maximum s i", "NCC202 m: maximum takes two values of one type, was given f32[2,3] and f32[3,3]"),
        ("copy h : bf16[2,3]", "copy h : f32[2,3]", "NCC202 c: written as f32[2,3], but copy gives bf16[2,3]"),
        ("convert m : bf16[2,3]", "convert m : bf16[2,4]", "NCC202 h: written as bf16[2,4], but convert gives bf16[2,3]"),
        ("permutation=(1,0)", "permutation=(1,1)", "NCC202 t: transpose has no permutation of 2 dimensions: (1, 1)"),
        ("lhs_contract=(1,) rhs_contract=(0,)", "lhs_contract=(0,) rhs_contract=(0,)", "NCC202 f.hlo:12, d: dot_general contracts 2 with 3"),
        ("lhs_contract=(1,) rhs_contract=(0,)", "lhs_contract=(1,) rhs_contract=(3,)", "NCC202 f.hlo:12, d: dot_general names dimension 3 of 3"),
        ("lhs_contract=(1,) rhs_contract=(0,)", "lhs_contract=(1,)", "NCC202 f.hlo:12, d: dot_general names more dimensions of one operand than of the other"),
        ("lhs_batch=(0,)", "lhs_batch=(1,)", "NCC202 g: dot_general has a batch of 4 beside one of 3"),
        ("lhs_batch=(0,)", "lhs_batch=(2,)", "NCC202 g: dot_general names a dimension twice"),
        ("broadcast_in_dim z dimensions=()", "broadcast_in_dim z dimensions=(0,)", "NCC202 x: written as bf16[2,3], but broadcast_in_dim maps 0 dimensions to (0,)"),
        ("broadcast z dimensions=() : bf16", "broadcast z dimensions=() : f32", "NCC202 w: written as f32[2,3], but broadcast gives bf16[2,3]"),
        ("index=0", "index=2", "NCC202 y: written as f32[2,4,5], but get_tuple_element has no element 2 in (f32[2,4,5], f32[3,4,4])"),
        ("index=0", "index=1", "NCC202 y: written as f32[2,4,5], but get_tuple_element gives f32[3,4,4]"),
        ("tuple d g : (f32[2,4,5], f32[3,4,4])", "tuple d g : (f32[2,4,5], f32[3,4,5])", "NCC202 p: written as (f32[2,4,5], f32[3,4,5]), but tuple gives (f32[2,4,5], f32[3,4,4])"),
        ("splat:0080 : bf16[]", "splat:00000080 : s32[]", "NCC202 w: written as bf16[2,3], but broadcast gives s32[2,3]"),
    ],
)  # fmt: skip
def test_one_word_wrong(old, new, said):
    assert old in EVERY
    assert complaints(parse(EVERY.replace(old, new, 1)))[0] == said


def test_whole_numbers_are_no_type_of_this_level():
    func = parse(
        "func main(a: f32[2]) name=i {\n  k = constant splat:07000000 : s32[2]\n  return a\n}\n"
    )
    assert complaints(func) == ["NCC203 k: s32[2] is not of a type that this level computes with"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("add a k : f32[2,3]  #", "addd a k : f32[2,3]  #", "NCC009 f.txt:6: MHLO has no op addd (did you mean add?)"),
        ("s = add a k : f32[2,3]", "s add a k : f32[2,3]", "NCC009 f.txt:6: cannot read 's add a k : f32[2,3]', expected `name = op operands : type`"),
        ("s = add a k", "s = add a", "NCC009 f.txt:6: add takes 2 operands, was given 1"),
        ("convert m", "convert m a", "NCC009 f.txt:8: convert takes 1 operands, was given 2"),
        ("convert m : bf16[2,3]", "convert m : bf16[2,x]", "NCC009 f.txt:8: cannot read 'bf16[2,x]' as a type such as f32[4,8]"),
        (" permutation=(1,0)", "", "NCC009 f.txt:10: transpose lacks permutation="),
        ("permutation=(1,0)", "permutaton=(1,0)", "NCC009 f.txt:10: cannot read 'permutaton=(1,0)', there are permutation=, symbol="),
        ("permutation=(1,0)", "permutation=(1,0", "NCC009 f.txt:10: cannot read '(1,0', a tuple lacks its )"),
        ("permutation=(1,0)", "permutation=(1,0) permutation=(1,0)", "NCC009 f.txt:10: permutation= stands twice"),
        ("splat:0080", "splat:00", "NCC009 f.txt:3: 'splat:00' does not hold the 2 bytes of bfloat16 "),
        ("a: f32[2,3]", "a f32[2,3]", "NCC009 f.txt:1: cannot read 'a f32[2,3], b: bf16[3,4,5]' as a parameter `name: type`"),
        ("func main", "fun main", "NCC009 f.txt:1: cannot read 'fun main(a: f32[2,3], b: bf16[3,4,5]) name=jit_f input_names', expected `func main(name: type, ...) {`"),
        ("  return y, g\n", "", "NCC009 f.txt:18: the function lacks its last line, `return ...`"),
        ("\n}\n", "\n", "NCC009 f.txt:19: the function lacks its closing }"),
        ("transpose k", "transpose 5", "NCC009 f.txt:10: cannot read '5' as the name of a value"),
    ],
)  # fmt: skip
def test_a_slip_is_one_sentence_with_its_place(old, new, said):
    assert old in EVERY
    with pytest.raises(NccError) as fault:
        parse(EVERY.replace(old, new, 1), "f.txt")
    assert str(fault.value) == said


def test_broken_text_never_ends_in_a_traceback():
    for cut in range(0, len(EVERY), 7):
        for text in (EVERY[:cut], EVERY[cut:], EVERY[:cut] + "(=" + EVERY[cut:]):
            try:
                complaints(parse(text, "f.txt"))
            except NccError as fault:
                assert fault.code == "NCC009"


# ------------------------------------------------------------------------------------------- facts


@pytest.mark.parametrize(
    ("fact", "line", "said"),
    [
        ("no_tuple_is_left", "t = tuple a a : (f32[2,3], f32[2,3])", "NCC205 t: tuple is still there"),
        ("no_broadcast_is_left", "t = broadcast z dimensions=() : f32[2,3]", "NCC206 t: broadcast is still there; broadcast_in_dim is its one form"),
        ("no_constant_is_converted", "t = convert z : bf16[]", "NCC207 t: convert of a constant is still there"),
        ("no_constant_is_converted", "t = transpose z permutation=() : f32[]", "NCC207 t: transpose of a constant is still there"),
    ],
)  # fmt: skip
def test_a_fact_that_does_not_hold(fact, line, said):
    text = f"func main(a: f32[2,3]) name=f {{\n  z = constant splat:00000000 : f32[]\n  {line}\n  return a\n}}\n"
    assert complaints(parse(text), [law for law in FACTS if law.name == fact]) == [said]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", []),
        ("symbol=out0", "symbol=out7", ["NCC208 s: is returned as out0, its symbol is 'out7'"]),
        ("return s, t", "return s, s", ["NCC208 s: is returned as out1, its symbol is 'out0'"]),
        ("return s, t", "return s, a", ["NCC208 out1 is a, an argument"]),
        ("return s, t", "return s, k", ["NCC208 out1 is k, a constant"]),
        ("return s, t", "return s", ["NCC208 1 values are returned, 2 are named"]),
    ],
)
def test_outputs_that_are_not_named(old, new, said):
    text = """func main(a: f32[2]) name=f output_names=(out0,out1) {
  k = constant splat:00000000 : f32[2]
  s = add a a symbol=out0 : f32[2]
  t = add a s symbol=out1 : f32[2]
  return s, t
}
"""
    law = next(law for law in FACTS if law.name == "outputs_are_named")
    assert complaints(parse(text.replace(old, new, 1)), [law]) == said


def test_a_returned_tuple_is_a_fault_after_penguinize_io():
    func = parse(
        "func main(a: f32[2]) name=f {\n  t = tuple a a : (f32[2], f32[2])\n  return t\n}\n"
    )
    law = next(law for law in FACTS if law.name == "no_tuple_is_returned")
    assert complaints(func, [law]) == ["NCC204 returns t, which is a tuple"]


# ------------------------------------------------------------------------------------------ passes


def applied(name, text):
    func = parse(text)
    after = load(f"mhlo.{name}").apply(func, TRN2)
    assert complaints(after) == []
    return func, after


def test_a_chain_of_known_values_is_folded_whole():
    text = """func main(a: bf16[4,3]) name=f {
  k = constant hex:0000803f000000400000404000008040000000c0000000bf : f32[2,3]
  t = transpose k permutation=(1,0) : f32[3,2]
  h = convert t : bf16[3,2]
  c = copy h : bf16[3,2]
  b = broadcast c dimensions=(1,0) : bf16[2,3]
  d = broadcast b dimensions=(0,2) : bf16[2,4,3]
  e = transpose d permutation=(1,2,0) : bf16[4,3,2]
  g = convert e : f32[4,3,2]
  return g
}
"""
    func, after = applied("fold_constants", text)
    given = [np.zeros((4, 3), np.float32)]
    for a, b in zip(run(func, TRN2, given), run(after, TRN2, given), strict=True):
        same_bits(a, b)
    assert {type(let.op) for let in after.body} == {Constant, Broadcast}
    for let in after.body:
        if isinstance(let.op, Broadcast):
            assert list(let.op.dimensions) == sorted(let.op.dimensions)
    fact = [law for law in FACTS if law.name == "no_constant_is_converted"]
    assert complaints(after, fact) == []


def test_what_is_computed_is_not_folded():
    text = "func main(a: f32[2]) name=f {\n  h = convert a : bf16[2]\n  return h\n}\n"
    func, after = applied("fold_constants", text)
    assert after is func


def test_a_scalar_stays_a_scalar_and_a_large_vector_a_vector():
    text = """func main(a: f32[128,64]) name=f {
  z = constant splat:00000000 : f32[]
  k = constant splat:0000803f : f32[64]
  s = broadcast z dimensions=() : f32[2,2]
  t = broadcast k dimensions=(1,) : f32[128,64]
  u = broadcast k dimensions=(1,) : f32[1,64]
  return s, t, u
}
"""
    func, after = applied("unify_broadcasts", text)
    s, t, u = after.body[2:]
    assert s.op == BroadcastInDim("z", ()) and t.op == BroadcastInDim("k", (1,))
    assert u.op == Constant(data("float32", np.ones((1, 64))))
    for a, b in zip(*(run(f, TRN2, [np.zeros((128, 64))]) for f in (func, after)), strict=True):
        same_bits(a, b)


def test_a_broadcast_that_reorders():
    k = np.arange(6, dtype=np.float32).reshape(2, 3)
    let = Let(("b",), Broadcast("a", (2, 0)), (TensorType("f32", (3, 4, 2)),))
    func = Func("f", (Param("a", F32),), (let,), ("b",))
    (got,) = run(func, TRN2, [k])
    np.testing.assert_array_equal(got, np.broadcast_to(k.T[:, None, :], (3, 4, 2)))


def test_a_dot_of_several_contracted_and_batch_dimensions():
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (5, 2, 3, 4)).astype(np.float32)
    b = rng.integers(-2, 3, (4, 7, 5, 3, 2)).astype(np.float32)
    op = DotGeneral("a", "b", (3, 2), (0, 3), (1, 0), (4, 2))
    let = Let(("c",), op, (TensorType("f32", (2, 5, 7)),))
    params = (Param("a", TensorType("f32", a.shape)), Param("b", TensorType("f32", b.shape)))
    func = Func("f", params, (let,), ("c",))
    assert complaints(func) == []
    (got,) = run(func, TRN2, [a, b])
    np.testing.assert_array_equal(got, np.einsum("bakc,cnbka->abn", a, b))


def test_a_sum_is_rounded_once_to_the_type_of_the_result():
    text = "func main(a: bf16[3], b: bf16[3]) name=f {\n  c = dot_general a b lhs_contract=(0,) rhs_contract=(0,) : bf16[]\n  return c\n}\n"
    a = np.array([1, 2**-8, 2**-40], np.float32)
    (got,) = run(parse(text), TRN2, [a, np.ones(3, np.float32)])
    assert float(got) == 1 + 2**-7  # a float32 in between would have made it the tie, and 1


def test_every_value_can_be_watched():
    text = program(7, small=True)
    func, watch = lowered(text), {}
    run(func, TRN2, inputs(text, 0), watch)
    kept = {let.names[0] for let in func.body if isinstance(let.types[0], TensorType)}
    assert set(watch) == kept | {p.name for p in func.params}
