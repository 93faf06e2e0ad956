"""Tiles: the right numbers after every pass, the right instructions, the right memory."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from tiling_programs import PASSES, Program, count, generated, inputs, matmul, through, view

from ncc.errors import NccError
from ncc.interp.penguin import run
from ncc.ir.data import size_of
from ncc.ir.penguin import Axis, ElementwiseOp, Function, Loop, MatMulOp, TileMemsetOp
from ncc.ir.penguin_laws import FACTS, LAWS
from ncc.ir.penguin_text import parse, show
from ncc.ir.penguin_views import views_read
from ncc.ir.tile_reuse import Needs, decide
from ncc.ir.tile_walk import nested, tile_ops
from ncc.target import target

KNOWN = {law.printed: law for law in FACTS}


def agree(function, machine, seed=0):
    """Every pass keeps the numbers, the laws and the facts so far, and prints what reads back."""
    machine = target(machine) if isinstance(machine, str) else machine
    given = inputs(function, seed)
    want = run(function, machine, given)
    facts = set()
    for name in PASSES:
        one = import_module(f"ncc.passes.penguin.{name}").PASS
        done = one.apply(function, machine)
        facts |= set(one.gives)
        for law in (*LAWS, *(KNOWN[x] for x in sorted(facts))):
            for fault in law.check(done, machine):
                raise fault
        if done is function:
            continue
        function = done
        assert parse(show(function)) == function
        for got, wanted in zip(run(function, machine, given), want, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted, f"{name} changed the numbers")
    return function


SHAPES = [(70, 333, 45), (1, 1, 1), (129, 5, 513), (128, 129, 128), (3, 700, 1), (2, 1, 1100)]


@pytest.mark.parametrize("machine", ["trn1", "trn2", "trn2,sbuf=6144,psum=1", "trn1,sbuf=8192"])
@pytest.mark.parametrize("shape", SHAPES)
def test_matmuls_of_all_sizes(shape, machine):
    agree(matmul(*shape, machine), machine)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float8e4", "float8e5", "float8_e4m3fn"])
@pytest.mark.parametrize("machine", ["trn1", "trn2", "trn3"])
def test_matmuls_of_all_dtypes(dtype, machine):
    agree(matmul(40, 150, 30, machine, dtype, "bfloat16"), machine)


@pytest.mark.parametrize("seed", range(400, 432))
def test_generated_programs(seed):
    function, machine = generated(seed)
    agree(function, machine, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_generated_programs(seed):
    function, machine = generated(seed)
    agree(function, machine, seed)


# ---- what the seed matmul becomes ----------------------------------------------------------------


def test_the_seed_matmul_has_four_of_each():
    done = through(matmul(128, 512, 256), "trn2")
    assert count(done) == {
        "TileTransposeOp": 4,
        "TileCopyOp": 4 + 1,
        "MatMulOp": 4,
        "TensorCopyOp": 1,
    }
    (acc,) = [t for t in done.tensors if t.home == "psum"]
    assert (acc.dtype, acc.shape, acc.blocks) == ("float32", (128, 256), 0)


def test_the_seed_matmul_on_trn1_has_four_transposes_by_the_pe_array():
    done = through(matmul(128, 512, 256, "trn1"), "trn1")
    turns = [op for op in tile_ops(done.body) if type(op).__name__ == "TileTransposeOp"]
    assert [op.kind for op in turns] == ["pe"]
    assert count(done)["TileTransposeOp"] == 4
    assert count(done)["TensorCopyOp"] == 4 + 1


def test_more_steps_and_more_banks():
    assert count(through(matmul(128, 640, 256), "trn2"))["MatMulOp"] == 5
    done = through(matmul(128, 512, 768), "trn2")
    (acc,) = [t for t in done.tensors if t.home == "psum"]
    assert acc.shape == (2, 128, 512)
    assert count(done)["MatMulOp"] == 8


def test_a_large_matmul_is_streamed_with_reuse():
    done = through(matmul(4096, 4096, 4096), "trn2")
    assert count(done) == {
        "MatMulOp": 8192,
        "TileTransposeOp": 2048,
        "TileCopyOp": 64 + 256,
        "TensorCopyOp": 256,
    }
    rings = {t.name: t.shape for t in done.tensors if t.ring}
    assert rings["p0_x2"] == (2, 32, 128, 128)
    assert held(done) <= target("trn2").sbuf_usable


def held(function):
    """Bytes per partition of SBUF at the fullest place between the outermost statements."""
    size = {
        t.name: size_of(t.dtype) * math.prod(n for i, n in enumerate(t.shape) if i != t.blocks)
        for t in function.tensors
        if t.home == "sbuf"
    }
    spans = {}
    for at, one in enumerate(function.body):
        for op in tile_ops((one,)):
            for v in (op.dst, *views_read(op)):
                first, _ = spans.get(v.tensor, (at, at))
                spans[v.tensor] = (first, at)
    return max(
        sum(n for name, n in size.items() if spans[name][0] <= at <= spans[name][1])
        for at in range(len(function.body))
    )


@pytest.mark.parametrize("machine", ["trn2,sbuf=6144,psum=1", "trn1,sbuf=6144,psum=2"])
@pytest.mark.parametrize("shape", [(300, 700, 1100), (700, 2000, 129)])
def test_little_memory_is_enough(shape, machine):
    done = through(matmul(*shape, machine, "float32"), machine)
    assert held(done) <= 6144


def test_an_accumulation_holds_nothing_but_its_sum():
    done = through(matmul(300, 300, 600), "trn2")
    for op, loops in nested(done.body):
        if isinstance(op, MatMulOp):
            assert [x.kind for x in loops][-1] == "accumulate"
            assert [x.axis for x in loops if x.kind == "accumulate"] == list(op.accumulate)


# ---- what follows a contraction ------------------------------------------------------------------


def layer(swap, dtype="float32"):
    p = Program()
    x, w = p.input("bfloat16", (8, 70)), p.input("bfloat16", (8, 600))
    bias = p.input("float32", (600,))
    y = p.dot(x, ["k", "m"], w, ["k", "n"], swap=swap)
    part = ["n"] if swap else ["m"]
    s = p.each("add", (y, ["m", "n"]), (bias, ["n"]), axes=["m", "n"], partition=part, dtype=dtype)
    return p.done(p.each("maximum", (s, ["m", "n"]), 0.0, axes=["m", "n"], partition=part))


def kinds(function):
    return [type(op).__name__ for op in tile_ops(function.body)]


def test_a_bias_along_the_columns_is_loaded_once_for_all_rows():
    done = agree(layer(swap=False), "trn2")
    (bias,) = [op for op in tile_ops(done.body) if op.name == "load_p2"]
    assert bias.src.index[0].names() == ("n_w",)
    assert {"TensorTensorOp", "TensorScalarOp"} & set(kinds(done)) == {
        "TensorTensorOp",
        "TensorScalarOp",
    } or "ActivationOp" in kinds(done)


def test_a_bias_along_the_partitions_is_a_column_and_one_instruction_with_relu():
    done = agree(layer(swap=True), "trn2")
    (relu,) = [op for op in tile_ops(done.body) if type(op).__name__ == "ActivationOp"]
    assert (relu.func, relu.engines) == ("Relu", ("Activation",))
    column = done.tensor(relu.bias.tensor)
    assert column.shape[-2:] == (128, 1)


def test_a_value_rounded_in_between_keeps_its_rounding():
    done = agree(layer(swap=True, dtype="bfloat16"), "trn2")
    first = next(k for k in kinds(done) if k in ("TensorScalarOp", "ActivationOp"))
    assert first == "TensorScalarOp"


def test_the_negative_zero_is_no_relu():
    p = Program()
    x = p.input("float32", (4, 8))
    y = p.each("maximum", (x, ["m", "n"]), -0.0, axes=["m", "n"], partition=["m"], own=True)
    done = through(p.done(y), "trn2")
    assert "ActivationOp" not in kinds(done)
    (out,) = run(done, target("trn2"), [np.full((4, 8), -1, np.float32)])
    assert np.signbit(out).all()


def test_a_constant_is_a_memset():
    p = Program()
    p.tensor("z", "float32", (4, 300), kind="output")

    op = ElementwiseOp(
        "z", "copy", view("z", "m", "n"), (2.5,), (Axis("m", 4), Axis("n", 300)), (), ("m",), 0
    )
    done = through(Function("f", tuple(p.tensors.values()), (op,)), "trn2")
    assert any(isinstance(op, TileMemsetOp) for op in tile_ops(done.body))
    assert (run(done, target("trn2"), [])[0] == 2.5).all()


def chain(home, rows=200, machine="trn2"):
    """Two contractions; the second contracts what the first has on its partitions."""
    p = Program(machine)
    x, w = p.input("bfloat16", (90, rows)), p.input("bfloat16", (90, 40))
    v = p.input("bfloat16", (rows, 30))
    h = p.dot(x, ["k", "m"], w, ["k", "n"], "bfloat16", home=home)
    return p.done(p.dot(h, ["k", "m"], v, ["k", "n"]))


def test_a_tensor_at_home_in_sbuf_is_read_where_it_lies():
    done = agree(chain("sbuf"), "trn2")
    (h,) = [t for t in done.tensors if t.name == "d3"]
    assert (h.home, h.shape, h.blocks) == ("sbuf", (2, 128, 40), 1)
    assert not any(op.name.startswith(("load_d3", "store_d3")) for op in tile_ops(done.body))


def test_a_tensor_at_home_in_dram_is_stored_and_loaded():
    done = agree(chain("dram"), "trn2")
    names = [op.name for op in tile_ops(done.body)]
    assert "store_d3" in names and "load_d3" in names


def test_a_reader_that_cuts_elsewhere_sends_the_tensor_through_dram():
    """The first contraction has rows on partitions, the second wants the columns there."""
    p = Program()
    x, w = p.input("bfloat16", (90, 200)), p.input("bfloat16", (90, 40))
    v = p.input("bfloat16", (40, 30))
    h = p.dot(x, ["k", "m"], w, ["k", "n"], "bfloat16", home="sbuf")
    done = agree(p.done(p.dot(h, ["m", "k"], v, ["k", "n"])), "trn2")
    assert done.tensor(h).home == "dram"


def test_mixed_operands_meet_in_fp32():
    p = Program()
    x, w = p.input("bfloat16", (8, 70)), p.input("float32", (8, 60))
    done = agree(p.done(p.dot(x, ["k", "m"], w, ["k", "n"])), "trn2")
    assert any(op.name == "cast_p0_t" for op in tile_ops(done.body))


def test_both_operands_may_be_the_same_sum():
    p = Program()
    x, w = p.input("bfloat16", (8, 70)), p.input("bfloat16", (8, 60))
    y = p.dot(x, ["k", "m"], w, ["k", "n"])
    axes = ["m", "n"]
    done = agree(p.done(p.each("add", (y, axes), (y, axes), axes=axes, partition=["m"])), "trn2")
    (both,) = [op for op in tile_ops(done.body) if type(op).__name__ == "TensorTensorOp"]
    assert [done.tensor(v.tensor).home for v in (both.src0, both.src1)] == ["psum", "sbuf"]


# ---- types, long groups, refusals ----------------------------------------------------------------


def test_fp8fn_is_carried_in_bf16_where_the_target_lacks_it():
    function = matmul(8, 16, 4, "trn2", "float8_e4m3fn")
    done = through(function, "trn2")
    assert {t.declared for t in done.tensors if t.kind == "input"} == {"float8_e4m3fn"}
    assert all(t.dtype != "float8_e4m3fn" for t in done.tensors)
    done = through(function, "trn3")
    assert {t.dtype for t in done.tensors if t.kind == "input"} == {"float8_e4m3fn"}


def test_rounding_to_fp8fn_is_refused_by_name():
    p = Program()
    x = p.input("float32", (4, 8))
    axes = ["m", "n"]
    h = p.each("copy", (x, axes), axes=axes, partition=["m"], dtype="float8_e4m3fn", own=True)
    y = p.each("copy", (h, axes), axes=axes, partition=["m"])
    with pytest.raises(NccError) as said:
        through(p.done(y), "trn2")
    assert str(said.value) == (
        "NCC262 widen-fp8fn, copy0: copy0 rounds its result to float8_e4m3fn, a type that this"
        " target lacks (trn3 has the type; or convert to bf16 in the source)"
    )


@pytest.mark.parametrize("steps", [9, 16, 21, 25])
def test_long_groups_are_split_and_added(steps, monkeypatch):
    monkeypatch.setattr("ncc.passes.penguin.split_acc_groups.LONGEST", 8)
    monkeypatch.setattr("ncc.ir.penguin_tile_laws.LONGEST", 8)
    p = Program()
    x, w = p.input("bfloat16", (128 * steps - 5, 3)), p.input("bfloat16", (128 * steps - 5, 2))
    function = p.done(p.dot(x, ["k", "m"], w, ["k", "n"]))
    before = through(function, p.target, "place_psum")
    done = agree(function, p.target)
    assert list(KNOWN["accumulation-groups-are-short"].check(before, p.target))
    assert count(done)["MatMulOp"] == steps
    assert not list(KNOWN["accumulation-groups-are-short"].check(done, p.target))


@pytest.mark.parametrize("outer", [2, 3, 4])
def test_a_group_whose_inner_loop_is_too_long_is_split_there(outer, monkeypatch):
    monkeypatch.setattr("ncc.passes.penguin.split_acc_groups.LONGEST", 8)
    monkeypatch.setattr("ncc.ir.penguin_tile_laws.LONGEST", 8)
    p = Program()
    x, w = p.input("bfloat16", (outer, 1147, 3)), p.input("bfloat16", (outer, 1147, 2))
    done = agree(p.done(p.dot(x, ["k0", "k1", "m"], w, ["k0", "k1", "n"])), p.target)
    assert count(done)["MatMulOp"] == outer * 9
    assert not list(KNOWN["accumulation-groups-are-short"].check(done, p.target))


def test_short_groups_stay_the_same_object():
    done = through(matmul(70, 333, 45), "trn2", "place_psum")
    one = import_module("ncc.passes.penguin.split_acc_groups").PASS
    assert one.apply(done, target("trn2")) is done


def test_what_is_kept_shrinks_with_the_room():
    def needs(room):
        return Needs(room, 32, 32, 8, False, 256, 1024, 4096, 8, False)

    wide = decide(needs(212_984))
    assert (wide.panel, wide.panel_ring, wide.rows, wide.row_ring) == (4, 1, "row", 2)
    small = decide(needs(65_536))
    assert (small.panel, small.rows) == (1, "row")
    least = decide(needs(8_192))
    assert (least.panel, least.rows, least.tile_ring) == (0, "step", 1)


def test_no_loop_runs_once():
    done = through(matmul(128, 128, 256), "trn2")
    assert not any(isinstance(one, Loop) for one in done.body)


def test_axes_are_named_apart_from_tensors():
    p = Program()
    x = p.tensor("k_o", "bfloat16", (300, 70), kind="input")
    w = p.tensor("n_i", "bfloat16", (300, 600), kind="input")
    done = agree(p.done(p.dot(x, ["k", "m"], w, ["k", "n"])), "trn2")
    assert {op.axis for op in done.body if isinstance(op, Loop)} == {"k_o_", "n_o"}
