"""Rules 200 to 219: MHLO."""

from __future__ import annotations

from ncc.rules import Rule

FACTS = (
    ("hlo-to-mhlo", ()),
    ("penguinize-io", ("no-tuple-is-returned",)),
    ("fold-tuples", ("no-tuple-is-left",)),
    ("fold-constants", ("no-constant-is-converted",)),
    ("unify-broadcasts", ("no-broadcast-is-left",)),
    ("name-outputs", ("outputs-are-named",)),
)
NAMES = " input_names=(a,) output_names=(out,)"


def after(name: str) -> str:
    """A small program as it is printed after the pass `name`, with all facts that hold there."""
    facts: list[str] = []
    for entry, given in FACTS:
        facts += given
        if entry == name:
            break
    held = f" facts={','.join(sorted(facts))}" if facts else ""
    last = name == "name-outputs"
    return f"""# ncc mhlo target=trn2 after={name}{held}
func main(a: f32[4,8]) name=small{NAMES if last else ""} {{
  b = add a a{" symbol=out" if last else ""} : f32[4,8]
  return b
}}
"""


START, RETURNED, FLAT, FOLDED, UNIFIED, OUTPUTS = (after(name) for name, _ in FACTS)
HOW = "run FILE --at mhlo"

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC201",
        "a name that no line above defines",
        "Every value has one name and is defined before it is read.",
        "Check the operand's spelling, or the pass that renamed it.",
        wrong=START.replace("add a a", "add a c"),
        right=START,
        how=HOW,
    ),
    Rule(
        "NCC202",
        "a type that its op does not give",
        "The type at a line's end is the one that the op gives for its operands.",
        "The message has both types.",
        wrong=START.replace("add a a : f32[4,8]", "add a a : f32[8,4]"),
        right=START,
        how=HOW,
    ),
    Rule(
        "NCC203",
        "a type that is not computed with",
        "MHLO computes with bf16, f16, f32, f8e4m3, f8e4m3fn and f8e5m2.",
        "Convert in the source program.",
        wrong=START.replace("f32", "s32"),
        right=START,
        how=HOW,
    ),
    Rule(
        "NCC204",
        "a tuple that is returned",
        "From penguinize-io on, the function returns arrays.",
        "Return the elements.",
        wrong=RETURNED.replace("return b", "t = tuple a b : (f32[4,8], f32[4,8])\n  return t"),
        right=RETURNED,
        how=HOW,
    ),
    Rule(
        "NCC205",
        "a tuple that is left",
        "From fold-tuples on, there is no tuple and no get_tuple_element.",
        "Read the value that the tuple was made from.",
        wrong=FLAT.replace("  return", "  t = tuple a b : (f32[4,8], f32[4,8])\n  return"),
        right=FLAT,
        how=HOW,
    ),
    Rule(
        "NCC206",
        "a broadcast of the old form",
        "From unify-broadcasts on, every broadcast is a broadcast_in_dim.",
        "Write broadcast_in_dim.",
        wrong=UNIFIED.replace(
            "  return",
            "  k = constant splat:00000000 : f32[]\n"
            "  t = broadcast k dimensions=() : f32[4,8]\n  return",
        ),
        right=UNIFIED,
        how=HOW,
    ),
    Rule(
        "NCC207",
        "a constant that is converted",
        "From fold-constants on, no convert and no transpose reads a constant.",
        "Write the converted constant.",
        wrong=FOLDED.replace(
            "  return", "  k = constant splat:00000000 : f32[]\n  t = convert k : bf16[]\n  return"
        ),
        right=FOLDED,
        how=HOW,
    ),
    Rule(
        "NCC208",
        "an output without a value of its own",
        "From name-outputs on, each output is a value that carries its name; none is an argument, "
        "a constant or another output.",
        "Copy the value, and name the copy.",
        wrong=OUTPUTS.replace("symbol=out", "symbol=output"),
        right=OUTPUTS,
        how=HOW,
    ),
)
