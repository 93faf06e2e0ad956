"""`nki.meta`: a tensor's shape and dtype without its values, to describe an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs

from ncc.nki.dtypes import Dtype, dtype_of, float32


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = cast("Sequence[Any]", shape if isinstance(shape, list | tuple) else (shape,))
    return tuple(int(n) for n in sizes)


@attrs.frozen
class tensor:
    """`nki.meta.tensor(shape, dtype)`; also an annotation, with or without a shape in brackets."""

    shape: tuple[int, ...] = attrs.field(default=(), converter=_sizes)
    dtype: Dtype = attrs.field(default=float32, converter=dtype_of)
    name: str = ""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __class_getitem__(cls, shape: Any) -> type[tensor]:
        return cls
