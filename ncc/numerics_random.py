"""Random numbers of the engines: one XORWOW generator a lane (Marsaglia, 2003).

A state is six words: x, y, z, w, v and the counter d. A step gives

    t = x ^ (x >> 2);  x, y, z, w = y, z, w, v;  v ^= (v << 4) ^ t ^ (t << 1);  d += 362437;  v + d

Which seed makes which state is not published. Here word i of all states of seed s is SplitMix32's
mix of s + 0x9E3779B9 · (i + 1), so that lanes differ and equal seeds repeat. A lane of the vector
engine has four generators that serve its elements in turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
LANES, STATE = 128, 6
STEP = 362437


def _mixed(x: Words) -> Words:
    """SplitMix32's finaliser."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x735A2D97)
    return x ^ (x >> np.uint32(15))


def seeded(seed: int, generators: int) -> Words:
    """[128, generators, 6]: the states of all lanes."""
    count = LANES * generators * STATE
    start = np.arange(1, count + 1, dtype=np.uint32) * np.uint32(0x9E3779B9)
    with np.errstate(over="ignore"):
        found = _mixed(start + np.uint32(seed & 0xFFFFFFFF)).reshape(LANES, generators, STATE)
    found[..., 0] |= np.uint32(1)  # never all zero
    return found


def draw(state: Words, rows: int, count: int) -> Words:
    """[rows, count] random words; the states of those rows step on."""
    lanes = state[:rows]
    turns = -(-count // state.shape[1])
    out = np.empty((turns, rows, state.shape[1]), np.uint32)
    x, y, z, w, v, d = (np.ascontiguousarray(lanes[..., i]) for i in range(STATE))
    for i in range(turns):
        t = x ^ (x >> np.uint32(2))
        x, y, z, w = y, z, w, v
        v = (v ^ (v << np.uint32(4))) ^ (t ^ (t << np.uint32(1)))
        d = d + np.uint32(STEP)
        out[i] = v + d
    for i, word in enumerate((x, y, z, w, v, d)):
        lanes[..., i] = word
    return out.transpose(1, 0, 2).reshape(rows, -1)[:, :count]


def uniform(words: Words) -> NDArray[np.float32]:
    """Random words as float32 in [0, 1): the upper 24 bits."""
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
