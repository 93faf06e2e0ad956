"""Whole-tensor Penguin functions as build-pgs leaves them, made by hand or from a seed."""

from __future__ import annotations

import math
import random
from collections import Counter
from importlib import import_module

import attrs
import numpy as np

from ncc.ir.affine import Affine
from ncc.ir.penguin import (
    Axis,
    ElementwiseOp,
    Function,
    Tensor,
    TensorContractOp,
    TensorTransposeOp,
    View,
    axis_index,
)
from ncc.ir.tile_walk import nested
from ncc.target import target

PASSES = (
    "cut_partition",
    "cut_free",
    "tile_contract",
    "emit_tiles",
    "set_precision",
    "widen_fp8fn",
    "select_insts",
    "place_psum",
    "split_acc_groups",
)


def view(tensor, *axes):
    """Each dimension indexed by one axis, or by 0 where the word is empty."""
    return View(tensor, tuple(axis_index(a) if a else Affine() for a in axes))


class Program:
    """A function in the making: each method adds an op and gives the name of what it writes."""

    def __init__(self, machine="trn2"):
        self.target = target(machine) if isinstance(machine, str) else machine
        self.tensors, self.ops, self.group = {}, [], -1

    def tensor(self, name, dtype, shape, **more):
        self.tensors[name] = Tensor(name, dtype, tuple(shape), **{"home": "dram", **more})
        return name

    def input(self, dtype, shape):
        return self.tensor(f"p{len(self.tensors)}", dtype, shape, kind="input")

    def size(self, name, axes):
        return dict(zip(axes, self.tensors[name].shape, strict=True))

    def dot(self, lhs, lhs_axes, rhs, rhs_axes, dtype="float32", swap=False, home="stream"):
        """Axes are one letter each: b is batch, m and n are free, k is contracted."""
        sizes = self.size(lhs, lhs_axes) | self.size(rhs, rhs_axes)
        batch = [a for a in lhs_axes if a[0] == "b"]
        rows = [a for a in lhs_axes if a[0] == "m"]
        columns = [a for a in rhs_axes if a[0] == "n"]
        contract = [a for a in lhs_axes if a[0] == "k"]
        self.group += 1
        views = [self.turned(lhs, lhs_axes, contract), self.turned(rhs, rhs_axes, contract)]
        axes = [*batch, *rows, *columns]
        dst = self.tensor(f"d{len(self.tensors)}", dtype, [sizes[a] for a in axes], home=home)
        partition = columns if swap else rows
        self.ops.append(
            TensorContractOp(
                f"dot{len(self.ops)}",
                view(dst, *axes),
                *views,
                tuple(Axis(a, sizes[a]) for a in (*axes, *contract)),
                tuple(contract),
                tuple(rows),
                tuple(columns),
                tuple(batch),
                swap,
                partition=tuple(partition),
                group=self.group,
            )
        )
        return dst

    def turned(self, name, axes, contract):
        """The operand, through a transpose where its last dimension is a contracted one."""
        made = any(op.dst.tensor == name for op in self.ops)
        if (made and self.tensors[name].home == "sbuf") or axes[-1] not in contract:
            return view(name, *axes)
        sizes = self.size(name, axes)
        order = [*(a for a in axes if a in contract), *(a for a in axes if a not in contract)]
        narrow = self.tensors[name].dtype in ("bfloat16", "float16")
        plain = sum(sizes[a] > 1 for a in contract) == 1 and len(axes) - len(contract) == 1
        kind = "dma" if self.target.transposing_dma and narrow and plain else "pe"
        shape = [sizes[a] for a in order]
        copy = self.tensor(f"{name}_x{len(self.tensors)}", self.tensors[name].dtype, shape)
        self.tensors[copy] = Tensor(copy, self.tensors[name].dtype, tuple(shape), home="stream")
        self.ops.append(
            TensorTransposeOp(
                f"turn{len(self.ops)}",
                view(copy, *order),
                view(name, *axes),
                tuple(Axis(a, sizes[a]) for a in order),
                kind,
                tuple(contract),
                (),
                self.group,
            )
        )
        return view(copy, *order)

    def each(self, op, *operands, axes, partition, dtype="float32", home="stream", own=False):
        """An elementwise op; an operand is a number or (tensor, its axes)."""
        sizes = {}
        for operand in operands:
            if not isinstance(operand, float):
                sizes |= self.size(*operand)
        if own:
            self.group += 1
        dst = self.tensor(f"e{len(self.tensors)}", dtype, [sizes[a] for a in axes], home=home)
        srcs = tuple(x if isinstance(x, float) else view(x[0], *x[1]) for x in operands)
        self.ops.append(
            ElementwiseOp(
                f"{op}{len(self.ops)}",
                op,
                view(dst, *axes),
                srcs,
                tuple(Axis(a, sizes[a]) for a in axes),
                partition=tuple(partition),
                group=self.group,
            )
        )
        return dst

    def done(self, *outputs):
        tensors = [
            attrs.evolve(t, kind="output", home="dram") if t.name in outputs else t
            for t in self.tensors.values()
        ]
        return Function("f", tuple(tensors), tuple(self.ops))


def matmul(m, k, n, machine="trn2", dtype="bfloat16", out="float32"):
    """The seed's kind of program: rows times columns, both row-major."""
    p = Program(machine)
    lhs, rhs = p.input(dtype, (m, k)), p.input(dtype, (k, n))
    return p.done(p.dot(lhs, ["m", "k"], rhs, ["k", "n"], out))


def inputs(function, seed=0):
    """Whole numbers in the range that every dtype holds and every sum keeps."""
    draw = np.random.default_rng(seed)
    return [
        draw.integers(-3, 4, t.shape).astype(np.float32)
        for t in function.tensors
        if t.kind == "input"
    ]


def generated(seed):
    """A function drawn from a seed, and its target."""
    r = random.Random(seed)
    machine = target(r.choice(["trn1", "trn2", "trn2", "trn3"]))
    if r.random() < 0.4:
        machine = machine.limited(r.choice([6144, 8192, 16384]), r.choice([1, 2, 3]))
    p = Program(machine)

    def extents(top):
        count = r.choice([0, 1, 1, 1, 1, 2, 2, 3])
        found, left = [], top
        for _ in range(count):
            found.append(max(1, min(left, round(2 ** r.uniform(0, 9)))))
            left = max(1, left // found[-1])
        return found

    def names(letter, sizes):
        return {f"{letter}{i}": n for i, n in enumerate(sizes)}

    dtype = r.choice(["bfloat16", "bfloat16", "float16", "float32", "float8e4", "float8_e4m3fn"])
    top = 300 if dtype in ("bfloat16", "float16", "float32") else 160
    batch = names("b", [r.choice([1, 2, 3])] if r.random() < 0.4 else [])
    rows, contract = names("m", extents(top)), names("k", extents(top) or [5])
    columns = names("n", extents(4 * top))
    sizes = batch | rows | contract | columns
    lhs_axes, rhs_axes = [*batch, *rows, *contract], [*batch, *contract, *columns]
    if r.random() < 0.5:
        r.shuffle(lhs_axes)
        r.shuffle(rhs_axes)
    order = [a for a in lhs_axes if a in contract]
    lhs_axes = [a for a in lhs_axes if a not in contract] + order if r.random() < 0.5 else lhs_axes
    batch_order = [a for a in lhs_axes if a in batch]
    swap = r.random() < 0.4
    lhs = p.input(dtype, [sizes[a] for a in lhs_axes])
    rhs = p.input(dtype, [sizes[a] for a in rhs_axes])
    kind = r.choice(["float32", "float32", "bfloat16"])
    value = p.dot(lhs, lhs_axes, rhs, rhs_axes, kind, swap)
    axes = [
        *batch_order,
        *(a for a in lhs_axes if a in rows),
        *(a for a in rhs_axes if a in columns),
    ]
    partition = (
        [a for a in rhs_axes if a in columns] if swap else [a for a in lhs_axes if a in rows]
    )
    outputs = [value] if r.random() < 0.15 else []
    for _ in range(r.choice([0, 0, 1, 2, 3])):
        what = r.choice(["bias", "bias", "relu", "cast", "plus", "full"])
        narrow = r.choice(["float32", "float32", "bfloat16"])
        where = {"axes": axes, "partition": partition, "dtype": narrow}
        if what == "bias":
            along = [a for a in axes if r.random() < 0.5]
            bias = p.input(r.choice(["float32", "bfloat16"]), [sizes[a] for a in along])
            pair = [(value, axes), (bias, along)]
            if r.random() < 0.3:
                pair.reverse()
            value = p.each("add", *pair, **where)
        elif what == "full":
            other = p.input("float32", [sizes[a] for a in axes])
            value = p.each("add", (value, axes), (other, axes), **where)
        elif what == "relu":
            pair = [(value, axes), 0.0]
            if r.random() < 0.2:
                pair.reverse()
            value = p.each("maximum", *pair, **where)
        elif what == "cast":
            value = p.each("copy", (value, axes), **where)
        else:
            value = p.each("add", (value, axes), (value, axes), **where)
    if r.random() < 0.3 and partition and dtype != "float8_e4m3fn":
        home = r.choice(["sbuf", "dram"])
        value_t = p.tensors[value]
        p.tensors[value] = attrs.evolve(value_t, home=home)
        taken = {
            a: (f"k{i}" if a in partition else f"b{i}" if a in batch else f"m{i}")
            for i, a in enumerate(axes)
        }
        more = names("n", [r.choice([1, 3, 40])])
        other = p.input(value_t.dtype, [sizes[a] for a in partition] + list(more.values()))
        lhs_names = [taken[a] for a in axes]
        batches = [taken[a] for a in axes if a in batch]
        if not batches:
            outputs.append(
                p.dot(
                    value,
                    lhs_names,
                    other,
                    [*(taken[a] for a in axes if a in partition), *more],
                    "float32",
                    r.random() < 0.5,
                )
            )
            return p.done(*outputs), machine
    return p.done(*outputs, value), machine


def through(function, machine, last=PASSES[-1]):
    """The function after the passes of tiling, up to and with `last`."""
    machine = target(machine) if isinstance(machine, str) else machine
    for name in PASSES:
        function = import_module(f"ncc.passes.penguin.{name}").PASS.apply(function, machine)
        if name == last:
            break
    return function


def count(function):
    """How often each kind of tile op runs."""
    found = Counter()
    for op, loops in nested(function.body):
        found[type(op).__name__] += math.prod(loop.trips for loop in loops)
    return found
