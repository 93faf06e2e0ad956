"""Programs of one instruction over random views: printed BIR, run as it is meant and from its bytes.

Each operand is a tile of its own, filled from an input; each result is a tile whose old contents
come from an input too, and which is saved as a whole. So what an instruction leaves alone is
compared as well.
"""

from __future__ import annotations

from math import prod

import attrs
import numpy as np

from ncc import driver, passes
from ncc.interp.bir import run as meaning
from ncc.ir.bir_reader import Reader
from ncc.ir.bir_text import show
from ncc.ir.data import FLOATS, numpy_type, size_of
from ncc.ir.neff import Neff
from ncc.passes.bir import lower_select
from ncc.sim.run import run_neff
from ncc.stages import Stage
from ncc.target import TARGETS
from ncc.verify import Verifier

START = "alloc-dram"


def facts() -> tuple[str, ...]:
    """What the passes that are left need of their input."""
    names = list(passes.called().items())
    at = [name for name, _ in names].index(START) + 1
    given: set[str] = set()
    found: set[str] = {"patterns-are-expressible", "psum-cells-are-four-bytes"}
    for _, entry in names[at:]:
        one = passes.load(entry)
        if one.source == "bir":
            found |= set(one.needs) - given
            given |= set(one.gives)
    return tuple(sorted(found))


class Program:
    """A program while it is built: tiles, then lines."""

    def __init__(self, seed: int = 0, target: str = "trn2") -> None:
        self.draw = np.random.default_rng(seed)
        self.target = TARGETS[target]
        self.sets: list[str] = []
        self.head: list[str] = []
        self.body: list[str] = []
        self.tail: list[str] = []
        self.inputs: list[np.ndarray] = []
        self.byte = {"SB": 0, "PSUM": 0}
        self.count = 0

    # --- values and views -------------------------------------------------------------------------

    def values(self, dtype: str, rows: int, width: int) -> np.ndarray:
        kind = numpy_type(dtype)
        if dtype in FLOATS:
            return (self.draw.normal(size=(rows, width)) * 3).astype(np.float32).astype(kind)
        info = np.iinfo(kind)
        low, high = max(info.min, -1000), min(info.max, 1000)
        return self.draw.integers(low, high, (rows, width), endpoint=True).astype(kind)

    def view(
        self, count: int, pairs: int, repeats: bool = False
    ) -> tuple[list[tuple[int, int]], int, int]:
        """Random pairs over `count` elements: (step, num) slowest first, their offset, their span."""
        nums: list[int] = []
        left = count
        while left > 1 and len(nums) < pairs - 1:
            divisors = [d for d in range(2, left + 1) if left % d == 0]
            nums.append(int(self.draw.choice(divisors)))
            left //= nums[-1]
        if left > 1:
            nums.append(left)
        found: list[tuple[int, int]] = []
        span, offset = 1, 0
        for num in nums or [1]:
            step = span * int(self.draw.integers(1, 3)) if num > 1 else 1
            if repeats and num > 1 and self.draw.random() < 0.2:
                step = 0
            span += step * (num - 1)
            if step and num > 1 and self.draw.random() < 0.2:
                offset += step * (num - 1)
                step = -step
            found.append((step, num))
        return found[::-1], offset, span

    # --- tiles ------------------------------------------------------------------------------------

    def tile(
        self,
        dtype: str,
        rows: int,
        count: int,
        pairs: int = 3,
        *,
        out: bool = False,
        data: np.ndarray | None = None,
        plain: bool = False,
        base: int = 0,
        memory: str = "SB",
        repeats: bool = False,
        shape: list[tuple[int, int]] | None = None,
    ) -> str:
        """An operand of `count` elements a partition; its text. `data` fills what it walks."""
        name = f"{'o' if out else 't'}{self.count}"
        self.count += 1
        if shape is not None:
            walk, offset, span = shape, 0, 1 + sum(s * (n - 1) for s, n in shape)
        elif plain:
            walk, offset, span = [(1, count)], 0, count
        else:
            walk, offset, span = self.view(count, pairs, repeats and not out)
        before = 0 if plain else int(self.draw.integers(0, 3))
        offset += before
        width = before + span + (0 if plain else int(self.draw.integers(0, 3)))
        if memory == "PSUM":
            width = max(width, 1)
        whole = self.values(dtype, rows, width)
        if data is not None:
            at = np.full((), offset, np.int64)
            for step, num in walk:
                at = np.add.outer(at, np.arange(num) * step)
            whole[:, at.reshape(-1)] = data.reshape(rows, -1)
        self.inputs.append(whole)
        size = size_of(dtype) * width
        self.sets.append(f"set x_{name} {dtype} ({rows},{width}) kind=ExternalInput")
        self.sets.append(f"  loc x_{name} DRAM (1,{rows * size}) allocated=true")
        self._place(name, dtype, rows, width, base, memory)
        full = f":{dtype}[[{width},{rows}],[1,{width}]]"
        if memory == "PSUM":
            self._place(f"s_{name}", dtype, rows, width, base, "SB")
            self.head.append(f"l_{name} = Load DMA s_{name}{full} <- x_{name}{full}")
            self.head.append(f"c_{name} = TensorCopy DVE {name}{full} <- s_{name}{full}")
        else:
            self.head.append(f"l_{name} = Load DMA {name}{full} <- x_{name}{full}")
        if out:
            self._output(name, dtype, rows, width, base, memory, full)
        pairs_text = ",".join(f"[{s},{n}]" for s, n in walk)
        return f"{name}:{dtype}[[{width},{rows}],{pairs_text}]" + (f"+{offset}" if offset else "")

    def _place(self, name: str, dtype: str, rows: int, width: int, base: int, memory: str) -> None:
        size = size_of(dtype) * width
        at = -(-self.byte[memory] // 64) * 64
        if memory == "PSUM" and at // 2048 != (at + size - 1) // 2048:
            at = -(-at // 2048) * 2048
        self.byte[memory] = at + size
        bank = f" bank={at // 2048}" if memory == "PSUM" and at >= 2048 else ""
        place = f"addr={at} " if at else ""
        start = f" base={base}" if base else ""
        self.sets.append(f"set {name} {dtype} ({rows},{width}) memory={memory}")
        self.sets.append(
            f"  loc {name} {memory} ({rows},{size}) {place}{start}{bank} allocated=true"
        )

    def _output(
        self, name: str, dtype: str, rows: int, width: int, base: int, memory: str, full: str
    ) -> None:
        size = size_of(dtype) * width * rows
        self.sets.append(f"set y_{name} {dtype} ({rows},{width}) kind=ExternalOutput")
        self.sets.append(f"  loc y_{name} DRAM (1,{size}) allocated=true")
        source = name
        if memory == "PSUM":
            source = f"r_{name}"
            self._place(source, dtype, rows, width, base, "SB")
            self.tail.append(f"b_{name} = TensorCopy DVE {source}{full} <- {name}{full}")
        self.tail.append(f"s_{name} = Save DMA y_{name}{full} <- {source}{full}")

    def column(self, rows: int, dtype: str = "float32", data: np.ndarray | None = None) -> str:
        return self.tile(dtype, rows, 1, plain=True, data=data)

    def table(self, name: str, dtype: str, rows: int, width: int, out: bool = False) -> None:
        """A tensor in DRAM: read, or copied to an output first and then written."""
        size = size_of(dtype) * rows * width
        whole = self.values(dtype, rows, width)
        self.inputs.append(whole)
        x = f"x_{name}" if out else name
        self.sets.append(f"set {x} {dtype} ({rows},{width}) kind=ExternalInput")
        self.sets.append(f"  loc {x} DRAM (1,{size}) allocated=true")
        if out:
            self.sets.append(f"set {name} {dtype} ({rows},{width}) kind=ExternalOutput")
            self.sets.append(f"  loc {name} DRAM (1,{size}) allocated=true")
            full = f":{dtype}[[{width},{rows}],[1,{width}]]"
            self.head.append(f"f_{name} = DMACopy DMA {name}{full} <- {x}{full}")

    def inst(self, text: str) -> None:
        self.body.append(f"i{len(self.body)} = {text}")

    # --- the program ------------------------------------------------------------------------------

    def text(self) -> str:
        lines = [f"module m {self.target.arch}", "  func sg0000"]
        for line in self.sets:  # a location stands two deeper than its set
            pad = "      " if line.startswith("  ") else "    "
            lines.append(pad + " ".join(line.split()))
        lines += ["    block Block1"]
        lines += [f"      {x}" for x in (*self.head, *self.body, *self.tail, "end = Exit ALL")]
        return "\n".join((*lines, ""))

    def stage(self) -> Stage:
        module = Reader(self.text(), "", 1).module()
        assert Reader(show(module), "", 1).module() == module
        return Stage("bir", self.target, START, facts(), module)

    def check(self, orders: tuple[int | None, ...] = (None, 1)) -> list[np.ndarray]:
        """What the instruction means, which is what its bytes do in any interleaving."""
        start = self.stage()
        Verifier().check(start)
        wanted = meaning(start.module, self.target, self.inputs)
        lowered = lower_select.PASS.run(start.module, self.target)
        start = attrs.evolve(start, module=lowered)
        neff = driver.walk(start, driver.plan(start)).module
        assert isinstance(neff, Neff)
        for order in orders:
            got = run_neff(neff, self.target, self.inputs, seed=order)
            for a, b in zip(wanted, got, strict=True):
                same = np.ascontiguousarray(a).view(np.uint8) == np.ascontiguousarray(b).view(
                    np.uint8
                )
                assert same.all(), (
                    f"{int((~same).sum())} of {prod(same.shape)} bytes differ\n{a}\n{b}"
                )
        return wanted
