"""Dtypes, allocations, indices, views and accesses of `ncc.nki`, against NumPy's own indexing."""

import copy
import operator
import random

import ml_dtypes
import numpy as np
import pytest

from ncc.ir.kernel import Reg, Rows, Scalar
from ncc.nki import dtypes
from ncc.nki import memory as nl
from ncc.nki.access import written
from ncc.nki.dtypes import Dtype, bir_name, dtype_of
from ncc.nki.registers import NkiScalar, VirtualRegister
from ncc.nki.tensor import NkiTensor, ds
from ncc.nki.trace import NkiTypeError, Trace, tracing
from ncc.rules import rules
from ncc.target import TARGETS

F32, BF16, I32, U8 = dtypes.float32, dtypes.bfloat16, dtypes.int32, dtypes.uint8


@pytest.fixture(autouse=True)
def trace():
    with tracing(Trace("kernel", TARGETS["trn2"])) as live:
        yield live


def places(access):
    """The element numbers that an access walks, in its shape."""
    found = np.full(access.shape, access.offset)
    for axis, (step, num) in enumerate(access.pairs):
        dims = [1] * len(access.pairs)
        dims[axis] = num
        found = found + step * np.arange(num).reshape(dims)
    return found


def numbered(shape):
    return np.arange(int(np.prod(shape))).reshape(shape)


def refused(code, call, *words):
    with pytest.raises(Exception) as found:
        call()
    assert getattr(found.value, "code", None) == code, found.value
    text = str(found.value)
    assert code in rules()
    assert "test_nki_tensors.py:" in text  # the kernel's line
    for word in words:
        assert word in text, text
    return text


# --- dtypes ---------------------------------------------------------------------------------------

NAMES = "bool_ int8 uint8 int16 uint16 int32 uint32 float32 tfloat32 bfloat16 float16 float8_e4m3"
NAMES += (
    " float8_e4m3fn float8_e5m2 float8_e8m0fnu float8_e4m3fn_x4 float8_e5m2_x4 float4_e2m1fn_x4"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_a_dtype_prints_as_its_name_and_is_found_by_it(name):
    one = getattr(dtypes, name)
    assert str(one) == name and f"{one}" == name
    assert getattr(dtypes, str(one)) is one
    assert one == name and name == one and (one != name) is False
    assert {one: 1}[name] == 1 and {name: 2}[one] == 2
    assert dtype_of(name) is one and copy.deepcopy(one) is one
    assert one.size == one.itemsize > 0


@pytest.mark.parametrize(
    ("one", "spellings"),
    [
        (F32, (np.float32, np.dtype("float32"), "float32", "fp32", float)),
        (BF16, (ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), "bfloat16")),
        (dtypes.float8_e4m3, (ml_dtypes.float8_e4m3, "float8e4")),
        (dtypes.float8_e4m3fn, (ml_dtypes.float8_e4m3fn, "float8_e4m3fn")),
        (dtypes.float8_e5m2, (ml_dtypes.float8_e5m2, "float8e5")),
        (I32, (np.int32, np.dtype("int32"), int)),
        (dtypes.bool_, (np.bool_, bool, "bool")),
    ],
)
def test_a_dtype_equals_all_its_spellings(one, spellings):
    for spelling in spellings:
        assert one == spelling and spelling == one and (one != spelling) is False
        assert dtype_of(spelling) is one
    assert one != np.zeros(2, one) and one != nl.ndarray((2, 2), one)
    assert one != np.int8 and one != "nothing" and one is not None and one != 3
    assert np.zeros(2, one).dtype == one


def test_equal_bits_are_not_equal_dtypes():
    assert dtypes.tfloat32 != F32 and dtypes.bool_ != U8
    assert dict.fromkeys(dtypes.ALL.values(), 0).keys() == set(dtypes.ALL.values())


def test_names_below_the_api():
    assert bir_name(dtypes.bool_) == "uint8" and bir_name(dtypes.tfloat32) == "float32"
    assert bir_name("float8_e4m3") == "float8e4" and bir_name(ml_dtypes.float8_e5m2) == "float8e5"
    assert dtypes.fp32.min == np.finfo(np.float32).min


def test_other_types_are_refused():
    refused("NCC312", lambda: nl.ndarray((2, 2), np.float64), "float64", "nl.float32")
    refused("NCC312", lambda: nl.ndarray((2, 2), "flaot32"), "did you mean float32?")
    refused("NCC312", lambda: nl.ndarray((2, 2), [3]))


# --- allocation -----------------------------------------------------------------------------------


def test_memories():
    assert nl.hbm is nl.private_hbm and nl.hbm != nl.shared_hbm and nl.hbm != nl.sbuf
    tile = nl.ndarray((4, 8), F32)
    assert tile.buffer == nl.sbuf and tile.buffer not in (nl.hbm, nl.shared_hbm, nl.private_hbm)
    assert nl.is_sbuf(tile.buffer) and nl.is_on_chip(nl.psum) and nl.is_hbm(nl.shared_hbm)
    assert not nl.is_hbm(nl.psum) and not nl.is_psum(nl.sbuf)
    assert copy.deepcopy(nl.sbuf) is nl.sbuf


def test_an_allocation_lists_a_buffer(trace):
    tile = nl.ndarray([np.int64(4), 8, 3], np.float16, buffer=nl.psum, name="acc")
    assert (tile.shape, tile.strides, tile.offset) == ((4, 8, 3), (24, 3, 1), 0)
    assert (tile.ndim, tile.size, tile.name, tile.dtype) == (3, 96, "acc", dtypes.float16)
    made = trace.storages["acc"].buffer
    assert (made.dtype, made.shape, made.memory) == ("float16", (4, 8, 3), "psum")
    assert made.origin.file == "test_nki_tensors.py"
    assert nl.ndarray((2, 2), F32, name="acc").name == "acc_2"


def test_256_partitions_are_refused_with_the_fix():
    said = "dimension 0 is the partition dimension, 256 > 128"
    refused("NCC310", lambda: nl.ndarray((256, 64), F32), said, "(128, 2, 64)")
    said = "dimension 0 is the partition dimension, 129 > 128"
    refused("NCC310", lambda: nl.zeros((129, 64), F32, buffer=nl.psum), said, "128 rows")
    nl.ndarray((256, 64), F32, buffer=nl.hbm)


def test_shapes_that_are_none():
    refused("NCC311", lambda: nl.ndarray((128,), F32), "partitions first")
    refused("NCC311", lambda: nl.ndarray((128, 0), F32))
    refused("NCC311", lambda: nl.ndarray((), F32, buffer=nl.hbm))
    refused("NCC313", lambda: nl.ndarray((128, 64 / 2), F32), "//")
    refused("NCC320", lambda: nl.ndarray((2, 2), F32, buffer="sbuf"), "nl.sbuf")
    refused("NCC330", lambda: nl.ndarray((2, 2), F32, bufer=nl.sbuf), "did you mean buffer?")


def test_addresses(trace):
    tile = nl.ndarray((32, 8), BF16, address=(32, 64))
    assert trace.storages[tile.name].buffer.address == (32, 64) == tile.address
    refused("NCC326", lambda: nl.ndarray((65, 8), BF16, address=(64, 0)), "64 to 128")
    refused("NCC326", lambda: nl.ndarray((4, 8), F32, address=(0, 6)), "multiples of 4")
    refused("NCC326", lambda: nl.ndarray((4, 512), F32, nl.psum, address=(0, 16000)), "16384")
    refused("NCC326", lambda: nl.ndarray((4, 8), F32, nl.hbm, address=(0, 0)))
    refused("NCC326", lambda: nl.ndarray((4, 8), F32, address=5))


def test_fills_record_what_writes_them(trace):
    nl.zeros((4, 8), F32)
    nl.full((4, 8), np.float32(2.5), BF16)
    acc = nl.ones((4, 8), F32, nl.psum)
    like = nl.zeros_like(acc, dtype=BF16)
    assert like.shape == acc.shape and like.dtype == BF16 and like.buffer == nl.psum
    assert nl.empty_like(acc).dtype == F32
    assert [op.op for op in trace.bodies[0]] == ["memset"] * 4
    assert [dict(op.keys).get("value", 0) for op in trace.bodies[0]] == [0, 2.5, 1, 0]
    assert written(acc.storage, acc.access()).all()
    refused("NCC325", lambda: nl.full((2, 2), 0.5, I32), "0.5")
    refused("NCC325", lambda: nl.full((2, 2), float("inf"), I32), "inf")
    refused("NCC325", lambda: nl.full((2, 2), acc, F32), "a number")


def test_hbm_is_filled_by_dma(trace):
    big = nl.full((5, 1000), 3.0, F32, nl.shared_hbm)
    seen = np.zeros(big.size, int)
    for op in trace.bodies[0]:
        if op.op == "dma_copy":
            seen[places(op.arg("dst")).ravel()] += 1
            assert places(op.arg("dst")).size == places(op.arg("src")).size
    assert (seen == 1).all()


def test_constants(trace, tmp_path, monkeypatch):
    table = np.arange(12, dtype=np.int32).reshape(3, 4)
    np.save(tmp_path / "table.npy", table)
    for source in (table, str(tmp_path / "table.npy"), tmp_path / "table.npy"):
        made = nl.shared_constant(source)
        buffer = trace.storages[made.name].buffer
        assert buffer.kind == "const" and made.dtype == I32 and nl.is_hbm(made.buffer)
        assert (buffer.data.array() == table).all()
    assert nl.shared_constant([1.5, 2.0]).dtype == F32
    refused("NCC325", lambda: nl.shared_constant(str(tmp_path / "none.npy")), "none.npy")
    eye = nl.shared_identity_matrix(48, BF16)
    assert eye.shape == (48, 48) and eye.buffer == nl.sbuf
    last = trace.bodies[0][-1]
    assert last.op == "dma_copy" and last.arg("dst").buffer == eye.name
    assert (trace.storages[last.arg("src").buffer].buffer.data.array() == np.eye(48)).all()
    refused("NCC310", lambda: nl.shared_identity_matrix(129))


def test_names_work_outside_a_kernel():
    from ncc.nki import trace as module

    kept, module._live[:] = module._live[:], []
    try:
        assert nl.tile_size.pmax == 128 and nl.tile_size.sbuf_fmax == 212984 // 4
        assert nl.tile_size.psum_fmax == nl.tile_size.psum_bank_fmax == 512

        def kernel(x: nl.ndarray | None = None, y: NkiTensor = None, d: Dtype = BF16):
            return x, y, d

        assert kernel() == (None, None, BF16)
        refused("NCC301", lambda: nl.ndarray((2, 2), F32), "nl.ndarray")
    finally:
        module._live[:] = kept


def test_isinstance():
    tile = nl.ndarray((2, 2), F32)
    assert isinstance(tile, nl.ndarray) and isinstance(tile, NkiTensor)
    assert not isinstance(3, nl.ndarray)
    assert NkiTensor((2, 3), F32, buffer=nl.psum).buffer == nl.psum


def test_regions_of_an_early_release():
    assert nl.sbuf.view(dtype=F32, shape=(4, 8)).shape == (4, 8)
    piece = nl.sbuf.ptr(size=(16, 64), offset=(0, 128))
    a = piece.ptr(size=(16, 32), offset=(0, 32)).view(BF16, (16, 2, 8))
    assert a.shape == (16, 2, 8) and a.address == (0, 128) and a.access().offset == 16
    assert nl.ndarray((16, 32), BF16, buffer=piece).storage is a.storage


# --- indexing -------------------------------------------------------------------------------------

SHAPES = [(6, 8), (6, 4, 5), (5, 3, 4, 2)]


def drawn_index(rng, shape):
    index = []
    for n in shape:
        kind = rng.randrange(5)
        a = rng.randrange(n)
        b = rng.randint(a + 1, n)
        if kind == 0:
            index.append(a if rng.random() < 0.5 else a - n)
        elif kind == 1:
            index.append(slice(a, b))
        elif kind == 2:
            index.append(slice(a, b, rng.randint(1, 3)) if index else slice(a - n, None))
        elif kind == 3:
            index.append(slice(None))
        else:
            index.append(np.int64(a))
    first, end = sorted(rng.choices(range(len(shape) + 1), k=2))
    if rng.random() < 0.3:
        index[first:end] = [Ellipsis]
    elif end:
        index[end:] = []
    return tuple(index)


@pytest.mark.parametrize("memory", [nl.hbm, nl.sbuf])
def test_indices_mean_what_they_mean_in_numpy(memory):
    rng = random.Random(7)
    for n in range(400):
        shape = rng.choice(SHAPES)
        index = drawn_index(rng, shape)
        view = nl.ndarray(shape, F32, memory)[index]
        want = numbered(shape)[index]
        found = places(view.access(compute=False))
        assert (found.ravel() == np.ravel(want)).all(), (n, shape, index)
        assert view.shape == found.shape
        if memory == nl.hbm:
            assert view.shape == (want.shape or (1,))
        else:
            full = [slice(None)] * len(shape)
            at = index.index(Ellipsis) if Ellipsis in index else len(index)
            spare = len(shape) - len(index) + (Ellipsis in index)
            each = (*index[:at], *full[:spare], *index[at + 1 :])
            kept = [k for k, one in enumerate(each) if isinstance(one, slice) or k == 0]
            sizes = [
                len(range(n)[e]) if isinstance(e, slice) else 1
                for n, e in zip(shape, each, strict=True)
            ]
            expected = [sizes[k] for k in kept]
            assert view.shape == tuple(expected + [1] * (2 - len(expected)))


def test_on_chip_indices_keep_two_dimensions():
    tile = nl.ndarray((64, 4, 16), F32)
    assert tile[0, 0, 10].shape == (1, 1) and tile[:, 0, 10].shape == (64, 1)
    assert tile[3].shape == (1, 4, 16) and tile[:, 2].shape == (64, 16)
    assert nl.ndarray((64, 8), F32)[:, 3].shape == (64, 1)
    assert nl.ndarray((3, 5), F32, nl.hbm)[2, 1].shape == (1,)


def test_chained_indices_compose():
    numbers = numbered((4, 6, 10))
    chained = nl.ndarray((4, 6, 10), F32, nl.hbm)[1:4][2, 1::2][:, 2:9:3][1]
    assert (places(chained.access()) == numbers[1:4][2, 1::2][:, 2:9:3][1]).all()


def test_ranges_and_ds_are_slices():
    tile = nl.ndarray((128, 512), F32)
    same = [tile[0:32, 64:128:2], tile[range(32), range(64, 128, 2)]]
    same.append(tile[ds(0, 32), range(64, 127, 2)])
    assert len({view.access() for view in same}) == 1
    assert tile[ds(np.int32(64), 64), ds(0, np.int64(5))].access() == tile[64:128, 0:5].access()


def test_new_axes():
    assert nl.ndarray((3, 5), F32, nl.hbm)[:, None, 1:4].shape == (3, 1, 3)
    assert nl.ndarray((3, 5), F32)[:, :, None].shape == (3, 5, 1)


def test_bounds_are_never_clamped():
    tile = nl.ndarray((64, 8), F32, name="tile")
    refused("NCC314", lambda: tile[:, 0:9], "0:9", "dimension 1", "tile (64 x 8)", "8 elements")
    refused("NCC314", lambda: tile[64], "index 64")
    refused("NCC314", lambda: tile[:, -9])
    refused("NCC314", lambda: tile[ds(60, 8)], "60:68")
    refused("NCC314", lambda: tile[:, :, 0], "2 dimensions")
    refused("NCC314", lambda: tile[:, 7:0:-1])
    refused("NCC315", lambda: tile[0:64:2])
    refused("NCC313", lambda: tile["a"], "str")
    refused("NCC313", lambda: tile[:, 0.5], "float")
    refused("NCC313", lambda: tile[:, 0.0:2.0], "0.0")
    refused("NCC313", lambda: tile[..., ...])
    empty = tile[:, 3:3]
    assert empty.shape == (64, 0)
    refused("NCC314", lambda: empty.access("tensor_copy: src"), "tensor_copy: src (tile)")


# --- run-time indices -----------------------------------------------------------------------------


def test_registers_and_tiles_as_indices():
    reg = VirtualRegister(Reg("r7"))
    tile = nl.ndarray((64, 5, 16), F32)
    index = nl.ndarray((1, 1), I32)
    row = tile[:, reg].access()
    assert row.pairs == ((80, 64), (1, 16)) and row.moves == (Scalar(Reg("r7"), 16, 5),)
    assert tile.select(1, reg).access() == row
    assert tile.select(1, index).access().moves == (Scalar(index.access(), 16, 5),)
    part = tile[:, index, 2:4].access()
    assert part.pairs == ((80, 64), (1, 2)) and part.offset == 2 and part.moves[0].limit == 5
    window = tile[:, :, ds(reg, 6)].access()
    assert window.shape == (64, 5, 6) and window.moves == (Scalar(Reg("r7"), 1, 11),)
    refused("NCC316", lambda: tile[reg], "partitions")
    refused("NCC316", lambda: tile.select(1, reg).select(1, reg), "one run-time index")
    refused("NCC322", lambda: tile[:, nl.ndarray((1, 1), F32)], "float32")
    refused("NCC322", lambda: tile[:, :, reg:], "nl.ds")


def test_a_slice_between_two_registers(trace):
    i = NkiScalar(trace.register())
    tile = nl.ndarray((32, 48), F32)
    assert tile[:, i : i + 2].shape == (32, 2)
    low = i * 4
    view = tile[:, low : (i + 1) * 4].access()
    assert view.shape == (32, 4) and view.moves == (Scalar(low.reg, 1, 45),)
    refused("NCC322", lambda: tile[:, i : i + i], "nl.ds")
    refused("NCC322", lambda: tile[:, i : i + 4 : 2], "nl.ds")
    refused("NCC314", lambda: tile[:, i : i + 49], "49 elements", "48")


def test_one_start_a_row():
    table = nl.ndarray((500, 6, 8), BF16, nl.hbm)
    rows = nl.ndarray((32, 3), I32)[:, 1:2]
    picked = table.vector_select(0, rows)
    assert picked.shape == (32, 6, 8) and picked.is_indirect()
    move = picked.access().moves[0]
    assert move == Rows(rows.access(), 48, 500)
    assert picked[:, 2:4].access().shape == (32, 2, 8)
    assert table[rows].access() == picked.access()
    by_pattern = table.ap([[48, 32], [1, 48]], vector_offset=rows).access()
    assert by_pattern.moves == (move,) and by_pattern.pairs == ((0, 32), (1, 48))
    refused("NCC316", lambda: picked[4:8], "one by one")
    refused("NCC316", lambda: picked[4], "one by one")
    refused("NCC316", lambda: picked.permute(1, 0, 2))
    refused("NCC316", lambda: table.vector_select(0, nl.ndarray((32, 2), I32)), "one column")
    refused("NCC316", lambda: nl.ndarray((64, 8), F32).vector_select(0, rows), "HBM")
    refused("NCC322", lambda: table.vector_select(0, nl.ndarray((32, 1), F32)), "integers")
    refused("NCC316", lambda: table.ap([[48, 33], [1, 48]], vector_offset=rows), "33", "32")


# --- access patterns ------------------------------------------------------------------------------


def test_ap_walks_the_storage():
    tile = nl.ndarray((64, 4, 16), F32)
    found = tile.ap([[64, 32], [0, 3], [2, 5]], offset=3)
    assert found.shape == (32, 3, 5)
    assert found.access().pairs == ((64, 32), (0, 3), (2, 5)) and found.access().offset == 3
    assert tile.ap(pattern=((64, 64), (1, 64))).access().shape == (64, 64)
    assert tile.ap([[64, 64]]).shape == (64, 1)


def test_ap_adds_its_offset_to_the_views():
    tensor = nl.ndarray((4, 8, 16), F32, nl.hbm)
    assert tensor.select(0, 2).ap([[16, 8], [1, 4]], offset=5).offset == 2 * 128 + 5
    assert tensor[1].ap([[16, 8], [1, 4]]).offset == 128
    assert tensor[1, 2:4].ap([[1, 3]], offset=None).offset == 160


def test_ap_takes_the_views_free_size_for_the_next_partition():
    tile = nl.ndarray((64, 96), F32)
    view = tile[:, 32:64]
    assert view.ap([[32, 64], [1, 8]]).access().pairs == ((96, 64), (1, 8))
    assert view.ap([[96, 64], [1, 8]], offset=2).access().offset == 34
    refused("NCC315", lambda: tile.ap([[192, 32], [1, 96]]), "[192, 32]", "96")
    refused("NCC315", lambda: tile.ap([[0, 32], [1, 96]]))


def test_ap_broadcasts_rows_of_hbm():
    tensor = nl.ndarray((3, 16), F32, nl.hbm)
    assert (places(tensor.ap([[0, 128], [1, 16]]).access()) == np.arange(16)).all()


def test_ap_scales_a_run_time_offset_by_the_base():
    reg = VirtualRegister(Reg("r1"))
    tensor = nl.ndarray((6, 10, 20), F32, nl.hbm)

    def moved(view, **more):
        (move,) = view.ap([[20, 4], [1, 20]], scalar_offset=reg, **more).moves
        return move.scale, move.limit

    assert moved(tensor) == (200, 6) and moved(tensor, indirect_dim=1) == (20, 10)
    assert moved(tensor[2, 3:5], indirect_dim=1) == (20, 10)  # slices keep the base
    assert moved(tensor.reshape((60, 20))) == (20, 60)  # a reshape is a new one
    assert moved(tensor.reshape((60, 20))[7:9]) == (20, 60)
    assert tensor.ap([[1, 4]], scalar_offset=3).offset == 600
    tile = nl.ndarray((1, 1), dtypes.uint32)
    assert tensor.ap([[1, 4]], scalar_offset=tile).moves[0].source == tile.access()
    refused("NCC322", lambda: tensor.ap([[1, 4]], scalar_offset=nl.ndarray((2, 1), I32)), "2 x 1")
    refused("NCC321", lambda: tensor.ap([[1, 4]], scalar_offset=reg, vector_offset=tile))


def test_ap_reads_the_bytes_as_another_type():
    tile = nl.ndarray((16, 256), I32)
    cast = tile.ap([[512, 16], [1, 512]], dtype=BF16)
    assert cast.dtype == BF16 and cast.shape == (16, 512)
    assert cast.access().dtype == "bfloat16" and cast.access().pairs[0] == (512, 16)
    view = tile[:, 4:8].ap([[512, 16], [2, 3]], offset=1, dtype=BF16)
    assert view.offset == 9
    move = nl.ndarray((4, 8), I32, nl.hbm).ap(
        [[1, 2]], scalar_offset=VirtualRegister(Reg("r")), dtype=U8
    )
    assert move.moves[0].scale == 32


def test_ap_is_checked_where_it_is_used():
    tile = nl.ndarray((64, 96), F32, name="tile")
    wide = tile.ap([[96, 64], [1, 97]])
    refused("NCC314", lambda: wide.access("dst"), "dst (tile)", "0 to 96", "96")
    late = tile.ap([[96, 64], [1, 4]], offset=96 * 3)
    refused("NCC314", lambda: late.access(compute=False), "3 to 66", "64")
    far = nl.ndarray((4, 8), F32, nl.hbm).ap([[8, 4], [1, 8]], offset=1)
    refused("NCC314", lambda: far.access(), "1 to 32", "32")
    refused("NCC321", lambda: tile.ap([[96, 0], [1, 4]]))
    refused("NCC321", lambda: tile.ap([96, 64]), "[[stride, count], ...]")
    refused("NCC321", lambda: tile.ap([[96, 64], [1, 0.5]]))


# --- views ----------------------------------------------------------------------------------------


def test_views_are_numpys():
    shape = (6, 4, 10)
    for memory in (nl.hbm, nl.sbuf):
        t, n = nl.ndarray(shape, F32, memory), numbered(shape)

        def same(view, array):
            assert (places(view.access(compute=False)) == array).all()
            assert view.shape == array.shape

        same(t.slice(1, 1, 4, 2), n[:, 1:4:2])
        same(t.select(1, 3), n[:, 3])
        same(t.select(-1, -2), n[:, :, -2])
        same(t.permute((0, 2, 1)), n.transpose(0, 2, 1))
        same(t.permute(0, 2, 1), n.transpose(0, 2, 1))
        same(t.expand_dim(1), n[:, None])
        same(t.expand_dim(3), n[..., None])
        same(t.expand_dim(2).broadcast(2, 3), np.broadcast_to(n[:, :, None], (6, 4, 3, 10)))
        same(t.expand_dim(1).squeeze_dim(1), n)
        same(t[:, :, 0:1].broadcast_to(6, 4, 7), np.broadcast_to(n[:, :, :1], (6, 4, 7)))
        same(t.reshape_dim(2, (2, 5)), n.reshape(6, 4, 2, 5))
        same(t.reshape_dim(1, (-1, 2)), n.reshape(6, 2, 2, 10))
        same(t.flatten_dims(1, 2), n.reshape(6, 40))
        same(t.reshape((6, 8, 5)), n.reshape(6, 8, 5))
        same(t.reshape(6, -1), n.reshape(6, 40))
        same(t[:, 1:3].reshape((6, 20)), n[:, 1:3].reshape(6, 20))
        same(t[:, :, 2:6].reshape((6, 4, 2, 2)), n[:, :, 2:6].reshape(6, 4, 2, 2))
        same(
            t.rearrange(("p", ("a", "b"), "c"), ("p", "b", ("c",), "a"), {"a": 2}),
            n.reshape(6, 2, 2, 10).transpose(0, 2, 3, 1),
        )
        same(t.rearrange("p a c", "p c a"), n.transpose(0, 2, 1))
        same(t.rearrange(("p", "a", "c"), ("p", ("a", "c"))), n.reshape(6, 40))
    t, n = nl.ndarray(shape, F32, nl.hbm), numbered(shape)
    same(t.permute(2, 0, 1), n.transpose(2, 0, 1))
    same(t.reshape((8, 30)), n.reshape(8, 30))
    same(t.flatten_dims(0, 1), n.reshape(24, 10))
    same(t[2:3].broadcast(0, 5), np.broadcast_to(n[2:3], (5, 4, 10)))


def test_reshape_agrees_with_numpy_about_copies():
    rng = random.Random(11)
    agreed = 0
    for _ in range(300):
        shape = rng.choice(SHAPES)
        base = nl.ndarray(shape, F32, nl.hbm)
        numbers = numbered(shape)
        index = tuple(slice(rng.randint(0, 1), n, rng.choice([1, 1, 2])) for n in shape)
        view, array = base[index], numbers[index]
        if rng.random() < 0.5:
            order = rng.sample(range(len(shape)), len(shape))
            view, array = view.permute(order), array.transpose(order)
        total, new = array.size, []
        while total > 1 and len(new) < 3:
            n = rng.choice([k for k in range(1, total + 1) if total % k == 0])
            new.append(n)
            total //= n
        new.append(total)
        again = array.reshape(new)
        if not np.shares_memory(again, array):
            refused("NCC316", lambda view=view, new=new: view.reshape(new))
            continue
        assert (places(view.reshape(new).access()) == again).all()
        agreed += 1
    assert 60 < agreed < 240


def test_views_that_are_none():
    tile = nl.ndarray((64, 4, 10), F32)
    refused("NCC316", lambda: tile.permute(1, 0, 2), "partitions")
    refused("NCC316", lambda: tile.permute(0, 1, 1))
    refused("NCC316", lambda: tile.reshape((32, 80)), "partitions")
    refused("NCC316", lambda: tile.reshape((64, 41)), "2560 elements")
    refused("NCC316", lambda: tile.reshape_dim(0, (2, 32)))
    refused("NCC316", lambda: tile.flatten_dims(0, 1))
    refused("NCC316", lambda: tile[:, :, 0:5].flatten_dims(1, 2), "(10, 1)")
    refused("NCC316", lambda: tile.expand_dim(0))
    refused("NCC316", lambda: tile[0:1].broadcast(0, 5))
    refused("NCC316", lambda: tile.broadcast(1, 5), "4 elements")
    refused("NCC316", lambda: tile.squeeze_dim(1))
    refused("NCC314", lambda: tile.slice(1, 2, 5), "slice(1, 2, 5, 1)", "has 4")
    refused("NCC314", lambda: tile.select(3, 0), "3 dimensions")
    refused("NCC316", lambda: tile.rearrange(("p", "a"), ("p", "a")), "2 dimensions")
    refused("NCC323", lambda: tile.indirect(tile), "trn3")


def test_tensor_indirection_becomes_a_gather_on_trn3():
    with tracing(Trace("kernel", TARGETS["trn3"])) as live:
        data, index = nl.ndarray((32, 40), F32), nl.ndarray((32, 3), dtypes.uint16)
        chosen = data.indirect(index, num_elem=40)
        assert chosen.shape == (32, 40) and chosen.is_indirect() and live.bodies == [[]]
        assert data.indirect(index).shape == (32, 48)
        for n in (1, 2):  # gathered anew for every use
            assert chosen.access("tensor_copy: src").buffer == chosen.name
            assert len(live.bodies[0]) == n
        gather = live.bodies[0][0]
        assert gather.op == "local_gather" and gather.arg("src_buffer") == data.access()
        assert gather.arg("index") == index.access() and gather.arg("dst").shape == (32, 40)
        refused("NCC323", lambda: chosen.access("nc_matmul: moving"), "nc_matmul")
        refused("NCC323", lambda: chosen.access("tensor_copy: dst", write=True))
        refused("NCC316", lambda: chosen[:, 0:4])
        refused("NCC323", lambda: data.indirect(index, 49), "49", "48")


def test_view_as_another_type():
    tile = nl.ndarray((16, 6, 8), F32)
    half = tile.view(BF16)
    assert half.shape == (16, 6, 16) and half.strides == (96, 16, 1) and half.dtype == BF16
    assert half[:, 2:4].view(F32).access() == tile[:, 2:4].access()
    assert tile.view(I32).access().dtype == "int32" and tile.reinterpret_cast(U8).shape[-1] == 32
    assert half.base == (16, 6, 16)
    refused("NCC316", lambda: half[:, :, 1:5].view(F32), "4 bytes")
    refused("NCC316", lambda: half[:, :, 0:3].view(F32))
    refused("NCC316", lambda: tile[:, :, ::2].view(BF16), "contiguous")
    refused("NCC316", lambda: tile[:, VirtualRegister(Reg("r"))].view(BF16), "run-time")


def test_queries():
    tile = nl.ndarray((16, 6, 8), F32)
    assert tile.is_contiguous() and tile[:, 1:3].is_contiguous() and tile[2:4].is_contiguous()
    assert not tile[:, :, 1:3].is_contiguous() and not tile.permute(0, 2, 1).is_contiguous()
    assert tile[:, 1:3].get_pattern() == [[48, 16], [8, 2], [1, 8]] == tile[:, 1:3].pattern
    assert not tile.is_indirect() and len(tile) == 16


# --- use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "count", "right"),
    [
        *[(0, 128, True), (32, 65, False), (64, 64, True), (32, 64, False), (0, 40, True)],
        *[(32, 32, True), (96, 32, True), (96, 8, True), (16, 16, False), (1, 1, False)],
        (127, 1, False),
    ],
)
def test_where_partitions_may_start(first, count, right):
    view = nl.ndarray((128, 8), F32)[first : first + count]
    assert view.access(compute=False).shape == (count, 8)
    if right:
        view.access()
    else:
        may = "0" if count > 64 else "0 or 64" if count > 32 else "0, 32, 64 or 96"
        refused(
            "NCC315", lambda: view.access("dst"), f"{count} partitions from partition {first}", may
        )


def test_a_chosen_address_counts():
    nl.ndarray((32, 8), F32, address=(32, 0)).access()
    refused("NCC315", lambda: nl.ndarray((32, 8), F32, address=(16, 0)).access(), "16")


def test_a_tensor_lives_in_its_loop_and_its_run(trace):
    before = nl.ndarray((4, 8), F32)
    with trace.body():
        inside = nl.ndarray((4, 8), F32, name="inside")
        before.access()
        inside.access()
    refused("NCC318", lambda: inside[:, 0:2].access(), "inside")
    with tracing(Trace("other", TARGETS["trn2"])):
        refused("NCC319", lambda: before.access(), "another run")


def test_writing_is_noted():
    tile = nl.ndarray((4, 8), F32)
    tile.access()
    assert not tile.storage.touched
    tile[:, 0:2].access(write=True)
    assert tile.storage.touched


def test_what_was_written_by_element():
    acc = nl.ndarray((4, 6, 8), F32, nl.psum)
    marks = np.zeros((4, 6, 8), bool)
    for view, index in (
        (acc[0:2, 1], np.s_[0:2, 1]),
        (acc[:, :, 1:7:2], np.s_[:, :, 1:7:2]),
        (acc.permute(0, 2, 1)[1:2], np.s_[1:2]),
    ):
        written(acc.storage, view.access(compute=False))[...] = True
        marks[index] = True
        assert (written(acc.storage, acc.access()) == marks).all()
    half = written(acc.storage, acc.view(BF16).access())
    assert half.reshape(4, 6, 16, -1).all(-1).tolist() == np.repeat(marks, 2, 2).tolist()
    written(acc.storage, acc.view(BF16)[3, 0, 0:1].access(compute=False))[...] = True
    whole = written(acc.storage, acc.access())
    assert whole[3, 0, 0].tolist() == [True, True, False, False]


# --- Python ---------------------------------------------------------------------------------------


def test_equality_is_identity():
    a, b = nl.ndarray((4, 8), F32), nl.ndarray((4, 8), F32)
    assert a == a and a != b and (a == b) is False
    assert operator.eq(a, None) is False and operator.ne(a, None) is True
    assert len({a, b}) == 2 and copy.deepcopy(a) is a


def test_values_are_not_known_to_python():
    tile = nl.ndarray((1, 1), I32, name="flag")

    def branch():
        if tile:
            raise AssertionError

    text = refused("NCC317", branch, "truth value", "flag")
    assert "nl.where" in text
    for call in (int, float, np.asarray, list(range(3)).__getitem__, lambda t: 3 in t):
        refused("NCC317", lambda call=call: call(tile))
    assert issubclass(NkiTypeError, TypeError)


def test_assignment_is_no_instruction():
    tile, other = nl.ndarray((4, 8), F32), nl.ndarray((4, 8), F32)

    def assign():
        tile[:, 0:2] = other[:, 0:2]

    refused("NCC324", assign, "nisa.tensor_copy")


def test_the_older_api_adds_its_own_ways(monkeypatch):
    seen = []
    monkeypatch.setattr(NkiTensor.__mro__[-2], "assign", lambda *a: seen.append(a))
    monkeypatch.setattr(NkiTensor.__mro__[-2], "operate", lambda *a: seen.append(a))
    monkeypatch.setattr(NkiTensor.__mro__[-2], "advanced", lambda t, index: (t, index))
    with tracing(Trace("old", TARGETS["trn2"], old=True)) as live:
        tile = nl.ndarray((4, 8), F32)
        tile[:, 0:2] = 3
        tile + 1
        assert tile[:, "x"] == (tile, (slice(None), "x"))
        nl.zeros((4, 8), F32, nl.psum)  # nothing is written: the first product overwrites
    assert seen == [(tile, (slice(None), slice(0, 2)), 3), ("add", tile, 1)]
    assert live.bodies == [[]]


def test_every_rule_of_the_block_is_told_apart():
    mine = [code for code in rules() if "NCC310" <= code <= "NCC329"]
    assert len(mine) == 17
