"""Keywords that a call of the older API does not name: its functions took any.

A misspelt one is refused with the right spelling (NCC330), so is what only today's calls take.
One that changes no value is passed over; any other is passed over with a warning (NCC379).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ncc.nki.trace import current, is_tracing, place, wrong_type

# where an instruction runs, how it is scheduled, and what only the printed program shows
SILENT = frozenset(
    {"engine", "name", "mode", "dge_mode", "oob_mode", "perf_mode", "buffer", "directives"}
    | {"lazy_initialization", "precise_schedule", "parallel_reduce", "asynchronous"}
    | {"psum_accumulate_flag", "psumAccumulateFlag", "compute_dtype", "init_value"}
)
# today's way to say it -> the older one
TODAY = {
    "dst": "the call returns a tile: assign it with tile[...] = call",
    "accumulate": "psum[...] += nisa.nc_matmul(...) adds, psum[...] = overwrites",
}
CLOSE = 0.75  # the likeness from which a keyword is a misspelling


def passed_over(call: str, words: Iterable[str], known: Iterable[str], given: set[str]) -> None:
    """Refuse or pass over the keywords that `call` does not take; `given` are those it got."""
    for word in words:
        if word in SILENT:
            continue
        free = [k for k in known if k not in given]
        hint = TODAY.get(word, "")
        if not hint and (near := get_close_matches(word, free, n=1, cutoff=CLOSE)):
            hint = f"did you mean {near[0]}?"
        said = f"{call} takes no argument {word!r}"
        if hint:
            raise wrong_type("NCC330", said, hint)
        if is_tracing():
            text = f"NCC379 {place()}: {said}: it changes nothing"
            warnings = current(call).warnings
            if text not in warnings:
                warnings.append(text)
