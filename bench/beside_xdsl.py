"""What the same small jobs take in xDSL; prints one JSON object. Runs in an environment of its own.

Each figure is microseconds an op, the best of five rounds: build, print, parse and verify one
`arith.addf`, and xDSL's canonicalisation of a module in which nothing can be simplified.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects import arith, func, test
from xdsl.dialects.builtin import Builtin, ModuleOp, f32
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.transforms.canonicalize import CanonicalizePass

COUNT = 2000


def best(job: Callable[[], object]) -> float:
    """Microseconds an op."""
    times: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    return round(min(times) / COUNT * 1e6, 2)


def main() -> None:
    context = Context()
    for dialect in (Builtin, arith.Arith, func.Func, test.Test):
        context.load_dialect(dialect)
    source = test.TestOp(result_types=[f32, f32])
    left, right = source.results
    ops = [arith.AddfOp(left, right) for _ in range(COUNT)]
    used = test.TestOp(operands=[op.result for op in ops])  # so that nothing is dead
    module = ModuleOp([source, *ops, used])

    def show() -> str:
        stream = io.StringIO()
        Printer(stream).print_op(module)
        return stream.getvalue()

    text = show()
    figures = {
        "build": best(lambda: [arith.AddfOp(left, right) for _ in range(COUNT)]),
        "print": best(show),
        "parse": best(lambda: Parser(context, text).parse_module()),
        "verify": best(module.verify),
        "canonicalize": best(lambda: CanonicalizePass().apply(context, module)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
