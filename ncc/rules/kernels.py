"""A traced kernel on its way down: text, laws, carriers, inlining (289 to 299, 390 to 399)."""

from __future__ import annotations

from ncc.rules import Rule
from ncc.rules.nki_examples import RUN, kernel

HEAD = "# ncc penguin target=trn2 after=split-acc-groups\n"
SCALE = (
    HEAD
    + """from ncc.penguin import *
with function("scale") as f:
    x = tensor("x", "float32", (4, 8), kind="input", home="dram")
    y = tensor("y", "float32", (4, 8), kind="output", home="dram")
    with KernelNode("scale"):  # scale.py:3
        args(("x", x))
        outs(("y", y))
        with body("scale"):
            x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
            y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
            t = buffer("t", "float32", (4, 8), "sbuf")
            params(x)
            i0 = nisa.dma_copy(dst=t, src=x)  # scale.py:5
            i1 = nisa.tensor_scalar(dst=t, data=t, operand0=2.0, op0="multiply")  # scale.py:6
            i2 = nisa.dma_copy(dst=y, src=t)  # scale.py:7
            results(y)
"""
)


def broken(old: str, new: str) -> str:
    """The program with one thing changed, which must be in it."""
    if old not in SCALE:
        raise TypeError(f"{old!r} is not in the program")
    return SCALE.replace(old, new, 1)


RULES: tuple[Rule, ...] = (
    Rule(
        "NCC289",
        "an axis out of scope",
        "An axis has at least one turn, and only what is inside its loop is moved by it or has a "
        "tensor of its own in each turn.",
        "Move the op into the loop.",
        wrong=broken(
            't = buffer("t", "float32", (4, 8), "sbuf")',
            't = buffer("t", "float32", (4, 8), "sbuf", axis="k")',
        ),
        right=broken(
            "            i1 = nisa",
            "            for k in affine_range(8):\n"
            "                i3 = nisa.memset(dst=t.ap((8, 4), (1, 1), offset=k))  # scale.py:6\n"
            "            i1 = nisa",
        ),
    ),
    Rule(
        "NCC290",
        "two buffers or ops with one name",
        "Each buffer and each op of a kernel has a name of its own.",
        "Rename one of them.",
        wrong=broken("i1 = nisa", "i0 = nisa"),
        right=SCALE,
    ),
    Rule(
        "NCC291",
        "an impossible buffer",
        "A buffer has a dtype, a shape and a memory of the machine, and an address only on chip.",
        "Change the shape, the dtype or the address that the sentence names.",
        wrong=broken(
            't = buffer("t", "float32", (4, 8), "sbuf")',
            't = buffer("t", "float32", (4, 8), "sbuf", address=(126, 0))',
        ),
        right=SCALE,
    ),
    Rule(
        "NCC292",
        "an access outside its buffer",
        "Every element that an operand walks lies in its buffer, on chip inside one partition's part, "
        "and nothing writes an input.",
        "Use a smaller slice, or a larger buffer.",
        wrong=broken("dst=t, src=x", "dst=t, src=x.ap((8, 4), (1, 8), offset=8)"),
        right=SCALE,
    ),
    Rule(
        "NCC293",
        "an op that the table does not know",
        "An op is a row of the table of ops, with that row's operands, keys and engines, and it waits "
        "only for earlier ones.",
        "Use the names of the nki.isa call.",
        wrong=broken("i2 = nisa.dma_copy(dst=y, src=t)", "i2 = nisa.dma_copy(dst=y)"),
        right=SCALE,
    ),
    Rule(
        "NCC294",
        "a kernel bound to the wrong tensors",
        "Each parameter and each result of a kernel is one tensor in DRAM, of its dtype and shape.",
        "Name the tensor in args(...) or outs(...), with the buffer's dtype and shape.",
        wrong=broken('args(("x", x))', "args()"),
        right=SCALE,
    ),
    Rule(
        "NCC295",
        "a result that is never written",
        "Some instruction of a kernel writes each result.",
        "Copy the result into the output before the kernel returns.",
        ("err_output_never_written",),
        wrong=broken("dst=y, src=t", "dst=t, src=t"),
        right=SCALE,
    ),
    Rule(
        "NCC296",
        "a register out of scope",
        "A register is read after an op wrote it, or inside the device loop that counts with it.",
        "Write it first with register_move or register_load.",
        wrong=broken("operand0=2.0", 'operand0=reg("r0")'),
        right=SCALE,
    ),
    Rule(
        "NCC297",
        "a call that is left",
        "After nki-trace a function holds what kernels recorded, and no call of one.",
        "Run nki-trace.",
    ),
    Rule(
        "NCC298",
        "an op without a line",
        "Each op of a sealed kernel says which line of the kernel recorded it.",
        "Write `# FILE:LINE` at the end of its line.",
        wrong=broken("src=x)  # scale.py:5", "src=x)"),
        right=SCALE,
    ),
    Rule(
        "NCC299",
        "a kernel that cannot be sealed",
        "What a kernel takes and gives lies in HBM that both cores see, and a sealed kernel is not "
        "changed any more.",
        "Allocate the result with buffer=nl.shared_hbm and copy into it.",
        ("err_output_not_in_shared_hbm",),
        wrong=broken(
            'y = buffer("y", "float32", (4, 8), "shared_hbm"',
            'y = buffer("y", "float32", (4, 8), "hbm"',
        ),
        right=SCALE,
    ),
    Rule(
        "NCC390",
        "a kernel's Python is not in the text",
        "A printed stage before nki-trace names the kernel's Python and does not hold it.",
        "Compile FILE.py:NAME, or a stage printed after nki-trace.",
    ),
    Rule(
        "NCC391",
        "a carrier without its file",
        "An NKIKLIRKernel names one of the module's files, as bir or as klir.",
        "Give the module the file that klir_binary names.",
    ),
    Rule(
        "NCC392",
        "a kernel file that cannot be read",
        "A klir file has the magic, the version word and the content tag of its format, and is whole.",
        "Write it again with this release.",
        ("klir_version", "klir_tag"),
    ),
    Rule(
        "NCC393",
        "a kernel file of another version",
        "A carrier's nki_binary_version_identifier is the version that this release writes.",
        "Compile the kernel again with this release.",
    ),
    Rule(
        "NCC394",
        "a call site that does not fit its function",
        "The call of a kernel names functions of the module, and binds their parameters to sets of the "
        "caller that are as large.",
        "Correct func, func_args and func_outs.",
    ),
    Rule(
        "NCC395",
        "addresses that cannot be kept",
        "Buffers of a kernel that overlap are views of one rectangle, which lies in the memory.",
        "Choose addresses inside the memory, or none.",
    ),
    Rule(
        "NCC396",
        "cores that do not meet",
        "The cores of a kernel reach the same core barriers, and each sendrecv has its partner.",
        "Call core_barrier and sendrecv on every core, in the same order.",
        wrong=kernel("if nl.program_id(0) == 0:\n    nisa.core_barrier(data=out, cores=(0, 1))"),
        right=kernel("nisa.core_barrier(data=out, cores=(0, 1))"),
        how=f"{RUN} --lnc 2",
    ),
    Rule(
        "NCC397",
        "an operator that is not inlined",
        "Custom operators and finished library kernels are read and printed, and not compiled.",
        "Write the operator as an NKI kernel.",
    ),
    Rule(
        "NCC398",
        "no static form",
        "An instruction whose operands are known only while the machine runs is compiled where the "
        "machine has a form for it.",
        "Use an offset that is fixed while tracing, or stage the tile through HBM.",
    ),
    Rule(
        "NCC439",
        "a select in one instruction",
        "lower-select makes two copies of every Select, so its result lies on neither its mask nor "
        "what is true.",
        "Write the result to another tile.",
    ),
    Rule(
        "NCC399",
        "a trace that does not fit its call",
        "Tracing a kernel gives a body for each core, with the parameters of the call.",
        "Trace the kernel with the arguments that it was called with.",
    ),
)
