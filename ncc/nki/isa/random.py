"""Random numbers: each engine has a generator, whose state a kernel may set."""

from __future__ import annotations

from typing import Any

from ncc.ir.kernel import Imm
from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import call, engine_of, no_psum
from ncc.nki.isa.operands import (
    INTS,
    Tile,
    dtypes,
    exactly,
    record,
    same,
    same_dtype,
    scalar,
    since,
    tile,
)
from ncc.nki.trace import Instruction, wrong_shape

STATE = {"gpsimd": 6, "vector": 24}  # words of state in each partition


@call
def dropout(dst: Any, data: Any, prob: Any, name: str | None = None) -> Instruction:
    """dst = data, with each element 0 with probability prob."""
    where = "dropout"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    same(where, to, source)
    same_dtype(where, to, source)
    rate = scalar(prob, where, "prob", source)
    if isinstance(rate, Imm):
        rate = Imm(float(rate.value))
    return record(where, {"dst": to, "data": source, "prob": rate}, name=name)


@call
def rng(dst: Any, engine: Any = c.engine.vector, name: str | None = None) -> Instruction:
    """dst = the low bits of 32 random ones."""
    where = "rng"
    to = tile(dst, where, "dst")
    dtypes(where, to, INTS, "allocate it as an integer; nisa.rand2 makes floats")
    chosen = engine_of(engine, where, "vector", "gpsimd")
    if chosen == "gpsimd":
        since(where, 3, "rng on the gpsimd engine")
        no_psum(where, to)
    return record(where, {"dst": to}, engine=chosen, name=name)


@call
def set_rng_seed(src_seeds: Any, name: str | None = None) -> Instruction:
    """Start the generator anew from one seed (1, 1)."""
    where = "set_rng_seed"
    seeds = tile(src_seeds, where, "src_seeds")
    if seeds.count != 1:
        said = f"{where} takes one seed (1, 1), {seeds.show()} has {seeds.count}"
        raise wrong_shape("NCC356", said, "slice one element")
    return record(where, {"src_seeds": seeds}, name=name)


@call
def rand_set_state(
    src_seeds: Any, engine: Any = c.engine.gpsimd, name: str | None = None
) -> Instruction:
    """Set the state of an engine's generator."""
    where = "rand_set_state"
    chosen = engine_of(engine, where, "gpsimd", "vector")
    seeds = _state(tile(src_seeds, where, "src_seeds"), where, chosen)
    return record(where, {"src_seeds": seeds}, engine=chosen, name=name)


@call
def rand_get_state(dst: Any, engine: Any = c.engine.gpsimd, name: str | None = None) -> Instruction:
    """dst = the state of an engine's generator."""
    where = "rand_get_state"
    chosen = engine_of(engine, where, "gpsimd", "vector")
    to = _state(tile(dst, where, "dst"), where, chosen)
    return record(where, {"dst": to}, engine=chosen, name=name)


def _state(one: Tile, where: str, engine: str) -> Tile:
    dtypes(where, one, frozenset({"uint32"}), "a state is words of nl.uint32")
    if engine != "vector":
        no_psum(where, one)
    exactly(where, one, STATE.get(engine, 6))
    return one


@call
def rand2(dst: Any, min: Any, max: Any, name: str | None = None) -> Instruction:
    """dst = uniform float32 numbers between min and max, on trn3."""
    where = "rand2"
    since(where, 4, hint="use nisa.rng and scale the integers")
    to = tile(dst, where, "dst")
    args = {"dst": to, "min": scalar(min, where, "min", to), "max": scalar(max, where, "max", to)}
    return record(where, args, name=name)
