"""What kernels bring that HLO never did, pass by pass: parts, views, predicates, many instructions."""

from __future__ import annotations

import time

import pytest
from kernel_lower_tools import Builder, T, compiled, stage_of

from ncc import driver
from ncc.ir.bir import Module
from ncc.ir.conflicts import clashes, flows
from ncc.ir.footprints import Footprints
from ncc.ir.redefinitions import versions
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]


def tile(b: Builder, name: str, dtype: str, rows: int, *free: int) -> T:
    x, t = b.input(name, dtype, (rows, *free)), b.sb(f"{name}_t", dtype, rows, *free)
    b.emit("dma_copy", dst=t, src=x)
    return t


def after(b: Builder, name: str) -> Module:
    start = stage_of(b.kernel(), TRN2)
    found = driver.walk(start, driver.plan(start, stop_after=name)).module
    assert isinstance(found, Module)
    return found


def values_of(b: Builder, loc: str) -> int:
    """How many values a tile holds one after the other."""
    module = stage_of(b.kernel(), TRN2).module
    return len(versions(module.main).get(loc, [0]))


def use(b: Builder, t: T) -> None:
    y = b.output(f"y{len(b.body)}", t.buffer.dtype, t.shape)
    b.emit("dma_copy", dst=y, src=t)


@pytest.mark.parametrize(("first", "second", "count"), [(24, 8, 2), (8, 24, 2), (8, 20, 1)])
def test_parts_that_cover_a_tile_begin_a_value_in_any_order(
    first: int, second: int, count: int
) -> None:
    b = Builder()
    t = b.sb("t", "float32", 128, 32)
    b.emit("memset", dst=t, value=1)
    use(b, t)
    b.emit("memset", dst=t[:, 32 - first :], value=2)
    b.emit("memset", dst=t[:, :second], value=3)
    use(b, t)
    assert values_of(b, "t") == count


def test_a_view_of_another_type_counts_in_bytes() -> None:
    """Half of the bytes as 16-bit elements is not the whole tile, though their count is."""
    b = Builder()
    t = b.sb("t", "float32", 128, 32)
    b.emit("memset", dst=t, value=1)
    use(b, t)
    b.emit("memset", dst=t.ap(((64, 128), (1, 32)), dtype="bfloat16"), value=2)
    use(b, t)
    assert values_of(b, "t") == 1


def test_a_predicated_write_is_no_new_value() -> None:
    b = Builder()
    t, mask, u = (
        tile(b, "x", "float32", 128, 8),
        tile(b, "m", "uint8", 128, 8),
        b.sb("u", "float32", 128, 8),
    )
    b.emit("memset", dst=u, value=1)
    use(b, u)
    b.emit("tensor_copy_predicated", dst=u, src=t, predicate=mask)
    use(b, u)
    assert values_of(b, "u") == 1


@pytest.mark.parametrize("columns", [64, 128])  # 32 runs are known one by one, 64 are not
def test_a_strided_write_hides_the_one_of_the_same_bytes(columns: int) -> None:
    b = Builder()
    t = tile(b, "x", "float32", 128, columns)
    for _ in range(5):
        for first in (0, 1):
            b.emit(
                "tensor_scalar", dst=t[:, first::2], data=t[:, first::2], op0="add", operand0=1.0
            )
    use(b, t)
    module = after(b, "bind-dma")
    footprints = Footprints(module)
    accesses = footprints.all(module.main.blocks[0].insts)
    places = footprints.places
    for found in (flows(accesses, places), clashes(accesses, places)):
        assert max(len(each) for each in found) <= 4


def test_edges_stay_linear_with_many_partial_writes() -> None:
    """Parts of one tile, read whole again and again: the time grows as the program does."""

    def program(n: int) -> Builder:
        b = Builder()
        t = tile(b, "x", "float32", 128, 256)
        u = b.sb("u", "float32", 128, 256)
        for i in range(n):
            part = slice(64 * (i % 4), 64 * (i % 4) + 64)
            b.emit("tensor_scalar", dst=t[:, part], data=t[:, part], op0="add", operand0=1.0)
            b.emit("tensor_copy", "vector", dst=u, src=t)
        use(b, u)
        return b

    took: list[float] = []
    for n in (200, 800):
        module = after(program(n), "bind-dma")
        footprints = Footprints(module)
        accesses = footprints.all(module.main.blocks[0].insts)
        begun = time.process_time()
        edges = sum(len(x) for x in clashes(accesses, footprints.places))
        took.append(time.process_time() - begun)
        assert edges < 30 * n
    assert took[1] < 12 * took[0] + 0.05


def test_loads_into_one_tile_keep_their_order() -> None:
    """The second load is written over the first; only the first waits for a store."""
    b = Builder()
    t, h = tile(b, "x", "float32", 128, 16), b.tensor("h", "float32", (128, 16), "hbm")
    u = b.sb("u", "float32", 128, 16)
    for _ in range(20):
        b.emit("tensor_scalar", dst=t, data=t, op0="add", operand0=1.0)
    b.emit("dma_copy", dst=h, src=t)
    b.emit("dma_copy", dst=u, src=h)
    b.emit("dma_copy", dst=u[:, :8], src=b.input("z", "float32", (128, 8)))
    use(b, u)
    insts = after(b, "pre-sched").main.blocks[0].insts
    loads = [i.name for i in insts if i.opcode == "Load"]
    assert loads[-2:] == ["i22", "i23"]


def test_an_edge_to_what_was_cut_names_its_last_piece() -> None:
    b = Builder()
    t = tile(b, "x", "float32", 128, 64)
    u = b.sb("u", "float32", 128, 64)
    first = b.emit("dma_copy", dst=u.ap(((64, 128), (1, 8), (8, 8))), src=t)
    b.emit("memset", "unknown", (first,), dst=b.sb("z", "float32", 128, 4), value=0)
    use(b, u)
    use(b, T(b.buffers[-2], ((4, 128), (1, 4))))
    module = after(b, "legalize-sizes")
    cut = [i.name for i in module.main.blocks[0].insts if i.name.startswith(f"{first}.")]
    (fill,) = [i for i in module.main.blocks[0].insts if i.opcode == "Memset"]
    assert len(cut) > 1 and fill.deps == ((cut[-1], "Ordered"),)
    compiled(b.kernel(), TRN2)
