"""Generated kernels with loops in loops, whose bounds and offsets are data."""

from __future__ import annotations

import random

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

ROWS, WIDTH, BLOCKS = 16, 8, 4


def drawn_inputs(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((BLOCKS, ROWS, WIDTH)).astype(np.float32)
    return x, rng.integers(0, BLOCKS, (1, 4)).astype(np.int32)


class Draw:
    """One kernel while it is traced."""

    def __init__(self, seed, x, out):
        self.r, self.x, self.out = random.Random(seed), x, out
        self.tiles = [self.tile() for _ in range(5)]
        for n, tile in enumerate(self.tiles):
            nisa.dma_copy(dst=tile, src=x[n % BLOCKS])
        self.sum = nl.zeros((WIDTH, WIDTH), dtype=nl.float32, buffer=nl.psum)

    def tile(self, rows=ROWS, buffer=nl.sbuf):
        return nl.ndarray((rows, WIDTH), dtype=nl.float32, buffer=buffer)

    def block(self, tensor, at):
        pairs = [[WIDTH, ROWS], [1, WIDTH]]
        return tensor.ap(pairs, scalar_offset=at, indirect_dim=0)

    def step(self, local, at):
        """One op on tiles of the kernel and of the bodies around it; `at` are the loops' indices."""
        r = self.r
        one, two, to = (r.choice([*self.tiles, *local]) for _ in range(3))
        columns = slice(0 if r.random() < 0.6 else WIDTH // 2, WIDTH)
        kind = r.choice(["add", "copy", "apply", "product", "group", *["load", "save"] * bool(at)])
        if kind == "add":
            op = r.choice([nl.add, nl.subtract, nl.maximum])
            nisa.tensor_tensor(
                dst=to[:, columns], data1=one[:, columns], data2=two[:, columns], op=op
            )
        elif kind == "copy":
            local.append(self.tile())
            nisa.tensor_copy(dst=local[-1], src=one)
        elif kind == "apply":
            nisa.activation(dst=to[:, columns], op=nl.tanh, data=one[:, columns])
        elif kind == "load":
            local.append(self.tile())
            nisa.dma_copy(dst=local[-1], src=self.block(self.x, r.choice(at)))
        elif kind == "save":
            nisa.dma_copy(dst=self.block(self.out, r.choice(at)), src=one)
        elif kind == "product":  # into a sum that lasts through all loops
            nisa.nc_matmul(dst=self.sum, stationary=one, moving=two, accumulate=True)
        else:
            group = self.tile(WIDTH, nl.psum)
            nisa.nc_matmul(dst=group, stationary=one, moving=two, accumulate=False)
            nisa.nc_matmul(dst=group, stationary=two, moving=to, accumulate=True)
            nisa.activation(dst=one[0:WIDTH, :], op=nl.tanh, data=group)

    def body(self, depth, counts, local, at):
        for _ in range(self.r.randrange(2, 6)):
            if depth < 3 and self.r.random() < 0.35:
                first, last = self.r.choice([0, 0, 1]), self.r.choice(counts)

                def inner(i):
                    self.body(depth + 1, counts, list(local), [*at, i])

                nl.fori_loop(first, last, inner)
            else:
                self.step(local, at)


def drawn(seed):
    @nki.jit
    def kernel(x, given):
        out = nl.ndarray((BLOCKS, ROWS, WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((WIDTH, WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
        held = nl.ndarray((1, 4), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=held, src=given)
        counts = [nisa.scalar_load(held[0:1, k : k + 1]) for k in range(3)]
        draw = Draw(seed, x, out)
        draw.body(0, counts, [], [])
        nl.fori_loop(0, counts[0], lambda i: draw.body(1, counts, [], [i]))
        for k in range(BLOCKS):
            nisa.dma_copy(dst=out[k], src=draw.tiles[k])
        last = draw.tile(WIDTH)
        nisa.tensor_copy(dst=last, src=draw.sum)
        nisa.dma_copy(dst=total, src=last)
        return out, total

    return kernel
