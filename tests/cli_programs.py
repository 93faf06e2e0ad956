"""Small programs for the command line, and a command line that keeps what it said."""

from __future__ import annotations

from typing import NamedTuple

from ncc.cli import call

# a product with bias and relu: PE, an elementwise engine and DMA all work
SMALL = """HloModule small, entry_computation_layout={(bf16[8,4]{1,0}, bf16[4,3]{1,0}, f32[3]{0})->f32[8,3]{1,0}}

ENTRY %main (x: bf16[8,4], w: bf16[4,3], b: f32[3]) -> f32[8,3] {
  %x = bf16[8,4]{1,0} parameter(0), metadata={op_name="x"}
  %w = bf16[4,3]{1,0} parameter(1), metadata={op_name="w"}
  %b = f32[3]{0} parameter(2), metadata={op_name="b"}
  %dot.1 = f32[8,3]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %broadcast.2 = f32[8,3]{1,0} broadcast(%b), dimensions={1}
  %add.3 = f32[8,3]{1,0} add(%dot.1, %broadcast.2)
  %constant.4 = f32[] constant(0)
  %broadcast.5 = f32[8,3]{1,0} broadcast(%constant.4), dimensions={}
  ROOT %maximum.6 = f32[8,3]{1,0} maximum(%add.3, %broadcast.5)
}
"""
# batches, a tail beyond 128, a convert, two outputs, PE transposes
CHAIN = """HloModule chain, entry_computation_layout={(f32[2,5,7]{2,1,0}, f32[2,7,150]{2,1,0}, bf16[150,6]{1,0})->(f32[2,5,6]{2,1,0}, f32[2,5,150]{2,1,0})}

ENTRY %main (a: f32[2,5,7], b: f32[2,7,150], c: bf16[150,6]) -> (f32[2,5,6], f32[2,5,150]) {
  %a = f32[2,5,7]{2,1,0} parameter(0)
  %b = f32[2,7,150]{2,1,0} parameter(1)
  %c = bf16[150,6]{1,0} parameter(2)
  %d = f32[2,5,150]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  %e = bf16[2,5,150]{2,1,0} convert(%d)
  %f = f32[2,5,6]{2,1,0} dot(%e, %c), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT %t = (f32[2,5,6]{2,1,0}, f32[2,5,150]{2,1,0}) tuple(%f, %d)
}
"""


class Said(NamedTuple):
    status: int
    out: str
    err: str


def command(capsys, *words):
    """One command line: its status and both of its streams."""
    capsys.readouterr()
    status = call([str(word) for word in words])
    out, err = capsys.readouterr()
    return Said(status, out, err)


class Kept:
    """An observer that keeps every stage by the pass that gave it."""

    def __init__(self):
        self.stages = {}

    def start(self, stage):
        self.stages["input"] = stage

    def step(self, step):
        self.stages[step.name] = step.after
