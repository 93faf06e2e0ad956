"""Wrong kernels: each is answered by one sentence with the file, the line, the numbers, the rule and
what to do; the same from the simulator, from the compiled call and from the command line."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from wrong_kernels import CASES, Wrong, tiled

from ncc import nki
from ncc.cli import call
from ncc.errors import NccError
from ncc.nki import programs
from ncc.rules import named, rules

DTYPES = {"f32": np.float32, "i32": np.int32, "bf16": "bfloat16", "c64": np.complex64}
SENTENCE = re.compile(r"(?P<code>NCC\d{3}) (?P<file>[\w.]+):(?P<line>\d+)(?:, .+?)?: (?P<said>.+)")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def value_of(text: str):
    """The value of an argument, an array for `f32[3,4]`."""

    def array(found: re.Match[str]) -> str:
        return f"np.ones(({found[2]},), DTYPES['{found[1]}'])"

    return eval(re.sub(r"\b(f32|i32|c64)\[([\d,]+)\]", array, text), globals())


def called(case: Wrong, way: str) -> str:
    """The sentence of a call in Python."""
    kernel = programs.imported(Path("kernel.py")).kernel
    if case.lnc > 1:
        kernel = kernel[case.lnc]
    if way == "simulated":
        kernel = nki.simulate(kernel)
    with pytest.raises(NccError) as told, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel(**{name: value_of(text) for name, text in case.args.items()})
    assert isinstance(told.value, NccError)
    return str(told.value)


def typed(case: Wrong, verb: str = "run") -> str:
    """The sentence of the command line: status 1, one line on stderr, nothing on stdout."""
    words = [verb, "kernel.py:kernel", "--target", case.target, "--lnc", str(case.lnc)]
    for name, text in case.args.items():
        words += ["--arg", f"{name}={text}"]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = call(words)
    lines = [line for line in err.getvalue().split("\n") if line and "inputs given" not in line]
    assert (status, len(lines), out.getvalue()) == (1, 1, ""), err.getvalue()
    assert lines[0].startswith("ncc: ")
    return lines[0].removeprefix("ncc: ")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_wrong_kernel_is_answered_by_one_sentence(case, monkeypatch):
    Path("kernel.py").write_text(case.source)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", case.target)
    told = {way: typed(case) if way == "run" else called(case, way) for way in case.ways}
    parts = {way: SENTENCE.fullmatch(said) for way, said in told.items()}
    assert all(parts.values()), told
    assert len({found.groups() for found in parts.values() if found}) == 1, told
    said, found = told[case.ways[-1]], parts[case.ways[-1]]
    assert found
    assert found["code"] == case.code, said
    assert (found["file"], int(found["line"])) == ("kernel.py", case.line), said
    for word in case.words:
        assert word in said, (word, said)
    if case.code != "NCC308":  # those are the kernel's own words
        assert re.search(r" \(.*[a-z].*\)$", said), f"no hint: {said}"


def test_there_are_many_of_them_and_of_most_rules():
    assert len({case.name for case in CASES}) == len(CASES) >= 150
    shown = {case.code for case in CASES}
    mine = {code for code in rules() if "NCC301" <= code <= "NCC369"}
    assert mine - shown == {"NCC335", "NCC359"}, "warnings"


def warned(body: str, target: str, monkeypatch) -> list[str]:
    """What a kernel of the usual tiles warns of."""
    case = tiled("warned", "", "", body)
    Path("kernel.py").write_text(case.source)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    kernel = programs.imported(Path("kernel.py")).kernel
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        nki.simulate(kernel)(**{name: value_of(text) for name, text in case.args.items()})
    return [str(one.message) for one in heard]


def test_a_sum_on_a_filled_tile_is_warned_of_before_trn3(monkeypatch):
    add = "nisa.nc_matmul(p, k, t)\nnisa.nc_matmul(p, k, t)\nnisa.tensor_copy(t, p)"
    (said,) = warned(f"nisa.memset(p, 7.0)\n{add}", "trn2", monkeypatch)
    assert said.startswith(
        "NCC335 kernel.py:19: nc_matmul adds to dst p (128, 512), which a memset"
    )
    assert not warned(f"nisa.memset(p, 7.0)\n{add}", "trn3", monkeypatch)
    assert not warned(f"nisa.memset(p, 0.0)\n{add}", "trn2", monkeypatch)


def test_a_kernel_warns_once_of_integers_in_float32(monkeypatch):
    line = "nisa.tensor_scalar(i, i, nl.add, 1)\n"
    (said,) = warned(f"nisa.memset(i, 1)\n{3 * line}", "trn2", monkeypatch)
    assert said.startswith("NCC359 kernel.py:19: tensor_scalar computes in float32: integers of ")
    assert said.endswith("; 2 more like it in this kernel")


def test_the_command_line_tells_warnings_behind_the_outputs(capsys):
    Path("kernel.py").write_text(
        tiled("warned", "", "", "nisa.memset(i, 1)\nnisa.tensor_scalar(i, i, nl.add, 1)").source
    )
    words = ["--arg", "x=f32[128,512]", "--arg", "w=f32[128,128]", "-o", "k.neff"]
    assert call(["compile", "kernel.py:kernel", *words]) == 0
    *_, last = capsys.readouterr().err.strip().split("\n")
    assert last.startswith("ncc: warning: NCC359 kernel.py:19: tensor_scalar computes in float32")


@pytest.mark.parametrize("verb", ["compile", "check"])
@pytest.mark.parametrize("name", ["256-rows", "if-tensor", "result-in-sbuf", "three-wide-tiles"])
def test_every_command_says_the_same(verb, name):
    (case,) = [case for case in CASES if case.name == name]
    Path("kernel.py").write_text(case.source)
    assert typed(case, verb) == typed(case)
    assert not list(Path().glob("*.neff"))


def test_a_script_is_answered_by_the_same_sentence():
    (case,) = [case for case in CASES if case.name == "over-a-bank"]
    lines = [
        *("import numpy as np", "x = np.ones((128, 512), np.float32)"),
        "kernel(x, x[:, :128])",
    ]
    Path("kernel.py").write_text(case.source + "\n" + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "ncc", "kernel.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stderr == f"ncc: {typed(case)}\n"


def test_the_classes_of_faults_are_pythons():
    """A kernel's `except AssertionError` or `except TypeError` sees them."""
    kinds = {"256-rows": nki.isa.NkiValidationError, "reduce-dst": AssertionError}
    for name, kind in {**kinds, "if-tensor": TypeError, "unknown-call": AttributeError}.items():
        (case,) = [case for case in CASES if case.name == name]
        Path("kernel.py").write_text(case.source)
        kernel = programs.imported(Path("kernel.py")).kernel
        with pytest.raises(kind):
            kernel(**{name: value_of(text) for name, text in case.args.items()})


# --- the pages ------------------------------------------------------------------------------------

# the names under which the older API's documentation lists its errors
OLDER_NAMES = re.findall(
    r"\w+",
    """
1d_arange_not_supported activation_bias_invalid_type activation_scale_invalid_type
activation_scale_scalar_or_vector ambiguous_tensor_truth_value annotation_shape_mismatch
bias_tensor_must_be_specified_in_allocation cannot_assign_to_index
cannot_update_immutable_parameter control_flow_condition_depending_on_arange
copy_dynamic_indirect_indices_not_natively_supported dynamic_control_flow_not_supported
exceed_max_supported_dimension failed_to_infer_tile_from_local_tensor
hbm_tensor_with_init_value_not_supported indirect_indices_are_not_supported_with_nki_api
indirect_indices_free_dim leading_dimension_of_tensor_must_be_partition
local_variable_used_out_of_scope mutable_parameter_not_returned nested_kernel_with_spmd_grid
nki_api_outside_of_nki_kernel num_partition_exceed_arch_limit num_partition_mismatch
shared_hbm_must_in_kernel_level size_of_dimension_exceed_arch_limit
store_dst_shape_smaller_than_other_shape tensor_access_out_of_bound
tensor_creation_on_scratchpad_with_init_value_not_supported tensor_output_not_written_to
transpose_on_tensor_engine_not_allowed_in_allocated_kernel unexpected_output_dependencies
unsupported_expression_in_mask unsupported_memory unsupported_mixing_basic_advanced_tensor_indexing
while_loop_requires_unconditional_entry
""",
)


@pytest.mark.parametrize("name", OLDER_NAMES)
def test_explain_knows_the_older_names(capsys, name):
    assert call(["explain", f"err_{name}"]) == 0
    page = capsys.readouterr().out
    rule = named(f"err_{name}")
    assert rule is not None and "NCC291" < rule.code < "NCC400"
    assert page.startswith(rule.code) and rule.title in page and rule.fix in page


def test_every_page_of_nki_can_be_read_at_once():
    assert len(OLDER_NAMES) == 36
    for rule in rules().values():
        if "NCC300" <= rule.code < "NCC400":
            assert len(rule.says) < 500 and len(rule.fix) < 300, rule.code


def test_pages_with_a_kernel_show_it(capsys):
    assert call(["explain", "NCC337"]) == 0
    page = capsys.readouterr().out
    assert "nisa.nc_matmul(dst=wide, stationary=t, moving=y)" in page
    assert "nisa.nc_matmul(dst=wide[:, part], stationary=t, moving=y[:, part])" in page
