"""Faults planted in the bundles and in every pass: each is named, with its pass or both bundles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import attrs
import pytest
from planted import broken, edited, insts_of, keyed, located, one, told
from whole_programs import hlo, printed, product, program_of, seed, streams

from ncc import checking, driver, passes, values
from ncc.cli import call
from ncc.encode.bundle import decode_stream, encode_stream
from ncc.encode.codes import ACT_FUNC
from ncc.errors import NccError
from ncc.ir.bir import Ap, with_insts
from ncc.ir.bir_stream_laws import every_stream_ends, warm_weights_are_held
from ncc.ir.hlo import Layout
from ncc.ir.isa import Band, Bundle, Program
from ncc.ir.penguin import (
    Loop,
    MatMulOp,
    TensorContractOp,
    TensorCopyOp,
    TensorTransposeOp,
    TileCopyOp,
    TileTransposeOp,
)
from ncc.pack import build, unpack
from ncc.pack.listing import asm
from ncc.sim.run import run_isa, run_neff
from ncc.stages import Stage, read_stage
from ncc.walking import plan

SMALL = product(6, 10, 5, bias=True, relu=True)
PLACES = {"PE": 0, "Activation": 1, "Pool": 2, "DVE": 3, "SP": 4}


# --- in the bundles -------------------------------------------------------------------------------


def changed(program: Program, engine: str, index: int, **fields: Any) -> Program:
    """The program with one bundle changed: its `band`, or fields of its record."""
    at = PLACES[engine]
    stream = program.streams[at]
    old = stream.bundles[index]
    band = fields.pop("band", old.band)
    pairs = tuple(sorted({**dict(old.fields), **fields}.items()))
    bundles = (
        *stream.bundles[:index],
        Bundle(old.op, pairs, band),
        *stream.bundles[index + 1 :],
    )
    new = attrs.evolve(stream, bundles=bundles)
    return attrs.evolve(program, streams=(*program.streams[:at], new, *program.streams[at + 1 :]))


def waiting(program: Program) -> list[tuple[str, int, Bundle]]:
    """Every bundle that waits: stream, number, and the bundle without its wait."""
    return [
        (engine, n, attrs.evolve(b, band=attrs.evolve(b.band, wait=(0, 0))))
        for engine, bundles in streams(program).items()
        for n, b in enumerate(bundles)
        if b.band.wait[0]
    ]


def fault(program: Program, stage: Stage, order: int | None = None) -> NccError:
    with pytest.raises(NccError) as found:
        run_isa(program, stage.target, values.whole(stage, 0), seed=order)
    return found.value


ORDER = "and no wait orders them (make the later one wait for the other)"
TOLD = {
    ("PE", 0): "NCC902 SP 0 (DmaDirect2d): writes sb rows 0 to 127 bytes {0} that "
    f"PE 0 (LoadStationary) reads, {ORDER}",
    ("PE", 2): "NCC902 PE 2 (LoadStationary): reads sb rows 0 to 127 bytes {1} that "
    f"SP 3 (DmaDirect2d) writes, {ORDER}",
    ("PE", 4): "NCC902 PE 4 (LoadStationary): reads sb rows 0 to 127 bytes {2} that "
    f"SP 6 (DmaDirect2d) writes, {ORDER}",
    ("PE", 6): "NCC902 PE 6 (LoadStationary): reads sb rows 0 to 127 bytes {3} that "
    f"SP 9 (DmaDirect2d) writes, {ORDER}",
    ("Activation", 0): "NCC903 Activation 0 (DmaDirect2d): carries 32768 elements that nobody "
    "wrote to output out (write them first (a load, a memset), or copy fewer)",
    ("Activation", 1): "NCC904 Activation 1 (Exit): ends Activation while its DMA 1 of 1 may "
    "still run (it waits for S[9] >= 16)",
    ("DVE", 0): "NCC902 SP 0 (DmaDirect2d): writes sb rows 0 to 127 bytes {0} that "
    f"DVE 0 (Copy) writes, {ORDER}",
    ("SP", 12): "NCC904 SP 12 (Exit): ends SP while its DMA 1 of 8 may still run "
    "(it waits for S[12] >= 128)",
}


def test_each_wait_of_the_seed_removed_in_turn():
    """By hand in the listing, as a reader would do it; the bundles are those of the NEFF."""
    program = program_of(seed())
    weights = [dict(b.fields)["src"].byte for b in streams(program)["PE"][:8:2]]
    bytes_ = [f"{at} to {at + 255}" for at in weights]
    lines = Stage("isa", seed().target, "encode", (), program).text().split("\n")
    found: dict[tuple[str, int], str] = {}
    engine, number = "", 0
    for at, line in enumerate(lines):
        if line.startswith("stream "):
            engine, number = line.split()[1], -1
        number += 1
        wait = next((word for word in line.split() if word.startswith("wait=")), "")
        if not wait:
            continue
        text = "\n".join([*lines[:at], line.replace(f" {wait}", ""), *lines[at + 1 :]])
        with pytest.raises(NccError) as said:
            run_neff(asm(text), None, values.whole(seed(), 0))
        found[engine, number - 1] = str(said.value)
    assert found == {place: text.format(*bytes_) for place, text in TOLD.items()}


@pytest.mark.parametrize(
    "stage",
    [
        seed(),
        seed("trn1"),
        hlo(product(128, 512, 256, bias=True, relu=True)),
        hlo(product(128, 512, 768)),
        hlo(product(70, 150, 45, dtype="f32")),
        *map(printed, ("softmax", "two_buffers", "halves", "interleaved")),
    ],
    ids=lambda s: f"{s.module.name} {s.target}",
)
def test_no_wait_is_one_too_many(stage):
    """Whatever wait is taken out, the machine says what goes wrong, in any order of the engines."""
    program = program_of(stage)
    for engine, number, bundle in waiting(program):
        less = changed(program, engine, number, band=bundle.band)
        for order in (None, 0):
            found = fault(less, stage, order)
            where = f"{engine} {number} ({bundle.op}), interleaving {order}: {found}"
            if bundle.op == "Exit":
                assert found.code == "NCC904" and f"{engine} {number} (Exit)" in str(found), where
            else:
                assert found.code in ("NCC902", "NCC903", "NCC907", "NCC908"), where


def test_start_dropped():
    assert str(fault(changed(program_of(seed()), "PE", 1, psum_flags=0), seed())) == (
        "NCC908 PE 1 (Matmul): adds to ps rows 0 to 127 bytes 0 to 1023, where a PSUM cell is "
        "unwritten (the first matmul of a group has START)"
    )


def test_a_second_start():
    found = fault(changed(program_of(seed()), "PE", 5, psum_flags=1), seed())
    assert found.code == "NCC907" and "PE 5 (Matmul)" in str(found)
    assert "a group is open" in str(found)


def test_stop_dropped():
    found = fault(changed(program_of(seed()), "PE", 7, psum_flags=0), seed())
    assert found.code == "NCC907" and "DVE 0 (Copy)" in str(found) and "open" in str(found)


def test_another_bank():
    program = program_of(seed())
    place = attrs.evolve(dict(streams(program)["PE"][3].fields)["dst"], byte=2048)
    assert str(fault(changed(program, "PE", 3, dst=place), seed())) == (
        "NCC908 PE 3 (Matmul): adds to ps rows 0 to 127 bytes 2048 to 3071, where a PSUM cell is "
        "unwritten (the first matmul of a group has START)"
    )


def test_an_update_lost_is_a_deadlock_that_names_all_who_wait():
    less = changed(program_of(seed()), "PE", 7, band=Band())
    assert str(fault(less, seed())) == (
        "NCC901 deadlock: Activation 0 (DmaDirect2d) waits for S[3] >= 1, which is 0; DVE 0 (Copy) "
        "waits for S[0] >= 4, which is 3 (an update that one of them waits for is missing or comes "
        "too late)"
    )


def test_a_buffer_reused_too_early():
    """The load of tile 2 into buffer 0 waits for the product that reads tile 0 from it. Without
    that it comes before the load of tile 0 as well; the message names the read."""
    stage = printed("two_buffers")
    program = program_of(stage)
    loads = [(e, n, b) for e, n, b in waiting(program) if (e, b.op) == ("SP", "DmaDirect2d")]
    assert len(loads) == 14
    engine, number, bundle = loads[0]
    assert str(fault(changed(program, engine, number, band=bundle.band), stage)) == (
        "NCC902 SP 4 (DmaDirect2d): writes sb rows 0 to 127 bytes 0 to 255 that PE 0 "
        f"(LoadStationary) reads, {ORDER}"
    )


def test_a_second_start_in_a_shared_bank_wipes_the_first_group():
    stage = printed("halves")
    found = fault(changed(program_of(stage), "PE", 2, psum_flags=1), stage)
    assert found.code in ("NCC903", "NCC907", "NCC908"), found
    assert "DVE 0 (Copy)" in str(found) or "PE 2 (Matmul)" in str(found), found


def test_a_stray_bit():
    raw = bytearray(encode_stream(streams(program_of(seed()))["PE"]))
    raw[0x29] |= 4
    with pytest.raises(NccError, match="byte 29"):
        decode_stream(bytes(raw))


# --- in every pass: the relu is lost --------------------------------------------------------------


def lost(module: Any) -> Any:
    """The same program without its relu, at whatever level."""
    kind = f"{type(module).__module__.rpartition('.')[2]}.{type(module).__name__}"
    return LOSE[kind](module)


def of_entry(module, change: Callable[[Any], Any]):
    """An HLO module with every instruction of its entry changed."""

    def computation(c):
        body = tuple(map(change, c.instructions))
        return attrs.evolve(c, instructions=body) if c.name == module.entry else c

    return attrs.evolve(module, computations=tuple(map(computation, module.computations)))


def in_hlo(module):
    def inst(i):
        return attrs.evolve(i, opcode="add") if i.opcode == "maximum" else i

    return of_entry(module, inst)


def in_mhlo(func):
    def let(x):
        added = getattr(x.op, "by", "") == "maximum"
        return attrs.evolve(x, op=attrs.evolve(x.op, by="add")) if added else x

    return attrs.evolve(func, body=tuple(map(let, func.body)))


def each(func, change: Callable[[Any], Any]):
    """A Penguin function with every statement changed, loops from the inside."""

    def of(x):
        return change(attrs.evolve(x, body=tuple(map(of, x.body))) if isinstance(x, Loop) else x)

    return attrs.evolve(func, body=tuple(map(of, func.body)))


def in_penguin(func):
    def statement(x):
        if getattr(x, "op", "") == "maximum":
            return attrs.evolve(x, op="add")
        return attrs.evolve(x, func="Copy") if getattr(x, "func", "") == "Relu" else x

    return each(func, statement)


def in_bir(module):
    def inst(i):
        inner = tuple(attrs.evolve(b, insts=tuple(map(inst, b.insts))) for b in i.blocks)
        i = attrs.evolve(i, blocks=inner) if inner else i
        relu = dict(i.keys).get("func") == "Relu"
        return attrs.evolve(i, keys=keyed(i, func="Copy")) if relu else i

    return edited(module, inst)


def in_isa(program):
    relu, plain = ACT_FUNC["Relu"], ACT_FUNC["Copy"]
    for engine, bundles in streams(program).items():
        for number, bundle in enumerate(bundles):
            if dict(bundle.fields).get("act_func") == relu:
                program = changed(program, engine, number, act_func=plain)
    return program


LOSE = {
    "hlo.Module": in_hlo,
    "mhlo.Func": in_mhlo,
    "penguin.Function": in_penguin,
    "bir.Module": in_bir,
    "isa.Program": in_isa,
    "neff.Neff": lambda neff: build(in_isa(unpack(neff))),
}


@pytest.mark.parametrize("name", passes.called())
def test_every_pass_that_loses_the_relu_is_named(name):
    assert told(hlo(SMALL), name, lost) == (
        name,
        "changes the result on whole numbers: out[0,1] was 0, is -11 (15 elements differ)",
    )


# --- in one pass: what it alone can do wrong ------------------------------------------------------


@cache
def wide() -> Stage:
    """Two banks: [128,512] times [512,768]."""
    return hlo(product(128, 512, 768))


@cache
def ragged() -> Stage:
    """A contraction with a tail: 300 is 128 + 128 + 44."""
    return hlo(product(70, 300, 45))


def turned(module):
    """The left input's layout the other way round."""

    def inst(i):
        shape = attrs.evolve(i.shape, layout=Layout((0, 1))) if i.name == "lhs" else i.shape
        return attrs.evolve(i, shape=shape)

    return of_entry(module, inst)


@pytest.mark.parametrize("name", ["normalize-layouts", "assign-layouts", "descending-root"])
def test_a_layout_transposed(name):
    assert told(seed(), name, turned) == (
        name,
        "NCC113 lhs: the parameter is not row-major, bf16[128,512]{0,1}",
    )


def every(kind: type, **changes: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A wreck of Penguin: in each op of a kind, fields made anew from what they were."""

    def statement(x):
        if type(x) is not kind:
            return x
        return attrs.evolve(x, **{name: make(getattr(x, name)) for name, make in changes.items()})

    return lambda func: each(func, statement)


def flipped(view):
    return attrs.evolve(view, index=view.index[::-1])


def tiles(axis: str, **changes: Any) -> Callable[[Any], Any]:
    """A wreck of Penguin: fields of the cuts of one axis replaced."""

    def statement(x):
        cuts = (attrs.evolve(c, **changes) if c.axis == axis else c for c in x.cuts)
        return attrs.evolve(x, cuts=tuple(cuts))

    return lambda func: each(func, statement)


def untransposed(x):
    """A tile loaded as it lies instead of turned."""
    if not isinstance(x, TileTransposeOp):
        return x
    return TileCopyOp(x.name, x.dst, x.par, x.free, src=flipped(x.src), engines=x.engines)


def shorter(x):
    """A loop without its last round: the tail is lost."""
    return attrs.evolve(x, trips=x.trips - 1) if isinstance(x, Loop) else x


def reads_lhs(op):
    """A contraction of the operand as it lies in DRAM."""
    return (
        attrs.evolve(op, lhs=flipped(attrs.evolve(op.lhs, tensor="lhs")))
        if isinstance(op, TensorContractOp)
        else op
    )


def with_tensors(**fields):
    """Every tensor with fields made from its old ones."""

    def wreck(func):
        made = (
            attrs.evolve(t, **{k: v(getattr(t, k)) for k, v in fields.items()})
            for t in func.tensors
        )
        return attrs.evolve(func, tensors=tuple(made))

    return wreck


def unevicted(func):
    """The sums are stored where they lie, without the copy out of PSUM."""
    return each(
        func,
        lambda x: (
            attrs.evolve(x, src=attrs.evolve(x.src, tensor="out_acc"))
            if isinstance(x, TileCopyOp) and x.src.tensor == "out_t"
            else x
        ),
    )


def narrow(axes):
    """An axis of 128 cut at 127, while the next tile still begins 128 further on."""
    return tuple(attrs.evolve(a, extent=127) if a.extent == 128 else a for a in axes)


PENGUIN = [
    (
        "order-loops",
        every(TensorContractOp, axes=lambda axes: axes[::-1]),
        "NCC227 out: its axes are not batch, lhs free, rhs free, contraction",
    ),
    (
        "require-layouts",
        every(TensorContractOp, requires=lambda _: ()),
        "NCC227 out: it must require its contraction axes on both operands",
    ),
    (
        "build-pags",
        lambda func: attrs.evolve(func, pags=func.pags[1:]),
        "NCC227 out: out.0 is in no partition axes group",
    ),
    (
        "solve-layout",
        every(TensorContractOp, swap_operands=lambda swap: not swap),
        "NCC227 out: its partition axes must be the stationary ones, n",
    ),
    (
        "insert-transposes",
        every(TensorTransposeOp, dst=flipped),
        "NCC223 lhs_t: dimension 0 of lhs_t is not indexed by one whole axis",
    ),
    (
        "insert-transposes",
        lambda func: attrs.evolve(func, body=(reads_lhs(func.body[-1]),)),
        "NCC227 out: lhs does not have k on its partitions",
    ),
    (
        "mark-nonlocal",
        with_tensors(home=lambda home: "unplaced" if home == "stream" else home),
        "NCC227 lhs_t: it has no home",
    ),
    (
        "build-pgs",
        every(TensorContractOp, group=lambda group: group + 2),
        "NCC227 out: it is in group 2, after group 0",
    ),
    (
        "build-pgs",
        lambda func: attrs.evolve(func, pgs=((0, ("out",), ("m",)),)),
        "NCC227 pg 0: it lists other ops than its own",
    ),
    (
        "cut-free",
        every(TensorContractOp, cuts=lambda cuts: cuts[:1]),
        "NCC260 out: its moving axes are not cut",
    ),
    (
        "tile-contract",
        every(TensorContractOp, cuts=lambda cuts: (cuts[0], cuts[2])),
        "NCC260 out: its stationary axes are not cut",
    ),
    (
        "emit-tiles",
        with_tensors(shape=lambda shape: tuple(129 if n == 128 else n for n in shape)),
        "NCC264 rhs_t: rhs_t has 129 partitions, and 128 exist",
    ),
    (
        "set-precision",
        with_tensors(dtype=lambda dtype: "bfloat16"),
        "NCC266 out: it adds up in out_acc, which is bfloat16",
    ),
    (
        "widen-fp8fn",
        with_tensors(dtype=lambda dtype: "float8_e4m3fn" if dtype == "bfloat16" else dtype),
        "NCC261 lhs: lhs is float8_e4m3fn, a type that trn2 lacks",
    ),
    (
        "place-psum",
        unevicted,
        "NCC270 store_out: it reads out_acc in PSUM, which only ACT and DVE can",
    ),
    (
        "place-psum",
        every(TensorCopyOp, engines=lambda _: ()),
        "NCC268 evict_out: no engine is named that may run it",
    ),
    (
        "cut-partition",
        tiles("k", tile=129),
        "NCC260 lhs_t: its partition tile has 129 elements, and 128 fit",
    ),
    (
        "cut-partition",
        tiles("k", loops=()),
        "NCC260 lhs_t: the loops and tiles of its partition cut walk k_i, and should walk k",
    ),
    (
        "emit-tiles",
        lambda func: each(func, shorter),
        "changes the result on whole numbers: out[0,0] was -159, is -95 (3126 elements differ)",
    ),
    (
        "place-psum",
        lambda func: attrs.evolve(
            func,
            tensors=tuple(
                attrs.evolve(t, home="sbuf") if t.home == "psum" else t for t in func.tensors
            ),
        ),
        "NCC269 out: the PE array writes out_acc, which is in sbuf",
    ),
    (
        "split-acc-groups",
        every(MatMulOp, accumulate=lambda _: ()),
        "NCC265 out: it accumulates over nothing, inside accumulate loops over k_o",
    ),
]


@pytest.mark.parametrize(
    "name, wreck, said", PENGUIN, ids=lambda x: x if x in passes.called() else ""
)
def test_what_a_pass_over_tensors_and_tiles_can_do_wrong(name, wreck, said):
    found = told(ragged(), name, wreck)
    assert found[0] == name, found
    assert found[1].startswith(said), found


@pytest.mark.parametrize(
    "stage, name, axis",
    [
        (ragged(), "cut-partition", "k"),
        (seed(), "cut-partition", "k"),
        (wide(), "cut-free", "n"),
        (hlo(product(200, 300, 45)), "tile-contract", "m"),
    ],
    ids=["ragged k", "k", "n", "m"],
)
@pytest.mark.parametrize("tile", [127, 64])
def test_an_axis_cut_at_127_is_still_right(stage, name, axis, tile):
    """Another size of tile is slower, not wrong, down to the bytes; only its tail must be kept."""
    assert told(stage, name, tiles(axis, tile=tile)) == ("", "")


def test_an_axis_cut_at_127_that_loses_its_tail():
    """Tiles of 127 that begin 128 apart: the last of each is in no product."""
    found = told(seed(), "emit-tiles", every(MatMulOp, contract=narrow))
    assert found[0] == "emit-tiles"
    assert found[1].startswith("changes the result on whole numbers: out[0,0] was 28, is 42 "), (
        found
    )


def test_a_tile_that_is_not_turned():
    """A square, so that nothing but the values can tell."""
    square = hlo(product(128, 128, 128))
    found = told(square, "emit-tiles", lambda func: each(func, untransposed))
    assert found[0] == "emit-tiles"
    assert found[1].startswith("changes the result on whole numbers: out[0,0] was ")


def test_a_dma_that_does_not_turn():
    def plain(inst):
        turn = dict(inst.keys).get("mode") == "Transpose"
        return attrs.evolve(inst, keys=keyed(inst, mode=None, transpose_op=None)) if turn else inst

    square = hlo(product(128, 128, 128))
    for name in ("unroll", "legalize-sizes"):
        found = told(square, name, lambda module: edited(module, plain))
        assert found[0] == name and found[1].startswith("changes the result on whole"), found


def without(name: str) -> Callable[[Any], Any]:
    """A wreck of BIR: one instruction is gone."""
    return lambda module: edited(module, lambda i: None if i.name == name else i)


def swapped(first: str, second: str) -> Callable[[Any], Any]:
    """A wreck of BIR: two instructions have changed places."""

    def wreck(module):
        insts = list(insts_of(module))
        names = [i.name for i in insts]
        a, b = names.index(first), names.index(second)
        insts[a], insts[b] = insts[b], insts[a]
        return with_insts(module, tuple(insts))

    return wreck


def exchanged(*names: str) -> Callable[[Any], Any]:
    """A wreck of BIR: in some instructions, two accumulators stand for one another."""
    other = {"out_acc_0": "out_acc_1", "out_acc_1": "out_acc_0"}

    def of(operand):
        return attrs.evolve(operand, loc=other.get(operand.loc, operand.loc))

    def inst(i):
        if i.name not in names:
            return i
        return attrs.evolve(i, ins=tuple(map(of, i.ins)), outs=tuple(map(of, i.outs)))

    return lambda module: edited(module, inst)


def unheld(producer: str) -> Callable[[Any], Any]:
    """A wreck of BIR: nobody depends on one instruction any more."""

    def inst(i):
        return attrs.evolve(i, deps=tuple(d for d in i.deps if d[0] != producer))

    return lambda module: edited(module, inst)


def flagged(name: str, flag: int) -> Callable[[Any], Any]:
    return lambda module: one(module, name, keys=(("accumulation_flag", flag),))


def redirected(name: str, place: str) -> Callable[[Any], Any]:
    """A wreck of BIR: an instruction writes to another location."""

    def inst(i):
        outs = tuple(Ap(place, x.dtype, x.ap, x.offset) for x in i.outs)
        return attrs.evolve(i, outs=outs) if i.name == name else i

    return lambda module: edited(module, inst)


def warm(name: str) -> Callable[[Any], Any]:
    def inst(i):
        return attrs.evolve(i, keys=keyed(i, weights_loaded=True)) if i.name == name else i

    return lambda module: edited(module, inst)


UNWRITTEN = (
    "the program no longer runs on whole numbers: NCC430 p.hlo:6:8, out: 32768 elements of the "
    "output out hold bytes that nothing wrote, the first at (0, 0)"
)
BIR = [
    ("unroll", lambda m: one(m, "out.0", keys=(("accumulate", True),)), UNWRITTEN),
    ("unroll", lambda m: one(m, "out.2", keys=()), "changes the result on whole numbers: "),
    ("bir-dce", without("load_rhs.2"), UNWRITTEN),
    ("leave-ssa", redirected("load_rhs.1", "rhs_t_0"), UNWRITTEN),
    (
        "pre-sched",
        swapped("load_rhs.3", "out.3"),
        "NCC526 load_rhs.3: writes rhs_t_3 over a value that out.3 reads",
    ),
    (
        "liveness",
        lambda m: located(m, "lhs_t_1", live=(2, 3)),
        "NCC520 lhs_t_1: live is written as (2, 3), and the instructions say (2, 9)",
    ),
    (
        "alloc-sbuf",
        lambda m: located(m, "rhs_t_1", addr=256),
        "NCC521 rhs_t_1: has bytes 256 to 768, and rhs_t_0, live too, has 256 to 768",
    ),
    (
        "alloc-sbuf",
        lambda m: located(m, "rhs_t_1", addr=212984),
        "NCC521 rhs_t_1: has bytes 212984 to 213496, and EvalAccelReservedLoc, live too, has "
        "212984 to 229376",
    ),
    (
        "bind-dma",
        lambda m: one(m, "load_rhs.1", engine="Pool"),
        "NCC601 load_rhs.1: has queue qSP, but Pool owns qPool",
    ),
    (
        "mm-acc-flags",
        flagged("out.0", 4),
        "NCC611 out.0: adds to bytes of PSUM that nothing has written",
    ),
    (
        "mm-acc-flags",
        flagged("out.2", 1),
        "NCC611 out.2: its START would zero the group of out.1, which no STOP has closed",
    ),
    (
        "mm-acc-flags",
        flagged("out.3", 4),
        "NCC612 evict_out: reads the group of out.3 before a matmul with STOP has closed it",
    ),
    (
        "mm-acc-flags",
        lambda m: one(m, "out.3", keys=()),
        "NCC611 out.3: has accumulation_flag 0; it is START 1 or ACCUMULATE 4, and STOP 2 at the "
        "end",
    ),
    (
        "expand-engines",
        without("exit_dve"),
        "NCC620 evict_out: is the last of DVE, whose stream has no Exit",
    ),
    (
        "sync-waits",
        lambda m: one(m, "out.3", updates=()),
        "NCC614 out.3: counts nothing when complete, and not PE",
    ),
    (
        "alloc-sems",
        lambda m: edited(
            m,
            lambda i: attrs.evolve(
                i, waits=tuple(attrs.evolve(w, value=w.value - 1) for w in i.waits)
            ),
        ),
        "NCC616 out.0: waits for S[12] >= 31; qSP >= 2 is S[12] >= 32",
    ),
    (
        "drop-warm-loads",
        warm("out.2"),
        "NCC622 out.2: loads no weights, and the array holds those of out.1",
    ),
    (
        "drop-warm-loads",
        warm("out.0"),
        "NCC622 out.0: loads no weights, and the array holds no such",
    ),
]


@pytest.mark.parametrize("name, wreck, said", BIR, ids=lambda x: x if x in passes.called() else "")
def test_what_a_pass_over_instructions_can_do_wrong(name, wreck, said):
    found = told(seed(), name, wreck)
    assert found[0] == name, found
    assert found[1].startswith(said), found


@pytest.mark.parametrize("name", ["flow-deps", "anti-deps", "flow-deps.2", "anti-deps.2"])
def test_an_edge_lost(name):
    """Both passes make one fact, which is asked when the second is through; the hint says whose."""
    found = told(seed(), name, unheld("load_rhs.2"))
    assert found == (
        name.replace("flow", "anti"),
        "NCC610 out.2: touches bytes of load_rhs.2 (Flow), and no edge orders the two "
        "(it needs an edge to load_rhs.2, which flow-deps finds)",
    )


WAITS = {
    "out.0": "load_rhs.0 of qSP",
    "out.1": "load_rhs.1 of qSP",
    "out.2": "load_rhs.2 of qSP",
    "out.3": "load_rhs.3 of qSP",
    "evict_out": "out.3 of PE",
    "store_out": "evict_out of DVE",
    "exit_sp": "load_rhs.3 of qSP",
    "exit_act": "store_out of qActivation",
}


@pytest.mark.parametrize("name", WAITS)
def test_each_wait_that_sync_waits_forgets(name):
    found = told(seed(), "sync-waits", lambda module: one(module, name, waits=()))
    assert found[0] == "sync-waits"
    assert found[1].startswith(
        f"NCC613 {name}: depends on {WAITS[name]}, and no wait says so (it needs "
    )


def test_these_are_all_the_waits_of_the_seed():
    done = driver.compile(seed(), stop_after="sync-waits").module
    assert {i.name for i in insts_of(done) if i.waits} == set(WAITS)


def test_two_accumulators_exchanged():
    """In all instructions that changes nothing; in some it is found, whichever they are."""
    every_one = [f"out.{n}.{k}" for n in (0, 1) for k in range(4)] + ["evict_out.0", "evict_out.1"]
    assert told(wide(), "copy-elim", exchanged(*every_one)) == ("", "")
    for names in (["evict_out.0", "evict_out.1"], ["out.0.2"], ["out.0.3", "out.1.3"]):
        name, said = told(wide(), "copy-elim", exchanged(*names))
        assert name == "copy-elim" and ("nothing wrote" in said or "changes the" in said), said
        name, said = told(wide(), "alloc-psum", exchanged(*names))
        assert name == "alloc-psum" and said.startswith("NCC520 out_acc_"), said


def test_two_banks_exchanged_or_shared():
    """Which of the two banks a sum has is free; two sums at once in one bank are not."""

    def both(module):
        return located(located(module, "out_acc_1", addr=0, bank=0), "out_acc_0", addr=2048, bank=1)

    assert told(wide(), "alloc-psum", both) == ("", "")
    stage = printed("halves")
    two = stage.text().replace(
        "set acc float32 (128,512) memory=PSUM\n      loc acc PSUM (128,2048)",
        "set acc float32 (128,256) memory=PSUM\n      loc acc PSUM (128,1024)\n"
        "    set more float32 (128,256) memory=PSUM\n      loc more PSUM (128,1024)",
    )
    two = two.replace("acc:float32[[512,128],[1,256]]+256", "more:float32[[256,128],[1,256]]")
    two = two.replace("acc:float32[[512,128],[1,256]]", "acc:float32[[256,128],[1,256]]")
    two = two.replace(
        "evict = TensorCopy DVE out_t:float32[[512,128],[1,512]] <- acc:float32[[512,128],[1,512]]",
        "evict = TensorCopy DVE out_t:float32[[512,128],[1,256]] <- acc:float32[[256,128],[1,256]]\n"
        "      more = TensorCopy DVE out_t:float32[[512,128],[1,256]]+256 <- "
        "more:float32[[256,128],[1,256]]",
    )
    apart = read_stage(two, "apart.txt")
    assert told(apart, "alloc-psum", lambda m: m) == ("", "")
    name, said = told(apart, "alloc-psum", lambda m: located(m, "more", addr=0, bank=0))
    assert (name, said) == (
        "alloc-psum",
        "NCC521 more: has bytes 0 to 1024, and acc, live too, has 0 to 1024",
    )
    # one bank, other bytes of it: the START of one would wipe the other
    name, said = told(apart, "alloc-psum", lambda m: located(m, "more", addr=1024, bank=0))
    assert name == "alloc-psum" and said.startswith("NCC52"), said


def test_a_table_lost():
    """Softmax without its table, and with another one."""

    def load(change):
        return lambda m: edited(m, lambda i: change(i) if i.opcode == "LoadActFuncSet" else i)

    stage = printed("softmax")
    assert told(stage, "load-act-tables", load(lambda i: None)) == (
        "load-act-tables",
        "NCC621 exp: evaluates Exp, and no set is loaded",
    )
    other = load(lambda i: attrs.evolve(i, keys=keyed(i, act_func_set_id=3)))
    assert told(stage, "load-act-tables", other) == (
        "load-act-tables",
        "NCC621 exp: evaluates Exp, and set 3 is loaded",
    )


def complaints(law: Callable[..., Any], *lines: str) -> list[str]:
    """What a law says of a placed program of these instructions."""
    head = "# ncc bir target=trn2 after=bind-dma\n"
    sets = passes.load("bir.drop_warm_loads").doc.split("Before:")[1].split("block Block1")[0]
    body = "".join(f"          {line}\n" for line in lines)
    text = f"{sets.lstrip(chr(10))}block Block1\n{body}"
    stage = read_stage(head + "\n".join(line[4:] for line in text.split("\n")), "p.txt")
    return [str(wrong) for wrong in law(stage.module, stage.target)]


MM = "Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]]"


def test_weights_that_something_has_written_over_since():
    cold, warm_ = f"{MM} accumulation_flag=3", f"{MM} accumulation_flag=3 weights_loaded=true"
    between = ["i2 = Memset DVE w:bfloat16[[8,4],[1,1]]"]
    assert complaints(warm_weights_are_held, f"i0 = {cold}", f"i1 = {warm_}") == []
    assert complaints(warm_weights_are_held, f"i0 = {cold}", *between, f"i1 = {warm_}") == [
        "NCC622 i1: loads no weights, and i2 has written where they came from"
    ]
    assert complaints(
        warm_weights_are_held, f"i0 = {cold}", f"i1 = {warm_}", *between, f"i3 = {warm_}"
    ) == ["NCC622 i3: loads no weights, and i2 has written where they came from"]


def test_a_stream_that_goes_on_behind_its_exit():
    assert complaints(every_stream_ends, "i0 = NoOp PE", "x = Exit PE", "y = Exit DVE") == []
    assert complaints(every_stream_ends, "x = Exit PE", "i0 = NoOp PE") == [
        "NCC620 i0: stands in the stream of PE behind its Exit",
        "NCC620 i0: is the last of PE, whose stream has no Exit",
    ]


def test_the_order_of_a_sum_shows_in_random_numbers_only():
    """pre-sched is marked exact: bit for bit the same, also where whole numbers cannot tell."""
    assert told(seed(), "pre-sched", swapped("out.1", "out.3")) == ("", "")
    name, said = told(seed(), "pre-sched", swapped("out.1", "out.3"), random=True)
    assert name == "pre-sched" and said.startswith("changes the result on random numbers: "), said
    was, now = said.split("was ")[1].split(" (")[0].split(", is ")
    assert was != now, "as many digits as tell one from the other"


def test_a_pass_that_rounds_may_do_so_within_the_bound():
    """The same order of a sum, in a pass that does not promise bits."""
    real = broken("pre-sched", swapped("out.1", "out.3"))["pre-sched"]
    todo = plan(seed(), replaced={"pre-sched": attrs.evolve(real, exact=False)})
    assert not checking.check(seed(), todo, [checking.random_numbers(seed())]).failed


def test_the_sound_programs_pass():
    for stage in (hlo(SMALL), ragged(), wide()):
        sets = [checking.whole_numbers(stage), checking.random_numbers(stage)]
        result = checking.check(stage, plan(stage), sets)
        assert not result.failed, f"{result.place}: {result.failed}"


# --- from the command line ------------------------------------------------------------------------

WITHOUT_RELU = '''
"""Lower loops, badly."""

import attrs

from ncc import passes
from ncc.ir.bir import with_insts

REAL = passes.load("bir.unroll")


def apply(module, target):
    done = REAL.apply(module, target)
    insts = done.main.blocks[0].insts
    kept = tuple(i for i in insts if not i.name.startswith("load_b"))
    return with_insts(done, kept)


PASS = attrs.evolve(REAL, apply=apply)
'''


def test_check_names_the_pass_of_a_file(tmp_path, capsys):
    (tmp_path / "p.hlo").write_text(SMALL)
    (tmp_path / "mine.py").write_text(WITHOUT_RELU)
    arguments = ["check", str(tmp_path / "p.hlo"), "--with-pass", f"unroll={tmp_path}/mine.py"]
    assert call(arguments) == 3
    assert capsys.readouterr().err == (
        "ncc: NCC008 unroll: the program no longer runs on whole numbers: NCC430 p.hlo:12:8, out: "
        "30 elements of the output out hold bytes that nothing wrote, the first at (0, 0)\n"
    )
