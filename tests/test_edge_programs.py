"""The corners of what is compiled, from HLO text to bytes, checked before and after every pass.

Each program is the smallest, emptiest or oddest of its kind; whole numbers must agree exactly.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from whole_programs import hlo

from ncc import checking, driver
from ncc.errors import NccError
from ncc.front.hlo import parse
from ncc.stages import Stage, read_stage
from ncc.target import target as named
from ncc.unchecked import UNCHECKED
from ncc.walking import plan


def dot(lhs: str, rhs: str, out: str, dims: str) -> str:
    return f"a = {lhs} parameter(0)\n  b = {rhs} parameter(1)\n  ROOT o = {out} dot(a, b), {dims}"


def dims(lhs: str, rhs: str, batch: tuple[str, str] | None = None) -> str:
    words = [f"lhs_contracting_dims={{{lhs}}}", f"rhs_contracting_dims={{{rhs}}}"]
    if batch:
        words += [f"lhs_batch_dims={{{batch[0]}}}", f"rhs_batch_dims={{{batch[1]}}}"]
    return ", ".join(words)


NARROW = ("bf16", "f16", "f8e4m3", "f8e4m3fn", "f8e5m2")
ADDS = "".join(f"  s{i} = f32[6,5] add(s{i - 1}, p0)\n" for i in range(1, 200))
MANY = [f"  p{i} = bf16[4,3] parameter({i})\n" for i in range(100)]
SUMS = [f"  s{i} = bf16[4,3] add({f's{i - 1}' if i > 1 else 'p0'}, p{i})\n" for i in range(1, 100)]

PROGRAMS = {
    "inner product": dot("bf16[140]", "bf16[140]", "f32[]", dims("0", "0")),
    "inner product of matrices": dot("f32[4,30]", "f32[30,4]", "f32[]", dims("0,1", "1,0")),
    "outer product": dot("bf16[13]", "bf16[600]", "f32[13,600]", dims("", "")),
    "batched outer product": dot("f32[3,8]", "f32[3,6]", "f32[3,8,6]", dims("", "", ("0", "0"))),
    "product of scalars": dot("f32[]", "f32[]", "f32[]", dims("", "")),
    "scalar times matrix": dot("f32[]", "f32[4,7]", "f32[4,7]", dims("", "")),
    "all dimensions batch": dot(
        "bf16[3,5]", "bf16[3,5]", "bf16[3,5]", dims("", "", ("0,1", "0,1"))
    ),
    "everything is 1": dot("bf16[1,1]", "bf16[1,1]", "f32[1,1]", dims("1", "0")),
    "a sum over nothing": dot("bf16[7,0]", "bf16[0,9]", "f32[7,9]", dims("1", "0")),
    "a result without elements": dot("bf16[0,3]", "bf16[3,9]", "f32[0,9]", dims("1", "0")),
    "many batches": dot(
        "bf16[150,3,5]", "bf16[150,5,4]", "f32[150,3,4]", dims("2", "1", ("0", "0"))
    ),
    "the same operand twice": """a = f32[130,7] parameter(0)
  ROOT o = f32[7,7] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
    "an output that is read twice": """a = bf16[30,20] parameter(0)
  p = bf16[30,30] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  q = f32[30,20] dot(p, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = bf16[30,30] add(p, p)
  ROOT t = (bf16[30,30], f32[30,20], bf16[30,30], bf16[30,30]) tuple(p, q, s, p)""",
    "two constants": """c = f32[2,3] constant({{1, 2, 3}, {3, -4, 5}})
  d = f32[3,2] constant({{1, 2}, {3, 3}, {-4, 5}})
  ROOT o = f32[2,2] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "a constant is returned": "ROOT c = f32[2,3] constant({{1, 2, 3}, {3, -4, 5}})",
    "an input is returned": "a = f32[3,5] parameter(0)\n  ROOT t = (f32[3,5], f32[3,5]) tuple(a, a)",
    "an operand that repeats": """a = f32[5] parameter(0)
  b = f32[5,4] parameter(1)
  w = f32[3,5] broadcast(a), dimensions={1}
  ROOT o = f32[3,4] dot(w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "names that mean something": """for = bf16[4,3] parameter(0)
  x-y.z = bf16[3,5] parameter(1)
  x_y_z = f32[5] parameter(2)
  lambda = f32[4,5] dot(for, x-y.z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  out = f32[4,5] broadcast(x_y_z), dimensions={1}
  k_o = f32[4,5] add(lambda, out)
  ROOT loop.0 = f32[4,5] add(k_o, lambda)""",
    "200 additions in a row": f"""p0 = f32[6,5] parameter(0)
  s0 = f32[6,5] add(p0, p0)
{ADDS}  ROOT o = f32[6,5] maximum(s199, p0)""",
    "100 parameters": f"{''.join((*MANY, *SUMS))}  ROOT o = bf16[4,3] add(s99, p0)",
}


def checked(body: str, target: str = "trn2") -> driver.Result:
    return driver.check(hlo(f"HloModule edge\n\nENTRY main {{\n  {body}\n}}\n", target))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_corner_keeps_its_meaning_down_to_the_bytes(name):
    result = checked(PROGRAMS[name])
    assert result.passed, result.failed


SWEPT = pytest.mark.sweep  # each pair once in `make test`, both orders in `make sweep`


@pytest.mark.parametrize(
    "pair",
    [pytest.param(x, marks=SWEPT if x[0] > x[1] else ()) for x in permutations(NARROW, 2)],
)
def test_narrow_types_mix(pair):
    lhs, rhs = pair
    body = dot(f"{lhs}[20,30]", f"{rhs}[30,7]", "f32[20,7]", dims("1", "0"))
    odd = (NARROW.index(lhs) + NARROW.index(rhs)) % 2
    result = checked(body, "trn2" if odd == (lhs < rhs) else "trn3")
    assert result.passed, result.failed


def test_float32_mixes_with_nothing():
    with pytest.raises(NccError) as said:
        checked(dot("bf16[4,3]", "f32[3,2]", "f32[4,2]", dims("1", "0")))
    assert str(said.value) == (
        "NCC116 p.hlo:6:8, hlo-to-mhlo, o: dot of bf16 with f32: f32 is multiplied with f32 only "
        "(convert one of them first)"
    )


@pytest.mark.parametrize("order", ["max(a, least)", "max(least, a)"])
def test_the_sign_of_a_zero_that_is_compared_with_arrives_in_the_bytes(order):
    pair = order[4:-1].replace("least", "w")
    body = f"""a = f32[2,2] parameter(0)
  least = f32[] constant(-0)
  w = f32[2,2] broadcast(least), dimensions={{}}
  ROOT o = f32[2,2] maximum({pair})"""
    stage = hlo(f"HloModule edge\n\nENTRY main {{\n  {body}\n}}\n")
    given = [np.array([[-0.0, 0.0], [1.0, -1.0]], np.float32)]
    (want,), (printed,), (found,) = (
        driver.run(start, given, at=at)
        for start, at in ((stage, "hlo"), (reread(stage), "bir"), (stage, "neff"))
    )
    assert np.signbit(want)[0].any()
    assert want.tobytes() == printed.tobytes() == found.tobytes()


def reread(stage: Stage) -> Stage:
    """The program as BIR, printed and read again."""
    return read_stage(driver.compile(stage, stop_after="penguin-to-bir").text(), "p.txt")


@pytest.mark.parametrize(("dtype", "target", "one"), [("f32", "trn2", 1), ("bf16", "trn1", 0)])
def test_what_an_infinity_becomes_is_told_among_the_departures(dtype, target, one):
    """Row 0 of the left, or of the right operand holds an infinity; HLO's result has no NaN."""
    shape = f"{dtype}[2,2]"
    stage = hlo(
        f"HloModule edge\n\nENTRY main {{\n  {dot(shape, shape, 'f32[2,2]', dims('1', '0'))}\n}}\n",
        target,
    )
    given = [np.array([[1, 2], [3, 4]], np.float32) for _ in range(2)]
    given[one][0, 0] = np.inf
    (want,), (found,) = (driver.run(stage, given, at=at) for at in ("hlo", "neff"))
    assert not np.isnan(want).any()
    assert np.isnan(found).any()
    assert "infinity on the PE array" in dict(UNCHECKED)


@pytest.mark.parametrize(("dtype", "target"), [("f8e4m3", "trn3"), ("f8e4m3fn", "trn2")])
def test_an_e4m3_type_that_the_target_lacks_is_carried_in_bf16(dtype, target):
    text = (
        f"HloModule s\n\nENTRY %main (a: {dtype}[3,4], b: {dtype}[4,5]) -> f32[3,5] {{\n"
        f"  %a = {dtype}[3,4]{{1,0}} parameter(0)\n  %b = {dtype}[4,5]{{1,0}} parameter(1)\n"
        "  ROOT %m = f32[3,5]{1,0} dot(%a, %b), lhs_contracting_dims={1},"
        " rhs_contracting_dims={0}\n}\n"
    )
    stage = Stage("hlo", named(target), "input", (), parse(text, "s.hlo", 1))
    result = checking.check(stage, plan(stage), [checking.whole_numbers(stage)])
    assert not result.failed
