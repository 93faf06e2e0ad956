"""A kernel that an HLO program calls by its name: checked at the call, and right from the bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ncc
from ncc.errors import NccError
from ncc.front.hlo import parse
from ncc.ir.custom_call import aliases_of, config_of
from ncc.ir.kernel_request import Request, read
from ncc.stages import Stage
from ncc.target import target

BESIDE = """HloModule beside

ENTRY %main (a: bf16[16,8], b: bf16[16,24], c: bf16[24,40], d: f32[8,40]) -> f32[8,8] {
  %a = bf16[16,8]{1,0} parameter(0)
  %b = bf16[16,24]{1,0} parameter(1)
  %c = bf16[24,40]{1,0} parameter(2)
  %d = f32[8,40]{1,0} parameter(3)
  %p = bf16[24,8]{1,0} dot(%b, %a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  %q = bf16[8,40]{1,0} custom-call(%p, %c), custom_call_target="matmul"
  %w = f32[8,40]{1,0} convert(%q)
  %s = f32[8,40]{1,0} add(%w, %d)
  ROOT %r = f32[8,8]{1,0} dot(%s, %d), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""
OWN = """HloModule inout

ENTRY %main (x: f32[8,6], y: f32[8,6]) -> (f32[8,6], f32[8,6], bf16[8,6]) {
  %x = f32[8,6]{1,0} parameter(0)
  %y = f32[8,6]{1,0} parameter(1)
  %one = f32[] constant(3)
  %ones = f32[8,6]{1,0} broadcast(%one), dimensions={}
  %s = f32[8,6]{1,0} add(%x, %y)
  %q = f32[8,6]{1,0} custom-call(%s, %ones), custom_call_target="called.py:addto",
      output_to_operand_aliasing={{}: (0, {})}, backend_config={factor = 2.0 : f64}
  %p = (f32[8,6]{1,0}, bf16[8,6]{1,0}) custom-call(%q, %y), custom_call_target="called.py:both"
  %p0 = f32[8,6]{1,0} get-tuple-element(%p), index=0
  %p1 = bf16[8,6]{1,0} get-tuple-element(%p), index=1
  %t = f32[8,6]{1,0} add(%q, %s)
  ROOT %r = (f32[8,6]{1,0}, f32[8,6]{1,0}, bf16[8,6]{1,0}) tuple(%t, %p0, %p1)
}
"""


@pytest.fixture
def here(monkeypatch):
    """Kernels of the user's are looked for from the current folder."""
    monkeypatch.chdir(Path(__file__).parent / "kernels")


def stage(text: str) -> Stage:
    return Stage("hlo", target("trn2"), "input", (), parse(text, "x.hlo", 1))


def test_a_kernel_stands_between_products():
    result = ncc.check(stage(BESIDE))
    assert result.passed, result.failed
    rng = np.random.default_rng(1)
    shapes = ((16, 8), (16, 24), (24, 40), (8, 40))
    a, b, c, d = (rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes)
    (out,) = ncc.run(stage(BESIDE), [a, b, c, d])
    assert np.array_equal(out, ((b.T @ a).T @ c + d) @ d.T)


def test_a_users_kernel_writes_in_place_and_gives_several(here):
    result = ncc.check(stage(OWN))
    assert result.passed, result.failed
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-2, 3, (8, 6)).astype(np.float32) for _ in range(2))
    t, p0, p1 = ncc.run(stage(OWN), [x, y])
    q = x + y + 6
    assert np.array_equal(t, q + x + y)
    assert np.array_equal(p0, q + y)
    assert np.array_equal(p1.astype(np.float32), q * y)


def test_every_stage_between_is_a_program(here, tmp_path):
    whole = ncc.compile(stage(OWN)).module
    for after in ("hlo-to-mhlo", "mhlo-to-penguin", "cut-free", "emit-tiles", "nki-trace"):
        path = tmp_path / f"{after}.txt"
        path.write_text(ncc.compile(stage(OWN), stop_after=after).text())
        assert ncc.compile(path).module == whole, after


REFUSED = {
    "unknown": ('"called.py:addto"', '"addta"', "NCC120", "no kernel is called 'addta'"),
    "no file": ("called.py:addto", "gone.py:addto", "NCC120", "gone.py is not there"),
    "no such kernel": ("called.py:addto", "called.py:addta", "NCC120", "addto"),
    "value": ("factor =", "faktor =", "NCC121", "no parameter faktor"),
    "operands": ("(%q, %y)", "(%q)", "NCC121", "without its parameter y"),
    "dtype": ("bf16[8,6]", "f32[8,6]", "NCC122", "of dtype bfloat16, output 1 is float32"),
    "unsaid alias": ("output_to_operand_aliasing={{}: (0, {})}, ", "", "NCC123", "acc in place"),
    "wrong alias": ("(0, {})", "(1, {})", "NCC123", "alias of operand 1 (x)"),
    "no such operand": ("(0, {})", "(7, {})", "NCC123", "1 outputs and 2 operands"),
    "config": ("{factor = 2.0 : f64}", '"factor"', "NCC124", "backend_config"),
    "alias text": ("{{}: (0, {})}", "{{}: 0}", "NCC124", "output_to_operand_aliasing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_one_sentence_with_the_line(case, here):
    old, new, code, said = REFUSED[case]
    assert old in OWN
    with pytest.raises(NccError) as caught:
        ncc.compile(stage(OWN.replace(old, new)), stop_after="hlo-to-mhlo")
    assert caught.value.code == code
    assert said in str(caught.value)
    assert caught.value.place.file == "x.hlo"
    assert caught.value.place.line in (9, 11, 13)
    assert "\n" not in str(caught.value)


def test_values_of_a_call():
    assert config_of('"{\\"a\\": [1, 2.5], \\"b\\": \\"x\\"}"') == (("a", (1, 2.5)), ("b", "x"))
    assert config_of('{"on": true, "none": null}') == (("on", True), ("none", None))
    typed = '{a = 1 : i64, b = "x, y", c = array<i64: 1, 2>, d = 5.0e-01 : f32}'
    assert config_of(typed) == (("a", 1), ("b", "x, y"), ("c", (1, 2)), ("d", 0.5))
    for wrong in ("[1]", "{a}", "{a = b}", '{"a": {"b": 1}}', '{"a": NaN}'):
        with pytest.raises(ValueError, match="backend_config"):
            config_of(wrong)
    assert aliases_of("{{0}: (1, {}), {1}: (2, {}, must-alias)}") == ((0, 1), (1, 2))


def test_a_request_reads_back():
    one = Request(
        "f.py:g", (("bfloat16", (2, 3)), ("float32", (1,))), (("a", 0.5), ("b", (1, "x")))
    )
    assert str(one) == "f.py:g(bfloat16[2,3], float32[1], a=0.5, b=(1, 'x'))"
    assert read(str(one)) == one
    assert read("flash.py:attention") is None
