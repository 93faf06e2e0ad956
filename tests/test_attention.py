"""The attention that ships: its plan, its errors beside numpy's, and what must not change a bit."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from attention_cases import Case, arrays, attended, case, errors, failure, run, traced

from ncc.driver import compile
from ncc.ir.kernel import ops_of
from ncc.kernels import KERNELS, kernel
from ncc.kernels.attention_masks import scales_exactly
from ncc.kernels.attention_plan import GROUP, Mask, groups, sections, visits
from ncc.kernels.attention_turns import dma_takes
from ncc.nki.running import stage_of

SMALL = Case(7, "plain", "bfloat16", 2, 1, 150, 200, 0, 64, None, False, 0, False, "", "dma", "trn2", 1)  # fmt: skip


def other(**fields):
    return attrs.evolve(SMALL, **fields)


def ops(one, name=""):
    """The instructions of a case's trace, or those of one name."""
    found = traced(one, arrays(one))
    return [op for op in ops_of(found.kernels[0].body) if not name or op.op == name]


# ---- the plan -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts", [(1,), (512,), (513,), (10_240,), (10_241,), (300, 1000), (9000, 9000)]
)
def test_every_key_is_in_one_tile(counts):
    tiles = [tile for section in sections(counts) for tile in section]
    length = sum(counts)
    positions = [tile.position + n for tile in tiles for n in range(tile.keys)]
    assert positions == list(range(length)) and all(1 <= tile.keys <= 512 for tile in tiles)
    begins = np.cumsum([0, *counts])
    for tile in tiles:  # inside its source
        assert tile.position == begins[tile.source] + tile.start
        assert tile.start + tile.keys <= counts[tile.source]


def test_many_keys_come_in_sections():
    assert len(sections((10_240,))) == 1
    assert [sum(t.keys for t in s) for s in sections((17_000,))] == [8192, 8192, 616]


def seen(mask, query, key):
    return (not mask.causal or key <= query) and (not mask.window or query - key < mask.window)


@pytest.mark.parametrize("causal, window", [(True, 0), (False, 70), (True, 1), (True, 300)])
def test_a_mask_keeps_what_is_seen_and_skips_whole_tiles(causal, window):
    mask, prior = Mask(causal, window), 37
    section = sections((prior, 1100))[0]
    for group in groups(600, prior):
        kept = visits(mask, group, [section])
        parts = {part.tile: part for _, parts in kept for part in parts}
        for n, tile in enumerate(section):
            rows = range(group.position, group.last + 1)
            keys = range(tile.position, tile.position + tile.keys)
            columns = [c for c, key in enumerate(keys) if any(seen(mask, q, key) for q in rows)]
            if not columns:
                assert n not in parts
                continue
            low, high = parts[n].low, parts[n].high
            assert low == columns[0] // 128 * 128 and parts[n].position == tile.position + low
            assert high == min(tile.keys, -(-(columns[-1] + 1) // 128) * 128)
            cut = any(not seen(mask, q, key) for q in rows for key in keys[low:high])
            assert mask.cuts(group, parts[n]) == cut


def test_the_share_of_the_dma_is_spread_evenly():
    assert [dma_takes(0.5, n, 6) for n in range(6)] == [False, True] * 3
    assert [sum(dma_takes(x, n, 10) for n in range(10)) for x in (0, 0.3, 1)] == [0, 3, 10]


def test_powers_of_two_scale_without_rounding():
    assert all(map(scales_exactly, (1, 1.0, 0.125, 2.0**-60)))
    assert not any(map(scales_exactly, (2.0, 0.75, -0.5, 0, 128**-0.5)))


# ---- what is recorded ---------------------------------------------------------------------------


def test_causal_attention_does_half_of_the_products():
    """Square: 4 groups, 4 steps of 128 keys; the diagonal's tiles are cut and masked once each."""
    square = other(heads=1, queries=512, keys=512)
    causal = attrs.evolve(square, causal=True)
    wide, narrow = len(ops(square, "nc_matmul")), len(ops(causal, "nc_matmul"))
    assert (wide, narrow) == (4 + 16, 4 + 10)
    assert len(ops(causal, "affine_select")) == 4 and not ops(square, "affine_select")


def test_a_window_takes_a_second_select_and_skips_keys():
    one = other(heads=1, queries=512, keys=512, causal=True, window=128)
    assert len(ops(one, "affine_select")) == 4 + 3
    assert len(ops(one, "nc_matmul")) == 4 + 1 + 2 * 3


def test_maxima_are_negated_and_sums_come_with_the_exponential():
    found = ops(SMALL)
    assert [op.op for op in found if op.op in ("tensor_scalar_reduce", "activation")] == [
        *("tensor_scalar_reduce", "activation", "activation")
    ] * (2 * 2)
    for op in found:
        keys = dict(op.keys)
        if op.op == "tensor_reduce" and keys.get("op") == "maximum":
            assert keys["negate"]
        if op.op == "activation" and keys.get("op") == "exp":
            assert op.arg("bias") is not None and op.arg("reduce_res") is not None


def test_bounds_select_by_range_without_a_scale():
    """Exact scales go into the queries; others into the product."""
    exact = ops(other(bounds="packed", scale=0.25))
    assert any(op.op == "range_select" for op in exact)
    assert sum(op.op == "tensor_scalar" for op in exact) == 2 * 2  # one a group
    inexact = other(bounds="packed", scale=0.3)
    assert sum(op.op == "tensor_scalar" for op in ops(inexact)) == 2 * 2  # one a tile
    assert not ops(other(bounds="packed", scale=1.0), "tensor_scalar")


def test_o_waits_in_hbm_between_sections():
    one = other(heads=1, queries=20, keys=17_000, d=16)
    found = traced(one, arrays(one)).kernels[0]
    assert [(b.dtype, b.shape) for b in found.buffers if b.name == "waiting"] == [
        ("float32", (20, 16))
    ]
    moved = [op for op in ops_of(found.body) if op.op == "dma_copy"]
    ends = [(op.arg("src").buffer, op.arg("dst").buffer) for op in moved]
    assert sum(dst == "waiting" for _, dst in ends) == 2
    assert sum(src == "waiting" for src, _ in ends) == 2
    assert len([op for op in ops_of(found.body) if op.op == "scalar_tensor_tensor"]) == 2


@pytest.mark.parametrize("where, count", [("dma", 0), ("pe", 8), (0.5, 4)])
def test_p_is_transposed_where_the_parameter_says(where, count):
    one = other(heads=1, queries=64, keys=1024, transpose_p=where)
    assert len(ops(one, "nc_transpose")) == count


def test_heads_that_share_keys_load_them_once():
    alone, four = other(heads=1), other(heads=4)
    loads = [sum(op.arg("src").buffer == "v" for op in ops(x, "dma_copy")) for x in (alone, four)]
    assert loads[0] == loads[1] > 0


# ---- the numbers --------------------------------------------------------------------------------

SAMPLE = (0, 1, 5, 10, 15, 17, 20, 28, 37, 38)


@pytest.mark.parametrize("seed", SAMPLE)
def test_errors_are_numpys_and_the_bytes_compute_the_same(seed):
    """A fixed sample of the 200 configurations of `make sweep`."""
    assert failure(case(seed)) == "", str(case(seed))


def test_the_check_can_fail():
    """A result that is off by a tenth of a percent has errors above numpy's."""
    given = arrays(SMALL)
    right = attended(SMALL, given, precise=True)
    ours, numpys = errors(SMALL, given, (right * 1.02).astype(given["q"].dtype))
    assert ours[0] > 1.1 * numpys[0] and ours[1] > 1.1 * numpys[1]


@pytest.mark.parametrize("bounds", ["", "packed"])
def test_generations_agree(bounds):
    one = other(causal=True, bounds=bounds, sink=True)
    given = arrays(one)
    made = [run(attrs.evolve(one, target=t), given, False).tobytes() for t in ("trn2", "trn3")]
    assert made[0] == made[1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_trn1_agrees_and_transposes_by_the_array(dtype):
    one = other(dtype=dtype, target="trn1", causal=True)
    assert not ops(one, "dma_transpose") and ops(one, "nc_transpose")
    given = arrays(one)
    assert run(one, given, False).tobytes() == run(attrs.evolve(one, target="trn2"), given, True).tobytes()  # fmt: skip


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_two_cores_agree_with_one(heads):
    one = other(heads=heads, causal=True, queries=300, keys=300)
    given = arrays(one)
    wanted = run(one, given, True).tobytes()
    both = attrs.evolve(one, cores=2)
    assert run(both, given, True).tobytes() == wanted
    assert run(both, given, False).tobytes() == wanted


def test_where_p_is_transposed_changes_no_bit():
    one = other(queries=40, keys=700)
    given = arrays(one)
    made = {
        run(attrs.evolve(one, transpose_p=x), given, False).tobytes() for x in ("dma", "pe", 0.5)
    }
    assert len(made) == 1


@pytest.mark.parametrize("cores", [1, 2])
def test_both_forms_give_one_neff(cores):
    one = other(queries=40, cores=cores)
    found = traced(one, arrays(one))
    bir, klir = (compile(stage_of(found, form), target=found.target) for form in ("bir", "klir"))
    assert bir.module == klir.module


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"k": (3, 9, 8), "v": (3, 9, 8)},
            "4 heads of queries cannot share 3 heads of keys evenly",
        ),
        ({"v": (2, 9, 4)}, "keys and values are (2, 9, 8), not (2, 9, 4)"),
        (
            {"q": (4, 6, 200), "k": (2, 9, 200), "v": (2, 9, 200)},
            "d is 200; a head has at most 128",
        ),
        ({"k_prior": (2, 5, 8)}, "k_prior comes with v_prior"),
        ({"bound_low": (4, 6, 1)}, "bound_low comes with bound_high"),
        ({"sink": (2, 1)}, "sink is (4, 1), not (2, 1)"),
        ({"q": (4, 300, 8), "window": 5}, "queries 128 to 255 see no key at all"),
        ({"transpose_p": 1.5}, "transpose_p is dma, pe or a share from 0 to 1, not 1.5"),
        ({"transpose_p": "act"}, "transpose_p is dma, pe or a share from 0 to 1, not 'act'"),
    ],
)
def test_what_does_not_fit_is_said(change, said):
    shapes = {"q": (4, 6, 8), "k": (2, 9, 8), "v": (2, 9, 8)}
    given = {
        name: np.zeros(x, np.float32) if isinstance(x, tuple) else x
        for name, x in {**shapes, **change}.items()
    }
    with pytest.raises(AssertionError) as told:
        kernel("attention_cte")(**given)
    assert said in str(told.value)


# ---- the product that ships ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "M, K, N, dtype", [(1, 1, 1, "float32"), (130, 260, 515, "bfloat16"), (64, 700, 33, "float16")]
)
def test_the_matmul_that_ships(M, K, N, dtype):
    import ml_dtypes

    from ncc import nki

    rng = np.random.default_rng(5)
    kind = {"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    lhsT, rhs = (rng.integers(-4, 5, shape).astype(kind) for shape in ((K, M), (K, N)))
    made = kernel("matmul")
    wanted = lhsT.astype(float).T @ rhs.astype(float)
    for call in (nki.simulate(made), made):
        found = call(lhsT, rhs, "float32")
        assert found.dtype == np.float32 and (found == wanted).all()
    assert made(lhsT, rhs).dtype == lhsT.dtype


def test_kernels_are_found_by_name():
    assert sorted(KERNELS) == ["attention_call", "attention_cte", "matmul"]
    with pytest.raises(Exception, match=r"no kernel is called 'attention'.*attention_cte"):
        kernel("attention")


def test_groups_number_the_columns_of_the_statistics():
    found = groups(300, 5)
    assert [(g.index, g.start, g.rows, g.position, g.last) for g in found] == [
        (0, 0, GROUP, 5, 132),
        (1, 128, GROUP, 133, 260),
        (2, 256, 44, 261, 304),
    ]
