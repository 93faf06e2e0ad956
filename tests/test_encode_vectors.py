"""The 51 golden vectors: each record by its fields, encoded to its bytes and decoded from them."""

from __future__ import annotations

import pytest

from ncc.encode.bundle import decode_bundle, encode_bundle, record
from ncc.encode.codes import ACT_FUNC, ALU, DTYPE
from ncc.encode.legal import complaints
from ncc.encode.tables import ROWS
from ncc.encode.values import f32_bits
from ncc.ir.isa import At, Band, Dram
from ncc.target import TARGETS

BF16, F32, I32, U8, U32 = (DTYPE[x] for x in ("bfloat16", "float32", "int32", "uint8", "uint32"))


def sb(partition, byte, *dims):
    return At("sb", partition, byte, dims)


def ps(partition, byte, *dims):
    return At("psum", partition, byte, dims)


def load(t):
    return record(
        "LoadStationary",
        src=sb(0, 0x100 * t, (1, 128)),
        in_dtype=BF16,
        num_active_rows=128,
        num_active_cols=128,
        row_grp=15,
        col_grp=15,
        xbus_sel=16,
    )


def matmul(t, flags):
    return record(
        "Matmul",
        moving=sb(0, 0x400 + 0x200 * t, (1, 256)),
        in_dtype=BF16,
        num_active_rows=128,
        num_active_cols=128,
        psum_flags=flags,
        row_grp=15,
        col_grp=15,
        xbus_sel=16,
        dst=ps(0, 0, (1, 256)),
    )


# The seeds' matmul, generation 2: K in four tiles of 128
SEED = [
    (
        "LoadStationary t=0",
        load(0),
        "0110000000000000000000000000000000000000010001000100800001000100"
        "0600000000008080000000000f0f100000000000000000000000000000000000",
    ),
    (
        "Matmul t=0",
        matmul(0, 1),
        "0210000000000000000000000000000000040000010001000100000101000100"
        "0600000000008080000000010f0f100000000002010001000100000101000100",
    ),
    (
        "LoadStationary t=1",
        load(1),
        "0110000000000000000000000000000000010000010001000100800001000100"
        "0600000000008080000000000f0f100000000000000000000000000000000000",
    ),
    (
        "Matmul t=1",
        matmul(1, 0),
        "0210000000000000000000000000000000060000010001000100000101000100"
        "0600000000008080000000000f0f100000000002010001000100000101000100",
    ),
    (
        "LoadStationary t=2",
        load(2),
        "0110000000000000000000000000000000020000010001000100800001000100"
        "0600000000008080000000000f0f100000000000000000000000000000000000",
    ),
    (
        "Matmul t=2",
        matmul(2, 0),
        "0210000000000000000000000000000000080000010001000100000101000100"
        "0600000000008080000000000f0f100000000002010001000100000101000100",
    ),
    (
        "LoadStationary t=3",
        load(3),
        "0110000000000000000000000000000000030000010001000100800001000100"
        "0600000000008080000000000f0f100000000000000000000000000000000000",
    ),
    (
        "Matmul t=3",
        matmul(3, 2),
        "02100000000000000000000000000000000a0000010001000100000101000100"
        "0600000000008080000000020f0f100000000002010001000100000101000100",
    ),
]

VECTORS = [
    (
        "LoadStationary + wait S[7]>=2",
        record(
            "LoadStationary",
            Band((5, 7), (0, 0), 2),
            src=sb(0, 0x0, (1, 128)),
            in_dtype=BF16,
            num_active_rows=128,
            num_active_cols=128,
            row_grp=15,
            col_grp=15,
            xbus_sel=16,
        ),
        "0110000005070000020000000000000000000000010001000100800001000100"
        "0600000000008080000000000f0f100000000000000000000000000000000000",
    ),
    (
        "Matmul STOP + S[9]++ on completion",
        record(
            "Matmul",
            Band((0, 0), (19, 9), 0),
            moving=sb(0, 0xA00, (1, 256)),
            in_dtype=BF16,
            num_active_rows=128,
            num_active_cols=128,
            psum_flags=2,
            row_grp=15,
            col_grp=15,
            xbus_sel=16,
            dst=ps(0, 0x0, (1, 256)),
        ),
        "02100000000013090000000000000000000a0000010001000100000101000100"
        "0600000000008080000000020f0f100000000002010001000100000101000100",
    ),
    (
        "EventSemaphore wait S[3]>=4, S[4]>=1; S[5]++",
        record(
            "EventSemaphore",
            Band((5, 3), (0, 0), 4),
            wait2_mode=5,
            wait2_idx=4,
            update2_mode=19,
            update2_idx=5,
            wait2_value=1,
        ),
        "a010000005030000040000000000000000000000000000000000000000000000"
        "0504130501000000000000000000000000000000000000000000000000000000",
    ),
    (
        "Activation Exp(0.125*x+bias[p]), PSUM fp32 -> SBUF bf16, sum accumulator zeroed",
        record(
            "Activate",
            accumulator_cmd=3,
            src=ps(0, 0x0, (1, 512)),
            in_dtype=F32,
            bias_dtype=F32,
            out_dtype=BF16,
            nchan=128,
            act_func=ACT_FUNC["Exp"],
            scale=f32_bits(0.125),
            bias=0x2000,
            dst=sb(0, 0x3000, (1, 512)),
        ),
        "2110000000000000000000000000030000000002010001000100000201000100"
        "aa0680070000003e002000000000000000300000010001000100000201000100",
    ),
    (
        "ActivationReadAccumulator -> SBUF fp32 [128,1]",
        record("ActivationReadAccumulator", count=1, out_dtype=F32, nchan=128, dst=sb(0, 0x2004)),
        "2410000000000000000000000000000000000000000000000000000001000000"
        "0a00800000000000000000000420000001000100000000000000000000000000",
    ),
    (
        "LoadActFuncSet set 0 (exp_and_others)",
        record("ActivationTableLoad"),
        "2310000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "TensorTensor add: PSUM fp32 + SBUF bf16 -> SBUF fp32 [128,256]",
        record(
            "TensorTensor",
            src0_dtype=F32,
            src1_dtype=BF16,
            out_dtype=F32,
            op=ALU["add"],
            nchan=128,
            src0=ps(0, 0x800, (1, 256)),
            src1=sb(0, 0x4000, (1, 256)),
            dst=sb(0, 0x5000, (1, 256)),
        ),
        "4110000000000000000000006a0a048000080002010001000100000101000100"
        "0040000001000100010000010100010000500000010001000100000101000100",
    ),
    (
        "TensorScalarPtr (x*s[p])+1.5, fp32 -> bf16",
        record(
            "TensorScalar",
            src=sb(0, 0x5000, (1, 256)),
            in_dtype=F32,
            out_dtype=BF16,
            nchan=128,
            imm0_src=1,
            op0=ALU["mult"],
            op1=ALU["add"],
            imm0=0x2000,
            imm1=f32_bits(1.5),
            dst=sb(0, 0x6000, (1, 256)),
        ),
        "4310000000000000000000000000000000500000010001000100000101000100"
        "0a06800106040000002000000000c03f00600000010001000100000101000100",
    ),
    (
        "TensorScalarReduce x*0.125, running max, fp32",
        record(
            "TensorScalarCacheReduce",
            accumulator_cmd=3,
            src=ps(0, 0x0, (1, 512)),
            in_dtype=F32,
            out_dtype=F32,
            nchan=128,
            op0=ALU["mult"],
            op1=ALU["max"],
            imm0=f32_bits(0.125),
            dst=sb(0, 0x7000, (1, 512)),
        ),
        "9a10000000000000000000000300000000000002010001000100000201000100"
        "0a0a8000060800000000003e0000000000700000010001000100000201000100",
    ),
    (
        "DveReadAccumulator negated -> SBUF fp32 [128,1]",
        record(
            "DveReadAccumulator", count=1, out_dtype=F32, negated=1, nchan=128, dst=sb(0, 0x2008)
        ),
        "9b10000000000000000000000000000000000000000000000000000001000000"
        "0a01800000000000000000000820000001000100000000000000000000000000",
    ),
    (
        "ScalarTensorTensor (a*s[p])+b, fp32 [128,256]",
        record(
            "ScalarTensorTensor",
            src0=sb(0, 0x8000, (1, 256)),
            src1=sb(0, 0x9000, (1, 256)),
            op0=ALU["mult"],
            op1=ALU["add"],
            imm0_src=1,
            src0_dtype=F32,
            src1_dtype=F32,
            out_dtype=F32,
            nchan=128,
            imm0_dtype=F32,
            dst=sb(0, 0x8000, (1, 256)),
            imm0=0x200C,
        ),
        "9d10000000000000000000000080000001000100000101000090000001000100"
        "0001010006040001aa0a800a000000000080000001000100000101000c200000",
    ),
    (
        "TensorReduce max over X, negated: [128,4,512] -> [128,4] fp32",
        record(
            "TensorReduce",
            src=sb(0, 0x7000, (1, 512), (512, 4)),
            in_dtype=F32,
            out_dtype=F32,
            nchan=128,
            negated=1,
            op=ALU["max"],
            op_dim=2,
            dst=sb(0, 0x2010, (1, 4)),
        ),
        "4210000000000000000000000070000001000002010001000002040001000100"
        "0a0a800108020000000000001020000001000100010001000400010001000100",
    ),
    (
        "TensorCopy (cast) PSUM fp32 -> SBUF bf16 [128,256]",
        record(
            "Cast",
            src=ps(0, 0x0, (1, 256)),
            in_dtype=F32,
            out_dtype=BF16,
            nchan=128,
            dst=sb(0, 0xA000, (1, 256)),
        ),
        "4710000000000000000000000000000201000100010001000001010001000100"
        "0a068000000000000000000000a0000001000100010001000001010001000100",
    ),
    (
        "Reciprocal fp32 [128,1]",
        record(
            "Reciprocal",
            src=sb(0, 0x2004),
            in_dtype=F32,
            out_dtype=F32,
            nchan=128,
            dst=sb(0, 0x2014),
        ),
        "4810000000000000000000000420000001000100010001000100010001000100"
        "0a0a800000000000000000001420000001000100010001000100010001000100",
    ),
    (
        "StreamTranspose 32x32 bf16",
        record(
            "StreamTranspose",
            src=sb(0, 0xA000, (1, 32)),
            in_dtype=BF16,
            out_dtype=BF16,
            nchan=32,
            dst=sb(0, 0xB000, (1, 32)),
        ),
        "6b100000000000000000000000a0000001000100010001002000010001000100"
        "06062000000000000000000000b0000001000100010001002000010001000100",
    ),
    (
        "Memset 0.0 fp32 [128,256]",
        record("Memset", count=256, out_dtype=F32, nchan=128, dst=sb(0, 0xC000, (1, 256))),
        "4910000000000000000000000000000000000000000000000000000000010000"
        "0a008000000000000000000000c0000001000100010001000001010001000100",
    ),
    (
        "Iota int32 [128,256], value = 256*p + x",
        record(
            "Iota",
            pattern=(0, ((1, 256),)),
            out_dtype=I32,
            nchan=128,
            channel_multiplier=256,
            dst=sb(0, 0xD000, (1, 256)),
        ),
        "7e10000000000000000000000000000001000100010001000001010001000100"
        "00088000000100000000000000d0000001000100010001000001010001000100",
    ),
    (
        "RegisterMove r12 = fp32 -3.4e38",
        record(
            "RegisterMove",
            count=1,
            dtype=F32,
            source=1,
            dst_regs=b"\x0c\x00\x00\x00\x00\x00\x00\x00",
            imm0=f32_bits(-3.4e38),
        ),
        "a71000000000000000000000010a010000000000000000000c00000000000000"
        "9ec97fff00000000000000000000000000000000000000000000000000000000",
    ),
    (
        "AffineSelect causal 128x128: keep where p - x >= 0, else r12",
        record(
            "AffineSelect",
            nchan=128,
            in_dtype=F32,
            out_dtype=F32,
            fill_mode=1,
            fill_reg=12,
            pattern=(0, ((-1, 128),)),
            src=sb(0, 0x7000, (1, 128)),
            dst=sb(0, 0x7000, (1, 128)),
            channel_multiplier=1,
        ),
        "92100000000000000000000080aa010c00000000ffff01000100010080000100"
        "0100010000700000010001008000010000700000010001008000010001000000",
    ),
    (
        "RangeSelect lo[p] <= idx < hi[p], running max, fp32 [128,128]",
        record(
            "RangeSelect",
            nchan=128,
            in_dtype=F32,
            out_dtype=F32,
            reduce_cmd=3,
            reduce_op=ALU["max"],
            fill=0xFF7FFFFF,
            src=sb(0, 0x7000, (1, 128)),
            comp_op0=ALU["is_ge"],
            comp_op1=ALU["is_lt"],
            bound0_src=1,
            bound1_src=1,
            bound0=0x2018,
            bound1=0x201C,
            dst=sb(0, 0xE000, (1, 128)),
        ),
        "bc100000000000000000000080aa030800000000ffff7fff0070000001000100"
        "8000010014160101182000001c20000000e00000010001008000010000000000",
    ),
    (
        "CopyPredicated mask u8, data fp32 -> dst fp32 [128,256]",
        record(
            "CopyPredicated",
            src0_dtype=U8,
            src1_dtype=F32,
            out_dtype=F32,
            nchan=128,
            src0=sb(0, 0xF000, (1, 256)),
            src1=sb(0, 0x5000, (1, 256)),
            dst=sb(0, 0xC000, (1, 256)),
        ),
        "721000000000000000000000a30a008000f00000010001000100000101000100"
        "0050000001000100010000010100010000c00000010001000100000101000100",
    ),
    (
        "DMA DIRECT2D DRAM var 1 -> SBUF, 128 rows x 256 B, S[7]+=1 when done",
        record(
            "DmaDirect2d",
            semaphore=7,
            sem_increment=1,
            src=Dram(1, 0x0),
            src_step=(1024, 0),
            src_num=(128, 1),
            src_size=256,
            dst=sb(0, 0x0),
            dst_step=(262144, 0),
            dst_num=(128, 1),
            dst_size=256,
            src_dtype=BF16,
            dst_dtype=BF16,
        ),
        "d410000000000000000000000007010000000000010000100004000000000000"
        "8000010000010000000000000000001000000400000000008000010000010606",
    ),
    (
        "DMATrigger queue q_weights block 2",
        record("DMATrigger", queue="q_weights", block=2),
        "c11000000000000000000000715f776569676874730000000000000000000000"
        "0000000000000000000000000000000002000000000000000000000000000000",
    ),
    (
        "RegisterAlu r5 = r5 + 1 (int32)",
        record(
            "RegisterAlu",
            op=ALU["add"],
            src_dtype=I32,
            source=1,
            dst_dtype=I32,
            src0_lo=5,
            dst_lo=5,
            imm=1,
        ),
        "a810000000000000000000000408010805000000050000000100000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "CompareAndBranch if r5 < 8 go back 10 bundles",
        record("CompareAndBranch", compare=1, dtype=I32, target_mode=3, imm=8, left=5, target=-640),
        "a910000000000000000000000108030008000000000000000000000000000000"
        "0500000000000000000000000000000080fdffff000000000000000000000000",
    ),
    (
        "CollectiveCompute AllReduce add bf16, var 3 -> var 4, group 0",
        record(
            "TriggerCollective2",
            reduce_op=ALU["add"],
            dtype=BF16,
            kind=1,
            src=Dram(3, 0x0),
            src_step=(512, 0),
            src_num=(128, 1),
            src_size=512,
            dst=Dram(4, 0x0),
            dst_step=(512, 0),
            dst_num=(128, 1),
            dst_size=512,
        ),
        "d910000000000000000000000406010000000000030000100002000000000000"
        "8000010000020000000000000400001000020000000000008000010000020000",
    ),
    (
        "Exit",
        record("Exit"),
        "df10000000000000000000000100000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "BatchNormStats2 fp32 [128,512] -> [128,6]",
        record(
            "BatchNormStats2",
            src=sb(0, 0x7000, (1, 512)),
            in_dtype=F32,
            out_dtype=F32,
            nchan=128,
            even_count=f32_bits(256.0),
            odd_count=f32_bits(256.0),
            dst=sb(0, 0x2020, (1, 6)),
        ),
        "6110000000000000000000000070000001000100010001000002010001000100"
        "0a0a800000000000000080430000804320200000010001000600010000000000",
    ),
    (
        "BatchNormAggregate two stats records [128,12] -> [128,2] (mean, var)",
        record(
            "BatchNormAggregate",
            src=sb(0, 0x2020, (1, 12)),
            in_dtype=F32,
            out_dtype=F32,
            nchan=128,
            dst=sb(0, 0x2050, (1, 2)),
        ),
        "6210000000000000000000002020000001000100010001000c00010001000100"
        "0a0a800000000000000000000000000050200000010001000200010000000000",
    ),
    (
        "Max8 fp32 [128,512] -> [128,8]",
        record(
            "Max8",
            src=sb(0, 0x7000, (1, 512)),
            in_dtype=F32,
            out_dtype=F32,
            nchan=128,
            dst=sb(0, 0x207C, (-1, 8)),
        ),
        "6c10000000000000000000000070000001000100010001000002010001000100"
        "0a0a80000000000000000000000000007c200000ffff01000800010000000000",
    ),
    (
        "MatchValueLoad 8 values",
        record("MatchValueLoad", src=sb(0, 0x207C, (-1, 8)), in_dtype=F32, nchan=128),
        "6d1000000000000000000000000000007c200000ffff01000800010000000000"
        "0a00800000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "FindIndex8 -> uint32 [128,8]",
        record(
            "FindIndex8",
            src=sb(0, 0x7000, (1, 512)),
            in_dtype=F32,
            out_dtype=U32,
            nchan=128,
            dst=sb(0, 0x2080, (1, 8)),
        ),
        "6e10000000000000000000000070000001000100010001000002010001000100"
        "0a09800000000000000000000000000080200000010001000800010000000000",
    ),
    (
        "TensorTensorScan (prev*a)+b, initial 0.0",
        record(
            "TensorTensorScan",
            src0=sb(0, 0x8000, (1, 256)),
            src1=sb(0, 0x9000, (1, 256)),
            op0=ALU["mult"],
            op1=ALU["add"],
            src0_dtype=F32,
            src1_dtype=F32,
            out_dtype=F32,
            nchan=128,
            imm0_dtype=F32,
            dst=sb(0, 0xA000, (1, 256)),
        ),
        "e510000000000000000000000080000001000100000101000090000001000100"
        "0001010006040000aa0a800a0000000000a00000010001000001010000000000",
    ),
    (
        "CopyPredicatedScalar: where mask!=0 write -3.4e38",
        record(
            "CopyPredicatedScalar",
            predicate=sb(0, 0xF000, (1, 256)),
            pred_dtype=U8,
            reversed_pred=1,
            nchan=128,
            in_dtype=F32,
            out_dtype=F32,
            imm=f32_bits(-3.4e38),
            dst=sb(0, 0xC000, (1, 256)),
        ),
        "e810000000000000000000000000000000f00000010001000100000101000100"
        "0301800000000000000a0a009ec97fff00c00000010001000100000101000100",
    ),
    (
        "LoadStationary gen3, K=32 at partition 32, M=32 to columns 64..95",
        record(
            "LoadStationary",
            src=sb(32, 0x0, (1, 32)),
            in_dtype=BF16,
            num_active_rows=32,
            num_active_cols=32,
            row_grp=2,
            col_grp=4,
        ),
        "0110000000000000000000000000000000008000010001000100200001000100"
        "0600000000002020000000000204000000000000000000000000000000000000",
    ),
    (
        "Matmul gen3, same quadrants, N=64 -> PSUM partition 64 bank 1, START+STOP",
        record(
            "Matmul",
            moving=sb(32, 0x400, (1, 64)),
            in_dtype=BF16,
            num_active_rows=32,
            num_active_cols=32,
            psum_flags=3,
            row_grp=2,
            col_grp=4,
            dst=ps(64, 0x800, (1, 64)),
        ),
        "0210000000000000000000000000000000048000010001000100400001000100"
        "0600000000002020000000030204000000082002010001000100400001000100",
    ),
    (
        "PE transpose, step 1 gen3: LoadStationary of the data (transpose_mode=1)",
        record(
            "LoadStationary",
            src=sb(0, 0x3000, (1, 128)),
            in_dtype=BF16,
            transpose_mode=1,
            num_active_rows=128,
            num_active_cols=128,
            row_grp=15,
            col_grp=15,
        ),
        "0110000000000000000000000000000000300000010001000100800001000100"
        "0600010000008080000000000f0f000000000000000000000000000000000000",
    ),
    (
        "PE transpose, step 2 gen3: Matmul with the identity moving",
        record(
            "Matmul",
            moving=sb(0, 0x3800, (1, 128)),
            in_dtype=BF16,
            transpose_mode=1,
            num_active_rows=128,
            num_active_cols=128,
            psum_flags=3,
            row_grp=15,
            col_grp=15,
            dst=ps(0, 0x1000, (1, 128)),
        ),
        "0210000000000000000000000000000000380000010001000100800001000100"
        "0600010000008080000000030f0f000000100002010001000100800001000100",
    ),
    (
        "Drain",
        record("Drain"),
        "a210000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "Halt",
        record("Halt"),
        "a110000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "Nop",
        record("Nop"),
        "a410000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "EventSemaphoreRangeClear, range 8..15",
        record("EventSemaphoreRangeClear", mode=1, first=8, last=15),
        "b0100000000000000000000001080f0000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "IndirectLoad: gather 128 rows of 64 bf16 from DRAM var 5 by int32 index list",
        record(
            "DMAMemcpyFullInd",
            index=sb(0, 0x2100),
            index_step0=1,
            index_step1=262144,
            index_num0=128,
            index_num1=1,
            data=sb(0, 0xF800),
            data_step0=2,
            data_step1=262144,
            data_num0=128,
            data_num1=64,
            bytes=128,
            table=5,
        ),
        "c410000000000000000000000021000001000000000004008000000001000000"
        "00f8000002000000000004008000000040000000800000000500000000000000",
    ),
]

EACH = pytest.mark.parametrize(
    ("bundle", "digits"), [v[1:] for v in SEED + VECTORS], ids=[v[0] for v in SEED + VECTORS]
)


def test_there_are_51():
    assert len(SEED) == 8
    assert len(VECTORS) == 43


@EACH
def test_the_record_encodes_to_its_bytes(bundle, digits):
    assert encode_bundle(bundle).hex() == digits


@EACH
def test_the_bytes_decode_to_the_record(bundle, digits):
    assert decode_bundle(bytes.fromhex(digits)) == bundle


@EACH
def test_the_record_is_legal(bundle, digits):
    gen = 2 if dict(bundle.fields).get("xbus_sel") else 3
    machine = TARGETS["trn1" if gen == 2 else "trn2"]
    engines = [e for e in ROWS[bundle.op].engines if e != "PE"] or ["PE"]
    engine = "SP" if bundle.op == "DmaDirect2d" else engines[-1]
    assert [str(x) for x in complaints(bundle, gen, machine, engine)] == []


def test_generation_3_differs_in_byte_2e():
    for (_, bundle, digits), at in zip(SEED, range(8), strict=True):
        fields = {k: v for k, v in bundle.fields if k != "xbus_sel"}
        raw = bytearray.fromhex(digits)
        assert raw[0x2E] == 0x10, at
        raw[0x2E] = 0
        assert encode_bundle(record(bundle.op, **fields), 3) == bytes(raw)
