"""The generated sweeps that a release counts: `make sweep`, or a tenth of them with --tenth K.

1. 300 generated programs (dots of every dtype and batch pattern, chains with bias and relu, trn1
   and trn2) must give whole numbers exactly at every stage and from the bytes.
2. 30 of them again with SBUF and PSUM limited to the least that works, so that spills happen.

Prints what failed with the seed that shows it again, and closes with `N passed, N failed`.
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

from generate import BATCHES, DTYPES, program

PROGRAMS, LIMITED = 300, 30
FIRST_SEED = 20_000


def choice(number: int) -> tuple[str, str, str]:
    """Target, dtype and batch pattern of program `number`: each pair comes round often enough."""
    dtype = DTYPES[number % len(DTYPES)]
    batch = BATCHES[(number // len(DTYPES)) % len(BATCHES)]
    return ("trn2", "trn1")[number % 3 == 2], dtype, batch


def checked(number: int) -> tuple[int, str, str]:
    """Program `number` through every stage; its seed, "" or the sentence of the failure, its kind."""
    target, dtype, batch = choice(number)
    seed = FIRST_SEED + number
    return seed, failure(seed, target, dtype, batch), f"{dtype} {batch}"


def failure(seed: int, target: str, dtype: str, batch: str) -> str:
    from ncc import checking
    from ncc.driver import plan
    from ncc.front.hlo import parse
    from ncc.stages import Stage
    from ncc.target import target as named

    try:
        text = program(seed, dtype=dtype, batch=batch)
        stage = Stage("hlo", named(target), "input", (), parse(text, f"{seed}.hlo", 1))
        result = checking.check(stage, plan(stage), [checking.whole_numbers(stage)])
    except Exception as fault:
        return f"{target}: {type(fault).__name__}: {fault}"
    return f"{target}: {result.place}: {result.failed}" if result.failed else ""


def limited(number: int) -> tuple[int, str, str]:
    """Program `number` again with the least SBUF and PSUM with which it compiles."""
    target, dtype, batch = choice(number)
    seed = FIRST_SEED + number
    least = least_memory(seed, target, dtype, batch)
    return seed, failure(seed, least, dtype, batch), least


def least_memory(seed: int, target: str, dtype: str, batch: str) -> str:
    """The target with the fewest banks, then the fewest bytes (to 64), that still compiles."""
    from ncc.target import TARGETS

    text = program(seed, dtype=dtype, batch=batch)
    banks = next(b for b in range(1, 9) if compiles(text, f"{target},psum={b}"))
    low, high = 0, TARGETS[target].sbuf_usable
    while high - low > 64:
        middle = (low + high) // 2
        if compiles(text, f"{target},sbuf={middle},psum={banks}"):
            high = middle
        else:
            low = middle
    return f"{target},sbuf={high},psum={banks}"


def compiles(text: str, target: str) -> bool:
    from ncc.driver import plan, walk
    from ncc.errors import NccError
    from ncc.front.hlo import parse
    from ncc.stages import Stage
    from ncc.target import target as named

    stage = Stage("hlo", named(target), "input", (), parse(text, "x.hlo", 1))
    try:
        walk(stage, plan(stage, stop_after="alloc-dram"))
    except NccError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenth", type=int, choices=range(10), help="only this tenth")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    numbers = [n for n in range(PROGRAMS) if given.tenth is None or n % 10 == given.tenth]
    small = [n for n in range(LIMITED) if given.tenth is None or n % 10 == given.tenth]
    began = time.time()
    with ProcessPoolExecutor(given.jobs) as pool:
        results = list(pool.map(checked, numbers, chunksize=1))
        tight = list(pool.map(limited, [n * 10 for n in small], chunksize=1))
    for name, rows in (("programs", results), ("with the least memory", tight)):
        failed = [row for row in rows if row[1]]
        print(f"{len(rows)} {name}, {len(failed)} failed")
        for seed, said, kind in failed:
            print(f"  seed {seed} ({kind}): {said}")
    for kind, count in sorted(Counter(kind for _, _, kind in results).items()):
        print(f"  {count:3} {kind}")
    print(f"seeds from {FIRST_SEED}, {time.time() - began:.0f} s")
    bad = sum(bool(said) for _, said, _ in [*results, *tight])
    print(f"{len(results) + len(tight) - bad} passed, {bad} failed")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
