"""Small whole programs for the tests that run the pipeline from its start: HLO and printed BIR."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ncc import driver
from ncc.front.hlo import parse
from ncc.ir.isa import Bundle, Program
from ncc.stages import Stage, read_stage
from ncc.target import TARGETS

HERE = Path(__file__).parent


def hlo(text: str, target: str = "trn2") -> Stage:
    """The input stage of HLO text."""
    return Stage("hlo", TARGETS[target], "input", (), parse(text, "p.hlo", 1))


def product(
    m: int, k: int, n: int, dtype: str = "bf16", bias: bool = False, relu: bool = False
) -> str:
    """`lhs [m,k]` times `rhs [k,n]` to float32, and maybe a row of biases and a relu."""
    size = f"f32[{m},{n}]{{1,0}}"
    lines = [
        f"lhs = {dtype}[{m},{k}]{{1,0}} parameter(0)",
        f"rhs = {dtype}[{k},{n}]{{1,0}} parameter(1)",
        f"out = {size} dot(lhs, rhs), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
    ]
    if bias:
        lines += [
            f"b = f32[{n}]{{0}} parameter(2)",
            f"row = {size} broadcast(b), dimensions={{1}}",
            f"sum = {size} add(out, row)",
        ]
    if relu:
        lines += [
            "zero = f32[] constant(0)",
            f"zeros = {size} broadcast(zero), dimensions={{}}",
            f"top = {size} maximum({'sum' if bias else 'out'}, zeros)",
        ]
    lines[-1] = f"ROOT {lines[-1]}"
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule product\n\nENTRY main {{\n{body}\n}}\n"


@cache
def seed(target: str = "trn2") -> Stage:
    """The seed matmul: [128,512] times [512,256]."""
    return hlo(product(128, 512, 256), target)


def printed(name: str) -> Stage:
    """A program of `bir_programs/`."""
    path = HERE / "bir_programs" / f"{name}.txt"
    return read_stage(path.read_text(), path.name)


def program_of(stage: Stage) -> Program:
    """The streams that a stage compiles to."""
    found: Program = driver.compile(stage, stop_after="encode").module
    return found


def streams(program: Program) -> dict[str, tuple[Bundle, ...]]:
    return {stream.engine: stream.bundles for stream in program.streams}


def counts(program: Program) -> tuple[int, ...]:
    """Bundles of PE, Activation, Pool, DVE and SP."""
    return tuple(len(stream.bundles) for stream in program.streams)


def waits(bundles: tuple[Bundle, ...]) -> list[tuple[str, int, int]]:
    """(opcode, semaphore, threshold) of every bundle that waits."""
    return [(b.op, b.band.wait[1], b.band.value) for b in bundles if b.band.wait[0]]


def field(bundle: Bundle, name: str) -> object:
    return dict(bundle.fields).get(name, 0)
