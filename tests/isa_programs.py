"""Small programs as listings, for the tests of bundles and containers."""

MATMUL = """program matmul target=cayman gen=3
var lhs id=1 kind=input dtype=bfloat16 shape=(128,512)
var rhs id=2 kind=input dtype=bfloat16 shape=(512,256)
var out id=3 kind=output dtype=float32 shape=(128,256)
queue qActivation owner=Activation semaphore=9 num_queues=16
queue qSP owner=SP semaphore=12 num_queues=16
"""

PE = "in_dtype=bfloat16 num_active_rows=128 num_active_cols=128"
GROUPS = "row_grp=15 col_grp=15"


def matmul() -> str:
    """The seed matmul on trn2, every bundle of it."""
    lines = [MATMUL.rstrip("\n"), "stream PE"]
    for t, flags in enumerate((" psum_flags=1", "", "", " psum_flags=2")):
        lines.append(
            f"  LoadStationary wait=S12>={32 * t + 32} src=sb[0]+{256 * t:#x}[1:128] {PE} {GROUPS}"
        )
        lines.append(
            f"  Matmul moving=sb[0]+{1024 + 512 * t:#x}[1:256] {PE}{flags} {GROUPS}"
            " dst=ps[0]bank0+0x0[1:256] update=S0++"
        )
    lines += [
        "  Exit",
        "stream Activation",
        "  DmaDirect2d wait=S3>=1 semaphore=9 sem_increment=16 src=sb[0]+0xc00"
        " src_step=(262144,0) src_num=(128,1) src_size=1024 dst=v3+0x0 dst_step=(1024,0)"
        " dst_num=(128,1) dst_size=1024 src_dtype=float32 dst_dtype=float32",
        "  Exit wait=S9>=16",
        "stream Pool",
        "stream DVE",
        "  Copy wait=S0>=4 src=ps[0]bank0+0x0[1:256] in_dtype=float32 out_dtype=float32"
        " nchan=128 dst=sb[0]+0xc00[1:256] update=S3++",
        "  Exit",
        "stream SP",
    ]
    for t in range(4):
        lines.append(
            "  DmaDirect2d semaphore=12 sem_increment=16 dge_op=transpose"
            f" src=v1+{256 * t:#x} src_step=(16384,0) src_num=(8,1) src_size=256"
            f" dst=sb[0]+{256 * t:#x} dst_step=(32,0) dst_num=(8,1) dst_size=32"
            " src_dtype=bfloat16 dst_dtype=bfloat16"
        )
        lines.append("  Extension tile_src_row_step=1024 tile_src_rows=16 tile_src_cols=128")
        lines.append(
            f"  DmaDirect2d semaphore=12 sem_increment=16 src=v2+{65536 * t:#x}"
            " src_step=(512,0) src_num=(128,1) src_size=512"
            f" dst=sb[0]+{1024 + 512 * t:#x} dst_step=(262144,0) dst_num=(128,1) dst_size=512"
            " src_dtype=bfloat16 dst_dtype=bfloat16"
        )
    lines.append("  Exit wait=S12>=128")
    return "\n".join(lines) + "\n"


# Two constants, scratch, a declared input, names that need quotes, every engine at work.
MIXED = """program "a program" target=sunda gen=2
var "x y" id=1 kind=input dtype=bfloat16 shape=(4,8) declared=float8_e4m3fn
var sb id=2 kind=output dtype=float32 shape=(4,8)
var eye id=3 kind=file dtype=bfloat16 shape=(4,4) data=eye:803f
var col id=4 kind=file dtype=float32 shape=(3,) data=hex:000000000000803f0000c0ff
var empty id=5 kind=file dtype=float32 shape=(0,4) data=hex:
var spill id=6 kind=virtual dtype=float32 shape=(4,8) offset=64
queue qPool owner=Pool semaphore=10 num_queues=4
stream PE
  Nop update=S0++
  Exit
stream Activation
  ActivationTableLoad wait=S0>=1 table_set=5
  ActivationTableLoad
  Exit
stream Pool
  DmaDirect2d semaphore=10 sem_increment=4 src=v1+0x0 src_size=64 dst=v6+0x0 dst_size=128 src_dtype=bfloat16 dst_dtype=float32
  DmaDirect2d wait=S10>=4 semaphore=10 sem_increment=4 src=v6+0x0 src_size=128 dst=v2+0x0 dst_size=128 src_dtype=float32 dst_dtype=float32
  Exit wait=S10>=8
stream DVE
  TensorScalar src=sb[32]+0x0[1:4] in_dtype=float32 out_dtype=float32 nchan=32 imm0_src=pointer op0=mult op1=add imm0=sb[32]+0x40 imm1=-0.0 dst=sb[32]+0x80[1:4]
  EventSemaphore wait=S0>=r5 wait2=S4>=1 update2=S5++ update=S6+=5
  Nop wait=E7:set-then-clear update=read:E4:clear
  Nop wait=E7:clear update=S9:=32
  Exit
stream SP
"""
