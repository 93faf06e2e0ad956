"""ISA: five streams of 64-byte bundle records with named fields.

A record's fields are those of its row in `ncc.encode.tables`, under the row's names; one that has
its default (0, or {1, 1} for an unused dimension) is left out. A tensor descriptor is one value,
`At`; a DMA address is `Dram` or `At`. The machine, the listing and the encoder share these records.
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import Data

STREAMS = ("PE", "Activation", "Pool", "DVE", "SP")  # the wire order of engines


@attrs.frozen
class At:
    """A tensor descriptor: start address in `space` and (step, num) pairs, fastest first.

    `space` is sb or psum, or raw for a 32-bit word in `byte` that is an address in neither.
    `partition` is the start partition and `byte` the offset inside it (PSUM: bank * 2048 + offset).
    An address without a pattern has no pairs.
    """

    space: str
    partition: int
    byte: int
    dims: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class Dram:
    """A DMA address in a DRAM variable of the NEFF: (variable id, byte offset)."""

    var: int
    byte: int


@attrs.frozen
class Band:
    """The event band: at most one wait and one update, by their wire codes.

    wait: (mode, index); update: (mode, index); value is the one word both use.
    """

    wait: tuple[int, int] = (0, 0)
    update: tuple[int, int] = (0, 0)
    value: int = 0


@attrs.frozen
class Bundle:
    """One 64-byte record: mnemonic of its row, event band, fields as sorted (name, value) pairs."""

    op: str
    fields: tuple[tuple[str, Any], ...] = ()
    band: Band = Band()
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class Stream:
    engine: str
    bundles: tuple[Bundle, ...]


@attrs.frozen
class Var:
    """A DRAM variable of the NEFF: `kind` input, output, file (a constant) or virtual (scratch).

    `offset` is a virtual's place in the shared scratchpad. `declared`: see penguin.Tensor.
    """

    name: str
    id: int
    kind: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0
    data: Data | None = None
    declared: str = ""


@attrs.frozen
class DmaQueue:
    name: str
    owner: str  # engine of STREAMS
    semaphore: int
    num_queues: int = 16


@attrs.frozen
class Program:
    """The module: what the streams are, and what a NEFF's definition needs beside them."""

    name: str
    neff_target: str  # `target` of kelf-0.json: sunda, cayman, mariana
    gen: int  # generation of the records: 2 or 3
    streams: tuple[Stream, ...]  # all five, in wire order
    vars: tuple[Var, ...]
    queues: tuple[DmaQueue, ...]
