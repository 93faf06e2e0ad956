"""NKI's ops on whole rows and by position, and its random numbers, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from nki_ops import Bench, close, covers, f64, reg


@covers("iota")
@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "uint8"])
def test_iota(dtype):
    b = Bench(1)
    b.view("d", (6, 2, 3), dtype)
    b.op("iota", {"dst": "d", "offset": 5}, pattern=((10, 3), (2, 2)), channel_multiplier=-1)
    want = [[5 - p + 10 * i + 2 * j for i in range(3) for j in range(2)] for p in range(6)]
    close(b.run("d"), np.array(want), dtype)


@covers("iota")
def test_iota_counts_in_32_bits_from_a_register():
    b = Bench(1)
    b.view("d", (1, 4), "int32")
    b.op("register_move", {"dst": reg("r"), "src": 2**31 - 2})
    b.op("iota", {"dst": "d", "offset": reg("r")}, pattern=((1, 4),))
    assert b.run("d").tolist() == [[2**31 - 2, 2**31 - 1, -(2**31), 1 - 2**31]]


COMPARE = {
    "equal": lambda v: v == 0,
    "not_equal": lambda v: v != 0,
    "greater": lambda v: v > 0,
    "greater_equal": lambda v: v >= 0,
    "less": lambda v: v < 0,
    "less_equal": lambda v: v <= 0,
}


@covers("affine_select")
@pytest.mark.parametrize("op", sorted(COMPARE))
@pytest.mark.parametrize(
    "kinds", [("bfloat16", "float32"), ("int32", "int32"), ("float32", "bfloat16")]
)
def test_affine_select(op, kinds):
    b = Bench(2)
    x = b.view("x", (7, 4, 2), kinds[0], low=-9, high=9)
    b.view("d", (7, 8), kinds[1])
    b.op(
        "affine_select",
        {"dst": "d", "on_true_tile": "x"},
        pattern=((-2, 4), (1, 2)),
        channel_multiplier=1,
        offset=-1,
        cmp_op=op,
        on_false_value=-3.0,
    )
    flat = f64(x.values()).reshape(7, 8)
    want = np.array(flat)
    for p in range(7):
        for i in range(4):
            for j in range(2):
                if not COMPARE[op](-1 + p - 2 * i + j):
                    want[p, 2 * i + j] = -3
    close(b.run("d"), want, kinds[1])


@covers("bn_stats", "bn_aggr")
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_statistics(count):
    b = Bench(count)
    x, y = b.view("x", (6, count), "bfloat16"), b.view("y", (6, 2, 4))
    b.view("s", (6, 2, 6))
    b.view("d", (6, 2))
    half = {"s": b.views["s"].access}
    from ncc.ir.kernel import Access

    whole = half["s"]
    parts = [
        Access(
            "s", "float32", (whole.pairs[0], whole.pairs[2]), whole.offset + i * whole.pairs[1][0]
        )
        for i in range(2)
    ]
    b.op("bn_stats", {"dst": parts[0], "data": "x"})
    b.op("bn_stats", {"dst": parts[1], "data": "y"})
    b.op("bn_aggr", {"dst": "d", "data": "s"})
    stats, found = b.run("s", "d")
    for part, view in enumerate((x, y)):
        flat = f64(view.values()).reshape(6, -1)
        for p in range(6):
            for h in range(2):
                own = flat[p, h::2]
                want = [len(own), own.mean(), own.var() * len(own)] if len(own) else [0, 0, 0]
                np.testing.assert_allclose(stats[p, part, 3 * h : 3 * h + 3], want, 1e-5, 1e-6)
    every = np.concatenate([f64(v.values()).reshape(6, -1) for v in (x, y)], axis=1)
    np.testing.assert_allclose(found, np.stack([every.mean(1), every.var(1)], 1), 1e-5, 1e-6)


def duplicated(b, shape, dtype="float32"):
    """A view with few different values."""
    return b.view("x", shape, dtype, values=b.rng.integers(0, 9, shape))


@covers("max8")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_eight_largest(dtype):
    b = Bench(3)
    x = duplicated(b, (6, 4, 5), dtype)
    b.view("d", (6, 8), dtype)
    b.op("max8", {"dst": "d", "src": "x"})
    want = [sorted(row.reshape(-1).tolist(), reverse=True)[:8] for row in f64(x.values())]
    np.testing.assert_array_equal(f64(b.run("d")), want)


def served(row, values, slots):
    """By slot: the first place not yet given out where a value stands, or None."""
    out, taken = [None] * 8, set()
    for slot in slots:
        for place, element in enumerate(row):
            if element == values[slot] and place not in taken:
                out[slot] = place
                taken.add(place)
                break
    return out


@covers("nc_find_index8")
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_find_index_gives_successive_places_upward(dtype):
    b = Bench(4)
    x = duplicated(b, (6, 20))
    vals = b.view("v", (6, 8), values=b.rng.integers(0, 11, (6, 8)))
    b.view("d", (6, 8), dtype)
    b.op("nc_find_index8", {"dst": "d", "data": "x", "vals": "v"})
    found, missing = b.run("d"), 0
    for p in range(6):
        want = served(x.values()[p], vals.values()[p], range(8))
        missing += want.count(None)
        top = np.iinfo(dtype).max
        assert found[p].tolist() == [top if w is None else w for w in want]
    assert missing


@covers("nc_match_replace8")
@pytest.mark.parametrize("indices", [False, True])
def test_match_replace_serves_slots_downward(indices):
    b = Bench(5)
    x = duplicated(b, (6, 20), "bfloat16")
    vals = b.view("v", (6, 8), "bfloat16", values=b.rng.integers(0, 11, (6, 8)))
    b.view("d", (6, 4, 5))
    b.view("i", (6, 8), "uint32")
    args = {"dst": "d", "dst_idx": "i" if indices else None, "data": "x", "vals": "v"}
    b.op("nc_match_replace8", args, imm=-1.5)
    found, places = b.run("d", "i")
    for p in range(6):
        want = served(x.values()[p], vals.values()[p], range(7, -1, -1))
        row = f64(x.values())[p]
        for w in want:
            if w is not None:
                row[w] = -1.5
        np.testing.assert_array_equal(f64(found[p]).reshape(-1), row)
        if indices:
            assert places[p].tolist() == [2**32 - 1 if w is None else w for w in want]


@covers("sequence_bounds")
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_sequence_bounds(dtype):
    b = Bench(6)
    b.view("x", (1, 9), dtype, values=[[1, 1, 2, 0, 0, 3, 3, 3, 0]])
    b.view("d", (1, 2, 9), dtype)
    b.op("sequence_bounds", {"dst": "d", "segment_ids": "x"})
    low, high = b.run("d")[0].tolist()
    assert low == [0, 0, 2, 9, 9, 5, 5, 5, 9]
    assert high == [2, 2, 3, -1, -1, 8, 8, 8, -1]


@covers("nonzero_with_count")
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_nonzero_with_count_sees_one_partition_of_a_core(dtype):
    b = Bench(7)
    x = b.view("x", (48, 6), dtype, values=b.rng.integers(0, 2, (48, 6)))
    d = b.view("d", (48, 7), "int32")
    b.op("nonzero_with_count", {"dst": "d", "src": "x"}, index_offset=100, padding_val=-7)
    found = b.run("d")
    for p in range(48):
        if p % 16:
            np.testing.assert_array_equal(found[p], d.values()[p])
            continue
        there = [i + 100 for i in range(6) if x.values()[p, i]]
        assert found[p].tolist() == [*there, *[-7] * (6 - len(there)), len(there)]


@covers("topk")
def test_topk_of_each_snake():
    b = Bench(8)
    n, k = 70, 20
    x = b.view("x", (32, 6), "bfloat16")
    b.view("v", (32, k), "bfloat16")
    b.view("i", (32, k), "uint32")
    b.op("topk", {"val_dst": "v", "idx_dst": "i", "src": "x"}, n=n)
    values, index = b.run("v", "i")
    for core in range(2):
        line = [float(x.values()[core * 16 + e % 16, e // 16]) for e in range(n)]
        out = [(core * 16 + j % 16, j // 16) for j in range(k)]
        best = [float(values[at]) for at in out]
        assert best == sorted(line)[-k:]
        assert [line[int(index[at])] for at in out] == best
        assert len({int(index[at]) for at in out}) == k


@covers("topk")
def test_topk_in_one_partition():
    b = Bench(8)
    x = b.view("x", (16, 6), "bfloat16")
    b.view("v", (1, 9), "bfloat16")
    b.view("i", (1, 9), "uint32")
    b.op("topk", {"val_dst": "v", "idx_dst": "i", "src": "x"}, n=90)
    values, index = b.run("v", "i")
    line = x.values().T.reshape(-1)[:90]
    assert values[0].tolist() == sorted(line.tolist())[-9:]
    assert line[index[0]].tolist() == values[0].tolist()


# --- random numbers -------------------------------------------------------------------------------


def xorwow(state, count):
    """Marsaglia's generator, word by word."""
    x, y, z, w, v, d = (int(s) for s in state)
    out = []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ (t ^ (t << 1))) & 0xFFFFFFFF
        d = (d + 362437) & 0xFFFFFFFF
        out.append((v + d) & 0xFFFFFFFF)
    return out, [x, y, z, w, v, d]


@covers("rng", "rand_set_state", "rand_get_state")
@pytest.mark.parametrize("dtype", ["uint32", "uint8"])
def test_random_words_follow_the_state(dtype):
    b = Bench(9)
    start = b.view("s", (5, 6), "uint32", low=0, high=2**32 - 1)
    b.view("d", (5, 2, 4), dtype)
    b.view("e", (5, 6), "uint32")
    b.op("rand_set_state", {"src_seeds": "s"}, "gpsimd")
    b.op("rng", {"dst": "d"}, "gpsimd")
    b.op("rand_get_state", {"dst": "e"}, "gpsimd")
    found, after = b.run("d", "e")
    mask = np.iinfo(dtype).max
    for p in range(5):
        words, state = xorwow(start.values()[p], 8)
        assert found[p].reshape(-1).tolist() == [w & mask for w in words]
        assert after[p].tolist() == state


@covers("set_rng_seed", "rng", "rand2")
def test_equal_seeds_repeat_and_lanes_differ():
    b = Bench(9)
    b.view("s", (1, 1), "uint32", values=[[42]])
    for name in "def":
        b.view(name, (64, 50), "uint32")
    b.view("u", (64, 50))
    for name in "de":
        b.op("set_rng_seed", {"src_seeds": "s"})
        b.op("rng", {"dst": name}, "vector")
    b.op("rng", {"dst": "f"}, "vector")
    b.op("rand2", {"dst": "u", "min": -2.0, "max": 3.0})
    d, e, f, u = b.run("d", "e", "f", "u")
    np.testing.assert_array_equal(d, e)
    assert (d != f).mean() > 0.99 and len(np.unique(d)) == d.size
    assert u.min() >= -2 and u.max() < 3 and abs(u.mean() - 0.5) < 0.1


@covers("dropout")
def test_dropout():
    b = Bench(9)
    x = b.view("x", (64, 100), "bfloat16", low=1, high=2)
    column = b.view("p", (64, 1), values=np.repeat([[0.0], [1.0]], 32, 0))
    for name in "de":
        b.view(name, (64, 100), "bfloat16")
    b.op("dropout", {"dst": "d", "data": "x", "prob": 0.25})
    b.op("dropout", {"dst": "e", "data": "x", "prob": column})
    d, e = b.run("d", "e")
    gone = f64(d) == 0
    assert abs(gone.mean() - 0.25) < 0.03
    np.testing.assert_array_equal(d[~gone], x.values()[~gone])
    np.testing.assert_array_equal(e[:32], x.values()[:32])
    assert not f64(e[32:]).any()
