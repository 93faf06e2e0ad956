"""The order of all passes: one list, with the reasons for the order beside it.

An entry is the pass's file below this package. A pass may stand twice; the second stand is called
`name.2` wherever a person meets it. Languages fix most of the order; what they do not fix is a
reason here or in the pass's own `after`. Files are imported on use, so that starting ncc loads none.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ncc.passes.base import Pass

PIPELINE: tuple[str, ...] = (
    # HLO: refuse what cannot be compiled first, then settle where the data lies
    "hlo.hlo_verify",
    "hlo.check_sharding",  # before layouts: sharding decides which values exist
    "hlo.raise_attention",  # before layouts: the call's operands have none that matters
    "hlo.raise_mlp",
    "hlo.decompose_attention",
    "hlo.normalize_layouts",
    "hlo.assign_layouts",
    "hlo.descending_root",  # late: it repairs what assign-layouts left at the outputs
    # MHLO: flattening the results makes the get-tuple-elements that fold-tuples removes
    "mhlo.hlo_to_mhlo",
    "mhlo.penguinize_io",
    "mhlo.fold_tuples",
    "mhlo.fold_constants",
    "mhlo.unify_broadcasts",
    "mhlo.name_outputs",  # last: it names the values that are really returned
    # Penguin, whole tensors: clean up, then layouts, then groups and cuts
    "penguin.mhlo_to_penguin",
    "penguin.simplify",
    "penguin.value_number",
    "penguin.penguin_dce",
    "penguin.order_loops",
    "penguin.require_layouts",
    "penguin.build_pags",
    "penguin.solve_layout",
    "penguin.insert_transposes",
    "penguin.mark_nonlocal",  # needs the transposes: a transposed copy has a home too
    "penguin.build_pgs",
    "penguin.cut_partition",  # before cut-free: what overflows the partitions becomes loops
    "penguin.cut_free",
    "penguin.tile_contract",
    # Penguin, tiles
    "penguin.emit_tiles",
    "penguin.set_precision",
    "penguin.widen_fp8fn",
    "penguin.select_insts",
    "penguin.place_psum",  # needs engines: who may read PSUM is an engine's property
    "penguin.split_acc_groups",
    # kernels by hand: what tiling makes has its form by now, and theirs is their author's
    "penguin.nki_trace",
    "penguin.nki_seal",
    # BIR with loops; kernels are opened and spliced in before anything else sees the program
    "bir.penguin_to_bir",
    "bir.lnc_split",  # before kernels are opened: each core takes its own body of a kernel
    "bir.translate_nki",
    "bir.inline_kernels",
    "bir.lower_branches",  # from here on there are blocks, each a straight line
    "bir.bind_memlocs",
    "bir.finalize_insts",
    "bir.lower_ac",
    "bir.unroll",
    "bir.lower_select",  # before leave-ssa: it writes its result twice
    # BIR, a straight line over unplaced locations
    "bir.bir_dce",
    "bir.leave_ssa",
    "bir.legalize_sizes",
    "bir.widen_psum",
    "bir.pre_sched",
    "bir.copy_elim",
    # allocation: PSUM first (accumulators cannot move), then SBUF (it spills to DRAM), DRAM last
    "bir.reserve_runtime",
    "bir.liveness",
    "bir.alloc_psum",
    "bir.alloc_sbuf",
    "bir.insert_spills",
    "bir.alloc_dram",
    "bir.bind_dma",  # before the dependences: an edge needs the stream and queue of both ends
    # dependences, twice: the flags change what a START writes
    "bir.flow_deps",
    "bir.anti_deps",
    "bir.mm_acc_flags",
    "bir.flow_deps",
    "bir.anti_deps",
    # engines, counters, tables: nothing below adds an update once sync-waits has counted
    "bir.expand_engines",
    "bir.lnc_barriers",
    "bir.sync_waits",
    "bir.alloc_sems",
    "bir.load_act_tables",
    "bir.check_dve_profile",  # after everything that adds an instruction to DVE
    "bir.drop_warm_loads",  # after everything that moves an instruction or writes SBUF
    "bir.alloc_regs",
    # bytes
    "output.encode",
    "output.pack",
)


# passes that run only when they are asked for, by the option of their name
ASKED = frozenset({"raise-attention", "raise-mlp"})


@cache
def load(entry: str) -> Pass:
    """The pass of one entry of PIPELINE."""
    found: Pass = import_module(f"ncc.passes.{entry}").PASS
    return found


def called(pipeline: tuple[str, ...] = PIPELINE) -> dict[str, str]:
    """Each entry by the name that flags take: `flow-deps`, then `flow-deps.2`. Loads nothing."""
    names: dict[str, str] = {}
    for entry in pipeline:
        name = entry.rsplit(".", 1)[-1].replace("_", "-")
        stand = 1
        while (shown := name if stand == 1 else f"{name}.{stand}") in names:
            stand += 1
        names[shown] = entry
    return names
