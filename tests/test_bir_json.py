"""BIR as JSON: equal on the way there and back, one canonical text, and nothing unknown accepted."""

from __future__ import annotations

import json

import pytest
from bir_programs import insts, modules
from hypothesis import given, settings

from ncc.errors import NccError
from ncc.ir.bir import Block, Function, Module
from ncc.ir.bir_json import document, from_json, to_json
from ncc.ir.bir_text import parse
from ncc.rules.bir import BOUND, PROGRAM, TILES


@settings(max_examples=150, derandomize=True, deadline=None)
@given(insts(0))
def test_every_instruction_reads_back(inst):
    module = Module("m", "gen3", (Function("f", (), (Block("b", (inst,)),)),))
    assert from_json(to_json(module)) == module


@settings(max_examples=25, derandomize=True, deadline=None)
@given(modules())
def test_every_module_reads_back(module):
    names = [func.name for func in module.functions]
    if "main" in names[1:]:
        return  # `main` is moved to the front
    text = to_json(module)
    read = from_json(text)
    assert read == module
    assert to_json(read) == text


@pytest.mark.parametrize("text", [PROGRAM, TILES, BOUND])
def test_every_stage_reads_back(text):
    module = parse(text.split("\n", 1)[1])
    assert from_json(to_json(module)) == module


def test_the_text_is_canonical():
    text = to_json(parse(PROGRAM.split("\n", 1)[1]))
    assert text.endswith("}\n")
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_a_matmul_spells_its_thirteen_keys():
    made = document(parse(PROGRAM.split("\n", 1)[1]))
    matmult = made["functions"][0]["blocks"][0]["instructions"][2]
    header = {
        *("engine", "engine_id", "ins", "name", "opcode", "optin_passes", "origin", "outs"),
        *("scheduled_end", "scheduled_start"),
    }
    assert len(set(matmult) - header) == 13
    assert matmult["tile_size"] == [-1, -1]
    assert matmult["ins"][0]["memsetref"] == "x_t"
    assert matmult["ins"][0]["access_shape"] == [8, 6]


def worked_example():
    """A product of one tile, as the format's own example writes it (values of ours)."""
    return {
        "arch": "gen3",
        "attributes": {"neuron_core_id": 0},
        "functions": [
            {
                "allocations": [
                    located("lhsT", "bfloat16", [128, 128], [128, 256], "SB"),
                    located("rhs", "bfloat16", [128, 256], [128, 512], "SB"),
                    located("acc", "float32", [128, 256], [128, 1024], "PSUM"),
                ],
                "attributes": [],
                "blocks": [
                    {
                        "name": "Block1",
                        "instructions": [
                            {
                                "accumulation_flag": 3,
                                "dependencies": [["load_rhs", "Flow"], "load_lhs"],
                                "engine": "PE",
                                "engine_id": 0,
                                "ins": [pattern("rhs", 256), pattern("lhsT", 128)],
                                "name": "mm_0",
                                "opcode": "Matmult",
                                "optin_passes": [],
                                "origin": "Penguin",
                                "outs": [pattern("acc", 256, "float32")],
                                "perf_mode": "None",
                                "scheduled_end": 0,
                                "scheduled_start": 0,
                            }
                        ],
                    }
                ],
                "name": "sg0000",
            }
        ],
        "version": 2,
    }


def located(name, dtype, shape, dims, memory):
    location = {
        "Skind": "memory_location",
        "addr": 0,
        "allocated": True,
        "bank": 0,
        "base": 0,
        "dims": dims,
        "name": name,
        "pinned": False,
        "tensor_id": 0,
        "type": memory,
    }
    return {
        "Skind": "memory_location_set",
        "addr_space": "Local",
        "dtype": dtype,
        "kind": "Internal",
        "memorylocations": [location],
        "name": f"{name}_set",
        "partition_dim": 0,
        "tensor_class": "NeuronWeightTensor",
        "tensor_shape": shape,
    }


def pattern(loc, width, dtype="bfloat16"):
    return {
        "access_shape": [128, width],
        "ap": [[width, 128], [1, width]],
        "dtype": dtype,
        "kind": "physical_ap",
        "memref": loc,
        "memsetref": f"{loc}_set",
        "offset": 0,
    }


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_worked_document_loads(wrapped):
    given = {"module": worked_example()} if wrapped else worked_example()
    module = from_json(json.dumps(given))
    (inst,) = module.main.blocks[0].insts
    assert inst.keys == (("accumulation_flag", 3),)
    assert inst.deps == (("load_rhs", "Flow"), ("load_lhs", "Flow"))
    assert [of.memory for of in module.main.sets] == ["SB", "SB", "PSUM"]
    assert module.main.sets[0].tensor_class == "NeuronWeightTensor"
    assert module.main.sets[2].locs[0].dims == (128, 1024)


def changed(way, value):
    """The worked document with one entry changed, removed (`None`) or added."""
    made = worked_example()
    at = made
    for step in way[:-1]:
        at = at[step]
    if value is None:
        del at[way[-1]]
    else:
        at[way[-1]] = value
    return json.dumps(made)


INST = ("functions", 0, "blocks", 0, "instructions", 0)


@pytest.mark.parametrize(
    ("way", "value", "code", "said"),
    [
        (("version",), 1, "NCC426", "the document has version 1; only 2 is read"),
        (("version",), None, "NCC426", "the module lacks the key version"),
        (("archh",), "x", "NCC401", "the module has an unknown key archh (did you mean arch?)"),
        ((*INST, "accumulation_flags"), 3, "NCC401", "unknown key accumulation_flags"),
        ((*INST, "opcode"), "Matmul", "NCC400", "no opcode is called Matmul (did you mean"),
        ((*INST, "engine"), 3, "NCC426", "engine of Matmult is no str"),
        (
            (*INST, "ins", 0, "kind"),
            "physical",
            "NCC426",
            "no operand is read whose kind is physical",
        ),
        ((*INST, "ins", 0, "ap"), [[1]], "NCC426", "a pair is written [step, num]"),
        ((*INST, "ins", 0, "offset"), "0", "NCC426", "offset of a physical_ap is no int"),
        ((*INST, "ins"), {}, "NCC426", "ins of Matmult is no list"),
        ((*INST, "dependencies"), [3], "NCC426", "a dependence is written [name, kind]"),
        (("functions", 0, "blocks"), None, "NCC426", "a function lacks the key blocks"),
        (("functions",), [], "NCC426", "the module has no function"),
        (("queues",), [{"name": "q"}], "NCC426", "cannot read a queue: 'engine'"),
        (
            ("queues",),
            [{"name": "q", "engine": "SP", "colour": 1}],
            "NCC401",
            "a queue has an unknown key colour",
        ),
    ],
)
def test_what_is_wrong_is_named(way, value, code, said):
    with pytest.raises(NccError) as found:
        from_json(changed(way, value), "mm.json")
    assert found.value.code == code
    assert said in str(found.value)
    assert "mm.json" in str(found.value)


def test_a_key_twice_and_broken_json_are_refused():
    with pytest.raises(NccError, match=r"NCC402 mm\.json: the key arch stands twice"):
        from_json('{"arch": "gen3", "arch": "gen3"}', "mm.json")
    with pytest.raises(NccError, match=r"NCC426 mm\.json:1:10: cannot read the document"):
        from_json('{"arch": }', "mm.json")
    with pytest.raises(NccError, match="the module is no object"):
        from_json("[1, 2]")
