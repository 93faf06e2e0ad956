"""Plain attention becomes the call of a kernel, computes the same from the bytes, and back again."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import ncc
from ncc import passes
from ncc.driver import run_stage
from ncc.front.hlo import parse
from ncc.interp.hlo import run as meaning
from ncc.ir.attention import KEYS, Sizes, closed_gate, sbuf_bytes
from ncc.ir.custom_call import asked
from ncc.stages import Stage
from ncc.target import target
from ncc.values import random

TRN2 = target("trn2")
JAX = Path(__file__).parent / "attention_jax"  # HLO as JAX 0.10 prints it
RAISE = passes.load("hlo.raise_attention")
BACK = passes.load("hlo.decompose_attention")


def stage(text: str) -> Stage:
    return Stage("hlo", TRN2, "input", (), parse(text, "x.hlo", 1))


def raised(text: str):
    """The module after the pass, its attention calls, and what was warned of."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        module = RAISE.apply(stage(text).module, TRN2)
    calls = [asked(x) for x in module.main().instructions if x.opcode == "custom-call"]
    return module, calls, [str(one.message) for one in heard]


def softmax_of(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, scale, causal=False):
    """[.., S, D] in float64; heads of q share keys where there are more of them."""
    k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) if x.ndim > 2 else x for x in (k, v))
    s = scale * q @ np.swapaxes(k, -1, -2)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return softmax_of(s) @ v


# name of the program, whether heads stand behind the sequence, whether it is causal
FORMS = {
    "einsum": (False, False),  # [B,H,S,D], scale multiplied, bf16 throughout
    "matmul": (False, False),  # q @ k.swapaxes(-1, -2) / 8: squeezes, a transpose, a quotient
    "tril": (False, True),  # jnp.where(jnp.tril(...), s, -1e9): two calls
    "arange": (False, True),  # i >= j, and the lowest bf16
    "nn": (True, False),  # jax.nn.dot_product_attention, [B,S,H,D], swapped second dot
    "nn_causal": (True, True),
    "grouped": (True, False),  # four heads of queries on two of keys
    "matrices": (False, False),
}


@pytest.mark.parametrize("form", FORMS)
def test_attention_as_jax_writes_it_is_raised(form):
    _, calls, heard = raised((JAX / f"{form}.hlo").read_text())
    assert len(calls) == 1
    assert not heard
    causal = FORMS[form][1]
    assert calls[0].target.startswith("CausalAttention" if causal else "AttentionMM")
    assert [key for key, _ in calls[0].config] == list(KEYS)


@pytest.mark.parametrize("form", ["matmul", "nn_causal", "grouped"])
def test_the_bytes_compute_attention(form):
    behind, causal = FORMS[form]
    program = stage((JAX / f"{form}.hlo").read_text())
    inputs = random(program, 3)
    (out,) = ncc.run(program, inputs, asked=["raise-attention"])
    q, k, v = (np.asarray(x, np.float64) for x in inputs)
    if behind:
        q, k, v = (np.swapaxes(x, 1, 2) for x in (q, k, v))
    right = attention(q, k, v, q.shape[-1] ** -0.5, causal)
    right = np.swapaxes(right, 1, 2) if behind else right
    assert np.abs(np.asarray(out, np.float64) - right).max() < 2.0**-7 * np.abs(right).max()


SMALL = (Path(__file__).parent / "programs" / "attention.hlo").read_text()
GATES = {
    "float32": (("bf16", "f32"), "its tensors are f32"),
    "short": (("1024", "1007"), "its sequence is 1007 long"),
    "wide": (("8]", "136]"), "a head has 136 elements"),
    "bias": (("multiply(%dot, %halves)", "add(%dot, %halves)"), "s is add, between the softmax"),
    "no maximum": (
        ("subtract(%s, %mb)", "subtract(%s, %tb2)"),
        "takes off what is not the maximum",
    ),
}


@pytest.mark.parametrize("gate", GATES)
def test_a_closed_gate_says_why(gate):
    (old, new), said = GATES[gate]
    text = SMALL.replace(old, new)
    if gate == "no maximum":
        more = "  %tb2 = f32[4,1024]{1,0} broadcast(%zero2), dimensions={}\n"
        more = "  %zero2 = f32[] constant(0)\n" + more
        text = text.replace("  %d = f32", more + "  %d = f32")
    line = 1 + next(n for n, one in enumerate(text.split("\n")) if re.match(r"  %a = \w+\[4,", one))
    module, calls, heard = raised(text)
    assert not calls
    assert len(heard) == 1 and f"NCC125 x.hlo:{line}:3" in heard[0]
    assert said in heard[0]
    assert module == stage(text).module


def test_a_chain_that_is_read_elsewhere_stays():
    text = SMALL.replace("-> f32[4,5] {", "-> (f32[4,5], bf16[4,1024]) {")
    text = text.replace("  ROOT %y", "  %y").rstrip()[:-1]
    text += "  ROOT %r = (f32[4,5]{1,0}, bf16[4,1024]{1,0}) tuple(%y, %pn)\n}\n"
    _, calls, heard = raised(text)
    assert not calls
    assert "r reads pn too" in heard[0]


def test_it_runs_only_when_asked():
    texts = ncc.compile(stage(SMALL), stop_after="normalize-layouts").text()
    assert "custom-call" not in texts


def test_the_gates_are_those_of_the_real_pass():
    assert not closed_gate(Sizes(4, 1008, 128, "f16"))
    assert "1007" in closed_gate(Sizes(4, 1007, 128, "bf16"))
    assert "129" in closed_gate(Sizes(4, 1008, 129, "bf16"))
    assert sbuf_bytes(Sizes(128, 10240, 128, "bf16")) == 10240 * 12 < 196608


def test_an_mlp_is_raised_where_its_kernel_is(monkeypatch):
    from ncc.commands.explain import example
    from ncc.kernels import KERNELS

    one = passes.load("hlo.raise_mlp")
    module = example(one).module
    with pytest.warns(UserWarning, match="NCC126 raise-mlp:.*no kernel AwsNeuronMLPNKI"):
        assert one.apply(module, TRN2) is module
    monkeypatch.setitem(KERNELS, "AwsNeuronMLPNKI", "mlp:mlp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        last = one.apply(module, TRN2).main().returned()
    assert (last.opcode, last.operands) == ("custom-call", ("x", "w", "v"))


CALL = """HloModule call

ENTRY %main (q: f32[2,4,6], k: f32[1,10,6], v: f32[1,10,5]) -> f32[2,OUT] {
  %q = f32[2,4,6]{2,1,0} parameter(0)
  %k = f32[1,10,6]{2,1,0} parameter(1)
  %v = f32[1,10,5]{2,1,0} parameter(2)
  %c = f32[] constant(0.5)
  ROOT %o = f32[2,OUT]{2,1,0} custom-call(%q, %k, %v, %c), custom_call_target="NAME",
    backend_config={"psum_shape":[128,512],"sb_shape":[128,1,6],"auto_cast":"none","auto_cast_type":"fp32","kernel_name":"attention_cte"}
}
"""
NAMES = {
    "AttentionMMSoftmaxMM": "5,4",
    "AttentionMMSoftmaxMMWithoutSwap": "4,5",
    "CausalAttentionMMSoftmaxMMWithoutSwap": "4,5",
}


@pytest.mark.parametrize("name", NAMES)
def test_decomposing_keeps_the_meaning(name):
    """The kernel wants values as wide as keys; these are not, so the call is turned back."""
    before = stage(CALL.replace("NAME", name).replace("OUT", NAMES[name])).module
    with pytest.warns(UserWarning, match="NCC125 x.hlo:8.*has no kernel"):
        after = BACK.apply(before, TRN2)
    assert not any(x.opcode == "custom-call" for x in after.main().instructions)
    inputs = [
        np.random.default_rng(4).standard_normal(s) for s in ((2, 4, 6), (1, 10, 6), (1, 10, 5))
    ]
    (was,), (now,) = (meaning(m, TRN2, inputs) for m in (before, after))
    right = attention(*inputs, 0.5, name.startswith("Causal"))
    right = np.swapaxes(right, 1, 2) if NAMES[name] == "5,4" else right
    assert np.abs(was - right).max() < 1e-5
    assert np.abs(now - right).max() < 1e-5


def test_a_call_that_a_kernel_takes_stays():
    text = CALL.replace("v: f32[1,10,5]", "v: f32[1,10,6]").replace(
        "%v = f32[1,10,5]", "%v = f32[1,10,6]"
    )
    text = text.replace("NAME", "AttentionMMSoftmaxMM").replace("OUT", "6,4")
    module = stage(text).module
    assert BACK.apply(module, TRN2) is module
    result = ncc.check(stage(text))
    assert result.passed, result.failed
    inputs = [
        np.random.default_rng(5).standard_normal(s) for s in ((2, 4, 6), (1, 10, 6), (1, 10, 6))
    ]
    (out,) = run_stage(ncc.compile(stage(text)), inputs)
    assert np.abs(out - np.swapaxes(attention(*inputs, 0.5), 1, 2)).max() < 1e-5
