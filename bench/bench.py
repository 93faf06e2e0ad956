"""The budgets, measured: `make bench` prints a table, `--json FILE` writes it.

Whole-process rows are medians of `--runs` runs with imports included, one BLAS thread; rows an op
are the best of five rounds inside one process. Beside them stands what a user would pick instead,
measured in the same run where it installs (xDSL, tinygrad's Python emulator).

The budgets are for a machine on which xDSL takes what `REFERENCE` says. How fast this one is, by
xDSL in the same run, stands below the table, and `scaled` is the measured figure times that: what
it would be on the reference machine. The verdict is of the measured figure.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs

os.environ["OPENBLAS_NUM_THREADS"] = "1"
ROOT = Path(__file__).parent.parent
PYTHON = sys.executable
# what xDSL takes on the machine of the budgets: seconds of `--help`, microseconds an op
REFERENCE = {
    "help": 0.15,
    "build": 23,
    "print": 13,
    "parse": 109,
    "verify": 18,
    "canonicalize": 24,
}
EXAMPLE = ROOT / "examples" / "matmul.hlo"
ATTENTION = ROOT / "ncc" / "kernels" / "attention.py"


@attrs.frozen
class Row:
    """One budget: what was asked, what was measured, and what stands beside it."""

    task: str
    unit: str
    budget: float
    measured: float
    beside: str = ""

    @property
    def holds(self) -> bool:
        return self.measured <= self.budget

    def scaled(self, speed: float) -> float:
        """The figure of a machine of the reference's speed; MB and ratios are the same on any."""
        return self.measured * speed if self.unit in ("s", "µs") else self.measured


def speed_of(figures: dict[str, float]) -> float:
    """How fast this machine is beside the reference, by what xDSL takes; 0 where it did not run."""
    known = [REFERENCE[key] / figures[key] for key in REFERENCE if key in figures]
    return statistics.geometric_mean(known) if known else 0.0


def whole_process(command: list[str], runs: int, folder: str) -> float:
    """The median wall seconds of a command, after one run that is not counted."""
    times: list[float] = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def best(job: Callable[[], object], count: int) -> float:
    """Microseconds an item, the best of 25 rounds: disturbance comes in bursts."""
    times: list[float] = []
    for _ in range(25):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    return min(times) / count * 1e6


def ncc(*words: str) -> list[str]:
    return [PYTHON, "-m", "ncc", *words]


def square(size: int) -> str:
    """HLO text of a bf16 product of two size × size matrices."""
    t = f"bf16[{size},{size}]"
    return (
        f"HloModule square\n\nENTRY %main.4 (lhs.1: {t}, rhs.2: {t}) -> f32[{size},{size}] {{\n"
        f"  %lhs.1 = {t}{{1,0}} parameter(0)\n  %rhs.2 = {t}{{1,0}} parameter(1)\n"
        f"  ROOT %out.3 = f32[{size},{size}]{{1,0}} dot(%lhs.1, %rhs.2), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )


def environment(name: str, packages: list[str]) -> tuple[str, float, float]:
    """A new environment with packages: its Python, the seconds of installing, the MB it takes."""
    folder = Path(tempfile.gettempdir()) / f"ncc-bench-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([PYTHON, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    before = size_mb(folder)
    began = time.perf_counter()
    pip = [python, "-m", "pip", "install", "-q", "--no-cache-dir", *packages]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    return python, time.perf_counter() - began, size_mb(folder) - before


def size_mb(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def xdsl() -> tuple[dict[str, float], str, float, float]:
    """xDSL's figures, its Python, seconds to install and MB; nothing where it does not install."""
    try:
        python, seconds, size = environment("xdsl", ["xdsl"])
        script = str(Path(__file__).with_name("beside_xdsl.py"))
        done = subprocess.run([python, script], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError:
        return {}, "", 0.0, 0.0
    return json.loads(done.stdout), python, seconds, size


def tinygrad(folder: str) -> str:
    """One product of 128³ in fp32 on tinygrad's Python emulator, or why there is no figure."""
    code = "from tinygrad import Tensor; (Tensor.rand(128, 128) @ Tensor.rand(128, 128)).numpy()"
    try:
        python, _, _ = environment("tinygrad", ["tinygrad", "numpy"])
        began = time.perf_counter()
        subprocess.run(
            [python, "-c", code],
            cwd=folder, check=True, capture_output=True, text=True, timeout=60,
            env={**os.environ, "DEV": "PYTHON"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "tinygrad's emulator, 128³ fp32: over a minute"
    except subprocess.CalledProcessError as fault:
        said = str(fault.stderr or fault).strip().splitlines()
        return f"tinygrad did not run: {said[-1][:80]}"
    return f"tinygrad's emulator, 128³ fp32: {time.perf_counter() - began:.1f} s"


def install_rows() -> tuple[list[Row], dict[str, float], str]:
    figures, python, seconds, size = xdsl()
    _, mine, mb = environment("ncc", [str(ROOT)])
    beside = [f"xDSL {seconds:.1f} s", f"xDSL {size:.0f} MB"] if python else ["", ""]
    rows = [
        Row("install into an empty environment", "s", 15, mine, beside[0]),
        Row("size of it", "MB", 105, mb, beside[1]),
    ]
    return rows, figures, python


def process_rows(runs: int, folder: str, figures: dict[str, float], xdsl_python: str) -> list[Row]:
    helped = ""
    if xdsl_python:
        tool = str(Path(xdsl_python).with_name("xdsl-opt"))
        figures["help"] = whole_process([tool, "--help"], runs, folder)
        helped = f"xDSL {figures['help']:.2f} s"
    seen = [
        PYTHON,
        str(Path(__file__).with_name("look_and_check.py")),
        str(EXAMPLE),
        f"{folder}/look",
    ]
    Path(folder, "square.hlo").write_text(square(4096))
    rows = [
        Row("ncc --help", "s", 0.15, whole_process(ncc("--help"), runs, folder), helped),
        Row(
            "seed matmul: HLO text to NEFF, bytes run for values", "s", 1.0,
            whole_process(ncc("run", str(EXAMPLE), "--random", "0"), runs, folder),
            tinygrad(folder) if xdsl_python else "",
        ),
        Row(
            "the same, every stage printed, drawn and checked", "s", 3.0,
            whole_process(seen, runs, folder),
        ),
        Row("4096³ bf16: compile", "s", 6.0,
            whole_process(ncc("compile", "square.hlo"), min(runs, 3), folder)),
        Row("4096³ bf16: run from bytes", "s", 10.0,
            whole_process(ncc("run", "square.neff", "--random", "0", "--outputs", "o.npz"),
                          min(runs, 3), folder)),
    ]  # fmt: skip
    return rows


def op_rows(figures: dict[str, float]) -> list[Row]:
    """One BIR instruction with three access patterns, built, printed, read and verified."""
    from ncc.ir.bir import Ap, Inst
    from ncc.passes import called, load
    from ncc.stages import Stage, level
    from ncc.target import TARGETS
    from ncc.verify import Verifier

    stage = compiled(2048, "unroll")
    module = stage.module
    text = level("bir").get("show")(module)
    count = len(module.main.blocks[0].insts)

    ap = ((256, 128), (1, 256))
    ins, outs = (Ap("a", "bfloat16", ap), Ap("b", "bfloat16", ap)), (Ap("c", "float32", ap),)

    def build() -> None:  # one node of operands that are there, as xDSL builds one op of values
        for _ in range(count):
            Inst("i0", "Matmult", "PE", ins, outs)

    def verify() -> None:
        Verifier().check(Stage("bir", TARGETS["trn2"], "unroll", (), module))

    def nothing() -> None:
        load(called()["leave-ssa"]).apply(module, TARGETS["trn2"])

    def beside(key: str) -> str:
        return f"xDSL {figures[key]:.0f} µs" if key in figures else ""

    show, parse = level("bir").get("show"), level("bir").get("parse")
    return [
        Row("build a BIR instruction", "µs", 2, best(build, count), beside("build")),
        Row("print it", "µs", 4, best(lambda: show(module), count), beside("print")),
        Row("parse it", "µs", 30, best(lambda: parse(text, "x", 1), count), beside("parse")),
        Row("verify it", "µs", 5, best(verify, count), beside("verify")),
        Row("a pass that changes nothing, an instruction", "µs", 2, best(nothing, count),
            beside("canonicalize")),
    ]  # fmt: skip


def compiled(size: int, stop: str) -> object:
    from ncc.driver import compile as compile_
    from ncc.front.hlo import parse
    from ncc.stages import Stage
    from ncc.target import TARGETS

    stage = Stage("hlo", TARGETS["trn2"], "input", (), parse(square(size), "square.hlo", 1))
    return compile_(stage, stop_after=stop)


def text_row() -> Row:
    from ncc.front.hlo import parse

    lines = ["HloModule long", "", "ENTRY %main (a.0: f32[8,8]) -> f32[8,8] {"]
    lines.append("  %a.0 = f32[8,8]{1,0} parameter(0)")
    for i in range(2000):
        lines.append(
            f'  %a.{i + 1} = f32[8,8]{{1,0}} add(%a.{i}, %a.{i}), metadata={{op_name="x/{i}"}}'
        )
    lines[-1] = lines[-1].replace("  %", "  ROOT %")
    text = "\n".join([*lines, "}", ""])
    parse(text, "long.hlo", 1)
    return Row(
        "HLO text, an instruction", "µs", 400, best(lambda: parse(text, "long.hlo", 1), 2001)
    )


def growth_rows() -> list[Row]:
    """Seconds of all passes at 1024³ (small) and at sizes up, an instruction; how it grows."""
    times: dict[int, tuple[int, float]] = {}
    for size in (1024, 2048, 4096):
        rounds: list[float] = []
        for _ in range(3):
            began = time.perf_counter()
            stage = compiled(size, "encode")
            rounds.append(time.perf_counter() - began)
        count = sum(len(s.bundles) for s in stage.module.streams)
        times[size] = (count, min(rounds))
    small, large = times[1024], times[4096]
    each = large[1] / large[0] * 1e6
    grown = (large[1] / small[1]) / (large[0] / small[0])
    return [
        Row("compile, all passes, a final instruction", "µs", 300, each),
        Row("1024³ to 4096³: growth of time over growth of instructions", "ratio", 1.2, grown),
    ]


def machine_row() -> Row:
    """What a bundle costs in the machine when it has almost no data: 200 products of 2 × 2."""
    from ncc.driver import compile as compile_
    from ncc.front.hlo import parse
    from ncc.pack import unpack
    from ncc.stages import Stage
    from ncc.target import TARGETS
    from ncc.values import whole
    from ncc.walking import run_stage

    lines = ["HloModule tiny", "", "ENTRY %main (a.0: bf16[2,2]) -> f32[2,2] {"]
    lines.append("  %a.0 = bf16[2,2]{1,0} parameter(0)")
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for i in range(200):
        lines.append(f"  %d.{i} = f32[2,2]{{1,0}} dot(%a.{i}, %a.0), {dims}")
        lines.append(f"  %a.{i + 1} = bf16[2,2]{{1,0}} convert(%d.{i})")
    lines += ["  ROOT %out = f32[2,2]{1,0} convert(%a.200)", "}", ""]
    stage = Stage("hlo", TARGETS["trn2"], "input", (), parse("\n".join(lines), "tiny.hlo", 1))
    last = compile_(stage)
    count = sum(len(s.bundles) for s in unpack(last.module).streams)
    inputs = whole(last, 0)
    each = best(lambda: run_stage(last, inputs), count)
    return Row("run from bytes: a bundle of almost no data", "µs", 40, each)


def attention_rows(runs: int, folder: str) -> list[Row]:
    """The kernel that ships, one head of d = 128 in bf16: Python to bytes to values."""

    def program(size: int) -> list[str]:
        arrays = [word for x in "qkv" for word in ("--arg", f"{x}=bf16[1,{size},128]")]
        return [f"{ATTENTION}:attention_cte", *arrays]

    neff = "attention_cte.neff"
    return [
        Row("attention S = 1024, d = 128, one head: values", "s", 3.0,
            whole_process(ncc("run", *program(1024), "--random", "0"), runs, folder)),
        Row("attention S = 4096: trace and compile", "s", 8.0,
            whole_process(ncc("compile", *program(4096)), min(runs, 3), folder)),
        Row("attention S = 4096: run from bytes", "s", 10.0,
            whole_process(ncc("run", neff, "--random", "0", "--outputs", "o.npz"),
                          min(runs, 3), folder)),
        trace_row(),
    ]  # fmt: skip


def trace_row() -> Row:
    """What it costs to run a kernel's Python and record it, an instruction."""
    import ml_dtypes
    import numpy as np

    from ncc.ir.kernel import ops_of
    from ncc.kernels import kernel
    from ncc.nki.binding import bind
    from ncc.target import TARGETS

    target, made = TARGETS["trn2"], kernel("attention_cte")
    given = [np.zeros((1, 2048, 128), ml_dtypes.bfloat16) for _ in range(3)]
    bound = bind(made.func, given, {"causal": True}, target)
    body = made.traced(bound, target, simulated=False).kernels[0].body
    count = sum(1 for _ in ops_of(body))
    each = best(lambda: made.traced(bound, target, simulated=False), count)
    return Row("trace a kernel, a recorded instruction", "µs", 150, each)


def table(rows: list[Row], speed: float) -> str:
    heads = ("task", "budget", "measured", "", "scaled", "beside, in the same run")
    lines = [heads]
    for r in rows:
        mark = "ok" if r.holds else "OVER"
        scaled = f"{r.scaled(speed):.2f} {r.unit}" if speed else ""
        budget, measured = f"{r.budget:g} {r.unit}", f"{r.measured:.2f} {r.unit}"
        lines.append((r.task, budget, measured, mark, scaled, r.beside))
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(w.ljust(n) for w, n in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write speed and rows as JSON too")
    parser.add_argument("--no-install", action="store_true", help="leave out what needs a network")
    given = parser.parse_args()
    compileall.compile_dir(str(ROOT / "ncc"), quiet=1)  # as pip leaves what it installs
    rows: list[Row] = []
    figures: dict[str, float] = {}
    python = ""
    if not given.no_install:
        rows, figures, python = install_rows()
    with tempfile.TemporaryDirectory() as folder:
        rows += process_rows(given.runs, folder, figures, python)
        rows += attention_rows(given.runs, folder)
    rows += [*op_rows(figures), text_row(), *growth_rows(), machine_row()]
    speed = speed_of(figures)
    print(table(rows, speed))
    if speed:
        print(f"\nthis machine runs at {speed:.2f} of the reference's speed (by xDSL, in this run)")
    if given.json:
        found = [attrs.asdict(r) | {"scaled": r.scaled(speed) if speed else None} for r in rows]
        text = json.dumps({"speed": speed or None, "rows": found}, indent=1)
        Path(given.json).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
