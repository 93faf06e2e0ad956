"""Generated BIR modules for round trips: any fields, not necessarily legal programs."""

from __future__ import annotations

from hypothesis import strategies as st

from ncc.ir.affine import Floor, Least, Mod, affine
from ncc.ir.bir import (
    Ap,
    Block,
    Function,
    Imm,
    Inst,
    Loc,
    LocSet,
    Module,
    Queue,
    Reg,
    SymAp,
    Tile,
    Update,
    Wait,
)
from ncc.ir.bir_keys import EDGES
from ncc.ir.bir_opcodes import ENGINES, OPCODES, keyed
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import DTYPES, Data

WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,6}", fullmatch=True)
# words that must be quoted: they look like something else, hold blanks, brackets, quotes
ODD = st.sampled_from(
    [
        "true",
        "none",
        "inf",
        "a b",
        "2x",
        'say "hi"',
        "x[1]",
        "t(0)",
        "é",
        "wait",
        "a=b",
        "%r",
        "a|b",
    ]
)
NAMES = st.one_of(WORDS, WORDS, WORDS, ODD)
VARS = st.sampled_from(["i", "k_o", "m_o"])
SMALL = st.integers(-9, 99)
SUMS = st.builds(affine, SMALL, st.dictionaries(VARS, st.integers(-5, 5), max_size=2))
INDICES = st.one_of(
    SUMS, st.builds(Mod, SUMS, st.integers(1, 4)), st.builds(Floor, SUMS, st.integers(1, 4))
)
EXTENTS = st.one_of(st.integers(1, 512), st.builds(Least, st.integers(1, 128), SUMS))
TYPES = st.sampled_from(sorted(DTYPES))
ORIGINS = st.one_of(
    st.just(NOWHERE),
    st.builds(lambda line: Origin("x.hlo", line), st.integers(1, 99)),
)


def tuples(of, low=0, high=3):
    return st.lists(of, min_size=low, max_size=high).map(tuple)


AXES = tuples(st.tuples(VARS, EXTENTS), 0, 2)
OPERANDS = st.one_of(
    st.builds(Tile, NAMES, tuples(INDICES, 1), AXES, AXES),
    st.builds(SymAp, NAMES, tuples(INDICES), TYPES, tuples(st.tuples(SMALL, EXTENTS), 1, 4), SUMS),
    st.builds(Ap, NAMES, TYPES, tuples(st.tuples(SMALL, st.integers(1, 99)), 1, 5), SMALL),
    st.builds(Imm, st.floats(allow_nan=False), st.sampled_from(["float32", "bfloat16"])),
    st.builds(Imm, st.integers(-99, 99), st.just("int32")),
    st.builds(Reg, NAMES),
)
WAITS = st.builds(Wait, NAMES, st.integers(0, 99), st.integers(-1, 255), st.integers(-1, 255))
UPDATES = st.builds(Update, NAMES, st.integers(-1, 255), st.integers(1, 16))
DEPS = st.tuples(NAMES, st.sampled_from(sorted(EDGES)))


def value_like(default):
    """Values that a key with this default may have."""
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, int):
        return st.integers(0, 99)
    if isinstance(default, float):
        return st.floats(allow_nan=False)
    if isinstance(default, str):
        return NAMES
    return tuples(st.one_of(st.integers(-1, 9), tuples(st.integers(0, 9), 1, 2)))


@st.composite
def insts(draw, depth=1):
    opcode = draw(st.sampled_from(sorted(OPCODES)))
    own = OPCODES[opcode].keys
    chosen = draw(st.lists(st.sampled_from(sorted(own)), unique=True, max_size=3)) if own else []
    keys = keyed(opcode, **{k: draw(value_like(own[k])) for k in chosen})
    region = OPCODES[opcode].family == "region" and depth
    return Inst(
        draw(NAMES),
        opcode,
        "|".join(draw(st.lists(st.sampled_from(ENGINES), min_size=1, max_size=2, unique=True))),
        draw(tuples(OPERANDS)),
        draw(tuples(OPERANDS, 0, 2)),
        keys,
        draw(tuples(DEPS)),
        draw(tuples(WAITS, 0, 2)),
        draw(tuples(UPDATES, 0, 2)),
        draw(tuples(VARS, 0, 2)),
        draw(st.tuples(VARS, SMALL, SMALL, st.integers(1, 4))) if region else None,
        (draw(blocks(depth - 1)),) if region else (),
        draw(ORIGINS),
    )


def blocks(depth=1):
    return st.builds(Block, NAMES, tuples(insts(depth), 0, 3))


LOCS = st.builds(
    Loc,
    NAMES,
    st.sampled_from(["DRAM", "SB", "PSUM"]),
    st.tuples(st.integers(1, 128), st.integers(1, 9999)),
    addr=st.integers(0, 9999),
    base=st.sampled_from([0, 32]),
    bank=st.integers(0, 7),
    allocated=st.booleans(),
    pinned=st.booleans(),
    live=st.one_of(st.none(), st.tuples(st.integers(0, 9), st.integers(0, 9))),
)
DATA = st.builds(lambda raw: Data("uint8", (len(raw),), raw), st.binary(min_size=1, max_size=9))


@st.composite
def location_sets(draw):
    data = draw(st.one_of(st.none(), DATA))
    memory = draw(st.sampled_from(["DRAM", "SB", "PSUM"]))
    locs = draw(tuples(LOCS, 0, 2))
    more = {} if draw(st.booleans()) else {"tensor_class": "NeuronWeightTensor"}
    return LocSet(
        draw(NAMES),
        data.dtype if data else draw(TYPES),
        data.shape if data else draw(tuples(st.integers(1, 99))),
        draw(st.sampled_from(["Internal", "Const", "ExternalInput"])),
        locs[0].type if locs else memory,
        partition_dim=draw(st.integers(0, 2)),
        ring=draw(st.booleans()),
        no_spill=draw(st.booleans()),
        locs=locs,
        data=data,
        declared=draw(st.sampled_from(["", "float8e5"])) if data is None else "",
        origin=draw(ORIGINS),
        **more,
    )


@st.composite
def modules(draw):
    function = st.builds(
        Function, NAMES, tuples(location_sets()), tuples(blocks(), 0, 2), tuples(NAMES, 0, 2)
    )
    return Module(
        draw(NAMES),
        draw(st.sampled_from(["gen3", "sunda"])),
        draw(tuples(function, 1, 2)),
        draw(tuples(st.builds(Queue, NAMES, st.just("SP"), st.integers(-1, 9)), 0, 2)),
        draw(tuples(st.tuples(WORDS, st.one_of(st.integers(0, 99), NAMES)), 0, 2)),
    )
