"""Registers and branches, from blocks of BIR to the displacements of their bundles."""

from __future__ import annotations

import numpy as np
import pytest

from ncc import passes
from ncc.encode.text import show as listing
from ncc.errors import NccError
from ncc.interp.bir import run as meaning
from ncc.ir.bir_reader import Reader
from ncc.ir.bir_text import show
from ncc.ir.neff import Neff
from ncc.sim.run import run_isa, run_neff
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
HEAD = """module m gen3
  queue qSP SP semaphore=12
  func sg0000
    set n int32 (1,2) kind=ExternalInput
      loc n DRAM (1,8) allocated=true
    set x float32 (8,4) kind=ExternalInput
      loc x DRAM (1,128) allocated=true
    set y float32 (8,4) kind=ExternalOutput
      loc y DRAM (1,128) allocated=true
    set t float32 (8,4) memory=SB
      loc t SB (8,16) allocated=true
    set c int32 (1,2) memory=SB
      loc c SB (1,8) addr=64 allocated=true
"""
T = "t:float32[[4,8],[1,4]]"
# t := 2 t + 1 as often as n says; the register counts down; SP stands aside and waits for the end
LOOP = f"""    block Block1
      l0 = Load SP {T} <- x:float32[[4,8],[1,4]] queue=qSP update qSP+16(12)
      l1 = Load SP c:int32[[2,1],[1,2]] <- n:int32[[2,1],[1,2]] queue=qSP update qSP+16(12)
      m0 = EventSemaphore DVE wait qSP>=2(12>=32)
      m1 = TensorLoad DVE %turns:int32 <- c:int32[[2,1],[1,1]]
      b1 = CompareAndBranch DVE <- %turns:int32 0:int32 comp_op=IS_LEIMM on_false=body on_true=done
    block body
      a1 = TensorScalar DVE {T} <- {T} const0=2.0 const1=1.0 op0=mult op1=add
      a2 = RegisterAlu DVE %turns:int32 <- %turns:int32 1:int32 op=subtract
      b2 = CompareAndBranch DVE <- %turns:int32 0:int32 comp_op=IS_GTIMM on_false=done on_true=body
    block done
      n1 = NoOp DVE update DVE+1(3)
      s1 = Save SP y:float32[[4,8],[1,4]] <- {T} queue=qSP wait DVE>=1(3>=1) update qSP+16(12)
      e0 = EventSemaphore SP wait qSP>=3(12>=48)
      e1 = Exit DVE
      e2 = Exit SP
"""


def both(text: str, *inputs: np.ndarray) -> np.ndarray:
    module = Reader(text, "", 1).module()
    assert Reader(show(module), "", 1).module() == module
    (wanted,) = meaning(module, TRN2, inputs)
    program = passes.load("output.encode").apply(module, TRN2)
    (got,) = run_isa(program, TRN2, inputs)
    np.testing.assert_array_equal(got, wanted)
    neff = passes.load("output.pack").apply(program, TRN2)
    assert isinstance(neff, Neff)
    for seed in (0, 1):
        np.testing.assert_array_equal(run_neff(neff, TRN2, inputs, seed=seed)[0], wanted)
    return wanted


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_turns_as_often_as_memory_says(turns):
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    want = x
    for _ in range(turns):
        want = want * 2 + 1
    got = both(HEAD + LOOP, np.array([[turns, 9]], np.int32), x)
    np.testing.assert_array_equal(got, want)


def test_branches_are_bytes_and_the_next_block_needs_none():
    module = Reader(HEAD + LOOP, "", 1).module()
    text = listing(passes.load("output.encode").apply(module, TRN2))
    lines = [x.strip() for x in text.split("stream DVE\n")[1].split("stream")[0].splitlines()]
    first, back = (x for x in lines if x.startswith("CompareAndBranch"))
    # on to `done`, over the body; the body's own branch goes back two bundles
    assert "compare=2" in first and f"target={64 * 4}" in first
    assert "compare=6" in back and "target=-128" in back


def test_a_true_way_that_comes_next_is_negated():
    text = LOOP.replace(
        "comp_op=IS_LEIMM on_false=body on_true=done", "comp_op=IS_GTIMM on_false=done on_true=body"
    )
    x = np.ones((8, 4), np.float32)
    assert both(HEAD + text, np.array([[3, 0]], np.int32), x)[0, 0] == 15
    module = Reader(HEAD + text, "", 1).module()
    assert "compare=2" in listing(passes.load("output.encode").apply(module, TRN2))


ALU = f"""    block Block1
      l0 = Load SP {T} <- x:float32[[4,8],[1,4]] queue=qSP update qSP+16(12)
      l1 = Load SP c:int32[[2,1],[1,2]] <- n:int32[[2,1],[1,2]] queue=qSP update qSP+16(12)
      m0 = EventSemaphore SP wait qSP>=2(12>=32)
      m1 = TensorLoad SP %a:int32 <- c:int32[[2,1],[1,1]]
      m2 = TensorLoad SP %b:int32 <- n:int32[[2,1],[1,1]]+1
      m3 = RegisterMove SP %k:int32 <- 7:int32
      m4 = RegisterMove SP %d:int32 <- %k:int32
      {{lines}}
      w1 = TensorSave SP t:int32[[4,1],[1,1]] <- %a:int32
      w2 = TensorSave SP t:int32[[4,1],[1,1]]+1 <- -5:int32
      s1 = Save SP y:float32[[4,8],[1,4]] <- {T} queue=qSP update qSP+16(12)
      e0 = EventSemaphore SP wait qSP>=3(12>=48)
      e2 = Exit SP
"""


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("add", lambda a, b: a + b),
        ("subtract", lambda a, b: a - b),
        ("mult", lambda a, b: a * b),
        ("max", max),
        ("min", min),
        ("bitwise_xor", lambda a, b: a ^ b),
        ("is_lt", lambda a, b: int(a < b)),
        ("logical_shift_left", lambda a, b: a << b),
    ],
)
def test_registers_compute(op, want):
    a, b = -1_900_000_001, 13
    lines = (
        f"r1 = RegisterAlu SP %a:int32 <- %a:int32 %b:int32 op={op}\n"
        "      r2 = RegisterAlu SP %a:int32 <- %a:int32 %d:int32 op=add\n"
        "      r3 = RegisterAlu SP %a:int32 <- 100:int32 %a:int32 op=subtract"
    )
    got = both(
        HEAD + ALU.format(lines=lines), np.array([[a, b]], np.int32), np.zeros((8, 4), np.float32)
    )
    found = got.view(np.int32)[0]
    assert found[0] == np.array(100 - (want(a, b) + 7), np.int64).astype(np.int32)
    assert found[1] == -5


def test_what_no_branch_may_do():
    x = [np.array([[1, 0]], np.int32), np.ones((8, 4), np.float32)]
    for text, said in (
        (
            LOOP.replace("on_true=done", "on_true=gone"),
            "NCC607 .*branches to gone, which is no block",
        ),
        (LOOP.replace("IS_GTIMM", "Unsupported"), "NCC606 b2: compares by Unsupported"),
    ):
        module = Reader(HEAD + text, "", 1).module()
        with pytest.raises(NccError, match=said):
            passes.load("output.encode").apply(module, TRN2)
    module = Reader(
        HEAD + LOOP.replace("      m1 = TensorLoad DVE %turns:int32 <- c:int32[[2,1],[1,1]]\n", ""),
        "",
        1,
    ).module()
    with pytest.raises(NccError, match=r"NCC430 .*reads register turns, which nothing wrote"):
        meaning(module, TRN2, x)
    with pytest.raises(NccError, match=r"NCC903 .*register 0 is read before"):
        run_isa(passes.load("output.encode").apply(module, TRN2), TRN2, x)
