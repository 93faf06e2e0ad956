"""Rules 1: HLO."""

from __future__ import annotations

from ncc.rules import Rule

DOT = """HloModule small

ENTRY %main (a: bf16[4,8], b: bf16[8,3]) -> f32[4,3] {
  %a = bf16[4,8]{1,0} parameter(0)
  %b = bf16[8,3]{1,0} parameter(1)
  ROOT %c = f32[4,3]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
BIAS = """HloModule small

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %k = f32[4]{0} constant({1, 2, 3, 4})
  ROOT %c = f32[4]{0} add(%a, %k)
}
"""
RELU = """HloModule small

%relu (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[4]{0} broadcast(%zero), dimensions={}
  ROOT %y = f32[4]{0} maximum(%x, %zeros)
}

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %c = f32[4]{0} call(%a), to_apply=%relu
}
"""

KERNEL = """HloModule small

ENTRY %main (a: bf16[8,4], b: bf16[8,3]) -> bf16[4,3] {
  %a = bf16[8,4]{1,0} parameter(0)
  %b = bf16[8,3]{1,0} parameter(1)
  ROOT %c = bf16[4,3]{1,0} custom-call(%a, %b), custom_call_target="matmul"
}
"""

LAID_OUT = (
    "# ncc hlo target=trn2 after=assign-layouts facts=entry-is-descending,"
    "every-array-has-a-layout,nothing-is-sharded,windows-are-plain\n"
)

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC101",
        "HLO text with a slip",
        "HLO text follows XLA's grammar: `%name = shape opcode(operands), key=value, ...`.",
        "Look at the line and column; the message lists what could have stood there.",
        wrong=DOT.replace("dot(%a, %b)", "dot(%a, %b"),
        right=DOT,
    ),
    Rule(
        "NCC102",
        "not HLO text",
        "HLO text begins with `HloModule NAME`.",
        "In JAX: `jax.jit(f).lower(*args).as_text(dialect='hlo')`.",
        wrong=DOT.replace("HloModule small", "module @small"),
        right=DOT,
    ),
    Rule(
        "NCC103",
        "a constant whose values were left out",
        "A constant needs its values; `{...}` is what a dump writes in place of a large one.",
        "Dump again with large constants printed (`print_large_constants=True`).",
        wrong=BIAS.replace("{1, 2, 3, 4}", "{...}"),
        right=BIAS,
    ),
    Rule(
        "NCC104",
        "a literal that does not fit its shape",
        "A literal has the nesting, the counts and the range of its shape and element type.",
        "Give one value for each element, each within the element type's range.",
        names=("ESFH002",),
        wrong=BIAS.replace("{1, 2, 3, 4}", "{1, 2, 3}"),
        right=BIAS,
    ),
    Rule(
        "NCC105",
        "an unknown element type",
        "An element type is one that XLA has: f32, bf16, s8, pred, ...",
        "The message names the nearest one.",
        wrong=DOT.replace("bf16[4,8]", "bf17[4,8]"),
        right=DOT,
    ),
    Rule(
        "NCC106",
        "a name that no line above makes",
        "A value is made once, in its own computation, before it is read.",
        "Check the spelling of the operand, or move the line that makes it up.",
        wrong=DOT.replace("dot(%a, %b)", "dot(%a, %d)"),
        right=DOT,
    ),
    Rule(
        "NCC107",
        "a computation that is not whole",
        "One ENTRY, one root, parameters that count from 0, and a header that says the same.",
        "Make header, parameters, root and entry_computation_layout agree.",
        wrong=DOT.replace("parameter(1)", "parameter(2)"),
        right=DOT,
    ),
    Rule(
        "NCC108",
        "a shape that does not fit its operands",
        "The shape written before an opcode is the one that its operands and attributes give.",
        "The message has both shapes.",
        names=("NCC_EVRF001",),
        wrong=DOT.replace("f32[4,3]", "f32[3,4]"),
        right=DOT,
    ),
    Rule(
        "NCC109",
        "a layout that is none",
        "A layout names every dimension of its shape once: {1,0} for two dimensions.",
        "Write {n-1,...,1,0} for row-major.",
        wrong=DOT.replace("%a = bf16[4,8]{1,0}", "%a = bf16[4,8]{1,1}"),
        right=DOT,
    ),
    Rule(
        "NCC110",
        "a contraction of different sizes",
        "A dot contracts dimensions of one size.",
        "Check lhs_contracting_dims and rhs_contracting_dims, which pair up in order.",
        wrong=DOT.replace("bf16[8,3]", "bf16[7,3]"),
        right=DOT,
    ),
    Rule(
        "NCC112",
        "a sharded value",
        "A program for one device has values that are replicated or on one device (maximal).",
        "Trace the function without a sharding, or with a mesh of one device.",
        wrong=DOT.replace("parameter(1)", "parameter(1), sharding={devices=[4,1]0,1,2,3}"),
        right=DOT.replace("parameter(1)", "parameter(1), sharding={replicated}"),
    ),
    Rule(
        "NCC113",
        "an input or output that is not row-major",
        "Parameters arrive row-major, and outputs leave so, after the passes on layouts.",
        "normalize-layouts makes parameters row-major; give descending-root a flat tuple.",
        names=("EnsureDescendingLayoutInRoot",),
        wrong=LAID_OUT + DOT.replace("%a = bf16[4,8]{1,0}", "%a = bf16[4,8]{0,1}"),
        right=LAID_OUT + DOT,
    ),
    Rule(
        "NCC114",
        "an opcode that is not compiled",
        "Compiled are dot, add, maximum, convert, broadcast, constant, copy, tuples and calls, "
        "reshapes that add or drop dimensions of size 1, transposes, and custom calls of kernels.",
        "Other opcodes come with a later release; compute this part outside.",
        wrong=BIAS.replace(" add(", " multiply("),
        right=BIAS,
    ),
    Rule(
        "NCC115",
        "an integer product",
        "The tensor engine multiplies floats; integer products are not exact there.",
        "Convert the operands to f32 where their products and sums stay below 2^24.",
        names=("EVRF035", "NCC_EVRF035"),
        wrong=DOT.replace("bf16", "s32").replace("f32", "s32"),
        right=DOT,
    ),
    Rule(
        "NCC116",
        "an element type that is not compiled",
        "The machine computes with bf16, f16, f32, f8e4m3, f8e4m3fn and f8e5m2.",
        "Convert to one of them in the source program.",
        wrong=BIAS.replace("f32", "f64"),
        right=BIAS,
    ),
    Rule(
        "NCC117",
        "a call of nothing, or of itself",
        "A call names a computation of the module, and no computation reaches itself.",
        "Check the name after to_apply= or calls=.",
        wrong=RELU.replace("to_apply=%relu", "to_apply=%rely"),
        right=RELU,
    ),
    Rule(
        "NCC118",
        "a pooling window of another kind",
        "A pooling window is not dilated, and its padding is smaller than its size.",
        "Dilate or pad before the window.",
        names=("NCC_EVRF017", "NCC_EVRF018", "NCC_EVRF019"),
    ),
    Rule(
        "NCC119",
        "a form that comes later",
        "Dynamic dimensions, tuples as parameters or constants, and very deep calls are refused.",
        "Give every dimension its size, and pass a tuple's elements one by one.",
        wrong=DOT.replace("bf16[4,8]", "bf16[<=4,8]").replace("f32[4,3]", "f32[<=4,3]"),
        right=DOT,
    ),
    Rule(
        "NCC120",
        "a custom call of an unknown kernel",
        "custom_call_target names a kernel that ships, or a kernel of a file as FILE.py:NAME.",
        "The message has the nearest name; a file is looked for from the current folder.",
        wrong=KERNEL.replace('"matmul"', '"matmull"'),
        right=KERNEL,
    ),
    Rule(
        "NCC121",
        "operands that a kernel refuses",
        "A kernel runs for the shapes, dtypes and values of the call, and says itself what it"
        " takes.",
        "The message has the kernel's own sentence, and the line of the kernel that says it.",
        wrong=KERNEL.replace("bf16[8,3]", "bf16[7,3]"),
        right=KERNEL,
    ),
    Rule(
        "NCC122",
        "outputs that a kernel does not give",
        "A custom call has as many outputs as its kernel, each of the dtype and the shape that the"
        " kernel gives: first what it returns, then the parameters that it writes.",
        "The message has the kernel's dtype or shape and the call's.",
        wrong=KERNEL.replace("bf16[4,3]", "f32[4,3]"),
        right=KERNEL,
    ),
    Rule(
        "NCC123",
        "an alias that the kernel does not make",
        "An output is an alias of an operand exactly if the kernel writes that parameter in place.",
        "Declare it with output_to_operand_aliasing={{OUTPUT}: (OPERAND, {})}.",
        wrong=KERNEL.replace('"matmul"', '"matmul", output_to_operand_aliasing={{}: (0, {})}'),
        right=KERNEL,
    ),
    Rule(
        "NCC124",
        "a custom call that cannot be read",
        "backend_config is a dictionary of values, as JSON or as a typed call of JAX prints it.",
        'Write the parameters as {"scale": 0.5}.',
        wrong=KERNEL.replace('"matmul"', '"matmul", backend_config="scale=2"'),
        right=KERNEL,
    ),
    Rule(
        "NCC125",
        "attention that stays plain ops",
        "Attention is raised to its kernel when its tensors are bf16 or f16, its keys more than"
        " 1,007, its heads of at most 128 elements, its mask none or causal, and nothing else reads"
        " what is inside; float32 is left alone, because the kernel's products would round it.",
        "A warning says which of these does not hold; the program is compiled without the kernel.",
        names=("LowerToCustomNativeKernel", "DecomposeAttention"),
    ),
    Rule(
        "NCC126",
        "an MLP that stays plain ops",
        "Dot, activation and dot become a call of AwsNeuronMLPNKI where the registry has a kernel of"
        " that name; none ships.",
        "The dots are compiled as they are; a kernel of one's own is called by a custom call.",
        names=("LowerToNKIKernelCC",),
    ),
)
