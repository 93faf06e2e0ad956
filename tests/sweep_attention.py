"""Attention over 200 generated configurations: `make sweep` runs them, or a tenth with --tenth K.

Each is simulated and compiled: both must give the same bytes, and the error against float64 (99th
percentile and maximum) must be at most 1.1 times that of a numpy program of the same type. Prints
what failed with its seed, the worst of both ratios by type, and closes with `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from attention_cases import DTYPES, case, ratios_and_failure

COUNT, FIRST_SEED = 200, 1000


def checked(seed: int) -> tuple[int, tuple[float, float], str]:
    """The case of a seed: its errors over numpy's, and "" or the sentence of the failure."""
    try:
        ratios, said = ratios_and_failure(case(seed))
    except Exception as fault:
        return seed, (0.0, 0.0), f"{type(fault).__name__}: {fault}"
    return seed, ratios, said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenth", type=int, choices=range(10), help="only this tenth")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    seeds = [
        FIRST_SEED + n for n in range(COUNT) if given.tenth is None or n // 8 % 10 == given.tenth
    ]
    began = time.time()
    rows: list[tuple[int, tuple[float, float], str]] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in pool.map(checked, seeds):
            rows.append(row)
            if row[2] or len(rows) % 25 == 0:
                print(f"{len(rows)} of {len(seeds)} {row[2]}", flush=True)
    failed = [row for row in rows if row[2]]
    for seed, _, said in failed:
        print(f"  {case(seed)}: {said}")
    for dtype in DTYPES:
        worst = [ratios for seed, ratios, _ in rows if case(seed).dtype == dtype]
        if worst:
            tops = [max(column) for column in zip(*worst, strict=True)]
            print(f"{dtype}: error over numpy's at most {tops[0]:.3f} (99th), {tops[1]:.3f} (max)")
    for name in ("kind", "target", "cores"):
        found = Counter(str(getattr(case(seed), name)) for seed, _, _ in rows)
        print(f"  {name}: {', '.join(f'{count} {word}' for word, count in sorted(found.items()))}")
    print(f"seeds from {FIRST_SEED}, {time.time() - began:.0f} s")
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
