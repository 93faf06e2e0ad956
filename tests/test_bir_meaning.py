"""The BIR interpreter: numbers, bytes nobody wrote, addresses, and the states of PSUM cells."""

from __future__ import annotations

import numpy as np
import pytest

from ncc.errors import NccError
from ncc.interp import bir as interp
from ncc.ir.bir_text import parse
from ncc.ir.data import numpy_type
from ncc.rules.bir import PROGRAM
from ncc.target import TARGETS

TRN1, TRN2 = TARGETS["trn1"], TARGETS["trn2"]
TEXT = PROGRAM.split("\n", 1)[1]
BF16 = numpy_type("bfloat16")


def run(text, *arrays, target=TRN2, watch=None):
    return interp.run(parse(text), target, arrays, watch)


def w_and_x():
    rng = np.random.default_rng(3)
    return [rng.integers(-4, 5, shape).astype(BF16) for shape in ((8, 4), (8, 6))]


def but(*changes, text=TEXT):
    for right, wrong in changes:
        assert right in text, right
        text = text.replace(right, wrong, 1)
    return text


def said(text, *arrays, target=TRN2):
    with pytest.raises(NccError) as found:
        run(text, *arrays, target=target)
    return str(found.value)


def program(sets, insts, out="y"):
    """One input x, float32 (4,6), loaded to x_t; one output y of the same shape."""
    head = f"""module t gen3
  func sg0000
    set x float32 (4,6) kind=ExternalInput
      loc x DRAM (1,96)
    set y float32 (4,6) kind=ExternalOutput
      loc y DRAM (1,96)
    set x_t float32 (4,6) memory=SB
      loc x_t SB (4,24)
    set y_t float32 (4,6) memory=SB
      loc y_t SB (4,24)
{sets}    block Block1
      load = Load DMA x_t:float32[[6,4],[1,6]] <- x:float32[[6,4],[1,6]]
"""
    lines = "".join(f"      {line}\n" for line in insts.strip().split("\n"))
    save = "      save = Save DMA y:float32[[6,4],[1,6]] <- y_t:float32[[6,4],[1,6]]\n"
    return f"{head}{lines}{save}      exit = Exit ALL\n"


X = np.linspace(-3, 4, 24, dtype=np.float32).reshape(4, 6)
COLUMN = """    set c float32 (4,1) memory=SB
      loc c SB (4,4)
"""


def test_a_product():
    w, x = w_and_x()
    watch = {}
    (got,) = run(TEXT, w, x, watch=watch)
    np.testing.assert_array_equal(got, w.astype(np.float64).T @ x.astype(np.float64))
    assert sorted(watch) == ["acc", "out", "out_t", "w", "w_t", "x", "x_t"]
    np.testing.assert_array_equal(watch["acc"], got)


@pytest.mark.parametrize(
    ("insts", "want"),
    [
        ("i = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]", X),
        ("i = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[-1,6]]+5", X[:, ::-1]),
        (
            "i = TensorCopy DVE y_t:float32[[6,4],[3,2],[1,3]] <- x_t:float32[[6,4],[1,2],[2,3]]",
            X.reshape(4, 3, 2).transpose(0, 2, 1).reshape(4, 6),
        ),
        (
            "i = TensorScalar DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] "
            "const0=2.0 const1=1.0 op0=subtract op1=max reverse0=true",
            np.maximum(np.float32(2) - X, np.float32(1)),
        ),
        (
            "i = TensorScalarPtr DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] "
            "x_t:float32[[6,4],[1,1]]+2 3.0:float32 op0=mult op1=add",
            X * X[:, 2:3] + np.float32(3),
        ),
        (
            "i = TensorTensor DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] "
            "x_t:float32[[6,4],[0,6]]+1 op=subtract",
            X - X[:, 1:2],
        ),
        (
            "i = Activation Activation y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] "
            "x_t:float32[[6,4],[1,1]]+3 func=Relu scale=0.5",
            np.maximum(X * np.float32(0.5) + X[:, 3:4], 0),
        ),
        (
            "i = Reciprocal DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]",
            1 / X,
        ),
        ("i = Memset DVE y_t:float32[[6,4],[1,6]] constant=1069547520", np.full((4, 6), 1.5)),
        (
            "a = Memset DVE y_t:float32[[6,4],[1,6]]\n"
            "b = TensorReduce DVE y_t:float32[[6,4],[1,1]]+4 <- x_t:float32[[6,4],[1,6]] op=max negate=true",
            np.concatenate([np.zeros((4, 4)), -X.max(1, keepdims=True), np.zeros((4, 1))], 1),
        ),
        (
            "i = TensorReduce DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6],[0,3]] op=add",
            3 * X.astype(np.float64),
        ),
    ],
)
def test_each_opcode(insts, want):
    (got,) = run(program("", insts), X)
    np.testing.assert_array_equal(got, np.asarray(want, np.float32))


def test_softmax():
    """Negated maximum as a bias, a running sum, its read-back, a reciprocal, a product."""
    insts = """
top = TensorReduce DVE c:float32[[1,4],[1,1]] <- x_t:float32[[6,4],[1,6]] negate=true op=max
e = Activation Activation x_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] c:float32[[1,4],[1,1]] acc=ZeroAccumulate func=Exp
s = ActivationReadAccumulator Activation c:float32[[1,4],[1,1]]
r = Reciprocal DVE c:float32[[1,4],[1,1]] <- c:float32[[1,4],[1,1]]
y = TensorScalarPtr DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] c:float32[[1,4],[1,1]] op0=mult
"""
    (got,) = run(program(COLUMN, insts), X)
    wide = np.exp(X.astype(np.float64) - X.max(1, keepdims=True))
    np.testing.assert_allclose(got, wide / wide.sum(1, keepdims=True), rtol=3e-7)


def test_fp32_products_take_two_passes():
    text = TEXT.replace("bfloat16", "float32").replace("(1,64)", "(1,128)")
    text = text.replace("DRAM (1,96)", "DRAM (1,192)", 1).replace("SB (8,8)", "SB (8,16)")
    text = text.replace("SB (8,12)", "SB (8,24)")
    rng = np.random.default_rng(0)
    w, x = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 4), (8, 6)))
    high = (w.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    first = (high.astype(np.float64).T @ x).astype(np.float32)
    second = ((w - high).astype(np.float64).T @ x).astype(np.float32)
    (got,) = run(text, w, x)
    np.testing.assert_array_equal(got, first + second)
    assert np.abs(got - w.astype(np.float64).T @ x).max() < 2e-6


def test_narrow_results_round_once():
    (got,) = run(
        but(
            ("set out float32", "set out bfloat16"),
            ("loc out DRAM (1,96)", "loc out DRAM (1,48)"),
            ("set out_t float32", "set out_t bfloat16"),
            ("loc out_t SB (4,24)", "loc out_t SB (4,12)"),
            ("DVE out_t:float32", "DVE out_t:bfloat16"),
            (
                "DMA out:float32[[6,4],[1,6]] <- out_t:float32",
                "DMA out:bfloat16[[6,4],[1,6]] <- out_t:bfloat16",
            ),
        ),
        *(x * BF16.type(1.25) for x in w_and_x()),
    )
    w, x = (x * BF16.type(1.25) for x in w_and_x())
    np.testing.assert_array_equal(got, (w.astype(np.float64).T @ x.astype(np.float64)).astype(BF16))


# ---- bytes that nothing wrote -------------------------------------------------------------------


def test_an_output_that_is_not_written_whole():
    text = but(
        (
            "out:float32[[6,4],[1,6]] <- out_t:float32[[6,4],[1,6]]",
            "out:float32[[6,4],[1,5]] <- out_t:float32[[6,4],[1,5]]",
        )
    )
    assert said(text, *w_and_x()) == (
        "NCC430 out: 4 elements of the output out hold bytes that nothing wrote, the first at (0, 5)"
    )


def test_the_shadow_travels_through_arithmetic():
    part = (
        "load = Load DMA x_t:float32[[6,4],[1,6]] <- x:float32[[6,4],[1,6]]",
        "load = Load DMA x_t:float32[[6,3],[1,6]] <- x:float32[[6,3],[1,6]]",
    )
    for line in (
        "i = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]",
        "i = TensorScalar DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] const0=0.0 op0=mult",
        "i = TensorTensor DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]] x_t:float32[[6,4],[1,6]] op=add",
    ):
        assert said(but(part, text=program("", line)), X).startswith(
            "NCC430 y: 6 elements of the output y hold bytes that nothing wrote, the first at (3, 0)"
        )
    # one tainted column of the contraction taints what it is multiplied into
    w, x = w_and_x()
    some = but(
        (
            "i1 = Load DMA x_t:bfloat16[[6,8],[1,6]] <- x:bfloat16[[6,8],[1,6]]",
            "i1 = Load DMA x_t:bfloat16[[6,8],[1,5]] <- x:bfloat16[[6,8],[1,5]]",
        )
    )
    assert "4 elements of the output out" in said(some, w, x)


def test_an_unwritten_byte_that_reaches_nothing_is_no_error():
    text = program("", "i = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]")
    text = text.replace("x_t float32 (4,6)", "x_t float32 (4,7)").replace(
        "x_t SB (4,24)", "x_t SB (4,28)"
    )
    text = text.replace("x_t:float32[[6,4]", "x_t:float32[[7,4]")
    np.testing.assert_array_equal(run(text, X)[0], X)


def test_a_taint_can_be_overwritten():
    text = program(
        "",
        "a = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- z:float32[[6,4],[1,6]]\n"
        "b = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]",
    ).replace("    block", "    set z float32 (4,6) memory=SB\n      loc z SB (4,24)\n    block")
    np.testing.assert_array_equal(run(text, X)[0], X)


# ---- addresses ----------------------------------------------------------------------------------

PLACED = but(
    ("loc w_t SB (8,8)", "loc w_t SB (8,8) allocated=true"),
    ("loc x_t SB (8,12)", "loc x_t SB (8,12) addr=8 allocated=true"),
    ("loc acc PSUM (4,24)", "loc acc PSUM (4,24) addr=2048 bank=1 allocated=true"),
    ("loc out_t SB (4,24)", "loc out_t SB (4,24) addr=24 allocated=true"),
)


def test_placed_bytes_mean_the_same():
    w, x = w_and_x()
    np.testing.assert_array_equal(run(PLACED, w, x)[0], run(TEXT, w, x)[0])
    down = but(("x_t SB (8,12) addr=8", "x_t SB (8,12) addr=8 base=32"), text=PLACED)
    np.testing.assert_array_equal(run(down, w, x)[0], run(TEXT, w, x)[0])


def test_two_locations_on_the_same_bytes_give_wrong_numbers():
    w, x = w_and_x()
    wrong = but(("x_t SB (8,12) addr=8", "x_t SB (8,12) addr=4"), text=PLACED)
    assert not np.array_equal(run(wrong, w, x)[0], run(TEXT, w, x)[0])


def test_reaching_outside_a_location():
    text = but(("<- acc:float32[[6,4],[1,6]]", "<- acc:float32[[6,4],[1,6]]+1"))
    assert said(text, *w_and_x()).startswith("NCC432 i3: i3 reaches outside acc: offset 1")


# ---- PSUM ---------------------------------------------------------------------------------------

MM = "i2 = Matmult PE acc:float32[[6,4],[1,6]] <- x_t:bfloat16[[6,8],[1,6]] w_t:bfloat16[[4,8],[1,4]]"


def flags(*given, text=PLACED):
    """The product as several matmuls into the same place, with these flags."""
    return text.replace(
        MM,
        "\n      ".join(
            f"{MM} accumulation_flag={f}".replace("i2", f"i2.{i}") for i, f in enumerate(given)
        ),
    )


@pytest.mark.parametrize("text", [PLACED, TEXT])
def test_flags_add_up(text):
    w, x = w_and_x()
    once = run(TEXT, w, x)[0]
    for given, times in (((3,), 1), ((1, 6), 2), ((1, 4, 4, 6), 4), ((3, 3), 1)):
        np.testing.assert_array_equal(run(flags(*given, text=text), w, x)[0], times * once)


@pytest.mark.parametrize("text", [PLACED, TEXT])
@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ((1,), "NCC431 i3: i3 reads cells of acc that are open"),
        ((1, 4), "NCC431 i3: i3 reads cells of acc that are open"),
        ((4, 6), "NCC431 i2.0: i2.0 adds to cells of acc that nothing wrote"),
        ((6,), "NCC431 i2.0: i2.0 adds to cells of acc that nothing wrote"),
        ((1, 3), "NCC431 i2.1: i2.1 starts in the bank of acc while a group there is open"),
    ],
)
def test_flags_in_a_wrong_order(given, fault, text):
    assert said(flags(*given, text=text), *w_and_x()) == fault


TWO = """module two gen3
  func sg0000
    set x bfloat16 (4,6) kind=ExternalInput
      loc x DRAM (1,48)
    set y float32 (6,12) kind=ExternalOutput
      loc y DRAM (1,288)
    set x_t bfloat16 (4,6) memory=SB
      loc x_t SB (4,12) allocated=true
    set a float32 (6,6) memory=PSUM
      loc a PSUM (6,24) allocated=true
    set b float32 (6,6) memory=PSUM
      loc b PSUM (6,24) addr=1024 allocated=true
    set y_t float32 (6,12) memory=SB
      loc y_t SB (6,48) addr=16 allocated=true
    block Block1
      load = Load DMA x_t:bfloat16[[6,4],[1,6]] <- x:bfloat16[[6,4],[1,6]]
      a0 = Matmult PE a:float32[[6,6],[1,6]] <- x_t:bfloat16[[6,4],[1,6]] x_t:bfloat16[[6,4],[1,6]] accumulation_flag=1
      b0 = Matmult PE b:float32[[6,6],[1,6]] <- x_t:bfloat16[[6,4],[1,6]] x_t:bfloat16[[6,4],[1,6]] accumulation_flag=4
      a1 = Matmult PE a:float32[[6,6],[1,6]] <- x_t:bfloat16[[6,4],[1,6]] x_t:bfloat16[[6,4],[1,6]] accumulation_flag=6
      b1 = Matmult PE b:float32[[6,6],[1,6]] <- x_t:bfloat16[[6,4],[1,6]] x_t:bfloat16[[6,4],[1,6]] accumulation_flag=6
      ca = TensorCopy DVE y_t:float32[[12,6],[1,6]] <- a:float32[[6,6],[1,6]]
      cb = TensorCopy DVE y_t:float32[[12,6],[1,6]]+6 <- b:float32[[6,6],[1,6]]
      save = Save DMA y:float32[[12,6],[1,12]] <- y_t:float32[[12,6],[1,12]]
      exit = Exit ALL
"""


def test_two_groups_in_one_bank():
    """The second group begins on the zeros that the first one's START left in the bank."""
    x = np.arange(24).reshape(4, 6).astype(BF16)
    wide = 2 * (x.astype(np.float64).T @ x.astype(np.float64))
    np.testing.assert_array_equal(run(TWO, x)[0], np.concatenate([wide, wide], 1))
    again = TWO.replace("[1,6]] accumulation_flag=4", "[1,6]] accumulation_flag=1", 1)
    assert said(again, x) == "NCC431 b0: b0 starts in the bank of b while a group there is open"
    late = TWO.replace("accumulation_flag=1", "accumulation_flag=3", 1)
    late = late.replace("a1 = Matmult PE a", "a1 = Matmult PE b").replace(
        "accumulation_flag=4", "accumulation_flag=3", 1
    )
    # the second START wiped what the first group had finished
    assert said(late, x) == "NCC431 ca: ca reads cells of a that are zeroed"
    other = TWO.replace("loc b PSUM (6,24) addr=1024", "loc b PSUM (6,24) addr=2048 bank=1")
    assert said(other, x) == "NCC431 b0: b0 adds to cells of b that nothing wrote"
    there = TWO.replace("loc b PSUM (6,24) addr=1024", "loc b PSUM (6,24) addr=1024 base=32")
    assert said(there, x) == "NCC431 b0: b0 adds to cells of b that nothing wrote"


TURN = """module turn gen3
  func sg0000
    set x bfloat16 (4,6) kind=ExternalInput
      loc x DRAM (1,48)
    set one bfloat16 (4,4) kind=Const tensor_class=IdentityWeightTensor data=eye:803f
      loc one DRAM (1,32)
    set y bfloat16 (6,4) kind=ExternalOutput
      loc y DRAM (1,48)
    set x_t bfloat16 (4,6) memory=SB
      loc x_t SB (4,12)
    set one_t bfloat16 (4,4) memory=SB
      loc one_t SB (4,8)
    set p float32 (6,4) memory=PSUM
      loc p PSUM (6,16)
    set y_t bfloat16 (6,4) memory=SB
      loc y_t SB (6,8)
    block Block1
      a = Load DMA x_t:bfloat16[[6,4],[1,6]] <- x:bfloat16[[6,4],[1,6]]
      b = Load DMA one_t:bfloat16[[4,4],[1,4]] <- one:bfloat16[[4,4],[1,4]]
      t = Matmult PE p:float32[[4,6],[1,4]] <- one_t:bfloat16[[4,4],[1,4]] x_t:bfloat16[[6,4],[1,6]] is_transpose=true
      c = TensorCopy DVE y_t:bfloat16[[4,6],[1,4]] <- p:float32[[4,6],[1,4]]
      d = Save DMA y:bfloat16[[4,6],[1,4]] <- y_t:bfloat16[[4,6],[1,4]]
      exit = Exit ALL
"""


def test_a_pe_transpose_copies_on_trn2_and_multiplies_on_trn1():
    x = np.arange(24).reshape(4, 6).astype(BF16)
    for target in (TRN1, TRN2):
        np.testing.assert_array_equal(run(TURN, x, target=target)[0], x.T)
    x[2, 3] = np.nan
    copied, multiplied = (run(TURN, x, target=t)[0] for t in (TRN2, TRN1))
    assert np.isnan(copied).sum() == 1 and np.isnan(copied[3, 2])
    assert np.isnan(multiplied[3]).all() and np.isnan(multiplied).sum() == 4
    flagged = TURN.replace("is_transpose=true", "accumulation_flag=3 is_transpose=true")
    np.testing.assert_array_equal(run(flagged, x)[0].T.astype(np.float32), x.astype(np.float32))


def test_a_transposing_dma():
    text = TURN.replace(
        "a = Load DMA x_t:bfloat16[[6,4],[1,6]] <- x:bfloat16[[6,4],[1,6]]",
        "a = DMACopy DMA y_t:bfloat16[[4,6],[1,1],[1,1],[1,4]] <- x:bfloat16[[6,4],[1,1],[1,1],[1,6]] mode=Transpose transpose_op=XZYW",
    )
    lines = [
        line for line in text.split("\n") if not line.lstrip().startswith(("b =", "t =", "c ="))
    ]
    x = np.arange(24).reshape(4, 6).astype(BF16)
    np.testing.assert_array_equal(run("\n".join(lines), x)[0], x.T)


def test_an_opcode_without_a_meaning_is_refused_by_name():
    text = program("", "i = BNGradients DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]")
    assert said(text, X) == "NCC433 i: BNGradients has no meaning here yet; a later issue brings it"


def test_a_declared_type_rounds_the_input():
    text = program("", "i = TensorCopy DVE y_t:float32[[6,4],[1,6]] <- x_t:float32[[6,4],[1,6]]")
    text = text.replace(
        "set x float32 (4,6) kind=ExternalInput",
        "set x float32 (4,6) kind=ExternalInput declared=bfloat16",
    )
    np.testing.assert_array_equal(run(text, X)[0], X.astype(BF16).astype(np.float32))
