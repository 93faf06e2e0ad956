"""Penguin's text: what prints reads back, and runs as Python to the same module."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ncc.errors import NccError
from ncc.ir import penguin as p
from ncc.ir.affine import Affine, Floor, Least, Mod, affine
from ncc.ir.core import Origin
from ncc.ir.data import data
from ncc.ir.penguin_print import OPS
from ncc.ir.penguin_text import parse, show

ax = p.axis_index


def view(tensor: str, *names: str) -> p.View:
    return p.View(tensor, tuple(ax(n) for n in names))


def sample(kind: type) -> object:
    """A value for every field of an op, none of them the default."""
    cut = p.Cut("contract", ("k_o",), ("k_i",), "k", 128)
    words = {
        "op": "add",
        "kind": "pe",
        "func": "Relu",
        "op0": "max",
        "op1": "add",
        "perf_mode": "double_row",
        "name": "thing",
    }
    made: dict[str, object] = {}
    for field in kind.__attrs_attrs__:
        name = field.name
        if name in words:
            made[name] = words[name]
        elif name in ("dst", "lhs", "rhs", "src", "stationary", "moving", "src0", "src1"):
            odd = affine(3, {"m": 128, "k_i": -1})
            made[name] = p.View("x", (odd, Mod(ax("k_o"), 2), Floor(ax("m"), 4)))
        elif name in ("bias", "operand0"):
            made[name] = view("y", "m")
        elif name == "operand1":
            made[name] = -0.0
        elif name == "srcs":
            made[name] = (view("y", "m"), 1.5, -math.inf, math.nan, -0.0)
        elif name in ("axes", "par", "free", "contract"):
            made[name] = (p.Axis("m", 5), p.Axis("k_i", Least(128, affine(333, {"k_o": -128}))))
        elif name == "requires":
            made[name] = (("lhs", ("m", "k_i")), ("rhs", ()))
        elif name == "cuts":
            made[name] = (cut, p.Cut("moving", (), ("m",)))
        elif name in ("swap_operands", "reverse0"):
            made[name] = True
        elif name in ("scale", "value"):
            made[name] = 0.125
        elif name == "group":
            made[name] = 7
        elif name in ("tile_position", "tile_size"):
            made[name] = (32, 64)
        elif name == "origin":
            made[name] = Origin("a.hlo", 6, 0, ("emit-tiles",))
        else:
            made[name] = ("k_o",)
    return kind(**made)


def everything() -> p.Function:
    ops = tuple(sample(kind) for kind in OPS.values())
    tensors = (
        p.Tensor("x", "bfloat16", (4, 8, 3), "input", "dram", declared="float8_e4m3fn"),
        p.Tensor("y", "float32", (3,), "const", "dram", data=data("float32", np.arange(3))),
        p.Tensor("z", "float32", (2, 128, 4), home="sbuf", blocks=1, ring=True),
        p.Tensor("w", "float32", (4, 128), home="sbuf", partition_dims=(1, 0)),
        p.Tensor("s", "float32", (), "output", "dram", origin=Origin("a.hlo", 3)),
    )
    unit = p.ElementwiseOp("unit", "copy", p.View("s", ()), (0.0,), ())
    inner = p.Loop("k_o", 4, "accumulate", ops, Origin("a.hlo", 9))
    body = (unit, p.Loop("m_o", 2, "parallel", (inner, p.Loop("n_o", 1, "sequential", ()))))
    pags = (("x.0", "y.0"), ("x.1",))
    pgs = ((0, ("thing",), ("m",)), (1, (), ()))
    return p.Function('a "quoted" \\ näme\n', tensors, body, pags, pgs)


def test_every_op_reads_back():
    module = everything()
    assert parse(show(module)) == module
    assert show(parse(show(module))) == show(module)


def test_the_text_runs_as_python_and_builds_the_module():
    module = everything()
    names: dict = {}
    exec(compile(show(module), "printed", "exec"), names)
    assert names["f"].module == module


def test_origins_are_read_from_comments():
    found = parse(show(everything()))
    assert str(found.tensors[4].origin) == "a.hlo:3"
    assert found.body[1].body[0].origin.line == 9
    assert found.body[1].body[0].body[0].origin.line == 6


def test_an_empty_function_reads_back():
    assert parse(show(p.Function("none", (), ()))) == p.Function("none", (), ())


GOOD = """from ncc.penguin import *
with function("copy") as f:
    x = tensor("x", "float32", (4, 8), kind="input", home="dram")
    y = tensor("y", "float32", (4, 8), kind="output", home="dram")
    a, b = axis("a b")
    ElementwiseOp("y_copy", "copy", y[a, b], srcs=(x[a, b],), axes=axes(a=4, b=8))  # m.hlo:3
"""


def test_the_form_is_as_documented():
    assert show(parse(GOOD)) == GOOD
    assert parse(GOOD).body[0].axes[1] == p.Axis("b", 8)
    assert parse(GOOD).body[0].dst.index == (Affine(0, (("a", 1),)), Affine(0, (("b", 1),)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ElementwiseOp(", "ElementwiseOps(", "NCC009 t.py:7:5: ElementwiseOps is not an op of"),
        ("x[a, b]", "z[a, b]", "NCC009 t.py:7:52: no tensor is called z"),
        ("x[a, b]", "x[a, c]", "NCC009 t.py:7:57: no axis is called c"),
        ("axes=axes(a=4, b=8)", "axes=4", "axes of ElementwiseOp cannot be `4`"),
        ('"y_copy"', "3", "name of ElementwiseOp cannot be `3`"),
        ("axes=", "axis=", "ElementwiseOp has no field axis (did you mean axes?)"),
        (", axes=axes(a=4, b=8)", "", "ElementwiseOp lacks its field axes"),
        ("from ncc", "from nc", "a program is `from ncc.penguin import *`"),
        ("srcs=(x[a, b],)", "srcs=(x[a, b],", "NCC009 t.py:7"),
        ('a, b = axis("a b")', 'a, b = axis("a c")', 'expected axis("a b")'),
        ('y = tensor("y"', 'x = tensor("x"', "x is already a tensor of that name"),
        ('y = tensor("y"', 'loop = tensor("loop"', "loop is already a word of the text by"),
        ("x[a, b]", "__import__('os').system('true')", "expected a number, a word, a tuple"),
        ("x[a, b]", "x[a, a*b]", "cannot read 'a * b' as index arithmetic"),
        ("x[a, b]", "x[a, min(3, b)]", "expected an index without min"),
        ("a=4, b=8", "a=4, **b", "NCC009"),
        ("a=4, b=8", "a=4, b=a", "expected a number or min(TILE, REST)"),
    ],
)
def test_a_broken_text_is_one_sentence(old: str, new: str, said: str):
    with pytest.raises(NccError) as wrong:
        parse(GOOD.replace(old, new, 1), "t.py", 2)
    assert wrong.value.code == "NCC009"
    assert said in str(wrong.value)


@pytest.mark.parametrize("text", ["", "\0", "(" * 500, "x = 1", "-" * 100000, "+".join("a" * 9999)])
def test_what_is_no_program_never_ends_in_a_traceback(text: str):
    with pytest.raises(NccError):
        parse(text)
    with pytest.raises(NccError):
        parse(GOOD.replace("x[a, b]", text))


def test_every_cut_of_a_text_is_refused_or_read():
    text = show(everything())
    for at in range(0, len(text), 7):
        try:
            parse(text[:at])
            parse(text[:at] + text[at + 1 :])
        except NccError:
            continue
