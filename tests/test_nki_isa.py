"""`nki.isa`: signatures, enumerations, every rule's refusal, and what the calls record."""

from __future__ import annotations

import inspect
from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest

from ncc.errors import NccError
from ncc.ir.kernel import Imm
from ncc.nki import dtypes as dt
from ncc.nki import isa as nisa
from ncc.nki import memory
from ncc.nki.regions import hbm, psum, sbuf, shared_hbm
from ncc.nki.trace import NkiAssertionError, NkiTypeError, NkiValidationError, Trace, tracing
from ncc.rules import rules
from ncc.target import TARGETS


@contextmanager
def kernel(target="trn2", **more):
    with tracing(Trace("k", TARGETS[target], **more)) as trace:
        yield trace


@pytest.fixture
def trace():
    with kernel() as found:
        yield found


def sb(*shape, dtype=dt.float32, buffer=sbuf):
    return memory.ndarray(shape, dtype, buffer)


def ps(*shape, dtype=dt.float32):
    return sb(*shape, dtype=dtype, buffer=psum)


def op_of(trace, index=-1):
    return trace.bodies[-1][index]


def keys(trace, index=-1):
    return dict(op_of(trace, index).keys)


def refused(code, call, *args, **kwargs):
    """The sentence of a refusal: code, this file and line, what was found, and a hint."""
    with pytest.raises(NccError) as caught:
        call(*args, **kwargs)
    error = caught.value
    assert error.code == code, str(error)
    assert error.place.file == "test_nki_isa.py" and error.place.line
    return str(error)


def add():
    """Stands for `nl.add` where the operator does not matter."""


add.nki_op = "add"


def op(name):
    def function():
        """An nl function as the calls see it."""

    function.nki_op = name
    return function


# --- signatures -----------------------------------------------------------------------------------

# as the reference writes them; "/" marks a call without `name`, or with more behind it
SIGNATURES = """
dma_copy(dst, src, priority=None, oob_mode=error, dge_mode=unknown, engine=unknown, name=None, dst_rmw_op=None, unique_indices=True)/
dma_transpose(dst, src, axes=None, priority=None, dge_mode=unknown, oob_mode=error)
dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=error)
tensor_copy(dst, src, engine=unknown)
tensor_copy_predicated(dst, src, predicate, reverse_pred=False)
memset(dst, value, engine=unknown)
nc_stream_shuffle(dst, src, shuffle_mask)
local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None)
nc_n_gather(dst, data, indices)
sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=dma)
core_barrier(data, cores, engine=gpsimd)
nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False, accumulate=None, tile_position=(), tile_size=(), perf_mode=none)
nc_transpose(dst, data, engine=unknown)
nc_matmul_mx(dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, tile_size=None, accumulate=None)
quantize_mx(dst, src, dst_scale)
tensor_tensor(dst, data1, data2, op, engine=unknown)
tensor_scalar(dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, engine=unknown)
scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False)
tensor_reduce(dst, op, data, axis, negate=False, keepdims=False)
tensor_partition_reduce(dst, op, data)
tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False, reduce_cmd=reset_reduce, reduce_init=None, reduce_res_negate=False)
tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd=reset_reduce)
tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False)
activation(dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=idle)
activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0)
activate2(dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False, reduce_op=None, reduce_res=None, reduce_cmd=idle)
reciprocal(dst, data)
exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd=idle, reduce_init=0.0)
select_reduce(dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=idle, reduce_op=maximum, reverse_pred=False)
range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reset_reduce, reduce_res=None, reduce_op=maximum, range_start=0, on_false_value=-3.4028234663852886e+38)
affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=equal, offset=0)
iota(dst, pattern, offset=0, channel_multiplier=0)
bn_stats(dst, data)
bn_aggr(dst, data)
max8(dst, src)
nc_find_index8(dst, data, vals)
nc_match_replace8(dst, data, vals, imm, dst_idx=None)
sequence_bounds(dst, segment_ids)
nonzero_with_count(dst, src, index_offset=0, padding_val=-1)
topk(val_dst, idx_dst, src, n)
dropout(dst, data, prob)
rng(dst, engine=vector)
set_rng_seed(src_seeds)
rand_set_state(src_seeds, engine=gpsimd)
rand_get_state(dst, engine=gpsimd)
rand2(dst, min, max)
register_alloc(x=None)/
register_move(dst, src)
register_load(dst, src)
register_store(dst, src)
scalar_load(src)/
scalar_store(dst, value)
get_nc_version()/
get_nc_sub_version()/
"""


def shown(value):
    return getattr(value, "name", None) or str(value)


@pytest.mark.parametrize("line", SIGNATURES.split("\n")[1:-1], ids=lambda x: x.partition("(")[0])
def test_signature(line):
    name, _, rest = line.partition("(")
    found = inspect.signature(getattr(nisa, name)).parameters.values()
    written = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={shown(p.default)}" for p in found
    )
    if rest.endswith("/"):
        assert written == rest[:-2]
    else:
        bare = rest[:-1]
        assert written == f"{bare}, name=None" if bare else "name=None"
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in found)


def test_every_call_stands_in_the_table():

    calls = {n for n in nisa.__all__ if inspect.isfunction(getattr(nisa, n))}
    assert calls <= {line.partition("(")[0] for line in SIGNATURES.split("\n")}


ENUMS = {
    "engine": "unknown=0 tensor=1 scalar=2 gpsimd=3 dma=4 vector=5 sync=6",
    "reduce_cmd": "idle=0 reset=1 reduce=2 reset_reduce=3 load_reduce=4",
    "dge_mode": "unknown=0 swdge=1 hwdge=2 none=3",
    "oob_mode": "error=0 skip=1",
    "matmul_perf_mode": "none=none double_row=double_row",
    "nc_version": "gen2=2 gen3=3 gen4=4",
    "dma_engine": "dma=1 gpsimd_dma=2",
}


@pytest.mark.parametrize("name", ENUMS)
def test_enumeration(name):
    kind = getattr(nisa, name)
    assert " ".join(f"{m.name}={m.value}" for m in kind) == ENUMS[name]
    assert getattr(nisa.constants, name) is kind


def test_generations_compare_with_each_other_and_with_integers():
    v = nisa.nc_version
    assert v.gen2 < v.gen3 <= v.gen3 and v.gen4 >= 4 and v.gen3 == 3 and not v.gen3 > 3
    for target, expected in (("trn1", 2), ("trn2", 3), ("trn3", 4)):
        with kernel(target):
            assert nisa.get_nc_version() == expected and nisa.get_nc_sub_version() == 0


def test_queries_work_outside_a_kernel(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "gen4")
    assert nisa.get_nc_version() is nisa.nc_version.gen4


def test_aliases_of_engines():
    assert nisa.tensor_engine is nisa.engine.tensor
    assert nisa.vector_engine is nisa.engine.vector
    assert nisa.scalar_engine is nisa.engine.scalar
    assert nisa.gpsimd_engine is nisa.engine.gpsimd
    assert nisa.unknown_engine is nisa.engine.unknown


def test_every_rule_of_the_file_is_raised_somewhere_in_the_calls():
    own = [code for code in rules() if "NCC330" <= code <= "NCC359"]
    text = inspect.getsource(__import__("ncc.nki.isa.operands", fromlist=["x"]))
    for part in [
        "accumulating",
        "activation",
        "calls",
        "dma",
        "folds",
        "matmul",
        "movement",
        "random",
        "registers",
        "search",
        "select",
        "vector",
    ]:
        text += inspect.getsource(__import__(f"ncc.nki.isa.{part}", fromlist=["x"]))
    text += inspect.getsource(__import__("ncc.nki.operators", fromlist=["x"]))
    for code in own:
        assert code in text, code


# --- arguments ------------------------------------------------------------------------------------


def test_an_unknown_keyword_gets_the_nearest_spelling(trace):
    a = sb(128, 8)
    said = refused("NCC330", nisa.activation, a, op("exp"), a, scal=2.0)
    assert "activation takes no argument 'scal' (did you mean scale?)" in said
    with pytest.raises(NkiTypeError):
        nisa.memset(a, val=3)
    assert "takes no argument 'mask'" in refused("NCC330", nisa.memset, a, 0, mask=None)


def test_missing_arguments_are_named(trace):
    said = refused("NCC330", nisa.tensor_copy, sb(4, 4))
    assert "tensor_copy missing 1 required positional argument: 'src'" in said
    assert "it takes dst, src, engine and name" in said
    a = sb(4, 4)
    refused("NCC330", nisa.reciprocal, a, a, None, 1)


def test_dtype_of_an_earlier_release_is_ignored(trace):
    a, b = sb(4, 8), sb(4, 8)
    nisa.tensor_copy(a, b, dtype=dt.bfloat16)
    nisa.scalar_tensor_tensor(a, b, add, 1.0, add, b, dtype=dt.bfloat16)
    assert [o.op for o in trace.bodies[0]] == ["tensor_copy", "scalar_tensor_tensor"]
    assert trace.bodies[0][0].arg("dst").dtype == "float32"


def test_outside_of_a_kernel():
    with kernel():
        a = sb(4, 8)
    refused("NCC301", nisa.tensor_copy, a, a)


def test_an_error_inside_a_call_is_not_taken_for_one_of_its_arguments(trace):
    class Broken:
        def __float__(self):
            raise RuntimeError("own")

    with pytest.raises(RuntimeError, match="own"):
        nisa.memset(sb(4, 4), Broken())


def test_the_handle_orders(trace):
    a, b = sb(4, 8), sb(4, 8)
    first = nisa.memset(a, 0, name="clear")
    second = nisa.tensor_copy(b, a, name="copy").depends_on(first)
    assert isinstance(second, nisa.NkiInstruction)
    assert second.op_name == "copy"
    assert trace.order_pairs == {"copy": ["clear"]}


def test_names_that_do_not_exist(trace):
    with pytest.raises(AttributeError, match="did you mean tensor_copy"):
        getattr(nisa, "tensor_" + "cpy")
    assert not hasattr(nisa, "no_such_thing")


# --- operands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 3.0, [1], np.zeros((4, 8))])
def test_an_operand_that_is_no_tensor(trace, value):
    refused("NCC331", nisa.tensor_copy, sb(4, 8), value)


def test_memories(trace):
    a, p, h = sb(4, 8), ps(4, 8), sb(4, 8, buffer=hbm)
    said = refused("NCC332", nisa.tensor_copy, a, h)
    assert "takes src in PSUM or SBUF, t" not in said.split("src")[0]
    assert "in HBM" in said and "nisa.dma_copy" in said
    said = refused("NCC332", nisa.dma_copy, a, p)
    assert "dma_copy takes src in HBM or SBUF" in said and "is in PSUM" in said
    refused("NCC332", nisa.dma_copy, p, h)
    refused("NCC332", nisa.nc_matmul, a, a, a)
    refused("NCC332", nisa.nc_matmul, p, p, a)
    refused("NCC332", nisa.iota, p, [[1, 8]])
    refused("NCC332", nisa.affine_select, p, [[1, 8]], 1, a, 0.0)
    refused("NCC332", nisa.tensor_partition_reduce, p, add, a)


def test_partitions_and_counts(trace):
    said = refused("NCC333", nisa.tensor_copy, sb(64, 8), sb(32, 8))
    assert "(64, 8) has 64 of them" in said and "(32, 8) has 32" in said
    with pytest.raises(NkiAssertionError):
        nisa.tensor_copy(sb(4, 8), sb(4, 9))
    refused("NCC334", nisa.tensor_tensor, sb(4, 8), sb(4, 8), sb(4, 1), add)
    nisa.tensor_copy(sb(4, 2, 6), sb(4, 12))
    nisa.tensor_copy(sb(4, 12), sb(4, 3, 2, 2))
    refused("NCC334", nisa.dma_copy, sb(4, 8), sb(4, 9, buffer=hbm))
    nisa.dma_copy(sb(4, 8), sb(32, buffer=hbm))


def test_start_partitions(trace):
    a, b = sb(128, 8), sb(128, 8)
    nisa.tensor_copy(a[32:64], b[64:96])
    nisa.tensor_copy(a[64:128], b[0:64])
    said = refused("NCC315", nisa.tensor_copy, a[16:32], b[0:16])
    assert "partition 16" in said
    refused("NCC315", nisa.tensor_copy, a[32:96], b[0:64])
    refused("NCC315", nisa.memset, a[5:6], 0)
    nisa.dma_copy(a[16:32], b[5:21])


def test_the_two_reads_from_psum(trace):
    a, p, q = sb(4, 8), ps(4, 8), ps(4, 8)
    for call in (
        lambda: nisa.tensor_tensor(a, p, q, add),
        lambda: nisa.scalar_tensor_tensor(a, p, add, 1.0, add, q),
        lambda: nisa.tensor_tensor_scan(a, p, q, 0.0, add, add),
        lambda: nisa.tensor_copy_predicated(a, p, ps(4, 8, dtype=dt.uint8)),
        lambda: nisa.select_reduce(a, ps(4, 8, dtype=dt.uint8), p, 0.0),
    ):
        assert "are both there" in refused("NCC344", call)
    nisa.tensor_tensor(p, p, a, add)


def test_columns_and_numbers(trace):
    a, wide = sb(4, 8), sb(4, 2)
    for value in (2, 2.5, True, np.float32(2), np.int64(3), ml_dtypes.bfloat16(2), np.array([1.5])):
        nisa.tensor_scalar(a, a, add, value)
        found = op_of(trace).arg("operand0")
        assert isinstance(found, Imm) and type(found.value) in (int, float)
        assert found.value == float(np.asarray(value, float).reshape(()))
    nisa.tensor_scalar(a, a, add, sb(4, 1), op1=add, operand1=sb(4, 1, 1))
    said = refused("NCC346", nisa.tensor_scalar, a, a, add, wide)
    assert "operand0" in said and "(4, 2) has 2" in said
    refused("NCC333", nisa.tensor_scalar, a, a, add, sb(8, 1))
    refused("NCC345", nisa.tensor_scalar, a, a, add, "one")
    refused("NCC331", nisa.tensor_scalar, a, a, add, None)
    nisa.tensor_scalar(a, a, add, sb(4, 1, dtype=dt.bfloat16))


# --- operators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, name",
    [
        (op("add"), "add"),
        (np.add, "add"),
        (np.multiply, "multiply"),
        (np.subtract, "subtract"),
        (np.maximum, "maximum"),
        (np.max, "maximum"),
        (np.amin, "minimum"),
        (max, "maximum"),
        (op("max"), "maximum"),
        (op("sum"), "add"),
        (np.bitwise_and, "bitwise_and"),
        (np.logical_or, "logical_or"),
        ("minimum", "minimum"),
    ],
)
def test_operators_of_every_spelling(trace, given, name):
    a = sb(4, 8, dtype=dt.int32)
    nisa.tensor_reduce(a[:, 0:1], given, a, axis=1)
    assert keys(trace)["op"] == name


def test_what_is_no_operator(trace):
    a = sb(4, 8)
    said = refused("NCC341", nisa.tensor_scalar, a, a, op("multply"), 1.0)
    assert "was given multply as op0" in said and "did you mean multiply?" in said
    refused("NCC341", nisa.tensor_tensor, a, a, a, print)
    refused("NCC341", nisa.activation, a, np.add, a)
    refused("NCC341", nisa.tensor_reduce, a[:, 0:1], op("power"), a, 1)
    refused("NCC341", nisa.tensor_tensor, a, a, a, np.fmod)
    with kernel(simulated=True):
        b = sb(4, 8)
        nisa.tensor_tensor(b, b, b, np.fmod)


def test_bits_and_numbers_do_not_mix(trace):
    a, i = sb(4, 8), sb(4, 8, dtype=dt.int32)
    refused("NCC342", nisa.tensor_tensor, a, a, a, op("bitwise_and"))
    refused("NCC342", nisa.tensor_scalar, i, i, op("left_shift"), 2, op1=add, operand1=1)
    refused("NCC342", nisa.tensor_scalar, i, i, op("left_shift"), 1.5)
    refused("NCC342", nisa.scalar_tensor_tensor, i, i, op("bitwise_or"), 1, add, i)
    refused("NCC342", nisa.tensor_reduce, a[:, 0:1], op("bitwise_or"), a, 1)
    nisa.tensor_scalar(i, i, op("left_shift"), 2.0, op1=op("bitwise_and"), operand1=255)
    assert type(op_of(trace).arg("operand0").value) is int


def test_unary_operators_take_no_operand(trace):
    a = sb(4, 8)
    for value in (None, 0, 0.0):
        nisa.tensor_scalar(a, a, op("abs"), value)
        assert op_of(trace).arg("operand0") is None
    nisa.tensor_scalar(a, a, add, 1e-6, op1=op("rsqrt"), operand1=None)
    assert op_of(trace).engine == "gpsimd"


# --- engines --------------------------------------------------------------------------------------


def test_engine_of_tensor_tensor(trace):
    i, u = sb(4, 8, dtype=dt.int32), sb(4, 8, dtype=dt.uint32)
    f, p = sb(4, 8), ps(4, 8, dtype=dt.int32)
    nisa.tensor_tensor(i, u, i, op("multiply"))
    assert op_of(trace).engine == "gpsimd"
    nisa.tensor_tensor(f, i, i, op("multiply"))
    assert op_of(trace).engine == "vector"
    nisa.tensor_tensor(p, i, i, op("multiply"))
    assert op_of(trace).engine == "vector"
    nisa.tensor_tensor(i, i, i, op("bitwise_and"))
    assert op_of(trace).engine == "vector"
    nisa.tensor_tensor(f, f, f, op("power"))
    assert op_of(trace).engine == "gpsimd"
    refused("NCC343", nisa.tensor_tensor, f, f, ps(4, 8), op("power"))
    refused("NCC343", nisa.tensor_tensor, f, f, f, op("power"), nisa.engine.vector)
    refused("NCC343", nisa.tensor_tensor, f, f, f, add, engine=nisa.engine.scalar)
    refused("NCC343", nisa.tensor_tensor, ps(4, 8), f, f, add, engine=nisa.engine.gpsimd)


def test_engine_of_a_copy(trace):
    a, p = sb(4, 8), ps(4, 8)
    nisa.tensor_copy(a, p)
    assert op_of(trace).engine == "unknown"
    nisa.tensor_copy(a, p, engine=nisa.engine.scalar)
    nisa.tensor_copy(a, a, nisa.gpsimd_engine)
    nisa.tensor_copy(a, a, engine=5)
    assert op_of(trace).engine == "vector"
    refused("NCC343", nisa.tensor_copy, a, p, engine=nisa.engine.gpsimd)
    refused("NCC343", nisa.tensor_copy, a, a, engine=nisa.engine.tensor)
    refused("NCC351", nisa.tensor_copy, a, a, engine=9)
    with kernel("trn1"):
        b = sb(4, 8)
        refused("NCC343", nisa.tensor_copy, b, b, engine=nisa.engine.scalar)


def test_engine_of_tensor_scalar(trace):
    a, p = sb(4, 8), ps(4, 8)
    mul, act = op("multiply"), nisa.engine.scalar
    nisa.tensor_scalar(a, a, mul, 2.0, op1=add, operand1=1.0, engine=act)
    nisa.tensor_scalar(a, a, add, 2.0, engine=act)
    refused("NCC343", nisa.tensor_scalar, a, a, add, 1.0, op1=mul, operand1=2.0, engine=act)
    refused("NCC343", nisa.tensor_scalar, a, a, op("maximum"), 1.0, engine=act)
    nisa.tensor_scalar(a, p, op("rsqrt"), 0.0)
    assert op_of(trace).engine == "scalar"
    refused("NCC343", nisa.tensor_scalar, a, p, add, 1e-6, op1=op("rsqrt"))
    nisa.tensor_scalar(a, a, op("power"), 0.5)
    assert op_of(trace).engine == "gpsimd"


def test_generations():
    with kernel("trn1"):
        a = sb(4, 8)
        refused("NCC347", nisa.range_select, a, a, op("less"), op("less"), a, a)
        refused("NCC347", nisa.dma_transpose, a, a)
        refused("NCC347", nisa.nonzero_with_count, a, a)
        refused("NCC346", nisa.activation, a, op("exp"), a, bias=1.0)
        nisa.activation(a, op("exp"), a, bias=0.0)
    with kernel("trn2"):
        a = sb(4, 8)
        said = refused("NCC347", nisa.exponential, a, a)
        assert "exponential comes with trn3, the target is trn2" in said
        refused("NCC347", nisa.activate2, a, op("exp"), a, 1.0, 0.0, op("multiply"), add)
        refused("NCC347", nisa.rand2, a, 0.0, 1.0)
        refused("NCC347", nisa.tensor_tensor, a, a, a, op("abs_max"))
    with kernel("trn3") as found:
        a = sb(4, 8)
        nisa.exponential(a, a, sb(4, 1), reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.activate2(a, op("exp"), a, 1.0, 0.0, op("multiply"), add)
        nisa.rand2(a, 0.0, 1.0)
        nisa.tensor_tensor(a, a, a, op("abs_max"))
        refused("NCC341", nisa.activate2, a, op("exp"), a, 1.0, 0.0, add, op("multiply"))
        refused("NCC358", nisa.exponential, a, a, reduce_cmd=4, reduce_init=None)
        assert [o.op for o in found.bodies[0]][:2] == ["exponential", "activate2"]


def test_what_comes_later_is_refused_by_name(trace):
    a = sb(4, 8)
    assert "MX instructions" in refused("NCC348", nisa.nc_matmul_mx, a, a, a, a, a)
    assert "quantize_mx" in refused("NCC348", nisa.quantize_mx, a, a, a)
    assert "sparse" in refused("NCC348", nisa.nc_matmul_sparse, a, a, a)


# --- the tensor engine ----------------------------------------------------------------------------


def test_extents_of_a_product(trace):
    p = ps(128, 512)
    said = refused("NCC333", nisa.nc_matmul, p, sb(64, 128), sb(128, 512))
    assert "(64, 128) has 64" in said and "(128, 512) has 128" in said
    refused("NCC336", nisa.nc_matmul, p, sb(128, 129), sb(128, 512))
    refused("NCC334", nisa.nc_matmul, p, sb(128, 128), sb(128, 256))
    refused("NCC333", nisa.nc_matmul, p, sb(128, 64), sb(128, 512))
    nisa.nc_matmul(ps(64, 4, 8), sb(100, 64), sb(100, 2, 16))
    with kernel("trn3"):
        nisa.nc_matmul(ps(128, 4096), sb(128, 128), sb(128, 4096))
        nisa.nc_matmul(ps(128, 4096, dtype=dt.bfloat16), sb(128, 128), sb(128, 4096))


def test_h02_a_product_wider_than_a_bank(trace):
    p = ps(128, 1024)
    x, w = sb(128, 1024), sb(128, 128)
    said = refused("NCC337", nisa.nc_matmul, p, w, x)
    assert "writes 4096 bytes a partition" in said and "a PSUM bank holds 2048" in said
    said = refused("NCC337", nisa.nc_matmul, p[:, 256:768], w, x[:, 0:512])
    assert "bytes 1024 to 3072" in said
    nisa.nc_matmul(p[:, 0:512], w, x[:, 0:512])
    nisa.nc_matmul(p[:, 512:1024], w, x[:, 512:1024])


def test_types_of_a_product(trace):
    bf, f = sb(8, 4, dtype=dt.bfloat16), sb(8, 4)
    p = ps(4, 4)
    said = refused("NCC340", nisa.nc_matmul, p, bf, f)
    assert "is bfloat16" in said and "is float32" in said
    nisa.nc_matmul(p, bf, sb(8, 4, dtype=dt.float8_e4m3))
    nisa.nc_matmul(p, f, sb(8, 4, dtype=dt.tfloat32))
    refused("NCC338", nisa.nc_matmul, p, sb(8, 4, dtype=dt.int8), bf)
    refused("NCC338", nisa.nc_matmul, ps(4, 4, dtype=dt.bfloat16), bf, bf)
    with kernel("trn3"):  # before it both names are one type
        ieee, ocp = sb(8, 4, dtype=dt.float8_e4m3), sb(8, 4, dtype=dt.float8_e4m3fn)
        refused("NCC340", nisa.nc_matmul, ps(4, 4), ieee, ocp)
        b = sb(8, 4, dtype=dt.bfloat16)
        nisa.nc_matmul(ps(4, 4, dtype=dt.bfloat16), b, b)


def test_parts_of_the_array(trace):
    p, w, x = ps(32, 4), sb(32, 32), sb(32, 4)
    nisa.nc_matmul(p, w, x, tile_position=(32, 64), tile_size=(32, 32))
    assert keys(trace)["tile_position"] == (32, 64) and keys(trace)["tile_size"] == (32, 32)
    for position, size in (
        ((0, 0), ()),
        ((), (32, 32)),
        ((16, 0), (32, 32)),
        ((0, 0), (48, 32)),
        ((128, 0), (32, 32)),
    ):
        refused("NCC354", nisa.nc_matmul, p, w, x, tile_position=position, tile_size=size)
    refused(
        "NCC354", nisa.nc_matmul, ps(64, 4), sb(32, 64), x, tile_position=(0, 0), tile_size=(32, 32)
    )
    with kernel("trn1"):
        p, w, x = ps(32, 4), sb(32, 32), sb(32, 4)
        refused("NCC354", nisa.nc_matmul, p, w, x, tile_position=(0, 0), tile_size=(32, 32))


def test_double_row(trace):
    f8 = dt.float8_e4m3
    w, x, p = sb(8, 2, 4, dtype=f8), sb(8, 2, 5, dtype=f8), ps(4, 5)
    nisa.nc_matmul(p, w, x, perf_mode=nisa.matmul_perf_mode.double_row)
    nisa.nc_matmul(p, w, x, perf_mode="double_row")
    assert keys(trace)["perf_mode"] == "double_row"
    refused("NCC338", nisa.nc_matmul, p, sb(8, 2, 4), sb(8, 2, 5), perf_mode="double_row")
    refused("NCC336", nisa.nc_matmul, p, sb(8, 8, dtype=f8), x, perf_mode="double_row")
    refused("NCC351", nisa.nc_matmul, p, w, x, perf_mode="triple_row")
    both = {"perf_mode": "double_row", "is_transpose": True}
    refused("NCC336", nisa.nc_matmul, ps(4, 5, dtype=f8), w, x, **both)


def test_is_transpose(trace):
    d, i = sb(8, 5, dtype=dt.bfloat16), sb(8, 8, dtype=dt.bfloat16)
    p = ps(5, 8, dtype=dt.bfloat16)
    nisa.memset(p, 0)
    nisa.nc_matmul(p, d, i, is_transpose=True)
    assert keys(trace) == {"is_transpose": True}, "never added to what was there"
    refused("NCC339", nisa.nc_matmul, ps(5, 8), d, i, is_transpose=True)
    nisa.nc_matmul(p, d, i, is_transpose=True, accumulate=True)
    assert "accumulate" not in keys(trace)


def test_nc_transpose(trace):
    a = sb(128, 64, dtype=dt.bfloat16)
    nisa.nc_transpose(ps(64, 128, dtype=dt.bfloat16), a)
    assert op_of(trace).engine == "tensor"
    nisa.nc_transpose(ps(64, 128, dtype=dt.bfloat16), a[:, 0:64].reshape((128, 8, 8)))
    b = a[0:32, 0:16]
    nisa.nc_transpose(sb(16, 32, dtype=dt.bfloat16), b)
    assert op_of(trace).engine == "vector"
    nisa.nc_transpose(ps(16, 32, dtype=dt.bfloat16), b, engine=nisa.engine.vector)
    assert op_of(trace).engine == "vector"
    said = refused("NCC339", nisa.nc_transpose, ps(64, 128), a)
    assert "float32" in said and "bfloat16" in said
    said = refused("NCC336", nisa.nc_transpose, sb(64, 128, dtype=dt.bfloat16), a)
    assert "32 × 32" in said and "128 × 64" in said
    refused("NCC333", nisa.nc_transpose, ps(128, 64, dtype=dt.bfloat16), a)
    sb_dst = sb(64, 128, dtype=dt.bfloat16)
    refused("NCC332", nisa.nc_transpose, sb_dst, a, engine=nisa.engine.tensor)
    refused("NCC343", nisa.nc_transpose, sb_dst, a, engine=nisa.engine.gpsimd)


# --- accumulate=None ------------------------------------------------------------------------------


def flags(trace, first=0):
    """(offset, columns, accumulate) of the products that were recorded."""
    found = []
    for one in trace.bodies[0][first:]:
        if one.op == "nc_matmul":
            dst = one.arg("dst")
            found.append((dst.offset, dst.pairs[-1][1], dict(one.keys).get("accumulate", False)))
    return found


def operands(columns=512, rows=128):
    return sb(128, rows), sb(128, columns)


def test_the_first_product_overwrites_the_next_add(trace):
    p, (w, x) = ps(128, 512), operands()
    for _ in range(3):
        nisa.nc_matmul(p, w, x)
    assert flags(trace) == [(0, 512, False), (0, 512, True), (0, 512, True)]


def test_accumulate_says_what_happens(trace):
    p, (w, x) = ps(128, 512), operands()
    nisa.nc_matmul(p, w, x, accumulate=True)
    nisa.nc_matmul(p, w, x, accumulate=False)
    assert flags(trace) == [(0, 512, True), (0, 512, False)]


def test_a_new_allocation_starts_afresh_also_at_the_same_address(trace):
    w, x = operands()
    for _ in range(2):
        p = memory.ndarray((128, 512), dt.float32, psum, address=(0, 0))
        nisa.nc_matmul(p, w, x)
    assert [f for _, _, f in flags(trace)] == [False, False]


def test_views_share_what_was_written(trace):
    p, (w, x) = ps(128, 2, 512), operands()
    nisa.nc_matmul(p[:, 0], w, x)
    nisa.nc_matmul(p[:, 1, :], w, x)
    nisa.nc_matmul(p[:, 1].reshape((128, 4, 128)), w, x)
    assert flags(trace) == [(0, 512, False), (512, 512, False), (512, 128, True)]


def test_a_memset_counts_as_a_write(trace):
    p, (w, x) = ps(128, 512), operands()
    nisa.memset(p, 0)
    nisa.nc_matmul(p, w, x)
    assert flags(trace) == [(0, 512, True)]


def test_a_copy_into_psum_counts_as_a_write(trace):
    p, (w, x) = ps(128, 512), operands()
    nisa.tensor_copy(p[:, 0:100], x[:, 0:100])
    nisa.nc_matmul(p, w, x)
    assert flags(trace) == [(0, 100, True), (100, 412, False)]


def test_h08_overlapping_groups(trace):
    p, (w, x) = ps(128, 512), operands()
    nisa.nc_matmul(p[:, 256:512], w, x[:, 0:256])
    nisa.nc_matmul(p, w, x)
    assert flags(trace) == [(256, 256, False), (0, 256, False), (256, 256, True)]
    moving = [o.arg("moving") for o in trace.bodies[0]]
    assert [(m.offset, m.pairs[-1]) for m in moving] == [
        (0, (1, 256)),
        (0, (1, 256)),
        (256, (1, 256)),
    ]


def test_parts_of_views_with_several_dimensions(trace):
    p, w, x = ps(4, 3, 8), sb(16, 4), sb(16, 6, 4)
    nisa.nc_matmul(p[:, 1:2, 2:6], w, x[:, 0, 0:4])
    nisa.nc_matmul(p, w, x)
    marks = np.zeros((3, 8), int)
    for offset, count, added in flags(trace, 1):
        flat = marks.reshape(-1)
        flat[offset : offset + count] += 1
        assert added == (offset == 10)
    assert (marks == 1).all(), "every column once"
    for one in trace.bodies[0][1:]:
        assert one.arg("dst").offset == one.arg("moving").offset, "both are walked alike"


def test_rows_of_two_kinds(trace):
    p, w, x = ps(64, 8), sb(16, 64), sb(16, 8)
    nisa.nc_matmul(p[32:64], w[:, 32:64], x)
    nisa.nc_matmul(p, w, x)
    found = [
        (o.arg("dst").offset, o.arg("dst").shape, o.arg("stationary").offset, keys(trace, k))
        for k, o in enumerate(trace.bodies[0])
    ][1:]
    assert found == [
        (0, (32, 8), 0, {}),
        (256, (32, 8), 32, {"accumulate": True}),
    ]


def test_a_pattern_that_no_cut_separates(trace):
    p, w, x = ps(64, 8), sb(16, 64), sb(16, 8)
    nisa.nc_matmul(p[32:64, 0:4], w[:, 32:64], x[:, 0:4])
    assert "accumulate=True or False" in refused("NCC350", nisa.nc_matmul, p, w, x)


def test_a_view_as_another_type_marks_the_elements_under_it(trace):
    p, (w, x) = ps(128, 512), operands()
    nisa.memset(p[:, 0:4].view(dt.bfloat16), 0.0)
    nisa.nc_matmul(p, w, x)
    assert flags(trace) == [(0, 4, True), (4, 508, False)]


# --- moving data ----------------------------------------------------------------------------------


def test_kinds_of_fills(trace):
    i, f = sb(4, 8, dtype=dt.int32), sb(4, 8)
    said = refused("NCC345", nisa.memset, i, 0.5)
    assert "whole numbers, was given 0.5" in said
    with pytest.raises(NkiTypeError):
        nisa.memset(i, float("inf"))
    nisa.memset(sb(4, 8, dtype=dt.uint32), 0.0)
    nisa.memset(i, 3.0)
    assert type(keys(trace)["value"]) is int
    nisa.memset(f, 3)
    assert type(keys(trace)["value"]) is float
    nisa.memset(ps(4, 8), np.float32(1))
    refused("NCC343", nisa.memset, ps(4, 8), 0, engine=nisa.engine.gpsimd)
    refused("NCC345", nisa.memset, sb(4, 8, dtype=dt.float8_e4m3fn_x4), 1)
    nisa.memset(sb(4, 8, dtype=dt.float8_e4m3fn_x4), 0)


def test_hardware_descriptors(trace):
    h, a = sb(4, 8, buffer=hbm), sb(4, 8)
    b = sb(4, 8, dtype=dt.bfloat16)
    nisa.dma_copy(b, h)
    nisa.dma_copy(a, h, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.sync)
    refused("NCC352", nisa.dma_copy, b, h, dge_mode=nisa.dge_mode.hwdge)
    refused("NCC352", nisa.dma_copy, a, h, dge_mode=1, engine=nisa.engine.scalar)
    for mode in (0, 3, nisa.dge_mode.none, None):
        nisa.dma_copy(a, h, dge_mode=mode)
    refused("NCC351", nisa.dma_copy, a, h, dge_mode=7)
    refused("NCC343", nisa.dma_copy, a, h, engine=nisa.engine.tensor)
    refused("NCC351", nisa.dma_copy, a, h, priority=4)
    with kernel("trn1"):
        refused("NCC347", nisa.dma_copy, sb(4, 8), sb(4, 8), dge_mode=nisa.dge_mode.hwdge)


def test_picked_rows(trace):
    h, index = sb(100, 8, buffer=hbm), sb(16, 1, dtype=dt.int32)
    rows = h.ap([[8, 16], [1, 8]], vector_offset=index)
    a = sb(16, 8)
    nisa.dma_copy(a, rows, oob_mode=nisa.oob_mode.skip)
    assert keys(trace) == {"oob_mode": "skip"}
    said = refused("NCC352", nisa.dma_copy, a, rows, dge_mode=nisa.dge_mode.hwdge)
    assert "swdge" in said
    nisa.dma_compute(rows, [a, rows], add)
    assert keys(trace)["into"] is True
    assert [r for r, _ in op_of(trace).args] == ["dst", "srcs0"]
    nisa.dma_compute(a, [a, rows], add)
    assert op_of(trace).arg("srcs0") == rows.access("x", compute=False)
    refused("NCC352", nisa.dma_compute, rows, [a], add)
    refused("NCC352", nisa.dma_compute, rows, [a, rows], add, unique_indices=False)


def test_sums_by_dma(trace):
    h, a, b = sb(4, 8, buffer=hbm), sb(4, 8), sb(4, 8)
    nisa.dma_compute(h, [a, b], add)
    assert "into" not in keys(trace)
    nisa.dma_compute(h, [a, b], [1.0, 1.0], add)
    refused("NCC341", nisa.dma_compute, h, [a, b], op("multiply"))
    refused("NCC352", nisa.dma_compute, h, [a, b], add, scales=[1.0, 0.5])
    refused("NCC351", nisa.dma_compute, h, [a] * 17, add)
    refused("NCC334", nisa.dma_compute, h, [a, sb(4, 9)], add)


def test_transposes_by_dma(trace):
    h = sb(100, 96, buffer=hbm)
    nisa.dma_transpose(sb(96, 100), h)
    nisa.dma_transpose(sb(5, 3, 4), sb(4, 3, 5, buffer=hbm), axes=(2, 1, 0))
    nisa.dma_transpose(sb(5, 2, 3, 4), sb(4, 2, 3, 5, buffer=hbm))
    assert keys(trace)["axes"] == (3, 1, 2, 0)
    nisa.dma_transpose(sb(128, 128), sb(128, 128))
    refused("NCC353", nisa.dma_transpose, sb(100, 96), h)
    refused("NCC353", nisa.dma_transpose, sb(96, 100), h, axes=(0, 1))
    refused("NCC339", nisa.dma_transpose, sb(96, 100, dtype=dt.bfloat16), h)
    refused("NCC332", nisa.dma_transpose, ps(96, 100), h)
    hw = nisa.dge_mode.hwdge
    refused("NCC353", nisa.dma_transpose, sb(96, 100), h, dge_mode=hw)
    b16 = sb(16, 64, dtype=dt.bfloat16, buffer=hbm)
    nisa.dma_transpose(sb(64, 16, dtype=dt.bfloat16), b16, dge_mode=hw)


def test_shuffles(trace):
    a, b = sb(64, 8), sb(64, 8)
    mask = [*range(1, 32), 0]
    nisa.nc_stream_shuffle(a, b, mask)
    assert keys(trace)["shuffle_mask"] == tuple(mask)
    nisa.nc_stream_shuffle(a[0:32], b[0:1], [0] * 32)
    nisa.nc_stream_shuffle(a[32:64], b[0:1], [0] * 32)
    nisa.nc_stream_shuffle(a, a, [255] * 32)
    nisa.nc_stream_shuffle(a[0:4], b[0:4], [1, 0, 3, 2] + [255] * 28)
    refused("NCC351", nisa.nc_stream_shuffle, a, b, [0] * 31)
    refused("NCC351", nisa.nc_stream_shuffle, a, b, [32] * 32)
    refused("NCC351", nisa.nc_stream_shuffle, a, b[0:1], [0] * 32)
    refused("NCC339", nisa.nc_stream_shuffle, a, sb(64, 8, dtype=dt.bfloat16), [0] * 32)
    refused("NCC334", nisa.nc_stream_shuffle, a, sb(64, 9), [0] * 32)


def test_predicated_copies(trace):
    a, b, m = sb(4, 8), sb(4, 8), sb(4, 8, dtype=dt.uint8)
    nisa.tensor_copy_predicated(a, b, m, reverse_pred=True)
    nisa.tensor_copy_predicated(a, -1.5, m)
    assert op_of(trace).arg("src") == Imm(-1.5)
    nisa.tensor_copy_predicated(a, b.reshape((4, 2, 4)), m)
    refused("NCC338", nisa.tensor_copy_predicated, a, b, b)
    refused("NCC339", nisa.tensor_copy_predicated, a, sb(4, 8, dtype=dt.bfloat16), m)


def test_gathers(trace):
    a, i16 = sb(32, 64), sb(32, 2, dtype=dt.uint16)
    nisa.local_gather(sb(32, 32), a, i16)
    assert keys(trace) == {}
    nisa.local_gather(sb(32, 40), a, i16, 4, 10)
    assert keys(trace) == {"num_elem_per_idx": 4, "num_valid_indices": 10}
    nisa.local_gather(sb(32, 10), a, i16, 4, 10)
    assert keys(trace) == {"num_valid_indices": 10}, "the run is left out where it does not fit"
    refused("NCC334", nisa.local_gather, sb(32, 7), a, i16)
    refused("NCC351", nisa.local_gather, sb(32, 96), a, i16, 3)
    refused("NCC338", nisa.local_gather, sb(32, 32), a, sb(32, 2, dtype=dt.int32))
    refused("NCC333", nisa.local_gather, sb(8, 16), sb(8, 64), sb(8, 1, dtype=dt.uint16))
    u = sb(4, 5, dtype=dt.uint32)
    nisa.nc_n_gather(sb(4, 5), sb(4, 64), u)
    refused("NCC338", nisa.nc_n_gather, sb(4, 5), sb(4, 64), sb(4, 5, dtype=dt.int32))
    refused("NCC339", nisa.nc_n_gather, sb(4, 5, dtype=dt.bfloat16), sb(4, 64), u)


def test_the_other_core():
    with kernel(lnc=2) as found:
        a, b, h = sb(4, 8), sb(4, 8), sb(4, 8, buffer=shared_hbm)
        nisa.sendrecv(a, b, 1, 1, 0)
        assert op_of(found).arg("dst") == b.access("x") and op_of(found).engine == "dma"
        nisa.sendrecv(
            src=a, dst=b, send_to_rank=1, recv_from_rank=1, pipe_id=0, dma_engine=nisa.engine.dma
        )
        nisa.sendrecv(a, b, 0, 0, 1, dma_engine=nisa.dma_engine.gpsimd_dma)
        assert op_of(found).engine == "gpsimd"
        refused(
            "NCC351", nisa.sendrecv, sb(4, 300), sb(4, 300), 1, 1, 0, nisa.dma_engine.gpsimd_dma
        )
        refused("NCC351", nisa.sendrecv, a, b, 2, 1, 0)
        refused("NCC339", nisa.sendrecv, a, sb(4, 8, dtype=dt.bfloat16), 1, 1, 0)
        nisa.core_barrier(h, (0, 1))
        nisa.core_barrier(a, cores=[1, 0])
        nisa.core_barrier(h, (0))
        assert keys(found) == {"cores": (0,)}
    with kernel(lnc=1):
        a, b = sb(4, 8), sb(4, 8)
        refused("NCC355", nisa.sendrecv, a, b, 1, 1, 0)
        assert "kernel[2]" in refused("NCC355", nisa.core_barrier, a, (0, 1))
    with kernel("trn1", lnc=2):
        a, b = sb(4, 8), sb(4, 8)
        refused("NCC347", nisa.sendrecv, a, b, 1, 1, 0)


# --- arithmetic -----------------------------------------------------------------------------------


def test_folds(trace):
    a = sb(4, 3, 5)
    nisa.tensor_reduce(sb(4, 3), add, a, 2)
    nisa.tensor_reduce(sb(4, 3, 1), add, a, axis=-1, keepdims=True)
    assert keys(trace)["axis"] == (2,)
    nisa.tensor_reduce(sb(4, 1), op("subtract"), a, (1, 2), negate=True)
    nisa.tensor_reduce(sb(4, 1), add, a, [2, 1])
    assert keys(trace)["axis"] == (1, 2)
    said = refused("NCC349", nisa.tensor_reduce, sb(4, 5), add, a, 1)
    assert "axis 1" in said and "does not end at 2" in said
    refused("NCC349", nisa.tensor_reduce, sb(3, 5), add, a, 0)
    refused("NCC349", nisa.tensor_reduce, sb(4, 3), add, a, 3)
    refused("NCC334", nisa.tensor_reduce, sb(4, 5), add, a, 2)


def test_fold_over_partitions(trace):
    a = sb(64, 8)
    nisa.tensor_partition_reduce(sb(1, 8), op("max"), a)
    assert keys(trace)["op"] == "maximum"
    nisa.tensor_partition_reduce(a, np.add, a)
    assert op_of(trace).arg("dst").shape == (1, 8), "only the first partition of a taller dst"
    nisa.tensor_partition_reduce(sb(1, 8), op("average"), a)
    refused("NCC341", nisa.tensor_partition_reduce, sb(1, 8), op("multiply"), a)


def test_activation(trace):
    a, c1 = sb(4, 8), sb(4, 1)
    exp = op("exp")
    nisa.activation(a, exp, a)
    assert op_of(trace).args == (("dst", a.access("x")), ("data", a.access("x")))
    nisa.activation(a, exp, a, bias=c1, scale=c1, reduce_op=add, reduce_res=c1, reduce_cmd=3)
    assert keys(trace) == {"op": "exp", "reduce_op": "add", "reduce_cmd": "reset_reduce"}
    nisa.activation(a, np.tanh, a, sb(4, 1, dtype=dt.bfloat16), 0.5)
    said = refused("NCC338", nisa.activation, a, exp, a, scale=sb(4, 1, dtype=dt.bfloat16))
    assert "scale" in said
    refused("NCC338", nisa.activation, a, exp, a, bias=sb(4, 1, dtype=dt.tfloat32))
    refused("NCC346", nisa.activation, a, exp, a, bias=sb(4, 2))
    refused("NCC341", nisa.activation, a, exp, a, reduce_op=np.max)
    refused("NCC346", nisa.activation, a, exp, a, reduce_op=add, reduce_res=a)
    nisa.activation_reduce(a, exp, a, add, c1)
    assert op_of(trace).op == "activation" and keys(trace)["reduce_cmd"] == "reset_reduce"


def test_tensor_scalar_reduce(trace):
    a, c1 = sb(4, 8), sb(4, 1)
    nisa.tensor_scalar_reduce(a, a, op("multiply"), 2.0, np.max, c1)
    assert keys(trace) == {"op0": "multiply", "reduce_op": "maximum"}
    refused("NCC358", nisa.tensor_scalar_reduce, a, a, add, 1.0, add, c1, reduce_cmd=4)
    nisa.tensor_scalar_reduce(a, a, add, 1.0, add, c1, reduce_cmd=4, reduce_init=1.0)
    assert op_of(trace).arg("reduce_init") == Imm(1.0)
    refused("NCC341", nisa.tensor_scalar_reduce, a, a, op("subtract"), 1.0, add, c1, reverse0=True)
    refused("NCC342", nisa.tensor_scalar_reduce, a, a, op("bitwise_and"), 1, add, c1)
    refused("NCC341", nisa.tensor_scalar_reduce, a, a, add, 1.0, op("subtract"), c1)


def test_scans(trace):
    a = sb(4, 8)
    nisa.tensor_tensor_scan(a, a, a, sb(4, 1), op("multiply"), add)
    nisa.tensor_tensor_scan(a, a, a, 0, np.multiply, np.add)
    refused("NCC342", nisa.tensor_tensor_scan, a, a, a, 0, op("bitwise_and"), add)
    nisa.tensor_scalar_cumulative(a, a, op("multiply"), add, 1.0)
    refused("NCC341", nisa.tensor_scalar_cumulative, a, a, add, op("power"), 1.0)
    i = sb(4, 8, dtype=dt.int32)
    refused("NCC338", nisa.tensor_scalar_cumulative, a, i, add, add, 1.0)
    refused("NCC358", nisa.tensor_scalar_cumulative, a, a, add, add, 1.0, reduce_cmd=4)


def test_large_integers_are_warned_about_once_a_line(trace):
    i = sb(4, 8, dtype=dt.int32)
    for _ in range(2):
        nisa.tensor_scalar(i, i, add, 1)
    assert len(trace.warnings) == 1 and "above 2^24" in trace.warnings[0]
    nisa.tensor_tensor(i, i, i, add)
    nisa.tensor_scalar(i, i, op("bitwise_and"), 1)
    assert len(trace.warnings) == 1
    nisa.tensor_tensor(i, i, i, add, engine=nisa.engine.vector)
    assert len(trace.warnings) == 2


# --- choices --------------------------------------------------------------------------------------


def test_select_reduce(trace):
    a, m = sb(4, 8), sb(4, 8, dtype=dt.uint8)
    nisa.select_reduce(a, m, a, -1.0)
    nisa.select_reduce(a, m, a, sb(4, 1), sb(4, 1), 3, np.max)
    refused("NCC338", nisa.select_reduce, a, sb(4, 8, dtype=dt.uint32), a, 0.0)
    refused("NCC338", nisa.select_reduce, a, m, sb(4, 8, dtype=dt.int32), 0.0)
    refused("NCC341", nisa.select_reduce, a, m, a, 0.0, reduce_op=add)


def test_range_select(trace):
    a, lo, hi = sb(4, 8), sb(4, 1), sb(4, 1)
    ops = op("greater_equal"), op("less")
    nisa.range_select(a, a, *ops, lo, hi)
    nisa.range_select(a, a, *ops, lo, hi, on_false_value=dt.fp32.min, range_start=3)
    assert keys(trace)["range_start"] == 3 and "reduce_cmd" not in keys(trace)
    nisa.range_select(a, a, *ops, lo, hi, on_false_value=np.float32(-3.4028235e38))
    refused("NCC345", nisa.range_select, a, a, *ops, lo, hi, on_false_value=0.0)
    refused("NCC346", nisa.range_select, a, a, *ops, 0.0, hi)
    refused("NCC338", nisa.range_select, a, a, *ops, sb(4, 1, dtype=dt.int32), hi)
    refused("NCC341", nisa.range_select, a, a, op("not_equal"), ops[1], lo, hi)
    refused("NCC351", nisa.range_select, a, a, *ops, lo, hi, range_start=1 << 24)
    i = sb(4, 8, dtype=dt.int32)
    refused("NCC338", nisa.range_select, a, i, *ops, lo, hi)


def test_affine_select(trace):
    a, b = sb(4, 3, 8), sb(4, 3, 8)
    nisa.affine_select(a, [[8, 3], [1, 8]], -1, b, -9.0, op("greater_equal"), 5)
    expected = {
        "pattern": ((8, 3), (1, 8)),
        "channel_multiplier": -1,
        "offset": 5,
        "cmp_op": "greater_equal",
        "on_false_value": -9.0,
    }
    assert keys(trace) == expected
    nisa.affine_select(a, [[8, 3], [1, 8]], 5, -1, b, -9.0, op("greater_equal"))
    assert keys(trace) == expected, "an earlier release: offset as third argument"
    refused("NCC334", nisa.affine_select, a, [[1, 8]], 1, b, 0.0)
    refused("NCC351", nisa.affine_select, a, [[1, 1]] * 5, 1, b, 0.0)
    refused("NCC351", nisa.affine_select, a, [1, 8], 1, b, 0.0)
    refused("NCC341", nisa.affine_select, a, [[1, 24]], 1, b, 0.0, add)


def test_iota(trace):
    a = sb(4, 8, dtype=dt.int32)
    nisa.iota(a, [[1, 8]], offset=2, channel_multiplier=8)
    assert op_of(trace).arg("offset") == Imm(2)
    r = nisa.register_alloc(3)
    nisa.iota(a, [[1, 8]], r)
    assert op_of(trace).arg("offset") == r.reg
    refused("NCC334", nisa.iota, a, [[1, 7]])


# --- searches -------------------------------------------------------------------------------------


def test_statistics(trace):
    nisa.bn_stats(sb(4, 6), sb(4, 512))
    nisa.bn_stats(sb(4, 2, 3), sb(4, 16, 32))
    assert "512" in refused("NCC356", nisa.bn_stats, sb(4, 6), sb(4, 513))
    refused("NCC356", nisa.bn_stats, sb(4, 5), sb(4, 8))
    nisa.bn_aggr(sb(4, 2), sb(4, 12))
    refused("NCC356", nisa.bn_aggr, sb(4, 2), sb(4, 10))
    refused("NCC356", nisa.bn_aggr, sb(4, 3), sb(4, 12))


def test_maxima_and_positions(trace):
    a, e, u = sb(4, 64), sb(4, 8), sb(4, 8, dtype=dt.uint32)
    nisa.max8(e, a)
    refused("NCC356", nisa.max8, sb(4, 7), a)
    refused("NCC356", nisa.max8, e, sb(4, 7))
    nisa.nc_find_index8(u, a, e)
    refused("NCC338", nisa.nc_find_index8, sb(4, 8, dtype=dt.int32), a, e)
    nisa.nc_match_replace8(a, a, e, -np.inf, u)
    nisa.nc_match_replace8(dst=a, data=a, vals=e, imm=0)
    refused("NCC334", nisa.nc_match_replace8, sb(4, 63), a, e, 0.0)


def test_what_gpsimd_finds(trace):
    i = dt.int32
    nisa.sequence_bounds(sb(1, 2, 9), sb(1, 9))
    refused("NCC333", nisa.sequence_bounds, sb(2, 2, 9), sb(2, 9))
    refused("NCC356", nisa.sequence_bounds, sb(1, 9), sb(1, 9))
    nisa.nonzero_with_count(sb(128, 10, dtype=i), sb(128, 9))
    refused("NCC356", nisa.nonzero_with_count, sb(128, 9, dtype=i), sb(128, 9))
    refused("NCC338", nisa.nonzero_with_count, sb(128, 10), sb(128, 9))
    bf = dt.bfloat16
    nisa.topk(sb(1, 5, dtype=bf), sb(1, 5, dtype=dt.uint32), sb(16, 4, dtype=bf), 60)
    refused("NCC338", nisa.topk, sb(1, 5), sb(1, 5, dtype=dt.uint32), sb(16, 4), 60)
    refused("NCC334", nisa.topk, sb(1, 5), sb(1, 5), sb(16, 4, dtype=bf), 65)


def test_random_numbers(trace):
    i, a = sb(4, 8, dtype=dt.uint32), sb(4, 8)
    nisa.rng(i)
    assert op_of(trace).engine == "vector"
    refused("NCC338", nisa.rng, a)
    refused("NCC343", nisa.rng, ps(4, 8, dtype=dt.uint32), engine=nisa.engine.gpsimd)
    nisa.set_rng_seed(sb(1, 1, dtype=dt.int32))
    refused("NCC356", nisa.set_rng_seed, sb(1, 2, dtype=dt.int32))
    nisa.rand_set_state(sb(4, 6, dtype=dt.uint32))
    nisa.rand_get_state(sb(4, 24, dtype=dt.uint32), nisa.engine.vector)
    refused("NCC356", nisa.rand_get_state, sb(4, 6, dtype=dt.uint32), nisa.engine.vector)
    nisa.dropout(a, a, 0.5)
    nisa.dropout(a, a, sb(4, 1))
    refused("NCC339", nisa.dropout, a, sb(4, 8, dtype=dt.bfloat16), 0.5)


# --- registers ------------------------------------------------------------------------------------


def test_registers(trace):
    one = sb(1, 1, dtype=dt.int32)
    r = nisa.register_alloc()
    assert op_of(trace).op == "register_move" and op_of(trace).arg("src") == Imm(0)
    nisa.register_move(r, 5)
    nisa.register_move(r, nisa.register_alloc(7))
    nisa.register_load(r, one)
    assert op_of(trace).arg("dst") == r.reg
    nisa.register_store(one, r)
    assert op_of(trace).arg("src") == r.reg
    assert nisa.register_alloc(one).reg.dtype == "int32"
    assert op_of(trace).op == "register_load"
    refused("NCC357", nisa.register_load, r, sb(1, 2, dtype=dt.int32))
    refused("NCC357", nisa.register_move, 5, 5)
    refused("NCC357", nisa.register_load, r, sb(1, 1, dtype=dt.bfloat16))
    nisa.dma_copy(one, r)
    assert op_of(trace).op == "register_store"


def test_the_index_of_a_loop_is_not_written(trace):
    index = nisa.VirtualRegister(trace.register(), frozen=True)
    with pytest.raises(AssertionError):
        nisa.register_move(index, 1)


def test_scalars(trace):
    one = sb(1, 1, dtype=dt.int32, buffer=hbm)
    s = nisa.scalar_load(one)
    assert isinstance(s, nisa.NkiScalar)
    nisa.scalar_store(one, s)
    assert op_of(trace).op == "register_store" and op_of(trace).arg("src") == s.reg
    refused("NCC357", nisa.scalar_load, sb(1, 1))


def test_errors_are_of_the_kinds_that_kernels_catch(trace):
    a = sb(4, 8)
    with pytest.raises(NkiValidationError):
        nisa.tensor_copy(a, sb(4, 8, buffer=hbm))
    with pytest.raises(AssertionError):
        nisa.tensor_copy(a, sb(4, 9))
    with pytest.raises(TypeError):
        nisa.tensor_copy(a, a, enigne=1)


def test_spellings_of_earlier_releases(trace):
    f8, i = dt.float8_e4m3, sb(32, 32, dtype=dt.int32)
    w, x, p = sb(8, 2, 4, dtype=f8), sb(8, 2, 5, dtype=f8), ps(4, 5)
    nisa.nc_matmul(p, w, x, perf_mode="double_row_gen3")
    assert keys(trace)["perf_mode"] == "double_row"
    a, m = sb(4, 8), sb(4, 8, dtype=dt.uint8)
    nisa.select_reduce(a, m, a, 0.0, reduce_op=None)
    nisa.nc_transpose(ps(32, 32, dtype=dt.int32), i)
    with kernel("trn1"):
        j = sb(32, 32, dtype=dt.int32)
        refused("NCC338", nisa.nc_transpose, ps(32, 32, dtype=dt.int32), j)


# --- the pieces of a product, by their values -----------------------------------------------------


def test_overlapping_products_have_the_sums_of_their_parts():
    import ncc.nki as nki

    windows = [(0, 10), (0, 5), (3, 9), (8, 10)]

    @nki.jit
    def conv(a, b):
        (k, m), n = a.shape, b.shape[1]
        out = memory.ndarray((m, n), dt.float32, shared_hbm)
        w, x = sb(k, m), sb(k, n)
        nisa.dma_copy(w, a)
        nisa.dma_copy(x, b)
        p = ps(m, n)
        for first, end in windows[1:]:
            nisa.nc_matmul(p[:, first:end], w, x[:, first:end])
        nisa.nc_matmul(p[32:40], w[:, 32:40], x, accumulate=True)
        nisa.nc_matmul(p, w, x)
        r = sb(m, n)
        nisa.tensor_copy(r, p)
        nisa.dma_copy(out, r)
        return out

    random = np.random.default_rng(3)
    a = random.integers(-4, 5, (8, 40)).astype(np.float32)
    b = random.integers(-4, 5, (8, 10)).astype(np.float32)
    whole = a.T @ b
    expected = whole.copy()
    for first, end in windows[1:]:
        expected[:, first:end] += whole[:, first:end]
    expected[32:] += whole[32:]
    np.testing.assert_array_equal(nki.simulate(conv)(a, b), expected)


def test_a_product_over_rows_of_two_kinds_by_its_values():
    import ncc.nki as nki

    @nki.jit
    def rows(a, b):
        (k, m), n = a.shape, b.shape[1]
        out = memory.ndarray((m, n), dt.float32, shared_hbm)
        w, x, r = sb(k, m), sb(k, n), sb(m, n)
        nisa.dma_copy(w, a)
        nisa.dma_copy(x, b)
        p = ps(m, n)
        nisa.nc_matmul(p[32:64], w[:, 32:64], x)
        nisa.nc_matmul(p, w, x)
        nisa.tensor_copy(r, p)
        nisa.dma_copy(out, r)
        return out

    random = np.random.default_rng(4)
    a = random.integers(-4, 5, (8, 64)).astype(np.float32)
    b = random.integers(-4, 5, (8, 6)).astype(np.float32)
    expected = a.T @ b
    expected[32:] *= 2
    np.testing.assert_array_equal(nki.simulate(rows)(a, b), expected)
