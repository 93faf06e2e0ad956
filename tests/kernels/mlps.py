"""Feed-forward blocks: gated, and with biases for a few tokens."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import (
    P_MAX,
    StackAllocator,
    div_ceil,
    kernel_assert,
    load,
    pe_transpose,
    tiles_of,
)


class Weights(nl.NKIObject):
    """The three matrices of a gated block, and the tiles of them that are on chip."""

    gate: nl.ndarray
    up: nl.ndarray
    down: nl.ndarray
    dtype: object = None

    def __post_init__(self):
        self.hidden, self.inner = self.gate.shape
        kernel_assert(self.up.shape == self.gate.shape, f"{self.up.shape} for {self.gate.shape}")
        kernel_assert(self.down.shape == (self.inner, self.hidden), "down has another shape")
        self.dtype = self.dtype or self.gate.dtype

    def columns(self, which, tile):
        """All rows of some columns, 128 rows behind each other: (128, h / 128, columns)."""
        matrix = getattr(self, which)
        steps = self.hidden // P_MAX
        held = nl.ndarray((P_MAX, steps, tile.size), dtype=self.dtype, buffer=nl.sbuf)
        for k in range(steps):
            nisa.dma_copy(
                dst=held[:, k, :],
                src=matrix[k * P_MAX : (k + 1) * P_MAX, tile.start : tile.end],
            )
        return held


@nki.jit
def gated_mlp(x, gate, up, down, act=nl.silu):
    """down(act(x @ gate) * (x @ up)) for any number of rows."""
    rows, hidden = x.shape
    weights = Weights(gate=gate, up=up, down=down)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    steps = hidden // P_MAX

    def project(which, tile, across, size):
        held = weights.columns(which, tile)
        acc = nl.ndarray((tile.size, size), dtype=nl.float32, buffer=nl.psum)
        for k in range(steps):
            nisa.nc_matmul(dst=acc, stationary=held[:, k, :], moving=across[k])
        return acc

    for row in tiles_of(rows, P_MAX):
        tile = load(x[row.start : row.end])
        across = [pe_transpose(tile[:, nl.ds(k * P_MAX, P_MAX)]) for k in range(steps)]
        products = []
        for inner in tiles_of(weights.inner, P_MAX):
            g = project("gate", inner, across, row.size)
            activated = nl.ndarray(g.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=activated, op=act, data=g)
            u = project("up", inner, across, row.size)
            both = nl.ndarray(g.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=both, data1=activated, data2=u, op=nl.multiply)
            products.append((inner, both))
        for n in tiles_of(hidden, 512):
            acc = nl.ndarray((row.size, n.size), dtype=nl.float32, buffer=nl.psum)
            for inner, both in products:
                held = load(down[inner.start : inner.end, n.start : n.end])
                nisa.nc_matmul(dst=acc, stationary=both, moving=held)
            done = nl.ndarray(acc.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=done, src=acc)
            nisa.dma_copy(dst=out[row.start : row.end, n.start : n.end], src=done)
    return out


@nki.jit
def few_token_mlp(x, w1, b1, w2, b2):
    """gelu_tanh(x @ w1 + b1) @ w2 + b2 with SBUF laid out by hand, tokens in the free axis."""
    tokens, hidden = x.shape
    inner = w1.shape[1]
    stack = StackAllocator(base=64)
    steps, blocks = hidden // P_MAX, inner // P_MAX
    out = nl.ndarray((tokens, hidden), dtype=x.dtype, buffer=nl.shared_hbm)
    x_t = stack.alloc((P_MAX, steps, tokens), x.dtype)
    for k in range(steps):
        nisa.dma_transpose(dst=x_t[:, k, :], src=x[:, k * P_MAX : (k + 1) * P_MAX])
    act = stack.alloc((P_MAX, blocks, tokens), x.dtype)
    bias = stack.alloc((P_MAX, blocks), nl.float32)
    nisa.dma_copy(dst=bias, src=b1.ap(pattern=[[1, P_MAX], [P_MAX, blocks]]))
    with nl.no_reorder():
        for block in nl.static_range(blocks):
            stack.open()
            w = stack.alloc((P_MAX, steps, P_MAX), w1.dtype)
            nisa.dma_copy(
                dst=w,
                src=w1.ap(
                    [[inner, P_MAX], [inner * P_MAX, steps], [1, P_MAX]], offset=block * P_MAX
                ),
            )
            acc = nl.ndarray((P_MAX, tokens), dtype=nl.float32, buffer=nl.psum)
            for k in range(steps):
                nisa.nc_matmul(acc, w[:, k, :], x_t[:, k, :])
            nisa.activation(
                dst=act[:, block, :],
                op=nl.gelu_apprx_tanh,
                data=acc,
                bias=bias[:, block : block + 1],
            )
            stack.close()
    for n in tiles_of(hidden, 512):
        acc = nl.ndarray((tokens, n.size), dtype=nl.float32, buffer=nl.psum)
        for block in range(blocks):
            held = load(w2[block * P_MAX : (block + 1) * P_MAX, n.start : n.end])
            nisa.nc_matmul(acc, act[:, block, :], held)
        row = nl.ndarray((1, n.size), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=b2.reshape((1, hidden))[:, n.start : n.end])
        wide = nl.ndarray((div_ceil(tokens, 32) * 32, n.size), dtype=nl.float32, buffer=nl.sbuf)
        for quadrant in range(div_ceil(tokens, 32)):
            nisa.nc_stream_shuffle(
                dst=wide[quadrant * 32 : quadrant * 32 + 32, :], src=row, shuffle_mask=[0] * 32
            )
        done = nl.ndarray((tokens, n.size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=done, data1=acc, data2=wide[0:tokens, :], op=nl.add)
        nisa.dma_copy(dst=out[:, n.start : n.end], src=done)
    return out
