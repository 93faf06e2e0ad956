"""lower-select and check-dve-profile: what they make of programs, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from memory_programs import TRN1, TRN2, Program, insts, same

from ncc import nki
from ncc.encode.records import ENCODERS
from ncc.errors import NccError
from ncc.ir.bir import Imm
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.dve_profiles import profiles
from ncc.nki import isa as nisa
from ncc.nki import language as nl
from ncc.passes.bir import check_dve_profile, lower_select
from ncc.target import TARGETS


def selects(out="y", on_false="b", mask="m"):
    p = Program()
    for name, dtype in (("mx", "uint8"), ("ax", "float32"), ("bx", "bfloat16")):
        p.dram(name, (4, 8), dtype, kind="ExternalInput")
        p.tile(name[0], 4, 8, dtype)
        p.load(name[0], name)
    p.dram("yx", (4, 8), kind="ExternalOutput")
    p.tile("y", 4, 8)
    p.op("Select", "DVE", [out], [mask, "a", on_false])
    p.save("yx", out)
    return p.module()


@pytest.mark.parametrize("on_false", ["b", Imm(-2.5), "y", "a"])
def test_a_select_becomes_two_copies(on_false):
    module = selects(on_false="b" if on_false == "y" else on_false)
    if on_false == "y":
        module = selects(out="b", on_false="b")
    after = lower_select.PASS.run(module, TRN2)
    names = [i.opcode for i in insts(after)]
    first = {"y": [], "b": ["TensorCopy"], "a": ["TensorCopy"]}.get(on_false, ["Memset"])
    assert names[3:-1] == [*first, "CopyPredicated"]
    assert insts(after)[-2].name == "i3"
    assert on_false == "y" or same(module, after)
    assert lower_select.PASS.run(after, TRN2) is after


def test_a_result_on_its_own_operands_is_refused():
    with pytest.raises(NccError) as said:
        lower_select.PASS.run(selects(out="a"), TRN2)
    assert str(said.value) == (
        "NCC439 lower-select, i3: writes its result over its tensor for true, which it still reads "
        "then (write to another tile)"
    )


@nki.jit
def masked(x, m):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    data = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    mask = nl.ndarray(m.shape, m.dtype, buffer=nl.sbuf)
    held = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(data, x)
    nisa.dma_copy(mask, m)
    nisa.select_reduce(dst=held, predicate=mask, on_true=data, on_false=-3.0)
    nisa.dma_copy(out, held)
    return out


def test_a_kernel_chooses_symbolically_until_the_pass(monkeypatch):
    from ncc.driver import compile
    from ncc.nki.binding import bind
    from ncc.nki.running import stage_of

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    m = (x % 3 == 0).astype(np.uint8)
    bound = bind(masked.func, (x, m), {}, TRN1)
    before = compile(stage_of(masked.specialisation(bound, TRN1)), stop_after="unroll")
    count = sum(i.opcode == "Select" for i in insts(before.module))
    assert count == 1
    after = compile(before, stop_after="lower-select")
    assert not any(i.opcode == "Select" for i in insts(after.module))
    assert sum(i.opcode == "CopyPredicated" for i in insts(after.module)) == 1
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    assert np.array_equal(masked(x, m), np.where(m, x, -3.0))


def test_a_profile_has_what_has_records():
    """The table and the encoders agree, for each generation."""
    for target in TARGETS.values():
        (one,) = profiles(target.level)
        assert one == {
            name
            for name, row in OPCODES.items()
            if name in ENCODERS
            and "DVE" in row.engines
            and "SP" not in row.engines
            and row.level <= target.level
        }


def test_what_no_profile_has_is_refused():
    p = Program()
    for name in "abc":
        p.tile(name, 4, 8)
    p.op("Memset", "DVE", ["a"], [])
    p.op("GenericRelu", "DVE", ["b"], ["a"])
    p.op("BNGradients", "DVE", ["c"], ["a", "b"])
    module = p.module()
    with pytest.raises(NccError) as said:
        check_dve_profile.PASS.run(module, TRN2)
    assert str(said.value) == "NCC609 i1: no profile of DVE on trn2 has BNGradients and GenericRelu"
    p = Program()
    p.tile("a", 4, 8)
    p.op("Memset", "DVE", ["a"], [])
    module = p.module()
    assert check_dve_profile.PASS.run(module, TRN2) is module
