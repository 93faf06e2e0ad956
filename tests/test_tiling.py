"""The primitives of tiling, by the golden examples and by what must hold for any list."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiling_programs import matmul, through, view

from ncc.ir.affine import Affine, Least
from ncc.ir.penguin import Axis, ElementwiseOp, Function, Tensor
from ncc.ir.penguin_laws import FACTS
from ncc.ir.tiling import compute_cut, counter, cut_axes, cut_list, free_budget, radix, walk
from ncc.target import TARGETS

GOLDEN = [
    ([4, 2, 2, 2, 128], (4, 16)),
    ([4, 2, 2, 2, 8], (None, None)),
    ([8192, 2], (0, 512)),
    ([448, 16], (0, None)),
    ([16, 8192], (1, 32)),
    ([], (None, None)),
]
EXTENTS = st.lists(st.integers(1, 700), max_size=4)


@pytest.mark.parametrize(("extents", "cut"), GOLDEN)
def test_compute_cut_does_the_golden_examples(extents, cut):
    assert compute_cut(extents, 512) == cut


def test_cut_axes_does_the_golden_examples():
    axes = [("a", 2), ("b", 4), ("c", 8)]

    def extents(*args, **more):
        return tuple([n for _, n in part] for part in cut_axes(axes, *args, **more))

    assert extents(1, 2) == ([2, 8], [2, 2])
    assert extents(1, 2, swap=True) == ([2, 2], [2, 8])
    assert extents(1, None) == ([8], [2, 4])
    assert extents(None, None) == ([], [2, 4, 8])


def test_uniform_tiles_divide_their_axis():
    assert compute_cut([333], 128) == (0, 128)
    assert compute_cut([333], 128, uniform=True) == (0, 111)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(EXTENTS, st.sampled_from([1, 32, 128, 512]))
def test_a_cut_keeps_the_budget_and_covers_every_element_once(extents, budget):
    axes = [(f"a{i}", n) for i, n in enumerate(extents)]
    cut = cut_list("free", axes, budget)
    steps = walk(cut, dict(axes))
    assert math.prod(n if isinstance(n := a.extent, int) else n.most for a in steps.tiles) <= budget
    if math.prod(extents) > 3_000:
        return
    seen = set()
    loops = [
        dict(zip([s.loop for s in steps.loops], at, strict=True))
        for at in grid([s.trips for s in steps.loops])
    ]
    for env in loops:
        sizes = [a.extent if isinstance(a.extent, int) else a.extent.at(env) for a in steps.tiles]
        for at in grid(sizes):
            here = env | dict(zip([a.name for a in steps.tiles], at, strict=True))
            seen.add(tuple(steps.where[name].at(here) for name, _ in axes))
    assert len(seen) == math.prod(extents)


def grid(sizes):
    found = [()]
    for n in sizes:
        found = [(*at, i) for at in found for i in range(n)]
    return found


def test_the_last_tile_is_shorter():
    steps = walk(cut_list("partition", [("m", 333)], 128), {"m": 333})
    assert steps.trips == (("m_o", 3),)
    assert steps.tiles == (Axis("m_i", Least(128, Affine(333, (("m_o", -128),)))),)
    assert str(steps.where["m"]) == "m_i+128*m_o"


def test_a_tile_and_loops_count_as_digits():
    assert str(radix((Axis("a", 3), Axis("b", 64)))) == "64*a+b"
    assert str(counter((("p", 2), ("m", 5)))) == "m+5*p"


def test_the_free_budget_is_a_bank_where_memory_allows():
    trn2 = TARGETS["trn2"]
    assert free_budget(trn2) == 512
    assert free_budget(trn2.limited(sbuf=6144)) == 128
    assert free_budget(trn2.limited(sbuf=64)) == 2


# ---- the two cuts of the lab ---------------------------------------------------------------------

LAWS = {law.printed: law for law in FACTS}


def faults(function, fact, machine="trn2"):
    return [str(x) for x in LAWS[fact].check(function, TARGETS[machine])]


def cuts(function, name):
    op = next(op for op in function.body if op.name == name)
    return {c.role: (c.loops, c.tiles, c.axis, c.tile) for c in op.cuts}


def test_a_contraction_gets_three_cuts():
    done = through(matmul(70, 333, 600), "trn2", "tile_contract")
    assert cuts(done, "dot1") == {
        "contract": (("k_o",), ("k_i",), "k", 128),
        "stationary": ((), ("m",), "", 0),
        "moving": (("n_o",), ("n_i",), "n", 512),
    }
    for fact in ("partition-tiles-fit", "free-tiles-fit", "contractions-are-tiled"):
        assert not faults(done, fact)


def test_a_group_shares_the_earliest_cut():
    """The contraction loops over its batch axis, so the op after it may not have it in a tile."""
    from tiling_programs import Program

    p = Program()
    x, w = p.input("bfloat16", (3, 8, 70)), p.input("bfloat16", (3, 8, 40))
    y = p.dot(x, ["b", "k", "m"], w, ["b", "k", "n"])
    z = p.each("maximum", (y, ["b", "m", "n"]), 0.0, axes=["b", "m", "n"], partition=["m"])
    done = through(p.done(z), p.target, "tile_contract")
    assert cuts(done, "maximum1")["free"] == (("b",), ("n",), "", 0)


def elementwise(cuts_):
    x = Tensor("x", "float32", (300, 8), "input", "dram")
    y = Tensor("y", "float32", (300, 8), "output", "dram")
    axes = (Axis("p", 300), Axis("c", 8))
    op = ElementwiseOp(
        "y", "maximum", view("y", "p", "c"), (view("x", "p", "c"), 0.0), axes, (), ("p",), 0, cuts_
    )
    return Function("f", (x, y), (op,))


def test_a_wrong_cut_is_named():
    good = through(elementwise(()), "trn2", "cut_partition")
    (cut,) = good.body[0].cuts
    assert not faults(good, "partition-tiles-fit")
    wide = elementwise((attrs.evolve(cut, tile=129),))
    assert faults(wide, "partition-tiles-fit") == [
        "NCC260 y: its partition tile has 129 elements, and 128 fit"
        " (cut p so that a tile has at most 128)"
    ]
    short = elementwise((attrs.evolve(cut, loops=()),))
    assert (
        "the loops and tiles of its partition cut walk p_i"
        in faults(short, "partition-tiles-fit")[0]
    )
    none = elementwise(())
    assert faults(none, "partition-tiles-fit") == ["NCC260 y: its partition axes are not cut"]


def test_only_contracted_axes_may_accumulate():
    done = through(matmul(70, 333, 600), "trn2", "tile_contract")
    op = done.body[1]
    first = attrs.evolve(op.cuts[0], loops=("m", "k_o"))
    wrong = attrs.evolve(done, body=(done.body[0], attrs.evolve(op, cuts=(first, *op.cuts[1:]))))
    assert faults(wrong, "only-contraction-axes-accumulate") == [
        "NCC265 dot1: m accumulates, and is not contracted"
    ]
