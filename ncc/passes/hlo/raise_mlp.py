"""Put a custom call of the MLP kernel in the place of dot, activation and dot, where there is one.

Before:
    HloModule mlp

    ENTRY %main (x: bf16[4,8], w: bf16[8,16], v: bf16[16,6]) -> bf16[4,6] {
      %x = bf16[4,8]{1,0} parameter(0)
      %w = bf16[8,16]{1,0} parameter(1)
      %v = bf16[16,6]{1,0} parameter(2)
      %h = bf16[4,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      %a = bf16[4,16]{1,0} logistic(%h)
      ROOT %y = bf16[4,6]{1,0} dot(%a, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

After:
    HloModule mlp

    ENTRY %main (x: bf16[4,8], w: bf16[8,16], v: bf16[16,6]) -> bf16[4,6] {
      %x = bf16[4,8]{1,0} parameter(0)
      %w = bf16[8,16]{1,0} parameter(1)
      %v = bf16[16,6]{1,0} parameter(2)
      %h = bf16[4,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      %a = bf16[4,16]{1,0} logistic(%h)
      ROOT %y = bf16[4,6]{1,0} dot(%a, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

Why: the real pass raises such a chain without asking anything, and its kernel is another product's.
None of that name ships with ncc, so the dots stay (as above) and a warning says so; whoever puts
one into the registry has it called with the input and both weights. The chain is the plainest: one
elementwise op of one operand between two dots of matrices, whose other operands are rows of no
mask or bias. It runs only when asked for (`--raise-mlp`).
"""

from __future__ import annotations

import warnings

import attrs

from ncc.ir.core import Origin
from ncc.ir.hlo import Instruction, Module
from ncc.ir.hlo_edit import dims_of, entry_replaced, pruned, users
from ncc.ir.kernel_request import ships
from ncc.passes.base import define
from ncc.target import Target

NAME = "raise-mlp"
KERNEL = "AwsNeuronMLPNKI"
ACTIVATIONS = ("logistic", "tanh", "exponential", "sqrt", "negate", "abs")


def apply(module: Module, target: Target) -> Module:
    main = module.main()
    made = {inst.name: inst for inst in main.instructions}
    readers = users(main)
    body = list(main.instructions)
    changed = False
    for at, inst in enumerate(main.instructions):
        act = made[inst.operands[0]] if is_product(inst) else None
        if act is None or act.opcode not in ACTIVATIONS:
            continue
        first = made[act.operands[0]]
        alone = len(readers[act.name]) == len(readers[first.name]) == 1
        if not is_product(first) or not alone:
            continue
        if not ships(KERNEL):
            place = inst.origin.place(inst.name, NAME)
            said = f"NCC126 {place}: this MLP is not raised: ncc.kernels has no kernel {KERNEL}"
            warnings.warn(said, stacklevel=2)
            continue
        body[at] = call(inst, (*first.operands, inst.operands[1]), inst.origin.by(NAME))
        changed = True
    if not changed:
        return module
    entry = attrs.evolve(main, instructions=pruned(body, main.root))
    return entry_replaced(module, entry)


def is_product(inst: Instruction) -> bool:
    """Rows times columns: a dot of two matrices as they lie."""
    sums = (inst.ints("lhs_contracting_dims"), inst.ints("rhs_contracting_dims"))
    return inst.opcode == "dot" and sums == ((1,), (0,)) and len(dims_of(inst)) == 2


def call(inst: Instruction, operands: tuple[str, ...], origin: Origin) -> Instruction:
    attributes = (
        ("custom_call_target", f'"{KERNEL}"'),
        ("api_version", "API_VERSION_ORIGINAL"),
    )
    return Instruction(inst.name, inst.shape, "custom-call", operands, attributes, origin=origin)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    exact=False,
    required=False,
    after={"raise-attention": "a softmax between two dots is no activation"},
    real="LowerToNKIKernelCC",
    job="F0",
    sure="confirmed",
)
