"""The names inside a NEFF: members, engines, features. One table, read by writer and reader."""

from __future__ import annotations

import attrs

from ncc.ir.isa import STREAMS


@attrs.frozen
class Engine:
    """An engine under its names: the stream's, def.json's key, the member's in older files."""

    stream: str
    key: str  # `pe` names the JSON file, `pe_instr` the binary
    binary: str
    json: str
    seed: str  # what the compiler's own documents call the stream's member
    index: int  # wire order, and bit of the engine bitmap


KEYS = {"PE": "pe", "Activation": "act", "Pool": "pool", "DVE": "dve", "SP": "sp"}
ENGINES = tuple(
    Engine(name, KEYS[name], f"{name}0.bin", f"{name}0.json", f"{name}.bin", i)
    for i, name in enumerate(STREAMS)
)
BY_KEY = {engine.key: engine for engine in ENGINES}
BY_STREAM = {engine.stream: engine for engine in ENGINES}

INFO, KELF, OLD_KELF, GRAPH = "info.json", "kelf-0.json", "kelf-a.json", "neff.json"
STATE_BUFFER_SIZE = 128 << 18  # the span of on-chip addresses

FEATURES = {
    0: "bin weights",
    1: "collective offset",
    2: "custom ops",
    3: "coalesced collectives",
    4: "queue-set instances",
    5: "functions",
    6: "dynamic pwp",
    7: "32-bit semaphore wait on indirect copies",
    8: "indirect-copy bound check",
    9: "higher-dimension DMA descriptors",
    10: "multi-core logical NeuronCore",
    11: "DVE perf mode",
    12: "DGE",
    13: "POOL rsqrt",
    14: "remote semaphores",
    15: "DGE cast",
    16: "vector DGE",
    17: "embedding stride 32",
    20: "SQI no rearm",
    21: "hardware DGE",
    22: "partial SB2SB collective",
    24: "arch trn3 companion",
    25: "large-tensor support",
}
SEVERAL_CORES, DGE, DGE_CAST = 1 << 10, 1 << 12, 1 << 15
KNOWN_BITS = 27  # bits 0 to 26 are understood
MASK_BITS = 63  # bit 63 is outside the mask

ARCHES = {  # words of `target` in kelf-0.json
    "sunda": "sunda",
    "v2": "sunda",
    "": "sunda",
    "cayman": "cayman",
    "v3": "cayman",
    "mariana": "mariana",
    "v4": "mariana",
}
GENERATION = {"sunda": 2, "cayman": 3, "mariana": 3}  # of the records in its streams


def feature_names(bits: int) -> list[str]:
    """The names of the set bits, lowest first; a number for one without a name."""
    return [FEATURES.get(i, f"bit {i}") for i in range(64) if bits >> i & 1]


def subgraph(core: int) -> str:
    """The folder of a core's members."""
    return f"sg{core:02}"
