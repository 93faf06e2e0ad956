"""Which tensors an opcode touches: one line per struct family, for checks and for the machine.

A tensor is `field dtype count use`: the descriptor's field, the field (or `=tag`) that gives its
dtype, the field with the count of partitions (or `=`: one partition), and r or w. Pointers in
immediates and the addresses of DMAs are not here.
"""

from __future__ import annotations

import attrs

from ncc.encode.tables import ROWS


@attrs.frozen
class Access:
    """One tensor of an opcode."""

    field: str
    dtype: str  # a field's name, or "" with `tag`
    tag: int
    count: str  # a field's name, or "" for one partition
    write: bool


TENSORS = {
    "S3_LW": "src in_dtype num_active_rows r",
    "S3D3_MM": "moving in_dtype num_active_rows r, dst =A num_active_cols w",
    "S3_LT": "tags tags_dtype tile_size r",
    "S4D3_MM": "moving in_dtype num_active_rows r, dst =A num_active_cols w",
    "S3D3_AC": "src in_dtype nchan r, dst out_dtype nchan w",
    "S3D3_AQ": "src in_dtype nchan r, dst out_dtype nchan w",
    "D1_RD": "dst out_dtype nchan w",
    "S3S3D3_TT": "src0 src0_dtype nchan r, src1 src1_dtype nchan r, dst out_dtype nchan w",
    "S3D3_TS": "src in_dtype nchan r, dst out_dtype nchan w",
    "S2S2D2_STT": "src0 src0_dtype nchan r, src1 src1_dtype nchan r, dst out_dtype nchan w",
    "S4D4_TR": "src in_dtype nchan r, dst out_dtype nchan w",
    "S4D4_CR": "src in_dtype nchan r, dst out_dtype = w",
    "S4D4_PL": "src in_dtype nchan r, dst out_dtype nchan w",
    "S4D4_MR": "src in_dtype nchan r, dst out_dtype nchan w",
    "D4_MR": "dst out_dtype nchan w",
    "D4_IOTA": "dst out_dtype nchan w",
    "S2D2_TS_AS": "src in_dtype nchan r, dst out_dtype nchan w",
    "S2D2_RS": "src in_dtype nchan r, dst out_dtype nchan w",
    "S3D3_CP_PRED_SCALAR": "predicate pred_dtype nchan r, dst out_dtype nchan w",
    "S4D2_BN": "src in_dtype nchan r, dst out_dtype nchan w",
    "MATCH": "src in_dtype nchan r",
    "DROPOUT": "src in_dtype nchan r, dst out_dtype nchan w",
    "INDIRECT": "dst out_dtype nchan w",
    "CORES": "src in_dtype nchan r, dst out_dtype nchan w",
    "BUFFER": "src in_dtype nchan r",
    "STATE": "dst out_dtype nchan w",
    "UNIFORM": "dst out_dtype nchan w",
    "CUSTOM_OPERAND": "tensor dtype nchan w",
    "NONZERO": "src in_dtype nchan r, dst out_dtype nchan w",
}


def _accesses(text: str) -> tuple[Access, ...]:
    found: list[Access] = []
    for part in filter(None, text.split(", ")):
        field, dtype, count, use = part.split()
        tag = int(dtype[1:], 16) if dtype.startswith("=") else 0
        name = "" if tag else dtype
        found.append(Access(field, name, tag, count.lstrip("="), use == "w"))
    return tuple(found)


_BY_STRUCT = {struct: _accesses(text) for struct, text in TENSORS.items()}
ACCESSES: dict[str, tuple[Access, ...]] = {
    name: _BY_STRUCT.get(row.struct, ()) for name, row in ROWS.items()
}
