"""Put a custom call of the attention kernel in the place of dot, softmax and dot.

Before:
    HloModule attention

    %top (a: bf16[], b: bf16[]) -> bf16[] {
      %a = bf16[] parameter(0)
      %b = bf16[] parameter(1)
      ROOT %c = bf16[] maximum(%a, %b)
    }

    %sum (a: bf16[], b: bf16[]) -> bf16[] {
      %a = bf16[] parameter(0)
      %b = bf16[] parameter(1)
      ROOT %c = bf16[] add(%a, %b)
    }

    ENTRY %main (q: bf16[4,8], k: bf16[1024,8], v: bf16[1024,8]) -> bf16[4,8] {
      %q = bf16[4,8]{1,0} parameter(0)
      %k = bf16[1024,8]{1,0} parameter(1)
      %v = bf16[1024,8]{1,0} parameter(2)
      %s = bf16[4,1024]{1,0} dot(%q, %k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      %low = bf16[] constant(-inf)
      %m = bf16[4]{0} reduce(%s, %low), dimensions={1}, to_apply=%top
      %mb = bf16[4,1024]{1,0} broadcast(%m), dimensions={0}
      %x = bf16[4,1024]{1,0} subtract(%s, %mb)
      %e = bf16[4,1024]{1,0} exponential(%x)
      %zero = bf16[] constant(0)
      %d = bf16[4]{0} reduce(%e, %zero), dimensions={1}, to_apply=%sum
      %db = bf16[4,1024]{1,0} broadcast(%d), dimensions={0}
      %p = bf16[4,1024]{1,0} divide(%e, %db)
      ROOT %o = bf16[4,8]{1,0} dot(%p, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

After:
    HloModule attention

    ENTRY %main (q: bf16[4,8], k: bf16[1024,8], v: bf16[1024,8]) -> bf16[4,8] {
      %q = bf16[4,8]{1,0} parameter(0)
      %k = bf16[1024,8]{1,0} parameter(1)
      %v = bf16[1024,8]{1,0} parameter(2)
      ROOT %o = bf16[4,8]{1,0} custom-call(%q, %k, %v), custom_call_target="AttentionMMSoftmaxMMWithoutSwap", api_version=API_VERSION_ORIGINAL, backend_config={"psum_shape":[128,512],"sb_shape":[128,8,8],"auto_cast":"none","auto_cast_type":"bf16","kernel_name":"attention_cte"}
    }

Why: the scores have as many elements as queries times keys. Plain ops write them to memory three
times; the kernel keeps 128 rows of them on chip. It runs only when asked for (`--raise-attention`),
as the real pass does. What cannot be raised stays as it is, and a warning says which gate is closed:
tensors in float32 are left alone, as the kernel's products would round them. The real pass raises
for one target alone; here every target has the kernel.
"""

from __future__ import annotations

import warnings

import attrs

from ncc.ir.attention import (
    CAUSAL,
    PLAIN,
    SWAPPED,
    Sizes,
    backend_config,
    closed_gate,
)
from ncc.ir.attention_match import Chain, NoMatch, match
from ncc.ir.core import Origin
from ncc.ir.hlo import (
    ArrayShape,
    Computation,
    Instruction,
    Layout,
    Literal,
    Module,
    descending,
)
from ncc.ir.hlo_edit import dims_of, entry_replaced, inlined, pruned
from ncc.ir.hlo_laws import unique
from ncc.passes.base import define
from ncc.target import Target

NAME = "raise-attention"


def apply(module: Module, target: Target) -> Module:
    if not any(inst.opcode == "dot" for inst in module.main().instructions):
        return module
    entry, changed = inlined(module), False
    for name in [inst.name for inst in entry.instructions if inst.opcode == "dot"]:
        if chain := chain_at(module, entry, name):
            entry, changed = raised(entry, chain), True
    return entry_replaced(module, entry) if changed else module


def chain_at(module: Module, entry: Computation, name: str) -> Chain | None:
    """The chain that ends in this dot, if it is one and every gate is open; a warning says why a
    chain that is one stays."""
    pv = next((x for x in entry.instructions if x.name == name), None)
    if pv is None:  # it was the first dot of a chain that has been raised
        return None
    try:
        chain = match(module, entry, pv)
    except NoMatch as why:
        told(pv, str(why))
        return None
    if chain and (why := closed_gate(sizes_of(chain))):
        told(pv, why)
        return None
    return chain


def told(pv: Instruction, why: str) -> None:
    place = pv.origin.place(pv.name, NAME)
    warnings.warn(f"NCC125 {place}: this attention is not raised: {why}", stacklevel=2)


def sizes_of(chain: Chain) -> Sizes:
    q, k = chain.q, chain.k
    assert isinstance(q.inst.shape, ArrayShape)
    widths = {x.inst.shape.dtype for x in (q, k, chain.v) if isinstance(x.inst.shape, ArrayShape)}
    dtype = widths.pop() if len(widths) == 1 else "of several types"
    return Sizes(q.size(chain.query), k.size("k"), q.size("c"), dtype)


def raised(entry: Computation, chain: Chain) -> Computation:
    """The entry with the call, what turns its operands and its result, and without the chain."""
    taken = {inst.name for inst in entry.instructions}
    origin = chain.pv.origin.by(NAME)
    made: list[Instruction] = []
    heads = [*chain.batch, *chain.groups]
    orders = ([*heads, chain.query, "c"], [*chain.batch, "k", "c"], [*chain.batch, "k", "d"])
    names: list[str] = []
    for side, order in zip((chain.q, chain.k, chain.v), orders, strict=True):
        turned = transposed(side.inst, side.order(order), taken, origin)
        made += [turned] if turned is not side.inst else []
        names.append(turned.name)
    if chain.scale != 1.0:
        made.append(scalar(chain.scale, unique(f"{chain.root.name}.scale", taken), origin))
        names.append(made[-1].name)
    made += call(chain, tuple(names), heads, taken, origin)
    body = list(entry.instructions)
    at = next(i for i, inst in enumerate(body) if inst.name == chain.root.name)
    body[at : at + 1] = made
    return attrs.evolve(entry, instructions=pruned(body, entry.root))


def transposed(
    inst: Instruction, order: tuple[int, ...], taken: set[str], origin: Origin
) -> Instruction:
    """The value with its dimensions in another order; itself when they are in it."""
    if order == tuple(range(len(order))):
        return inst
    assert isinstance(inst.shape, ArrayShape)
    dims = tuple(inst.shape.dims[i] for i in order)
    shape = ArrayShape(inst.shape.dtype, dims, descending(len(dims)))
    name = unique(f"{inst.name}.turned", taken)
    return Instruction(
        name, shape, "transpose", (inst.name,), (("dimensions", order),), origin=origin
    )


def scalar(value: float, name: str, origin: Origin) -> Instruction:
    import struct

    literal = Literal("f32", (), struct.pack("<f", value))
    return Instruction(name, ArrayShape("f32", ()), "constant", literal=literal, origin=origin)


def call(
    chain: Chain, names: tuple[str, ...], heads: list[str], taken: set[str], origin: Origin
) -> list[Instruction]:
    """The custom call, and what turns or widens its result to that of the chain."""
    root, q = chain.root, chain.q.inst
    assert isinstance(q.shape, ArrayShape) and isinstance(root.shape, ArrayShape)
    straight = chain.out.order([*heads, chain.query, "d"])
    swapped = chain.out.order([*heads, "d", chain.query])
    swap = not chain.causal and swapped == tuple(range(len(swapped)))
    order = swapped if swap else straight
    target = CAUSAL if chain.causal else SWAPPED if swap else PLAIN
    attributes = (
        ("custom_call_target", f'"{target}"'),
        ("api_version", "API_VERSION_ORIGINAL"),
        ("backend_config", backend_config(sizes_of(chain))),
    )
    dims = tuple(dims_of(root)[i] for i in order)
    plain = order == tuple(range(len(order)))
    same = plain and root.shape.dtype == q.shape.dtype
    layout: Layout | None = descending(len(dims))
    shape = root.shape if same else ArrayShape(q.shape.dtype, dims, layout)
    name = root.name if same else unique(f"{root.name}.call", taken)
    made = [Instruction(name, shape, "custom-call", names, attributes, origin=origin)]
    if not plain:
        back = tuple(order.index(i) for i in range(len(order)))
        last = root.shape.dtype == q.shape.dtype
        own = root.name if last else unique(f"{root.name}.back", taken)
        turned = ArrayShape(q.shape.dtype, dims_of(root), root.shape.layout)
        key = (("dimensions", back),)
        made.append(Instruction(own, turned, "transpose", (name,), key, origin=origin))
    if root.shape.dtype != q.shape.dtype:
        read = (made[-1].name,)
        made.append(Instruction(root.name, root.shape, "convert", read, origin=origin))
    return made


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    exact=False,
    required=False,
    after={"check-sharding": "the kernel is one device's"},
    real="LowerToCustomNativeKernel",
    job="F0",
    sure="confirmed",
)
