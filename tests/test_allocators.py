"""The three allocators: who goes where, and that nobody sees in the results who chose."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import numpy as np
import pytest
from memory_programs import TRN2, Program, complaints, locs, same, through
from test_alloc_spills import PASSES, PLACED, kept, random_program, rings
from test_kernel_carriers import OVERLAP

from ncc import nki
from ncc.driver import compile
from ncc.errors import NccError
from ncc.ir.allocators import ALLOCATORS, allocate
from ncc.ir.colouring import INFINITE, Node
from ncc.kernels.attention import attention_cte
from ncc.kernels.matmul import matmul
from ncc.nki import compiler
from ncc.passes.bir import alloc_psum, alloc_sbuf, insert_spills, liveness
from ncc.programs import load_program
from ncc.stages import read_stage
from ncc.target import ALLOCATORS as NAMES
from ncc.target import target
from ncc.values import whole
from ncc.walking import run_stage

PROGRAMS = Path(__file__).parent / "programs"
each = pytest.mark.parametrize("name", NAMES)
KIB = 1024 // 8  # units


def test_every_name_has_its_function():
    assert tuple(ALLOCATORS) == NAMES


# ---- who goes where ------------------------------------------------------------------------------


def places(name, nodes, budget=192 * KIB):
    found = allocate(nodes, budget, name)
    return {one: start for one, (_, start) in found.places.items()}, found.unplaced


def test_a_stack_grows_from_its_top_and_sinks_when_the_top_ends():
    nodes = [
        Node("a", 0, 3, KIB),
        Node("b", 1, 2, 2 * KIB),
        Node("c", 2, 5, KIB),
        Node("d", 3, 4, KIB),  # b has left, but c still stands on it
        Node("e", 6, 7, KIB),
    ]
    found, out = places("stack", nodes)
    assert (found, out) == ({"a": 0, "b": KIB, "c": 3 * KIB, "d": 4 * KIB, "e": 0}, ())
    assert places("coloring", nodes)[0]["d"] == KIB
    low, out = places("stack", nodes, 4 * KIB)  # where the top has no room, the hole does
    assert (low["d"], out) == (KIB, ())


def test_a_scan_takes_the_smallest_hole():
    nodes = [
        Node("a", 0, 4, 4 * KIB),
        Node("b", 1, 9, KIB),
        Node("c", 2, 4, KIB),
        Node("d", 3, 9, KIB),
        Node("e", 5, 9, KIB),
    ]
    start = {"coloring": 0, "linear-scan": 5 * KIB}
    for name, at in start.items():
        assert places(name, nodes, 7 * KIB)[0]["e"] == at, name


def test_who_leaves():
    nodes = [
        Node("a", 0, 9, 100 * KIB, cost=1.0),
        Node("b", 1, 4, 80 * KIB, cost=1.0),
        Node("c", 2, 3, 40 * KIB, cost=1.0),
    ]
    assert places("linear-scan", nodes) == ({"c": 0, "b": 100 * KIB}, ("a",))
    wide = [
        Node("a", 0, 9, 10 * KIB, cost=1.0),
        Node("b", 1, 4, 150 * KIB, cost=1.0),
        Node("c", 2, 3, 40 * KIB, cost=1.0),
    ]
    assert places("stack", wide)[1] == ("b",)
    assert places("linear-scan", wide)[1] == ("a", "b")
    must = [Node(n.name, n.lo, n.hi, n.size) for n in nodes]
    assert places("linear-scan", must)[1], "nobody may leave, and somebody has no place"


@each
@pytest.mark.parametrize("seed", range(12))
def test_what_lives_together_lies_apart(name, seed):
    """Random nodes in bands, some of them fixed: no overlap, aligned, the fixed ones untouched."""
    draw, budget, nodes = random.Random(seed), 64, list[Node]()
    for n in range(40):
        lo = draw.randrange(60)
        bands = draw.choice([(15,), (3, 12), (3,), (1, 2, 4, 8)])
        align = draw.choice([1, 1, 4])
        cost = draw.choice([INFINITE, 3.0, 8.0])
        size = draw.randrange(1, 12)
        nodes.append(Node(f"n{n}", lo, lo + draw.randrange(20), size, bands, align, cost))
    pins = [Node("p", 5, 30, 8, fixed=(15, 20)), Node("q", 10, 40, 8, fixed=(3, 24))]  # overlap
    found = allocate([*nodes, *pins], budget, name)
    assert (found.places["p"], found.places["q"]) == ((15, 20), (3, 24))
    assert set(found.places) | set(found.unplaced) == {n.name for n in (*nodes, *pins)}
    assert not set(found.places) & set(found.unplaced)
    placed = [n for n in nodes if n.name in found.places]
    assert len(placed) > 25
    for n in placed:
        bands, start = found.places[n.name]
        assert bands in n.bands and start % n.align == 0 and start + n.size <= budget
        for m in (*placed, *pins):
            if m is not n and m.lo <= n.hi and n.lo <= m.hi and bands & found.places[m.name][0]:
                other = found.places[m.name][1]
                assert other >= start + n.size or start >= other + m.size, (n, m)


# ---- what comes out ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "machine"), [("seed.hlo", "trn2"), ("tight.hlo", "trn2,sbuf=40,psum=1")]
)
def test_programs_compute_the_same_bits(program, machine):
    """The second one spills."""
    start = compile(load_program(PROGRAMS / program, target(machine)), stop_after="liveness")
    given = whole(start, 3)
    wanted = [x.tobytes() for x in run_stage(start, given)]
    for name in NAMES:
        stage = attrs.evolve(start, target=start.target.allocating(name))
        placed = compile(stage, stop_after="insert-spills")
        assert (".reload" in placed.text()) == (program == "tight.hlo")
        assert [x.tobytes() for x in run_stage(compile(placed), given)] == wanted, name


@pytest.mark.parametrize("kernel", ["matmul", "attention"])
def test_kernels_compute_the_same_bits(kernel):
    draw = np.random.default_rng(5)

    def normal(*shape):
        return draw.standard_normal(shape).astype(np.float32)

    if kernel == "matmul":
        made, given = matmul, (normal(140, 130), normal(140, 24))
    else:
        made, given = attention_cte, (normal(2, 40, 16), normal(1, 150, 16), normal(1, 150, 16))
    found = {made.with_options(allocator=name)(*given).tobytes() for name in NAMES}
    assert len(found) == 1


@each
def test_random_programs_spill_and_compute_the_same(name):
    for seed in range(4):
        module = random_program(seed)
        where = TRN2.limited(sbuf=200).allocating(name)
        after = through(module, where, *PASSES)
        assert complaints(after, where, *PLACED) == [], seed
        assert same(module, after), seed


@each
def test_rings_and_spills(name):
    for module, machine in ((kept(7), "trn2,sbuf=96"), (rings(), "trn2,sbuf=96,psum=2")):
        where = target(machine).allocating(name)
        after = through(module, where, *PASSES)
        assert complaints(after, where, *PLACED) == []
        assert same(module, after)


PINNED = """\
# ncc bir target=trn2,allocator={} after=liveness facts=live-ranges-are-measured
module f gen3
  func sg0000
    set a float32 (128,8) memory=SB
      loc a SB (128,32) addr=16 allocated=true pinned=true live=(0,3)
    set b float32 (64,8) memory=SB
      loc b SB (64,32) addr=32 base=64 allocated=true pinned=true live=(1,3)
    set c float32 (128,8) memory=SB
      loc c SB (128,32) live=(2,3)
    set p float32 (128,8) memory=PSUM
      loc p PSUM (128,32) addr=2048 bank=1 allocated=true pinned=true live=(4,6)
    set q float32 (128,8) memory=PSUM
      loc q PSUM (128,32) live=(5,6)
    block Block1
      i0 = Memset DVE a:float32[[8,128],[1,8]] constant=3
      i1 = Memset DVE b:float32[[8,64],[1,8]] constant=3
      i2 = Memset DVE c:float32[[8,128],[1,8]] constant=3
      i3 = TensorTensor DVE c:float32[[8,64],[1,8]] <- b:float32[[8,64],[1,8]] a:float32[[8,64],[1,8]] op=add
      i4 = Memset DVE p:float32[[8,128],[1,8]] constant=3
      i5 = Memset DVE q:float32[[8,128],[1,8]] constant=3
      i6 = TensorTensor DVE q:float32[[8,128],[1,8]] <- p:float32[[8,128],[1,8]] q:float32[[8,128],[1,8]] op=add
"""


@each
def test_pinned_places_stay_even_where_they_overlap(name):
    stage = read_stage(PINNED.format(name))
    made = stage.module
    for one in (alloc_psum.PASS, alloc_sbuf.PASS, insert_spills.PASS):
        made = one.run(made, stage.target)
    before, after = locs(stage.module), locs(made)
    assert [after[x] for x in "abp"] == [before[x] for x in "abp"]
    assert after["c"].addr in (0, 64) or after["c"].addr >= 64
    assert after["q"].bank != 1


@each
@pytest.mark.parametrize("form", ["bir", "klir"])
def test_the_places_of_a_kernel_stay(name, form):
    text = OVERLAP.replace("dst=y, src=t)", "dst=y, src=v)")
    stage = read_stage(text.replace('form="bir"', f'form="{form}"'))
    stage = attrs.evolve(stage, target=stage.target.allocating(name))
    found = locs(compile(stage, stop_after="alloc-dram").module)
    assert [(found[x].base, found[x].addr) for x in ("k:t.shared", "k:v")] == [(0, 64), (32, 64)]
    assert found["k:t.shared"].pinned and found["k:v"].pinned


@each
def test_what_does_not_fit_is_refused_in_a_sentence(name):
    p = Program()
    p.tile("a", 128, 8)
    p.tile("b", 128, 8)
    p.tile("c", 128, 8)
    for x in "ab":
        p.op("Memset", "DVE", [x], [], constant=1)
    p.add("c", "a", "b")
    where = TRN2.limited(sbuf=64).allocating(name)
    with pytest.raises(NccError) as said:
        through(p.module(), where, liveness.PASS, alloc_sbuf.PASS, insert_spills.PASS)
    assert said.value.code == "NCC502"
    assert f"3 tiles that are live at i2 take 96 bytes a partition, and {where} has 64" in str(
        said.value
    )
    p = Program()
    for n in range(3):
        p.tile(f"p{n}", 8, 8, memory="PSUM", ring=True)
        p.op("Memset", "DVE", [f"p{n}"], [], constant=1)
    p.add("p0", "p1", "p2")
    where = TRN2.limited(psum=2).allocating(name)
    with pytest.raises(NccError) as said:
        through(p.module(), where, liveness.PASS, alloc_psum.PASS)
    assert said.value.code == "NCC503" and f"take 3 banks, and {where} has 2" in str(said.value)


# ---- who chooses ---------------------------------------------------------------------------------

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl
from nki.compiler import enable_stack_allocator

@enable_stack_allocator
@nki.jit
def copied(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


@pytest.fixture
def ncc(tmp_path, monkeypatch, capsys):
    from cli_programs import SMALL, command

    monkeypatch.chdir(tmp_path)
    Path("small.hlo").write_text(SMALL)
    Path("chosen.py").write_text(KERNEL)
    return lambda *words: command(capsys, *words)


def test_the_header_says_who_places(ncc):
    for words, said in (
        (("small.hlo",), "target=trn2 "),
        (("small.hlo", "--allocator", "stack"), "target=trn2,allocator=stack "),
        (
            ("small.hlo", "--target", "trn3,sbuf=4096", "--allocator", "linear-scan"),
            "target=trn3,sbuf=4096,allocator=linear-scan ",
        ),
        (("chosen.py:copied", "--arg", "a=f32[3,4]"), "target=trn2,allocator=stack "),
        (
            ("chosen.py:copied", "--arg", "a=f32[3,4]", "--allocator", "coloring"),
            "target=trn2,allocator=coloring ",
        ),
    ):
        status, out, err = ncc("compile", *words, "--stop-after", "alloc-sbuf")
        assert status == 0, err
        assert said in out.splitlines()[0]
        assert read_stage(out).text() == out


def test_the_names_are_checked(ncc):
    status, _, err = ncc("compile", "small.hlo", "--stop-after", "alloc-sbuf", "-o", "s.txt")
    assert status == 0, err
    status, _, err = ncc("compile", "s.txt", "--allocator", "stack")
    assert status == 2 and "--allocator stack comes too late" in err
    status, _, err = ncc("compile", "small.hlo", "--target", "trn2,allocator=stak")
    assert status == 2 and "no allocator is called 'stak'" in err and "did you mean stack" in err


def test_a_stage_before_allocation_takes_another_allocator(ncc):
    status, out, err = ncc("compile", "small.hlo", "--stop-after", "liveness", "-o", "s.txt")
    assert status == 0, err
    status, out, err = ncc("compile", "s.txt", "--allocator", "stack", "--stop-after", "alloc-sbuf")
    assert status == 0 and "allocator=stack" in out.splitlines()[0], err


def test_the_older_api_takes_the_option_on_either_side_of_jit():
    nki.install()
    from neuronxcc.nki import jit
    from neuronxcc.nki.compiler import enable_stack_allocator

    def plain(a):
        return a

    def other(a):
        return a

    assert enable_stack_allocator(jit(plain)).options.allocator == "stack"
    assert jit(enable_stack_allocator(other)).options.allocator == "stack"
    assert compiler.enable_stack_allocator(nki.jit(plain)).options.allocator == "stack"
