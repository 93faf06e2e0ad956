"""Each instruction on the machine against its definition in plain numpy, written here again."""

from __future__ import annotations

import math

import attrs
import machine_programs as m
import ml_dtypes
import numpy as np
import pytest
from machine_programs import record

from ncc.encode.codes import ACT_FUNC, ALU, DTYPE, group
from ncc.encode.values import f32_bits, word_of
from ncc.errors import NccError
from ncc.ir.data import numpy_type, size_of
from ncc.ir.isa import Dram, Var
from ncc.sim.run import run_isa, run_report
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
F32 = DTYPE["float32"]
RNG = np.random.default_rng


def run_on(engine, bundles, inputs, out, *, target=TRN2, unwritten=(), seed=None):
    """Runs bundles of one engine on arrays laid out in SBUF.

    inputs: (dtype, array [P, F], byte) each, at partition 0; out: (dtype, P, F, byte), of the SBUF
    bytes that come back. Everything is loaded before and stored after.
    """
    variables, sp = [], []
    for i, (dtype, array, byte) in enumerate(inputs):
        rows, run = array.shape[0], array.shape[1] * size_of(dtype)
        variables.append(Var(f"x{i}", i + 1, "input", dtype, array.shape))
        sp.append(m.load(m.SP, Dram(i + 1, 0), m.chip(0, byte), rows, run, dtype, run))
    dtype, rows, count, byte = out
    variables.append(Var("y", len(inputs) + 1, "output", dtype, (rows, count)))
    run = count * size_of(dtype)
    done = (engine, sum(b.band.update == (m.INC, engine) for b in bundles) + 1)
    sp.append(m.save(m.SP, m.chip(0, byte), Dram(len(inputs) + 1, 0), rows, run, dtype, run, done))
    sp.append(m.leave((12, 16 * len(sp))))
    stream = [
        record("EventSemaphore", m.wait(12, 16 * len(inputs))),
        *bundles,
        record("Nop", m.band(None, engine)),
        m.leave(),
    ]
    neff = target.neff
    program = m.program({engine: stream, m.SP: sp}, variables, neff=neff)
    return run_isa(program, target, [a for _, a, _ in inputs], seed=seed)[0]


def values(dtype, rows, count, seed=0):
    draw = RNG(seed)
    if "int" in dtype:
        low = 0 if dtype[0] == "u" else -100
        return draw.integers(low, 100, (rows, count)).astype(numpy_type(dtype))
    return draw.normal(size=(rows, count)).astype(numpy_type(dtype))


def wide(x):
    return np.asarray(x).astype(np.float32)


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8e5", "int8", "uint16", "int32"])
@pytest.mark.parametrize("engine", [m.DVE, m.ACT, m.POOL])
def test_copy_moves_bits_through_any_pattern(dtype, engine):
    size = size_of(dtype)
    raw = RNG(1).integers(0, 256, (64, 120 * size)).astype(np.uint8)
    x = raw.view(numpy_type(dtype))
    at = m.chip(0, 64 + 9 * size, (-3, 4), (20, 5), (2, 2))  # three axes, one backwards
    copy = record(
        "Copy",
        src=at,
        dst=m.chip(0, 4096, (1, 40)),
        in_dtype=DTYPE[dtype],
        out_dtype=DTYPE[dtype],
        nchan=64,
    )
    got = run_on(engine, [copy], [(dtype, x, 64)], (dtype, 64, 40, 4096))
    at_ = [9 - 3 * i + 20 * j + 2 * k for k in range(2) for j in range(5) for i in range(4)]
    np.testing.assert_array_equal(
        got.view(np.uint8), np.ascontiguousarray(x[:, at_]).view(np.uint8)
    )


@pytest.mark.parametrize(
    "source, to",
    [
        ("float32", "bfloat16"),
        ("bfloat16", "float32"),
        ("float32", "int8"),
        ("int32", "float16"),
        ("float16", "float8e4"),
        ("uint8", "int16"),
        ("float32", "uint8"),
    ],
)
def test_cast(source, to):
    x = values(source, 32, 24) * (50 if source == "float32" else 1)
    x = x.astype(numpy_type(source))
    cast = record(
        "Cast",
        src=m.chip(0, 0, (1, 24)),
        dst=m.chip(0, 512, (2, 24)),
        in_dtype=DTYPE[source],
        out_dtype=DTYPE[to],
        nchan=32,
    )
    fill = record("Memset", dst=m.chip(0, 512, (1, 48)), out_dtype=DTYPE[to], nchan=32, count=48)
    got = run_on(m.DVE, [fill, cast], [(source, x, 0)], (to, 32, 48, 512))
    want = wide(x)
    if "int" in to:
        info = np.iinfo(to)
        want = np.clip(np.rint(want), info.min, info.max)
    np.testing.assert_array_equal(wide(got[:, ::2]), wide(want.astype(numpy_type(to))))
    assert not wide(got[:, 1::2]).any()


def test_reciprocal_and_memset():
    x = values("float32", 16, 8)
    one = record(
        "Reciprocal",
        src=m.chip(0, 0, (1, 8)),
        dst=m.chip(0, 64, (1, 8)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=16,
    )
    got = run_on(m.DVE, [one], [("float32", x, 0)], ("float32", 16, 8, 64))
    np.testing.assert_array_equal(got, np.float32(1) / x)
    fill = record(
        "Memset",
        dst=m.chip(0, 0, (1, 8)),
        out_dtype=DTYPE["bfloat16"],
        nchan=128,
        count=8,
        set_value=int(np.float32(2.5).astype(ml_dtypes.bfloat16).view(np.uint16)),
    )
    got = run_on(m.POOL, [fill], [], ("bfloat16", 128, 8, 0))
    np.testing.assert_array_equal(wide(got), 2.5)


# --- arithmetic -----------------------------------------------------------------------------------

PLAIN = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "mult": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "max": lambda a, b: np.where(a > b, a, b),
    "min": lambda a, b: np.where(a < b, a, b),
    "is_gt": lambda a, b: (a > b).astype(np.float32),
    "is_le": lambda a, b: (a <= b).astype(np.float32),
    "logical_and": lambda a, b: ((a != 0) & (b != 0)).astype(np.float32),
    "abs_diff": lambda a, b: np.abs(a - b),
    "bypass": lambda a, b: a,
}


@pytest.mark.parametrize("op", sorted(PLAIN))
@pytest.mark.parametrize(
    "dtypes", [("float32", "bfloat16", "float32"), ("bfloat16", "float8e4", "bfloat16")]
)
def test_tensor_tensor(op, dtypes):
    one, two, out = dtypes
    a, b = values(one, 96, 30, 1), values(two, 96, 30, 2)
    a[0, 0], b[1, 1] = np.nan, np.nan
    b[b == 0] = 1
    add = record(
        "TensorTensor",
        src0=m.chip(0, 0, (1, 30)),
        src1=m.chip(0, 256, (1, 6), (6, 5)),
        dst=m.chip(0, 512, (1, 30)),
        src0_dtype=DTYPE[one],
        src1_dtype=DTYPE[two],
        out_dtype=DTYPE[out],
        op=ALU[op],
        nchan=96,
    )
    got = run_on(m.DVE, [add], [(one, a, 0), (two, b, 256)], (out, 96, 30, 512))
    with np.errstate(all="ignore"):
        want = np.asarray(PLAIN[op](wide(a), wide(b)), np.float32).astype(numpy_type(out))
    np.testing.assert_array_equal(wide(got), wide(want))


def test_tensor_tensor_of_integers_is_exact():
    a = np.array([[2**24 + 1, -7, 2**31 - 1]], np.int32)
    b = np.array([[2, 9, 1]], np.int32)
    for name, plain in (
        ("add_int", np.add),
        ("mult_int", np.multiply),
        ("subtract_int", np.subtract),
    ):
        op = record(
            "TensorTensor",
            src0=m.chip(0, 0, (1, 3)),
            src1=m.chip(0, 64, (1, 3)),
            dst=m.chip(0, 128, (1, 3)),
            src0_dtype=8,
            src1_dtype=8,
            out_dtype=8,
            op=ALU[name],
            nchan=1,
        )
        got = run_on(m.POOL, [op], [("int32", a, 0), ("int32", b, 64)], ("int32", 1, 3, 128))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, plain(a, b))


@pytest.mark.parametrize(
    "op, plain",
    [
        ("bitwise_and", lambda a, b: a & b),
        ("bitwise_xor", lambda a, b: a ^ b),
        ("logical_shift_left", lambda a, b: a << b),
        ("arith_shift_right", lambda a, b: a >> b),
        ("logical_shift_right", lambda a, b: (a.view(np.uint32) >> b.view(np.uint32)).view("i4")),
        ("bitwise_not", lambda a, b: ~a),
    ],
)
def test_bits(op, plain):
    a = RNG(4).integers(-(2**31), 2**31, (8, 9)).astype(np.int32)
    b = RNG(5).integers(0, 31, (8, 9)).astype(np.int32)
    both = record(
        "TensorTensorBitvec",
        src0=m.chip(0, 0, (1, 9)),
        src1=m.chip(0, 64, (1, 9)),
        dst=m.chip(0, 128, (1, 9)),
        src0_dtype=8,
        src1_dtype=8,
        out_dtype=8,
        op=ALU[op],
        nchan=8,
    )
    got = run_on(m.DVE, [both], [("int32", a, 0), ("int32", b, 64)], ("int32", 8, 9, 128))
    np.testing.assert_array_equal(got, plain(a, b))
    one = record(
        "TensorScalarBitvec",
        src=m.chip(0, 0, (1, 9)),
        dst=m.chip(0, 128, (1, 9)),
        in_dtype=8,
        out_dtype=8,
        op0=ALU[op],
        imm0=5,
        nchan=8,
    )
    got = run_on(m.DVE, [one], [("int32", a, 0)], ("int32", 8, 9, 128))
    np.testing.assert_array_equal(got, plain(a, np.full_like(a, 5)))


@pytest.mark.parametrize("reverse", range(4))
def test_tensor_scalar_with_a_pointer_and_an_immediate(reverse):
    x, s = values("bfloat16", 64, 12), values("float32", 64, 1, 3)
    two = record(
        "TensorScalar",
        src=m.chip(0, 0, (1, 12)),
        dst=m.chip(0, 128, (1, 12)),
        in_dtype=6,
        out_dtype=F32,
        op0=ALU["subtract"],
        op1=ALU["divide"],
        imm0=word_of(m.chip(0, 64)),
        imm0_src=1,
        imm1=f32_bits(-3.0),
        reverse=reverse,
        nchan=64,
    )
    got = run_on(m.DVE, [two], [("bfloat16", x, 0), ("float32", s, 64)], ("float32", 64, 12, 128))
    t = s - wide(x) if reverse & 1 else wide(x) - s
    want = np.float32(-3) / t if reverse & 2 else t / np.float32(-3)
    np.testing.assert_array_equal(got, want)


def test_scalar_tensor_tensor_and_scan():
    a, b = values("float32", 32, 10, 1), values("bfloat16", 32, 10, 2)
    s = values("float32", 32, 1, 3)
    fields = {
        "src0": m.chip(0, 0, (1, 10)),
        "src1": m.chip(0, 64, (1, 10)),
        "dst": m.chip(0, 128, (1, 10)),
        "src0_dtype": F32,
        "src1_dtype": 6,
        "out_dtype": F32,
        "op0": ALU["mult"],
        "op1": ALU["add"],
        "nchan": 32,
        "imm0": word_of(m.chip(0, 96)),
        "imm0_src": 1,
        "imm0_dtype": F32,
    }
    given = [("float32", a, 0), ("bfloat16", b, 64), ("float32", s, 96)]
    out = ("float32", 32, 10, 128)
    got = run_on(m.DVE, [record("ScalarTensorTensor", **fields)], given, out)
    np.testing.assert_array_equal(got, a * s + wide(b))
    got = run_on(m.DVE, [record("TensorTensorScan", **fields)], given, out)
    carried, want = s[:, 0], []
    for i in range(10):
        carried = carried * a[:, i] + wide(b)[:, i]
        want.append(carried)
    np.testing.assert_array_equal(got, np.stack(want, axis=1))


@pytest.mark.parametrize("op, axes", [("max", 2), ("add", 2), ("add", 3), ("min", 4), ("mult", 2)])
def test_tensor_reduce(op, axes):
    x = values("bfloat16", 16, 60, 6)
    dims = ((1, 5), (5, 4), (20, 3))
    kept = [60 // math.prod(n for _, n in dims[: axes - 1])][0]
    fold = record(
        "TensorReduce",
        src=m.chip(0, 0, *dims),
        dst=m.chip(0, 256, (1, kept)),
        in_dtype=6,
        out_dtype=F32,
        op=ALU[op],
        op_dim=axes,
        negated=1,
        nchan=16,
    )
    got = run_on(m.DVE, [fold], [("bfloat16", x, 0)], ("float32", 16, kept, 256))
    grouped = x.astype(np.float64).reshape(16, kept, -1)
    plain = {"max": np.max, "min": np.min, "add": np.sum, "mult": np.prod}[op]
    np.testing.assert_array_equal(got, -plain(grouped, axis=2).astype(np.float32))


def test_reduce_of_columns_walks_a_stride():
    x = values("float32", 8, 12, 6)
    fold = record(
        "TensorReduce",
        src=m.chip(0, 0, (4, 3), (1, 4)),
        dst=m.chip(0, 256, (1, 4)),
        in_dtype=F32,
        out_dtype=F32,
        op=ALU["max"],
        op_dim=2,
        nchan=8,
    )
    got = run_on(m.DVE, [fold], [("float32", x, 0)], ("float32", 8, 4, 256))
    np.testing.assert_array_equal(got, x.reshape(8, 3, 4).max(axis=1))


def test_cache_reduce_and_its_accumulator():
    x = values("float32", 32, 16, 6)
    step = {
        "src": m.chip(0, 0, (1, 16)),
        "dst": m.chip(0, 64, (1, 16)),
        "in_dtype": F32,
        "out_dtype": F32,
        "op0": ALU["mult"],
        "op1": ALU["max"],
        "imm0": f32_bits(0.5),
        "nchan": 32,
    }
    drain = record(
        "DveReadAccumulator",
        dst=m.chip(0, 160, (1, 1)),
        out_dtype=F32,
        negated=1,
        nchan=32,
        count=1,
    )
    first = record("TensorScalarCacheReduce", accumulator_cmd=3, **step)
    more = record("TensorScalarCacheReduce", accumulator_cmd=2, **{**step, "imm0": f32_bits(-2.0)})
    got = run_on(m.DVE, [first, more, drain], [("float32", x, 0)], ("float32", 32, 1, 160))
    want = np.maximum((x * np.float32(0.5)).max(1), (x * np.float32(-2)).max(1))
    np.testing.assert_array_equal(got[:, 0], -want)
    running = record("TensorScalarCacheCumulative", accumulator_cmd=3, **step)
    got = run_on(m.DVE, [running], [("float32", x, 0)], ("float32", 32, 16, 64))
    np.testing.assert_array_equal(got, np.maximum.accumulate(x * np.float32(0.5), axis=1))


def test_cross_lane_and_pool():
    x = values("float32", 64, 6, 6)
    fields = {"src": m.chip(0, 0, (1, 6)), "in_dtype": F32, "out_dtype": F32, "nchan": 64}
    lanes = record(
        "CrossLaneReduce", dst=m.chip(0, 64, (1, 6)), reduce_op=2, reduce_axis=1, **fields
    )
    got = run_on(m.POOL, [lanes], [("float32", x, 0)], ("float32", 1, 6, 64))
    np.testing.assert_array_equal(got[0], x.max(axis=0))
    average = record(
        "Pool",
        src=m.chip(0, 0, (1, 2), (2, 3)),
        dst=m.chip(0, 64, (1, 3)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=64,
        pool_func=2,
        pool_dim=2,
        scale=f32_bits(0.5),
    )
    got = run_on(m.POOL, [average], [("float32", x, 0)], ("float32", 64, 3, 64))
    np.testing.assert_array_equal(
        got, x.astype(np.float64).reshape(64, 3, 2).sum(2).astype(np.float32) / 2
    )


# --- the Activation engine ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "func, table, plain",
    [
        ("Exp", 0, np.exp),
        ("Tanh", 0, np.tanh),
        ("Sigmoid", 2, lambda x: 1 / (1 + np.exp(-x))),
        ("Silu", 18, lambda x: x / (1 + np.exp(-x))),
        ("Gelu", 10, lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
        ("Square", None, np.square),
        ("Relu", None, lambda x: np.maximum(x, 0)),
        ("Identity", None, lambda x: x),
    ],
)
def test_activation_with_scale_and_bias(func, table, plain):
    x, bias = values("bfloat16", 64, 20, 7), values("bfloat16", 64, 1, 8)
    act = record(
        "Activate",
        src=m.chip(0, 0, (1, 20)),
        dst=m.chip(0, 128, (1, 20)),
        in_dtype=6,
        bias_dtype=6,
        out_dtype=F32,
        nchan=64,
        act_func=ACT_FUNC[func],
        scale=f32_bits(0.75),
        bias=word_of(m.chip(0, 64)),
        bias_src_n=0,
    )
    loads = [] if table is None else [record("ActivationTableLoad", table_set=table)]
    given = [("bfloat16", x, 0), ("bfloat16", bias, 64)]
    got = run_on(m.ACT, [*loads, act], given, ("float32", 64, 20, 128))
    arg = (wide(x) * np.float32(0.75) + wide(bias)).astype(np.float64)
    np.testing.assert_allclose(got, plain(arg).astype(np.float32), rtol=2**-23, atol=1e-45)


def test_activation_sums_before_it_rounds():
    x = values("float32", 32, 40, 9)
    act = {
        "src": m.chip(0, 0, (1, 40)),
        "dst": m.chip(0, 256, (1, 40)),
        "in_dtype": F32,
        "bias_dtype": F32,
        "out_dtype": 6,
        "nchan": 32,
        "act_func": ACT_FUNC["Square"],
        "scale": f32_bits(1.0),
        "bias_src_n": 1,
    }
    read = record(
        "ActivationReadAccumulator", dst=m.chip(0, 512, (1, 1)), out_dtype=F32, nchan=32, count=1
    )
    two = [record("Activate", accumulator_cmd=c, **act) for c in (3, 2)]
    got = run_on(m.ACT, [*two, read], [("float32", x, 0)], ("float32", 32, 1, 512))
    once = (x * x).astype(np.float64).sum(1).astype(np.float32).astype(np.float64)
    want = ((x * x).astype(np.float64).sum(1) + once).astype(np.float32)
    np.testing.assert_array_equal(got[:, 0], want)


def test_a_function_needs_its_table():
    x = values("float32", 4, 4)
    act = record(
        "Activate",
        src=m.chip(0, 0, (1, 4)),
        dst=m.chip(0, 64, (1, 4)),
        in_dtype=F32,
        bias_dtype=F32,
        out_dtype=F32,
        nchan=4,
        act_func=ACT_FUNC["Exp"],
        scale=f32_bits(1.0),
        bias_src_n=1,
    )
    wrong = record("ActivationTableLoad", table_set=3)
    for bundles in ([act], [wrong, act]):
        with pytest.raises(NccError, match=r"NCC917 Activation \d \(Activate\): Exp is not in"):
            run_on(m.ACT, bundles, [("float32", x, 0)], ("float32", 4, 4, 64))


def test_relu_leaky_slope():
    x = values("float32", 4, 6)
    act = record(
        "Activate",
        src=m.chip(0, 0, (1, 6)),
        dst=m.chip(0, 64, (1, 6)),
        in_dtype=F32,
        bias_dtype=F32,
        out_dtype=F32,
        nchan=4,
        act_func=ACT_FUNC["Lrelu"],
        scale=f32_bits(1.0),
        bias_src_n=1,
        imm=f32_bits(0.25),
    )
    got = run_on(m.ACT, [act], [("float32", x, 0)], ("float32", 4, 6, 64))
    np.testing.assert_array_equal(got, np.where(x >= 0, x, x * np.float32(0.25)))


# --- selects --------------------------------------------------------------------------------------


def test_iota_and_affine_select():
    iota = record(
        "Iota",
        pattern=(7, ((2, 3), (10, 2))),
        out_dtype=8,
        nchan=32,
        channel_multiplier=100,
        dst=m.chip(0, 0, (1, 6)),
    )
    got = run_on(m.POOL, [iota], [], ("int32", 32, 6, 0))
    p, j, i = np.ogrid[:32, :2, :3]
    np.testing.assert_array_equal(got, (7 + 2 * i + 10 * j + 100 * p).reshape(32, 6))
    x = values("float32", 32, 32, 3)
    move = record(
        "RegisterMove",
        count=1,
        dtype=F32,
        source=1,
        dst_regs=bytes([12]) + bytes(7),
        imm0=f32_bits(-3.4e38),
    )
    causal = record(
        "AffineSelect",
        pattern=(0, ((-1, 32),)),
        in_dtype=F32,
        out_dtype=F32,
        fill_mode=1,
        fill_reg=12,
        nchan=32,
        channel_multiplier=1,
        src=m.chip(0, 0, (1, 32)),
        dst=m.chip(0, 128, (1, 32)),
    )
    got = run_on(m.POOL, [move, causal], [("float32", x, 0)], ("float32", 32, 32, 128))
    np.testing.assert_array_equal(got, np.where(np.tri(32) > 0, x, np.float32(-3.4e38)))
    with pytest.raises(NccError, match=r"NCC903 .*register 12"):
        run_on(m.POOL, [causal], [("float32", x, 0)], ("float32", 32, 32, 128))


def test_range_select():
    x, hi = values("float32", 16, 20, 3), np.arange(16, dtype=np.float32)[:, None] + 2
    select = record(
        "RangeSelect",
        src=m.chip(0, 0, (1, 20)),
        dst=m.chip(0, 128, (1, 20)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=16,
        reduce_cmd=3,
        reduce_op=8,
        base=f32_bits(1.0),
        fill=0xFF7FFFFF,
        comp_op0=ALU["is_ge"],
        comp_op1=ALU["is_lt"],
        bound0=f32_bits(3.0),
        bound1_src=1,
        bound1=word_of(m.chip(0, 96)),
    )
    drain = record(
        "DveReadAccumulator", dst=m.chip(0, 256, (1, 1)), out_dtype=F32, nchan=16, count=1
    )
    given = [("float32", x, 0), ("float32", hi, 96)]
    index = np.arange(20) + 1
    keep = (index >= 3) & (index < hi)
    want = np.where(keep, x, np.finfo(np.float32).min)
    got = run_on(m.DVE, [select], given, ("float32", 16, 20, 128))
    np.testing.assert_array_equal(got, want)
    got = run_on(m.DVE, [select, drain], given, ("float32", 16, 1, 256))
    np.testing.assert_array_equal(got[:, 0], want.max(1))


def test_predicated_copies():
    mask = RNG(2).integers(0, 2, (8, 12)).astype(np.uint8)
    data, old = values("float32", 8, 12, 3), values("float32", 8, 12, 4)
    given = [("uint8", mask, 0), ("float32", data, 16), ("float32", old, 64)]
    some = record(
        "CopyPredicated",
        src0=m.chip(0, 0, (1, 12)),
        src1=m.chip(0, 16, (1, 12)),
        dst=m.chip(0, 64, (1, 12)),
        src0_dtype=3,
        src1_dtype=F32,
        out_dtype=F32,
        nchan=8,
    )
    got = run_on(m.DVE, [some], given, ("float32", 8, 12, 64))
    np.testing.assert_array_equal(got, np.where(mask, data, old))
    for reverse in (0, 1):
        fill = record(
            "CopyPredicatedScalar",
            predicate=m.chip(0, 0, (1, 12)),
            dst=m.chip(0, 64, (1, 12)),
            pred_dtype=3,
            in_dtype=F32,
            out_dtype=F32,
            imm=f32_bits(-5.0),
            nchan=8,
            reversed_pred=reverse,
        )
        got = run_on(m.DVE, [fill], given, ("float32", 8, 12, 64))
        write = mask != 0 if reverse else mask == 0
        np.testing.assert_array_equal(got, np.where(write, np.float32(-5), old))


def test_select_reduce():
    mask = RNG(2).integers(0, 2, (8, 12)).astype(np.int16)
    data = values("float32", 8, 12, 3)
    both = record(
        "SelectReduce",
        src0=m.chip(0, 0, (1, 12)),
        src1=m.chip(0, 32, (1, 12)),
        dst=m.chip(0, 128, (1, 12)),
        src0_dtype=4,
        src1_dtype=F32,
        out_dtype=F32,
        nchan=8,
        op1=8,
        imm0=f32_bits(-9.0),
        imm0_dtype=F32,
        accumulator_cmd=3,
    )
    given = [("int16", mask, 0), ("float32", data, 32)]
    got = run_on(m.DVE, [both], given, ("float32", 8, 12, 128))
    np.testing.assert_array_equal(got, np.where(mask, data, np.float32(-9)))


def test_stream_transpose_and_shuffle():
    x = RNG(2).integers(0, 2**16, (64, 96)).astype(np.uint16)
    fields = {
        "src": m.chip(0, 0, (1, 96)),
        "dst": m.chip(0, 256, (1, 96)),
        "in_dtype": 6,
        "out_dtype": 6,
        "nchan": 64,
    }
    given = [("uint16", x, 0)]
    got = run_on(m.DVE, [record("StreamTranspose", **fields)], given, ("uint16", 64, 96, 256))
    want = np.empty_like(x)
    for q in range(2):
        for b in range(3):
            r, c = slice(32 * q, 32 * q + 32), slice(32 * b, 32 * b + 32)
            want[r, c] = x[r, c].T
    np.testing.assert_array_equal(got, want)
    lanes = [(7 * j + 3) % 32 for j in range(32)]
    mask = record("LoadMaskSelect", mask=bytes(lanes))
    got = run_on(m.DVE, [mask, record("StreamShuffle", **fields)], given, ("uint16", 64, 96, 256))
    np.testing.assert_array_equal(got, x[[*lanes, *(32 + i for i in lanes)]])


def test_batch_statistics():
    x = values("float32", 16, 13, 3)
    stats = record(
        "BatchNormStats2",
        src=m.chip(0, 0, (1, 13)),
        dst=m.chip(0, 64, (1, 6)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=16,
        even_count=f32_bits(7.0),
        odd_count=f32_bits(6.0),
    )
    join = record(
        "BatchNormAggregate",
        src=m.chip(0, 64, (1, 6)),
        dst=m.chip(0, 96, (1, 2)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=16,
    )
    got = run_on(m.DVE, [stats, join], [("float32", x, 0)], ("float32", 16, 2, 96))
    wide_ = x.astype(np.float64)
    np.testing.assert_allclose(got, np.stack([wide_.mean(1), wide_.var(1)], 1), rtol=1e-5)


def test_the_eight_largest_and_their_places():
    x = values("float32", 4, 30, 3)
    x[:, 20] = x[:, 5]  # a value that stands twice
    top = record(
        "Max8",
        src=m.chip(0, 0, (1, 30)),
        dst=m.chip(0, 128 + 28, (-1, 8)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=4,
    )
    latch = record("MatchValueLoad", src=m.chip(0, 128 + 28, (-1, 8)), in_dtype=F32, nchan=4)
    find = record(
        "FindIndex8",
        src=m.chip(0, 0, (1, 30)),
        dst=m.chip(0, 192, (1, 8)),
        in_dtype=F32,
        out_dtype=9,
        nchan=4,
    )
    swap = record(
        "MatchReplace8",
        src=m.chip(0, 0, (1, 30)),
        dst=m.chip(0, 256, (1, 30)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=4,
        replacement=f32_bits(0.0),
    )
    given = [("float32", x, 0)]
    got = run_on(m.DVE, [top], given, ("float32", 4, 8, 128))
    np.testing.assert_array_equal(got, -np.sort(-x, axis=1)[:, :8])
    places = run_on(m.DVE, [top, latch, find], given, ("uint32", 4, 8, 192))
    want = np.argsort(-x, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(places, want)
    got = run_on(m.DVE, [top, latch, swap], given, ("float32", 4, 30, 256))
    gone = x.copy()
    np.put_along_axis(gone, want, 0, axis=1)
    np.testing.assert_array_equal(got, gone)


# --- registers and branches -----------------------------------------------------------------------


def test_a_loop_counts_in_a_register():
    zero = record("RegisterMove", count=1, dtype=8, source=1, dst_regs=bytes([5]) + bytes(7))
    add = record(
        "TensorScalar",
        src=m.chip(0, 0, (1, 4)),
        dst=m.chip(0, 0, (1, 4)),
        in_dtype=F32,
        out_dtype=F32,
        op0=ALU["add"],
        imm0=f32_bits(2.0),
        nchan=2,
    )
    count = record(
        "RegisterAlu", op=ALU["add"], src_dtype=8, dst_dtype=8, source=1, src0_lo=5, dst_lo=5, imm=1
    )
    back = record("CompareAndBranch", compare=1, dtype=8, target_mode=3, imm=8, left=5, target=-128)
    x = values("float32", 2, 4)
    got = run_on(m.DVE, [zero, add, count, back], [("float32", x, 0)], ("float32", 2, 4, 0))
    want = x
    for _ in range(8):
        want = want + np.float32(2)
    np.testing.assert_array_equal(got, want)


def test_registers_from_memory_wait_for_a_semaphore_threshold():
    number = Var("n", 1, "input", "int32", (2,))
    out = Var("y", 2, "output", "int32", (2,))
    take = record("TensorLoadVar", dtype=8, num0=2, num1=1, var=1, step0=4, reg0=3, reg1=4)
    give = record("TensorStoreVar", dtype=8, num0=2, num1=1, var=2, step0=4, reg0=4, reg1=3)
    program = m.program({m.SP: [take, give, m.leave()]}, [number, out])
    (got,) = run_isa(program, TRN2, [np.array([11, -4])])
    np.testing.assert_array_equal(got, [-4, 11])


# --- PE -------------------------------------------------------------------------------------------


def pe_program(k, m_, n, dtype, flags=3, start=0, bank=1, col=0, neff="cayman", **more):
    """One product of tiles at partition `start`, to column `col`, copied out in fp32."""
    size = size_of(dtype)
    variables = [
        Var("w", 1, "input", dtype, (k, m_)),
        Var("x", 2, "input", dtype, (k, n)),
        Var("y", 3, "output", "float32", (m_, n)),
    ]
    at_w, at_x = m.chip(start, 0), m.chip(start, 1024)
    acc, out = m.chip(col, 2048 * bank, space="psum"), m.chip(col, 8192)
    fp32 = dtype == "float32"
    pe = []
    for half in (2, 1) if fp32 else (0,):
        mode = {"fp32_mode": half} if fp32 else {}
        both = {"fp32_mode": 3} if fp32 else {}
        w = m.weights(at_w, k, m_, dtype, (12, 32) if not pe else None, **mode, **more)
        pe.append(m.with_fields(w, col_grp=group(col, m_)))
        bits = flags if not fp32 else {2: flags & 1, 1: flags & 2}[half]
        pe.append(m.multiply(at_x, acc, k, m_, n, bits, dtype, raises=m.PE, **both, **more))
    count = len(pe) // 2
    copy = record(
        "Copy",
        m.band((m.PE, count), m.DVE),
        src=m.chip(col, 2048 * bank, (1, n), space="psum"),
        dst=m.chip(col, 8192, (1, n)),
        in_dtype=F32,
        out_dtype=F32,
        nchan=m_,
    )
    sp = [
        m.load(m.SP, Dram(1, 0), at_w, k, m_ * size, dtype, m_ * size),
        m.load(m.SP, Dram(2, 0), at_x, k, n * size, dtype, n * size),
        m.save(m.SP, out, Dram(3, 0), m_, 4 * n, "float32", 4 * n, awaited=(m.DVE, 1)),
        m.leave((12, 48)),
    ]
    streams = {m.PE: [*pe, m.leave()], m.DVE: [copy, m.leave()], m.SP: sp}
    return m.program(streams, variables, neff=neff)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8e4", "float8e5", "float8e3"])
@pytest.mark.parametrize(
    "k, m_, n, start, col", [(128, 128, 512, 0, 0), (17, 5, 9, 32, 64), (64, 33, 70, 64, 64)]
)
def test_matmul(dtype, k, m_, n, start, col):
    w, x = values(dtype, k, m_, 1), values(dtype, k, n, 2)
    program = pe_program(k, m_, n, dtype, start=start, col=col)
    (got,) = run_isa(program, TRN2, [w, x], seed=1)
    want = (w.astype(np.float64).T @ x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(got, want)


def test_fp32_takes_two_passes():
    w, x = values("float32", 40, 24, 1), values("float32", 40, 30, 2)
    (got,) = run_isa(pe_program(40, 24, 30, "float32"), TRN2, [w, x])
    high = (w.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    parts = [
        (part.astype(np.float64).T @ x.astype(np.float64)).astype(np.float32)
        for part in (high, w - high)
    ]
    np.testing.assert_array_equal(got, parts[0] + parts[1])
    near = w.astype(np.float64).T @ x.astype(np.float64)
    np.testing.assert_allclose(got, near, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_transpose_copies_bits(dtype):
    size = size_of(dtype)
    raw = RNG(3).integers(0, 256, (48, 40 * size)).astype(np.uint8)
    data = raw.view(numpy_type(dtype))
    data[3, 4], data[5, 6] = np.nan, np.inf
    eye = np.eye(48).astype(numpy_type(dtype))
    program = pe_program(48, 40, 48, dtype, transpose_mode=1)
    (got,) = run_isa(program, TRN2, [data, eye])
    want = data.T.astype(np.float32)
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
    with pytest.raises(NccError, match="NCC922"):
        run_isa(program, TRN2, [data, eye * 2])


def test_a_transpose_without_the_mode_multiplies():
    data = values("bfloat16", 48, 40, 3)
    data[3, 4] = np.inf
    eye = np.eye(48).astype(ml_dtypes.bfloat16)
    (got,) = run_isa(pe_program(48, 40, 48, "bfloat16"), TRN2, [data, eye])
    assert np.isnan(got[4]).sum() == 47  # 0 · Inf spreads over the row


def test_two_groups_share_a_bank():
    """The first group clears the bank; the second starts on cells that are still zeroed."""
    w, x = values("bfloat16", 32, 8, 1), values("bfloat16", 32, 20, 2)
    program = pe_program(32, 8, 20, "bfloat16")
    left = program.streams[m.PE].bundles[1]
    half = m.chip(0, 2048 + 1024, (1, 20), space="psum")
    more = [
        m.with_fields(left, dst=half, psum_flags=0),
        m.with_fields(left, dst=half, psum_flags=2),
    ]
    pe = [*program.streams[m.PE].bundles[:2], *more, m.leave()]
    dve = m.with_fields(program.streams[m.DVE].bundles[0], src=half)
    dve = attrs.evolve(dve, band=m.band((m.PE, 3), m.DVE))
    streams = {m.PE: pe, m.DVE: [dve, m.leave()], m.SP: list(program.streams[m.SP].bundles)}
    shared = m.program(streams, list(program.vars))
    (got,) = run_isa(shared, TRN2, [w, x])
    once = (w.astype(np.float64).T @ x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(got, once + once)
    again = m.changed(shared, m.PE, 2, m.with_fields(more[0], psum_flags=1))
    (got,) = run_isa(again, TRN2, [w, x])  # the first group is closed, so a START may clear it
    np.testing.assert_array_equal(got, once + once)
    wiped = m.changed(
        again, m.DVE, 0, m.with_fields(dve, src=m.chip(0, 2048, (1, 20), space="psum"))
    )
    with pytest.raises(NccError, match=r"NCC907 .*zeroed"):
        run_isa(wiped, TRN2, [w, x])


def test_adding_to_what_a_vector_engine_wrote_warns():
    w, x = values("bfloat16", 32, 8, 1), values("bfloat16", 32, 20, 2)
    program = pe_program(32, 8, 20, "bfloat16", flags=2)
    fill = record(
        "Memset",
        m.band(None, m.ACT),
        dst=m.chip(0, 2048, (1, 20), space="psum"),
        out_dtype=F32,
        nchan=8,
        count=20,
        set_value=f32_bits(1.5),
    )
    pe = [record("EventSemaphore", m.wait(m.ACT, 1)), *program.streams[m.PE].bundles]
    streams = {
        m.PE: pe,
        m.ACT: [fill, m.leave()],
        m.DVE: list(program.streams[m.DVE].bundles),
        m.SP: list(program.streams[m.SP].bundles),
    }
    run = run_report(m.program(streams, list(program.vars)), TRN2, [w, x])
    once = (w.astype(np.float64).T @ x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(run.outputs[0], np.float32(1.5) + once)
    assert len(run.report.warnings) == 1 and "undefined before gen4" in run.report.warnings[0]


@pytest.mark.parametrize(
    "change, code",
    [
        ({"num_active_rows": 31}, "NCC909"),
        ({"col_grp": 3}, "NCC909"),
        ({"row_grp": 2}, "NCC909"),
        ({"psum_flags": 4}, "NCC900"),
        ({"in_dtype": F32, "fp32_mode": 3}, "NCC912"),
        ({"fp32_mode": 3}, "NCC912"),
        ({"dst": m.chip(0, 4096 - 8, (1, 20), space="psum")}, "NCC905"),
        ({"dst": m.chip(0, 0, (1, 20))}, "NCC913"),
        ({"dst": m.chip(0, 0, (1, 19), space="psum")}, "NCC912"),
    ],
)
def test_matmuls_that_do_not_fit_their_weights(change, code):
    w, x = values("bfloat16", 32, 8, 1), values("bfloat16", 32, 20, 2)
    program = pe_program(32, 8, 20, "bfloat16")
    bundle = m.with_fields(program.streams[m.PE].bundles[1], **change)
    with pytest.raises(NccError, match=rf"{code} PE 1 \(Matmul\)"):
        run_isa(m.changed(program, m.PE, 1, bundle), TRN2, [w, x])


def test_weights_of_an_overlapping_group_are_gone():
    w, x = values("bfloat16", 32, 8, 1), values("bfloat16", 32, 20, 2)
    program = pe_program(32, 8, 20, "bfloat16")
    load, mul, *rest = program.streams[m.PE].bundles
    other = m.with_fields(load, col_grp=3, num_active_cols=40, src=m.chip(0, 1024, (0, 40)))
    streams = list(program.streams)
    streams[m.PE] = attrs.evolve(streams[m.PE], bundles=(load, other, mul, *rest))
    with pytest.raises(NccError, match=r"NCC909 PE 2 \(Matmul\)"):
        run_isa(attrs.evolve(program, streams=tuple(streams)), TRN2, [w, x])


# --- DMA ------------------------------------------------------------------------------------------


def test_a_dma_casts_in_flight_and_repeats_a_row():
    x = values("float32", 1, 16, 3) * 100
    var, out = (
        Var("x", 1, "input", "float32", (1, 16)),
        Var("y", 2, "output", "bfloat16", (128, 16)),
    )
    row = record(
        "DmaDirect2d",
        src=Dram(1, 0),
        src_num=(128, 1),
        src_step=(0, 0),
        src_size=64,
        dst=m.chip(0, 0),
        dst_num=(128, 1),
        dst_step=(0x40000, 0),
        dst_size=32,
        src_dtype=F32,
        dst_dtype=6,
        semaphore=12,
        sem_increment=16,
    )
    save = m.save(m.SP, m.chip(0, 0), Dram(2, 0), 128, 32, "bfloat16", 32, awaited=(12, 16))
    program = m.program({m.SP: [row, save, m.leave((12, 32))]}, [var, out])
    (got,) = run_isa(program, TRN2, [x], seed=3)
    np.testing.assert_array_equal(wide(got), wide(np.repeat(x.astype(ml_dtypes.bfloat16), 128, 0)))


def test_a_dma_of_single_elements_transposes_and_dram_may_be_copied():
    x = values("float16", 12, 20, 3)
    var, out = Var("x", 1, "input", "float16", (12, 20)), Var("y", 2, "output", "float16", (20, 12))
    middle = Var("t", 3, "virtual", "float16", (12, 20), offset=64)
    copy = record(
        "DmaDirect2d",
        src=Dram(1, 0),
        src_size=480,
        dst=Dram(3, 0),
        dst_size=480,
        src_dtype=7,
        dst_dtype=7,
        semaphore=12,
        sem_increment=16,
    )
    turn = record(
        "DmaDirect2d",
        m.wait(12, 16),
        src=Dram(3, 0),
        src_num=(12, 20),
        src_step=(40, 2),
        src_size=2,
        dst=m.chip(0, 8),
        dst_num=(12, 20),
        dst_step=(2, 0x40000),
        dst_size=2,
        src_dtype=7,
        dst_dtype=7,
        semaphore=12,
        sem_increment=16,
    )
    save = m.save(m.SP, m.chip(0, 8), Dram(2, 0), 20, 24, "float16", 24, awaited=(12, 32))
    program = m.program({m.SP: [copy, turn, save, m.leave((12, 48))]}, [var, out, middle])
    for seed in (None, 1):
        (got,) = run_isa(program, TRN2, [x], seed=seed)
        np.testing.assert_array_equal(got, x.T)
    early = m.changed(program, m.SP, 1, record("DmaDirect2d", **dict(turn.fields)))
    with pytest.raises(NccError, match=r"NCC902 .*scratch|NCC902 .*t row"):
        run_isa(early, TRN2, [x])


def test_inputs_are_read_only_and_go_through_their_declared_type():
    var = Var("x", 1, "input", "bfloat16", (4, 8), declared="float8_e4m3fn")
    out = Var("y", 2, "output", "bfloat16", (4, 8))
    x = values("float32", 4, 8) * 300
    place = m.chip(0, 0)
    load = m.load(m.SP, Dram(1, 0), place, 4, 16, "bfloat16", 16)
    save = m.save(m.SP, place, Dram(2, 0), 4, 16, "bfloat16", 16, awaited=(12, 16))
    program = m.program({m.SP: [load, save, m.leave((12, 32))]}, [var, out])
    (got,) = run_isa(program, TRN2, [x])
    want = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(wide(got), wide(want))
    bad = m.changed(program, m.SP, 1, m.save(m.SP, place, Dram(1, 0), 4, 16, "bfloat16", 16))
    with pytest.raises(NccError, match="NCC921"):
        run_isa(bad, TRN2, [x])


def test_empty_variables_are_fine():
    var, out = Var("x", 1, "input", "float32", (0, 8)), Var("y", 2, "output", "float32", (0, 8))
    (got,) = run_isa(m.program({}, [var, out]), TRN2, [np.zeros((0, 8))])
    assert got.shape == (0, 8)


def test_watch_receives_every_variable():
    seen: dict = {}
    a, b = m.whole()
    run_isa(m.dry_run(), TRN2, [a, b], seen)
    np.testing.assert_array_equal(wide(seen["lhs"]), a)
    np.testing.assert_array_equal(seen["out"], a @ b)
