"""NKI: allocations, indices and views (310 to 329)."""

from __future__ import annotations

import attrs

from ncc.rules import Rule
from ncc.rules.nki_examples import shown
from ncc.rules.nki_examples_tensors import LINES

_TEXTS: tuple[Rule, ...] = (
    Rule(
        "NCC310",
        "more than 128 partitions",
        "Dimension 0 of a tensor in SBUF or PSUM is the partition dimension, and there are 128.",
        "Loop over blocks of 128 rows, or put further rows beside one another: (128, 2, 64) for (256, 64).",
        ("err_num_partition_exceed_arch_limit", "err_exceed_max_supported_dimension"),
    ),
    Rule(
        "NCC311",
        "the shape of an allocation",
        "Every size is 1 or more, and a tensor in SBUF or PSUM has two dimensions or more, partitions first; no tile has 16 MB a partition, no tensor 1 TB.",
        "Give (1, n) for a row and (n, 1) for a column.",
        ("err_leading_dimension_of_tensor_must_be_partition",),
    ),
    Rule(
        "NCC312",
        "no element type of the machine",
        "Tensors hold the types of nl: integers of 1 to 4 bytes, float32, bfloat16, float16 and the 8-bit floats.",
        "Convert the array before the call; float64 becomes nl.float32.",
    ),
    Rule(
        "NCC313",
        "no index",
        "A tensor is indexed with ints, slices, nl.ds, ranges, `...`, registers and one-element tensors.",
        "Compute indices with whole numbers (// rather than /), and use views or .ap for other walks.",
        (
            "err_unsupported_mixing_basic_advanced_tensor_indexing",
            "err_indirect_indices_are_not_supported_with_nki_api",
        ),
    ),
    Rule(
        "NCC314",
        "out of bounds",
        "Every element of an access lies in its tensor; no bound is clamped.",
        "End the last slice with min(start + size, extent), or mask the tail.",
        ("err_tensor_access_out_of_bound",),
    ),
    Rule(
        "NCC315",
        "partitions that an engine cannot address",
        "An operand covers neighbouring partitions: more than 64 start at 0, 33 to 64 at 0 or 64, up to 32 at 0, 32, 64 or 96.",
        "Lay the tile out so that it starts there, or move the rows with nisa.dma_copy.",
    ),
    Rule(
        "NCC316",
        "no such view",
        "A view walks elements where they lie: it moves nothing, and keeps the partition dimension first.",
        "Copy the elements to a tile of the wanted layout.",
        ("err_failed_to_infer_tile_from_local_tensor",),
    ),
    Rule(
        "NCC317",
        "a tensor's value in Python",
        "A tensor's values exist only while the machine runs, so Python can neither test nor convert them.",
        "Use nl.where, nisa.affine_select or a predicate, or loop with nl.fori_loop and nl.while_loop.",
        (
            "err_ambiguous_tensor_truth_value",
            "err_dynamic_control_flow_not_supported",
            "err_control_flow_condition_depending_on_arange",
        ),
    ),
    Rule(
        "NCC318",
        "a tensor out of scope",
        "A tensor that was allocated in the body of a device loop (in the older API: of affine_range or sequential_range) does not outlive it.",
        "Allocate it before the loop.",
        ("err_local_variable_used_out_of_scope",),
    ),
    Rule(
        "NCC319",
        "a tensor of another run",
        "A tensor belongs to the run of the kernel that allocated it.",
        "Allocate it in the kernel that uses it, or pass it as an argument.",
    ),
    Rule(
        "NCC320",
        "no memory",
        "A tensor is allocated in nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm.",
        "Pass the member, not its name as text.",
    ),
    Rule(
        "NCC321",
        "no access pattern",
        "A pattern is [[stride, count], ...], whole numbers, slowest first, every count 1 or more.",
        "Count strides in elements of the dtype that the access reads.",
    ),
    Rule(
        "NCC322",
        "no run-time index",
        "A run-time index is a register or one integer in SBUF; one start a row is a (rows, 1) integer tile.",
        "Load the index to SBUF as int32, and slice with nl.ds(register, size).",
        (
            "err_copy_dynamic_indirect_indices_not_natively_supported",
            "err_indirect_indices_free_dim",
        ),
    ),
    Rule(
        "NCC323",
        "tensor indirection",
        "An .indirect operand chooses elements one by one in the instruction; gen3 bundles have no such form.",
        "Gather to a tile first, with nisa.nc_n_gather or nisa.local_gather.",
    ),
    Rule(
        "NCC324",
        "an assignment to a tensor",
        "Python's t[...] = value is no instruction in today's API; instructions write their dst.",
        "Pass the view as dst=, or copy with nisa.tensor_copy.",
        ("err_cannot_assign_to_index",),
    ),
    Rule(
        "NCC325",
        "a value that a tensor cannot hold",
        "A fill is a number that the dtype holds, a constant an array or the path of an .npy file.",
        "Give a whole number for an integer tensor.",
        (
            "err_hbm_tensor_with_init_value_not_supported",
            "err_tensor_creation_on_scratchpad_with_init_value_not_supported",
        ),
    ),
    Rule(
        "NCC326",
        "an address outside of the memory",
        "address= is (first partition, byte), aligned to the element, with the whole tile inside SBUF or PSUM.",
        "Place the tile lower, make it smaller, or leave address= out.",
    ),
)

RULES: tuple[Rule, ...] = tuple(attrs.evolve(rule, **shown(rule, LINES)) for rule in _TEXTS)
