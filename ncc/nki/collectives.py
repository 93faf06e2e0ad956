"""`nki.collectives`: what several ranks do together. Here are the calls and what they take.

A call is checked in full; the transfer itself needs a run of several ranks, which this release does
not have, and says so (NCC368). On its one rank `rank_id` is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import attrs

from ncc.nki import isa, operators
from ncc.nki.isa.calls import call
from ncc.nki.language.base import items
from ncc.nki.registers import Held, VirtualRegister
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import current, invalid, wrong_type
from ncc.nki.views import whole_number

COPY = "copy it through a named nl.ndarray(..., buffer=nl.shared_hbm, name=...)"
FOLDS = frozenset({"add", "minimum", "maximum"})


def _ranks(groups: Any) -> tuple[tuple[int, ...], ...]:
    given = items(groups)
    found: list[tuple[int, ...]] = []
    for group in [None] if given is None else given:
        ranks = items(group)
        if ranks is None:
            raise _wrong("ReplicaGroup", f"takes lists of ranks, was given {groups!r:.60}")
        found.append(tuple(whole_number(r, "a rank of a ReplicaGroup") for r in ranks))
    seen: set[int] = set()
    for rank in (r for group in found for r in group):
        if rank in seen or rank < 0:
            why = "stands in it twice" if rank in seen else "is none"
            raise _wrong("ReplicaGroup", f"takes groups of different ranks, {rank} {why}")
        seen.add(rank)
    return tuple(found)


@attrs.frozen
class ReplicaGroup:
    """Groups of ranks; a collective runs inside each of them. It is equal to one with the same
    ranks, and may be an argument of a kernel."""

    groups: tuple[tuple[int, ...], ...] = attrs.field(default=(), converter=_ranks)

    @property
    def replica_groups(self) -> tuple[tuple[int, ...], ...]:
        return self.groups

    def __len__(self) -> int:
        return len(self.groups)


# --- checks ---------------------------------------------------------------------------------------


def _wrong(where: str, said: str, hint: str = "") -> Exception:
    return wrong_type("NCC367", f"{where} {said}", hint)


def _group(where: str, value: Any) -> ReplicaGroup:
    if isinstance(value, ReplicaGroup):
        return value
    if items(value) is not None:
        return ReplicaGroup(value)
    raise _wrong(where, f"takes a ReplicaGroup, was given {value!r:.60}", "ReplicaGroup([[0, 1]])")


def _tensors(where: str, value: Any, role: str) -> list[NkiTensor]:
    given = items(value)
    given = [value] if given is None else given
    if not given:
        raise _wrong(where, f"takes at least one tensor as {role}")
    for one in given:
        if not isinstance(one, NkiTensor):
            raise _wrong(where, f"takes tensors as {role}, was given {one!r:.60}")
    return given


def _place(where: str, tensors: Sequence[NkiTensor], sbuf: bool) -> str:
    """All in HBM or all in SBUF, none of them an argument of the kernel."""
    memories = {t.storage.buffer.memory.removeprefix("shared_") for t in tensors}
    if "psum" in memories or len(memories) > 1 or (not sbuf and memories != {"hbm"}):
        shown = ", ".join(f"{t.name} in {t.buffer}" for t in tensors)
        wanted = "all in HBM or all in SBUF" if sbuf else "in HBM"
        raise _wrong(where, f"takes tensors {wanted}, was given {shown}", COPY)
    for one in tensors:
        if one.storage.buffer.kind in ("input", "inout", "output"):
            said = f"takes no argument or result of the kernel, was given {one.name}"
            raise _wrong(where, said, COPY)
    return memories.pop()


def _pair(
    where: str, srcs: Any, dsts: Any, grows: int = 1, shrinks: int = 1, sbuf: bool = True
) -> str:
    """Sources and destinations that fit; each destination has grows/shrinks times the elements."""
    sources, results = _tensors(where, srcs, "srcs"), _tensors(where, dsts, "dsts")
    memory = _place(where, [*sources, *results], sbuf)
    if len(sources) != len(results):
        said = f"was given {len(sources)} sources and {len(results)} destinations"
        raise _wrong(where, said, "one destination for each source")
    if memory == "sbuf" and len(sources) > 1:
        raise _wrong(where, "takes several tensors only in HBM", "one call for each")
    for src, dst in zip(sources, results, strict=True):
        if src.dtype != dst.dtype:
            said = f"converts nothing: {src.name} is {src.dtype}, {dst.name} is {dst.dtype}"
            raise _wrong(where, said, "give both one dtype")
        if src.size * grows != dst.size * shrinks:
            said = f"of {src.name} ({src.size} elements) gives {src.size * grows // shrinks}"
            raise _wrong(where, f"{said}, {dst.name} has {dst.size}")
    return memory


def _dim(where: str, value: Any, memory: str, gather: bool = False) -> None:
    k = whole_number(value, f"{where}: collective_dim")
    allowed = (0, 1) if gather and memory == "sbuf" else (0,)
    if k not in allowed:
        shown = " or ".join(map(str, allowed))
        raise _wrong(where, f"works on dimension {shown} in {memory.upper()}, was given {k}")


def _size(group: ReplicaGroup) -> int:
    return max((len(g) for g in group.groups), default=1)


def _fold(where: str, op: Any) -> None:
    operators.symbol(op, where, "op", FOLDS)


def _transfer(where: str) -> NoReturn:
    said = f"{where} moves data between ranks, and this release runs one rank"
    raise invalid("NCC368", said, "run the other parts of the kernel without it")


# --- calls ----------------------------------------------------------------------------------------


@call
def all_reduce(
    srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = None, name: Any = None
) -> Any:
    """Every destination is the fold of all ranks' sources."""
    current("all_reduce")
    _group("all_reduce", replica_group)
    _pair("all_reduce", srcs, dsts)
    _fold("all_reduce", op)
    _transfer("all_reduce")


@call
def all_gather(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: Any,
    priority: Any = None,
    name: Any = None,
) -> Any:
    """Every destination is the sources of all ranks, one after the other."""
    where = "all_gather"
    current(where)
    ranks = _size(_group(where, replica_group))
    _dim(where, collective_dim, _pair(where, srcs, dsts, ranks), gather=True)
    _transfer(where)


@call
def reduce_scatter(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: Any,
    op: Any,
    priority: Any = None,
    name: Any = None,
) -> Any:
    """Rank r gets block r of the fold."""
    where = "reduce_scatter"
    current(where)
    ranks = _size(_group(where, replica_group))
    _dim(where, collective_dim, _pair(where, srcs, dsts, 1, ranks))
    _fold(where, op)
    _transfer(where)


@call
def all_to_all(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: Any,
    priority: Any = None,
    name: Any = None,
) -> Any:
    """Block j of rank i becomes block i of rank j."""
    where = "all_to_all"
    current(where)
    _group(where, replica_group)
    _dim(where, collective_dim, _pair(where, srcs, dsts, sbuf=False))
    _transfer(where)


def _variable(where: str, srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any) -> None:
    current(where)
    _group(where, replica_group)
    sources, results = _tensors(where, srcs, "srcs"), _tensors(where, dsts, "dsts")
    if len(sources) != 1 or len(results) != 1:
        raise _wrong(where, "takes one source and one destination", "one call for each")
    _place(where, [*sources, *results], sbuf=False)
    table = _tensors(where, metadata_tensor, "metadata_tensor")[0]
    if table.dtype.bir not in ("uint32", "int32"):
        raise _wrong(where, f"takes a table of uint32 as metadata_tensor, it is {table.dtype}")
    _transfer(where)


@call
def all_gather_v(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    metadata_tensor: Any,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: Any = None,
    name: Any = None,
) -> Any:
    """`all_gather` of as many elements as the machine finds in a table."""
    _variable("all_gather_v", srcs, dsts, replica_group, metadata_tensor)


@call
def all_to_all_v(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    metadata_tensor: Any,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: Any = None,
    name: Any = None,
) -> Any:
    """`all_to_all` of as many elements as the machine finds in a table."""
    _variable("all_to_all_v", srcs, dsts, replica_group, metadata_tensor)


@call
def collective_permute(
    srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = None, name: Any = None
) -> Any:
    """Each target's destination is its source's tensor."""
    where = "collective_permute"
    current(where)
    pairs = items(source_target_pairs)
    for pair in [source_target_pairs] if pairs is None else pairs:
        if len(items(pair) or ()) != 2:
            raise _wrong(where, f"takes pairs (source, target), was given {pair!r:.60}")
    if len(_tensors(where, srcs, "srcs")) != 1:
        raise _wrong(where, "takes one tensor", "one call for each")
    _pair(where, srcs, dsts, sbuf=False)
    _transfer(where)


def _channels(where: str, channel_ids: Any, *lists: Any) -> None:
    """Channels are numbered from 0, at most four, with one tensor each in every list."""
    given = items(channel_ids)
    chosen = [channel_ids] if given is None else given
    ids = [whole_number(c, f"{where}: a channel") for c in chosen]
    if ids != list(range(len(ids))) or not 1 <= len(ids) <= 4:
        raise _wrong(where, f"takes channels 0 to at most 3 in their order, was given {ids}")
    for one in lists:
        tensors = items(one) or [one]
        if len(tensors) != len(ids):
            said = f"has {len(ids)} channels, was given tensors for {len(tensors)}"
            raise _wrong(where, said, "a list with one entry for each channel")


def _flat(tensors: Any) -> list[Any]:
    """One tensor a channel, each maybe in a list of its own."""
    return [x for one in items(tensors) or [tensors] for x in items(one) or [one]]


@call
def collective_permute_implicit(
    srcs_by_channel: Any,
    dsts_by_channel: Any,
    replica_group: Any,
    channel_ids: Any = (0,),
    priority: Any = None,
    name: Any = None,
) -> Any:
    """The ring: send to the next rank of the group, receive from the one before."""
    where = "collective_permute_implicit"
    current(where)
    _group(where, replica_group)
    _channels(where, channel_ids, srcs_by_channel, dsts_by_channel)
    _pair(where, _flat(srcs_by_channel), _flat(dsts_by_channel), sbuf=False)
    _transfer(where)


@call
def collective_permute_implicit_reduce(
    srcs0_by_channel: Any,
    srcs1_by_channel: Any,
    dsts_by_channel: Any,
    replica_group: Any,
    op: Any,
    channel_ids: Any = (0,),
    priority: Any = None,
    name: Any = None,
) -> Any:
    """The ring, which sends `op` of two sources."""
    where = "collective_permute_implicit_reduce"
    current(where)
    _group(where, replica_group)
    _channels(where, channel_ids, srcs0_by_channel, srcs1_by_channel, dsts_by_channel)
    _pair(where, _flat(srcs0_by_channel), _flat(dsts_by_channel), sbuf=False)
    _pair(where, _flat(srcs1_by_channel), _flat(dsts_by_channel), sbuf=False)
    _fold(where, op)
    _transfer(where)


@call
def collective_permute_implicit_current_processing_rank_id(
    iteration_id: Any, replica_group: Any, channel_id: Any = 0
) -> VirtualRegister:
    """A register with the rank whose data is here in this turn of the ring: at first one's own."""
    where = "collective_permute_implicit_current_processing_rank_id"
    group = _group(where, replica_group)
    whole_number(channel_id, f"{where}: channel_id")
    if not isinstance(iteration_id, Held):
        whole_number(iteration_id, f"{where}: iteration_id")
    if _size(group) > 1:
        _transfer(where)
    return rank_id()


@call
def rank_id() -> VirtualRegister:
    """A register with the number of this rank."""
    current("rank_id")
    return isa.register_alloc(0)
