"""Rules of the Activation, vector and Pool opcodes (L14 to L25)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ncc.encode.codes import (
    ACT_FUNC,
    EXTRA_ARITH,
    GENERAL_ARITH,
    GENERAL_BITVEC,
    INTEGER_BAND,
    PARAMETRIC,
    TABLE_SETS,
    TAG_SIZE,
    TAGS,
)
from ncc.encode.legal_tensor import Check, Fault, Fields
from ncc.encode.tables import Row
from ncc.encode.values import bits_f32
from ncc.ir.isa import At
from ncc.target import Target

ARITH = GENERAL_ARITH | EXTRA_ARITH | INTEGER_BAND
REDUCES = frozenset({4, 5, 6, 8, 9})
MINUS_FLT_MAX = 0xFF7FFFFF
FUNCS = frozenset(ACT_FUNC.values())
SAME_COUNT = {"Copy", "Cast", "Reciprocal", "StreamTranspose", "StreamShuffle", "TensorCumulative"}


def elements(at: At) -> int:
    return prod(n for _, n in at.dims)


def same_counts(f: Fields, *names: str) -> Iterator[Fault]:
    counts = [elements(f[name]) for name in names]
    for name, count in zip(names[1:], counts[1:], strict=True):
        if count != counts[0]:
            said = f"{names[0]} has {counts[0]} elements a partition and {name} has {count}"
            yield 714, said, "elementwise operations walk equal counts"


def op_class(f: Fields, row: Row, *names: str) -> Iterator[Fault]:
    allowed = GENERAL_BITVEC if row.mnemonic.endswith("Bitvec") else ARITH
    for name in names:
        if (code := f.get(name, 0)) not in allowed:
            yield 733, f"{name} is {code:#x}, an operation that {row.mnemonic} has not", ""


def two_sources(f: Fields) -> Iterator[Fault]:
    a, b = f["src0"], f["src1"]
    if a.space == b.space == "psum":
        yield 715, "both sources are in PSUM", "at most one may be"
    if a.space == b.space == "sb" and a.partition // 32 != b.partition // 32:
        said = f"the sources start at partitions {a.partition} and {b.partition}"
        yield 715, said, "two SBUF sources start in one quadrant"


def pointer(f: Fields, source: str, name: str, sbuf_size: int, one: int = 1) -> Iterator[Fault]:
    """An immediate that is read through a pointer: a column of fp32 in SBUF or PSUM."""
    code, bits = f.get(source, 0), f.get(name, 0)
    if code == one and (bits >= 0x2400000 or bits % 4):
        yield 706, f"{name} points at {bits:#x}, which is no column of fp32", ""
    elif code == one and bits < 0x2000000 and bits & 0x3FFFF >= sbuf_size:
        yield 705, f"{name} points past the {sbuf_size} bytes of a partition", ""
    if code == 2 and bits >= 64:
        yield 726, f"{name} names register {bits}; there are 64", ""


def activate(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    yield from same_counts(f, "src", "dst")
    func = f.get("act_func", 0)
    if func not in FUNCS:
        yield 725, f"act_func {func} is no function", ""
    elif func not in PARAMETRIC and (f.get("imm", 0) or f.get("imm_src", 0)):
        yield 725, f"act_func {func} has an imm", "only parametric functions have one"
    if func not in (128, 129):
        yield from pointer(f, "imm_src", "imm", target.sbuf_size)
    yield from pointer(f, "scale_src", "scale", target.sbuf_size)
    if f.get("bias_src_n", 0) != 1:
        if f.get("bias_src_n", 0) == 0:
            yield from pointer(f, "bias_src_n", "bias", target.sbuf_size, 0)
        elif f.get("bias", 0) >= 64:
            yield 726, f"bias names register {f['bias']}; there are 64", ""


def table_load(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    if (number := f.get("table_set", 0)) >= len(TABLE_SETS):
        yield 725, f"table_set {number} is no set; there are {len(TABLE_SETS)}", ""


def tensor_tensor(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    yield from same_counts(f, "src0", "src1", "dst")
    yield from two_sources(f)
    if row.mnemonic.startswith("TensorTensor"):
        yield from op_class(f, row, "op")
    elif f.get("op", 0):
        yield 733, f"op of {row.mnemonic} is {f['op']:#x} and must be 0", ""
    if row.mnemonic == "CopyPredicated" and f.get("src1_dtype") != f.get("out_dtype"):
        yield 718, "the data and dst of a CopyPredicated differ in dtype", "use CastPredicated"


def tensor_scalar(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    yield from same_counts(f, "src", "dst")
    yield from pointer(f, "imm0_src", "imm0", target.sbuf_size)
    yield from pointer(f, "imm1_src", "imm1", target.sbuf_size)
    yield from op_class(f, row, "op0", "op1")
    op0, op1, command = (f.get(x, 0) for x in ("op0", "op1", "accumulator_cmd"))
    if row.mnemonic.startswith("TensorScalarCache"):
        if op1 not in REDUCES or command not in (2, 3, 4) or f.get("reverse", 0):
            said = f"op1 {op1:#x}, accumulator_cmd {command}, reverse {f.get('reverse', 0)}"
            yield 717, f"{row.mnemonic} with {said}", "op1 reduces, the command is 2, 3 or 4"
        for name in ("in_dtype", "out_dtype"):
            if "float" not in TAGS.get(f.get(name, 0), ""):
                yield 717, f"{name} of {row.mnemonic} is an integer type", ""
        return
    if command:
        yield 716, f"accumulator_cmd of {row.mnemonic} is {command} and must be 0", ""
    if not op0 and op1:
        yield 716, "op0 is bypass and op1 is not", "put the operation first"
    if not op1 and (f.get("imm1", 0) or f.get("imm1_src", 0)):
        yield 716, "there is an imm1 without an op1", ""
    if f.get("reverse", 0) > 3:
        yield 734, f"reverse is {f['reverse']}, outside 0..3", ""


def scalar_tensor_tensor(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    yield from same_counts(f, "src0", "src1", "dst")
    yield from two_sources(f)
    yield from pointer(f, "imm0_src", "imm0", target.sbuf_size)
    if row.mnemonic == "SelectReduce":
        if f.get("op0", 0) or f.get("op1", 0) != 8:
            yield 733, "SelectReduce takes op0 bypass and op1 max", ""
    else:
        yield from op_class(f, row, "op0", "op1")
        if f.get("accumulator_cmd", 0):
            yield 716, f"accumulator_cmd of {row.mnemonic} is not 0", ""


def tensor_reduce(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    """The opcodes of S4D4_TR: reductions, copies, transposes of blocks."""
    name = row.mnemonic
    if name.startswith(("TensorReduce", "TransposeTensorReduce")):
        yield from op_class(f, row, "op")
        dims = f.get("op_dim", 0)
        if not 2 <= dims <= 5:
            yield 719, f"op_dim is {dims}, outside 2..5", "2 is X, 3 XY, 4 XYZ, 5 XYZW"
            return
        kept = prod(n for _, n in f["src"].dims[dims - 1 :])
        if elements(f["dst"]) != kept:
            yield 719, f"{kept} elements are kept and dst has {elements(f['dst'])}", ""
        return
    if name.removesuffix("Bitvec") in SAME_COUNT:
        yield from same_counts(f, "src", "dst")
    if name.startswith("TensorCumulative"):
        yield from op_class(f, row, "op")
        return
    if used := [x for x in ("negated", "op", "op_dim") if f.get(x, 0)]:
        yield 701, f"{used[0]} of {name} is {f[used[0]]} and must be 0", ""
    same = f.get("in_dtype", 0) == f.get("out_dtype", 0)
    if (name == "Copy" and not same) or (name == "Cast" and same):
        yield 718, f"{name} with {'equal' if same else 'different'} dtypes", "Cast converts"
    if name == "StreamTranspose":
        count = elements(f["src"])
        if f.get("nchan", 0) % 32 or count % 32 or not same:
            said = f"StreamTranspose of {f.get('nchan', 0)} partitions with {count} elements"
            yield 720, said, "both are multiples of 32, and the dtypes are equal"


def counted(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    """D1_RD and D4_MR, which say the number of elements twice."""
    count, written = f.get("count", 0), elements(f["dst"])
    if row.struct == "D1_RD":
        if count != 1 or written != 1:
            yield 724, f"count is {count} and dst has {written} elements", "both are 1"
        if f.get("negated", 0) > int(row.mnemonic == "DveReadAccumulator"):
            yield 724, f"negated of {row.mnemonic} is {f['negated']}", ""
    elif count != written:
        yield 714, f"count is {count} and dst has {written} elements", ""
    size = TAG_SIZE.get(f.get("out_dtype", 0), 4)
    if size < 4 and f.get("set_value", 0) >> 8 * size:
        yield 743, f"set_value {f['set_value']:#x} has more than the {size} bytes of dst", ""


def search(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    """The opcodes of S4D2_BN: eight largest, indices; statistics only need their patterns."""
    if row.mnemonic not in ("Max8", "FindIndex8"):
        return
    count, written = elements(f["src"]), elements(f["dst"])
    if not 8 <= count <= 16_384 or written != 8:
        yield 721, f"{row.mnemonic} of {count} elements into {written}", "8..16384 into 8"
    if f.get("even_count", 0) or f.get("odd_count", 0):
        yield 721, f"the counts of {row.mnemonic} are not 0", ""
    if row.mnemonic == "FindIndex8" and f.get("out_dtype", 0) not in (5, 9):
        yield 721, "FindIndex8 writes uint16 or uint32", ""


def range_select(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    yield from same_counts(f, "src", "dst")
    base = bits_f32(f.get("base", 0))
    if f.get("reduce_op", 0) != 8 or f.get("fill", 0) != MINUS_FLT_MAX:
        yield 722, "RangeSelect takes reduce_op max and the fill -FLT_MAX", ""
    if not abs(base) <= 1 << 24 or base != int(base):
        yield 722, f"the base {base} is no whole number up to 2^24", ""
    if f.get("reduce_cmd", 0) not in (0, 2, 3):
        yield 722, f"reduce_cmd is {f['reduce_cmd']}; it is 0, 2 or 3", ""
    for name in ("comp_op0", "comp_op1"):
        if not 0x12 <= f.get(name, 0) <= 0x16:
            yield 722, f"{name} {f.get(name, 0):#x} is no comparison", ""
    yield from pointer(f, "bound0_src", "bound0", target.sbuf_size)
    yield from pointer(f, "bound1_src", "bound1", target.sbuf_size)


def affine(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    counts = [prod(n for _, n in f["pattern"][1])] + [
        elements(f[x]) for x in ("src", "dst") if x in f
    ]
    if len(set(counts)) > 1:
        yield 723 if "src" in f else 714, f"the patterns have {counts} elements", ""
    if row.mnemonic == "AffineSelect":
        if gen > 2 and "psum" in (f["src"].space, f["dst"].space):
            yield 723, "AffineSelect touches PSUM", "generation 3 takes SBUF only"
        if f.get("fill_reg", 0) >= 64:
            yield 726, f"fill_reg names register {f['fill_reg']}; there are 64", ""
        if f.get("fill_mode", 0) > 3:
            yield 734, f"fill_mode is {f['fill_mode']}, outside 0..3", ""


CHECKS: dict[str, tuple[Check, ...]] = {
    "S3D3_AC": (activate,),
    "TABLE": (table_load,),
    "S3S3D3_TT": (tensor_tensor,),
    "S3D3_TS": (tensor_scalar,),
    "S2S2D2_STT": (scalar_tensor_tensor,),
    "S4D4_TR": (tensor_reduce,),
    "D1_RD": (counted,),
    "D4_MR": (counted,),
    "S4D2_BN": (search,),
    "S2D2_RS": (range_select,),
    "S2D2_TS_AS": (affine,),
    "D4_IOTA": (affine,),
}
