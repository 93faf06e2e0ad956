"""Every opcode that kernels need: what BIR means by it is what its bytes do, over random views.

Values and shapes come from seeds; `opcode_programs.Program.check` runs the printed program in the
interpreter and from the bytes of its NEFF, in order and interleaved, and compares bytes.
"""

from __future__ import annotations

import numpy as np
import pytest
from opcode_programs import Program

from ncc import numerics, passes
from ncc.errors import NccError
from ncc.interp.bir import run as meaning
from ncc.ir import act_tables
from ncc.ir.bir_keys import FUNCTIONS
from ncc.verify import Verifier

SEEDS = (0, *(pytest.param(n, marks=pytest.mark.sweep) for n in (1, 2, 3, 4)))
ROWS = (5, 32, 64, 128)
FLOAT = ("float32", "bfloat16", "float16", "float8e4", "float8e5")
INTEGER = ("int32", "uint32", "int16", "uint16", "int8", "uint8")
seeds = pytest.mark.parametrize("seed", SEEDS)


def start(seed: int, target: str = "trn2") -> tuple[Program, int]:
    made = Program(seed, target)
    return made, int(made.draw.choice(ROWS))


def pick(p: Program, words):
    return str(p.draw.choice(words))


def scalar(p: Program, rows: int, dtype: str = "float32") -> str:
    """A column or a number."""
    if p.draw.random() < 0.5:
        return p.column(rows, dtype)
    return f"{float(np.float32(p.draw.normal()))!r}:float32"


def count(p: Program) -> int:
    return int(p.draw.choice((1, 6, 24, 35, 60)))


# --- element by element ---------------------------------------------------------------------------

ARITH = ("add", "subtract", "mult", "divide", "max", "min", "is_gt", "is_le", "is_equal", "pow")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_shift_left", "arith_shift_right")


@seeds
@pytest.mark.parametrize("op", ARITH)
@pytest.mark.parametrize("engine", ["DVE", "Pool"])
def test_tensor_tensor(seed, op, engine):
    p, rows = start(seed)
    n = count(p)
    a, b = (p.tile(pick(p, FLOAT + INTEGER), rows, n, repeats=True) for _ in "ab")
    out = p.tile(pick(p, FLOAT + INTEGER), rows, n, out=True)
    p.inst(f"TensorTensor {engine} {out} <- {a} {b} op={op}")
    p.check()


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize(
    "op", ["add", "subtract", "mult", "max", "min", "is_gt", "is_equal", "is_le"]
)
def test_integers_are_exact_on_pool(dtype, op):
    p, rows = start(3)
    low = 0 if dtype == "uint32" else -(2**31)
    x = p.draw.integers(low, low + 2**32 - 1, (2, rows, 12)).astype(dtype)
    x[1, :, ::3] = x[0, :, ::3]
    a, b = (p.tile(dtype, rows, 12, data=one) for one in x)
    out = p.tile(dtype, rows, 12, out=True, plain=True)
    p.inst(f"TensorTensor Pool {out} <- {a} {b} op={op} integer=true")
    (got,) = p.check()
    f = {"add": np.add, "subtract": np.subtract, "mult": np.multiply, "max": np.maximum}
    f |= {"min": np.minimum, "is_gt": np.greater, "is_equal": np.equal, "is_le": np.less_equal}
    np.testing.assert_array_equal(got, f[op](x[0], x[1]).astype(dtype))


@seeds
@pytest.mark.parametrize("op", BITS)
def test_bits_of_two_tensors(seed, op):
    p, rows = start(seed)
    dtype, n = pick(p, INTEGER), count(p)
    a = p.tile(dtype, rows, n)
    b = p.tile(dtype, rows, n, data=p.draw.integers(0, 8, (rows, n)))
    out = p.tile(dtype, rows, n, out=True)
    p.inst(f"TensorTensor DVE {out} <- {a} {b} op={op}")
    p.check()


@seeds
@pytest.mark.parametrize("op", [*ARITH, "abs", "rsqrt"])
@pytest.mark.parametrize("opcode", ["TensorScalar", "TensorScalarPtr"])
def test_a_tensor_and_scalars(seed, op, opcode):
    p, rows = start(seed)
    n, second = count(p), pick(p, ("bypass", "add", "min", "is_ge"))
    x = p.tile(pick(p, FLOAT + INTEGER), rows, n, repeats=True)
    out = p.tile(pick(p, FLOAT + INTEGER), rows, n, out=True)
    keys = f"op0={op} reverse0={pick(p, ('true', 'false'))}"
    if second != "bypass":
        keys += f" op1={second} reverse1={pick(p, ('true', 'false'))}"
    if opcode == "TensorScalar":
        keys += " const0=1.75" + (" const1=-0.5" if second != "bypass" else "")
        p.inst(
            f"{opcode} DVE {out} <- {x} {' '.join(sorted(keys.split()))}".replace(
                "=false", "=false"
            )
        )
    else:
        ins = f"{scalar(p, rows)} {scalar(p, rows) if second != 'bypass' else ''}"
        p.inst(f"{opcode} DVE {out} <- {x} {ins} {' '.join(sorted(keys.split()))}")
    p.check()


@seeds
@pytest.mark.parametrize("op", BITS)
@pytest.mark.parametrize("pointed", [False, True])
def test_bits_of_a_tensor_and_scalars(seed, op, pointed):
    p, rows = start(seed)
    dtype, n = pick(p, INTEGER), count(p)
    x, out = p.tile(dtype, rows, n), p.tile(dtype, rows, n, out=True)
    if pointed:
        by = p.column(rows, dtype, p.draw.integers(0, 8, (rows, 1)))
        p.inst(f"TensorScalarPtr DVE {out} <- {x} {by} 3:int32 op0={op} op1=bitwise_xor")
    else:
        p.inst(f"TensorScalar DVE {out} <- {x} const0=5 const1=3 op0={op} op1=bitwise_or")
    p.check()


@seeds
@pytest.mark.parametrize(
    "ops", [("mult", "add"), ("subtract", "max"), ("subtract", "subtract"), ("is_gt", "mult")]
)
def test_scalar_tensor_tensor(seed, ops):
    p, rows = start(seed)
    n = count(p)
    a, b = p.tile(pick(p, FLOAT), rows, n, 2), p.tile(pick(p, FLOAT), rows, n, 2)
    s = scalar(p, rows, pick(p, FLOAT))
    out = p.tile(pick(p, FLOAT), rows, n, 2, out=True)
    keys = f"op0={ops[0]} op1={ops[1]} reverse0={pick(p, ('true', 'false'))} reverse1={pick(p, ('true', 'false'))}"
    p.inst(f"TensorScalarPtr DVE {out} <- {a} {s} {b} is_scalar_tensor_tensor=true {keys}")
    p.check()


@seeds
@pytest.mark.parametrize(
    "ops", [("mult", "add"), ("subtract", "max"), ("subtract", "subtract"), ("max", "min")]
)
def test_scan(seed, ops):
    p, rows = start(seed)
    n = count(p)
    a, b = p.tile(pick(p, FLOAT), rows, n, 2), p.tile(pick(p, FLOAT), rows, n, 2)
    s = scalar(p, rows, pick(p, FLOAT))
    out = p.tile("float32", rows, n, 2, out=True)
    swap = p.draw.integers(0, 2, 2)
    keys = f"op0={ops[0]} op1={ops[1]} reverse0={str(bool(swap[0])).lower()} reverse1={str(bool(swap[1])).lower()}"
    p.inst(f"TensorScalarPtr DVE {out} <- {a} {b} {s} is_tensor_tensor_scan=true {keys}")
    p.check()


def test_scan_by_its_definition():
    p = Program(1)
    x, y, s = (p.draw.normal(size=(8, n)).astype(np.float32) for n in (9, 9, 1))
    a, b, c = p.tile("float32", 8, 9, data=x), p.tile("float32", 8, 9, data=y), p.column(8, data=s)
    out = p.tile("float32", 8, 9, out=True, plain=True)
    p.inst(
        f"TensorScalarPtr DVE {out} <- {a} {b} {c} is_tensor_tensor_scan=true op0=subtract op1=max"
    )
    (got,) = p.check()
    r, want = s[:, 0], []
    for i in range(9):
        r = np.maximum(x[:, i] - r, y[:, i])
        want.append(r)
    np.testing.assert_array_equal(got, np.stack(want, 1))


@seeds
@pytest.mark.parametrize("mode", ["Reduce", "Cumulative"])
@pytest.mark.parametrize("op", ["add", "subtract", "mult", "max", "min"])
def test_cached_folds(seed, mode, op):
    p, rows = start(seed)
    n = count(p)
    x, more = p.tile(pick(p, FLOAT), rows, n), p.tile(pick(p, FLOAT), rows, 10)
    out, second = p.tile(pick(p, FLOAT), rows, n, out=True), p.tile("float32", rows, 10, out=True)
    sums = [p.tile(pick(p, ("float32", "bfloat16")), rows, 1, out=True) for _ in range(2)]
    first = pick(p, ("ZeroAccumulate", "LoadAccumulate"))
    seed_ = scalar(p, rows) if first == "LoadAccumulate" else ""
    word = "" if mode == "Reduce" else f" mode={mode}"
    p.inst(
        f"TensorScalarCache DVE {out} <- {x} {scalar(p, rows)} {seed_} acc={first}{word} op0=mult op1={op}"
    )
    p.inst(
        f"TensorScalarCache DVE {second} <- {more} {scalar(p, rows)} acc=AddAccumulate{word} op0=add op1={op}"
    )
    p.inst(f"DveReadAccumulator DVE {sums[0]}")
    p.inst(f"DveReadAccumulator DVE {sums[1]} negated=true")
    p.check()


def test_a_cumulative_fold_by_its_definition():
    p = Program(2)
    x = p.draw.normal(size=(4, 6)).astype(np.float32)
    a, out = p.tile("float32", 4, 6, data=x), p.tile("float32", 4, 6, out=True, plain=True)
    p.inst(
        f"TensorScalarCache DVE {out} <- {a} 2.0:float32 acc=ZeroAccumulate mode=Cumulative op0=mult op1=subtract"
    )
    (got,) = p.check()
    r, want = np.zeros(4, np.float32), []
    for i in range(6):
        r = x[:, i] * np.float32(2) - r
        want.append(r)
    np.testing.assert_array_equal(got, np.stack(want, 1))


@seeds
def test_reciprocal_and_memset(seed):
    p, rows = start(seed)
    n = count(p)
    x, out = p.tile(pick(p, FLOAT), rows, n), p.tile(pick(p, FLOAT), rows, n, out=True)
    p.inst(f"Reciprocal DVE {out} <- {x}")
    dtype = pick(p, FLOAT + INTEGER)
    p.inst(f"Memset {pick(p, ('DVE', 'Pool'))} {p.tile(dtype, rows, n, out=True)} constant=77")
    p.check()


# --- activation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("func", [f for f in FUNCTIONS if f != "Unknown"])
def test_every_function_has_a_code_and_a_table(func):
    assert func in numerics.FUNCTIONS
    assert func in act_tables.WIRED or act_tables.sets_with(frozenset((func,)))
    p, rows = start(7)
    x = p.tile("float32", rows, 12, data=abs(p.draw.normal(size=(rows, 12))) + 0.01)
    out = p.tile(pick(p, ("float32", "bfloat16")), rows, 12, out=True)
    alpha = "alpha=0.25 " if func in ("Prelu", "Lrelu") else ""
    p.inst(f"Activation Activation {out} <- {x} {alpha}func={func}")
    p.check()


@seeds
@pytest.mark.parametrize("func", ["Exp", "Identity", "Copy", "Relu", "Prelu"])
def test_scales_biases_and_sums(seed, func):
    p, rows = start(seed)
    n = count(p)
    x, more = p.tile(pick(p, FLOAT), rows, n, 3), p.tile("float32", rows, 7)
    out, second = p.tile(pick(p, FLOAT), rows, n, 3, out=True), p.tile("float32", rows, 7, out=True)
    total = p.tile(pick(p, ("float32", "bfloat16")), rows, 1, out=True)
    bias = p.column(rows, pick(p, (*FLOAT, "int32")))
    tail = f"func={func}"
    p.inst(
        f"Activation Activation {out} <- {x} {bias} {p.column(rows)} acc=ZeroAccumulate alpha=0.5 {tail}"
    )
    p.inst(
        f"Activation Activation {second} <- {more} 0.5:float32 acc=AddAccumulate {tail} scale=-0.25"
    )
    p.inst(f"ActivationReadAccumulator Activation {total}")
    p.check()


def test_a_column_of_scales_by_its_definition():
    p = Program(4)
    x, s, b = (p.draw.normal(size=(16, n)).astype(np.float32) for n in (8, 1, 1))
    a, out = p.tile("float32", 16, 8, data=x), p.tile("float32", 16, 8, out=True, plain=True)
    total = p.tile("float32", 16, 1, out=True, plain=True)
    p.inst(
        f"Activation Activation {out} <- {a} {p.column(16, data=b)} {p.column(16, data=s)} acc=ZeroAccumulate func=Square"
    )
    p.inst(f"ActivationReadAccumulator Activation {total}")
    got, sums = p.check()
    arg = (x * s + b).astype(np.float64)
    np.testing.assert_array_equal(got, (arg * arg).astype(np.float32))
    np.testing.assert_allclose(sums[:, 0], (arg * arg).sum(1), rtol=1e-6)


def test_an_accumulator_may_be_cleared():
    p = Program(5)
    x, out, total = (
        p.tile("float32", 8, 4),
        p.tile("float32", 8, 4, out=True),
        p.tile("float32", 8, 1, out=True, plain=True),
    )
    p.inst(f"Activation Activation {out} <- {x} acc=ZeroAccumulate func=Relu")
    p.inst(f"Activation Activation {out} <- {x} acc=Zero func=Relu")
    p.inst(f"ActivationReadAccumulator Activation {total}")
    assert not p.check()[1].any()


# --- folds ----------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("op", ["add", "subtract", "mult", "max", "min", "logical_or"])
@pytest.mark.parametrize("axis", ["X", "XY", "XYZ", "XYZW"])
def test_tensor_reduce(seed, op, axis):
    p, rows = start(seed)
    depth = len(axis)
    nums = [int(x) for x in p.draw.integers(2, 5, max(depth, int(p.draw.integers(1, 5))))]
    steps, span = [], 1
    for num in reversed(nums):
        steps.append(span * int(p.draw.integers(1, 3)))
        span = steps[-1] * num
    shape = list(zip(reversed(steps), nums, strict=True))
    x = p.tile(pick(p, FLOAT + INTEGER), rows, int(np.prod(nums)), shape=shape)
    kept = int(np.prod(nums[: len(nums) - depth])) if len(nums) > depth else 1
    out = p.tile(pick(p, FLOAT), rows, kept, out=True)
    p.inst(f"TensorReduce DVE {out} <- {x} axis={axis} negate={pick(p, ('true', 'false'))} op={op}")
    p.check()


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_folds_of_bits(op, dtype):
    p, rows = start(1)
    x = p.tile(dtype, rows, 12, shape=[(4, 3), (1, 4)])
    p.inst(f"TensorReduce DVE {p.tile(dtype, rows, 3, out=True)} <- {x} op={op}")
    p.check()


@seeds
@pytest.mark.parametrize("axis", ["C", "XYZWC"])
@pytest.mark.parametrize(
    "op", ["add", "average", "max", "bitwise_or", "bitwise_and", "bitwise_xor"]
)
def test_folds_over_partitions(seed, axis, op):
    p, rows = start(seed)
    n, bits = count(p), op.startswith("bit")
    dtype = pick(p, ("int32", "uint16") if bits else FLOAT)
    x = p.tile(dtype, rows, n)
    out = p.tile(dtype if bits else pick(p, FLOAT), 1, n if axis == "C" else 1, out=True)
    p.inst(f"TensorReduce Pool {out} <- {x} axis={axis} op={op}")
    p.check()


@seeds
@pytest.mark.parametrize("func", ["Max", "Avg"])
def test_pool(seed, func):
    p, rows = start(seed)
    x = p.tile(pick(p, FLOAT), rows, 72, shape=[(24, 3), (6, 4), (12, 2), (1, 3)])
    word = "" if func == "Max" else " func=Avg"
    p.inst(
        f"Pool {pick(p, ('DVE', 'Pool'))} {p.tile(pick(p, FLOAT), rows, 12, out=True)} <- {x}{word}"
    )
    p.check()


@seeds
def test_statistics(seed):
    p, rows = start(seed)
    records = p.tile("float32", rows, 12, out=True, plain=True)
    name, pattern = records.split(":float32")
    width = int(pattern[2:].split(",")[0])
    for half, n in enumerate((13, 40)):
        x = p.tile(pick(p, FLOAT), rows, n)
        at = "" if not half else "+6"
        p.inst(f"BNStats DVE {name}:float32[[{width},{rows}],[1,6]]{at} <- {x}")
    p.inst(f"BNStatsAggregate DVE {p.tile(pick(p, FLOAT), rows, 2, 2, out=True)} <- {records}")
    p.check()


# --- by place and by predicate ---------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "bfloat16"])
def test_iota(seed, dtype):
    p, rows = start(seed)
    n = count(p)
    half = next(d for d in (3, 5, 2, 1) if n % d == 0)
    out = p.tile(dtype, rows, n, out=True)
    p.inst(f"Iota Pool {out} base=-7 channel_multiplier=3 pattern=((-20,{half}),(2,{n // half}))")
    p.check()


@seeds
@pytest.mark.parametrize("op", ["is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le"])
def test_affine_select(seed, op):
    p, rows = start(seed)
    dtype = pick(p, FLOAT + INTEGER)
    to = dtype if p.draw.random() < 0.5 else pick(p, FLOAT)
    x, out = p.tile(dtype, rows, 24, 2), p.tile(to, rows, 24, 2, out=True)
    keys = f"base=4 channel_multiplier=1 compare_op={op} fill_value=-2.5 pattern=((2,4),(-1,6))"
    p.inst(f"TensorScalarAffineSelect Pool {out} <- {x} {keys}")
    p.check()


@seeds
@pytest.mark.parametrize("ops", [("is_ge", "is_lt"), ("is_equal", "is_le"), ("is_gt", "is_gt")])
def test_range_select(seed, ops):
    p, rows = start(seed)
    n = count(p)
    x, out = p.tile(pick(p, FLOAT[:3]), rows, n, 2), p.tile("float32", rows, n, 2, out=True)
    low = p.column(rows, data=p.draw.integers(0, 9, (rows, 1)))
    keys = f"compare_op0={ops[0]} compare_op1={ops[1]} fill_value=-3.4028234663852886e+38"
    p.inst(
        f"RangeSelect DVE {out} <- {x} {low} 20.0:float32 base=3 {keys} reduce_cmd=ZeroAccumulate reduce_op=max"
    )
    p.inst(
        f"RangeSelect DVE {out} <- {x} 0.0:float32 {low} {keys} reduce_cmd=AddAccumulate reduce_op=max"
    )
    p.inst(f"DveReadAccumulator DVE {p.tile('float32', rows, 1, out=True)}")
    p.check()


def mask(p: Program, rows: int, n: int, pairs: int = 3) -> str:
    bits = p.draw.integers(0, 2, (rows, n)) * p.draw.integers(1, 100, (rows, n))
    return p.tile(pick(p, INTEGER), rows, n, pairs, data=bits)


@seeds
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_predicated_copies(seed, dtype):
    p, rows = start(seed)
    n = count(p) + 1
    choose = mask(p, rows, n)
    p.inst(
        f"CopyPredicated DVE {p.tile(dtype, rows, n, out=True)} <- {choose} {p.tile(dtype, rows, n)}"
    )
    wide = p.tile("float32", rows, n, out=True)
    p.inst(f"CopyPredicated DVE {wide} <- {choose} {p.tile(dtype, rows, n)}")
    for way in ("true", "false"):
        one = p.column(rows, dtype)
        p.inst(
            f"CopyPredicated DVE {p.tile(dtype, rows, n, out=True)} <- {choose} {one} reverse_pred={way}"
        )
        value = "3:int32" if "int" in dtype else "-2.5:float32"
        p.inst(
            f"CopyPredicated DVE {p.tile(dtype, rows, n, out=True)} <- {choose} {value} reverse_pred={way}"
        )
    p.check()


@seeds
@pytest.mark.parametrize("way", ["true", "false"])
def test_select_reduce(seed, way):
    p, rows = start(seed)
    n = count(p)
    choose, x = mask(p, rows, n, 2), p.tile(pick(p, FLOAT[:3]), rows, n, 2)
    for command in ("ZeroAccumulate", "AddAccumulate", "Idle"):
        out = p.tile(pick(p, FLOAT), rows, n, 2, out=True)
        keys = f"accumulator_cmd={command} reduce_op=max reverse_pred={way}"
        p.inst(f"CopyPredicated DVE {out} <- {choose} {x} {scalar(p, rows)} {keys}")
    p.inst(f"DveReadAccumulator DVE {p.tile('float32', rows, 1, out=True)}")
    p.check()


@seeds
def test_select(seed):
    p, rows = start(seed)
    n = count(p)
    choose = mask(p, rows, n)
    a, b = p.tile(pick(p, FLOAT), rows, n), p.tile(pick(p, FLOAT), rows, n)
    p.inst(f"Select DVE {p.tile(pick(p, FLOAT), rows, n, out=True)} <- {choose} {a} {b}")
    p.inst(f"Select DVE {p.tile('bfloat16', rows, n, out=True)} <- {choose} {a} -1.5:float32")
    p.inst(f"Select DVE {p.tile('float32', rows, n, out=True)} <- {choose} 7.0:float32 {b}")
    p.check()


# --- quadrants and searches -------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("rows", [32, 128, 20])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_shuffle(seed, rows, dtype):
    p = Program(seed)
    lanes = p.draw.integers(0, min(rows, 32), 32)
    lanes[p.draw.random(32) < 0.2] = 255
    x, out = p.tile(dtype, rows, 12), p.tile(dtype, rows, 12, out=True)
    p.inst(f"StreamShuffle DVE {out} <- {x} mask=({','.join(map(str, lanes))})")
    p.check()


def test_one_row_goes_to_all():
    p = Program(1)
    row = p.draw.normal(size=(1, 6)).astype(np.float32)
    x, out = p.tile("float32", 1, 6, data=row), p.tile("float32", 32, 6, out=True, plain=True)
    p.inst(f"StreamShuffle DVE {out} <- {x} mask=({','.join('0' * 32)})")
    (got,) = p.check()
    np.testing.assert_array_equal(got, np.repeat(row, 32, 0))


@seeds
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_stream_transpose(seed, dtype):
    p = Program(seed)
    rows = int(p.draw.choice((32, 64, 128)))
    x, out = p.tile(dtype, rows, 96, 2), p.tile(dtype, rows, 96, 2, out=True)
    p.inst(f"StreamTranspose DVE {out} <- {x}")
    p.check()


@seeds
def test_searches(seed):
    p, rows = start(seed)
    n = int(p.draw.integers(8, 40))
    x = p.draw.integers(-6, 7, (rows, n)).astype(np.float32)
    data = p.tile(pick(p, FLOAT[:3]), rows, n, 2, data=x)
    best = p.tile("float32", rows, 8, 1, out=True)
    p.inst(f"Max DVE {best} <- {data}")
    for dtype in ("uint16", "uint32"):
        p.inst(f"MaxIndex DVE {p.tile(dtype, rows, 8, 1, out=True)} <- {data} {best}")
    p.inst(
        f"MatchReplace DVE {p.tile('float32', rows, n, 2, out=True)} <- {data} {best} imm_value=-99.0"
    )
    both = f"{p.tile('bfloat16', rows, n, 2, out=True)} {p.tile('uint32', rows, 8, 1, out=True)}"
    p.inst(f"MaxIndexAndMatchReplace DVE {both} <- {data} {best} imm_value=-9.5")
    p.check()


def test_equal_values_have_successive_places():
    p = Program(3)
    x = np.array([[5, 1, 5, 2, 5, 0, 5, 3, 4, 5]], np.float32)
    v = np.array([[5, 5, 5, 9, 1, 5, 2, 2]], np.float32)
    data, values = p.tile("float32", 1, 10, data=x), p.tile("float32", 1, 8, plain=True, data=v)
    up, down = (p.tile("uint32", 1, 8, out=True, plain=True) for _ in range(2))
    p.inst(f"MaxIndex DVE {up} <- {data} {values}")
    p.inst(
        f"MaxIndexAndMatchReplace DVE {p.tile('float32', 1, 10, out=True)} {down} <- {data} {values}"
    )
    got = p.check()
    none = 2**32 - 1
    assert got[0].tolist() == [[0, 2, 4, none, 1, 6, 3, none]]
    assert got[1].tolist() == [[6, 4, 2, none, 1, 0, none, 3]]


# --- Pool's cores -----------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("each", [1, 2, 8])
def test_indirect_copy(seed, each):
    p = Program(seed)
    rows, columns, width = int(p.draw.choice((16, 32, 128))), 3, 40
    dtype = pick(p, ("float32", "bfloat16", "uint8"))
    valid = int(p.draw.choice((0, 48, 20)))
    index = p.draw.integers(0, width - each, (rows, columns), endpoint=True)
    x = p.tile(dtype, rows, width, plain=True)
    i = p.tile("uint16", rows, columns, plain=True, data=index)
    out = p.tile(dtype, rows, (valid or 48) * each, 2, out=True)
    keys = f"num_elem_per_idx={each}" + (f" num_valid_indices={valid}" if valid else "")
    p.inst(f"IndirectCopy Pool {out} <- {x} {i} {keys}")
    p.check()


@seeds
def test_gather(seed):
    p, rows = start(seed)
    dtype = pick(p, ("float32", "bfloat16", "uint8"))
    index = p.draw.integers(0, 36, (rows, 15))
    x, i = p.tile(dtype, rows, 36), p.tile("uint32", rows, 15, data=index)
    p.inst(f"Gather Pool {p.tile(dtype, rows, 15, out=True)} <- {x} {i}")
    p.check()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_bounds_and_counts(dtype):
    p = Program(1)
    ids = np.array([[1, 1, 1, 2, 2, 3, 0, 0, 4]])
    x = p.tile(dtype, 1, 9, 1, data=ids)
    bounds = p.tile(dtype, 1, 18, out=True, plain=True)
    p.inst(f"GetSequenceBounds Pool {bounds} <- {x}")
    y = p.tile(dtype, 32, 7, 2, data=p.draw.integers(0, 3, (32, 7)))
    p.inst(
        f"NonzeroWithCount Pool {p.tile('int32', 32, 8, 2, out=True)} <- {y} index_offset=-3 padding_val=-9"
    )
    got = p.check()
    assert got[0].tolist() == [[0, 0, 0, 3, 3, 5, 9, 9, 8, 3, 3, 3, 5, 5, 6, -1, -1, 9]]


@seeds
def test_topk(seed):
    p = Program(seed)
    rows, n, k = int(p.draw.choice((16, 32))), 100, 10
    x = p.tile("bfloat16", rows, 7, 2)
    best, places = p.tile("bfloat16", rows, 2, out=True), p.tile("uint32", rows, 1, out=True)
    p.inst(
        f"CustomOp Pool {best} {places} <- {x} arguments=({n},{k}) is_builtin=true opFunctionName=topk"
    )
    p.check()


@pytest.mark.parametrize("engine", ["DVE", "Pool"])
def test_random_numbers_are_one_sequence(engine):
    p = Program(2)
    seed = p.tile("uint32", 1, 1, plain=True)
    p.inst(f"SetRandState {engine} <- {seed}")
    first = p.tile("uint32", 32, 11, out=True)
    p.inst(f"Rng {engine} {first}")
    p.inst(f"Memset {engine} {p.tile('uint8', 16, 5, out=True)} mode=Random")
    p.inst(f"Rng {engine} {p.tile('float32', 32, 6, out=True)}")
    x = p.tile("bfloat16", 32, 20)
    p.inst(f"Dropout {engine} {p.tile('bfloat16', 32, 20, out=True)} <- {x} 0.4:float32")
    keep = p.column(32, data=p.draw.random((32, 1)))
    p.inst(
        f"Dropout {engine} {p.tile('bfloat16', 32, 20, out=True)} <- {x} {keep} is_keep_threshold=true"
    )
    state = p.tile("uint32", 32, 6, out=True, plain=True)
    p.inst(f"RandGetState {engine} {state}")
    p.inst(f"RandSetState {engine} <- {state}")
    p.inst(f"Rng {engine} {p.tile('int16', 32, 8, out=True)}")
    p.check()


# --- DMA ------------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int32"])
def test_rows_by_index(seed, skips, dtype):
    p, rows = start(seed)
    p.table("tab", dtype, 40, 12)
    p.table("put", dtype, 40, 12, out=True)
    low, high = (-3, 44) if skips else (0, 40)
    index = p.draw.integers(low, high, (rows, 1))
    i = p.tile(
        pick(p, ("int32", "uint32") if not skips else ("int32",)), rows, 1, plain=True, data=index
    )
    # columns 2 to 9 of a row
    word = "" if not skips else " oob_is_err=false"
    keys = f"index_limit=40 index_scale=12{word}"
    held = p.tile(dtype, rows, 8, 1, out=True)
    p.inst(f"IndirectLoad DMA {held} <- tab:{dtype}[[0,{rows}],[1,8]]+2 {i} {keys}")
    wide = p.tile("float32", rows, 3, 1, out=True)
    p.inst(f"IndirectLoad DMA {wide} <- tab:{dtype}[[0,{rows}],[4,3]] {i} {keys}")
    x = p.tile(dtype, rows, 6, 1)
    p.inst(f"IndirectSave DMA put:{dtype}[[0,{rows}],[2,6]]+1 <- {x} {i} {keys}")
    p.check()


@seeds
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_are_added_by_index(seed, dtype):
    p, rows = start(seed)
    p.table("put", dtype, 9, 6, out=True)
    index = p.draw.integers(0, 9, (rows, 1))
    i, x = p.tile("int32", rows, 1, plain=True, data=index), p.tile("float32", rows, 6, 1)
    p.inst(
        f"IndirectSaveAccumulate DMA put:{dtype}[[0,{rows}],[1,6]] <- {x} {i} index_limit=9 index_scale=6"
    )
    p.check()


@seeds
def test_a_dma_adds_to_its_destination(seed):
    p, rows = start(seed)
    p.table("put", "float32", rows, 12, out=True)
    x = p.tile("bfloat16", rows, 12, 2)
    full = f"put:float32[[12,{rows}],[1,12]]"
    p.inst(f"DMACopy DMA {full} <- {full} {x} cce_op=add mode=CCE")
    out = p.tile("float32", rows, 12, 1, out=True)
    p.inst(f"DMACopy DMA {out} <- {out} {full} cce_op=add mode=CCE")
    p.check()


@pytest.mark.parametrize(
    ("source", "to"), [("int32", "float32"), ("float32", "bfloat16"), ("bfloat16", "int16")]
)
def test_a_dma_that_indexes_converts(source, to):
    p = Program(5)
    p.table("tab", source, 10, 4)
    i = p.tile("int32", 16, 1, plain=True, data=p.draw.integers(0, 10, (16, 1)))
    p.inst(
        f"IndirectLoad DMA {p.tile(to, 16, 4, 1, out=True)} <- tab:{source}[[0,16],[1,4]] {i} index_limit=10 index_scale=4"
    )
    p.check()


def test_more_jumps_become_more_dmas():
    """legalize-sizes cuts a row that no descriptor walks; all pieces take the same index."""
    p = Program(6)
    p.table("tab", "bfloat16", 10, 40)
    i = p.tile("int32", 16, 1, plain=True, data=p.draw.integers(0, 10, (16, 1)))
    out = p.tile("bfloat16", 16, 24, out=True, shape=[(20, 3), (5, 4), (2, 2)])
    walk = "tab:bfloat16[[0,16],[13,3],[3,4],[2,2]]"
    p.inst(f"IndirectLoad DMA {out} <- {walk} {i} index_limit=10 index_scale=40")
    start = p.stage()
    module = passes.load("bir.legalize_sizes").apply(start.module, start.target)
    pieces = [x for x in module.main.blocks[0].insts if x.opcode == "IndirectLoad"]
    assert len(pieces) == 12 and len({x.name for x in pieces}) == 12
    whole, cut = (meaning(x, start.target, p.inputs) for x in (start.module, module))
    np.testing.assert_array_equal(whole[0].view(np.uint16), cut[0].view(np.uint16))


def test_an_index_outside_is_an_error():
    p = Program(5)
    p.table("tab", "float32", 10, 4)
    i = p.tile("int32", 8, 1, plain=True, data=np.full((8, 1), 10))
    p.inst(
        f"IndirectLoad DMA {p.tile('float32', 8, 4, 1, out=True)} <- tab:float32[[0,8],[1,4]] {i} index_limit=10 index_scale=4"
    )
    with pytest.raises(NccError, match="NCC432 i0: IndirectLoad takes row 10 of tab, which has 10"):
        p.check()


# --- PSUM, quadrants, in place ----------------------------------------------------------------------


@seeds
def test_operands_in_psum_and_at_quadrants(seed):
    p = Program(seed)
    x = p.tile("float32", 32, 24, 2, memory="PSUM", base=32)
    y = p.tile("float32", 32, 24, 2, base=64)
    out = p.tile("float32", 32, 24, 2, out=True, memory="PSUM", base=96)
    p.inst(f"TensorTensor DVE {out} <- {x} {y} op=add")
    s = p.column(32)
    p.inst(
        f"TensorScalarPtr DVE {p.tile('bfloat16', 32, 24, 2, out=True)} <- {x} {s} {y} is_scalar_tensor_tensor=true op0=mult op1=add"
    )
    p.inst(
        f"Activation Activation {p.tile('float32', 32, 24, out=True, memory='PSUM')} <- {x} func=Exp"
    )
    p.inst(f"Max DVE {p.tile('float32', 32, 8, 1, out=True)} <- {x}")
    p.inst(f"CopyPredicated DVE {out} <- {mask(p, 32, 24)} {x}")
    p.check()


@seeds
def test_in_place(seed):
    p, rows = start(seed)
    t = p.tile("float32", rows, 24, 2, out=True)
    p.inst(f"TensorScalarPtr DVE {t} <- {t} {scalar(p, rows)} op0=mult")
    p.inst(f"Activation Activation {t} <- {t} func=Tanh")
    p.inst(f"TensorTensor DVE {t} <- {t} {t} op=add")
    p.inst(
        f"TensorScalarCache DVE {t} <- {t} 0.5:float32 acc=ZeroAccumulate mode=Cumulative op0=add op1=add"
    )
    p.check()


# --- what is refused --------------------------------------------------------------------------------

F = "float32[[12,32],[1,12]]"
LINES = [
    (
        "TensorTensor DVE o:{f} <- a:{f} b:float32[[12,32],[1,6]] op=add",
        "NCC420 .*walks 32 partitions of 12 elements and 32 of 6",
    ),
    (
        "TensorTensor DVE o:{f} <- a:{f} b:{f} op=bitwise_and",
        "NCC413 .*works on the bits of float32",
    ),
    (
        "TensorTensor Pool o:{f} <- a:{f} b:{f} op=add integer=true",
        "NCC413 .*an integer operand of TensorTensor is float32",
    ),
    (
        "TensorTensor DVE o:{i} <- a:{i} b:{i} op=add integer=true",
        "NCC406 .*DVE has no integer unit",
    ),
    (
        "TensorScalarPtr DVE o:{f} <- a:{f} b:{f} op0=add",
        "NCC420 .*a column of 32 partitions of 12 elements beside 32",
    ),
    (
        "TensorScalarPtr DVE o:{f} <- a:{f} c:bfloat16[[2,32],[1,1]] op0=add",
        "NCC413 .*a column of float32, not bfloat16",
    ),
    (
        "TensorScalarPtr DVE o:{f} <- a:{f} c:{c} is_scalar_tensor_tensor=true op0=add op1=add",
        "NCC403 .*reads 2 operands and takes 3",
    ),
    (
        "TensorScalarPtr Pool o:{f} <- a:{f} c:{c} b:{f} is_scalar_tensor_tensor=true op0=add op1=add",
        "NCC406 .*DVE can",
    ),
    (
        "TensorScalarCache DVE o:{f} <- a:{f} c:{c} op0=add op1=add",
        "NCC427 .*acc=Idle; it may be ZeroAccumulate",
    ),
    (
        "TensorScalarCache DVE o:{f} <- a:{f} c:{c} acc=LoadAccumulate op0=add op1=add",
        "NCC403 .*2 operands under LoadAccumulate",
    ),
    (
        "TensorScalarCache DVE o:{f} <- a:{f} c:{c} acc=ZeroAccumulate op0=add op1=divide",
        "NCC427 .*op1=divide; it may be add",
    ),
    (
        "Activation Activation o:{f} <- a:{f} c:{c} c:{c} acc=LoadAccumulate func=Exp",
        "NCC427 .*acc=LoadAccumulate",
    ),
    ("DveReadAccumulator DVE o:{f}", "NCC420 .*12 elements where an accumulator takes 1"),
    ("TensorReduce DVE o:{f} <- a:{f} op=add", "NCC420 .*12 elements where the fold takes 1"),
    (
        "TensorReduce DVE o:float32[[12,1],[1,12]] <- a:{f} axis=C op=add",
        "NCC406 .*partitions are folded by Pool",
    ),
    ("TensorReduce Pool o:{f} <- a:{f} axis=C op=add", "NCC420 .*writes 1, not 32"),
    (
        "TensorReduce Pool o:float32[[12,1],[1,12]] <- a:{f} axis=C op=min",
        "NCC427 .*op=min; it may be add, average",
    ),
    ("BNStats DVE o:{f} <- a:{f}", "NCC420 .*a record of statistics takes 6"),
    (
        "BNStatsAggregate DVE o:float32[[12,32],[1,2]] <- a:float32[[12,32],[1,8]]",
        "NCC420 .*no groups of 3",
    ),
    ("Iota Pool o:{f} pattern=((1,5),)", "NCC420 .*12 elements where the pattern takes 5"),
    (
        "TensorScalarAffineSelect Pool o:{f} <- a:{f} compare_op=add pattern=((1,12),)",
        "NCC427 .*compare_op=add; it may be is_equal",
    ),
    (
        "RangeSelect DVE o:{f} <- a:{f} c:{c} c:{c} compare_op0=is_ge compare_op1=is_lt",
        "NCC427 .*fills with 0.0; -3.4028234663852886e\\+38 alone",
    ),
    ("CopyPredicated DVE o:{f} <- a:{f} b:{f}", "NCC413 .*chooses by float32"),
    (
        "CopyPredicated DVE o:{f} <- a:{i} b:{f} reverse_pred=true",
        "NCC427 .*where its predicate is zero .compare the predicate",
    ),
    ("StreamShuffle DVE o:{f} <- a:{f} mask=(0,1,2)", "NCC427 .*a mask of 3 lanes"),
    (
        "StreamShuffle DVE o:{f} <- a:float32[[12,4],[1,12]] mask=({m})",
        "NCC420 .*takes partition 31 of a source that has 4",
    ),
    ("StreamTranspose DVE o:{f} <- a:{f}", "NCC420 .*no blocks of 32 by 32"),
    ("Max DVE o:{f} <- a:{f}", "NCC420 .*the largest takes 8"),
    (
        "MaxIndex DVE o:float32[[12,32],[1,8]] <- a:{f} b:float32[[12,32],[1,8]]",
        "NCC413 .*the result of MaxIndex is float32",
    ),
    ("IndirectCopy Pool o:{f} <- a:{f} b:{i}", "NCC413 .*the index of IndirectCopy is int32"),
    ("Gather Pool o:{f} <- a:{f} b:{i}", "NCC413 .*the index of Gather is int32"),
    ("NonzeroWithCount Pool o:{i} <- a:{i}", "NCC420 .*places and their number takes 13"),
    (
        "IndirectLoad DMA o:{f} <- x:float32[[12,32],[1,12]] b:int32[[12,32],[1,1]] index_limit=32 index_scale=12",
        "NCC408 .*step 0",
    ),
    (
        "IndirectLoad DMA o:{f} <- x:float32[[0,32],[1,12]] b:int32[[12,32],[1,1]]",
        "NCC427 .*index_limit is 0",
    ),
    ("Reciprocal DVE o:{f} <- x:{f}", "NCC407 .*in DRAM"),
    ("Iota DVE o:{f} pattern=((1,12),)", "NCC406 .*DVE cannot run Iota; Pool can"),
]


def small(line: str, arch: str = "gen3") -> str:
    words = {
        "f": F,
        "i": F.replace("float32", "int32"),
        "c": "float32[[1,32],[1,1]]",
        "m": ",".join(map(str, range(32))),
    }
    sets = "".join(
        f"    set {n} float32 (32,{w}) memory=SB\n      loc {n} SB (32,{4 * w}) addr={64 * k} allocated=true\n".replace(
            " addr=0", ""
        )
        for k, (n, w) in enumerate((("a", 12), ("b", 12), ("o", 12), ("c", 1)))
    )
    return (
        f"module m {arch}\n  func sg0000\n    set x float32 (32,12) kind=ExternalInput\n"
        f"      loc x DRAM (1,1536) allocated=true\n{sets}    block Block1\n      i0 = {line.format(**words)}\n"
    )


@pytest.mark.parametrize(("line", "said"), LINES)
def test_what_is_wrong_is_named(line, said):
    from ncc.ir.bir_reader import Reader
    from ncc.stages import Stage
    from ncc.target import TARGETS

    module = Reader(small(line), "", 1).module()
    with pytest.raises(NccError, match=said):
        Verifier().check(Stage("bir", TARGETS["trn2"], "input", (), module))


@pytest.mark.parametrize(
    "line",
    [
        "TensorScalarPtr DVE o:{f} <- a:{f} b:{f} c:{c} is_tensor_tensor_scan=true op0=mult op1=add",
        "TensorScalarCache DVE o:{f} <- a:{f} c:{c} acc=ZeroAccumulate mode=Cumulative op0=mult op1=add",
        "CopyPredicated DVE o:{f} <- a:{i} 1.0:float32",
        "CopyPredicated DVE o:{f} <- a:{i} b:{f} c:{c}",
    ],
)
def test_trn1_lacks_what_came_with_trn2(line):
    from ncc.ir.bir_reader import Reader
    from ncc.stages import Stage
    from ncc.target import TARGETS

    module = Reader(small(line, "sunda"), "", 1).module()
    with pytest.raises(NccError, match=r"NCC436 .*does not exist on trn1"):
        Verifier().check(Stage("bir", TARGETS["trn1"], "input", (), module))


def test_what_chooses_must_be_written():
    text = small("CopyPredicated DVE o:{f} <- a:{i} b:{f}")
    from ncc.ir.bir_reader import Reader
    from ncc.target import TARGETS

    with pytest.raises(NccError, match=r"NCC430 .*chooses by bytes that nothing wrote"):
        meaning(Reader(text, "", 1).module(), TARGETS["trn2"], [np.zeros((32, 12), np.float32)])
