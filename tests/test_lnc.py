"""Kernels for two cores: split, met at barriers, packed as two subgraphs, run side by side."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncc import nki, pack
from ncc.driver import check, compile
from ncc.errors import NccError
from ncc.ir.bir_json import program_from_json, to_json
from ncc.ir.core import Cores, modules_of
from ncc.ir.isa import Stream
from ncc.ir.neff import Member, Neff
from ncc.kernels.attention import attention_cte
from ncc.kernels.matmul import matmul
from ncc.nki import isa as nisa
from ncc.nki import language as nl
from ncc.nki.binding import bind
from ncc.nki.running import stage_of
from ncc.observe import kinds_of
from ncc.pack.listing import asm, disasm
from ncc.passes import called
from ncc.programs import json_stage, load_program
from ncc.sim.run import run_isa, run_neff
from ncc.stages import Stage, read_stage
from ncc.target import TARGETS
from ncc.walking import run_stage

TRN1, TRN2 = TARGETS["trn1"], TARGETS["trn2"]
CORES = Path(__file__).parent / "programs" / "cores.py"
X = np.arange(32, dtype=np.float32).reshape(4, 8)


def staged(kernel, *arrays, target=TRN2, cores=2) -> Stage:
    """The first stage of a call on two cores."""
    made = kernel[cores].specialisation(bind(kernel.func, arrays, {}, target), target)
    return stage_of(made)


def tile(rows=2, columns=8, dtype=nl.float32):
    return nl.ndarray((rows, columns), dtype, buffer=nl.sbuf)


def shared(rows=4, columns=8):
    return nl.ndarray((rows, columns), nl.float32, buffer=nl.shared_hbm)


@nki.jit
def crossed(x):
    """Each core doubles its half and returns the other's."""
    core = nl.program_id(0)
    mine, other = (nl.ds(2 * c, 2) for c in (core, 1 - core))
    out, held, t, u = shared(), shared(), tile(), tile()
    nisa.dma_copy(t, x[mine])
    nisa.tensor_scalar(t, t, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(held[mine], t)
    nisa.core_barrier(held, (0, 1))
    nisa.dma_copy(u, held[other])
    nisa.dma_copy(out[mine], u)
    return out


CROSSED = np.concatenate([2 * X[2:], 2 * X[:2]])


# ---- the same values ----------------------------------------------------------------------------


def test_a_kernel_means_the_same_at_every_stage_and_from_the_bytes():
    result = check(staged(crossed, X))
    assert result.passed, result.failed
    assert np.array_equal(crossed[2](X), CROSSED)
    assert np.array_equal(nki.simulate(crossed[2])(X), CROSSED)


def test_every_stage_prints_and_reads_back():
    split = list(called()).index("lnc-split")
    for name in list(called())[split - 1 :]:
        stage = compile(staged(crossed, X), stop_after=name)
        several = name not in (list(called())[split - 1], "pack")
        assert isinstance(stage.module, Cores) == several
        again = read_stage(stage.text())
        assert again == stage and again.text() == stage.text()
        if several:
            assert len(kinds_of(stage)) > 1 and stage.text().count("\ncore 1\n") == 1


def test_a_stage_of_two_cores_is_a_program(tmp_path):
    stage = compile(staged(crossed, X), stop_after="alloc-dram")
    text = tmp_path / "stage.txt"
    text.write_text(stage.text())
    document = tmp_path / "stage.json"
    document.write_text(to_json(stage.module, stage.header()))
    assert program_from_json(to_json(stage.module)) == stage.module
    assert json_stage(to_json(stage.module), "x.json", TRN2).module == stage.module
    for file in (text, document):
        read = load_program(file, TRN2)
        assert read == stage
        assert np.array_equal(run_stage(compile(read), [X])[0], CROSSED)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_matmul_on_two_cores_is_matmul(dtype):
    rng = np.random.default_rng(1)
    lhs, rhs = rng.standard_normal((160, 200)), rng.standard_normal((160, 96))
    one, two = (k(lhs.astype(dtype), rhs.astype(dtype)) for k in (matmul, matmul[2]))
    assert np.array_equal(one, two)


def test_attention_on_two_cores_is_attention():
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((2, 128, 64)).astype(ml_dtypes.bfloat16) for _ in range(3))
    assert np.array_equal(
        attention_cte(q, k, v, causal=True), attention_cte[2](q, k, v, causal=True)
    )


def test_cores_have_their_own_chip_and_private_memory():
    @nki.jit
    def apart(x):
        core = nl.program_id(0)
        out = nl.ndarray((2, 4, 8), nl.float32, buffer=nl.shared_hbm)
        kept = nl.ndarray((4, 8), nl.float32, buffer=nl.private_hbm)
        t = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf, address=(0, 0))
        nisa.dma_copy(t, x)
        nisa.tensor_scalar(t, t, op0=nl.add, operand0=float(1 + core))
        nisa.dma_copy(kept, t)
        u = tile(4)
        nisa.dma_copy(u, kept)
        nisa.dma_copy(out[core], u)
        return out

    stage = staged(apart, X)
    want = np.stack([X + 1, X + 2])
    assert np.array_equal(run_stage(compile(stage), [X])[0], want)
    kinds = [[v.kind for v in p.vars] for p in compile(stage, stop_after="encode").module.modules]
    assert kinds == [["input", "output", "virtual"]] * 2


def test_an_argument_that_both_cores_write_is_updated():
    @nki.jit
    def grown(x):
        mine = nl.ds(2 * nl.program_id(0), 2)
        t = tile()
        nisa.dma_copy(t, x[mine])
        nisa.tensor_scalar(t, t, op0=nl.add, operand0=1.0)
        nisa.dma_copy(x[mine], t)
        return x

    given = X.copy()
    assert np.array_equal(grown[2](given), X + 1) and np.array_equal(given, X + 1)
    stage = compile(staged(grown, X), stop_after="lnc-split")
    assert [kinds["CoreBarrier"] for kinds in map(kinds_of_module, stage.module.modules)] == [1, 1]
    assert [kinds["AbstractCopy"] for kinds in map(kinds_of_module, stage.module.modules)] == [1, 0]


def kinds_of_module(module):
    return kinds_of(Stage("bir", TRN2, "input", (), module))


BODY = """
            {a} = buffer("{a}", "float32", (4, 8), "shared_hbm", kind="input")
            {b} = buffer("{b}", "float32", (4, 8), "shared_hbm", kind="output")
            t = buffer("t", "float32", (2, 8), "sbuf")
            params({a})
            i0 = nisa.dma_copy(dst=t, src={a}[{take}, :])  # k.py:2
            i1 = nisa.tensor_scalar(dst=t, data=t, operand0={by}, op0="multiply")  # k.py:3
            i2 = nisa.dma_copy(dst={b}[{give}, :], src=t)  # k.py:4
            results({b})
"""


def scaling(name: str, a: str, b: str, crosses: bool) -> str:
    """A kernel of two cores: each scales a half, its own or the other's."""
    text = f'    with KernelNode("{name}"):  # k.py:1\n        args(("{a}", {a}))\n'
    text += f'        outs(("{b}", {b}))\n'
    for core, mine, other in ((0, "0:2", "2:4"), (1, "2:4", "0:2")):
        text += f'        with body("{name}"{f", core={core}" if core else ""}):'
        take = other if crosses else mine
        text += BODY.format(a=a, b=b, take=take, give=mine, by=f"{core + 2}.0").rstrip() + "\n"
    return text


def function(tensors: dict[str, str], body: str) -> Stage:
    lines = "".join(
        f'    {name} = tensor("{name}", "float32", (4, 8), kind="{kind}", home="dram")\n'
        for name, kind in tensors.items()
    )
    head = "# ncc penguin target=trn2 after=split-acc-groups\nfrom ncc.penguin import *\n"
    return read_stage(f'{head}with function("main") as f:\n{lines}{body}')


SCALED = np.concatenate([2 * X[:2], 3 * X[2:]])


def names_of(stage: Stage) -> list[list[str]]:
    return [[i.name for i in m.main.blocks[0].insts] for m in stage.module.modules]


def test_one_kernel_reads_what_another_wrote():
    body = scaling("k", "x", "b", False) + scaling("l", "b", "y", True)
    stage = function({"x": "input", "b": "internal", "y": "output"}, body)
    split = compile(stage, stop_after="lnc-split")
    assert names_of(split) == [["k", "l.meet.0", "l", "exit"]] * 2
    assert [of.kind for of in split.module.modules[1].main.sets][1] == "InternalInterface"
    result = check(stage)
    assert result.passed, result.failed
    (got,) = run_stage(compile(stage), [X])
    assert np.array_equal(got, np.concatenate([2 * SCALED[2:], 3 * SCALED[:2]]))


def test_core_0_alone_runs_what_is_no_kernel():
    """x is copied to a, a kernel on both cores makes b of it, b is copied to y."""
    made = compile(
        function({"a": "input", "b": "output"}, scaling("k", "a", "b", False)),
        stop_after="penguin-to-bir",
    )
    copy = "      {0} = AbstractCopy DMA {1}[p,q|p:4|q:8] <- {2}[p,q|p:4|q:8]\n"
    text = made.text().replace("set a float32 (4,8) kind=ExternalInput", "set a float32 (4,8)")
    text = text.replace(
        "set b float32 (4,8) kind=ExternalOutput",
        "set b float32 (4,8)\n    set x float32 (4,8) kind=ExternalInput\n"
        "    set y float32 (4,8) kind=ExternalOutput",
    )
    text = text.replace(
        "    block Block1\n", f"    block Block1\n{copy.format('before', 'a', 'x')}"
    )
    text = text.replace("      exit =", f"{copy.format('behind', 'y', 'b')}      exit =")
    stage = read_stage(text)
    assert names_of(compile(stage, stop_after="lnc-split")) == [
        ["before", "k.meet.0", "k", "behind.meet.0", "behind", "exit"],
        ["k.meet.0", "k", "behind.meet.0", "exit"],
    ]
    result = check(stage)
    assert result.passed, result.failed
    assert np.array_equal(run_stage(compile(stage), [X])[0], SCALED)


def test_a_chip_without_pairs_does_the_work_of_both():
    @nki.jit
    def halves(x):
        mine = nl.ds(2 * nl.program_id(0), 2)
        out, t = shared(), tile()
        nisa.dma_copy(t, x[mine])
        nisa.dma_copy(out[mine], t)
        return out

    stage = compile(staged(halves, X, target=TRN1), stop_after="encode")
    assert not isinstance(stage.module, Cores)
    assert np.array_equal(run_stage(stage, [X])[0], X)


# ---- transfers and generated programs -----------------------------------------------------------


def test_tiles_are_exchanged():
    @nki.jit
    def swapped(x):
        core = nl.program_id(0)
        out = nl.ndarray((2, 4, 8), nl.float32, buffer=nl.shared_hbm)
        t, u = tile(4), tile(4)
        nisa.dma_copy(t, x)
        nisa.tensor_scalar(t, t, op0=nl.add, operand0=float(core))
        for turn in range(3):
            nisa.sendrecv(t, u, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=turn % 2)
            nisa.tensor_tensor(t, t, u, op=nl.add if core else nl.subtract)
        nisa.dma_copy(out[core], t)
        return out

    want = nki.simulate(swapped[2])(X)
    assert np.array_equal(swapped[2](X), want)
    assert not np.array_equal(want[0], want[1])


def generated(seed: int):
    """A kernel of steps that both cores take: on chip, through shared or private memory, across."""
    draw = random.Random(seed)
    steps = [draw.choice(("scale", "publish", "take", "swap", "private")) for _ in range(9)]
    numbers = [draw.randint(-3, 3) for _ in steps]

    @nki.jit
    def kernel(x):
        core = nl.program_id(0)
        mine, other = nl.ds(2 * core, 2), nl.ds(2 - 2 * core, 2)
        out, held, t, u = shared(), shared(), tile(), tile()
        kept = nl.ndarray((2, 8), nl.float32, buffer=nl.private_hbm)
        nisa.dma_copy(t, x[mine])
        nisa.dma_copy(held[mine], t)
        fresh = True  # the other core has not seen what this one wrote, or not said that it has
        for step, number in zip(steps, numbers, strict=True):
            if step == "scale":
                nisa.tensor_scalar(t, t, op0=nl.add, operand0=float(number * (core + 1)))
            elif step == "swap":
                nisa.sendrecv(t, u, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
                nisa.tensor_tensor(t, t, u, op=nl.subtract if core else nl.maximum)
            elif step == "private":
                nisa.dma_copy(kept, t)
                nisa.dma_copy(u, kept)
                nisa.tensor_tensor(t, t, u, op=nl.add)
            else:
                if fresh or step == "publish":
                    nisa.core_barrier(held, (0, 1))
                fresh = step == "publish"
                if fresh:
                    nisa.dma_copy(held[mine], t)
                else:
                    nisa.dma_copy(t, held[other])
        nisa.dma_copy(out[mine], t)
        return out

    return kernel


@settings(max_examples=12, derandomize=True, deadline=None)
@given(st.integers(0, 10_000))
def test_generated_kernels_do_not_depend_on_the_interleaving(seed):
    kernel = generated(seed)
    want = nki.simulate(kernel[2])(X)
    stage = compile(staged(kernel, X))
    for order in (None, 0, 1, 2):
        (got,) = run_neff(stage.module, TRN2, [X], seed=order)
        assert np.array_equal(got, want), (seed, order)


# ---- the container ------------------------------------------------------------------------------


def test_each_core_is_a_subgraph():
    neff = compile(staged(crossed, X)).module
    found = pack.check(neff)
    assert [core.folder for core in found.cores] == ["sg00", "sg01"]
    record = found.record
    assert (record["lnc_size"], record["num_tpb"], record["tpb_per_node"]) == (2, 2, [2])
    assert record["feature_bits"] & 1 << 10
    both = pack.unpack_all(neff)
    assert both == compile(staged(crossed, X), stop_after="encode").module
    assert pack.unpack(neff, 1) == both.modules[1]
    assert [v.kind for v in both.modules[1].vars] == ["input", "output", "shared"]
    text, fault = disasm(pack.to_bytes(neff))
    assert fault is None and asm(text) == neff


def test_one_core_is_packed_as_ever():
    neff = compile(staged(crossed_alone, X, cores=1)).module
    record = pack.check(neff).record
    assert (record["lnc_size"], record["num_tpb"], record["feature_bits"]) == (1, 1, 1 << 12)
    assert {m.path.split("/")[0] for m in neff.members if "/" in m.path} == {"sg00"}


@nki.jit
def crossed_alone(x):
    out, t = shared(), tile(4)
    nisa.dma_copy(t, x)
    nisa.dma_copy(out, t)
    return out


def test_cores_that_disagree_are_no_neff():
    program = compile(staged(crossed, X), stop_after="encode").module
    first, second = program.modules
    wider = tuple(attrs.evolve(v, shape=(5, 8)) if v.kind == "shared" else v for v in second.vars)
    with pytest.raises(NccError, match=r"NCC820.*shared float32 \(4, 8\) on one core"):
        pack.check(pack.build(Cores((first, attrs.evolve(second, vars=wider)))))
    more = (*second.vars[:-1], attrs.evolve(second.vars[-1], kind="output"))
    with pytest.raises(NccError, match="NCC820"):
        pack.check(pack.build(Cores((first, attrs.evolve(second, vars=more)))))


def test_a_picture_has_both_cores():
    from ncc.view.render import graph

    for name in ("lnc-split", "sync-waits", "encode"):
        text = graph(compile(staged(crossed, X), stop_after=name))
        assert "core 0" in text and "core 1" in text
        assert ("CoreBarrier" in text) == (name != "lnc-split")


# ---- what goes wrong ----------------------------------------------------------------------------


@nki.jit
def met(x):
    """Each core copies its half, and waits for the other."""
    mine, out, t = nl.ds(2 * nl.program_id(0), 2), shared(), tile()
    nisa.dma_copy(t, x[mine])
    nisa.dma_copy(out[mine], t)
    nisa.core_barrier(out, (0, 1))
    return out


def changed(kernel, change) -> Cores:
    """The two cores' records, those of core 1 changed by `change(engine, bundles)`."""
    first, second = compile(staged(kernel, X), stop_after="encode").module.modules
    streams = tuple(Stream(s.engine, change(s.engine, s.bundles)) for s in second.streams)
    return Cores((first, attrs.evolve(second, streams=streams)))


@pytest.mark.parametrize("order", [None, 3])
def test_a_core_that_misses_a_barrier_is_named(order):
    def without(engine, bundles):
        """The barrier is gone, and its count comes from an EventSemaphore."""
        return tuple(
            attrs.evolve(b, op="EventSemaphore", fields=()) if b.op == "CoreBarrier" else b
            for b in bundles
        )

    with pytest.raises(NccError) as found:
        run_isa(changed(met, without), TRN2, [X], seed=order)
    assert found.value.code == "NCC901"
    said = "core 0 Pool 0 (CoreBarrier) waits for core 1 to come to barrier 1"
    assert said in str(found.value) and "core 1" not in str(found.value).replace(said, "")


@pytest.mark.parametrize("order", [None, 3])
def test_cores_at_different_barriers_wait_for_ever(order):
    def other(engine, bundles):
        return tuple(
            attrs.evolve(b, fields=(("index", 2), *(f for f in b.fields if f[0] != "index")))
            if b.op == "CoreBarrier"
            else b
            for b in bundles
        )

    with pytest.raises(NccError) as found:
        run_isa(changed(crossed, other), TRN2, [X], seed=order)
    assert found.value.code == "NCC901"
    assert "core 0 Pool 0 (CoreBarrier) waits for core 1 to come to barrier 1" in str(found.value)
    assert "core 1 Pool 0 (CoreBarrier) waits for core 0 to come to barrier 2" in str(found.value)


@pytest.mark.parametrize("order", [None, *range(4)])
def test_who_does_not_wait_for_the_barrier_races(order):
    def hasty(engine, bundles):
        """Core 1 reads the other's half when its own is written, without waiting for its Pool."""
        return tuple(
            attrs.evolve(b, band=attrs.evolve(b.band, wait=(5, 9), value=16))
            if b.op == "DmaDirect2d" and b.band.wait[1] == 2
            else b
            for b in bundles
        )

    assert changed(crossed, hasty) != changed(crossed, lambda engine, bundles: bundles)
    with pytest.raises(NccError) as found:
        run_isa(changed(crossed, hasty), TRN2, [X], seed=order)
    assert found.value.code in ("NCC902", "NCC903")
    said = str(found.value)
    assert found.value.code == "NCC903" or "put a core_barrier there" in said
    assert "core 1" in said and (order is not None or "core 0" in said)


def test_a_kernel_without_its_barrier_races():
    @nki.jit
    def hasty(x):
        core = nl.program_id(0)
        out, held, t = shared(), shared(), tile()
        nisa.dma_copy(t, x[nl.ds(2 * core, 2)])
        nisa.dma_copy(held[nl.ds(2 * core, 2)], t)
        if core == 0:
            nisa.dma_copy(t, held[2:4])
        nisa.dma_copy(out[nl.ds(2 * core, 2)], t)
        return out

    with pytest.raises(NccError) as found:
        hasty[2](X)
    assert found.value.code in ("NCC902", "NCC903")


def test_a_kernel_whose_cores_do_not_meet_is_refused():
    @nki.jit
    def alone(x):
        core, out, t = nl.program_id(0), shared(), tile()
        nisa.dma_copy(t, x[nl.ds(2 * core, 2)])
        nisa.dma_copy(out[nl.ds(2 * core, 2)], t)
        if core == 1:
            nisa.core_barrier(out, (0, 1))
        return out

    with pytest.raises(NccError, match=r"NCC396 .*core 1 waits at a core_barrier \(test_lnc.py:"):
        alone[2](X)


def test_a_barrier_is_no_transfer():
    @nki.jit
    def mixed(x):
        core, out, t, u = nl.program_id(0), shared(), tile(), tile()
        nisa.dma_copy(t, x[nl.ds(2 * core, 2)])
        if core == 0:
            nisa.core_barrier(out, (0, 1))
        else:
            nisa.sendrecv(t, u, send_to_rank=0, recv_from_rank=0, pipe_id=0)
        nisa.dma_copy(out[nl.ds(2 * core, 2)], t)
        return out

    with pytest.raises(NccError, match="NCC396"):
        mixed[2](X)


# ---- the same work on both cores ----------------------------------------------------------------


def test_cores_may_write_the_same():
    @nki.jit
    def twice(x):
        out, held, t = shared(), shared(), tile(4)
        nisa.dma_copy(t, x)
        for _ in range(2):
            u = tile(4)
            nisa.dma_copy(held, t)
            nisa.dma_copy(u, held)
            nisa.dma_copy(out[0:2], u[0:2])
            nisa.dma_copy(out[2:4], u[2:4])
        return out

    stage = compile(staged(twice, X))
    for order in (None, *range(6)):
        (got,) = run_neff(stage.module, TRN2, [X], seed=order)
        assert np.array_equal(got, X)


@pytest.mark.parametrize("order", [None, 1, 2])
def test_cores_may_not_write_different_things(order):
    @nki.jit
    def torn(x):
        core, out, t = nl.program_id(0), shared(), tile(4)
        nisa.dma_copy(t, x)
        if core == 1:
            nisa.memset(t[0:4, 7:8], 5.0)
        nisa.dma_copy(out, t)
        return out

    stage = compile(staged(torn, X))
    with pytest.raises(
        NccError,
        match=r"NCC902 core [01] .* writes .* that core [01] .* writes, .* put a core_barrier there",
    ):
        run_neff(stage.module, TRN2, [X], seed=order)


def test_a_reader_needs_a_write_of_its_own():
    """Core 1 reads what both cores wrote alike, but it did so after its read."""

    @nki.jit
    def late(x):
        core, out, held, t = nl.program_id(0), shared(), shared(), tile(4)
        nisa.dma_copy(t, x)
        if core == 0:
            nisa.dma_copy(held, t)
            nisa.dma_copy(out[0:2], t[0:2])
        else:
            u = tile(4)
            nisa.dma_copy(u, held)
            nisa.dma_copy(held, t)
            nisa.dma_copy(out[2:4], u[2:4])
        return out

    with pytest.raises(NccError) as found:
        late[2](X)
    assert found.value.code == "NCC902"


# ---- laws ---------------------------------------------------------------------------------------


def test_a_barrier_that_one_core_lacks_breaks_a_law():
    lines = compile(staged(crossed, X), stop_after="inline-kernels").text().split("\n")
    last = max(n for n, line in enumerate(lines) if "= CoreBarrier" in line)
    with pytest.raises(NccError, match=r"NCC396 .*core 0 waits at a core_barrier"):
        compile(read_stage("\n".join(lines[:last] + lines[last + 1 :])))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("core 1\n", "core 2\n", "'core 2' stands where core 1 begins"),
        ("core 0\n", "", "expected `core 0`"),
        ("core 0\n", "core zero\n", "expected `core 0`"),
    ],
)
def test_a_text_whose_cores_cannot_be_told(old, new, said):
    text = compile(staged(crossed, X), stop_after="inline-kernels").text()
    with pytest.raises(NccError, match="NCC009") as found:
        read_stage(text.replace(old, new, 1), "x.txt")
    assert said in str(found.value)


def test_a_barrier_of_one_core_alone_is_passed():
    @nki.jit
    def alone(x):
        out, t = shared(), tile(4)
        nisa.dma_copy(t, x)
        nisa.core_barrier(out, (0))
        nisa.dma_copy(out, t)
        return out

    assert np.array_equal(alone(X), X)


def test_the_program_of_the_snapshots_is_right():
    stage = load_program(f"{CORES}:pair", TRN2, args=["x=f32[8,6]"])
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    theirs = 2 * np.concatenate([x[4:], x[:4]])
    assert np.array_equal(run_stage(stage, [x])[0], 2 * theirs)
    assert np.array_equal(run_stage(compile(stage), [x])[0], 2 * theirs)


def test_a_neff_of_two_cores_without_one_is_refused():
    neff = compile(staged(crossed, X)).module
    assert len(modules_of(pack.unpack_all(neff))) == 2
    cut = Neff(tuple(Member(m.path, m.data) for m in neff.members if m.path != "sg01/def.json"))
    with pytest.raises(NccError, match="NCC8"):
        pack.check(cut)
