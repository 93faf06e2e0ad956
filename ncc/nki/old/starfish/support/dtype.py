"""Element types under the names of the compiler's own package."""

from __future__ import annotations

from ncc.nki.dtypes import bfloat16, float8_e4m3, float8_e5m2, tfloat32

__all__ = ["bfloat16", "float8_e4m3", "float8_e5m2", "tfloat32"]
