"""Programs of placed BIR that the tests of order, synchronisation and encoding share."""

from __future__ import annotations

from ncc.ir.bir import Ap, Block, Function, Inst, Loc, LocSet, Module
from ncc.passes import load
from ncc.target import TARGETS, Target

TRN2 = TARGETS["trn2"]
TAIL = (
    "flow_deps",
    "anti_deps",
    "mm_acc_flags",
    "flow_deps",
    "anti_deps",
    "expand_engines",
    "sync_waits",
    "alloc_sems",
    "load_act_tables",
    "drop_warm_loads",
)
SIZE = {"bfloat16": 2, "float16": 2, "float32": 4}


def dram(name: str, dtype: str, shape: tuple[int, ...], kind: str) -> LocSet:
    count = SIZE[dtype]
    for n in shape:
        count *= n
    return LocSet(name, dtype, shape, kind, locs=(Loc(name, "DRAM", (1, count), allocated=True),))


def chip(
    name: str,
    dtype: str,
    shape: tuple[int, int],
    at: tuple[int, ...],
    memory: str = "SB",
    base: int = 0,
) -> LocSet:
    """A set with one location for each byte in `at`."""
    dims = (shape[0], shape[1] * SIZE[dtype])
    names = [name] if len(at) == 1 else [f"{name}{n}" for n in range(len(at))]
    locs = tuple(
        Loc(x, memory, dims, byte, base, byte // 2048 if memory == "PSUM" else 0, allocated=True)
        for x, byte in zip(names, at, strict=True)
    )
    blocks = () if len(at) == 1 else (len(at),)
    return LocSet(
        name,
        dtype,
        (*blocks, *shape),
        memory=memory,
        partition_dim=len(blocks),
        locs=locs,
    )


def whole(loc: str, dtype: str, p: int, n: int, row: int = 0, offset: int = 0) -> Ap:
    return Ap(loc, dtype, ((row or n, p), (1, n)), offset)


def module(sets: tuple[LocSet, ...], insts: list[Inst], arch: str = "gen3") -> Module:
    block = Block("Block1", (*insts, Inst("x", "Exit", "ALL")))
    return Module("m", arch, (Function("sg0000", sets, (block,)),))


def seed(buffers: int = 4) -> Module:
    """The seed matmul as the reference's dry run has it, with four buffers or two."""
    at = range(buffers)
    sets = (
        dram("lhs", "bfloat16", (128, 512), "ExternalInput"),
        dram("rhs", "bfloat16", (512, 256), "ExternalInput"),
        dram("out", "float32", (128, 256), "ExternalOutput"),
        chip("lhsT", "bfloat16", (128, 128), tuple(0x100 * t for t in at)),
        chip("rhs_t", "bfloat16", (128, 256), tuple(0x400 + 0x200 * t for t in at)),
        chip("acc", "float32", (128, 256), (0,), "PSUM"),
        chip("out_sb", "float32", (128, 256), (0xC00,)),
    )
    loads: list[Inst] = []
    products: list[Inst] = []
    for t in range(4):
        source = Ap("lhs", "bfloat16", ((512, 128), (1, 1), (1, 1), (1, 128)), 128 * t)
        turned = Ap(f"lhsT{t % buffers}", "bfloat16", ((128, 128), (1, 1), (1, 1), (1, 128)))
        keys = (("mode", "Transpose"), ("transpose_op", "XZYW"))
        loads.append(Inst(f"i{2 * t}", "DMACopy", "DMA", (source,), (turned,), keys))
        moving = whole(f"rhs_t{t % buffers}", "bfloat16", 128, 256)
        rows = whole("rhs", "bfloat16", 128, 256, offset=128 * 256 * t)
        loads.append(Inst(f"i{2 * t + 1}", "Load", "DMA", (rows,), (moving,)))
        weights = whole(f"lhsT{t % buffers}", "bfloat16", 128, 128)
        acc = whole("acc", "float32", 128, 256)
        keys = (("accumulate", True),) if t else ()
        products.append(Inst(f"i{8 + t}", "Matmult", "PE", (moving, weights), (acc,), keys))
    evicted = whole("out_sb", "float32", 128, 256)
    tail = [
        Inst("i12", "TensorCopy", "DVE", (whole("acc", "float32", 128, 256),), (evicted,)),
        Inst("i13", "Save", "DMA", (evicted,), (whole("out", "float32", 128, 256),)),
    ]
    if buffers == 4:
        return module(sets, [*loads, *products, *tail])
    mixed = [x for t in range(4) for x in (*loads[2 * t : 2 * t + 2], products[t])]
    return module(sets, [*mixed, *tail])


def through(program: Module, *passes: str, target: Target = TRN2) -> Module:
    """The program after `bind-dma` and the passes named, by their files."""
    for name in ("bind_dma", *passes):
        program = load(f"bir.{name}").apply(program, target)
    return program


def bytes_of(program: Module, target: Target = TRN2) -> dict[str, list[str]]:
    """Every stream of a finished program as hexadecimal records."""
    from ncc.encode.bundle import encode_bundle

    made = load("output.encode").apply(program, target)
    return {
        stream.engine: [encode_bundle(b, target.gen).hex() for b in stream.bundles]
        for stream in made.streams
    }
