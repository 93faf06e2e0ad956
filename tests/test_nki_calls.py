"""Calls of kernels: what binds, what comes back, what is traced again, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import namedtuple
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ncc import nki
from ncc.errors import NccError
from ncc.nki import compiler, hooks, programs
from ncc.nki import isa as nisa
from ncc.nki import language as nl
from ncc.nki.binding import bind
from ncc.nki.call import JitKernel
from ncc.nki.trace import is_tracing
from ncc.target import TARGETS

BF16 = ml_dtypes.bfloat16


def scaled_into(out, a, scale=2.0):
    """out = scale · a through SBUF, for kernels of up to 128 rows."""
    t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=float(scale))
    nisa.dma_copy(dst=out, src=t)


def scaled(a, scale=2.0):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    scaled_into(out, a, scale)
    return out


def numbers(*shape, dtype=np.float32):
    return np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)


def refused(call, *args, **kwargs):
    with pytest.raises(NccError) as told:
        call(*args, **kwargs)
    assert told.value.code in ("NCC005",) or told.value.code.startswith("NCC3")
    return told.value


@pytest.fixture(params=["simulated", "compiled"])
def how(request):
    """A kernel as it is called: by meaning, or compiled and run from its bytes."""
    return nki.simulate if request.param == "simulated" else lambda kernel: kernel


# --- what jit makes -------------------------------------------------------------------------------


def test_jit_with_and_without_parentheses_and_on_a_plain_function():
    for kernel in (nki.jit(scaled), nki.jit()(scaled), nki.jit(mode="baremetal")(scaled)):
        assert isinstance(kernel, JitKernel)
        assert (kernel.func, kernel.__wrapped__, kernel.__name__) == (scaled, scaled, "scaled")
        assert nki.jit(kernel).func is scaled


def test_a_call_computes(how):
    a = numbers(3, 4)
    assert np.array_equal(how(nki.jit(scaled))(a), 2 * a)
    assert np.array_equal(how(nki.jit(scaled))(a, scale=0.5), a / 2)


def test_a_function_made_by_exec_and_a_closure_and_a_partial(how):
    scope = {"scaled": scaled}
    exec("def made(a):\n    return scaled(a, 3.0)", scope)
    a = numbers(3, 4)
    assert np.array_equal(how(nki.jit(scope["made"]))(a), 3 * a)
    factor = 4.0

    @nki.jit
    def closed(a):
        return scaled(a, factor)

    assert np.array_equal(how(closed)(a), 4 * a)
    factor = 5.0  # a closure that sees another value is another kernel
    assert np.array_equal(how(closed)(a), 5 * a)
    assert np.array_equal(how(nki.jit(partial(scaled, scale=3.0)))(a), 3 * a)


def test_a_method_is_a_kernel():
    class Model:
        factor = 3.0

        @nki.jit
        def run(self, a):
            return scaled(a, self.factor)

        @nki.jit
        @staticmethod
        def plain(a):
            return scaled(a, 2.0)

    a = numbers(3, 4)
    assert np.array_equal(nki.simulate(Model().run)(a), 3 * a)
    assert np.array_equal(nki.simulate(Model.plain)(a), 2 * a)


def test_a_kernel_that_a_kernel_calls_is_part_of_it(how):
    inner = nki.jit(scaled)

    @nki.jit
    def outer(a):
        assert is_tracing()
        middle = inner(a, scale=3.0)
        return inner(middle)

    a = numbers(3, 4)
    assert np.array_equal(how(outer)(a), 6 * a)
    assert not is_tracing()


def test_simulate_takes_a_plain_function():
    a = numbers(3, 4)
    assert np.array_equal(nki.simulate(scaled)(a), 2 * a)
    assert np.array_equal(nki.cpu_simulate(scaled)(a=a), 2 * a)
    assert np.array_equal(nki.simulator.simulate_kernel(scaled, (a,), {"scale": 3}), 3 * a)


def test_the_variable_nki_simulator_simulates(monkeypatch):
    @nki.jit
    def uncompilable(a):
        big = nl.ndarray((128, 100_000), nl.float32, buffer=nl.sbuf)  # more than SBUF has
        nisa.memset(big, value=0.0)
        return scaled(a)

    a = numbers(3, 4)
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    assert np.array_equal(uncompilable(a), 2 * a)


def test_an_exception_leaves_no_trace_behind():
    @nki.jit
    def failing(a):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        nki.simulate(failing)(numbers(3, 4))
    assert not is_tracing()


# --- arguments ------------------------------------------------------------------------------------


def test_an_array_is_a_tensor_in_hbm_named_after_its_parameter():
    seen = {}

    @nki.jit
    def look(alpha, *rest, beta=None, **more):
        for tensor in (alpha, *rest, beta, *more.values()):
            seen[tensor.name] = (tensor.shape, str(tensor.dtype), tensor.buffer == nl.hbm)

    nki.simulate(look)(
        numbers(3, 4),
        numbers(2, 5, dtype=BF16),
        beta=numbers(7, dtype=np.int32),
        gamma=numbers(2, 3, 4, dtype=np.float16),
    )
    assert seen == {
        "alpha": ((3, 4), "float32", True),
        "rest_0": ((2, 5), "bfloat16", True),
        "beta": ((7,), "int32", True),
        "gamma": ((2, 3, 4), "float16", True),
    }


@dataclass(frozen=True)
class Weights:
    left: np.ndarray
    right: np.ndarray
    scale: float = 2.0

    def __hash__(self):
        return hash(self.scale)


Pair = namedtuple("Pair", "one two")


def test_arrays_inside_containers(how):
    @nki.jit
    def kernel(weights, pair, table, several):
        assert isinstance(weights, Weights) and isinstance(pair, Pair)
        assert weights.left.name == "weights_left" and table["k"].name == "table_k"
        outs = []
        for tensor in (weights.left, weights.right, pair.one, table["k"], *several):
            outs.append(scaled(tensor, weights.scale))
        return tuple(outs)

    a = [numbers(2, 2 + n) for n in range(6)]
    weights = Weights(a[0], a[1], 3.0)
    found = how(kernel)(weights, Pair(a[2], 7), {"k": a[3]}, (a[4], a[5]))
    assert [np.array_equal(x, 3 * y) for x, y in zip(found, a, strict=True)] == [True] * 6
    assert weights.left is a[0]


class Act(Enum):
    PLAIN = 1
    HALF = 2


@dataclass
class Config:
    factor: float = 1.0
    names: list = field(default_factory=list)


def test_values_of_the_program():
    seen = []

    @nki.jit
    def kernel(a, *values, **named):
        seen.append((values, named))
        return scaled(a)

    values = (1, 2.5, True, "word", None, Act.HALF, nl.bfloat16, (1, (2, 3)), {"k": 1}, len)
    config = Config(3.0, ["x"])
    nki.simulate(kernel)(
        numbers(3, 4), *values, config=config, small=np.int32(7), zero=np.float32(1)
    )
    (got, named) = seen[0]
    assert got == values and named["config"] == config
    assert type(named["small"]) is int and type(named["zero"]) is float


def test_64_bit_numbers_narrow_with_a_warning():
    a = numbers(3, 4, dtype=np.float64)
    with pytest.warns(UserWarning, match="a: float64 is passed to the kernel as float32") as told:
        found = nki.simulate(scaled)(a)
    assert found.dtype == np.float32 and Path(told[0].filename).name == Path(__file__).name
    with pytest.warns(UserWarning, match="int64"):
        assert nki.simulate(lambda a: a)(numbers(3, 4, dtype=np.int64)).dtype == np.int32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fault = refused(nki.simulate(lambda a: a), np.array([[1, 2**40]]))
    assert "argument a holds 1099511627776, which int32 does not" in str(fault)


def test_an_array_of_another_kind_is_refused():
    fault = refused(nki.simulate(scaled), np.zeros((3, 4), np.complex64))
    assert fault.code == "NCC305" and "argument a holds complex64" in fault.said


def test_layouts_and_scalars():
    a = numbers(4, 6)
    for given in (a.T, a[:, ::2], a[::-1], a.astype(">f4")):
        assert np.array_equal(nki.simulate(scaled)(given), 2 * given)
    seen = []
    nki.simulate(lambda a: seen.append(a.shape))(np.array(3.0, np.float32))
    assert seen == [(1,)]


def test_booleans_come_back_as_booleans():
    @nki.jit
    def kernel(a):
        assert a.dtype == nl.bool_
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=a)
        return out

    a = numbers(3, 4) % 3 == 0
    found = nki.simulate(kernel)(a)
    assert found.dtype == bool and np.array_equal(found, a)


def test_e4m3fn_becomes_e4m3_where_the_machine_has_no_other(monkeypatch):
    seen = []

    def kernel(a):
        seen.append(str(a.dtype))
        return a

    a = numbers(3, 4, dtype=ml_dtypes.float8_e4m3fn)
    for name in ("trn2", "gen4"):
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", name)
        assert np.array_equal(nki.simulate(kernel)(a).astype(np.float32), a.astype(np.float32))
    assert seen == ["float8_e4m3", "float8_e4m3fn"]


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "scaled was called without its parameter a (it takes a, scale)"),
        ((1,), {"scal": 2}, "scaled has no parameter scal (did you mean scale?)"),
        ((1, 2, 3), {}, "scaled takes 2 arguments by position, 3 were given (it takes a, scale)"),
        ((1,), {"a": 2}, "scaled was given its parameter a twice (it takes a, scale)"),
    ],
)
def test_arguments_that_do_not_fit_name_the_parameter_and_the_kernels_line(args, kwargs, said):
    fault = refused(nki.jit(scaled), *args, **kwargs)
    line = scaled.__code__.co_firstlineno
    assert str(fault) == f"NCC302 test_nki_calls.py:{line}: {said}"
    assert isinstance(fault, TypeError)


# --- results --------------------------------------------------------------------------------------


def test_results_keep_their_shape_of_containers(how):
    @nki.jit
    def kernel(a):
        out = scaled(a)
        other = scaled(a, 3.0)
        return [out, (other, out[1:2]), {"n": 7, "whole": out.reshape((4, 3))}, None]

    a = numbers(3, 4)
    found = how(kernel)(a)
    assert isinstance(found, list) and isinstance(found[1], tuple)
    assert np.array_equal(found[0], 2 * a) and np.array_equal(found[1][0], 3 * a)
    assert np.array_equal(found[1][1], 2 * a[1:2])
    assert found[2]["n"] == 7 and np.array_equal(found[2]["whole"], (2 * a).reshape(4, 3))
    assert found[3] is None


def test_arguments_and_views_of_them_are_results(how):
    @nki.jit
    def kernel(a, b):
        return a, b.reshape((6, 2))[2:4], scaled(a)

    a, b = numbers(3, 4), numbers(4, 3)
    found = how(kernel)(a, b)
    assert np.array_equal(found[0], a) and np.array_equal(found[1], b.reshape(6, 2)[2:4])
    assert np.array_equal(found[2], 2 * a)


def test_no_result(how):
    assert how(nki.jit(lambda a: None))(numbers(3, 4)) is None


def test_arrays_that_a_kernel_writes_are_updated(how):
    @nki.jit
    def kernel(a, out):
        scaled_into(out, a, 3.0)
        return out

    a, out = numbers(3, 4), np.zeros((3, 4), BF16)
    out32 = np.zeros((4, 3), np.float32).T  # not row-major
    assert np.array_equal(how(kernel)(a, out32), 3 * a) and np.array_equal(out32, 3 * a)
    assert how(kernel)(a.astype(BF16), out).dtype == BF16
    assert np.array_equal(out, (3 * a).astype(BF16)) and np.array_equal(a, numbers(3, 4))


def test_a_part_that_is_not_written_stays(how):
    @nki.jit
    def kernel(a, out):
        scaled_into(out[1:3], a)

    out = np.full((4, 4), 7, np.float32)
    assert how(kernel)(numbers(2, 4), out) is None
    assert np.array_equal(out[1:3], 2 * numbers(2, 4)) and (out[[0, 3]] == 7).all()


def test_a_read_only_array_that_is_written_is_refused():
    out = np.zeros((3, 4), np.float32)
    out.flags.writeable = False
    fault = refused(nki.simulate(scaled_into), out, numbers(3, 4))
    assert fault.code == "NCC305" and "writes its argument out" in fault.said


def test_a_result_outside_of_shared_hbm_is_refused():
    for memory in (nl.sbuf, nl.psum, nl.hbm):

        def kernel(a, memory=memory):
            t = nl.ndarray((3, 4), nl.float32, buffer=memory, name="t")
            if memory != nl.psum:
                nisa.dma_copy(dst=t, src=a)
            return t

        fault = refused(nki.simulate(kernel), numbers(3, 4))
        assert fault.code == "NCC306" and f"t, which is in {memory}" in fault.said
        assert fault.place.line == kernel.__code__.co_firstlineno + 1
        assert "buffer=nl.shared_hbm" in fault.hint


def test_a_result_that_nothing_writes_is_refused():
    def kernel(a):
        return nl.ndarray((3, 4), nl.float32, buffer=nl.shared_hbm, name="out")

    fault = refused(nki.simulate(kernel), numbers(3, 4))
    assert fault.code == "NCC307" and "returns out and never writes it" in fault.said


def test_a_tensor_of_another_run_is_refused():
    kept = []

    def kernel(a):
        kept.append(scaled(a))
        return kept[0]

    assert np.array_equal(nki.simulate(kernel)(numbers(3, 4)), 2 * numbers(3, 4))
    assert "a tensor of another run" in refused(nki.simulate(kernel), numbers(3, 4)).said


# --- specialisations ------------------------------------------------------------------------------


def test_a_kernel_is_traced_once_for_each_combination(monkeypatch):
    runs = []

    @nki.jit
    def kernel(a, value=None):
        runs.append(value)
        return scaled(a)

    def count(*args, call=kernel, **kwargs):
        before = len(runs)
        nki.simulate(call)(*args, **kwargs)
        return len(runs) - before

    a = numbers(3, 4)
    assert [count(a), count(a + 1), count(a=a)] == [1, 0, 0]
    assert [count(numbers(4, 3)), count(a.astype(BF16))] == [1, 1]
    assert [count(a, 1), count(a, True), count(a, 1.0), count(a, 1)] == [1, 1, 1, 0]
    assert [count(a, Config(1.0)), count(a, Config(2.0)), count(a, Config(1.0))] == [1, 1, 0]
    assert [count(a, {"k": [1]}), count(a, {"k": [2]}), count(a, {"k": [1]})] == [1, 1, 0]
    assert [count(a, nl.float32), count(a, nl.bfloat16), count(a, Act.HALF)] == [1, 1, 1]
    assert [count(a, call=kernel[1]), count(a, call=kernel[2]), count(a, call=kernel[1])] == [
        1,
        2,
        0,
    ]
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert [count(a), count(a)] == [1, 0]


def test_a_file_that_changed_is_another_value(tmp_path):
    path = tmp_path / "table.npy"
    runs = []

    @nki.jit
    def kernel(a, path):
        runs.append(path)
        return scaled(a, float(np.load(path)[0]))

    a = numbers(3, 4)
    for n, factor in enumerate((2.0, 3.0)):
        np.save(path, np.array([factor] * (n + 1)))
        assert np.array_equal(nki.simulate(kernel)(a, str(path)), factor * a)


def test_a_kernel_that_changes_its_arguments_changes_its_own():
    @nki.jit
    def kernel(a, names, config):
        names.append("mine")
        config.names.append("mine")
        config.factor = 9.0
        assert len(names) == 2 and len(config.names) == 1
        return scaled(a)

    names, config = ["yours"], Config()
    nki.simulate(kernel[2])(numbers(3, 4), names, config)
    assert names == ["yours"] and config == Config()


# --- targets, grids, options ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "target"),
    [("", "trn2"), ("inf2", "trn1"), ("gen2", "trn1"), ("gen3", "trn2"), ("trn3", "trn3")],
)
def test_the_environment_names_the_target(monkeypatch, word, target):
    from ncc.nki.trace import current

    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", word)
    seen = []
    nki.simulate(lambda a: seen.append(current().target.name))(numbers(3, 4))
    assert seen == [target]


def test_a_target_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn22")
    fault = refused(nki.jit(scaled), numbers(3, 4))
    assert fault.code == "NCC380" and "did you mean" in fault.hint


def test_nki_frontend_is_reported_and_ignored(monkeypatch):
    monkeypatch.setenv("NKI_FRONTEND", "parser-of-this-test")
    with pytest.warns(UserWarning, match="NKI_FRONTEND=parser-of-this-test is ignored"):
        nki.simulate(scaled)(numbers(3, 4))


def test_two_cores_share_their_results():
    @nki.jit
    def kernel(a):
        core, count = nl.program_id(0), nl.num_programs()
        assert count == 2 and a.buffer == nl.shared_hbm
        rows = a.shape[0] // count
        if core == 1:
            scratch = nl.ndarray((2, 2), nl.float32, buffer=nl.sbuf)  # only here
            nisa.memset(scratch, value=0.0)
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        part = slice(core * rows, (core + 1) * rows)
        scaled_into(out[part], a[part])
        return out

    a = numbers(6, 4)
    assert np.array_equal(nki.simulate(kernel[2])(a), 2 * a)
    assert np.array_equal(nki.simulate(kernel)[2](a), 2 * a)


def test_two_cores_pair_shared_tensors_by_name():
    @nki.jit
    def kernel(a):
        names = ["left", "right"] if nl.program_id(0) == 0 else ["right", "left"]
        outs = {n: nl.ndarray((3, 4), a.dtype, buffer=nl.shared_hbm, name=n) for n in names}
        core = nl.program_id(0)
        scaled_into(outs["left" if core == 0 else "right"], a, 2.0 + core)
        return outs["left"], outs["right"]

    a = numbers(3, 4)
    left, right = nki.simulate(kernel[2])(a)
    assert np.array_equal(left, 2 * a) and np.array_equal(right, 3 * a)


def test_cores_that_disagree_about_a_shared_tensor_are_refused():
    @nki.jit
    def kernel(a):
        rows = 3 + nl.program_id(0)
        return nl.ndarray((rows, 4), a.dtype, buffer=nl.shared_hbm, name="out")

    fault = refused(nki.simulate(kernel[2]), numbers(3, 4))
    assert fault.code == "NCC382" and "[3, 4]" in fault.said and "[4, 4]" in fault.said


@pytest.mark.parametrize("grid", [0, 3, (1, 2), "two"])
def test_a_grid_that_is_none_is_refused(grid):
    assert refused(lambda: nki.jit(scaled)[grid]).code == "NCC304"


def test_a_kernel_inside_a_kernel_asks_for_no_other_cores():
    inner = nki.jit(scaled)

    @nki.jit
    def outer(a):
        return inner[2](a)

    assert "its caller runs on 1" in refused(nki.simulate(outer), numbers(3, 4)).said
    assert np.array_equal(nki.simulate(outer[2])(numbers(3, 4)), 2 * numbers(3, 4))


def test_platform_target_is_refused():
    fault = refused(nki.jit, scaled, platform_target="trn2")
    assert fault.code == "NCC309" and isinstance(fault, TypeError)


def test_what_is_no_function_is_refused():
    assert refused(nki.jit, 3).code == "NCC303"
    assert refused(nki.jit, Config).code == "NCC303"


def test_option_decorators_stand_above_jit():
    @compiler.enable_stack_allocator(log_level=10)
    @compiler.skip_middle_end_transformations
    @nki.jit
    def kernel(a):
        return scaled(a)

    assert kernel.options.allocator == "stack" and kernel.options.skip_middle_end
    assert compiler.force_auto_alloc(kernel).options.force_auto_alloc
    other = compiler.update_allocator(allocator="linear_scan")(kernel)
    assert other.options.allocator == "linear-scan"
    fault = refused(compiler.update_allocator, kernel, allocator="stak")
    assert fault.code == "NCC309" and fault.hint == "did you mean stack?"
    assert np.array_equal(kernel(numbers(3, 4)), 2 * numbers(3, 4))
    fault = refused(compiler.skip_middle_end_transformations, scaled)
    line = scaled.__code__.co_firstlineno
    assert str(fault).startswith(
        f"NCC303 test_nki_calls.py:{line}: @skip_middle_end_transformations"
    )
    assert "above @nki.jit" in fault.hint


def test_the_form_of_a_kernel_changes_no_byte(folder):
    """From the kernel's options, from the call of ncc.compile, and from the one-kernel program."""
    import ncc as package
    from ncc.nki.running import neff_of, stage_of

    made = []
    for form in ("bir", "klir"):
        kernel, machine = nki.jit(scaled).with_options(form=form), TARGETS["trn2"]
        found = kernel.specialisation(bind(scaled, (numbers(3, 4),), {}, machine), machine)
        carrier = package.compile(stage_of(found), stop_after="penguin-to-bir")
        assert f"kernel_format={form}" in carrier.text()
        made.append(neff_of(found).module)
        args = {"a": "f32[3,4]"}
        called = package.compile("kernels.py:double", args=args, form=form)
        (out,) = package.run("kernels.py:double", [numbers(3, 4)], args=args, form=form)
        assert np.array_equal(out, 2 * numbers(3, 4))
        made.append(called.module)
    assert made[0] == made[2] and made[1] == made[3]
    with pytest.raises(NccError, match=r"NCC294 .*travels as 'json'; there are bir and klir"):
        package.compile("kernels.py:double", args=args, form="json")


def test_a_place_that_cannot_be_kept_is_told(monkeypatch):
    def kernel(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf, address=(0, 64))
        narrow = [
            nl.ndarray(a.shape, nl.bfloat16, buffer=nl.psum, address=(0, 8 * n)) for n in range(2)
        ]
        nisa.dma_copy(t, a)
        for one in narrow:
            nisa.tensor_copy(one, t)
            nisa.tensor_copy(t, one)
        nisa.dma_copy(out, t)
        return out

    with pytest.warns(UserWarning, match="NCC326 .* is placed anew, not at .0, 0.: an element"):
        assert np.array_equal(nki.jit(kernel)(numbers(3, 4)), numbers(3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nki.simulate(nki.jit(kernel))(numbers(3, 4))
        compiler.force_auto_alloc(nki.jit(kernel))(numbers(3, 4))

    @nki.jit
    def two(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        half = nl.ds(2 * nl.program_id(0), 2)
        t = nl.ndarray((2, 4), a.dtype, buffer=nl.sbuf, address=(0, 64))
        nisa.dma_copy(t, a[half])
        nisa.dma_copy(out[half], t)
        return out

    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    with pytest.warns(UserWarning, match="core 1's place is the first core's on trn1"):
        assert np.array_equal(two[2](numbers(4, 4)), numbers(4, 4))


def test_a_schedule_adds_edges_and_changes_no_result(how):
    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf) for _ in range(2)]
        nisa.dma_copy(dst=tiles[0], src=a, name="first")
        nisa.dma_copy(dst=tiles[1], src=a, name="second")
        nisa.dma_copy(dst=out, src=tiles[0], name="third")
        return out

    a = numbers(3, 4)
    ordered = kernel.with_schedule([("third", ["second"])])
    assert np.array_equal(how(ordered)(a), a)
    fault = refused(how(kernel.with_schedule([("third", "secnd")])), a)
    assert fault.code == "NCC381" and fault.hint == "did you mean second?"
    assert "comes later" in refused(how(kernel.with_schedule([("first", "third")])), a).said


# --- other front doors ----------------------------------------------------------------------------


def test_compile_kernel_with_names_for_inputs_and_outputs(tmp_path):
    from ncc.nki.compiler.kernel_builder import CompileOptions, compile_kernel

    def kernel(a, out, scale):
        scaled_into(out, a, scale)

    a, out = numbers(3, 4), np.zeros((3, 4), np.float32)
    options = CompileOptions(target="trn2", lnc=1, output_path=tmp_path / "x.neff")
    made = compile_kernel(kernel, {"a": a}, {"out": out}, options, scale=3.0)
    assert Path(made.path).read_bytes()
    made(a, out, 3.0)
    assert np.array_equal(out, 3 * a)


def test_the_drivers_functions(tmp_path):
    from ncc.nki.compiler.driver import CompileOptions, compile_to_bir
    from ncc.nki.compiler.frontend import TracerFrontend
    from ncc.nki.compiler.ncc_driver import compile_bir_to_neff
    from ncc.nki.framework.kernel import Kernel

    options = CompileOptions(target="trn2", lnc=1, artifacts_dir=tmp_path)
    options.set_pipeline_options("--any")
    a = numbers(3, 4)
    bir = compile_to_bir(
        Kernel(scaled),
        frontend=TracerFrontend(),
        inputs={"a": a},
        compile_opts=options,
        output_names=["out"],
    )
    path = compile_bir_to_neff(options, bir, [a], ["a"], ["out"])
    assert Path(path).parent == tmp_path and Path(path).read_bytes()


def test_torch_arrays_give_torch_arrays():
    torch = pytest.importorskip("torch", reason="needs PyTorch, which ncc does not install")
    a = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    for given in (a, a.to(torch.bfloat16)):
        found = nki.simulate(scaled)(given)
        assert found.dtype == given.dtype and torch.equal(found, 2 * given)
    out = torch.zeros(3, 4)
    nki.simulate(scaled_into)(out, a)
    assert torch.equal(out, 2 * a)


# --- install, scripts, commands -------------------------------------------------------------------

KERNEL = """
import sys
from dataclasses import dataclass
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
from nki.isa.constants import dge_mode

@dataclass(frozen=True)
class Config:
    scale: float = 2.0

@nki.jit
def double(a, scale=2.0, groups=None, dtype=None, config=None):
    assert a.shape[0] <= 128, f"too many rows: {a.shape[0]}"
    if config is not None:
        scale = config.scale
    out = nl.ndarray(a.shape, dtype or a.dtype, buffer=nl.shared_hbm, name="out")
    t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf, name="t")
    u = nl.ndarray(a.shape, dtype or a.dtype, buffer=nl.sbuf, name="u")
    nisa.dma_copy(dst=t, src=a)
    nisa.tensor_scalar(dst=u, data=t, op0=nl.multiply, operand0=scale)
    nisa.dma_copy(dst=out, src=u)
    return out

@nki.jit
def pair(xs):
    return [double(x) for x in xs]

if __name__ == "__main__":
    a = np.arange(int(sys.argv[1]) * 4, dtype=np.float32).reshape(-1, 4)
    print(float(double(a).sum()), float(nki.simulate(double)(a).sum()))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "kernels.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(*arguments):
    root = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )


def test_a_script_imports_nki_and_calls_kernels(folder):
    done = python("-m", "ncc", "kernels.py", "3")
    assert (done.stdout, done.stderr, done.returncode) == ("132.0 132.0\n", "", 0)


def test_a_script_that_fails_shows_its_own_lines_only(folder):
    done = python("-m", "ncc", "kernels.py", "200")
    assert done.returncode == 1 and done.stderr.endswith("AssertionError: too many rows: 200\n")
    assert "kernels.py" in done.stderr and "/ncc/nki/" not in done.stderr
    done = python("-m", "ncc", "absent.py")
    assert (done.returncode, done.stderr) == (2, "ncc: NCC003 absent.py: no such file\n")


def test_a_refusal_in_a_script_is_one_sentence(folder):
    text = KERNEL.replace("buffer=nl.shared_hbm, name", "buffer=nl.hbm, name")
    (folder / "kernels.py").write_text(text)
    done = python("-m", "ncc", "kernels.py", "3")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("ncc: NCC306 kernels.py:19, out: ")


def test_installing_twice_and_names_that_are_not_there(folder):
    code = (
        "import sys, ncc.nki\n"
        "try:\n    import nki\nexcept ImportError:\n    print('absent')\n"
        "ncc.nki.install()\nncc.nki.install()\n"
        "import nki, nki.isa as nisa, nki.compiler.kernel_builder\n"
        "from nki import language\n"
        "import ncc.nki.isa\n"
        "assert nki is ncc.nki and nisa is ncc.nki.isa and language.ndarray\n"
        "import nki.collectives, nki.typing, nki.meta, nki.compiler.ncc_driver, nki.framework.kernel\n"
        "try:\n    import nki.nonsense\nexcept ModuleNotFoundError as e:\n    print(e)\n"
    )
    done = python("-c", code)
    assert done.stdout == "absent\nncc has no module 'nki.nonsense'\n", done.stderr


def test_a_package_that_is_installed_steps_back(folder):
    (folder / "nki").mkdir()
    (folder / "nki" / "__init__.py").write_text("REAL = True")
    code = "import nki; assert nki.REAL; import ncc.nki; ncc.nki.install(); import nki; print(nki.jit.__module__)"
    done = python("-c", code)
    assert done.stdout == "ncc.nki.call\n", done.stderr


def test_uninstall_gives_the_names_back():
    hooks.install()
    assert sys.modules["nki"] is nki
    hooks.uninstall()
    assert "nki" not in sys.modules
    hooks.uninstall()


@pytest.fixture
def ncc(folder, capsys):
    from ncc.cli import call

    def run(*arguments):
        status = call(list(arguments))
        told = capsys.readouterr()
        return status, told.out, told.err

    yield run
    hooks.uninstall()


def test_ncc_run_draws_the_arrays_and_prints_the_outputs(ncc):
    arguments = ["--arg", "a=bf16[3,4]", "--arg", "scale=0.5", "--arg", "groups=((0,1),)"]
    status, out, err = ncc("run", "kernels.py:double", *arguments)
    assert status == 0 and out.startswith("out bfloat16 3x4\n"), err
    at = ncc("run", "kernels.py:double", *arguments, "--at", "penguin")
    assert at[1] == out


def test_ncc_run_takes_inputs_by_parameter(ncc):
    a = numbers(3, 4)
    np.savez("in.npz", a=a)
    arguments = ["kernels.py:double", "--arg", "a=f32[3,4]", "--inputs", "in.npz"]
    status, _, err = ncc("run", *arguments, "--outputs", "out.npz")
    assert status == 0, err
    assert np.array_equal(np.load("out.npz")["out0"], 2 * a)


@pytest.mark.parametrize(
    "more",
    [
        ["dtype=bfloat16"],
        ["dtype=nl.bfloat16"],
        ["config=Config(scale=3.0)"],
        ["groups=None", "scale=4"],
    ],
)
def test_values_are_written_as_in_python(ncc, more):
    flags = [word for value in more for word in ("--arg", value)]
    status, out, err = ncc("run", "kernels.py:double", "--arg", "a=f32[3,4]", *flags)
    assert status == 0, err
    assert out.startswith("out bfloat16" if "bfloat16" in more[0] else "out float32")


def test_several_arrays_in_one_value(ncc):
    status, out, err = ncc("run", "kernels.py:pair", "--arg", "xs=(f32[3,4], bf16[2,5])")
    assert status == 0 and "out float32 3x4" in out and "out_2 bfloat16 2x5" in out, err


def test_ncc_compile_prints_the_trace_like_the_kernel(ncc):
    arguments = ["kernels.py:double", "--arg", "a=bf16[3,4]"]
    status, out, err = ncc("compile", *arguments, "--print-after", "nki-trace")
    assert status == 0 and "wrote double.neff" in err
    assert "nisa.tensor_scalar(dst=u, data=t, operand0=2.0, op0=" in out
    assert "nisa.dma_copy(dst=out, src=u)  # kernels.py:24" in out
    written = Path("double.neff").read_bytes()
    assert ncc("compile", *arguments, "--nki-form", "klir")[0] == 0
    assert Path("double.neff").read_bytes() == written


def test_a_file_that_changed_within_a_second_is_read_again(tmp_path):
    path = tmp_path / "quick.py"
    for number in (1, 2):
        path.write_text(f"NUMBER = {number}\n")
        found = programs.imported(path).NUMBER
        assert found == number


def test_ncc_check_and_draw(ncc):
    arguments = ["kernels.py:double", "--arg", "a=bf16[3,4]"]
    status, out, err = ncc("check", *arguments)
    assert status == 0, err + out
    status, out, _ = ncc("draw", *arguments, "--after", "nki-trace")
    assert status == 0 and "<svg" in out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            ["kernels.py:double"],
            1,
            "NCC302 kernels.py:14: double was called without its parameter a",
        ),
        (["kernels.py:doubel"], 2, "kernels.py has no doubel (did you mean double?)"),
        (["kernels.py:Config"], 2, "Config is no kernel in kernels.py"),
        (["absent.py:double"], 2, "NCC003"),
        (["kernels.py"], 2, "NCC002 kernels.py is Python: name the kernel in it"),
        (["kernels.py:double", "--arg", "a"], 2, "cannot read --arg 'a', expected NAME=VALUE"),
        (["kernels.py:double", "--arg", "a=f32[3"], 2, "cannot read the argument 'f32[3'"),
        (["kernels.py:double", "--arg", "a=f32[3,4]", "--arg", "scale=1/0"], 2, "division by zero"),
        (
            ["kernels.py:double", "--arg", "a=f32[300,4]"],
            1,
            "ncc: NCC308 kernels.py:16: AssertionError: too many rows: 300\n",
        ),
        (["kernels.py:double", "--arg", "a=f32[3,4]", "--target", "trn9"], 2, "no target"),
    ],
)
def test_what_the_command_line_refuses(ncc, arguments, status, said):
    found, out, err = ncc("run", *arguments)
    assert (found, out) == (status, "") and said in err and err.count("\n") == 1


MORE = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def tiled(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    at = nl.program_id(0) * 8 + nl.arange(8)[:, None], nl.program_id(1) * 4 + nl.arange(4)[None, :]
    nl.store(out[at], value=nl.load(a[at]))
    return out


def plain(a, b):
    i, j = nl.mgrid[0:8, 0:4]
    nl.store(b[i, j], nl.load(a[i, j]))


@nki.jit
def forgets(a):
    tiled.func(a)


@nki.jit
def claims(a):
    assert a.shape[0] == 3
"""


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["more.py:tiled[2,1]", "--arg", "a=i32[16,4]"], 0, "no inputs given"),
        (["more.py:tiled", "--arg", "a=f32[16,4]"], 1, "NCC366 more.py:8"),
        (["more.py:plain", "--arg", "a=f32[8,4]", "--arg", "b=f32[8,4]"], 0, "no inputs given"),
        (
            ["more.py:forgets[1,1]", "--arg", "a=f32[8,4]"],
            1,
            "NCC307 more.py:18: forgets returns no",
        ),
        (["more.py:claims", "--arg", "a=f32[8,4]"], 1, "AssertionError: assert a.shape[0] == 3"),
        (["more.py:claims", "--arg", "a=f32"], 1, "(if a is an array: --arg a=bf16[128,512])"),
        (["more.py:claims", "--arg", "a=[8,4]"], 1, "(if a is an array: --arg a=bf16[128,512])"),
        (["more.py:claims", "--arg", "a=f23[8,4]"], 2, "f23 of f23[8,4] is no element type"),
        (["more.py:claims", "--arg", "a=f32[8]", "--arg", "a=f32[9]"], 2, "--arg gives a twice"),
    ],
)
def test_what_a_newcomer_writes_on_the_command_line(ncc, folder, arguments, status, said):
    (folder / "more.py").write_text(MORE)
    found, _, err = ncc("run", *arguments)
    assert found == status and said in err and err.count("\n") == 1, err


def test_a_call_that_gives_nothing_warns(capsys):
    @nki.jit
    def forgets(a):
        nl.load(a)

    @nki.jit
    def prints(a):
        nl.device_print("a", nl.load(a))

    with pytest.warns(UserWarning, match="NCC307 .*forgets returns no tensor that it wrote"):
        assert forgets(numbers(3, 4)) is None
    with warnings.catch_warnings(action="error"):
        nki.simulate(prints)(numbers(3, 4))
    assert capsys.readouterr().out


def test_a_file_that_does_not_import_is_told_with_its_line(ncc, folder):
    for text, said in (
        ("x = 1\ndef broken(:\n", "kernels.py:2: SyntaxError: invalid syntax"),
        ("import nki.nonsense\n", "kernels.py:1: ModuleNotFoundError: ncc has no module"),
        ("x = 1\n\n1 / 0\n", "kernels.py:3: ZeroDivisionError: division by zero"),
    ):
        (folder / "kernels.py").write_text(text)
        status, _, err = ncc("run", "kernels.py:double")
        assert status == 1 and said in err, err


def test_options_of_kernels_are_refused_for_other_programs(ncc, folder):
    (folder / "x.hlo").write_text("HloModule x\n")
    for flags in (["--lnc", "2"], ["--arg", "a=1"], ["--nki-form", "klir"]):
        status, _, err = ncc("run", "x.hlo", *flags)
        assert status == 2 and "is for a kernel, and x.hlo is none" in err


def test_the_target_of_the_command_line_wins(ncc, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    arguments = ["kernels.py:double", "--arg", "a=bf16[3,4]", "--stop-after", "nki-trace"]
    assert "target=trn1" in ncc("compile", *arguments)[1]
    assert "target=trn3" in ncc("compile", *arguments, "--target", "trn3")[1]


def test_the_functions_of_the_package(folder):
    import ncc as package

    program, args = "kernels.py:double", {"a": "f32[3,4]", "scale": 3.0}
    (out,) = package.run(program, [numbers(3, 4)], args=args)
    assert np.array_equal(out, 3 * numbers(3, 4))
    assert package.compile(program, args=args).level == "neff"
    hooks.uninstall()


# --- odd ends -------------------------------------------------------------------------------------


def test_a_register_is_no_result_and_a_handle_is_none():
    def register(a):
        return nisa.register_alloc(3)

    assert "returns a register" in refused(nki.simulate(register), numbers(3, 4)).said

    def handle(a):
        t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
        return nisa.dma_copy(dst=t, src=a)

    assert nki.simulate(handle)(numbers(3, 4)) is None


def test_what_was_set_on_the_function_is_read_on_the_kernel():
    def kernel(a):
        return scaled(a)

    kernel.tolerance = 0.5
    assert nki.jit(kernel).tolerance == 0.5
    assert not hasattr(nki.jit(kernel), "absent")


def test_an_object_that_is_called_is_a_kernel():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, a):
            return scaled(a, self.factor)

    kernel = nki.jit(Scale(3.0))
    assert np.array_equal(nki.simulate(kernel)(numbers(3, 4)), 3 * numbers(3, 4))
    fault = refused(kernel)
    assert fault.place.line == Scale.__call__.__code__.co_firstlineno


def test_memories_without_an_import():
    scope = {"nisa": nisa, "np": np}
    code = (
        "def kernel(a):\n"
        "    t = sbuf.view(dtype=a.dtype, shape=a.shape)\n"
        "    out = shared_hbm.view(dtype=a.dtype, shape=a.shape)\n"
        "    nisa.dma_copy(dst=t, src=a)\n"
        "    nisa.dma_copy(dst=out, src=t)\n"
        "    return out\n"
    )
    exec(code, scope)
    a = numbers(3, 4)
    assert np.array_equal(nki.simulate(scope["kernel"])(a), a)
    assert "sbuf" not in scope


def test_names_that_the_text_of_a_program_uses_are_parameters_too():
    @nki.jit
    def f(tensor, loop, nisa_=None):
        return scaled(tensor), scaled(loop)

    a, b = numbers(3, 4), numbers(2, 5)
    found = f(a, b)
    assert np.array_equal(found[0], 2 * a) and np.array_equal(found[1], 2 * b)


@pytest.mark.parametrize("cores", [1, 2])
def test_the_instances_of_a_grid_share_their_results(cores):
    from ncc.nki.binding import bind
    from ncc.nki.options import Options
    from ncc.nki.outcome import delivered
    from ncc.nki.running import interpreted
    from ncc.nki.specialise import specialised
    from ncc.nki.targets import default_target
    from ncc.nki.trace import current

    def kernel(a):
        row, half = current().program
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        part = (slice(row, row + 1), slice(3 * half, 3 * half + 3))
        scaled_into(out[part], a[part], 2.0 + half)
        return out

    a = numbers(4, 6)
    grid = [(row, half) for row in range(4) for half in range(2)]
    share = len(grid) // cores
    bound = bind(kernel, (a,), {}, default_target())
    programs = [grid[core * share : (core + 1) * share] for core in range(cores)]
    found = specialised(kernel, bound, default_target(), Options(), grid=(4, 2), programs=programs)
    assert len(found.kernels) == cores
    out = delivered(found, bound.arrays, interpreted)
    assert np.array_equal(out, a * np.array([2, 2, 2, 3, 3, 3], np.float32))


def test_every_array_of_a_kernel_goes_the_whole_way(how):
    """Types that numpy, ml_dtypes and the machine share keep their bits through a kernel."""

    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=a)
        nisa.dma_copy(dst=out, src=t)
        return out

    names = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32"]
    kinds = [np.dtype(name) for name in names]
    kinds += [np.dtype(getattr(ml_dtypes, n)) for n in ("bfloat16", "float8_e4m3", "float8_e5m2")]
    for kind in kinds:
        a = numbers(3, 4, dtype=kind)
        found = how(kernel)(a)
        assert found.dtype == kind and found.tobytes() == a.tobytes(), kind
