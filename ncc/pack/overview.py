"""What `ncc neff list` says of a file: its record, and its members under both of their names."""

from __future__ import annotations

from typing import Any

from ncc.pack import members_of
from ncc.pack.names import ENGINES, INFO, feature_names
from ncc.pack.schema import read_json
from ncc.pack.verify import verify


def describe(raw: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    members, header = members_of(raw)
    sound = verify(members, header)
    info = read_json(members, INFO) if INFO in members else {}
    used = [
        engine
        for engine in ENGINES
        if any(members[core.streams[engine.stream]] for core in sound.cores)
    ]
    bits = sound.record.get("feature_bits", 0)
    zipped = raw[:2] == b"\x1f\x8b" or raw[1024:1026] == b"\x1f\x8b"
    form = ("header, " if header else "bare ") + ("gzip" if zipped else "tar")
    record: dict[str, Any] = {
        "form": form,
        "name": info.get("name", ""),
        "target": info.get("arch", ""),
        "version": f"{sound.record.get('neff_version_major', '?')}"
        f".{sound.record.get('neff_version_minor', '?')}",
        "built by": sound.record.get("neff_build_version", ""),
        "uuid": sound.record.get("uuid", ""),
        "engine bitmap": f"{sum(1 << e.index for e in used):#04x} "
        f"({', '.join(e.stream for e in used) or 'no engine'})",
        "feature bits": f"{bits:#x} ({', '.join(feature_names(bits)) or 'none'})",
        "cores": len(sound.cores),
        "lnc_size": sound.record.get("lnc_size", 1),
        "digest": info.get("digest", ""),
    }
    for number, warning in enumerate(sound.warnings, 1):
        record[f"warning {number}" if len(sound.warnings) > 1 else "warning"] = warning
    seeds = {core.streams[e.stream]: e.seed for core in sound.cores for e in ENGINES}
    rows = [
        {
            "member": path,
            "bytes": len(data),
            "seed's name": seeds.get(path, ""),
            "bundles": len(data) // 64 if path in seeds else "",
        }
        for path, data in sorted(members.items())
    ]
    return record, rows
