"""Index arithmetic over loop variables: what an address is before loops are unrolled.

`Affine` is a sum of loop variables with integer coefficients; `Mod` takes it modulo a number (the
buffer of a ring), `Floor` divides it (the location of a blocked tensor), `Least` is the smaller of
a number and an Affine (how far a tile at the end of an axis reaches). All print and read as Python
arithmetic without blanks: `128*k_o+3`, `(k_o)%2`, `(k_o)//4`, `min(128,333-128*m_o)`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

import attrs


@attrs.frozen
class Affine:
    """const + Σ coefficient · variable; terms are sorted by variable, no coefficient is 0."""

    const: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def at(self, env: Mapping[str, int]) -> int:
        """The value where `env` gives every variable's value; KeyError for a variable without."""
        total = self.const
        for name, coefficient in self.terms:
            total += coefficient * env[name]
        return total

    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def plus(self, other: Affine | int, times: int = 1) -> Affine:
        if isinstance(other, int):
            return Affine(self.const + times * other, self.terms)
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + times * coefficient
        return affine(self.const + times * other.const, sums)

    def times(self, factor: int) -> Affine:
        return affine(self.const * factor, {n: c * factor for n, c in self.terms})

    def __str__(self) -> str:
        words: list[str] = []
        for name, coefficient in self.terms:
            words.append(name if coefficient == 1 else f"{coefficient}*{name}")
        first = self.const > 0 and words and words[0].startswith("-")
        if self.const or not words:
            words.insert(0 if first else len(words), str(self.const))
        return "+".join(words).replace("+-", "-")


@attrs.frozen
class Mod:
    """`of` modulo `by`: which of `by` buffers an iteration uses."""

    of: Affine
    by: int

    def at(self, env: Mapping[str, int]) -> int:
        return self.of.at(env) % self.by

    def names(self) -> tuple[str, ...]:
        return self.of.names()

    def __str__(self) -> str:
        return f"({self.of})%{self.by}"


@attrs.frozen
class Floor:
    """`of` divided by `by`, rounded down."""

    of: Affine
    by: int

    def at(self, env: Mapping[str, int]) -> int:
        return self.of.at(env) // self.by

    def names(self) -> tuple[str, ...]:
        return self.of.names()

    def __str__(self) -> str:
        return f"({self.of})//{self.by}"


@attrs.frozen
class Least:
    """The smaller of `most` and `of`: the extent of a tile that may stick out of its axis."""

    most: int
    of: Affine

    def at(self, env: Mapping[str, int]) -> int:
        return min(self.most, self.of.at(env))

    def names(self) -> tuple[str, ...]:
        return self.of.names()

    def __str__(self) -> str:
        return f"min({self.most},{self.of})"


Index = Affine | Mod | Floor
Extent = int | Least


def affine(const: int = 0, terms: Mapping[str, int] | None = None) -> Affine:
    """An Affine in its one normal form."""
    kept = sorted((n, c) for n, c in (terms or {}).items() if c)
    return Affine(const, tuple(kept))


def at(value: int | Affine | Mod | Floor | Least, env: Mapping[str, int]) -> int:
    return value if isinstance(value, int) else value.at(env)


def read_index(text: str) -> Affine | Mod | Floor | Least:
    """The node that printed as `text`; ValueError with a sentence if it is no index arithmetic."""
    try:
        return index_of(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"cannot read {text[:60]!r} as index arithmetic") from None


def index_of(tree: ast.expr) -> Affine | Mod | Floor | Least:
    """The same from Python's syntax tree."""
    match tree:
        case ast.BinOp(left, ast.Mod(), ast.Constant(int(by))) if by > 0:
            return Mod(_sum(left), by)
        case ast.BinOp(left, ast.FloorDiv(), ast.Constant(int(by))) if by > 0:
            return Floor(_sum(left), by)
        case ast.Call(ast.Name("min"), [ast.Constant(int(most)), of], []):
            return Least(most, _sum(of))
        case _:
            return _sum(tree)


def _sum(tree: ast.expr) -> Affine:
    match tree:
        case ast.Constant(int(number)):
            return Affine(number)
        case ast.Name(name):
            return Affine(0, ((name, 1),))
        case ast.UnaryOp(ast.USub(), of):
            return _sum(of).times(-1)
        case ast.BinOp(left, ast.Add(), right):
            return _sum(left).plus(_sum(right))
        case ast.BinOp(left, ast.Sub(), right):
            return _sum(left).plus(_sum(right), -1)
        case ast.BinOp(ast.Constant(int(factor)), ast.Mult(), right):
            return _sum(right).times(factor)
        case ast.BinOp(ast.UnaryOp(ast.USub(), ast.Constant(int(factor))), ast.Mult(), right):
            return _sum(right).times(-factor)
        case ast.BinOp(left, ast.Mult(), ast.Constant(int(factor))):
            return _sum(left).times(factor)
        case _:
            raise ValueError(f"cannot read {ast.unparse(tree)!r} as index arithmetic")
