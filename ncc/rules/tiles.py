"""Rules 260 to 299: Penguin, tiles."""

from __future__ import annotations

from ncc.rules import Rule


def stage(after: str, fact: str, *lines: str) -> str:
    """A printed stage on trn2 in which one fact must hold."""
    head = f"# ncc penguin target=trn2 after={after} facts={fact}\n"
    inside = "".join(f"    {line}\n" for line in lines)
    return f'{head}from ncc.penguin import *\nwith function("layer") as f:\n{inside}'


def changed(text: str, old: str, new: str) -> str:
    """The program with one thing changed, which must be in it."""
    if old not in text:
        raise TypeError(f"{old!r} is not in the program")
    return text.replace(old, new, 1)


CUT = stage(
    "cut-partition",
    "partition-tiles-fit",
    'x = tensor("x", "float32", (300, 8), kind="input", home="dram")',
    'y = tensor("y", "float32", (300, 8), kind="output", home="dram")',
    'p, c = axis("p c")',
    'ElementwiseOp("y", "maximum", y[p, c], srcs=(x[p, c], 0.0), axes=axes(p=300, c=8),'
    ' partition=("p",), group=0,'
    ' cuts=(Cut("partition", loops=("p_o",), tiles=("p_i",), axis="p", tile=128),))',
)

TILES = (
    'x_t = tensor("x_t", "bfloat16", (2, 128, 70), home="sbuf", blocks=1)',
    'w_t = tensor("w_t", "bfloat16", (2, 128, 40), home="sbuf", blocks=1)',
    'y_acc = tensor("y_acc", "float32", (70, 40), home="psum")',
    'y_t = tensor("y_t", "float32", (70, 40), home="sbuf")',
    'y = tensor("y", "float32", (70, 40), kind="output", home="dram")',
    'k, m, n = axis("k m n")',
    'for k_o in loop("k_o", 2, "parallel"):',
    '    TileMemsetOp("fill_x", x_t[k_o, k, m], par=axes(k=128), free=axes(m=70), value=1.0,'
    ' engines=("DVE",))',
    '    TileMemsetOp("fill_w", w_t[k_o, k, n], par=axes(k=128), free=axes(n=40), value=1.0,'
    ' engines=("DVE",))',
    'for k_o in loop("k_o", 2, "accumulate"):',
    '    MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k_o, k, m],'
    ' moving=w_t[k_o, k, n], contract=axes(k=128), engines=("PE",), accumulate=("k_o",))',
    'TensorCopyOp("evict_y", y_t[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n],'
    ' engines=("DVE",))',
    'TileCopyOp("store_y", y[m, n], par=axes(m=70), free=axes(n=40), src=y_t[m, n])',
)


def tiled(fact: str) -> str:
    return stage("split-acc-groups", fact, *TILES)


def returned(dtype: str) -> str:
    return f"""HloModule layer, entry_computation_layout={{({dtype}[8,4]{{1,0}})->{dtype}[8,4]{{1,0}}}}

ENTRY main.2 {{
  ROOT x.1 = {dtype}[8,4]{{1,0}} parameter(0)
}}
"""


def layer(dtype: str) -> str:
    return f"""HloModule layer, entry_computation_layout={{(f32[8,4]{{1,0}})->f32[8,4]{{1,0}}}}

ENTRY main.4 {{
  x.1 = f32[8,4]{{1,0}} parameter(0)
  h.2 = {dtype}[8,4]{{1,0}} convert(x.1)
  ROOT y.3 = f32[8,4]{{1,0}} convert(h.2)
}}
"""


RULES: tuple[Rule, ...] = (
    Rule(
        "NCC260",
        "a cut of an axis list",
        "The loops and tiles of a cut walk each axis of its list once, slowest first, and a tile has"
        " at most 128 elements over partitions and 512 inside one.",
        "Cut the list at its first axis, counted from the fastest, that makes the tile too large.",
        names=("cutParAxes", "cutFreeAxes"),
        wrong=changed(CUT, "tile=128", "tile=150"),
        right=CUT,
    ),
    Rule(
        "NCC261",
        "a type that the target lacks",
        "float8_e4m3fn is a type of trn3, float8e4 of trn1 and trn2; elsewhere their values are carried"
        " in bf16, which an output of that type cannot be.",
        "Compile for a target that has the type, or convert the result to bf16 in the source.",
        wrong=returned("f8e4m3fn"),
        right=returned("bf16"),
    ),
    Rule(
        "NCC262",
        "rounding to a type that the target lacks",
        "Only what arrives as an e4m3 type can be carried in bf16; a value that the program rounds to"
        " that type needs a target that has it.",
        "Compile for a target that has it, or round to bf16 instead.",
        wrong=layer("f8e4m3fn"),
        right=layer("bf16"),
    ),
    Rule(
        "NCC263",
        "a tensor that no cut suits",
        "A tensor that cannot be read where it lies goes through DRAM, and there its tiles must suit"
        " each of its readers.",
        "Cut the free axes of its transpose at 128 elements, so that one tile is one transpose.",
    ),
    Rule(
        "NCC264",
        "a tile that the machine cannot take",
        "A tile has at most 128 partitions, a matmul at most 128 contracted rows, 128 stationary and"
        " 512 moving columns, and its result fits one PSUM bank of 2048 bytes a partition.",
        "Cut the axis that is too long.",
        names=("A7",),
        wrong=changed(
            tiled("tiles-fit-the-machine"), '(70, 40), home="psum"', '(129, 40), home="psum"'
        ),
        right=tiled("tiles-fit-the-machine"),
    ),
    Rule(
        "NCC265",
        "what loops inside an accumulation",
        "Only contraction axes loop inside an accumulation group: every accumulate loop is one of its"
        " sum, no other loop runs inside, and none of them moves the result.",
        "Put free axes outside the contraction's loops.",
        names=("is_tile_axis_all_in_contract",),
        wrong=changed(tiled("only-contraction-axes-accumulate"), ', accumulate=("k_o",)', ""),
        right=tiled("only-contraction-axes-accumulate"),
    ),
    Rule(
        "NCC266",
        "accumulators and pairs of operands",
        "The PE array adds up in fp32, and takes fp32 operands only in pairs.",
        "Give the accumulator float32, or cast the narrower operand.",
        names=("A8", "EnforceAluDTAcc"),
        wrong=changed(
            tiled("accumulators-are-fp32"),
            '"float32", (70, 40), home="psum"',
            '"bfloat16", (70, 40), home="psum"',
        ),
        right=tiled("accumulators-are-fp32"),
    ),
    Rule(
        "NCC268",
        "a tile op that is no instruction",
        "After select-insts every op on a tile is a machine instruction and names the engines that may"
        " run it; Pool is none of them where PSUM is touched.",
        "Name an engine that can run the op.",
        names=("A11",),
        wrong=changed(
            tiled("every-tile-op-is-an-instruction"),
            ' src=y_acc[m, n], engines=("DVE",)',
            " src=y_acc[m, n]",
        ),
        right=tiled("every-tile-op-is-an-instruction"),
    ),
    Rule(
        "NCC269",
        "what the PE array writes",
        "A matmul and a PE transpose write PSUM, and no DMA does.",
        "Put the result in psum, and copy it to SBUF for a DMA.",
        names=("A7", "can_write_to_psum"),
        wrong=changed(tiled("the-pe-array-writes-psum"), 'home="psum"', 'home="sbuf"'),
        right=tiled("the-pe-array-writes-psum"),
    ),
    Rule(
        "NCC270",
        "who reads PSUM",
        "ACT and DVE read PSUM; a DMA, the PE array, the second tile of a two-tile instruction and a"
        " column beside a tile do not.",
        "Read a copy in SBUF.",
        names=("A10", "can_read_from_psum"),
        wrong=changed(tiled("psum-is-read-by-engines"), "src=y_t[m, n])", "src=y_acc[m, n])"),
        right=tiled("psum-is-read-by-engines"),
    ),
    Rule(
        "NCC271",
        "a long accumulation group",
        "One accumulation group holds its PSUM bank for at most 512 matmuls.",
        "Split the contraction's loop, and add the parts on DVE.",
        names=("SplitAccGrp",),
    ),
)
