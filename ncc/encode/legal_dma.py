"""Rules of DMA bundles (L28, L29): totals, runs, places, transposes."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.encode.codes import TAG_SIZE
from ncc.encode.legal_tensor import Check, Fault, Fields
from ncc.encode.tables import Row
from ncc.ir.isa import At
from ncc.target import Target

WINDOW = 1 << 18  # bytes from one SBUF partition to the next, as a DMA sees them
TILE_ROWS = 16
NEVER = frozenset({0x1, 0xB, 0xC})  # eight-byte elements travel as two of four; fp32r as fp32


def parted(step: int) -> tuple[int, int]:
    """A step in bytes as partitions and bytes inside one."""
    partitions = (step + WINDOW // 2) // WINDOW
    return partitions, step - partitions * WINDOW


def on_chip(f: Fields, side: str, sbuf_size: int, columns: int) -> Iterator[Fault]:
    """A side in SBUF: every run inside one partition that exists. `columns` partitions a run."""
    at: At = f[side]
    low = high = at.byte
    first = last = at.partition
    for step, num in zip(f.get(f"{side}_step", (0, 0)), f.get(f"{side}_num", (1, 1)), strict=True):
        partitions, inside = parted(step)
        low, high = low + min(0, inside * (num - 1)), high + max(0, inside * (num - 1))
        first = first + min(0, partitions * (num - 1))
        last = last + max(0, partitions * (num - 1))
    high += f[f"{side}_size"]
    if low < 0 or high > sbuf_size:
        yield 729, f"{side} touches bytes {low} to {high - 1} of a partition of {sbuf_size}", ""
    if first < 0 or last + columns > 128:
        yield 729, f"{side} touches partitions {first} to {last + columns - 1}", "0 to 127 exist"


def dram_reach(f: Fields, side: str, extension: Fields) -> tuple[int, int]:
    """First byte and byte after the last of a side in DRAM; a tile has 16 rows of its size."""
    low = f[side].byte
    high = low + f[f"{side}_size"]
    for step, num in zip(f.get(f"{side}_step", (0, 0)), f.get(f"{side}_num", (1, 1)), strict=True):
        low, high = low + min(0, step * (num - 1)), high + max(0, step * (num - 1))
    if side == "src" and f.get("dge_op", 0) == 2:
        rows = (TILE_ROWS - 1) * extension.get("tile_src_row_step", 0)
        low, high = low + min(0, rows), high + max(0, rows)
    return low, high


def direct2d(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    op = f.get("dge_op", 0)
    if f.get("qos", 0) > 4:
        yield 729, f"qos is {f['qos']}, outside 0..4", ""
    if not 1 <= f.get("sem_increment", 0) <= 16:
        yield 729, f"sem_increment is {f.get('sem_increment', 0)}, outside 1..16", ""
    if op > 1 and gen == 2:
        yield 729, f"dge_op {op} on generation 2", "it copies only"
    tags = f.get("src_dtype", 0), f.get("dst_dtype", 0)
    if any(tag not in TAG_SIZE or tag in NEVER for tag in tags):
        yield 729, f"the dtypes {tags[0]:#x} and {tags[1]:#x} do not both travel", ""
        return
    for side in ("src", "dst"):
        yield from one_side(f, side, tags[side == "dst"])
    columns = f["src_size"] // 2 if op == 2 else 1
    for side in ("src", "dst"):
        if isinstance(f[side], At):
            yield from on_chip(f, side, target.sbuf_size, columns if side == "dst" else 1)
    if op == 2:
        yield from transpose(f, tags)
    else:
        yield from totals(f, tags)


def one_side(f: Fields, side: str, tag: int) -> Iterator[Fault]:
    address = f[side]
    if isinstance(address, int):
        mode = address >> 56
        yield 729, f"{side} has the address mode {mode:02X}", "only the static mode 10 is supported"
    if f[f"{side}_size"] % TAG_SIZE[tag]:
        said = f"{side}_size {f[f'{side}_size']} is no multiple of its element's {TAG_SIZE[tag]}"
        yield 729, said, ""
    steps, nums = f.get(f"{side}_step", (0, 0)), f.get(f"{side}_num", (1, 1))
    if 0 in nums:
        yield 702, f"{side}_num is {nums}, and 0 is outside 1..65535", ""
    repeats = any(n > 1 and not s for s, n in zip(steps, nums, strict=True))
    if side == "dst" and repeats and f.get("dge_op", 0) != 1:
        yield 729, "dst repeats with step 0", "only a source may"


def totals(f: Fields, tags: tuple[int, int]) -> Iterator[Fault]:
    moved: list[int] = []
    for side, tag in zip(("src", "dst"), tags, strict=True):
        nums = f.get(f"{side}_num", (1, 1))
        moved.append(nums[0] * nums[1] * f[f"{side}_size"] // TAG_SIZE[tag])
    if moved[0] != moved[1]:
        yield 729, f"src has {moved[0]} elements and dst has {moved[1]}", ""


def transpose(f: Fields, tags: tuple[int, int]) -> Iterator[Fault]:
    if tags[0] != tags[1] or TAG_SIZE[tags[0]] != 2:
        yield 729, "a transposing DMA takes one dtype of two bytes", ""
    if f.get("src_num", (1, 1)) != f.get("dst_num", (1, 1)):
        yield 729, "the grids of tiles differ", "src_num and dst_num are equal"
    if f["dst_size"] != 2 * TILE_ROWS:
        yield 729, f"dst_size of a transposing DMA is {f['dst_size']} and must be 32", ""
    if f["src_size"] > 256:
        yield 729, f"src_size of a transposing DMA is {f['src_size']}", "1 to 128 columns"
    dst = f["dst"]
    if isinstance(dst, At):
        if any(x % 32 for x in (dst.byte, *f.get("dst_step", (0, 0)))):
            yield 729, "dst of a transposing DMA and its steps are multiples of 32", ""
    else:
        yield 729, "a transposing DMA writes SBUF", ""


def extension(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    rows, cols = f.get("tile_src_rows", 0), f.get("tile_src_cols", 0)
    if not rows and not cols and (f.get("indirect_flags", 0) or f.get("compute_op", 0)):
        yield from indexed(f)
        return
    if rows != TILE_ROWS or not 1 <= cols <= 128:
        yield 729, f"the tile of an Extension is {rows} x {cols}", "16 rows, 1 to 128 columns"
    for name in ("indirect_flags", "index_channels", "compute_op"):
        if f.get(name, 0):
            yield 729, f"{name} of an Extension is {f[name]} and must be 0", ""


def indexed(f: Fields) -> Iterator[Fault]:
    """An extension with an index on one side, or that adds to the destination."""
    flags, rows = f.get("indirect_flags", 0), f.get("index_channels", 0)
    if f.get("compute_op", 0) > 1:
        yield 729, f"compute_op of an Extension is {f['compute_op']}", "1 adds"
    if flags & 3 == 3 or flags > 7:
        yield 729, f"indirect_flags of an Extension is {flags}", "1 the source, 2 the destination"
    if bool(flags & 3) != bool(rows) or rows > 128:
        yield 729, f"an Extension with {rows} indices and indirect_flags {flags}", ""


def named_queue(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    name = "queue" if "queue" in {x.name for x in row.fields} else "name"
    if not f.get(name):
        yield 728, f"{row.mnemonic} names no {'queue' if name == 'queue' else 'function'}", ""


CHECKS: dict[str, tuple[Check, ...]] = {
    "DIRECT2D": (direct2d,),
    "DA": (extension,),
    "TRIGGER": (named_queue,),
    "REARM": (named_queue,),
    "SWAP": (named_queue,),
    "BEGIN": (named_queue,),
    "CALL": (named_queue,),
}
