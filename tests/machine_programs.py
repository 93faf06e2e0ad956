"""Programs for the machine's tests, assembled by hand: bundles, waits and variables."""

from __future__ import annotations

import attrs
import numpy as np

from ncc.encode.bundle import record as made
from ncc.encode.codes import DTYPE, group
from ncc.ir.data import data
from ncc.ir.isa import STREAMS, At, Band, Bundle, DmaQueue, Dram, Program, Stream, Var

PE, ACT, POOL, DVE, SP = range(5)
QUEUE = 8  # S[8 + engine] counts the completions of its queue
GE, INC = 0x05, 0x13


def record(mnemonic: str, band: Band | None = None, /, **fields) -> Bundle:
    """A bundle by its fields, one of which may be called `op`."""
    op = fields.pop("op", 0)
    found = made(mnemonic, band or Band(), **fields)
    return attrs.evolve(found, fields=tuple(sorted((*found.fields, ("op", op))))) if op else found


def wait(semaphore: int, value: int) -> Band:
    return Band(wait=(GE, semaphore), value=value)


def band(awaited: tuple[int, int] | None = None, raises: int | None = None) -> Band:
    """Wait for (semaphore, value), and add one to a semaphore."""
    return Band(
        (GE, awaited[0]) if awaited else (0, 0),
        (INC, raises) if raises is not None else (0, 0),
        awaited[1] if awaited else 0,
    )


def program(streams: dict[int, list[Bundle]], variables: list[Var], name="p", neff="cayman"):
    """Five streams in wire order, and the queue sets of those that hold a DMA."""
    full = tuple(Stream(e, tuple(streams.get(i, ()))) for i, e in enumerate(STREAMS))
    queues = tuple(
        DmaQueue(f"q{e}", e, QUEUE + i)
        for i, e in enumerate(STREAMS)
        if any(b.op == "DmaDirect2d" for b in streams.get(i, ()))
    )
    return Program(name, neff, 2 if neff == "sunda" else 3, full, tuple(variables), queues)


def chip(partition: int, byte: int, *dims: tuple[int, int], space: str = "sb") -> At:
    return At(space, partition, byte, dims)


def load(engine, src, dst, rows, run, dtype, step, dst_dtype=None, size=None, awaited=None):
    """Rows of a DRAM variable to partitions: `rows` runs of `run` bytes, `step` bytes apart."""
    return record(
        "DmaDirect2d",
        band(awaited),
        src=src,
        src_num=(rows, 1),
        src_step=(step, 0),
        src_size=run,
        dst=dst,
        dst_num=(rows, 1),
        dst_step=(0x40000 if rows > 1 else 0, 0),
        dst_size=size or run,
        src_dtype=DTYPE[dtype],
        dst_dtype=DTYPE[dst_dtype or dtype],
        semaphore=QUEUE + engine,
        sem_increment=16,
    )


def save(engine, src, dst, rows, run, dtype, step, awaited=None):
    return record(
        "DmaDirect2d",
        band(awaited),
        src=src,
        src_num=(rows, 1),
        src_step=(0x40000 if rows > 1 else 0, 0),
        src_size=run,
        dst=dst,
        dst_num=(rows, 1),
        dst_step=(step if rows > 1 else 0, 0),
        dst_size=run,
        src_dtype=DTYPE[dtype],
        dst_dtype=DTYPE[dtype],
        semaphore=QUEUE + engine,
        sem_increment=16,
    )


def weights(at, k, m, dtype="bfloat16", awaited=None, **more):
    return record(
        "LoadStationary",
        band(awaited),
        src=attrs.evolve(at, dims=((1, m),)),
        in_dtype=DTYPE[dtype],
        num_active_rows=k,
        num_active_cols=m,
        row_grp=group(at.partition, k),
        col_grp=group(0, m),
        **more,
    )


def multiply(at, to, k, m, n, flags, dtype="bfloat16", awaited=None, raises=PE, **more):
    return record(
        "Matmul",
        band(awaited, raises),
        moving=attrs.evolve(at, dims=((1, n),)),
        dst=attrs.evolve(to, dims=((1, n),)),
        in_dtype=DTYPE[dtype],
        num_active_rows=k,
        num_active_cols=m,
        psum_flags=flags,
        row_grp=group(at.partition, k),
        col_grp=group(to.partition, m),
        **more,
    )


def leave(awaited=None):
    return record("Exit", band(awaited))


LHS, RHS, OUT = (
    Var("lhs", 1, "input", "bfloat16", (128, 512)),
    Var("rhs", 2, "input", "bfloat16", (512, 256)),
    Var("out", 3, "output", "float32", (128, 256)),
)


def dry_run() -> Program:
    """The seed matmul as the reference's dry run assembles it (passes reference 16.4)."""
    pe: list[Bundle] = []
    sp: list[Bundle] = []
    acc = chip(0, 0, space="psum")
    for t in range(4):
        lhs, rhs = chip(0, 0x100 * t), chip(0, 0x400 + 0x200 * t)
        pe.append(weights(lhs, 128, 128, awaited=(12, 32 * (t + 1))))
        pe.append(multiply(rhs, acc, 128, 128, 256, {0: 1, 3: 2}.get(t, 0)))
        sp.append(
            record(
                "DmaDirect2d",
                src=Dram(1, 0x100 * t),
                src_num=(8, 1),
                src_step=(16384, 0),
                src_size=256,
                dst=lhs,
                dst_num=(8, 1),
                dst_step=(32, 0),
                dst_size=32,
                src_dtype=DTYPE["bfloat16"],
                dst_dtype=DTYPE["bfloat16"],
                semaphore=12,
                sem_increment=16,
                dge_op=2,
            )
        )
        sp.append(record("Extension", tile_src_row_step=1024, tile_src_rows=16, tile_src_cols=128))
        sp.append(load(SP, Dram(2, 0x10000 * t), rhs, 128, 512, "bfloat16", 512))
    copy = record(
        "Copy",
        band((PE, 4), DVE),
        src=chip(0, 0, (1, 256), space="psum"),
        dst=chip(0, 0xC00, (1, 256)),
        in_dtype=10,
        out_dtype=10,
        nchan=128,
    )
    out = save(ACT, chip(0, 0xC00), Dram(3, 0), 128, 1024, "float32", 1024, awaited=(DVE, 1))
    return program(
        {
            PE: [*pe, leave()],
            ACT: [out, leave((9, 16))],
            DVE: [copy, leave((9, 0))],
            SP: [*sp, leave((12, 128))],
        },
        [LHS, RHS, OUT],
    )


def whole(seed: int = 0, k: int = 512) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.integers(-8, 9, (128, k)), draw.integers(-8, 9, (k, 256))


def changed(of: Program, engine: int, index: int, bundle: Bundle | None) -> Program:
    """The program with one bundle replaced, or left out."""
    streams = list(of.streams)
    bundles = list(streams[engine].bundles)
    bundles[index : index + 1] = [] if bundle is None else [bundle]
    streams[engine] = attrs.evolve(streams[engine], bundles=tuple(bundles))
    return attrs.evolve(of, streams=tuple(streams))


def with_fields(bundle: Bundle, **fields) -> Bundle:
    return record(bundle.op, bundle.band, **{**dict(bundle.fields), **fields})


def constant(name: str, number: int, dtype: str, values: np.ndarray) -> Var:
    return Var(name, number, "file", dtype, values.shape, data=data(dtype, values))
