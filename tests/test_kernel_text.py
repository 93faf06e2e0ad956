"""A kernel inside Penguin: what prints reads back, and every law is seen failing."""

from __future__ import annotations

import ast

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_random import random_kernel

from ncc.driver import compile
from ncc.errors import NccError
from ncc.ir import kernel_binary
from ncc.ir import penguin as p
from ncc.ir.kernel import Access, Buffer, Imm, Kernel, KernelOp, Recorded, ops_of
from ncc.ir.kernel_print import pairs_of, show_access, subscript
from ncc.ir.penguin_text import parse, show
from ncc.rules.kernels import RULES, SCALE
from ncc.stages import level, read_stage
from ncc.verify import Verifier


def function_of(*bodies: Kernel, **fields: object) -> p.Function:
    """A function whose tensors are the buffers that the kernel takes and gives."""
    tensors, args, outs = [], [], []
    names = {}
    for body in bodies:
        for b in body.buffers:
            if b.kind in ("input", "inout", "output") and b.name not in names:
                names[b.name] = f"t{len(names)}"
                one = p.Tensor(names[b.name], b.dtype, b.shape, home="dram")
                if b.kind == "output":
                    tensors.append(attrs.evolve(one, kind="output"))
                    outs.append((b.name, one.name))
                    continue
                tensors.append(attrs.evolve(one, kind="input"))
                args.append((b.name, one.name))
                if b.kind == "inout":
                    out = attrs.evolve(one, name=f"{one.name}_out", kind="output")
                    tensors.append(out)
                    outs.append((b.name, out.name))
    node = p.KernelNode("node", bodies, tuple(args), tuple(outs), **fields)
    return p.Function("main", tuple(tensors), (node,))


def origins(function: p.Function) -> list[object]:
    bodies = function.body[0].bodies
    return [
        (x.origin.file, x.origin.line) for b in bodies for x in (b, *b.buffers, *ops_of(b.body))
    ]


@given(st.integers(0, 10**6))
@settings(max_examples=150, derandomize=True, deadline=None)
def test_what_prints_reads_back(seed):
    made = function_of(random_kernel(seed), random_kernel(seed, core=1), sealed=bool(seed % 2))
    text = show(made)
    back = parse(text)
    assert back == made
    assert show(back) == text
    assert origins(back) == origins(made)
    ast.parse(text)


@given(st.integers(0, 10**6))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_what_prints_runs_as_python(seed):
    made = function_of(random_kernel(seed), random_kernel(seed, core=1), sealed=bool(seed % 2))
    names: dict[str, object] = {}
    exec(show(made), names)
    assert names["f"].module == made


@given(st.integers(0, 10**6))
@settings(max_examples=150, derandomize=True, deadline=None)
def test_bytes_read_back(seed):
    bodies = (random_kernel(seed), random_kernel(seed + 1, core=1))
    raw = kernel_binary.pack(bodies)
    back = kernel_binary.unpack(raw)
    assert back == bodies
    assert kernel_binary.pack(back) == raw
    for one, two in zip(bodies, back, strict=True):
        assert [x.origin.line for x in ops_of(one.body)] == [
            x.origin.line for x in ops_of(two.body)
        ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: b"XXXXXXXX" + raw[8:], "begins with"),
        (lambda raw: raw[:8] + b"\x0b" + raw[9:], "version word 11; 13"),
        (lambda raw: raw[:12] + b"\x05" + raw[13:], "content tag 5; 4"),
        (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "checksum"),
        (lambda raw: raw[:-1], "checksum"),
        (lambda raw: raw[:10], "begins with"),
        (lambda raw: b"", "begins with"),
        (lambda raw: resealed(raw[:20] + raw[20:-3]), "damaged"),
        (lambda raw: resealed(raw + b"\0\0"), "2 bytes more"),
        (lambda raw: resealed(raw[:20] + b"\0\0"), "no kernels"),
        (lambda raw: resealed(raw[:20] + b"\0\x07\x01\x2f"), "damaged"),
    ],
)
def test_damaged_bytes_are_one_sentence(change, said):
    raw = kernel_binary.pack((random_kernel(3),))
    with pytest.raises(NccError, match=said) as found:
        kernel_binary.unpack(change(raw), "k.klir")
    assert found.value.code == "NCC392"
    assert "k.klir" in str(found.value)


def resealed(raw: bytes) -> bytes:
    import struct
    import zlib

    return raw[:16] + struct.pack("<I", zlib.crc32(raw[20:])) + raw[20:]


# ---- accesses -----------------------------------------------------------------------------------

T = Buffer("t", "float32", (4, 6, 8), "sbuf")


@pytest.mark.parametrize(
    ("access", "text"),
    [
        (Access("t", "float32", ((48, 4), (8, 6), (1, 8))), "t"),
        (Access("t", "float32", ((48, 2), (8, 6), (1, 8)), 48), "t[1:3, :, :]"),
        (Access("t", "float32", ((48, 4), (1, 8)), 16), "t[:, 2, :]"),
        (Access("t", "float32", ((48, 4), (16, 3), (1, 1)), 3), "t[:, 0:5:2, 3:4]"),
        (Access("t", "float32", ((48, 4), (1, 48))), "t.ap((48, 4), (1, 48))"),
        (
            Access("t", "float32", ((48, 4), (8, 6), (-1, 8)), 7),
            "t.ap((48, 4), (8, 6), (-1, 8), offset=7)",
        ),
        (
            Access("t", "bfloat16", ((96, 4), (2, 48)), 1),
            't.ap((96, 4), (2, 48), offset=1, dtype="bfloat16")',
        ),
    ],
)
def test_an_access_reads_like_the_kernel(access, text):
    assert show_access(access, {"t": T}) == text


def test_a_subscript_that_prints_is_exact():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))
        pairs = tuple((int(s), int(n)) for s, n in rng.integers(0, 6, (rng.integers(1, 4), 2)))
        access = Access("t", "float32", pairs, int(rng.integers(0, 40)))
        found = subscript(access, shape)
        assert found is None or pairs_of(shape, found) == (access.pairs, access.offset)


# ---- laws ---------------------------------------------------------------------------------------


def test_the_rules_own_program_is_sound():
    stage = read_stage(SCALE)
    assert stage.text() == SCALE
    Verifier().check(stage)


PRINTED = [r for r in RULES if r.wrong.startswith("# ncc ")]


@pytest.mark.parametrize("rule", PRINTED, ids=lambda r: r.code)
def test_each_wrong_program_says_so(rule):
    with pytest.raises(NccError) as found:
        compile(read_stage(rule.wrong, "wrong.txt"), stop_after="nki-seal")
    assert found.value.code == rule.code
    compile(read_stage(rule.right), stop_after="nki-seal")


def checked(change, code):
    """The sentence about the rules' program with one body changed."""
    stage = read_stage(SCALE)
    node = stage.module.body[0]
    bodies = (change(node.bodies[0]),)
    module = attrs.evolve(stage.module, body=(attrs.evolve(node, bodies=bodies),))
    with pytest.raises(NccError) as found:
        Verifier().check(attrs.evolve(stage, module=module))
    assert found.value.code == code
    return str(found.value)


def with_op(number: int, **fields: object):
    def change(body: Kernel) -> Kernel:
        ops = list(body.body)
        ops[number] = attrs.evolve(ops[number], **fields)
        return attrs.evolve(body, body=tuple(ops))

    return change


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (with_op(0, op="dma_coppy"), "NCC293", "did you mean dma_copy"),
        (with_op(0, keys=(("oob_mod", "skip"),)), "NCC293", "no key oob_mod"),
        (with_op(0, keys=(("oob_mode", 3),)), "NCC293", "oob_mode of dma_copy cannot be 3"),
        (with_op(1, keys=(("op1", "add"), ("op0", "add"))), "NCC293", "not in order"),
        (with_op(0, engine="tensr"), "NCC293", "no engine is called tensr"),
        (with_op(0, after=("i1",)), "NCC293", "must follow i1"),
        (with_op(0, args=(("dst", Imm(1.0)), ("src", Imm(1.0)))), "NCC293", "is a number"),
        (with_op(0, op="nc_matmul", keys=(("perf_mode", "double_row"),),
                 args=tuple((r, Access("t", "bfloat16", ((8, 4), (4, 2), (1, 4))))
                            for r in ("dst", "stationary", "moving"))), "NCC293", "no 8-bit float"),
        (with_op(2, args=(("dst", Access("x", "float32", ((8, 4), (1, 8)))),
                          ("src", Access("t", "float32", ((8, 4), (1, 8)))))), "NCC292", "writes x"),
        (with_op(2, args=(("dst", Access("y", "float32", ((8, 4), (1, 8)))),
                          ("src", Access("t", "float32", ((8, 4), (8, 2)))))), "NCC292", "reaches t"),
        (with_op(2, args=(("dst", Access("y", "float32", ((8, 4), (1, 8)))),
                          ("src", Access("t", "float32", ((4, 4), (1, 4)))))), "NCC292", "first pair"),
        (with_op(2, args=(("dst", Access("y", "float32", ((8, 4), (1, 8)))),
                          ("src", Access("u", "float32", ((8, 4), (1, 8)))))), "NCC292", "no buffer"),
    ],
)  # fmt: skip
def test_a_body_that_is_wrong(change, code, said):
    assert said in checked(change, code)


def test_a_buffer_that_is_wrong():
    def buffers(**fields: object):
        return lambda body: attrs.evolve(
            body, buffers=(*body.buffers[:2], attrs.evolve(body.buffers[2], **fields))
        )

    assert "129" in checked(buffers(shape=(129, 8)), "NCC310")
    assert "no dtype" in checked(buffers(dtype="float33"), "NCC291")
    assert "byte 2" in checked(buffers(address=(0, 2)), "NCC291")
    assert "const" in checked(buffers(kind="const"), "NCC291")
    assert "no parameter" in checked(buffers(kind="input"), "NCC294")


def test_a_kernel_may_stand_beside_ops():
    text = SCALE.replace(
        "            results(y)\n",
        "            results(y)\n"
        '    a, b = axis("a b")\n'
        '    ElementwiseOp("z", "copy", z[a, b], srcs=(x[a, b],), axes=axes(a=4, b=8))\n',
    ).replace("    with Kernel", '    z = tensor("z", "float32", (4, 8))\n    with Kernel')
    stage = read_stage(text)
    Verifier().check(stage)
    assert read_stage(stage.text()).module == stage.module


# ---- calls --------------------------------------------------------------------------------------


def test_a_live_call_prints_and_does_not_read_back_as_one():
    class Live:
        label = "scale.py:scale"

        def trace(self, target):
            return read_stage(SCALE).module.body[0].bodies

    stage = read_stage(SCALE)
    call = p.KernelCall("scale", Live(), (("x", "x"),), (("y", "y"),))
    made = attrs.evolve(stage, module=attrs.evolve(stage.module, body=(call,)))
    text = made.text()
    assert 'KernelCall("scale", source="scale.py:scale")' in text
    done = compile(made, stop_after="nki-trace")
    assert done.module.body[0].bodies == stage.module.body[0].bodies
    with pytest.raises(NccError, match=r"NCC390.*scale.py:scale"):
        compile(read_stage(text), stop_after="nki-trace")


def test_a_recorded_call_keeps_its_bodies():
    text = SCALE.replace("KernelNode", "KernelCall")
    call = read_stage(text).module.body[0]
    assert isinstance(call.source, Recorded)
    assert read_stage(text).text() == text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("dst=t, src=x", "dst=t, src=q", "no buffer is called q"),
        ("dst=t, src=x", "dst=t, src=x[0]", "x has 2 dimensions, was indexed by 1"),
        ("dst=t, src=x", "dst=t, src=x[0:4:0, :]", "START:STOP:STEP"),
        ("dst=t, src=x", "dst=t, sorce=x", "dma_copy has no sorce"),
        ("nisa.dma_copy(dst=t", "nisa.dma_cpy(dst=t", "did you mean dma_copy"),
        ("nisa.dma_copy(dst=t", "nl.dma_copy(dst=t", "nisa.OP"),
        ("dst=t, src=x", "dst=t, src=x.ap((8, 4, 1))", "ap((STEP, NUM)"),
        ("dst=t, src=x", "dst=t, src=x.ap((8, 4), stride=1)", "ap((STEP, NUM)"),
        ("dst=t, src=x", "dst=t, src=x.by(3, 1, 1)", ".by of a register"),
        ('args(("x", x))', 'args(("x", w))', "no tensor is called w"),
        ('with body("scale"):', 'with bdy("scale"):', "with body(NAME)"),
        ('KernelNode("scale")', 'KernelNode("scale", color=3)', "KernelNode has no color"),
        ('KernelNode("scale")', 'KernelNod("scale")', "did you mean KernelNode"),
        ('"sbuf")', '"sbuf", adress=(0, 0))', "did you mean address"),
        ('t = buffer("t"', 't = buffer("u"', "buffer(NAME"),
    ],
)
def test_text_that_does_not_read(old, new, said):
    assert old in SCALE
    with pytest.raises(NccError, match="NCC009") as found:
        read_stage(SCALE.replace(old, new, 1), "k.txt")
    assert said in str(found.value)
    assert "k.txt:" in str(found.value)


def test_it_draws():
    picture = level("penguin").get("draw")(read_stage(SCALE).module, frozenset())
    assert "2 dma_copy" in picture and "n0 -> n1" in picture


def test_an_op_names_its_line():
    body = read_stage(SCALE).module.body[0].bodies[0]
    lines = [str(x.origin) for x in body.body]
    assert lines == ["scale.py:5", "scale.py:6", "scale.py:7"]
    assert isinstance(body.body[0], KernelOp)
