"""Rules 220 to 259: Penguin, whole tensors."""

from __future__ import annotations

from ncc.rules import Rule

HEAD = "# ncc penguin target=trn2 after=mhlo-to-penguin\n"
COPY = (
    HEAD
    + """from ncc.penguin import *
with function("copy") as f:
    x = tensor("x", "float32", (4, 8), kind="input", home="dram")
    y = tensor("y", "float32", (4, 8), kind="output", home="dram")
    d0, d1 = axis("d0 d1")
    ElementwiseOp("y", "copy", y[d0, d1], srcs=(x[d0, d1],), axes=axes(d0=4, d1=8))
"""
)


FACT = COPY.replace("after=mhlo-to-penguin", "after=penguin-dce facts=every-op-is-used")
UNREAD = '    t = tensor("t", "float32", (4, 8))\n    d0, d1'
DEAD = '    ElementwiseOp("t", "add", t[d0, d1], srcs=(x[d0, d1], 1.0), axes=axes(d0=4, d1=8))\n'
TILE = (
    "# ncc penguin target=trn2 after=split-acc-groups\n"
    + """from ncc.penguin import *
with function("tile") as f:
    x = tensor("x", "float32", (4, 8), kind="input", home="dram")
    y = tensor("y", "float32", (4, 8), kind="output", home="dram")
    x_t = tensor("x_t", "float32", (4, 8), home="sbuf")
    m, n = axis("m n")
    TileCopyOp("load", x_t[m, n], par=axes(m=4), free=axes(n=8), src=x[m, n])
    TileCopyOp("store", y[m, n], par=axes(m=4), free=axes(n=8), src=x_t[m, n])
"""
)
MATMUL = (
    "# ncc penguin target=trn2 after=split-acc-groups\n"
    + """from ncc.penguin import *
with function("product") as f:
    x = tensor("x", "float32", (8, 4), kind="input", home="dram")
    y = tensor("y", "float32", (4, 4), kind="output", home="dram")
    x_t = tensor("x_t", "float32", (8, 4), home="sbuf")
    acc = tensor("acc", "float32", (4, 4), home="psum")
    y_t = tensor("y_t", "float32", (4, 4), home="sbuf")
    k, m, n = axis("k m n")
    TileCopyOp("load", x_t[k, m], par=axes(k=8), free=axes(m=4), src=x[k, m])
    MatMulOp("product", acc[m, n], par=axes(m=4), free=axes(n=4), stationary=x_t[k, m],
        moving=x_t[k, n], contract=axes(k=8))
    TensorCopyOp("evict", y_t[m, n], par=axes(m=4), free=axes(n=4), src=acc[m, n])
    TileCopyOp("store", y[m, n], par=axes(m=4), free=axes(n=4), src=y_t[m, n])
"""
)


def broken(old: str, new: str, text: str = COPY) -> str:
    """The program with one thing changed, which must be in it."""
    if old not in text:
        raise TypeError(f"{old!r} is not in the program")
    return text.replace(old, new, 1)


RULES: tuple[Rule, ...] = (
    Rule(
        "NCC220",
        "names of tensors, axes and ops",
        "Names of tensors and of ops are Python identifiers, each once, and no axis has the name of"
        " a tensor, because the printed stage is a Python program.",
        "Rename one of the two.",
        wrong=broken("axes=axes(d0=4, d1=8))", "axes=axes(d0=4, d1=8))\n" + COPY.split("\n")[-2]),
        right=COPY,
    ),
    Rule(
        "NCC221",
        "what a tensor is",
        "A tensor has a known dtype, kind and home, no negative dimension, and data exactly if it is"
        " a const.",
        "Correct the field that the sentence names.",
        wrong=broken('"float32"', '"float31"'),
        right=COPY,
    ),
    Rule(
        "NCC222",
        "whole tensors beside tiles",
        "A function consists of whole-tensor ops or of loops over tile ops, never of both; kernels"
        " may stand between either.",
        "Write the stage as it is before emit-tiles, or as it is after.",
        wrong=COPY + '    for t in loop("t", 2, "parallel"):\n        pass\n',
        right=COPY,
    ),
    Rule(
        "NCC223",
        "a view and its tensor",
        "A view names a tensor and indexes each of its dimensions by axes that its op, or a loop"
        " around it, has; a whole-tensor op uses one axis, of the dimension's size, for each.",
        "Give the view one index a dimension.",
        wrong=broken("srcs=(x[d0, d1],)", "srcs=(x[d0],)"),
        right=COPY,
    ),
    Rule(
        "NCC224",
        "a view inside its tensor",
        "An index never leaves its dimension, whatever values the axes take, and a tile has at least"
        " one element in every iteration.",
        "Shorten the axis or the loop, or end the last tile early with min(TILE, REST).",
        wrong=broken("axes=axes(d0=4, d1=8)", "axes=axes(d0=4, d1=9)"),
        right=COPY,
    ),
    Rule(
        "NCC225",
        "words and lists of an op",
        "Names of elementwise ops, transposes and loops are those of the language; a contraction's"
        " batch, free and contraction axes are its axes, each once; an op writes no element twice.",
        "Correct the word or the list that the sentence names.",
        wrong=broken('"copy", y', '"copi", y'),
        right=COPY,
    ),
    Rule(
        "NCC226",
        "one writer, before all readers",
        "Inputs and consts are never written; a whole tensor is written by one op, before any that"
        " reads it; every output is written.",
        "Move the op, or write into a tensor of its own.",
        wrong=broken("y[d0, d1], srcs=(x[d0, d1],)", "x[d0, d1], srcs=(x[d0, d1],)"),
        right=COPY,
    ),
    Rule(
        "NCC227",
        "a fact of whole tensors no longer holds",
        "A fact that an earlier pass established, and that the stage's first line lists, holds until"
        " a pass ends it.",
        "Repair the op that the sentence names, or remove the fact from the first line.",
        wrong=FACT.replace("    d0, d1", UNREAD, 1) + DEAD,
        right=FACT,
    ),
    Rule(
        "NCC228",
        "reading what nothing wrote",
        "An element must be written before it is read, and every element of an output before the"
        " program ends.",
        "Let the loops that write cover the whole tensor.",
        wrong=broken("free=axes(n=8), src=x[", "free=axes(n=7), src=x[", TILE),
        right=TILE,
        how="run FILE --at penguin",
    ),
    Rule(
        "NCC229",
        "MX and sparse matmuls",
        "MatMulMXOp and MatMulSparseOp exist by name only; no pass and no interpreter takes them"
        " until their formats are there.",
        "Use MatMulOp.",
        names=("MatMulMXOp", "MatMulSparseOp"),
        wrong=broken("MatMulOp", "MatMulMXOp", MATMUL),
        right=MATMUL,
        how="run FILE --at penguin",
    ),
    Rule(
        "NCC230",
        "an MHLO op without a Penguin form",
        "mhlo-to-penguin takes dot_general, add, maximum, convert, copy, transpose, constants and"
        " broadcasts; tuples must have been folded.",
        "Run the MHLO passes before it.",
    ),
)
