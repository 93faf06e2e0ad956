"""What every engine has: registers, branches, bundles that only wait (ISA 5.22 to 5.24)."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from ncc import numerics, numerics_registers
from ncc.encode.codes import ALU
from ncc.encode.values import at as address_of
from ncc.encode.values import bits_f32, f32_bits
from ncc.errors import NccError
from ncc.ir.data import size_of
from ncc.ir.isa import At, Dram
from ncc.sim.engine import Engine, Fields
from ncc.sim.views import View, dma_view, view

BYTES = 64
OPS = {code: name for name, code in ALU.items()}
COMPARE: dict[int, Callable[[float, float], bool]] = {
    1: operator.lt,
    2: operator.le,
    3: operator.eq,
    4: operator.ne,
    5: operator.ge,
    6: operator.gt,
}


def nothing(e: Engine, f: Fields) -> None:
    """Only the band acts. An engine has completed its earlier bundles by now, so Drain is one."""


def halt(e: Engine, f: Fields) -> None:
    raise NccError("NCC920", "stops the machine", hint="a program ends with Exit")


def queue_block(e: Engine, f: Fields) -> None:
    said = f"triggers the prepared queue block {f.get('block', 0)} of {f.get('queue', '')!r}"
    raise NccError("NCC915", said, hint="every DMA is a DmaDirect2d in the stream")


def move(e: Engine, f: Fields) -> None:
    """Registers from registers, or from the bundle."""
    if f.get("count", 0) > 2:
        raise NccError("NCC912", f"moves {f['count']} registers, where 1 or 2 can be named")
    for i in range(f.get("count", 0)):
        to = f.get("dst_regs", bytes(8))[i]
        if f.get("source", 0):
            e.set_register(to, f.get(f"imm{i}", 0))
        else:
            e.set_register(to, e.register(f.get("src_regs", bytes(8))[i]))


def _number(bits: int, dtype: str) -> int | float:
    """A register's value in a dtype."""
    if dtype == "float32":
        return bits_f32(bits)
    return bits - (1 << 32) if dtype == "int32" and bits >> 31 else bits


def alu(e: Engine, f: Fields) -> None:
    """One operation on registers; integers wrap around at 32 bits."""
    kind, out = e.dtype(f.get("src_dtype", 0)), e.dtype(f.get("dst_dtype", 0))
    name = OPS.get(f.get("op", 0), "").removesuffix("_int")
    a = _number(e.register(f.get("src0_lo", 0)), kind)
    raw = f.get("imm", 0) if f.get("source", 0) else e.register(f.get("src1_lo", 0))
    b = _number(raw & 0xFFFFFFFF, kind)
    if kind == "float32" or name in ("divide", "pow", "mod", "rsqrt"):
        with np.errstate(all="ignore"):
            value = float(numerics.alu(name, np.asarray(a), np.asarray(b)))
    else:
        if name not in numerics_registers.OPS:
            raise NccError("NCC900", f"a register operation {name or 'of this code'} is not known")
        value = numerics_registers.apply(name, int(a), int(b))
    e.set_register(f.get("dst_lo", 0), f32_bits(value) if out == "float32" else int(value))


def branch(e: Engine, f: Fields) -> None:
    """Goes on at `target`, bytes from this bundle, when the comparison holds."""
    code = f.get("compare", 0)
    if code:
        compare = COMPARE.get(code & 7 if code < 8 else code - 8)
        if compare is None:
            raise NccError("NCC912", f"there is no comparison {code}")
        kind = e.dtype(f.get("dtype", 8))
        a = _number(e.register(f.get("left", 0)), kind)
        raw = e.register(f.get("right", 0)) if code > 8 else f.get("imm", 0)
        if not compare(a, _number(raw & 0xFFFFFFFF, kind)):
            return
    step = f.get("target", 0)
    to = e.pc + step // BYTES
    if f.get("target_mode", 0) != 3 or step % BYTES or not 0 <= to < len(e.bundles):
        said = f"branches {step} bytes away, which is no bundle of {e.name}"
        raise NccError("NCC918", said)
    e.pc = to - 1  # the stream adds one


def _column(e: Engine, f: Fields) -> View:
    kind = e.dtype(f.get("dtype", 0))
    walk = ((f.get("step1", 0), f.get("num1", 1) or 1), (f.get("step0", 0), f.get("num0", 1) or 1))
    size = size_of(kind)
    if size != 4:
        raise NccError("NCC912", "a register holds 4 bytes")
    if not f.get("var", 0):  # on chip, as in the address of a DMA
        at = address_of(f.get("offset", 0))
        return view(e.mem, At(at.space, at.partition, at.byte), 1, kind)
    return dma_view(e.mem, Dram(f.get("var", 0), f.get("offset", 0)), walk, kind)


def load_registers(e: Engine, f: Fields) -> None:
    """One or two words of a DRAM variable into registers."""
    found = _column(e, f)
    if found.space.known is not None:
        e.race.access(found.box, False, e.clock, e.unit, e.done + 1, e.by)
    if not found.written(e.mem):
        raise NccError("NCC903", "loads a register from bytes that nobody wrote")
    words = found.array.reshape(-1).view(np.uint32)
    for name, word in zip(("reg0", "reg1"), words, strict=False):
        e.set_register(f.get(name, 0), int(word))


def store_registers(e: Engine, f: Fields) -> None:
    to = _column(e, f)
    if to.space.known is None:
        raise NccError("NCC921", f"writes to {to.space.name}, which is read only")
    words = [e.register(f.get(n, 0)) for n in ("reg0", "reg1")[: to.array.size]]
    values = np.array(words, np.uint32).view(to.array.dtype)
    e.write(to, values.reshape(to.array.shape))


EFFECTS = {
    "Nop": nothing,
    "EngineNop": nothing,
    "Drain": nothing,
    "InstructionFlush": nothing,
    "Notify": nothing,
    "SetOrderingMode": nothing,
    "EventSemaphore": nothing,
    "Halt": halt,
    "DMATrigger": queue_block,
    "DMARearm": queue_block,
    "DMASwapQueueSet": queue_block,
    "RegisterMove": move,
    "RegisterAlu": alu,
    "CompareAndBranch": branch,
    "TensorLoadVar": load_registers,
    "TensorStoreVar": store_registers,
}
