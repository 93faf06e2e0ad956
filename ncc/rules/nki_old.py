"""NKI: the older API (370 to 379)."""

from __future__ import annotations

import attrs

from ncc.rules import Rule
from ncc.rules.nki_examples import shown
from ncc.rules.nki_examples_language import LINES

_TEXTS: tuple[Rule, ...] = (
    Rule(
        "NCC370",
        "an index tensor without its dimension",
        "nl.arange has one dimension and says nothing of its place: an index tensor has as many dimensions as the tile.",
        "Write nl.arange(n)[:, None] for partitions and nl.arange(n)[None, :] for a free dimension, or use nl.mgrid.",
        ("err_1d_arange_not_supported",),
    ),
    Rule(
        "NCC371",
        "an index that no constant steps describe",
        "An index tensor is a sum of whole multiples of nl.arange: the machine walks constant steps.",
        "Divide with // where it comes out even, or walk the parts in a Python loop.",
    ),
    Rule(
        "NCC372",
        "no mask",
        "A mask compares index tensors with numbers that are known while tracing, and masks are joined with &.",
        "Choose by the values of a tile with nl.where, and a union of ranges with two calls.",
        ("err_unsupported_expression_in_mask", "H04"),
    ),
    Rule(
        "NCC373",
        "a mask that does not fit its tile",
        "A mask is built of the index tensors that select the tile, and cuts all operands of its call alike.",
        "Index every operand with the same index tensors, and compare those.",
    ),
    Rule(
        "NCC374",
        "a shape that is not the annotated one",
        "A shape names its partitions once, and is the one that assert_shape and annotations name.",
        "Correct the shape, or the annotation.",
        ("err_annotation_shape_mismatch",),
    ),
    Rule(
        "NCC375",
        "blocks taken for one tile",
        "Dimensions before nl.par_dim count separate tiles: calls take one of them, and views leave them as they are.",
        "Index the block dimensions with numbers, in a loop.",
    ),
    Rule(
        "NCC376",
        "programs that share no tile",
        "The programs of a grid run one after the other, and meet in HBM only.",
        "Store what each program gives to shared_hbm, and fold it there.",
    ),
    Rule(
        "NCC377",
        "a custom operator",
        "builtin_custom_op runs a compiled library on the gpsimd engine, which ncc does not have.",
        "Write the operator with the calls of nki.isa.",
    ),
    Rule(
        "NCC378",
        "what earlier compilers refused (no fault here)",
        "ncc takes kernels that write a parameter without returning it, that carry values through affine_range or "
        "allocate shared_hbm in a loop, and allocated kernels without a bias tile or with transposes on the "
        "tensor engine: loops are unrolled in order, arrays are updated in place, and ncc places what it adds.",
        "Nothing is to be done for ncc.",
        (
            "err_bias_tensor_must_be_specified_in_allocation",
            "err_cannot_update_immutable_parameter",
            "err_mutable_parameter_not_returned",
            "err_shared_hbm_must_in_kernel_level",
            "err_transpose_on_tensor_engine_not_allowed_in_allocated_kernel",
            "err_unexpected_output_dependencies",
        ),
    ),
    Rule(
        "NCC379",
        "a keyword that says nothing (a warning)",
        "Calls of the older API took every keyword; one that ncc does not know changes nothing here.",
        "Leave it out, or look for the documented one: ncc explain NCC330.",
    ),
)

RULES: tuple[Rule, ...] = tuple(attrs.evolve(rule, **shown(rule, LINES)) for rule in _TEXTS)
