"""What tiles mean, and what the laws say of programs that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ncc import numerics
from ncc.errors import NccError
from ncc.interp.penguin import run
from ncc.ir import penguin as p
from ncc.ir.affine import Affine, Least, affine
from ncc.ir.data import numpy_type
from ncc.ir.penguin_laws import FACTS, LAWS, signature
from ncc.ir.penguin_text import parse, show
from ncc.ir.penguin_views import reach
from ncc.rules import rules
from ncc.target import target

TRN2 = target("trn2")
BF16 = numpy_type("bfloat16")


def matmul(m: int, n: int, k: int, dtype: str = "bfloat16") -> p.Function:
    """A tiled matmul with tails: loads, a transposing load, accumulation, eviction, store."""

    def tail(size: int, tile: int, outer: str) -> str:
        return f"min({tile}, {size}-{tile}*{outer})" if size % tile else str(tile)

    ks, ms, ns = (-(-k // 128), -(-m // 128), -(-n // 512))
    return parse(f"""from ncc.penguin import *
with function("matmul") as f:
    lhs = tensor("lhs", "{dtype}", ({m}, {k}), kind="input", home="dram")
    rhs = tensor("rhs", "{dtype}", ({k}, {n}), kind="input", home="dram")
    out = tensor("out", "float32", ({m}, {n}), kind="output", home="dram")
    lhs_t = tensor("lhs_t", "{dtype}", ({ks}, 128, 128), home="sbuf", blocks=1)
    rhs_t = tensor("rhs_t", "{dtype}", ({ks}, 128, 512), home="sbuf", blocks=1)
    acc = tensor("acc", "float32", (128, 512), home="psum")
    out_t = tensor("out_t", "float32", (128, 512), home="sbuf")
    m_i, n_i, k_i = axis("m_i n_i k_i")
    for m_o in loop("m_o", {ms}, "parallel"):
        for n_o in loop("n_o", {ns}, "parallel"):
            for k_o in loop("k_o", {ks}, "parallel"):
                TileTransposeOp("t", lhs_t[k_o, k_i, m_i], src=lhs[128*m_o+m_i, 128*k_o+k_i],
                    par=axes(k_i={tail(k, 128, "k_o")}), free=axes(m_i={tail(m, 128, "m_o")}),
                    kind="dma")
                TileCopyOp("l", rhs_t[k_o, k_i, n_i], src=rhs[128*k_o+k_i, 512*n_o+n_i],
                    par=axes(k_i={tail(k, 128, "k_o")}), free=axes(n_i={tail(n, 512, "n_o")}))
            for k_o in loop("k_o", {ks}, "accumulate"):
                MatMulOp("mm", acc[m_i, n_i], stationary=lhs_t[k_o, k_i, m_i],
                    moving=rhs_t[k_o, k_i, n_i], contract=axes(k_i={tail(k, 128, "k_o")}),
                    par=axes(m_i={tail(m, 128, "m_o")}), free=axes(n_i={tail(n, 512, "n_o")}),
                    accumulate=("k_o",))
            TensorCopyOp("e", out_t[m_i, n_i], src=acc[m_i, n_i],
                par=axes(m_i={tail(m, 128, "m_o")}), free=axes(n_i={tail(n, 512, "n_o")}))
            TileCopyOp("s", out[128*m_o+m_i, 512*n_o+n_i], src=out_t[m_i, n_i],
                par=axes(m_i={tail(m, 128, "m_o")}), free=axes(n_i={tail(n, 512, "n_o")}))
""")


def faults(module: p.Function) -> list[str]:
    return [str(fault) for law in LAWS for fault in law.check(module, TRN2)]


@pytest.mark.parametrize("size", [(128, 256, 512), (70, 45, 333), (300, 600, 300), (1, 1, 1)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float8e5"])
def test_a_tiled_matmul_is_the_product(size: tuple[int, int, int], dtype: str):
    m, n, k = size
    module = matmul(m, n, k, dtype)
    assert faults(module) == []
    rng = np.random.default_rng(1)
    lhs, rhs = (rng.integers(-4, 5, s).astype(numpy_type(dtype)) for s in ((m, k), (k, n)))
    (got,) = run(module, TRN2, [lhs, rhs])
    np.testing.assert_array_equal(got, lhs.astype(np.float64) @ rhs.astype(np.float64))


def test_psum_adds_each_pass_in_float32():
    module = matmul(3, 5, 256, "float32")
    rng = np.random.default_rng(2)
    lhs, rhs = rng.normal(size=(3, 256)).astype("f4"), rng.normal(size=(256, 5)).astype("f4")
    want = None
    for at in (0, 128):
        for part in numerics.matmul_passes(lhs[:, at : at + 128].T, rhs[at : at + 128]):
            want = part if want is None else want + part
    (got,) = run(module, TRN2, [lhs, rhs])
    np.testing.assert_array_equal(got, want)


def test_a_tiled_matmul_of_300_cubed():
    module = matmul(300, 300, 300)
    ones = np.ones((300, 300), BF16)
    (got,) = run(module, TRN2, [ones, ones])
    assert (got == 300).all()


def test_watch_receives_every_tensor():
    seen: dict = {}
    ones = np.ones((4, 4), BF16)
    run(matmul(4, 4, 4), TRN2, [ones, ones], seen)
    assert seen["acc"][:4, :4].tolist() == [[4.0] * 4] * 4
    assert list(seen) == ["lhs", "rhs", "out", "lhs_t", "rhs_t", "acc", "out_t"]


ENGINES = """from ncc.penguin import *
with function("engines") as f:
    x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram", declared="float8_e4m3fn")
    c = tensor("c", "float32", (4,), kind="input", home="dram")
    out = tensor("out", "bfloat16", (4, 8), kind="output", home="dram")
    a = tensor("a", "float32", (4, 8), home="sbuf")
    b = tensor("b", "float32", (4, 8), home="sbuf")
    d = tensor("d", "float32", (4, 8), home="sbuf")
    m, n = axis("m n")
    ActivationOp("a1", a[m, n], par=axes(m=4), free=axes(n=8), src=x[m, n], func="Relu", scale=2.0,
        bias=c[m])
    TensorScalarOp("a2", b[m, n], par=axes(m=4), free=axes(n=8), src=a[m, n], op0="subtract",
        operand0=c[m], reverse0=True, op1="max", operand1=-3.0)
    TensorTensorOp("a3", d[m, n], par=axes(m=4), free=axes(n=8), op="add", src0=b[m, n],
        src1=a[m, n])
    TileElementwiseOp("a4", out[m, n], par=axes(m=4), free=axes(n=8), op="maximum",
        srcs=(d[m, n], 0.5))
"""


def test_engines_compute_in_float32_and_round_once():
    module = parse(ENGINES)
    assert faults(module) == []
    rng = np.random.default_rng(3)
    x = numerics.cast(rng.normal(size=(4, 8)).astype("f4"), "float8_e4m3fn")
    c = rng.normal(size=4).astype("f4")
    a = np.maximum(x.astype("f4") * np.float32(2) + c[:, None], 0)
    d = np.maximum(c[:, None] - a, -3) + a
    (got,) = run(module, TRN2, [x, c])
    np.testing.assert_array_equal(got, np.maximum(d, 0.5).astype(BF16))
    assert signature(module)[0][0] == ("x", "float8_e4m3fn", (4, 8))


def test_reading_what_nothing_wrote_is_an_error():
    text = show(matmul(4, 4, 8)).replace("par=axes(k_i=min(128, 8-128*k_o))", "par=axes(k_i=7)", 1)
    ones = np.ones((4, 8), BF16)
    with pytest.raises(NccError) as wrong:
        run(parse(text), TRN2, [ones, ones.T])
    assert str(wrong.value) == (
        "NCC228 mm: nothing wrote element [7,0] of what mm reads of lhs_t before it"
    )


def test_an_output_that_is_not_all_written_is_an_error():
    text = ENGINES.replace('free=axes(n=8), op="maximum"', 'free=axes(n=7), op="maximum"')
    with pytest.raises(NccError) as wrong:
        run(parse(text), TRN2, [np.ones((4, 8), "f4"), np.ones(4, "f4")])
    assert str(wrong.value) == ("NCC228 nothing wrote element [0,7] of out before the program ends")


def test_the_siblings_of_matmul_are_refused():
    text = show(matmul(4, 4, 4)).replace("MatMulOp", "MatMulMXOp")
    with pytest.raises(NccError) as wrong:
        run(parse(text), TRN2, [np.ones((4, 4), BF16)] * 2)
    assert wrong.value.code == "NCC229"


GOOD = """from ncc.penguin import *
with function("copy") as f:
    x = tensor("x", "float32", (4, 8), kind="input", home="dram")
    y = tensor("y", "float32", (4, 8), kind="output", home="dram")
    d0, d1 = axis("d0 d1")
    ElementwiseOp("y", "copy", y[d0, d1], srcs=(x[d0, d1],), axes=axes(d0=4, d1=8))
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"float32"', '"float31"', "NCC221 x: no dtype is called 'float31'"),
        ('home="dram"', 'home="moon"', "NCC221 x: 'moon' is no home of a tensor"),
        ("x[d0, d1]", "x[d0]", "NCC223 y: x has 2 dimensions, was indexed by 1"),
        ("x[d0, d1]", "x[d0, d0]", "NCC223 y: dimension 1 of x is not indexed by one whole axis"),
        ("x[d0, d1]", "x[d0, 2*d1]", "NCC224 y: reaches x at 0 to 14 of 8 in dimension 1"),
        ("d1=8", "d1=9", "NCC224 y: reaches y at 0 to 8 of 8 in dimension 1"),
        ("d1=8", "d1=7", "NCC223 y: dimension 1 of y is not indexed by one whole axis"),
        ('"copy", y', '"copies", y', "NCC225 y: no elementwise op is called 'copies'"),
        ('"copy", y', '"add", y', "NCC225 y: add takes 2 operands, was given 1"),
        ("y[d0, d1], srcs", "x[d0, d1], srcs", "NCC226 y: writes x, which is an input"),
        ("srcs=(x[", "srcs=(y[", "NCC226 y: reads y before it is written"),
        ('ElementwiseOp("y"', 'ElementwiseOp("a b"', "NCC220 a b: 'a b' cannot be a name here"),
    ],
)
def test_a_law_says_what_is_wrong(old: str, new: str, said: str):
    assert faults(parse(GOOD)) == []
    assert faults(parse(GOOD.replace(old, new, 1)))[0].startswith(said)


def test_an_index_that_leaves_its_tensor_in_the_last_iteration_is_found():
    assert faults(matmul(300, 45, 70)) == []
    text = show(matmul(300, 45, 70))
    wrong = text.replace("m_i=min(128, 300-128*m_o)", "m_i=min(128, 301-128*m_o)")
    assert "NCC224 t: reaches lhs at 0 to 300 of 300 in dimension 0" in faults(parse(wrong))[0]


def test_reach_bounds_an_axis_together_with_the_loop_that_shortens_it():
    scope = {"m_o": 3, "m_i": Least(128, affine(333, {"m_o": -128}))}
    assert reach(affine(0, {"m_o": 128, "m_i": 1}), scope) == (0, 332)
    assert reach(Affine(5), scope) == (5, 5)


def test_every_code_has_a_rule_and_every_rule_a_true_example():
    table = rules()
    for code in range(220, 231):
        rule = table[f"NCC{code}"]
        if not rule.wrong or code == 228:  # a fault of the run, not of the text
            continue
        for text, expected in ((rule.wrong, [rule.code]), (rule.right, [])):
            first, _, rest = text.partition("\n")
            named = first.partition("facts=")[2].split(",")
            laws = [*LAWS, *(f for f in FACTS if f.printed in named)]
            module = parse(rest)
            found = [f.code for law in laws for f in law.check(module, TRN2)]
            assert found[:1] == expected, rule.code
