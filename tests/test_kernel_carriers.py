"""A kernel's way through BIR: both forms, the call site, inlining; addresses, cores, refusals."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from ncc.driver import check, compile
from ncc.errors import NccError
from ncc.ir import kernel_binary
from ncc.ir import penguin as p
from ncc.ir.bir import Ap, File, Inst, with_insts
from ncc.ir.bir_json import from_json, to_json
from ncc.ir.bir_opcodes import key, keyed
from ncc.ir.bir_text import parse, show
from ncc.ir.core import Origin
from ncc.ir.kernel import Access, Buffer, Imm, Kernel, KernelOp
from ncc.ir.kernel_rectangles import rectangles
from ncc.passes import load
from ncc.rules.kernels import SCALE
from ncc.stages import Stage, level, read_stage
from ncc.target import target
from ncc.verify import Verifier
from ncc.walking import run_stage

HEAD = "# ncc penguin target=trn2 after=split-acc-groups\n"
X = np.arange(32, dtype=np.float32).reshape(4, 8)
STOPS = ("penguin-to-bir", "translate-nki", "inline-kernels")


def program(
    body: str, *, tensors: str = "", args: str = '("x", x)', outs: str = '("y", y)', **more
) -> str:
    """A program with one kernel of x (4,8) to y (4,8)."""
    form = more.get("form", "bir")
    lines = "\n".join(f"            {line}" for line in body.strip("\n").split("\n"))
    return (
        f"{HEAD}from ncc.penguin import *\n"
        'with function("main") as f:\n'
        '    x = tensor("x", "float32", (4, 8), kind="input", home="dram")\n'
        '    y = tensor("y", "float32", (4, 8), kind="output", home="dram")\n'
        f"{tensors}"
        f'    with KernelNode("k", form="{form}"):  # k.py:1\n'
        f"        args({args})\n        outs({outs})\n"
        f'        with body("k"):\n{lines}\n'
    )


BUFFERS = """
x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
"""
OVERLAP = program(
    BUFFERS
    + """
t = buffer("t", "float32", (4, 8), "sbuf", address=(0, 64))
u = buffer("u", "float32", (2, 8), "sbuf", address=(1, 80))
v = buffer("v", "float32", (4, 8), "sbuf", address=(32, 64))
params(x)
i0 = nisa.dma_copy(dst=t, src=x)  # k.py:2
i1 = nisa.dma_copy(dst=v, src=x)  # k.py:3
i2 = nisa.dma_copy(dst=y, src=t)  # k.py:4
i3 = nisa.dma_copy(dst=u, src=x[2:4, :])  # k.py:5
i4 = nisa.dma_copy(dst=y[0:2, :], src=u)  # k.py:6
results(y)
"""
)


def outputs(text: str, stop: str, *inputs: np.ndarray) -> list[np.ndarray]:
    return run_stage(compile(read_stage(text), stop_after=stop), list(inputs))


@pytest.mark.parametrize("form", ["bir", "klir"])
def test_every_step_means_the_same(form):
    text = SCALE.replace('KernelNode("scale")', f'KernelNode("scale", form="{form}")')
    for stop in ("nki-seal", *STOPS, "unroll", "pack"):
        (found,) = outputs(text, stop, X)
        assert np.array_equal(found, 2 * X), stop
    assert check(read_stage(text)).passed


def test_both_forms_give_one_program():
    made = [
        compile(
            read_stage(OVERLAP.replace('form="bir"', f'form="{form}"')), stop_after="inline-kernels"
        )
        for form in ("bir", "klir")
    ]
    assert made[0].module == made[1].module
    neffs = [compile(one).module for one in made]
    assert neffs[0] == neffs[1]


@pytest.mark.parametrize("form", ["bir", "klir"])
@pytest.mark.parametrize("stop", STOPS)
def test_every_stage_reads_back(form, stop):
    stage = compile(read_stage(OVERLAP.replace('form="bir"', f'form="{form}"')), stop_after=stop)
    text = stage.text()
    assert read_stage(text) == stage
    assert read_stage(text).text() == text
    assert from_json(to_json(stage.module)) == stage.module
    assert level("bir").get("draw")(stage.module, frozenset()).startswith("digraph")


def test_what_the_carriers_say():
    carrier = compile(read_stage(OVERLAP), stop_after="penguin-to-bir").module
    inst = carrier.main.blocks[0].insts[0]
    assert (inst.opcode, inst.engine) == ("NKIKLIRKernel", "ALL")
    assert dict(inst.keys) == {
        "klir_binary": "k.json",
        "kernel_format": "bir",
        "nki_binary_version_identifier": "1.0.0",
        "func_args": (("x", "x"),),
        "func_outs": (("y", "y"),),
    }
    assert [f.name for f in carrier.files] == ["k.json"]
    called = compile(read_stage(OVERLAP), stop_after="translate-nki").module
    site = called.main.blocks[0].insts[0]
    assert site.opcode == "NKIKernel"
    assert dict(site.keys)["func"] == "k"
    assert dict(site.keys)["sb_buf_shape"] == (128, 112)
    assert dict(site.keys)["kernel_source_val"] == 2
    assert [f.name for f in called.functions] == ["sg0000", "k"]
    assert called.files == ()


# ---- inlining -----------------------------------------------------------------------------------


def test_overlapping_tensors_are_views_of_one_location():
    stage = compile(read_stage(OVERLAP), stop_after="inline-kernels")
    main = stage.module.main
    placed = [
        (loc.name, loc.dims, loc.addr, loc.base, loc.pinned)
        for of in main.sets
        for loc in of.locs
        if loc.type == "SB"
    ]
    assert placed == [
        ("k:t.shared", (4, 48), 64, 0, True),
        ("k:v", (4, 32), 64, 32, True),
    ]
    by_name = {i.name: i for i in main.blocks[0].insts}
    assert by_name["k:i0"].outs[0] == Ap("k:t.shared", "float32", ((12, 4), (1, 8)), 0)
    assert by_name["k:i3"].outs[0] == Ap("k:t.shared", "float32", ((12, 2), (1, 8)), 12 + 4)
    (found,) = run_stage(stage, [X])
    want = X.copy()
    want[0:2] = X[2:4]
    assert np.array_equal(found, want)
    assert check(read_stage(OVERLAP)).passed
    end = compile(stage, stop_after="alloc-sbuf").module.main
    kept = [
        (loc.name, loc.addr, loc.base)
        for of in end.sets
        for loc in of.locs
        if loc.pinned and loc.name[0] == "k"
    ]
    assert kept == [("k:t.shared", 64, 0)]  # nothing reads the other


def test_rectangles_grow_until_none_meet():
    """Against a slow definition: connected tensors end in one rectangle that covers each."""
    rng = np.random.default_rng(1)
    from ncc.ir.bir import Loc, LocSet

    call = Inst("k", "NKIKernel", "ALL")
    for _ in range(60):
        sets = []
        for n in range(int(rng.integers(1, 9))):
            rows, width = int(rng.integers(1, 9)), 4 * int(rng.integers(1, 9))
            base, addr = int(rng.integers(0, 100)) // 8 * 8, 4 * int(rng.integers(0, 40))
            loc = Loc(f"t{n}", "SB", (rows, width), addr, base, allocated=True, pinned=True)
            sets.append(LocSet(f"t{n}", "float32", (rows, width // 4), memory="SB", locs=(loc,)))
        made, views = rectangles(call, sets)
        boxes = {of.locs[0].name: of.locs[0] for of in made}
        assert len(boxes) == len(made)
        area = list(boxes.values())
        for i, a in enumerate(area):
            for b in area[:i]:
                apart = (
                    a.addr + a.dims[1] <= b.addr
                    or b.addr + b.dims[1] <= a.addr
                    or a.base + a.dims[0] <= b.base
                    or b.base + b.dims[0] <= a.base
                )
                assert apart
        for of in sets:
            loc = of.locs[0]
            view = views.get(loc.name)
            if view is None:
                assert boxes[loc.name] == loc
                continue
            box = boxes[view.loc]
            row, size = loc.dims[1] // 4, loc.dims[0] * loc.dims[1] // 4
            for element in {0, size - 1, int(rng.integers(0, size))}:
                now = view.access(Ap(loc.name, "float32", ((row, 1), (1, 1)), element), call)
                p, b = divmod(now.offset * 4, box.dims[1])
                assert (box.base + p, box.addr + b) == (
                    loc.base + element // row,
                    loc.addr + element % row * 4,
                )


INOUT = program(
    """
x = buffer("x", "float32", (4, 8), "shared_hbm", kind="inout")
t = buffer("t", "float32", (2, 8), "sbuf")
params(x)
i0 = nisa.dma_copy(dst=t, src=x[0:2, :])  # k.py:2
i1 = nisa.tensor_scalar(dst=t, data=t, operand0=3.0, op0="multiply")  # k.py:3
i2 = nisa.dma_copy(dst=x[2:4, :], src=t)  # k.py:4
results(x)
""",
    outs='("x", y)',
)


@pytest.mark.parametrize("stop", ["nki-seal", *STOPS, "pack"])
def test_an_argument_that_is_written_comes_out_as_another_tensor(stop):
    want = X.copy()
    want[2:4] = 3 * X[0:2]
    (found,) = outputs(INOUT, stop, X)
    assert np.array_equal(found, want)


def test_two_calls_share_a_tensor_and_no_name():
    one = SCALE.replace(
        '    y = tensor("y", "float32", (4, 8), kind="output"',
        '    m = tensor("m", "float32", (4, 8)',
    ).replace('(("y", y))', '(("y", m))')
    assert '("m", "float32", (4, 8), home="dram")' in one
    at = one.index("    with KernelNode")
    second = (
        one[at:]
        .replace('("scale")', '("scale2")', 1)
        .replace('(("x", x))', '(("x", m))')
        .replace('(("y", m))', '(("y", y))')
    )
    text = (
        one[:at]
        + '    y = tensor("y", "float32", (4, 8), kind="output", home="dram")\n'
        + one[at:]
        + second
    )
    for stop in ("nki-seal", *STOPS, "pack"):
        (found,) = outputs(text, stop, X)
        assert np.array_equal(found, 4 * X), stop
    names = [
        i.name
        for i in compile(read_stage(text), stop_after="inline-kernels").module.main.blocks[0].insts
    ]
    assert names == [f"{k}:i{n}" for k in ("scale", "scale2") for n in range(3)] + ["exit"]


def test_explicit_order_is_kept_by_name():
    text = SCALE.replace(
        "nisa.dma_copy(dst=y, src=t)", 'nisa.dma_copy(dst=y, src=t, after=("i0",))'
    )
    module = compile(read_stage(text), stop_after="inline-kernels").module
    last = module.main.blocks[0].insts[2]
    assert last.deps == (("scale:i0", "Ordered"),)


# ---- cores --------------------------------------------------------------------------------------


def two_cores(meeting: str = "m{n} = nisa.core_barrier(data=h)  # k.py:5", **more) -> str:
    """Each core doubles its half of x into shared h, meets the other, and reads the other's half."""
    bodies = ""
    for core in (0, 1):
        mine, other = (f"{2 * c}:{2 * c + 2}" for c in (core, 1 - core))
        meets = meeting.format(n=core) if meeting else ""
        lines = f"""
x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
h = buffer("h", "float32", (4, 8), "shared_hbm")
t = buffer("t", "float32", (2, 8), "sbuf", address=(0, 0))
u = buffer("u", "float32", (2, 8), "sbuf", address=(0, 16))
params(x)
i0 = nisa.dma_copy(dst=t, src=x[{mine}, :])  # k.py:2
i1 = nisa.tensor_scalar(dst=t, data=t, operand0={core + 2}.0, op0="multiply")  # k.py:3
i2 = nisa.dma_copy(dst=h[{mine}, :], src=t)  # k.py:4
{meets}
i3 = nisa.dma_copy(dst=u, src=h[{other}, :])  # k.py:6
i4 = nisa.dma_copy(dst=y[{mine}, :], src=u)  # k.py:7
results(y)"""
        head = "" if not core else '        with body("k", core=1):\n'
        bodies += head + "".join(f"            {x}\n" for x in lines.split("\n") if x)
    text = program("pass", **more)
    return text.replace("            pass\n", bodies)


@pytest.mark.parametrize("form", ["bir", "klir"])
@pytest.mark.parametrize("stop", ["nki-seal", *STOPS, "pack"])
def test_two_cores_meet(form, stop):
    (found,) = outputs(two_cores(form=form), stop, X)
    assert np.array_equal(found, np.concatenate([3 * X[2:4], 2 * X[0:2]]))


@pytest.mark.parametrize("form", ["bir", "klir"])
def test_each_core_opens_its_own_body(form):
    split = compile(read_stage(two_cores(form=form)), stop_after="lnc-split").module
    opened = compile(read_stage(two_cores(form=form)), stop_after="translate-nki").module
    for core, (before, after) in enumerate(zip(split.modules, opened.modules, strict=True)):
        assert key(before.main.blocks[0].insts[0], "core") == core
        assert [f.name for f in after.functions] == ["sg0000", f"k_{core}"]
        assert from_json(to_json(after)) == after and parse(show(after)) == after
    for core, module in enumerate(
        compile(read_stage(two_cores(form=form)), stop_after="inline-kernels").module.modules
    ):
        names = [i.name for i in module.main.blocks[0].insts]
        made = ("i0", "i1", "i2", f"m{core}", "i3", "i4")
        assert names == [*(f"k_{core}:{n}" for n in made), "exit"]
        assert [of.name for of in module.main.sets] == ["x", "y", "k:h", f"k_{core}:t.shared"]
        assert module.main.sets[3].locs[0].pinned


def test_unsplit_cores_are_one_stream():
    """What a call of several functions means, and what becomes of it on a chip without pairs."""
    stage = compile(read_stage(two_cores()), stop_after="penguin-to-bir")
    called = attrs.evolve(stage, module=load("bir.translate_nki").apply(stage.module, stage.target))
    assert [f.name for f in called.module.functions] == ["sg0000", "k_0", "k_1"]
    assert dict(called.module.main.blocks[0].insts[0].keys)["func"] == ("k_0", "k_1")
    main = load("bir.inline_kernels").apply(called.module, stage.target).main
    names = [i.name for i in main.blocks[0].insts]
    assert names == [
        f"k_{c}:i{n}" for part in ((0, 1, 2), (3, 4)) for c in (0, 1) for n in part
    ] + ["exit"]
    pinned = {of.name: of.locs[0].pinned for of in main.sets if of.memory == "SB"}
    assert pinned == {"k_0:t.shared": True, "k_1:t.shared": False}
    dram = [(of.name, of.kind) for of in main.sets if of.memory == "DRAM"]
    assert dram == [("x", "ExternalInput"), ("y", "ExternalOutput"), ("k:h", "Internal")]


def test_two_cores_exchange_tiles():
    meeting = (
        "s{n} = nisa.sendrecv(dst=r, src=t, send_to_rank=PEER{n}, recv_from_rank=PEER{n}, pipe_id=3)"
        "  # k.py:5"
    )
    text = two_cores(meeting)
    for core in (0, 1):
        text = text.replace(f"PEER{core}", str(1 - core))
    text = text.replace(
        't = buffer("t"', 'r = buffer("r", "float32", (2, 8), "sbuf")\n            t = buffer("t"'
    )
    text = text.replace("dst=u, src=h[0:2, :]", "dst=u, src=r").replace(
        "dst=u, src=h[2:4, :]", "dst=u, src=r"
    )
    text = text.replace("send_to_rank=0, ", "").replace("recv_from_rank=0, ", "")
    for stop in ("nki-seal", *STOPS, "pack"):
        (found,) = outputs(text, stop, X)
        assert np.array_equal(found, np.concatenate([3 * X[2:4], 2 * X[0:2]])), stop


def test_cores_that_do_not_meet_are_refused():
    text = two_cores().replace("            m1 = nisa.core_barrier(data=h)  # k.py:5\n", "")
    with pytest.raises(NccError, match=r"NCC396.*core 0 waits at a core_barrier \(k.py:5\)"):
        compile(read_stage(text), stop_after="inline-kernels")


# ---- what is refused ----------------------------------------------------------------------------


def carrier(**changes: object) -> Stage:
    """The carrier's stage with keys or the file changed."""
    stage = compile(
        read_stage(SCALE.replace('("scale"):', '("scale", form="klir"):', 1)),
        stop_after="penguin-to-bir",
    )
    module = stage.module
    files = changes.pop("files", module.files)
    first, *rest = module.main.blocks[0].insts
    first = attrs.evolve(first, keys=keyed(first.opcode, first.keys, **changes))
    block = attrs.evolve(module.main.blocks[0], insts=(first, *rest))
    main = attrs.evolve(module.main, blocks=(block,))
    return attrs.evolve(stage, module=attrs.evolve(module, functions=(main,), files=files))


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"kernel_format": "elf"}, "NCC391", "travels as 'elf'"),
        ({"klir_binary": "scal.klir"}, "NCC391", "did you mean scale.klir"),
        ({"nki_binary_version_identifier": "0.9"}, "NCC393", "0.9"),
        ({"files": (File("scale.klir", "hex:00"),)}, "NCC392", "begins with"),
        ({"files": (File("scale.klir", "{}"),)}, "NCC392", "does not hold bytes"),
        ({"kernel_format": "bir"}, "NCC426", "scale.klir"),
        ({"func_args": (("x", "q"),)}, "NCC394", "binds x to q"),
    ],
)
def test_a_carrier_that_is_wrong(changes, code, said):
    for go in (lambda s: compile(s, stop_after="inline-kernels"), lambda s: run_stage(s, [X])):
        with pytest.raises(NccError) as found:
            go(carrier(**dict(changes)))
        assert found.value.code == code
        assert said in str(found.value)


def test_a_call_of_no_function_is_refused():
    stage = compile(read_stage(SCALE), stop_after="translate-nki")
    gone = attrs.evolve(
        stage, module=attrs.evolve(stage.module, functions=stage.module.functions[:1])
    )
    with pytest.raises(NccError, match="NCC394"):
        compile(gone, stop_after="inline-kernels")


@pytest.mark.parametrize(
    ("opcode", "keys"),
    [
        (
            "CustomOp",
            'opFunctionName=erf opLibFile=lib.so srcsShape=((4,8),) ulib_to_isa_version="1.2"',
        ),
        ("BIRKernel", 'kernel_attrs="{}" kernel_name=mlp lnc_size=2 srcs_shape=((4,8),)'),
    ],
)
def test_other_carriers_print_and_are_refused(opcode, keys):
    text = (
        "module m gen3\n  func sg0000\n    set x float32 (4,8) kind=ExternalInput\n"
        "    set y float32 (4,8) kind=ExternalOutput\n    block Block1\n"
        f"      c = {opcode} ALL y[a,b|a:4|b:8] <- x[a,b|a:4|b:8] {keys}\n      exit = Exit ALL\n"
    )
    module = parse(text)
    assert show(module) == text
    assert from_json(to_json(module)) == module
    stage = read_stage(
        "# ncc bir target=trn2 after=penguin-to-bir facts=no-matmul-has-a-flag\n" + text
    )
    Verifier().check(stage)
    with pytest.raises(NccError, match=f"NCC397.*{opcode}"):
        compile(stage)
    with pytest.raises(NccError, match="NCC397"):
        run_stage(stage, [X])


def test_a_custom_op_is_refused_at_encode_too():
    """Where a stage that ncc did not make brings one past the pass that refuses it."""
    stage = compile(read_stage(SCALE), stop_after="drop-warm-loads")
    func = stage.module.main
    insts = list(func.blocks[0].insts)
    at = next(i for i, inst in enumerate(insts) if inst.opcode == "TensorScalar")
    keys = keyed("CustomOp", opFunctionName="mine", opLibFile="lib.so")
    insts[at] = attrs.evolve(insts[at], opcode="CustomOp", engine="Pool", keys=keys)
    module = with_insts(stage.module, tuple(insts))
    assert parse(show(module)) == module
    with pytest.raises(NccError, match="calls 'mine', which the built-in library has not"):
        load("output.encode").run(module, stage.target)


def test_a_program_without_kernels_is_left_alone():
    from ncc import passes

    stage = compile(read_stage(OVERLAP), stop_after="inline-kernels")
    for entry in ("bir.translate_nki", "bir.inline_kernels"):
        assert passes.load(entry).apply(stage.module, stage.target) is stage.module


def test_equal_calls_are_never_merged():
    from ncc import passes

    at = SCALE.index("    with KernelNode")
    twice = (
        SCALE[:at]
        + '    z = tensor("z", "float32", (4, 8), kind="output", home="dram")\n'
        + SCALE[at:]
    )
    twice += SCALE[at:].replace('("scale")', '("again")', 1).replace('(("y", y))', '(("y", z))')
    module = read_stage(twice).module
    for entry in ("penguin.value_number", "penguin.penguin_dce", "penguin.simplify"):
        assert passes.load(entry).apply(module, read_stage(twice).target) is module
    assert [len(o) for o in outputs(twice, "pack", X)] == [4, 4]
    for stop, opcode in (("penguin-to-bir", "NKIKLIRKernel"), ("translate-nki", "NKIKernel")):
        found = compile(read_stage(twice), stop_after=stop).module.main.blocks[0].insts
        assert sum(inst.opcode == opcode for inst in found) == 2


def test_klir_holds_the_lines():
    stage = compile(
        read_stage(SCALE.replace('("scale"):', '("scale", form="klir"):', 1)),
        stop_after="penguin-to-bir",
    )
    (body,) = kernel_binary.unpack(bytes.fromhex(stage.module.files[0].content[4:]))
    assert [op.origin.line for op in body.body] == [5, 6, 7]
    inlined = compile(stage, stop_after="inline-kernels").module.main.blocks[0].insts
    assert [i.origin.line for i in inlined[:3]] == [5, 6, 7]


# ---- random kernels with addresses --------------------------------------------------------------


def part(of: Buffer, rows: int, cols: int, row: int = 0) -> Access:
    width = of.shape[1]
    return Access(of.name, "float32", ((width, rows), (1, cols)), row * width)


def crowded(seed: int) -> Stage:
    """A kernel whose tiles lie on top of one another, and copies between them."""
    r = random.Random(seed)
    x = Buffer("x", "float32", (64, 32), "shared_hbm", "input")
    y = Buffer("y", "float32", (64, 32), "shared_hbm", "output")
    chips: list[Buffer] = []
    for n in range(r.randint(2, 6)):
        rows, cols = r.choice((16, 32, 64)), r.choice((4, 8, 16, 32))
        base = r.choice((0, 32, 64)) if rows <= 32 else 0
        memory = "sbuf" if r.random() < 0.8 else "psum"
        byte = 4 * r.randint(0, 20 if memory == "sbuf" else 400)
        address = None if r.random() < 0.25 else (base, byte)
        chips.append(Buffer(f"t{n}", "float32", (rows, cols), memory, address=address))
    ops: list[KernelOp] = []

    def emit(op: str, *args: tuple[str, object], **keys: object) -> None:
        name = f"i{len(ops)}"
        ops.append(
            KernelOp(name, op, args, tuple(keys.items()), origin=Origin("k.py", len(ops) + 1))
        )

    emit("dma_copy", ("dst", part(y, 64, 32)), ("src", part(x, 64, 32)))
    for of in chips:
        if of.memory == "sbuf":
            source = part(x, *of.shape, r.randint(0, 64 - of.shape[0]))
            emit("dma_copy", ("dst", part(of, *of.shape)), ("src", source))
        else:
            emit("memset", ("dst", part(of, *of.shape)), value=float(r.randint(1, 5)))
    for _ in range(r.randint(3, 12)):
        a, b = r.choice(chips), r.choice(chips)
        rows, cols = min(a.shape[0], b.shape[0], 32), min(a.shape[1], b.shape[1])
        to, source = ("dst", part(a, rows, cols)), part(b, rows, cols)
        kind = r.random()
        if kind < 0.4:
            emit("tensor_copy", to, ("src", source))
        elif kind < 0.7:
            emit("tensor_scalar", to, ("data", source), ("operand0", Imm(1.5)), op0="multiply")
        elif b.memory == "sbuf":
            emit("dma_copy", ("dst", part(y, rows, cols, r.randint(0, 32))), ("src", source))
    for of in chips:
        if of.memory == "sbuf":
            emit("dma_copy", ("dst", part(y, *of.shape)), ("src", part(of, *of.shape)))
    body = Kernel("k", (x, y, *chips), ("x",), (part(y, 64, 32),), tuple(ops))
    tensors = tuple(p.Tensor(b.name, b.dtype, b.shape, b.kind, "dram") for b in (x, y))
    node = p.KernelNode("k", (body,), (("x", "x"),), (("y", "y"),))
    return Stage(
        "penguin", target("trn2"), "split-acc-groups", (), p.Function("f", tensors, (node,))
    )


@pytest.mark.parametrize("seed", range(16))
def test_tiles_on_top_of_one_another(seed):
    stage = crowded(seed)
    x = np.random.default_rng(seed).integers(-9, 9, (64, 32)).astype(np.float32)
    (want,) = run_stage(stage, [x])
    for stop in ("translate-nki", "inline-kernels", "alloc-dram", "pack"):
        (found,) = run_stage(compile(stage, stop_after=stop), [x])
        assert np.array_equal(found, want), stop


# ---- facts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "fact", "code"),
    [
        ("nki-trace", "kernels-are-sealed", "NCC299"),
        ("penguin-to-bir", "no-carrier-is-left", "NCC391"),
        ("translate-nki", "no-kernel-is-left", "NCC394"),
    ],
)
def test_a_fact_that_does_not_hold_is_named(stop, fact, code):
    stage = compile(read_stage(SCALE), stop_after=stop)
    with pytest.raises(NccError) as found:
        Verifier().check(attrs.evolve(stage, facts=(*stage.facts, fact)))
    assert found.value.code == code


def test_a_call_that_is_left_is_named():
    stage = read_stage(SCALE.replace("KernelNode", "KernelCall"))
    with pytest.raises(NccError, match="NCC297"):
        Verifier().check(attrs.evolve(stage, facts=("kernels-are-traced",)))
