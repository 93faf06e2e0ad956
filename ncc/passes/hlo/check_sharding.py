"""Refuse a program that is spread over several devices.

Before:
    HloModule one

    ENTRY %main (a: f32[4,8], b: f32[8,3]) -> f32[4,3] {
      %a = f32[4,8]{1,0} parameter(0), sharding={replicated}
      %b = f32[8,3]{1,0} parameter(1), sharding={maximal device=0}
      ROOT %c = f32[4,3]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

After:
    HloModule one

    ENTRY %main (a: f32[4,8], b: f32[8,3]) -> f32[4,3] {
      %a = f32[4,8]{1,0} parameter(0), sharding={replicated}
      %b = f32[8,3]{1,0} parameter(1), sharding={maximal device=0}
      ROOT %c = f32[4,3]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

Why: sharding decides which values exist, so it comes before layout. A value that every device holds
whole (replicated), or that one device holds (maximal), is compiled as it stands. A product whose
contracted dimension is cut over devices would need an all-reduce, which is what its refusal says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncc.errors import NccError
from ncc.ir.hlo import Computation, Instruction, Module
from ncc.ir.hlo_laws import is_whole
from ncc.passes.base import define
from ncc.target import Target

DEVICES = re.compile(r"devices=\[([\d,]+)\]")


def apply(module: Module, target: Target) -> Module:
    for computation in module.computations:
        for fault in refused(computation):
            raise fault
    return module


def refused(computation: Computation) -> Iterator[NccError]:
    sharded = {x.name: s for x in computation.instructions if (s := sharding_of(x))}
    cut = contracted(computation, sharded)
    for inst in computation.instructions:
        if inst.name not in sharded:
            continue
        said = f"{inst.opcode} is sharded as {sharded[inst.name]}, ncc compiles for one device"
        yield NccError("NCC112", f"{said}{cut.get(inst.name, '')}", inst.origin.place(inst.name))


def sharding_of(inst: Instruction) -> str:
    """The sharding, if it cuts the value or is of another kind than whole."""
    found = inst.get("sharding")
    return found if isinstance(found, str) and not is_whole(found) else ""


def contracted(computation: Computation, sharded: dict[str, str]) -> dict[str, str]:
    """For the values that some dot contracts over a cut dimension: what that would need."""
    notes: dict[str, str] = {}
    for inst in computation.instructions:
        if inst.opcode != "dot":
            continue
        for side, name in zip(("lhs", "rhs"), inst.operands, strict=False):
            found = DEVICES.search(sharded.get(name, ""))
            counts = [int(n) for n in found[1].split(",")] if found else []
            for d in inst.ints(f"{side}_contracting_dims"):
                if d < len(counts) and counts[d] > 1:
                    said = f"{inst.name} contracts dimension {d}, which is cut over {counts[d]}"
                    notes[name] = f"; {said} devices: it would need an all-reduce"
    return notes


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    gives=("nothing-is-sharded",),
    after={"hlo-verify": "a sharding is read only from a program that is well formed"},
    real="ShardingPropagation",
    job="F0",
    sure="ours",
)
