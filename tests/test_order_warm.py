"""Weights that stay in the array, each way to forget them, and table loads."""

from __future__ import annotations

from typing import Any

import pytest
from order_programs import TRN2, chip, module, whole

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Module
from ncc.passes import load

SETS = (
    chip("w", "bfloat16", (128, 128), (0,)),
    chip("v", "bfloat16", (128, 128), (0x100,)),
    chip("x", "bfloat16", (128, 64), (0x200,)),
    chip("f", "float32", (128, 128), (0x400,)),
    chip("g", "float32", (128, 64), (0x800,)),
    chip("n", "bfloat16", (32, 32), (0x1000,)),
    chip("m", "bfloat16", (32, 32), (0x1000,), base=32),
    chip("xn", "bfloat16", (32, 64), (0x1200,)),
    chip("xm", "bfloat16", (32, 64), (0x1200,), base=32),
    chip("over", "bfloat16", (128, 8), (0xF8,)),
    chip("p", "float32", (128, 64), (0,), "PSUM"),
    chip("q", "float32", (32, 64), (2048,), "PSUM"),
    chip("r", "float32", (32, 64), (4096,), "PSUM", base=32),
)


def mm(weights: str, dest: str = "p", **keys: Any) -> Inst:
    """A product of whole tiles; `n` and `m` are quadrants of 32 rows."""
    small = weights in ("n", "m")
    dtype = "float32" if weights == "f" else "bfloat16"
    rows, columns = (32, 32) if small else (128, 128)
    moving = {"f": "g", "n": "xn", "m": "xm"}.get(weights, "x")
    ins = whole(moving, dtype, rows, 64), whole(weights, dtype, rows, columns)
    keys = {"accumulation_flag": 3, **keys}
    out = whole(dest, "float32", columns, 64)
    return Inst("", "Matmult", "PE", ins, (out,), tuple(sorted(keys.items())))


def memset(loc: str, engine: str = "DVE") -> Inst:
    dtype = "bfloat16"
    out = whole("over", dtype, 128, 8) if loc == "over" else Ap(loc, dtype, ((128, 1), (1, 1)))
    return Inst("", "Memset", engine, (), (out,))


def warm(*insts: Inst) -> list[bool]:
    """Which of the matmuls find their weights."""
    named = [Inst(f"i{n}", i.opcode, i.engine, i.ins, i.outs, i.keys) for n, i in enumerate(insts)]
    made: Module = load("bir.drop_warm_loads").apply(module(SETS, named), TRN2)
    found = [i for i in made.main.blocks[0].insts if i.opcode == "Matmult"]
    return [dict(i.keys).get("weights_loaded", False) for i in found]


def test_the_same_weights_stay():
    assert warm(mm("w"), mm("w"), mm("w")) == [False, True, True]


def test_other_weights_take_their_place():
    assert warm(mm("w"), mm("v"), mm("w")) == [False, False, False]


def test_two_groups_apart_stay_both():
    assert warm(mm("n", "q"), mm("m", "r"), mm("n", "q"), mm("m", "r")) == [
        False,
        False,
        True,
        True,
    ]


def test_a_group_that_overlaps_is_forgotten():
    assert warm(mm("w"), mm("n", "q"), mm("w")) == [False, False, False]
    assert warm(mm("n", "q"), mm("w"), mm("n", "q")) == [False, False, False]


def test_the_same_rows_in_other_columns_are_another_group():
    sets = {"dest": "r"}
    assert warm(mm("n", "q"), mm("n", **sets), mm("n", "q")) == [False, False, True]


@pytest.mark.parametrize(
    "keys", [{"is_transpose": True}, {"perf_mode": "DoubleRow"}, {"tile_size": (128, 64)}]
)
def test_another_signature_is_another_load(keys: dict[str, Any]):
    assert warm(mm("w"), mm("w", **keys)) == [False, False]


def test_fp32_weights_forget_everything():
    assert warm(mm("f"), mm("f")) == [False, False]
    assert warm(mm("w"), mm("f"), mm("w")) == [False, False, False]


@pytest.mark.parametrize("engine", ["DVE", "Pool"])
def test_a_write_to_the_tile_forgets_it(engine: str):
    assert warm(mm("w"), memset("w", engine), mm("w")) == [False, False]
    assert warm(mm("w"), memset("over", engine), mm("w")) == [False, False]
    assert warm(mm("w"), memset("v", engine), mm("w")) == [False, True]


def test_a_dma_to_the_tile_forgets_it():
    into = whole("w", "bfloat16", 128, 128)
    move = Inst(
        "", "DMACopy", "SP", (whole("v", "bfloat16", 128, 128),), (into,), (("queue", "qSP"),)
    )
    assert warm(mm("w"), move, mm("w")) == [False, False]


def test_each_block_begins_cold():
    named = (Inst("i0", *fields(mm("w"))), Inst("i1", *fields(mm("w"))))
    one = load("bir.drop_warm_loads").apply(module(SETS, list(named[:1])), TRN2)
    two = load("bir.drop_warm_loads").apply(module(SETS, list(named[1:])), TRN2)
    for made in (one, two):
        assert "weights_loaded" not in dict(made.main.blocks[0].insts[0].keys)


def fields(inst: Inst) -> tuple[Any, ...]:
    return inst.opcode, inst.engine, inst.ins, inst.outs, inst.keys


def functions(*funcs: str) -> list[str]:
    """The stream of Activation: functions, and numbers of sets where one is loaded."""
    a = whole("g", "float32", 128, 64)
    insts = [
        Inst(f"i{n}", "LoadActFuncSet", "Activation", keys=(("act_func_set_id", int(f)),))
        if f.isdecimal()
        else Inst(f"i{n}", "Activation", "Activation", (a,), (a,), (("func", f),))
        for n, f in enumerate(funcs)
    ]
    made: Module = load("bir.load_act_tables").apply(module(SETS, insts), TRN2)
    return [
        str(dict(i.keys).get("act_func_set_id", 0))
        if i.opcode == "LoadActFuncSet"
        else dict(i.keys)["func"]
        for i in made.main.blocks[0].insts
        if i.opcode != "Exit"
    ]


def test_tables_are_loaded_once_for_each_run():
    assert functions("Relu", "Copy", "Identity") == ["Relu", "Copy", "Identity"]
    assert functions("Exp", "Relu", "Exp") == ["0", "Exp", "Relu", "Exp"]
    assert functions("Exp", "Ln", "Exp") == ["6", "Exp", "Ln", "Exp"]
    assert functions("Exp", "Tanh", "Ln", "Exp") == ["0", "Exp", "Tanh", "6", "Ln", "Exp"]
    assert functions("Tanh", "Gelu", "Sqrt") == ["10", "Tanh", "Gelu", "3", "Sqrt"]


def test_a_set_that_is_loaded_is_used():
    assert functions("6", "Exp", "Ln") == ["6", "Exp", "Ln"]
    assert functions("6", "Exp", "Sqrt", "Exp") == ["6", "Exp", "3", "Sqrt", "0", "Exp"]
    once = functions("Exp", "Gelu", "Exp")
    assert functions(*once) == once


def test_a_function_without_a_table_is_refused():
    with pytest.raises(NccError, match="NCC605 i0: no table set holds Unknown"):
        functions("Unknown")
