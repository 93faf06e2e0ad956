"""The kernels of rules 3: how a line or a few that break a rule, or are right, become a file.

They stand in a kernel that has its input in the tile `t` (64 partitions of 32 elements), and PSUM
tiles `p` and `q` of the same shape, a column `c` and an int32 tile `i` beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent, indent

from ncc.rules import Rule

RUN = "run FILE:kernel --arg x=f32[64,32] --at penguin"
KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), nl.float32, buffer=nl.shared_hbm, name="out")
    t = nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf, name="t")
LINES
    nisa.dma_copy(dst=out, src=t)
    return out
"""
# tiles that some examples use beside `t`; each kernel allocates those that it names
TILES = {
    "b": 'nl.ndarray((64, 32), nl.bfloat16, buffer=nl.sbuf, name="b")',
    "c": 'nl.ndarray((64, 1), nl.float32, buffer=nl.sbuf, name="c")',
    "i": 'nl.ndarray((64, 32), nl.int32, buffer=nl.sbuf, name="i")',
    "p": 'nl.ndarray((32, 32), nl.float32, buffer=nl.psum, name="p")',
    "q": 'nl.ndarray((32, 32), nl.float32, buffer=nl.psum, name="q")',
    "y": 'nl.ndarray((64, 1024), nl.float32, buffer=nl.sbuf, name="y")',
}
LOAD = "nisa.dma_copy(dst=t, src=x)"


def kernel(lines: str) -> str:
    """The whole file of an example."""
    body = dedent(lines).strip("\n")
    words = body.replace("(", " ").replace("[", " ").replace(",", " ").replace("=", " ").split()
    made = [f"{name} = {tile}" for name, tile in TILES.items() if name in words]
    return KERNEL.replace("LINES", indent("\n".join([*made, LOAD, body]), "    "))


def shown(rule: Rule, lines: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The example of a rule as fields of its row; empty where `lines` has none: wrong, right, and
    maybe the command that shows them."""
    if rule.code not in lines:
        return {}
    wrong, right, *how = lines[rule.code]
    return {
        "wrong": wrong if wrong.startswith("import") else kernel(wrong),
        "right": right if right.startswith("import") else kernel(right),
        "how": how[0] if how else RUN,
    }


OLD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(64)[:, None], nl.arange(32)[None, :]
    t = nl.load(x[ip, jf])
LINES
    nl.store(out, value=t)
    return out
"""


def old(lines: str) -> str:
    """The whole file of an example of the older API."""
    return OLD.replace("LINES", indent(dedent(lines).strip("\n"), "    "))
