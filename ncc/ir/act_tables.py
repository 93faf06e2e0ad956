"""Which table set of the Activation engine holds which function (ISA reference 6.6).

A set's number is its place in the list. Functions that are wired in need none and are in every set.
"""

from __future__ import annotations

WIRED = frozenset(
    ("Identity", "Square", "Relu", "Lrelu", "Prelu", "Sign", "Copy", "Abs", "Is_finite")
)
SETS: tuple[frozenset[str], ...] = tuple(
    frozenset(row.split())
    for row in (
        "Exp Tanh",
        "Softplus",
        "Sigmoid Tanh Erf Arctan",
        "Sqrt",
        "",
        "Ln",
        "Ln Exp",
        "",  # a derivative that no BIR function names
        "Tanh",
        "Sin Arctan",
        "Gelu Derivative_Gelu Tanh",
        "Gelu_apprx_tanh Tanh",
        "Gelu_apprx_sigmoid Tanh",
        "Reciprocal",
        "Rsqrt",
        "Abs_reciprocal_sqrt",
        "Mish",
        "Derivative_Erf",
        "Silu Tanh Sin",
        "Derivative_silu Tanh Sin",
        "Derivative_Gelu_apprx_sigmoid Tanh",
    )
)


def sets_with(functions: frozenset[str]) -> list[int]:
    """The numbers of the sets that hold all of `functions`."""
    return [n for n, held in enumerate(SETS) if functions <= held]
