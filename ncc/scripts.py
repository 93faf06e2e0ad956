"""Run a script under which `import nki` and `import neuronxcc.nki` are ncc's."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path


def run_script(arguments: list[str]) -> None:
    """Run `arguments[0]` as Python would, with the others as its arguments.

    A refusal that the script lets through is one sentence and status 1, as in every command; any
    other exception is the script's own and is shown as Python shows it, without ncc's frames.
    """
    from ncc.cli import at_fault
    from ncc.errors import NccError
    from ncc.nki.hooks import install
    from ncc.nki.programs import is_users
    from ncc.walking import InternalFault

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products; the same bits on any host
    script = Path(arguments[0])
    if not script.is_file():
        sys.stderr.write(f"ncc: NCC003 {script}: no such file\n")
        sys.exit(2)
    install()
    sys.argv = list(arguments)
    sys.path[0] = str(script.resolve().parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except NccError as fault:
        sys.exit(at_fault(fault))
    except InternalFault as fault:
        from ncc.cli import internal

        sys.exit(internal(fault, ["compile"]))
    except Exception as fault:
        told = traceback.TracebackException.from_exception(fault)
        told.stack[:] = [frame for frame in told.stack if is_users(frame.filename)] or told.stack
        sys.stderr.write("".join(told.format()))
        sys.exit(1)
