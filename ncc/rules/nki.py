"""NKI: contexts, arguments, calls, results (300 to 309, 380 to 389)."""

from __future__ import annotations

import attrs

from ncc.rules import Rule
from ncc.rules.nki_examples import shown
from ncc.rules.nki_examples_language import LINES

KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def double(a, scale=2.0):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm, name="out")
    t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf, name="t")
    nisa.dma_copy(dst=t, src=a, name="load")
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=scale, name="scale")
    nisa.dma_copy(dst=out, src=t, name="store")
    return out
"""
ORDERED = (
    KERNEL
    + """
ordered = double.with_schedule([("store", "load")])
"""
)
RUN = "run FILE:double --arg a=f32[3,4]"


def changed(old: str, new: str) -> str:
    """The kernel with one thing changed, which must be in it."""
    if old not in KERNEL:
        raise TypeError(f"{old!r} is not in the kernel")
    return KERNEL.replace(old, new, 1)


_TEXTS: tuple[Rule, ...] = (
    Rule(
        "NCC301",
        "an API call outside a kernel",
        "The calls of nki.isa and nki.language record instructions, so a kernel must be running.",
        "Call them from a function under @nki.jit, or run that function with nki.simulate.",
        ("err_nki_api_outside_of_nki_kernel",),
        wrong=changed("    return out", "    return out\n\nnl.ndarray((3, 4), nl.float32)"),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC302",
        "arguments that do not fit",
        "A call gives every parameter of the kernel without a default one argument, and no more.",
        "The message names the parameter; the line is that of the kernel.",
        wrong=changed("a, scale=2.0", "a, b, scale=2.0"),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC303",
        "a decorator in the wrong place",
        "@nki.jit stands directly above the function; decorators with options stand above @nki.jit.",
        "Put the decorators into that order.",
        wrong=changed(
            "@nki.jit\n",
            "from nki.compiler import force_auto_alloc\n\n@nki.jit\n@force_auto_alloc\n",
        ),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC304",
        "a grid that is none",
        "kernel[n] runs on n cores that share a memory, 1 or 2; an inlined kernel has its caller's.",
        "Write kernel[1] or kernel[2], and call kernels inside kernels without brackets.",
        ("err_nested_kernel_with_spmd_grid",),
        wrong=KERNEL + "\nfour = double[4]\n",
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC305",
        "an array that no kernel takes",
        "An array holds an element type of the machine, and one that the kernel writes is writable.",
        "Convert the array first, or pass a copy.",
    ),
    Rule(
        "NCC306",
        "a result in the wrong memory",
        "A kernel returns its arguments and tensors that it allocated in nl.shared_hbm.",
        "Allocate the result with buffer=nl.shared_hbm and copy into it.",
        wrong=changed("return out", "return t"),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC307",
        "a result that nothing writes",
        "Some instruction writes each tensor that a kernel returns.",
        "Copy the result into it, or leave it out of the return statement.",
        ("err_tensor_output_not_written_to",),
        wrong=changed('    nisa.dma_copy(dst=out, src=t, name="store")\n', ""),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC308",
        "the kernel's own Python failed",
        "A kernel's Python runs to its end; an exception that it raises ends the compilation.",
        "The message is the kernel's own, and the line is where it was raised.",
        ("NCC_INKI016",),
        wrong=changed("    out =", '    assert a.shape[0] == 128, "128 rows, please"\n    out ='),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC309",
        "an option that a kernel does not have",
        "A kernel has no target of its own, and its allocator is one of coloring, stack and"
        " linear-scan.",
        "Set NEURON_PLATFORM_TARGET_OVERRIDE, or give --target on the command line.",
        wrong=changed("@nki.jit", '@nki.jit(platform_target="trn2")'),
        right=KERNEL,
        how=RUN,
    ),
    Rule(
        "NCC380",
        "no such target",
        "The targets are trn1 (inf2, gen2), trn2 (gen3) and trn3 (gen4).",
        "Use one of these names.",
    ),
    Rule(
        "NCC381",
        "a schedule that cannot be",
        "with_schedule names two instructions of the kernel, the producer earlier in the program.",
        "Give the instructions name= and name them in program order.",
        wrong=ORDERED.replace('("store", "load")', '("load", "store")'),
        right=ORDERED,
        how=RUN.replace("double", "ordered"),
    ),
    Rule(
        "NCC382",
        "cores that disagree about a shared tensor",
        "A tensor in shared_hbm is one for both cores: same name or same place, same shape and type.",
        "Allocate it on both cores alike, or give the tensors different names.",
    ),
)

RULES: tuple[Rule, ...] = tuple(attrs.evolve(rule, **shown(rule, LINES)) for rule in _TEXTS)
