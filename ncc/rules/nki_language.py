"""NKI: functions of nki.language, loops, registers, collectives (360 to 369)."""

from __future__ import annotations

import attrs

from ncc.rules import Rule
from ncc.rules.nki_examples import shown
from ncc.rules.nki_examples_language import LINES

_TEXTS: tuple[Rule, ...] = (
    Rule(
        "NCC360",
        "a name that the API does not have",
        "nki.language has the dtypes, memories, loops and tile functions of today's API, nki.isa its instructions; block dimensions, index tensors and masks are the older one's, which kernels import as neuronxcc.nki.language.",
        "Write what the sentence names.",
    ),
    Rule(
        "NCC361",
        "a function of nki.language without a tile",
        "A tile function takes tensors of the kernel; next to one of them a number may stand where the function says so. Two numbers, or numpy arrays, are computed at once while tracing.",
        "Pass a tensor: an argument of the kernel, or what nl.ndarray, nl.full or nl.load made.",
    ),
    Rule(
        "NCC362",
        "shapes that a tile function does not join",
        "Two tiles have one shape, or one of them holds one value a partition, (P, 1). Products contract the first dimension of both operands, transposes take two dimensions.",
        "Slice both alike, or repeat a dimension of size 1 with view.broadcast(dim, size).",
        ("err_num_partition_mismatch",),
    ),
    Rule(
        "NCC363",
        "a loop that cannot be formed",
        "Ranges run while the kernel is traced and need whole numbers. A device loop counts upwards by a step that is known while tracing, its bounds are numbers or registers, its body is traced once from begin to end, and it stands in no block of fixed order.",
        "Count with nl.fori_loop where a bound is a register; leave the body only at its end; close nl.no_reorder before a device loop.",
        ("err_dynamic_control_flow_not_supported", "err_while_loop_requires_unconditional_entry"),
    ),
    Rule(
        "NCC364",
        "Python asks for the value of a register",
        "A register holds its value on the machine, long after Python has run. It can be an index, a scalar_offset, or a bound of a device loop; an NkiScalar also takes part in +, - and *.",
        "Use nl.while_loop or nl.fori_loop in place of if, while, int() and range(); load numbers with nisa.scalar_load to compute with them.",
    ),
    Rule(
        "NCC365",
        "an axis that cannot be folded",
        "Reductions of nki.language fold free dimensions, 1 and up; dimension 0 is the partitions, and an engine works on each of them by itself.",
        "Fold partitions with nisa.tensor_partition_reduce, with a product by ones, or after a transpose.",
    ),
    Rule(
        "NCC366",
        "an axis that the grid does not have",
        "program_id and num_programs take an axis of the launch grid; today's grid has one, the cores.",
        "Launch the kernel as kernel[cores](...), and ask for axis 0.",
    ),
    Rule(
        "NCC367",
        "arguments that a collective does not take",
        "A collective takes lists of tensors in HBM or SBUF, as many sources as destinations, which are neither arguments nor results of the kernel, and groups of ranks that have none in common.",
        "Copy through a named nl.shared_hbm tensor, and describe the groups with ReplicaGroup([[0, 1], [2, 3]]).",
    ),
    Rule(
        "NCC368",
        "a collective's transfer",
        "Collectives are checked, and their transfer between ranks is not part of this release: it needs a run of several ranks.",
        "Run the kernel's other parts on one rank; a single rank needs no collective.",
    ),
    Rule(
        "NCC369",
        "a field that an NKIObject does not have",
        "A class below NKIObject takes its fields by position or by name: its annotations and its plain class attributes. A field that nobody passes is None.",
        "Name a field of the class, or add it.",
    ),
)

RULES: tuple[Rule, ...] = tuple(attrs.evolve(rule, **shown(rule, LINES)) for rule in _TEXTS)
