"""NKI: what an instruction takes (330 to 359)."""

from __future__ import annotations

import attrs

from ncc.rules import Rule
from ncc.rules.nki_examples import shown
from ncc.rules.nki_examples_isa import LINES

_TEXTS: tuple[Rule, ...] = (
    Rule(
        "NCC330",
        "arguments that a call does not take",
        "Every call of nki.isa has a fixed list of arguments, the destination first.",
        "Use the spelling of the list; what an older release returned is now written into dst.",
    ),
    Rule(
        "NCC331",
        "an operand that is no tensor",
        "An instruction works on tensors of its kernel: NumPy arrays, lists and None are none.",
        "Allocate a tensor with nl.ndarray, or index the list of tensors.",
    ),
    Rule(
        "NCC332",
        "an operand in the wrong memory",
        "Engines compute on SBUF and PSUM; the tensor engine reads SBUF and writes PSUM; a DMA moves between HBM and SBUF.",
        "Load from HBM with nisa.dma_copy, and copy out of PSUM with nisa.tensor_copy.",
        ("err_unsupported_memory",),
    ),
    Rule(
        "NCC333",
        "partitions that do not match",
        "An instruction works partition by partition, so its operands cover equally many of them, 128 at most.",
        "Slice dimension 0 of all operands alike.",
        ("err_num_partition_mismatch",),
    ),
    Rule(
        "NCC334",
        "element counts that do not match",
        "Operands hold equally many elements a partition; their free shapes may differ, nothing is broadcast but a column.",
        "Slice the free dimensions alike, or broadcast with a view of stride 0.",
        ("err_store_dst_shape_smaller_than_other_shape",),
    ),
    Rule(
        "NCC335",
        "a sum that begins on a filled tile (a warning)",
        "Before trn3 the tensor engine adds to its own products and to zeros; what it adds to other values is undefined there, and ncc adds.",
        "Memset the tile to 0.0, and add the value when the sum is copied out.",
    ),
    Rule(
        "NCC336",
        "more than the tensor engine takes",
        "A product has at most 128 rows to contract, 128 columns of stationary and 512 of moving; a transpose turns 128 × 128, or 32 × 32 on the vector engine.",
        "Cut the operand, one product for each part.",
        ("err_size_of_dimension_exceed_arch_limit",),
    ),
    Rule(
        "NCC337",
        "a product wider than a PSUM bank",
        "What one product writes lies in one bank: 2048 bytes of each partition, 512 columns of float32.",
        "Cut the moving operand into parts of 512 columns; the PSUM tile itself may span banks.",
        ("H02",),
    ),
    Rule(
        "NCC338",
        "a dtype that an operand cannot have",
        "Some operands have one type: products of the tensor engine are float32 (on trn3 also bfloat16), indices are unsigned integers, a scale column is float32.",
        "Allocate the tile with that type; nisa.tensor_copy converts.",
        ("err_activation_scale_invalid_type",),
    ),
    Rule(
        "NCC339",
        "dtypes that differ",
        "Transposes, shuffles, gathers and predicated copies move bits and convert nothing.",
        "Give source and destination one type.",
    ),
    Rule(
        "NCC340",
        "operands of a product that do not go together",
        "float32 multiplies with float32 only, and the two e4m3 types do not mix; other floats do.",
        "Convert one operand with nisa.tensor_copy.",
    ),
    Rule(
        "NCC341",
        "an operator that a call cannot apply",
        "op= takes operators of nl: ALU operators for arithmetic, functions such as nl.exp for activation, few for a fold.",
        "Pass the function itself, as nl.add; see NKI's operator table.",
    ),
    Rule(
        "NCC342",
        "bits and numbers mixed",
        "Operators on bits take integers and convert nothing; arithmetic converts to float32. One call does one of the two.",
        "Use two calls, or view the tile as integers.",
    ),
    Rule(
        "NCC343",
        "an engine that cannot run it",
        "Each instruction runs on certain engines; gpsimd reaches no PSUM, power and rsqrt run on gpsimd, the scalar engine multiplies and adds only.",
        "Leave engine out, or move the operand to SBUF.",
    ),
    Rule(
        "NCC344",
        "two operands from PSUM",
        "An instruction that reads two tiles reads at most one of them from PSUM.",
        "Copy one to SBUF with nisa.tensor_copy.",
    ),
    Rule(
        "NCC345",
        "a number of the wrong kind",
        "An immediate is a number; a memset of integers takes whole ones, and range_select only the least float32.",
        "Pass a number that the tile's type holds.",
    ),
    Rule(
        "NCC346",
        "neither number nor column",
        "A scalar operand is a number or a column (P, 1) with one value for each partition.",
        "Slice one column, or use a call that takes two tiles.",
        ("err_activation_scale_scalar_or_vector", "err_activation_bias_invalid_type"),
    ),
    Rule(
        "NCC347",
        "a call of a later machine",
        "Some calls and modes came with trn2 or trn3.",
        "Compile for that target, or ask nisa.get_nc_version() first.",
    ),
    Rule(
        "NCC348",
        "an instruction that this release does not have",
        "MX and sparse instructions are named in nki.isa and refused.",
        "Multiply bfloat16 or float8 tiles with nisa.nc_matmul.",
    ),
    Rule(
        "NCC349",
        "an axis that cannot be folded",
        "tensor_reduce folds the last dimensions, by their numbers, and never dimension 0.",
        "Permute a view so that the folded dimensions are last; fold partitions with nisa.tensor_partition_reduce.",
    ),
    Rule(
        "NCC350",
        "a sum that is half begun",
        "accumulate=None overwrites what nobody wrote and adds to the rest; one product does so column by column, or quadrant by quadrant of rows.",
        "Pass accumulate=True or False, or allocate a fresh PSUM tile.",
    ),
    Rule(
        "NCC351",
        "a parameter out of range",
        "Masks, patterns, counts, ranks and the members of enumerations have fixed ranges.",
        "Use a value inside the range.",
    ),
    Rule(
        "NCC352",
        "a DMA that its mode cannot do",
        "dge_mode.hwdge converts nothing and picks no rows; dma_compute adds one source to picked rows of dst.",
        "Leave dge_mode out, or give both sides one type.",
    ),
    Rule(
        "NCC353",
        "a transpose that a DMA cannot do",
        "dma_transpose swaps the first and last dimension of 2 to 4; hardware descriptors and picked rows ask for 2-byte elements and multiples of 16.",
        "Give dst the permuted shape, or leave dge_mode out.",
    ),
    Rule(
        "NCC354",
        "a part of the array that there is not",
        "tile_size is 128, 64 or (from trn2) 32 rows and columns; tile_position is a multiple of it; both are given, and the operands fit.",
        "Choose a size that holds K rows and M columns, at a multiple of that size.",
    ),
    Rule(
        "NCC355",
        "no second core to meet",
        "sendrecv and core_barrier pair the two cores of a launch on two.",
        "Launch with kernel[2], or guard the call with nl.num_programs(0) == 2.",
    ),
    Rule(
        "NCC356",
        "an operand of the wrong width",
        "Searches work with 8 slots over 8 to 16384 elements; bn_stats writes 6 numbers of at most 512 elements, bn_aggr 2.",
        "Allocate the operand with that many elements a partition.",
    ),
    Rule(
        "NCC357",
        "no register, or no one element for it",
        "Registers are 32 bits wide, come from nisa.register_alloc, and load and store one element.",
        "Slice one element; copy the index of a loop before changing it.",
    ),
    Rule(
        "NCC358",
        "a sum without a beginning",
        "reduce_cmd.load_reduce starts from a number that the call is given.",
        "Pass the number, or use reduce_cmd.reset_reduce.",
    ),
    Rule(
        "NCC359",
        "integers above 2^24 (a warning)",
        "Vector and scalar engine compute in float32, which holds integers exactly up to 2^24.",
        "Use nisa.tensor_tensor on int32 or uint32 tiles in SBUF, or operators on bits: both are exact.",
        ("H10",),
    ),
)

RULES: tuple[Rule, ...] = tuple(attrs.evolve(rule, **shown(rule, LINES)) for rule in _TEXTS)
