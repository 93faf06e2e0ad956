"""The reference's dry run of the seed matmul: edges, waits, semaphores, streams and bytes."""

from __future__ import annotations

from order_programs import TAIL, bytes_of, seed, through

FLOW = "Flow"
PE0 = "01100000050c00002000000000000000000000000100010001008000010001000600000000008080000000000f0f000000000000000000000000000000000000"
PE1 = "02100000000013000000000000000000000400000100010001000001010001000600000000008080000000010f0f000000000002010001000100000101000100"
SP0 = "d41000000000000000000000000c1002000000000100001000400000000000000800010000010000000000000000001020000000000000000800010020000606"
SP1 = "da000000000000000000000000000000000000000004000010800000000000000000000000000000000000000000000000000000000000000000000000000000"
ACT0 = "d4100000050300000100000000091000000c00000000001000000400000000008000010000040000000000000300001000040000000000008000010000040a0a"


def test_edges_are_those_of_the_dry_run():
    done = through(seed(), "flow_deps", "anti_deps", "mm_acc_flags", "flow_deps", "anti_deps")
    edges = {inst.name: list(inst.deps) for inst in done.main.blocks[0].insts}
    assert edges == {
        **{f"i{n}": [] for n in range(8)},
        "i8": [("i0", FLOW), ("i1", FLOW)],
        "i9": [("i2", FLOW), ("i3", FLOW), ("i8", FLOW)],
        # i8 zeroed the bank, but i9 wrote again whatever of it is read: no edge to i8 from here on
        "i10": [("i4", FLOW), ("i5", FLOW), ("i9", FLOW)],
        "i11": [("i6", FLOW), ("i7", FLOW), ("i10", FLOW)],
        "i12": [("i11", FLOW)],
        "i13": [("i12", FLOW)],
        "x": [],
    }


def test_flags_are_those_of_the_dry_run():
    done = through(seed(), "mm_acc_flags")
    keys = [dict(i.keys) for i in done.main.blocks[0].insts if i.opcode == "Matmult"]
    assert keys == [{"accumulation_flag": flag} for flag in (1, 4, 4, 6)]


def test_waits_and_exits_are_those_of_the_dry_run():
    done = through(seed(), *TAIL[:7])
    waits = {
        inst.name: [(w.unit, w.count) for w in inst.waits]
        for inst in done.main.blocks[0].insts
        if inst.waits
    }
    assert waits == {
        "i8": [("qSP", 2)],
        "i9": [("qSP", 4)],
        "i10": [("qSP", 6)],
        "i11": [("qSP", 8)],
        "i12": [("PE", 4)],
        "i13": [("DVE", 1)],
        "x_act": [("qActivation", 1)],
        "x_sp": [("qSP", 8)],
    }
    exits = {i.name: (i.engine, i.deps) for i in done.main.blocks[0].insts if i.opcode == "Exit"}
    assert exits == {
        "x": ("PE", ()),
        "x_act": ("Activation", (("i13", "Ordered"),)),
        "x_dve": ("DVE", ()),
        "x_sp": ("SP", (("i7", "Ordered"),)),
    }


def test_two_buffers_cost_one_wait_a_load():
    done = through(seed(2), *TAIL[:7])
    found = {i.name: i for i in done.main.blocks[0].insts}
    assert ("i8", "Anti") in found["i4"].deps
    assert [(w.unit, w.count) for w in found["i4"].waits] == [("PE", 1)]
    assert [(w.unit, w.count) for w in found["i5"].waits] == []


def test_semaphores_are_those_of_the_dry_run():
    done = through(seed(), *TAIL)
    assert {q.name: q.semaphore for q in done.queues} == {"qActivation": 9, "qSP": 12}
    found = {i.name: i for i in done.main.blocks[0].insts}
    assert len(found) == 18
    numbers = {n: (i.waits[0].sem, i.waits[0].value) for n, i in found.items() if i.waits}
    assert numbers == {
        "i8": (12, 32),
        "i9": (12, 64),
        "i10": (12, 96),
        "i11": (12, 128),
        "i12": (0, 4),
        "i13": (3, 1),
        "x_act": (9, 16),
        "x_sp": (12, 128),
    }
    assert [(u.sem, u.value) for n in ("i0", "i8", "i12") for u in found[n].updates] == [
        (12, 16),
        (0, 1),
        (3, 1),
    ]


def test_streams_and_bytes_are_those_of_the_dry_run():
    streams = bytes_of(through(seed(), *TAIL))
    assert {e: len(s) for e, s in streams.items()} == {
        "PE": 9,
        "Activation": 2,
        "Pool": 0,
        "DVE": 2,
        "SP": 13,
    }
    assert streams["PE"][:2] == [PE0, PE1]
    assert streams["SP"][:2] == [SP0, SP1]
    assert streams["Activation"][0] == ACT0
    assert [s[0x2B * 2 : 0x2C * 2] for s in streams["PE"][1:8:2]] == ["01", "00", "00", "02"]
    assert [s[4 * 2 : 12 * 2] for s in streams["PE"][0::2]] == [
        "050c000020000000",
        "050c000040000000",
        "050c000060000000",
        "050c000080000000",
        "0000000000000000",
    ]
    assert streams["DVE"][0].startswith("461000000500130304000000")
