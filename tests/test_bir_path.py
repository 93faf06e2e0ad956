"""From tiles to a straight line: one meaning at every stage, laws kept, each stage a program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bir_tiles import matmul
from generate import inputs, program

from ncc import passes
from ncc.errors import NccError
from ncc.front.hlo import parse as parse_hlo
from ncc.interp import bir as interp
from ncc.interp import penguin as tiles
from ncc.ir.bir import Ap, with_insts
from ncc.ir.bir_json import from_json, to_json
from ncc.ir.bir_opcodes import key
from ncc.ir.bir_text import parse, show
from ncc.ir.data import numpy_type
from ncc.ir.penguin import Tensor
from ncc.numerics import cast
from ncc.passes.bir import unroll
from ncc.rules.bir import BOUND, PROGRAM, TILES
from ncc.stages import Stage, level
from ncc.target import TARGETS
from ncc.verify import Verifier

MINE = ("penguin_to_bir", "bind_memlocs", "finalize_insts", "lower_ac", "unroll", "bir_dce")
TRN2 = TARGETS["trn2"]


def steps(module, target=TRN2):
    """(pass, module) after each pass of this part, laws and facts asked."""
    verifier, facts = Verifier(), set()
    for name in MINE:
        one = passes.load(f"bir.{name}")
        module = one.apply(module, target)
        facts |= set(one.gives)
        verifier.check(Stage("bir", target, one.name, tuple(sorted(facts)), module))
        yield one.name, module


def drawn(func, random=True):
    rng = np.random.default_rng(0)
    given = []
    for tensor in func.tensors:
        if tensor.kind == "input":
            values = (
                rng.standard_normal(tensor.shape) if random else rng.integers(-4, 5, tensor.shape)
            )
            given.append(cast(values.astype(np.float32), tensor.dtype))
    return given


@pytest.mark.parametrize("target", ["trn1", "trn2"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"m": 70, "k": 333, "n": 45},
        {"m": 200, "k": 130, "n": 600, "relu": "ACT"},
        {"m": 130, "k": 140, "n": 20, "turn": "pe", "relu": "DVE"},
        {"m": 9, "k": 300, "n": 11, "dtype": "float32", "turn": "pe"},
        {"m": 33, "k": 129, "n": 3, "dtype": "float8e4", "turn": "pe", "result": "bfloat16"},
        {"m": 1, "k": 1, "n": 1},
    ],
)
def test_every_stage_means_the_same(given, target):
    func, machine = matmul(**given), TARGETS[target]
    arrays = drawn(func)
    (want,) = tiles.run(func, machine, arrays)
    for name, module in steps(func, machine):
        assert parse(show(module)) == module, name
        assert from_json(to_json(module)) == module, name
        (got,) = interp.run(module, machine, arrays)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, name)


def test_whole_numbers_are_numpys():
    func = matmul(m=70, k=333, n=45, relu="ACT")
    lhs, rhs = drawn(func, random=False)
    want = np.maximum(lhs.astype(np.float64) @ rhs.astype(np.float64), 0)
    *_, (_, module) = steps(func)
    np.testing.assert_array_equal(interp.run(module, TRN2, [lhs, rhs])[0], want)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("target", ["trn1", "trn2"])
def test_generated_programs(seed, target):
    """Through the whole front end, then every stage of this part against the last Penguin stage."""
    text = program(seed, dtype="bf16" if seed % 2 else "f32", small=True)
    module, machine = parse_hlo(text, "g.hlo"), TARGETS[target]
    for entry in passes.called().values():
        module = passes.load(entry).apply(module, machine)
        if entry == "penguin.split_acc_groups":
            break
    arrays = inputs(text, seed)
    want = tiles.run(module, machine, arrays)
    for name, stage in steps(module, machine):
        for got, wanted in zip(interp.run(stage, machine, arrays), want, strict=True):
            np.testing.assert_array_equal(got, wanted, name)


def test_the_seed_program_unrolled():
    *_, (_, module) = steps(matmul())
    insts = module.main.blocks[0].insts
    names = [inst.name for inst in insts]
    assert names[:4] == ["turn.0", "load_r.0", "turn.1", "load_r.1"]
    products = [inst for inst in insts if inst.opcode == "Matmult"]
    assert [key(x, "accumulate") for x in products] == [False, True, True, True]
    assert {x.outs[0].loc for x in products} == {"acc"}
    turns = [x for x in insts if x.opcode == "DMACopy"]
    assert turns[1].ins[0] == Ap("lhs", "bfloat16", ((512, 128), (1, 1), (1, 1), (1, 128)), 128)
    assert turns[1].outs[0] == Ap("lhs_t_1", "bfloat16", ((128, 128), (1, 1), (1, 1), (1, 128)))
    assert [key(x, "transpose_op") for x in turns] == ["XZYW"] * 4
    assert insts[-1].opcode == "Exit" and insts[-1].engine == "ALL"


def test_without_a_transposing_dma_the_source_is_walked_in_the_results_order():
    *_, (_, module) = steps(matmul(), TARGETS["trn1"])
    first = module.main.blocks[0].insts[0]
    assert first.opcode == "Load"
    assert first.ins[0].ap == ((1, 128), (512, 128))
    assert first.outs[0].ap == ((128, 128), (1, 128))


def test_a_pe_transpose_gets_one_identity():
    *_, (_, module) = steps(matmul(m=130, k=140, n=20, turn="pe"))
    sets = {of.name: of for of in module.main.sets}
    identity = sets["identity_bfloat16"]
    assert identity.kind == "Const" and identity.tensor_class == "IdentityWeightTensor"
    assert np.array_equal(identity.data.array(), np.eye(128, dtype=numpy_type("bfloat16")))
    insts = module.main.blocks[0].insts
    assert insts[0].opcode == "Load" and insts[0].ins[0].loc == "identity_bfloat16"
    turns = [x for x in insts if x.opcode == "Matmult" and key(x, "is_transpose")]
    assert {x.ins[0].loc for x in turns} == {"identity_bfloat16_sb"}
    # rows and columns beyond the tile are not touched
    assert {(x.ins[0].ap[0][1], x.ins[0].ap[1][1]) for x in turns} == {(128, 128), (2, 2)}


def test_engines_share_the_work():
    """Two equal copies in a loop: one each; what only one engine can do counts for it."""
    func = matmul(m=130, k=140, n=20, turn="pe")
    module = dict(steps(func))["finalize-insts"]
    text = show(module)
    assert "back = TensorCopy DVE" in text
    assert "evict = TensorCopy Activation" in text


def test_unrolled_names_are_unique_even_when_they_clash():
    text = TILES.replace("store = ", '"load.0" = ').split("\n", 1)[1]
    module = parse(text)
    for name in MINE[1:5]:
        module = passes.load(f"bir.{name}").apply(module, TRN2)
    names = [inst.name for inst in module.main.blocks[0].insts]
    assert names == ["load.0", "load.0.0", "load.1", "load.0.1", "exit"]
    text = TILES.replace("axis=(i,0,2,1)", "axis=(i,0,1,1)")
    module = parse(text.replace("store =", "load =").split("\n", 1)[1])
    for name in MINE[1:5]:
        module = passes.load(f"bir.{name}").apply(module, TRN2)
    assert [inst.name for inst in module.main.blocks[0].insts] == ["load", "load_", "exit"]


def test_equal_operands_are_one_object():
    *_, (_, module) = steps(matmul(m=256, k=512, n=1024))
    found = {}
    for inst in module.main.blocks[0].insts:
        for operand in inst.outs:
            found.setdefault((inst.name.split(".")[0], operand), set()).add(id(operand))
    assert all(len(ids) == 1 for ids in found.values())


def test_the_budget_of_instructions(monkeypatch):
    monkeypatch.setattr(unroll, "MOST_INSTRUCTIONS", 5)
    module = parse(BOUND.split("\n", 1)[1].replace("(i,0,2,1)", "(i,0,3,1)"))
    with pytest.raises(NccError) as found:
        passes.load("bir.unroll").apply(module, TRN2)
    assert str(found.value) == (
        "NCC415 unroll, sg0000: unrolling @sg0000 gives more than 5 instructions (make the "
        "tiles larger, so that loops have fewer rounds)"
    )


def test_passes_with_nothing_to_do_return_the_same_object():
    module = parse(PROGRAM.split("\n", 1)[1])
    assert passes.load("bir.bir_dce").apply(module, TRN2) is module


def test_dead_chains_go_at_once_and_outputs_stay():
    module = parse(PROGRAM.split("\n", 1)[1])
    insts = module.main.blocks[0].insts
    cut = with_insts(module, (*insts[:4], insts[5]))  # nothing is saved
    kept = passes.load("bir.bir_dce").apply(cut, TRN2)
    assert [inst.opcode for inst in kept.main.blocks[0].insts] == ["Exit"]
    assert [of.name for of in kept.main.sets] == ["w", "x", "out"]


@pytest.mark.parametrize(
    ("opcode", "func", "said"),
    [
        ("bind_memlocs", TILES.replace("x_t[i,p", "x_t[i,2*p"), "walks partitions by [6,3]"),
        (
            "lower_ac",
            BOUND.replace("memory=SB", "memory=PSUM").replace("x_t SB", "x_t PSUM"),
            "NCC412 lower-ac, load: copies x in DRAM to x_t in PSUM; no DMA reaches PSUM (copy through SBUF)",
        ),
        (
            "lower_ac",
            BOUND.replace("x_t():float32", "x_t():int32"),
            "NCC413 lower-ac, load: a DMA copies float32 to int32, and converts nothing",
        ),
    ],
)
def test_refusals(opcode, func, said):
    with pytest.raises(NccError) as found:
        passes.load(f"bir.{opcode}").apply(parse(func.split("\n", 1)[1]), TRN2)
    assert said in str(found.value)


def test_a_home_that_is_no_memory():
    func = matmul(m=3, k=4, n=5)
    odd = [*func.tensors[:-1], Tensor("out_t", "float32", (128, 5), home="stream")]
    bad = type(func)(func.name, tuple(odd), func.body)
    with pytest.raises(NccError) as found:
        passes.load("bir.penguin_to_bir").apply(bad, TRN2)
    assert str(found.value) == (
        "NCC410 penguin-to-bir, out_t: the tensor is at home in stream, no memory of the machine"
    )


def test_rings_with_several_block_dimensions():
    """Two buffers, chosen modulo, beside another block dimension."""
    text = TILES.replace(
        "x_t float32 (2,3,3) memory=SB partition_dim=1",
        "x_t float32 (2,2,3,3) memory=SB partition_dim=2 ring=true",
    )
    text = text.replace("set x float32 (6,3)", "set x float32 (12,3)").replace(
        "set y float32 (6,3)", "set y float32 (12,3)"
    )
    text = text.replace("(i,0,2,1)", "(i,0,4,1)").replace("x_t[i,p", "x_t[(i)//2,(i)%2,p")
    module = parse(text.split("\n", 1)[1])
    x = np.arange(36, dtype=np.float32).reshape(12, 3)
    for name in MINE[1:]:
        module = passes.load(f"bir.{name}").apply(module, TRN2)
        np.testing.assert_array_equal(interp.run(module, TRN2, [x])[0], x)
    locs = [inst.outs[0].loc for inst in module.main.blocks[0].insts if inst.opcode == "Load"]
    assert locs == ["x_t_0", "x_t_1", "x_t_2", "x_t_3"]


def test_signature():
    module = parse(PROGRAM.split("\n", 1)[1])
    ins, outs = level("bir").get("signature")(module)
    assert ins == (("w", "bfloat16", (8, 4)), ("x", "bfloat16", (8, 6)))
    assert outs == (("out", "float32", (4, 6)),)
    assert math.prod(outs[0][2]) == 24
