"""The operands of the opcodes that kernels need: their order, their shapes, and what is computed.

Where the BIR reference is silent the choice is ncc's own, and its line begins with a `*`. Words:

- *tensor*: walked in the order of its pairs. All tensors of an instruction have the same number of
  partitions and, unless said otherwise, equally many elements in each; the pairs may differ.
- *column*: one element a partition. float32 unless said otherwise, in SBUF.
- *scalar*: a column, or an immediate.
- Engines compute in float32 and round once when they write (nearest even; integers saturate).
- `reverseN` swaps the two arguments of stage N.
- an accumulator is one float32 a partition: ACT has one, DVE has one, no address names them.
  ZeroAccumulate begins anew, AddAccumulate goes on, LoadAccumulate begins with a given value, Idle
  leaves it alone. What is read back is the fold of the float32 values, before they are rounded.
- free pairs: how many pairs a record has room for beside the partition's (`free_pairs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncc.ir.bir_opcodes import OPCODES, key

if TYPE_CHECKING:
    from ncc.ir.bir import Inst

OPERANDS: dict[str, str] = {
    # two tensors, a tensor and scalars
    "TensorTensor": """
        tensor a, tensor b -> tensor
        out = a op b. One of a, b at most in PSUM.
        * `integer`: on Pool, all three int32 or uint32: add, subtract, mult, max, min and the six
          comparisons in the integers themselves (sums wrap). Without it they go through float32.
          pow, divide, mod: DVE and Pool.
        bit operations (bitwise_*, *_shift_*): three equal integer dtypes.
    """,
    "TensorScalar": """
        tensor x -> tensor
        out = (x op0 const0) op1 const1, constants in the program. No op1 without op0.
        A bit operation in either stage: both are, and x and out have one integer dtype.
        Unary operations (abs, rsqrt, bitwise_not) ignore their constant.
    """,
    "TensorScalarPtr": """
        tensor x, scalar s0[, scalar s1] -> tensor
        out = (x op0 s0) op1 s1. Columns float32; of a bit operation: of x's dtype.
        With `is_scalar_tensor_tensor`: tensor x, scalar s, tensor y -> tensor
          out = (x op0 s) op1 y. DVE, 2 free pairs, arithmetic only. x and y not both in PSUM.
          * s may be a column of any dtype up to 4 bytes.
        With `is_tensor_tensor_scan`: tensor x, tensor y, scalar initial -> tensor
          * r = initial; for each element i along a partition: r = (x[i] op0 r) op1 y[i]; out[i] = r
          (`reverse0`: r op0 x[i]; `reverse1`: y[i] op1 ...). r is float32. DVE, 2 free pairs, trn2.
    """,
    "TensorScalarCache": """
        tensor x, scalar s[, scalar seed] -> tensor        (seed exactly with acc=LoadAccumulate)
        * mode=Reduce: out = x op0 s, and the DVE accumulator folds all elements of the partition
          with op1 (add, subtract, mult, max, min): from its identity (0, 0, 1, -inf, +inf), from
          what it holds, or from seed.
        * mode=Cumulative (trn2): r = that beginning; for each element: r = (x[i] op0 s) op1 r;
          out[i] = r; the accumulator holds the last.
        x and out of float dtypes. acc: ZeroAccumulate, AddAccumulate, LoadAccumulate. No reverse.
    """,
    "DveReadAccumulator": """
        -> column of any dtype
        The DVE accumulator of the partitions that the column covers; `negated`: its negative.
    """,
    "Reciprocal": "tensor -> tensor\n1 / x",
    # activation
    "Activation": """
        tensor x[, scalar bias[, column scale]] -> tensor
        out = func(scale * x + bias, alpha). scale: the key, or * the third operand, a float32
        column, instead of it; then a bias must be there (an immediate 0.0 is none).
        bias: a column of any dtype up to 4 bytes, or an immediate (trn1: only 0.0; with Copy and
        Reciprocal any). `alpha` is the slope of Lrelu and Prelu.
        acc: Idle, Zero (accumulator := 0), ZeroAccumulate, AddAccumulate; reduce_op: add (bypass
        means add). 3 free pairs.
    """,
    "ActivationReadAccumulator": """
        -> column of any dtype
        The ACT accumulator; nothing else may accumulate on ACT between it and its Activation.
    """,
    # folds
    "TensorReduce": """
        tensor -> tensor
        axis X, XY, XYZ, XYZW: the innermost 1 to 4 pairs of the source's pattern are folded, as
        they stand there (a pair of 1 counts); the kept elements are written in their order.
        op: add, subtract, mult, max, min, logical_*, or a bit operation on one integer dtype.
        `negate`: the negative of the fold.
        * axis C (Pool, SBUF): over the partitions, one element of each position; out has one
          partition. XYZWC: of everything, out is one element. op: add, average, max, bitwise_or,
          bitwise_and, bitwise_xor.
    """,
    "Pool": """
        tensor -> tensor
        func Max or Avg of the innermost two pairs of the source's pattern (as they stand there).
    """,
    "BNStats": """
        tensor of n -> tensor of 6
        count, mean, count * variance of the elements at even places, then of those at odd places.
    """,
    "BNStatsAggregate": """
        tensor of 3 k -> tensor of 2
        k groups (count, mean, count * variance) as one mean and one population variance.
    """,
    # places
    "Iota": """
        -> tensor
        base + channel_multiplier * p + sum of step * i over `pattern` = ((step, num), ...), slowest
        first, at most 4 pairs, as many values as elements. An int32, converted to the dtype.
        Pool, SBUF.
    """,
    "TensorScalarAffineSelect": """
        tensor x -> tensor
        The same value v (keys as of Iota): out = x where v compare_op 0, else fill_value.
        Pool, SBUF, 2 free pairs. Of one dtype x's bits are kept; else through float32.
    """,
    "RangeSelect": """
        tensor x, scalar bound0, scalar bound1 -> tensor
        i = base + the element's number in its partition; out = x where (i compare_op0 bound0) and
        (i compare_op1 bound1), else fill_value, which must be -3.4028234663852886e+38.
        compare ops: is_equal, is_gt, is_ge, is_lt, is_le. reduce_cmd Idle, ZeroAccumulate or
        AddAccumulate: the largest of out into the DVE accumulator (reduce_op max). 2 free pairs.
    """,
    "Select": """
        tensor mask, tensor or immediate on_true, tensor or immediate on_false -> tensor
        mask: integers, not 0 means true. out may not share bytes with mask or on_true.
        * lower-select: a copy of on_false, a predicated copy of on_true (trn2 for an immediate).
    """,
    "CopyPredicated": """
        tensor mask, tensor src -> tensor
          out = src where mask is not 0; elsewhere it stays. mask: integers of 8, 16, 32 bits.
          3 free pairs. * `reverse_pred` has no record here: compare the mask with 0 first.
        tensor mask, scalar src -> tensor
          * the same with one value (trn2): an immediate, or a column of out's dtype;
          `reverse_pred`: where mask is 0.
        tensor mask, tensor on_true, scalar on_false -> tensor
          out = on_true where mask is not 0, else on_false (`reverse_pred`: exchanged);
          accumulator_cmd Idle, ZeroAccumulate, AddAccumulate: the largest of out into the DVE
          accumulator, reduce_op max. 2 free pairs, trn2.
    """,
    # quadrants
    "StreamShuffle": """
        tensor -> tensor of one dtype
        `mask` of 32: in each quadrant of 32 partitions of out, row j takes row mask[j] of the
        source's quadrant; 255 leaves the row of out as it is. Both start at a quadrant.
        * The source may have fewer partitions than out (a row sent to 32), as long as it has those
          that the mask names.
    """,
    "StreamTranspose": """
        tensor -> tensor of one dtype
        Each block of 32 partitions x 32 elements, transposed in its place. Partitions and elements
        a partition are multiples of 32 on both sides.
    """,
    # searches
    "Max": "tensor of 8..16384 -> tensor of 8\nThe eight largest of a partition, descending.",
    "MaxIndex": """
        tensor data of 8..16384, tensor values of 8 -> tensor of 8, uint16 or uint32
        For each value its first place in data; equal values take successive places; absent: all
        bits one.
    """,
    "MatchReplace": """
        tensor data, tensor values of 8 -> tensor
        data with the first place of each value replaced by imm_value.
    """,
    "MaxIndexAndMatchReplace": """
        tensor data, tensor values of 8 -> tensor, tensor of 8 (uint16 or uint32)
        MatchReplace, and the places. * Values are searched from slot 7 down, so that equal ones
        have places in descending order of slots.
    """,
    # gathers on chip
    "IndirectCopy": """
        tensor data, tensor index (uint16) -> tensor
        In each group of 16 partitions the index elements are one list, taken column by column (the
        partition fastest), of which the first num_valid_indices count (0: all):
        out[p, k*e + j] = data[p, list[k] + j], e = num_elem_per_idx (* ncc's own key; a power of 2
        up to 32). data and index contiguous in their partitions; SBUF; data and out of one dtype.
        * Where n * e is less than out has, the rest of out stays.
    """,
    "Gather": """
        tensor data, tensor index (uint32) -> tensor with as many elements as index
        out[p, k] = data[p, index[p, k]]; data and out of one dtype. SBUF.
    """,
    # DMA
    "DMACopy": """
        access -> access
        mode=Copy: elements in the order of the pairs; of two dtypes: through float32.
        mode=Transpose: rows and columns exchanged (four pairs each; see the reference).
        * mode=CCE, cce_op=add: access a, access b, ... -> access: the sum in float32, rounded once.
        A record exists where out is a itself and there is one b: out += b.
    """,
    "IndirectLoad": """
        access table (DRAM), column index (SBUF, int32 or uint32) -> access (SBUF)
        * Row r of out, which is as wide as row r of table's pattern, takes the elements that begin
          `index_scale` * index[r] further: the step of table's first pair means nothing (0).
          `index_limit` values are inside; another value is an error, or with oob_is_err=false the
          row is left alone.
    """,
    "IndirectSave": """
        access data (SBUF), column index -> access table (DRAM)
        * The same to the table; rows in their order, so that the last of two equal ones stays.
    """,
    "IndirectSaveAccumulate": """
        access data (SBUF), column index -> access table (DRAM)
        * table[index[r]] += data[r] in float32, rounded once a row; op add.
    """,
    # the rest
    "Memset": """
        -> tensor
        mode=Const: every element has the bits `constant` (low bytes of it).
        mode=Random: as Rng.
    """,
    "Rng": "-> tensor of integers\nThe low bits of random 32-bit words of the engine's generator.",
    "Dropout": """
        tensor x, scalar threshold -> tensor of x's dtype
        Each element becomes 0 with probability threshold (`is_keep_threshold`: stays with it).
    """,
    "GetSequenceBounds": """
        tensor ids of n (1 partition; int32 or float32) -> tensor of 2 n
        Start of each element's run of equal ids, then its end (exclusive); id 0 gives n and -1.
    """,
    "NonzeroWithCount": """
        tensor x of t (int32 or float32) -> tensor of t + 1 (int32)
        Partitions 0, 16, ..., 112 only: the places of what is not 0, plus `index_offset`; then
        `padding_val`; the last element is how many there are. * Both keys are ncc's own.
    """,
    "CustomOp": """
        tensor x (bfloat16, 16 partitions, element e at partition e % 16, column e // 16)
          -> tensor values, tensor places (uint32), both in the same snake
        * opFunctionName=topk, is_builtin=true: the K largest of the first `arguments` = (n, K)
          elements, ascending, and their numbers.
    """,
    "RegisterMove": "whole number or register -> register",
    "RegisterAlu": """
        register or whole number a, register or whole number b -> register
        a op b in 32 bits, which wrap; the dtype of a, int32 or uint32, says how they are read.
    """,
    "CompareAndBranch": """
        register a, register or whole number b
        comp_op IS_LTIMM ... IS_GTREG: to block on_true where a compares so with b, else on_false.
        Each engine has registers and a stream of its own: an engine with work in the blocks has its
        own copy of every register instruction and branch, and all copies go the same way.
    """,
    "UnconditionalBranch": "to the block `target`",
    "TensorLoad": "one element of 4 bytes (SBUF or DRAM) -> register",
    "TensorSave": "immediate or register -> one element of 4 bytes (SBUF or DRAM)",
}


def free_pairs(inst: Inst) -> int:
    """How many pairs beside the partition's the record of this instruction has room for."""
    opcode = inst.opcode
    if opcode == "TensorScalarPtr" and (
        key(inst, "is_scalar_tensor_tensor") or key(inst, "is_tensor_tensor_scan")
    ):
        return 2
    if opcode == "CopyPredicated" and len(inst.ins) == 3:
        return 2
    return OPCODES[opcode].free


def least_level(inst: Inst) -> int:
    """The first architecture level that has this form of the opcode."""
    opcode = inst.opcode
    if opcode == "TensorScalarPtr" and key(inst, "is_tensor_tensor_scan"):
        return 30
    if opcode == "TensorScalarCache" and key(inst, "mode") == "Cumulative":
        return 30
    if opcode == "CopyPredicated" and (len(inst.ins) == 3 or one_value(inst)):
        return 30
    return OPCODES[opcode].level


def one_value(inst: Inst) -> bool:
    """Whether a predicated copy writes one value a partition: an immediate or a column."""
    from ncc.ir.bir import Ap
    from ncc.ir.bir_patterns import elements

    source, out = inst.ins[1], inst.outs[0]
    if not isinstance(source, Ap):
        return True
    return isinstance(out, Ap) and elements(source.ap[1:]) == 1 < elements(out.ap[1:])
