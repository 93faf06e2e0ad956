"""The machines that ncc compiles for, as one table, and how their memory is shared out.

Sizes are bytes per partition: the published geometry of the three generations. What a program may
use is less, because the runtime keeps a part at the top.
"""

from __future__ import annotations

import attrs

from ncc.errors import UsageError, listed, nearest

ALLOCATORS = ("coloring", "stack", "linear-scan")
BANK = 2048  # bytes of a PSUM bank in one partition, on every machine (hardware reference 4.2)


@attrs.frozen
class Target:
    """One generation of the machine, or one with less memory (`limited`).

    `allocator` is who gives SBUF and PSUM to the tiles of a program; empty while nobody chose.
    """

    name: str
    arch: str  # `arch` of a BIR module
    neff: str  # `target` of kelf-0.json
    gen: int  # generation of the bundle records: 2 or 3
    level: int  # architecture level: 20, 30, 40
    sbuf_size: int  # bytes per partition that exist
    sbuf_usable: int  # bytes per partition that a program may use
    transposing_dma: bool
    pe_copies_transpose: bool  # a PE transpose copies bits (byte 22 of the PE records)
    fp8fn: bool  # float8_e4m3fn is a type of this machine
    dma_engines: tuple[str, ...] = ("SP", "Activation", "DVE", "Pool")  # ISA 5.25
    partitions: int = 128
    quadrant: int = 32
    psum_banks: int = 8
    psum_bank_bytes: int = BANK
    stationary_free: int = 128
    moving_free: int = 512
    allocator: str = ""

    @property
    def lacked_e4m3(self) -> str:
        """The one of the two e4m3 types that the machine has no tag for."""
        return "float8e4" if self.fp8fn else "float8_e4m3fn"

    def limited(self, sbuf: int | None = None, psum: int | None = None) -> Target:
        """The same machine with `sbuf` usable bytes per partition and `psum` banks."""
        return attrs.evolve(
            self, sbuf_usable=sbuf or self.sbuf_usable, psum_banks=psum or self.psum_banks
        )

    def allocating(self, word: str) -> Target:
        """The same machine, whose memory this allocator gives out. NCC002 for a name of none."""
        name = word.replace("_", "-")
        if name not in ALLOCATORS:
            said = f"no allocator is called {word!r}; there are {listed(ALLOCATORS)}"
            raise UsageError("NCC002", said, hint=nearest(name, ALLOCATORS))
        return attrs.evolve(self, allocator=name)

    def __str__(self) -> str:
        """The words of a stage's header: `trn2`, or `trn2,sbuf=4096,psum=2,allocator=stack`."""
        full = TARGETS[self.name]
        words = [self.name]
        if self.sbuf_usable != full.sbuf_usable:
            words.append(f"sbuf={self.sbuf_usable}")
        if self.psum_banks != full.psum_banks:
            words.append(f"psum={self.psum_banks}")
        if self.allocator:
            words.append(f"allocator={self.allocator}")
        return ",".join(words)


TARGETS = {
    t.name: t
    for t in (
        Target("trn1", "sunda", "sunda", 2, 20, 196_608, 180_224, False, False, False),
        Target("trn2", "gen3", "cayman", 3, 30, 229_376, 212_984, True, True, False),
        Target("trn3", "core_v4", "mariana", 3, 40, 262_144, 245_752, True, True, True),
    )
}


def target(words: str) -> Target:
    """The target that `str(target)` printed; UsageError NCC002 for a name that is none."""
    name, *limits = words.split(",")
    if name not in TARGETS:
        raise UsageError(
            "NCC002",
            f"no target is called {name!r}; there are {', '.join(TARGETS)}",
            hint=nearest(name, TARGETS),
        )
    found: dict[str, int] = {}
    allocator = ""
    for limit in limits:
        key, _, number = limit.partition("=")
        if key == "allocator":
            allocator = TARGETS[name].allocating(number).allocator
            continue
        if key not in ("sbuf", "psum") or not number.isdecimal() or not int(number):
            said = f"cannot read {limit!r}; a limit is sbuf=BYTES or psum=BANKS"
            raise UsageError("NCC002", said)
        found[key] = int(number)
        most = {"sbuf": TARGETS[name].sbuf_usable, "psum": TARGETS[name].psum_banks}[key]
        if found[key] > most:
            raise UsageError("NCC002", f"{limit} is more than the {most} that {name} has")
    limited = TARGETS[name].limited(found.get("sbuf"), found.get("psum"))
    return limited.allocating(allocator) if allocator else limited
