"""The whole-tensor passes: meaning kept bit for bit, laws and facts after every pass."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncc.interp import mhlo as mhlo_meaning
from ncc.interp.penguin import run
from ncc.ir import mhlo, mhlo_text
from ncc.ir import penguin as p
from ncc.ir.core import Law
from ncc.ir.data import FROM_HLO, data, numpy_type
from ncc.ir.penguin_laws import FACTS, LAWS, signature
from ncc.ir.penguin_text import parse, show
from ncc.passes.base import Pass, section
from ncc.target import target

NAMES = (
    "mhlo_to_penguin",
    "simplify",
    "value_number",
    "penguin_dce",
    "order_loops",
    "require_layouts",
    "build_pags",
    "solve_layout",
    "insert_transposes",
    "mark_nonlocal",
    "build_pgs",
)
PASSES: tuple[Pass, ...] = tuple(import_module(f"ncc.passes.penguin.{n}").PASS for n in NAMES)
TRN1, TRN2 = target("trn1"), target("trn2")


def faults(module: p.Function, facts: list[str], machine=TRN2) -> list[str]:
    laws: list[Law] = [*LAWS, *(f for f in FACTS if f.printed in facts)]
    return [f"{law.name}: {fault}" for law in laws for fault in law.check(module, machine)]


def stages(func: mhlo.Func, machine=TRN2) -> dict[str, p.Function]:
    """The module after every pass, verified and read back."""
    module, facts, found = func, [], {}
    for one in PASSES:
        module = one.apply(module, machine)
        facts += one.gives
        assert faults(module, facts, machine) == [], f"after {one.name}\n{show(module)}"
        assert parse(show(module)) == module
        found[one.name] = module
    return found


def drawn(func: mhlo.Func, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=x.type.shape).astype(numpy_type(FROM_HLO[x.type.dtype]))
        for x in func.params
    ]


def same_bits(func: mhlo.Func, machine=TRN2) -> dict[str, p.Function]:
    """Every stage gives MHLO's results, bit for bit."""
    args = drawn(func)
    want = mhlo_meaning.run(func, machine, args)
    found = stages(func, machine)
    for name, module in found.items():
        got = run(module, machine, args)
        for a, b in zip(want, got, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a, b, f"{name} changed the meaning\n{show(module)}")
    return found


def read(text: str) -> mhlo.Func:
    return mhlo_text.parse(text)


@pytest.mark.parametrize("one", PASSES, ids=lambda one: one.name)
def test_the_docstring_is_true(one: Pass):
    before = section(one.doc, "Before")
    module = read(before) if one.source == "mhlo" else parse(before)
    if one.source == "penguin":
        assert faults(module, list(one.needs)) == []
        assert show(module) == before
    after = one.apply(module, TRN2)
    assert show(after) == section(one.doc, "After")
    assert faults(after, [*one.needs, *one.gives]) == []


MATMUL = """func main(lhs: bf16[128,512], rhs: bf16[512,256]) name=matmul {
  out_3 = dot_general lhs rhs lhs_contract=(1,) rhs_contract=(0,) symbol=out : f32[128,256]
  return out_3
}
"""
LAYER = """func main(x: bf16[128,512], w: bf16[512,256], v: bf16[256,384], c: f32[256]) name=mlp {
  z = constant splat:00000000 : f32[]
  zb = broadcast_in_dim z dimensions=() : f32[128,256]
  cb = broadcast_in_dim c dimensions=(1,) : f32[128,256]
  h = dot_general x w lhs_contract=(1,) rhs_contract=(0,) : f32[128,256]
  h1 = add h cb : f32[128,256]
  h2 = maximum h1 zb : f32[128,256]
  h3 = convert h2 : bf16[128,256]
  y = dot_general h3 v lhs_contract=(1,) rhs_contract=(0,) : f32[128,384]
  return y
}
"""


def op(module: p.Function, name: str) -> p.TensorOp:
    return next(x for x in module.body if x.name == name)


def test_the_seed_matmul_keeps_lhs_and_its_dma_transposes_it():
    module = same_bits(read(MATMUL))["build-pgs"]
    assert [type(x).__name__ for x in module.body] == ["TensorTransposeOp", "TensorContractOp"]
    assert module.body[0].kind == "dma" and module.body[0].src.tensor == "lhs"
    assert not module.body[1].swap_operands
    assert {t.name: t.home for t in module.tensors} == {
        "lhs": "dram", "rhs": "dram", "out": "dram", "lhs_t": "stream"}  # fmt: skip
    assert same_bits(read(MATMUL), TRN1)["build-pgs"].body[0].kind == "pe"


def test_a_layer_feeds_the_next_without_a_transpose():
    module = same_bits(read(LAYER))["build-pgs"]
    assert [x.name for x in module.body] == ["x_t", "h", "h1", "h3", "out"]
    assert op(module, "h").swap_operands and not op(module, "out").swap_operands
    assert [x.group for x in module.body] == [0, 0, 0, 0, 1]
    h3 = module.tensor("h3")
    assert (h3.home, h3.partition_dims, h3.dtype) == ("sbuf", (1,), "bfloat16")
    assert module.tensor("h1").home == "stream"


def test_what_does_not_fit_goes_through_dram():
    module = stages(read(LAYER), TRN2.limited(sbuf=2048))["build-pgs"]
    assert module.tensor("h3").home == "dram"
    assert op(module, "h3_t").kind == "dma" and op(module, "h3_t").src.tensor == "h3"


def test_a_contraction_over_nothing_is_zeros():
    text = """func main(a: f32[3,0], b: f32[0,2]) name=nothing {
      y = dot_general a b lhs_contract=(1,) rhs_contract=(0,) : f32[3,2]
      return y
    }
    """
    assert [x.op for x in same_bits(read(text))["build-pgs"].body] == ["copy"]


def test_a_result_without_elements_has_no_op():
    text = """func main(a: f32[0,4], b: f32[4,6]) name=nothing {
      y = dot_general a b lhs_contract=(1,) rhs_contract=(0,) : f32[0,6]
      z = add y y : f32[0,6]
      return z
    }
    """
    assert same_bits(read(text))["build-pgs"].body == ()


def test_what_has_no_dimension_gets_axes_of_one_element():
    text = """func main(a: f32[7], b: f32[7]) name=inner {
      y = dot_general a b lhs_contract=(0,) rhs_contract=(0,) : f32[]
      z = dot_general a b : f32[7,7]
      one = constant splat:0000803f : f32[]
      q = add y one : f32[]
      return q, z
    }
    """
    module = same_bits(read(text))["build-pgs"]
    assert op(module, "y").axes == (p.Axis("m", 1), p.Axis("n", 1), p.Axis("k", 7))
    assert op(module, "out1").contract_axes == ("k",)


def test_a_convert_after_a_contraction_stays_because_it_rounds_twice():
    text = """func main(a: f32[4,8], b: f32[8,3]) name=twice {
      y = dot_general a b lhs_contract=(1,) rhs_contract=(0,) : f32[4,3]
      z = convert y : bf16[4,3]
      return z
    }
    """
    assert len(same_bits(read(text))["simplify"].body) == 2


def test_arguments_constants_and_views_can_be_returned():
    text = """func main(a: f32[4,8], c: f32[3]) name=back {
      k = constant hex:0000803f00000040 : f32[2]
      z = constant splat:0000c07f : f32[]
      t = transpose a permutation=(1,0) : f32[8,4]
      w = broadcast_in_dim c dimensions=(0,) : f32[3,5]
      v = dot_general w w lhs_contract=(0,) rhs_contract=(0,) : f32[5,5]
      return a, k, z, t, w, a, v
    }
    """
    same_bits(read(text))


def test_names_of_python_and_of_penguin_are_avoided():
    text = """func main(m: f32[4,8], loop: f32[8,3], lambda: f32[3], d0: f32[4,3]) name=odd {
      k = dot_general m loop lhs_contract=(1,) rhs_contract=(0,) : f32[4,3]
      n = broadcast_in_dim lambda dimensions=(1,) : f32[4,3]
      min = add k n : f32[4,3]
      q = add min d0 : f32[4,3]
      return q
    }
    """
    module = same_bits(read(text))["build-pgs"]
    assert [name for name, _, _ in signature(module)[0]] == ["m", "_loop", "_lambda", "d0"]


SMALL = st.integers(1, 6)


@st.composite
def programs(draw, size=SMALL) -> mhlo.Func:
    """Chains of dots with any order of dimensions, biases, relus, converts, transposes, reuse."""
    kinds = st.sampled_from(["bf16", "f16", "f32", "f8e4m3", "f8e5m2"])
    params: list[mhlo.Param] = []
    body: list[mhlo.Let] = []
    types: dict[str, mhlo.TensorType] = {}

    def param(dtype: str, shape: tuple[int, ...]) -> str:
        name = f"p{len(params)}"
        types[name] = mhlo.TensorType(dtype, shape)
        params.append(mhlo.Param(name, types[name]))
        return name

    def let(made: mhlo.Op, dtype: str, shape: tuple[int, ...]) -> str:
        name = f"v{len(body)}"
        types[name] = mhlo.TensorType(dtype, shape)
        body.append(mhlo.Let((name,), made, (types[name],)))
        return name

    def dot(lhs: str) -> str:
        shape = types[lhs].shape
        dims = draw(st.permutations(range(len(shape))))
        batch = draw(st.integers(0, min(1, len(shape))))
        summed = draw(st.integers(0, min(2, len(shape) - batch)))
        b, c = tuple(dims[:batch]), tuple(dims[batch : batch + summed])
        free = [draw(size) for _ in range(draw(st.integers(0, 2)))]
        roles = [("b", i, shape[d]) for i, d in enumerate(b)]
        roles += [("c", i, shape[d]) for i, d in enumerate(c)]
        roles += [("f", i, n) for i, n in enumerate(free)]
        roles = draw(st.permutations(roles))
        rhs = param(draw(kinds), tuple(n for _, _, n in roles))
        at = {(role, i): place for place, (role, i, _) in enumerate(roles)}
        rb = tuple(at["b", i] for i in range(len(b)))
        rc = tuple(at["c", i] for i in range(len(c)))
        left = [n for d, n in enumerate(shape) if d not in (*b, *c)]
        right = [n for place, (role, _, n) in enumerate(roles) if role == "f"]
        result = (*(shape[d] for d in b), *left, *right)
        dtype = draw(st.sampled_from(["f32", "bf16"]))
        return let(mhlo.DotGeneral(lhs, rhs, c, rc, b, rb), dtype, result)

    def same(x: str) -> str:
        """A value of x's type: a bias, a constant, an earlier value, or x itself."""
        kind = types[x]
        match draw(st.integers(0, 4)):
            case 0 if kind.shape:
                kept = [d for d in range(len(kind.shape)) if draw(st.booleans())]
                ones = [1 if draw(st.integers(0, 4)) == 0 else kind.shape[d] for d in kept]
                given_ = param(kind.dtype, tuple(ones))
                return let(mhlo.BroadcastInDim(given_, tuple(kept)), kind.dtype, kind.shape)
            case 1:
                number = data(FROM_HLO[kind.dtype], np.float32(draw(st.sampled_from([0, 1.5]))))
                one = let(mhlo.Constant(number), kind.dtype, ())
                return let(mhlo.BroadcastInDim(one, ()), kind.dtype, kind.shape)
            case 2:
                return x
            case 3:
                values = np.arange(int(np.prod(kind.shape)), dtype=np.float32)
                known = data(FROM_HLO[kind.dtype], values.reshape(kind.shape))
                return let(mhlo.Constant(known), kind.dtype, kind.shape)
            case _:
                near = [n for n, t in types.items() if t == kind]
                return draw(st.sampled_from(near))

    x = param(draw(kinds), tuple(draw(size) for _ in range(draw(st.integers(0, 3)))))
    for _ in range(draw(st.integers(1, 7))):
        kind = types[x]
        match draw(st.sampled_from("dddaammctrn")):
            case "d" if len(kind.shape) < 5:
                x = dot(x)
            case "a":
                pair = draw(st.permutations([x, same(x)]))
                x = let(mhlo.Binary("add", *pair), kind.dtype, kind.shape)
            case "m":
                x = let(mhlo.Binary("maximum", x, same(x)), kind.dtype, kind.shape)
            case "c":
                x = let(mhlo.Convert(x), draw(kinds), kind.shape)
                x = let(mhlo.Copy(x), types[x].dtype, kind.shape)
            case "t":
                order = tuple(draw(st.permutations(range(len(kind.shape)))))
                shape = tuple(kind.shape[d] for d in order)
                x = let(mhlo.Transpose(x, order), kind.dtype, shape)
            case "r":
                x = draw(st.sampled_from(sorted(types)))
            case _:
                x = let(mhlo.Copy(x), kind.dtype, kind.shape)
    results = [x, *draw(st.lists(st.sampled_from(sorted(types)), max_size=2))]
    return mhlo.Func("made", tuple(params), tuple(body), tuple(results))


@settings(derandomize=True, max_examples=80, deadline=None)
@given(programs(), st.sampled_from([TRN1, TRN2, TRN2.limited(sbuf=64)]))
def test_every_pass_keeps_every_bit(func: mhlo.Func, machine):
    same_bits(func, machine)


@settings(derandomize=True, max_examples=30, deadline=None)
@given(programs())
def test_a_second_run_of_a_pass_changes_nothing(func: mhlo.Func):
    found = stages(func)
    for one in PASSES[1:4]:
        module = found["penguin-dce"]
        again = one.apply(one.apply(module, TRN2), TRN2)
        assert again == one.apply(module, TRN2)


def test_many_contractions_are_solved_without_trying_all():
    lines = ["func main(x: bf16[8,8]) name=deep {"]
    names = ["x", *(f"v{i}" for i in range(60))]
    for a, b in pairwise(names):
        lines.append(f"  {b} = dot_general {a} x lhs_contract=(1,) rhs_contract=(0,) : bf16[8,8]")
    module = stages(read("\n".join([*lines, f"  return {names[-1]}", "}"])))["build-pgs"]
    made = [x for x in module.body if isinstance(x, p.TensorContractOp)]
    assert len(made) == 60 and any(x.swap_operands for x in made)
