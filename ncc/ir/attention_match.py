"""Finding attention in HLO: dot, scale, mask, softmax, dot, through all that only moves values.

Every dimension that the chain speaks of has a word: `k` for keys, `d` for what a value holds, `c`
for what the scores sum over, `b0`, `b1`, ... for what both dots batch over, `f0`, ... for the rest
of the queries. A step back through a transpose, a broadcast, a convert or a reshape that only adds
or drops dimensions of size 1 carries the words along; a dimension of size 1 has none.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ncc.ir.hlo import Computation, Instruction, Module, called
from ncc.ir.hlo_edit import dims_of, number_of, users
from ncc.ir.hlo_text import show_shape

VERY_NEGATIVE = -1e4  # what a mask puts where a score may not count
Words = tuple[str, ...]


class NoMatch(Exception):
    """A softmax between two dots that is no attention of the kernel's kind: why, in words."""


@attrs.frozen
class Seen:
    """A value with the word of each of its dimensions ("" for one of size 1)."""

    inst: Instruction
    words: Words

    def size(self, word: str) -> int:
        return dims_of(self.inst)[self.words.index(word)] if word in self.words else 1

    @property
    def plain(self) -> Words:
        """The words, those of a dimension that holds two one by one."""
        return tuple(word for words in self.words for word in words.split("+"))

    def order(self, wanted: Sequence[str]) -> tuple[int, ...]:
        """The dimensions in the order wanted, those of size 1 first."""
        held = {part: word for word in self.words for part in word.split("+")}
        wanted = list(dict.fromkeys(held.get(word, word) for word in wanted))
        units = [i for i, word in enumerate(self.words) if not word]
        long = [self.words.index(word) for word in wanted if word in self.words]
        return self._last_two(units, long, wanted)

    def _last_two(
        self, units: list[int], long: list[int], wanted: Sequence[str]
    ) -> tuple[int, ...]:
        """A size of 1 among the last two words needs its place there."""
        tail = [self.words.index(w) if w in self.words else -1 for w in wanted[-2:]]
        heads = [i for i in long if i not in tail]
        spare = list(units)
        for at, found in reversed(list(enumerate(tail))):
            if found < 0:
                if not spare:
                    raise NoMatch(f"a dimension of size 1 of {self.inst.name} was dropped")
                tail[at] = spare.pop()
        return (*spare, *heads, *tail)


@attrs.frozen
class Chain:
    """Attention as it was found: operands, what is computed with them, and what stands last."""

    q: Seen
    k: Seen
    v: Seen
    pv: Instruction
    root: Instruction
    out: Seen
    batch: Words
    groups: Words
    query: str
    scale: float
    causal: bool


class Finder:
    """One search in an entry that calls nothing but what its reductions fold with."""

    def __init__(self, module: Module, entry: Computation) -> None:
        self.users, self.root = users(entry), entry.root
        self.made = {x.name: x for x in entry.instructions}
        self.folds = {x.name: x.returned().opcode for x in module.computations}
        self.inside: dict[str, None] = {}  # the values of the chain so far

    def peel(self, name: str, words: Words) -> Seen:
        """The value that a value of the chain is, moves undone."""
        inst = self.made[name]
        while True:
            self.inside[inst.name] = None
            source = self.made[inst.operands[0]] if inst.operands else None
            step = back(inst, words, dims_of(source)) if source else None
            if source is None or step is None:
                return Seen(inst, words)
            inst, words = source, step

    def constant(self, name: str) -> float | None:
        """The one number that a value is, through moves."""
        inst = self.made[name]
        while inst.opcode in ("broadcast", "reshape", "convert", "transpose", "copy"):
            inst = self.made[inst.operands[0]]
        return number_of(inst) if inst.opcode == "constant" else None


def back(inst: Instruction, words: Words, dims: tuple[int, ...]) -> Words | None:
    """The words of the operand of a move; None for what is no move."""
    match inst.opcode:
        case "convert" | "copy":
            return words
        case "transpose":
            order = inst.ints("dimensions")
            return tuple(words[order.index(i)] for i in range(len(order)))
        case "broadcast":
            found = inst.ints("dimensions")
            kept = zip(found, dims, strict=True)
            return tuple(words[d] if n != 1 else "" for d, n in kept)
        case "reshape":
            long = [w for w, n in zip(words, dims_of(inst), strict=True) if n != 1]
            if [n for n in dims if n != 1] != [n for n in dims_of(inst) if n != 1]:
                return None
            rest = iter(long)
            return tuple(next(rest) if n != 1 else "" for n in dims)
        case _:
            return None


def joined(inst: Instruction, words: Words, dims: tuple[int, ...]) -> Words | None:
    """The words of an array of `dims` that holds the same elements in fewer dimensions: a dimension
    that is several together has their words with a + between."""
    rest = [(n, w) for n, w in zip(dims_of(inst), words, strict=True) if n != 1]
    found: list[str] = []
    for n in dims:
        size, inside = 1, list[str]()
        while size < n and rest:
            more, word = rest.pop(0)
            size, inside = size * more, [*inside, word]
        if size != n:
            return None
        found.append("+".join(inside))
    return tuple(found) if not rest else None


def named(dims: tuple[int, ...], words: dict[int, str]) -> Words:
    return tuple(words.get(i, "") if n != 1 else "" for i, n in enumerate(dims))


def match(module: Module, entry: Computation, pv: Instruction) -> Chain | None:
    """The attention that ends in `pv`; None where it follows no softmax, NoMatch where something
    else is in the way."""
    find = Finder(module, entry)
    for number in (0, 1):
        probs = pv.operands[number]
        words, value, result = dot_words(find, pv, number)
        if words is None:
            continue
        find.inside.clear()
        soft = softmax(find, find.peel(probs, words))
        if soft is None:
            continue
        v = move_only(find, pv.operands[1 - number], value)
        return completed(find, pv, v, soft, result)
    return None


def dot_words(find: Finder, pv: Instruction, number: int) -> tuple[Words | None, Words, Words]:
    """The words of the weights, of the values and of the result of the second dot."""
    sides = ("lhs", "rhs")
    ours, other = sides[number], sides[1 - number]
    mine, theirs = (dims_of(find.made[pv.operands[i]]) for i in (number, 1 - number))
    summed = pv.ints(f"{ours}_contracting_dims"), pv.ints(f"{other}_contracting_dims")
    batch = pv.ints(f"{ours}_batch_dims"), pv.ints(f"{other}_batch_dims")
    if len(summed[0]) != 1:
        return None, (), ()
    a, b = {summed[0][0]: "k"}, {summed[1][0]: "k"}
    for i, (x, y) in enumerate(zip(*batch, strict=True)):
        a[x] = b[y] = f"b{i}"
    free = [i for i in range(len(mine)) if i not in a]
    a.update({i: f"f{n}" for n, i in enumerate(free)})
    rest = [i for i in range(len(theirs)) if i not in b]
    long = [i for i in rest if theirs[i] != 1]
    if len(long) > 1 or not rest:
        return None, (), ()
    b.update(dict.fromkeys(long or rest[-1:], "d"))
    frees = ([a[i] for i in free], [b.get(i, "") for i in rest])
    out = [f"b{i}" for i in range(len(batch[0]))]
    out += [word for side in (frees[::-1] if number else frees) for word in side]
    return named(mine, a), named(theirs, b), named(dims_of(pv), dict(enumerate(out)))


def move_only(find: Finder, name: str, words: Words) -> Seen:
    """An operand with its moves undone, as long as no element is repeated or rounded."""
    inst = find.made[name]
    while inst.opcode in ("transpose", "reshape", "copy", "convert"):
        source = find.made[inst.operands[0]]
        step = back(inst, words, dims_of(source))
        if step is None and inst.opcode == "reshape":
            step = joined(inst, words, dims_of(source))
        if step is None or (inst.opcode == "convert" and not widens(source, inst)):
            break
        inst, words = source, step
    return Seen(inst, words)


def widens(source: Instruction, inst: Instruction) -> bool:
    return show_shape(source.shape)[:3] in ("bf1", "f16") and show_shape(inst.shape)[:3] == "f32"


# ---- softmax ------------------------------------------------------------------------------------


def softmax(find: Finder, quotient: Seen) -> Seen | None:
    """The scores of which a value is the softmax over `k`; None where it is none."""
    if "k" not in quotient.words:
        return None
    top, bottom = halves(find, quotient)
    if top is None or top.inst.opcode != "exponential" or bottom is None:
        return None
    total = reduced(find, bottom, "add")
    if total is None:
        return None
    if total != top:
        raise NoMatch(f"{bottom.inst.name} does not sum what {quotient.inst.name} divides")
    shifted = find.peel(top.inst.operands[0], top.words)
    if shifted.inst.opcode != "subtract":
        raise NoMatch(f"{top.inst.name} takes no maximum off before it")
    scores = find.peel(shifted.inst.operands[0], shifted.words)
    largest = reduced(find, maximum(find, shifted), "maximum")
    if largest != scores:
        raise NoMatch(f"{shifted.inst.name} takes off what is not the maximum over the keys")
    return scores


def halves(find: Finder, quotient: Seen) -> tuple[Seen | None, Seen | None]:
    """Numerator and denominator of a / b, or of a · (1 / b)."""
    if quotient.inst.opcode == "divide":
        a, b = quotient.inst.operands
        return find.peel(a, quotient.words), find.peel(b, quotient.words)
    if quotient.inst.opcode == "multiply":
        for a, b in (quotient.inst.operands, quotient.inst.operands[::-1]):
            inverse = find.peel(b, quotient.words)
            if inverse.inst.opcode == "divide" and find.constant(inverse.inst.operands[0]) == 1:
                under = find.peel(inverse.inst.operands[1], inverse.words)
                return find.peel(a, quotient.words), under
    return None, None


def maximum(find: Finder, shifted: Seen) -> Seen:
    """What is taken off; JAX takes its maximum with -inf first."""
    seen = find.peel(shifted.inst.operands[1], shifted.words)
    while seen.inst.opcode == "maximum":
        a, b = seen.inst.operands
        keep = b if find.constant(a) == float("-inf") else a
        if find.constant(a if keep == b else b) != float("-inf"):
            break
        seen = find.peel(keep, seen.words)
    return seen


def reduced(find: Finder, seen: Seen, by: str) -> Seen | None:
    """What is folded over `k` alone, with the word put back; None for another op."""
    inst = seen.inst
    gone = inst.ints("dimensions")
    if inst.opcode != "reduce" or len(inst.operands) != 2 or len(gone) != 1:
        return None
    if find.folds.get(called(inst)[0]) != by:
        return None
    words = (*seen.words[: gone[0]], "k", *seen.words[gone[0] :])
    return find.peel(inst.operands[0], words)


# ---- scores -------------------------------------------------------------------------------------


def completed(find: Finder, pv: Instruction, v: Seen, scores: Seen, result: Words) -> Chain:
    """The chain from the scores back to q and k, and from the second dot on to where it ends."""
    scale, query, causal, seen = 1.0, "", False, scores
    while seen.inst.opcode != "dot":
        inst = seen.inst
        factor = scaled(find, inst)
        if factor is not None:
            scale *= factor[1]
            seen = find.peel(factor[0], seen.words)
        elif inst.opcode == "select" and not causal:
            query, causal = causal_query(find, inst, seen.words), True
            seen = find.peel(inst.operands[1], seen.words)
        else:
            raise NoMatch(f"{inst.name} is {inst.opcode}, between the softmax and the first dot")
    q, k = first_dot(find, seen)
    q, more = descaled(find, q)
    k, even_more = descaled(find, k)
    batch = tuple(w for w in q.plain if w and w in k.words and w != "c")
    if {*k.words} - {""} != {*batch, "k", "c"} & {*k.words} or (
        {*v.words} - {"", "k", "d"} != {*batch}
    ):
        raise NoMatch(f"{seen.inst.name} and {pv.name} do not batch over the same dimensions")
    free = [w for w in q.plain if w and w not in (*batch, "c")]
    query = query or max(free, key=q.size, default="f0")
    alone(find, pv)
    root, words = onward(find, pv, result)
    groups = tuple(w for w in free if w != query)
    out = Seen(root, words)
    return Chain(q, k, v, pv, root, out, batch, groups, query, scale * more * even_more, causal)


def scaled(find: Finder, inst: Instruction) -> tuple[str, float] | None:
    """What a product with a number, or a quotient by one, multiplies, and by how much."""
    if inst.opcode == "multiply":
        for a, b in (inst.operands, inst.operands[::-1]):
            if (number := find.constant(b)) is not None:
                return a, number
    if inst.opcode == "divide" and (number := find.constant(inst.operands[1])):
        return inst.operands[0], 1 / number
    return None


def descaled(find: Finder, side: Seen) -> tuple[Seen, float]:
    """An operand of the first dot without the number that it is multiplied with."""
    factor = scaled(find, side.inst)
    if factor is None:
        return side, 1.0
    return move_only(find, factor[0], side.words), factor[1]


def causal_query(find: Finder, choice: Instruction, words: Words) -> str:
    """The word of the queries where a choice keeps the keys up to each query's own position."""
    low = find.constant(choice.operands[2])
    if low is None or low > VERY_NEGATIVE:
        raise NoMatch(f"{choice.name} puts {low} where its mask is off, and not a very low number")
    mask = moves_undone(find, choice.operands[0], words)
    while mask.inst.opcode in ("select", "and"):
        rest = mask.inst.operands[1:]
        keep = [1.0, 0.0] if mask.inst.opcode == "select" else [1.0]
        if [find.constant(name) for name in rest] != keep:
            break
        mask = moves_undone(find, mask.inst.operands[0], mask.words)
    if mask.inst.opcode == "compare":
        a, b = (counted(find, name, mask.words) for name in mask.inst.operands)
        order = mask.inst.get("direction")
        if order == "LE":
            a, b, order = b, a, "GE"
        if order == "GE" and a.startswith("f") and b == "k":
            return a
    raise NoMatch(f"{choice.name} masks by {mask.inst.name}, and no kernel has that mask")


def moves_undone(find: Finder, name: str, words: Words) -> Seen:
    """As `peel`, for a value that is no part of the chain."""
    inst = find.made[name]
    while inst.operands:
        step = back(inst, words, dims_of(find.made[inst.operands[0]]))
        if step is None:
            break
        inst, words = find.made[inst.operands[0]], step
    return Seen(inst, words)


def counted(find: Finder, name: str, words: Words) -> str:
    """The word along which a value counts from 0, or nothing."""
    seen = moves_undone(find, name, words)
    along = seen.inst.get("iota_dimension")
    return seen.words[int(along)] if isinstance(along, str) else ""


def first_dot(find: Finder, seen: Seen) -> tuple[Seen, Seen]:
    """Queries and keys, as far back as they are only moved."""
    inst = seen.inst
    dims = [dims_of(find.made[name]) for name in inst.operands]
    summed = [inst.ints(f"{side}_contracting_dims") for side in ("lhs", "rhs")]
    batch = [inst.ints(f"{side}_batch_dims") for side in ("lhs", "rhs")]
    if len([i for i in summed[0] if dims[0][i] != 1]) > 1 or not summed[0]:
        raise NoMatch(f"{inst.name} sums over {len(summed[0])} dimensions")
    words: list[dict[int, str]] = [{}, {}]
    rest = iter(seen.words)
    for a, b in zip(*batch, strict=True):
        words[0][a] = words[1][b] = next(rest)
    for side in (0, 1):
        for i in range(len(dims[side])):
            if i not in (*summed[side], *batch[side]):
                words[side][i] = next(rest)
        words[side].update(dict.fromkeys(summed[side], "c"))
    sides = [
        move_only(find, name, named(shape, known))
        for name, shape, known in zip(inst.operands, dims, words, strict=True)
    ]
    if "k" in sides[0].words:
        return sides[1], sides[0]
    return sides[0], sides[1]


def alone(find: Finder, pv: Instruction) -> None:
    """Nothing but the chain reads what is inside it."""
    inside = find.inside
    for name in inside:
        if find.made[name].opcode == "constant":
            continue
        for user in find.users[name]:
            if user.name not in inside and user.name != pv.name:
                raise NoMatch(f"{user.name} reads {name} too, which would not be computed any more")


def onward(find: Finder, pv: Instruction, words: Words) -> tuple[Instruction, Words]:
    """The last of the moves that follow the second dot, and its words."""
    inst = pv
    while len(find.users[inst.name]) == 1 and inst.name != find.root:
        (user,) = find.users[inst.name]
        if user.opcode == "transpose":
            words = tuple(words[i] for i in user.ints("dimensions"))
        elif user.opcode == "reshape":
            step = joined(inst, words, dims_of(user))
            if step is None:
                break
            words = step
        else:
            break
        inst = user
    return inst, words
