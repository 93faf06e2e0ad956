"""Turn each tile op into one machine instruction, still over tiles and inside loops.

Before:
    from ncc.penguin import *
    with function("dot") as f:
        lhs = tensor("lhs", "bfloat16", (4, 6), kind="input", home="dram")
        rhs = tensor("rhs", "bfloat16", (6, 5), kind="input", home="dram")
        out = tensor("out", "float32", (4, 5), kind="output", home="dram")
        lhs_t = tensor("lhs_t", "bfloat16", (2, 3, 4), home="sbuf", blocks=1)
        rhs_t = tensor("rhs_t", "bfloat16", (2, 3, 5), home="sbuf", blocks=1)
        acc = tensor("acc", "float32", (4, 5), home="psum")
        out_t = tensor("out_t", "float32", (4, 5), home="sbuf")
        k, m, n = axis("k m n")
        for k_o in loop("k_o", 2, "parallel"):
            TileTransposeOp("turn", lhs_t[k_o, k, m], par=axes(k=3), free=axes(m=4),
                src=lhs[m, k+3*k_o], kind="dma")
            TileCopyOp("load", rhs_t[k_o, k, n], par=axes(k=3), free=axes(n=5), src=rhs[k+3*k_o, n])
        for k_o in loop("k_o", 2, "accumulate"):
            MatMulOp("mm", acc[m, n], par=axes(m=4), free=axes(n=5), stationary=lhs_t[k_o, k, m],
                moving=rhs_t[k_o, k, n], contract=axes(k=3), engines=("PE",), accumulate=("k_o",))
        TensorCopyOp("evict", out_t[m, n], par=axes(m=4), free=axes(n=5), src=acc[m, n],
            engines=("DVE", "Activation"))
        TileCopyOp("store", out[m, n], par=axes(m=4), free=axes(n=5), src=out_t[m, n])

After:
    module dot gen3
      func sg0000
        set lhs bfloat16 (4,6) kind=ExternalInput
        set rhs bfloat16 (6,5) kind=ExternalInput
        set out float32 (4,5) kind=ExternalOutput
        set lhs_t bfloat16 (2,3,4) memory=SB partition_dim=1
        set rhs_t bfloat16 (2,3,5) memory=SB partition_dim=1
        set acc float32 (4,5) memory=PSUM
        set out_t float32 (4,5) memory=SB
        block Block1
          for.k_o = Loop ALL axis=(k_o,0,2,1)
            block block0
              turn = AbstractCopy DMA lhs_t[k_o,k,m|k:3|m:4] <- lhs[m,k+3*k_o|m:4|k:3] transpose=true
              load = AbstractCopy DMA rhs_t[k_o,k,n|k:3|n:5] <- rhs[k+3*k_o,n|k:3|n:5]
          for.k_o_ = Loop ALL axis=(k_o_,0,2,1)
            block block0
              mm = Matmult PE acc[m,n|m:4|n:5] <- rhs_t[k_o_,k,n|k:3|n:5] lhs_t[k_o_,k,m|k:3|m:4] accumulate_over=(k_o_,)
          evict = TensorCopy DVE|Activation out_t[m,n|m:4|n:5] <- acc[m,n|m:4|n:5]
          store = AbstractCopy DMA out[m,n|m:4|n:5] <- out_t[m,n|m:4|n:5]
          exit = Exit ALL

Why: what an instruction is, and which engines may run it, is settled here; where its operands lie
is the next pass's question. A matmul keeps the wish to accumulate as the loops over which its
product is added up: START and STOP are written much later, when order and banks are final. What
only the machine needs is added: the identity matrix of a PE transpose (a transpose is a product
with it), and the Exit that ends the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ncc.errors import NccError
from ncc.ir.affine import Affine, Extent, Floor, Index, Mod
from ncc.ir.bir import Block, File, Function, Imm, Inst, LocSet, Module, Operand, Tile
from ncc.ir.bir_opcodes import OPCODES, keyed
from ncc.ir.core import Origin
from ncc.ir.data import data, eye, numpy_type
from ncc.ir.kernel_binary import VERSION
from ncc.ir.kernel_carriers import carried
from ncc.ir.penguin import (
    ActivationOp,
    Axis,
    KernelNode,
    MatMulMXOp,
    MatMulOp,
    MatMulSparseOp,
    Statement,
    Tensor,
    TensorCopyOp,
    TensorScalarOp,
    TensorTensorOp,
    TileCopyOp,
    TileMemsetOp,
    TileOp,
    TileTransposeOp,
    View,
)
from ncc.ir.penguin import Function as Source
from ncc.ir.penguin import Loop as SourceLoop
from ncc.passes.base import define
from ncc.target import Target

MEMORY = {"dram": "DRAM", "sbuf": "SB", "psum": "PSUM"}
KIND = {"input": "ExternalInput", "output": "ExternalOutput", "const": "Const"}
Axes = tuple[tuple[str, Extent], ...]


def location_set(tensor: Tensor) -> LocSet:
    if tensor.home not in MEMORY:
        raise fault(tensor, f"the tensor is at home in {tensor.home}, no memory of the machine")
    memory = MEMORY[tensor.home]
    return LocSet(
        tensor.name,
        tensor.dtype,
        tensor.shape,
        KIND.get(tensor.kind, "Internal"),
        memory,
        partition_dim=tensor.blocks,
        ring=tensor.ring,
        data=tensor.data,
        declared=tensor.declared,
        origin=tensor.origin.by("penguin-to-bir"),
    )


def fault(of: Tensor | Statement, said: str) -> NccError:
    name = of.axis if isinstance(of, SourceLoop) else of.name
    return NccError("NCC410", said, of.origin.place(name, "penguin-to-bir"))


def axes_of(axes: tuple[Axis, ...]) -> Axes:
    return tuple((axis.name, axis.extent) for axis in axes)


class Codegen:
    """One translation: the sets so far, and the loops that are open."""

    def __init__(self, source: Source, target: Target) -> None:
        self.source, self.target = source, target
        self.sets = {tensor.name: location_set(tensor) for tensor in source.tensors}
        self.identities: dict[str, str] = {}
        self.loaded: list[Inst] = []
        self.renamed: dict[str, str] = {}  # a loop variable that occurs twice, by its own name now
        self.taken: set[str] = set()
        self.files: list[File] = []

    def module(self) -> Module:
        body = self.statements(self.source.body)
        end = Inst("exit", "Exit", "ALL")
        block = Block("Block1", (*self.loaded, *body, end))
        main = Function("sg0000", tuple(self.sets.values()), (block,))
        return Module(self.source.name, self.target.arch, (main,), files=tuple(self.files))

    def statements(self, body: tuple[Statement, ...]) -> tuple[Inst, ...]:
        return tuple(inst for statement in body for inst in self.statement(statement))

    def statement(self, statement: Statement) -> Iterator[Inst]:
        match statement:
            case SourceLoop(axis, trips, _, body):
                name = axis
                while name in self.taken:
                    name += "_"
                self.taken.add(name)
                outer = self.renamed.get(axis)
                self.renamed[axis] = name
                inside = Block("block0", self.statements(body))
                if outer is None:
                    del self.renamed[axis]
                else:
                    self.renamed[axis] = outer
                origin = statement.origin.by("penguin-to-bir")
                yield Inst(
                    f"for.{name}",
                    "Loop",
                    "ALL",
                    axis=(name, 0, trips, 1),
                    blocks=(inside,),
                    origin=origin,
                )
            case MatMulMXOp() | MatMulSparseOp():
                raise fault(statement, f"{type(statement).__name__} comes later")
            case TileOp():
                yield self.op(statement)
            case KernelNode():
                yield from self.kernel(statement)
            case _:
                raise fault(statement, f"{type(statement).__name__} is no tile op")

    def kernel(self, node: KernelNode) -> Iterator[Inst]:
        """The carrier of a kernel, with its body as a file; before it, a copy of each argument that
        the kernel writes into the tensor that it is written to."""
        if not node.sealed:
            raise fault(node, "the kernel is not sealed; nki-seal does that")
        origin, outs = node.origin.by("penguin-to-bir"), dict(node.outs)
        for name, tensor in node.args:
            if name in outs:
                copy = self.whole(tensor), self.whole(outs[name])
                keep = f"{node.name}.{name}"
                yield Inst(keep, "AbstractCopy", "DMA", copy[:1], copy[1:], origin=origin)
        args = tuple((name, outs.get(name, tensor)) for name, tensor in node.args)
        self.files.append(carried(node, self.target))
        keys = keyed(
            "NKIKLIRKernel",
            klir_binary=self.files[-1].name,
            kernel_format=node.form,
            nki_binary_version_identifier=VERSION,
            func_args=args,
            func_outs=node.outs,
            lnc_size=len(node.bodies),
        )
        ins, to = (tuple(self.whole(t) for _, t in pairs) for pairs in (args, node.outs))
        yield Inst(node.name, "NKIKLIRKernel", "ALL", ins, to, keys, origin=origin)

    def whole(self, tensor: str) -> Tile:
        """All of a tensor in DRAM."""
        axes = [(f"d{n}", extent) for n, extent in enumerate(self.sets[tensor].shape)]
        index = tuple(Affine(0, ((name, 1),)) for name, _ in axes)
        return Tile(tensor, index, tuple(axes[:1]), tuple(axes[1:]))

    def op(self, op: TileOp) -> Inst:
        """The instruction of one tile op."""
        par, free = axes_of(op.par), axes_of(op.free)
        match op:
            case TileCopyOp(src=src):
                return self.inst(op, "AbstractCopy", [self.tile(src, par, free)])
            case TileTransposeOp(src=src, kind="dma"):
                return self.inst(op, "AbstractCopy", [self.tile(src, free, par)], transpose=True)
            case TileTransposeOp(src=src):
                return self.pe_transpose(op, src)
            case MatMulOp():
                return self.matmul(op)
            case ActivationOp(src=src, func=func, scale=scale, bias=bias):
                ins: list[Operand] = [self.tile(src, par, free)]
                if bias != 0.0:
                    ins.append(self.scalar(bias, par))
                return self.inst(op, "Activation", ins, func=func, scale=scale)
            case TensorScalarOp():
                return self.tensor_scalar(op)
            case TensorTensorOp(op=alu, src0=src0, src1=src1):
                both: list[Operand] = [self.tile(src0, par, free), self.tile(src1, par, free)]
                return self.inst(op, "TensorTensor", both, op=alu)
            case TileMemsetOp(value=value):
                return self.inst(op, "Memset", [], constant=self.bits(op.dst.tensor, value))
            case TensorCopyOp(src=src):
                return self.inst(op, "TensorCopy", [self.tile(src, par, free)])
            case _:
                raise fault(
                    op, f"{type(op).__name__} is no instruction; select-insts makes one of it"
                )

    def matmul(self, op: MatMulOp) -> Inst:
        par, free, contract = axes_of(op.par), axes_of(op.free), axes_of(op.contract)
        ins: list[Operand] = [
            self.tile(op.moving, contract, free),
            self.tile(op.stationary, contract, par),
        ]
        keys: dict[str, Any] = {}
        if op.accumulate:
            keys["accumulate_over"] = tuple(self.renamed.get(x, x) for x in op.accumulate)
        if op.perf_mode not in ("none", "None"):
            keys["perf_mode"] = op.perf_mode
        if op.tile_position:
            keys["tile_position"] = op.tile_position
        if op.tile_size:
            keys["tile_size"] = op.tile_size
        return self.inst(op, "Matmult", ins, **keys)

    def pe_transpose(self, op: TileTransposeOp, src: View) -> Inst:
        """dst[m, k] = Σ_p src[p, m] · identity[p, k]: the data is stationary."""
        par, free = axes_of(op.par), axes_of(op.free)
        blocks = self.sets[src.tensor].partition_dim
        down = src.index[blocks]
        if not isinstance(down, Affine):
            raise fault(op, f"the partition index {down} is no sum")
        own = {name for name, _ in free}
        terms = tuple(term for term in down.terms if term[0] in own)
        across = tuple((f"{name}_", coefficient) for name, coefficient in terms)
        rows: tuple[Index, ...] = (Affine(0, terms), Affine(0, across))
        held = tuple((name, self.extent(extent)) for name, extent in free)
        moves = tuple((f"{name}_", extent) for name, extent in held)
        identity = Tile(self.identity(self.sets[src.tensor].dtype, op.origin), rows, held, moves)
        return self.inst(op, "Matmult", [identity, self.tile(src, free, par)], is_transpose=True)

    def identity(self, dtype: str, origin: Origin) -> str:
        """The SBUF set with the identity matrix of this dtype, loaded once at the start."""
        if dtype not in self.identities:
            import numpy as np

            name, origin = f"identity_{dtype}", origin.by("penguin-to-bir")
            while name in self.sets or f"{name}_sb" in self.sets:
                name += "_"
            one = data(dtype, np.ones((), numpy_type(dtype))).raw
            kind = "IdentityWeightTensor"
            self.sets[name] = LocSet(
                name,
                dtype,
                (128, 128),
                "Const",
                "DRAM",
                kind,
                data=eye(dtype, 128, one),
                origin=origin,
            )
            self.sets[f"{name}_sb"] = LocSet(
                f"{name}_sb", dtype, (128, 128), "Internal", "SB", kind, origin=origin
            )
            index = (Affine(0, (("p", 1),)), Affine(0, (("f", 1),)))
            source, copy = (
                Tile(x, index, (("p", 128),), (("f", 128),)) for x in (name, f"{name}_sb")
            )
            load = Inst(f"load_{name}", "AbstractCopy", "DMA", (source,), (copy,), origin=origin)
            self.loaded.append(load)
            self.identities[dtype] = f"{name}_sb"
        return self.identities[dtype]

    def tensor_scalar(self, op: TensorScalarOp) -> Inst:
        par = axes_of(op.par)
        data = self.tile(op.src, par, axes_of(op.free))
        steps: dict[str, Any] = {"op0": op.op0, "reverse0": op.reverse0, "op1": op.op1}
        two = op.op1 != "bypass"
        if isinstance(op.operand0, View) or (two and isinstance(op.operand1, View)):
            ins: list[Operand] = [data, self.scalar(op.operand0, par)]
            if two:
                ins.append(self.scalar(op.operand1, par))
            return self.inst(op, "TensorScalarPtr", ins, **steps)
        steps["const0"] = op.operand0
        if two:
            steps["const1"] = op.operand1
        return self.inst(op, "TensorScalar", [data], **steps)

    def bits(self, tensor: str, value: float) -> int:
        """The element that holds a number in the tensor's dtype, as a Memset has it."""
        import numpy as np

        return int.from_bytes(data(self.sets[tensor].dtype, np.full((), value)).raw, "little")

    def scalar(self, value: View | float, par: Axes) -> Operand:
        """A number, or a column with one number a partition."""
        return self.tile(value, par, ()) if isinstance(value, View) else Imm(float(value))

    def tile(self, view: View, par: Axes, free: Axes) -> Tile:
        index = view.index
        if self.renamed:
            index = tuple(self.index(at) for at in index)
            par, free = (tuple((n, self.extent(e)) for n, e in axes) for axes in (par, free))
        return Tile(view.tensor, index, par, free)

    def index(self, at: Index) -> Index:
        match at:
            case Mod(of, by):
                return Mod(self.sum(of), by)
            case Floor(of, by):
                return Floor(self.sum(of), by)
            case _:
                return self.sum(at)

    def extent(self, extent: Extent) -> Extent:
        if isinstance(extent, int):
            return extent
        return type(extent)(extent.most, self.sum(extent.of))

    def sum(self, of: Affine) -> Affine:
        if all(self.renamed.get(name, name) == name for name, _ in of.terms):
            return of
        return Affine(of.const, tuple(sorted((self.renamed.get(n, n), c) for n, c in of.terms)))

    def inst(self, op: TileOp, opcode: str, ins: list[Operand], /, **keys: Any) -> Inst:
        par, free = axes_of(op.par), axes_of(op.free)
        out = self.tile(op.dst, par, free)
        homes = {self.sets[x.set].memory for x in (*ins, out) if isinstance(x, Tile)}
        engines = op.engines or OPCODES[opcode].engines
        if opcode == "AbstractCopy" and "DRAM" in homes:
            engines = ("DMA",)
        elif not op.engines and "Pool" in engines:  # Pool has no way to PSUM
            engines = tuple(x for x in engines if x != "Pool" or "PSUM" not in homes)
        return Inst(
            op.name,
            opcode,
            "|".join(engines),
            tuple(ins),
            (out,),
            keyed(opcode, **keys),
            origin=op.origin.by("penguin-to-bir"),
        )


def apply(module: Source, target: Target) -> Module:
    return Codegen(module, target).module()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    target="bir",
    gives=("no-matmul-has-a-flag",),
    real="BirCodeGenLoop",
    job="F2",
    sure="confirmed",
)
