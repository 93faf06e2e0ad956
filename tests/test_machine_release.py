"""A run lets go of its memories when it ends: they are 60 MB a core, and no collection is needed."""

from __future__ import annotations

import gc
import weakref

import attrs
import numpy as np
import pytest
from machine_programs import dry_run

from ncc.errors import NccError
from ncc.ir.isa import Band
from ncc.sim import run as running
from ncc.target import TARGETS

A, B = np.ones((128, 512), np.float32), np.ones((512, 256), np.float32)


@pytest.mark.parametrize("fails", [False, True])
def test_the_memories_go_with_the_run(monkeypatch, fails):
    made, make = [], running.memory

    def memory(*args):
        found = make(*args)
        made.extend(weakref.ref(x) for x in (found.sbuf.data, found.sbuf.known, found.psum.data))
        return found

    monkeypatch.setattr(running, "memory", memory)
    program = dry_run()
    if fails:  # the second engine waits for nobody
        streams = [
            attrs.evolve(s, bundles=tuple(attrs.evolve(b, band=Band()) for b in s.bundles))
            for s in program.streams
        ]
        program = attrs.evolve(program, streams=tuple(streams))
    gc.collect()
    gc.disable()
    try:
        kept = None
        try:
            running.run_isa(program, TARGETS["trn2"], [A, B])
        except NccError as error:
            kept = error
        assert (kept is not None) == fails
        assert len(made) == 3 and all(one() is None for one in made)
    finally:
        gc.enable()
