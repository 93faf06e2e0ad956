"""What a custom call of HLO asks for: a kernel by its name, values, and outputs that are operands.

`custom_call_target` names the kernel: one that ships (`attention_cte`), or one of a file of Python
(`scale.py:scale`). `backend_config` has the values of its other parameters, as JSON (XLA prints it
bare or in quotes) or as the dictionary that a typed call of JAX prints (`{scale = 0.5 : f64}`).
`output_to_operand_aliasing` says which outputs are operands that the kernel writes.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import attrs

from ncc.ir.hlo import Instruction

Config = tuple[tuple[str, Any], ...]
ALIAS = re.compile(
    r"\{\s*(\d*)\s*\}\s*:\s*\(\s*(\d+)\s*,\s*\{\s*\}\s*(?:,\s*(?:must|may)-alias\s*)?\)\s*,?\s*"
)
TYPED = re.compile(
    r'\s*([A-Za-z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*"|array<[^>]*>|[^\s,:]+)\s*(?::\s*\w+)?'
)
TARGET_KEY, CONFIG_KEY = "custom_call_target", "backend_config"
ALIAS_KEY = "output_to_operand_aliasing"


@attrs.frozen
class Asked:
    """The parts of one call. `aliases` are (number of an output, number of an operand)."""

    target: str
    config: Config = ()
    aliases: tuple[tuple[int, int], ...] = ()


def asked(inst: Instruction) -> Asked:
    """What a custom call asks for; ValueError, a sentence that continues the opcode."""
    target = unquoted(inst.get(TARGET_KEY))
    if not target:
        raise ValueError(f"names no kernel with {TARGET_KEY}=")
    return Asked(target, config_of(inst.get(CONFIG_KEY)), aliases_of(inst.get(ALIAS_KEY)))


def unquoted(value: Any) -> str:
    """The text of an attribute, without its quotes."""
    text = value if isinstance(value, str) else ""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text.strip('"')


def config_of(value: Any) -> Config:
    """The values that `backend_config` holds, in the order written."""
    text = unquoted(value).strip()
    if text in ("", "{}"):
        return ()
    try:
        found = json.loads(text, parse_constant=no_constant)
    except ValueError:
        return typed(text)
    if not isinstance(found, dict):
        raise ValueError(f"has a {CONFIG_KEY} that is no dictionary: {text[:40]}")
    pairs = cast("dict[str, Any]", found)
    return tuple((key, frozen(one)) for key, one in pairs.items())


def no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def typed(text: str) -> Config:
    """`{scale = 5.0e-01 : f64, causal = true}`."""
    inside, found = text[1:-1], list[tuple[str, Any]]()
    at = 0
    while text[:1] == "{" and text[-1:] == "}" and (one := TYPED.match(inside, at)):
        found.append((one[1], number(one[2])))
        at = one.end() + (inside[one.end() : one.end() + 1] == ",")
    if not found or inside[at:].strip():
        raise ValueError(f'has a {CONFIG_KEY} that is no JSON, as {{"scale": 0.5}}: {text[:60]}')
    return tuple(found)


def number(word: str) -> Any:
    if word.startswith("array<"):
        _, _, inside = word[6:-1].partition(":")
        return tuple(number(x.strip()) for x in inside.split(",") if x.strip())
    try:
        return json.loads(word)
    except ValueError:
        raise ValueError(f"has a {CONFIG_KEY} with {word[:40]!r}, which is no value") from None


def frozen(value: Any) -> Any:
    """Lists as tuples, so that a call is a value; a dictionary inside has no place in it."""
    if isinstance(value, list):
        return tuple(frozen(x) for x in cast("list[Any]", value))
    if isinstance(value, dict):
        raise ValueError(f"has a {CONFIG_KEY} with a dictionary inside, which no parameter takes")
    return value


def aliases_of(value: Any) -> tuple[tuple[int, int], ...]:
    """`{{0}: (1, {}), {1}: (2, {})}`; the only output of a call that gives an array is 0."""
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        return ()
    inside, at = text[1:-1].strip(), 0
    found: list[tuple[int, int]] = []
    while one := ALIAS.match(inside, at):
        found.append((int(one[1] or 0), int(one[2])))
        at = one.end()
    if at != len(inside):
        raise ValueError(f"has an {ALIAS_KEY} that cannot be read: {text[:60]}")
    return tuple(found)
