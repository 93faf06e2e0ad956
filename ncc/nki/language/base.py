"""The frame of every function of `nki.language`: how it looks, what it takes, where results go."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ncc.nki import isa
from ncc.nki.dtypes import Dtype, dtype_of, float32, uint8
from ncc.nki.isa.calls import call
from ncc.nki.memory import allocate, fill
from ncc.nki.regions import MemoryRegion, sbuf
from ncc.nki.registers import Held
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import current, wrong_shape, wrong_type

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Dtype",
    "NkiTensor",
    "cast_to",
    "column",
    "dims",
    "dtype_of",
    "filled",
    "float32",
    "function",
    "host",
    "is_float",
    "isa",
    "items",
    "new",
    "not_a_tile",
    "spread",
    "spread_rows",
    "tile",
    "uint8",
]

P = ParamSpec("P")
R = TypeVar("R")


def function(name: str, op: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function as kernels see it: called `name`, strict about keywords, and where it is an
    operator (`op=nl.add`) with its symbolic name as `nki_op`."""

    def made(plain: Callable[P, R]) -> Callable[P, R]:
        plain.__name__ = plain.__qualname__ = name
        found = call(plain)
        if op:
            found.__dict__["nki_op"] = op
        return found

    return made


# --- what a function takes ------------------------------------------------------------------------


def tile(x: Any, name: str) -> NkiTensor:
    """`x`, which must be a tensor; NCC361 otherwise."""
    if isinstance(x, NkiTensor):
        return x
    raise not_a_tile(x, name)


def not_a_tile(x: Any, name: str) -> Exception:
    kind = type(x).__name__
    hint = "make a tile with nl.ndarray, nl.full or nl.load"
    if isinstance(x, list | tuple):
        hint = "index the list: the function takes one tile"
    elif isinstance(x, Held):
        hint = "store it into a tile with nisa.register_store first"
    elif kind == "ndarray":
        hint = "pass the array to the kernel, or make it a tensor with nl.shared_constant"
    said = f"nl.{name} takes a tile, was given {_short(x)} of type {kind}"
    return wrong_type("NCC361", said, hint)


def _short(x: Any) -> str:
    text = " ".join(repr(x).split())
    return text if len(text) <= 40 else text[:37] + "..."


def items(x: Any) -> list[Any] | None:
    """What a list or tuple holds; None for anything else."""
    return list(cast("Sequence[Any]", x)) if isinstance(x, list | tuple) else None


def host(x: Any) -> bool:
    """Whether `x` is a number or array of Python or numpy: known while tracing."""
    return isinstance(x, bool | int | float) or (
        hasattr(x, "dtype") and hasattr(x, "__array__") and not isinstance(x, NkiTensor)
    )


def is_float(dtype: Dtype) -> bool:
    return "float" in dtype.bir


def dims(x: NkiTensor) -> str:
    return f"{x.name} ({', '.join(map(str, x.shape))})"


# --- where results go -----------------------------------------------------------------------------


def new(shape: Sequence[int], dtype: Any, buffer: MemoryRegion = sbuf) -> NkiTensor:
    """A tile for a result."""
    sizes = tuple(shape) if len(shape) > 1 else (*shape, 1)
    return allocate(sizes, dtype, buffer)


def filled(shape: Sequence[int], dtype: Any, value: float) -> NkiTensor:
    made = new(shape, dtype)
    fill(made, value)
    return made


def cast_to(x: NkiTensor, dtype: Any) -> NkiTensor:
    """`x` in SBUF with this dtype: itself where it already is, else a copy."""
    wanted = dtype_of(dtype)
    if x.dtype == wanted and x.buffer == sbuf:
        return x
    made = new(x.shape, wanted)
    isa.tensor_copy(made, x)
    return made


# --- one value for many ---------------------------------------------------------------------------


def column(x: NkiTensor) -> bool:
    """Whether a tile holds one value in each partition."""
    return x.size == x.shape[0]


def spread(x: NkiTensor, shape: Sequence[int], name: str) -> NkiTensor:
    """`x` read as `shape`: its dimensions of size 1 repeated. The free ones by a view; a single
    partition is copied to all, since engines work partition by partition."""
    wanted = tuple(shape)
    if x.shape == wanted:
        return x
    found = x
    if column(x) and len(x.shape) != len(wanted):
        found = x.reshape((x.shape[0], *[1] * (len(wanted) - 1)))
    if len(found.shape) != len(wanted) or any(
        n not in (1, m) for n, m in zip(found.shape, wanted, strict=True)
    ):
        sizes = ", ".join(map(str, wanted))
        hint = "only dimensions of size 1 repeat"
        raise wrong_shape("NCC362", f"nl.{name} cannot read {dims(x)} as ({sizes})", hint)
    if found.shape[0] != wanted[0]:
        found = spread_rows(found, wanted[0])
    for k in range(1, len(wanted)):
        if found.shape[k] != wanted[k]:
            found = found.broadcast(k, wanted[k])
    return found


def spread_rows(x: NkiTensor, rows: int) -> NkiTensor:
    """A tile whose `rows` partitions all hold the one of `x`."""
    made = new((rows, *x.shape[1:]), x.dtype)
    for start in range(0, rows, 32):
        part = made[start : min(start + 32, rows)]
        isa.nc_stream_shuffle(part, x, [0] * 32)
    return made


@contextmanager
def unheard() -> Generator[None]:
    """What is recorded inside warns of nothing: its numbers are small, or only their bits count."""
    trace = current()
    count = len(trace.warnings)
    yield
    del trace.warnings[count:]
