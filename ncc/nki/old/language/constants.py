"""`neuronxcc.nki.language.constants`."""

from __future__ import annotations

from typing import Any

from ncc.nki.dtypes import dtype_of
from ncc.nki.memory import tile_size

psum_min_align = tile_size.psum_min_align
sbuf_min_align = tile_size.sbuf_min_align


def sizeinbytes(dtype: Any) -> int:
    """The bytes of one element."""
    return dtype_of(dtype).size
