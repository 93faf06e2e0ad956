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
    from ncc.front.hlo import parse
    from ncc.stages import Stage
    from ncc.target import target as named
    from ncc.walking import plan

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
    text = program(seed, dtype=dtype, batch=batch)
    least = least_memory(text, target)
    spilled = "spills" if spills(text, least) else "no spill"
    return seed, failure(seed, least, dtype, batch), f"{least}, {spilled}"


def least_memory(text: str, target: str) -> str:
    """The target with the fewest banks, then the fewest bytes (to an eighth), that compiles."""
    from ncc.target import TARGETS

    banks = next(b for b in range(1, 9) if compiles(text, f"{target},psum={b}"))
    low, high = 0, TARGETS[target].sbuf_usable
    while high - low > max(8, high // 8):
        middle = (low + high) // 2
        if compiles(text, f"{target},sbuf={middle},psum={banks}"):
            high = middle
        else:
            low = middle
    return f"{target},sbuf={high},psum={banks}"


def spills(text: str, target: str) -> bool:
    """Whether the allocators had to move a value out of SBUF or PSUM and back."""
    from ncc.front.hlo import parse
    from ncc.stages import Stage
    from ncc.target import target as named
    from ncc.walking import plan, walk

    stage = Stage("hlo", named(target), "input", (), parse(text, "x.hlo", 1))
    last = walk(stage, plan(stage, stop_after="insert-spills"))
    names = [inst.name for block in last.module.main.blocks for inst in block.insts]
    return any(word in name for name in names for word in (".reload", ".spill", "Spill"))


def effort(number: int) -> int:
    """Multiplications of program `number`: what a check of it costs."""
    from math import prod

    from ncc.front.hlo import parse
    from ncc.ir.hlo import leaves

    _, dtype, batch = choice(number)
    module = parse(program(FIRST_SEED + number, dtype=dtype, batch=batch), "x.hlo", 1)
    total = 0
    for inst in module.main().instructions:
        if inst.opcode == "dot":
            shapes = {x.name: leaves(x.shape)[0].dims for x in module.main().instructions}
            depth = prod(shapes[inst.operands[0]][d] for d in inst.ints("lhs_contracting_dims"))
            total += depth * prod(inst.shape.dims)
    return total


def compiles(text: str, target: str) -> bool:
    from ncc.errors import NccError
    from ncc.front.hlo import parse
    from ncc.stages import Stage
    from ncc.target import target as named
    from ncc.walking import plan, walk

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
    every = range(PROGRAMS)
    middling = sorted(every, key=effort)[LIMITED : 2 * LIMITED]  # the least memory makes many tiles
    numbers = [n for n in every if given.tenth is None or n % 10 == given.tenth]
    small = [n for i, n in enumerate(middling) if given.tenth is None or i % 10 == given.tenth]
    began = time.time()
    results: list[tuple[int, str, str]] = []
    tight: list[tuple[int, str, str]] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for rows, job, todo in ((results, checked, numbers), (tight, limited, small)):
            for row in pool.map(job, todo):
                rows.append(row)
                if row[1] or len(rows) % 25 == 0:
                    print(f"{len(rows)} of {len(todo)} {row[1]}", flush=True)
    for name, rows in (("programs", results), ("with the least memory", tight)):
        failed = [row for row in rows if row[1]]
        print(f"{len(rows)} {name}, {len(failed)} failed")
        for seed, said, kind in failed:
            print(f"  seed {seed} ({kind}): {said}")
    for kind, count in sorted(Counter(kind for _, _, kind in results).items()):
        print(f"  {count:3} {kind}")
    spilled = sum(not kind.endswith("no spill") for _, _, kind in tight)
    print(f"{spilled} of {len(tight)} programs with the least memory spill")
    print(f"seeds from {FIRST_SEED}, {time.time() - began:.0f} s")
    bad = sum(bool(said) for _, said, _ in [*results, *tight])
    print(f"{len(results) + len(tight) - bad} passed, {bad} failed")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
