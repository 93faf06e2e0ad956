"""Faults that others met, each with its small input and the right behaviour (cases H01 to H20)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from neff_files import changed, rehashed, signed, wrapped
from whole_programs import HERE, field, hlo, printed, product, program_of, streams

from ncc import checking, driver, nki, pack, values
from ncc.cli import call
from ncc.errors import NccError
from ncc.ir.bir_opcodes import key
from ncc.ir.hlo_literal import array_of
from ncc.nki import programs
from ncc.stages import read_stage
from ncc.target import TARGETS
from ncc.walking import plan

BF16 = ml_dtypes.bfloat16
kernels = programs.imported(HERE / "case_kernels.py")
old = programs.imported(HERE / "case_kernels_old.py")
ARCH = {"trn1": "sunda", "trn2": "gen3", "trn3": "core_v4"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def said(capsys, *arguments: str) -> tuple[int, str]:
    """The exit status of a command line, and what it wrote to stderr."""
    capsys.readouterr()
    status = call(list(arguments))
    return status, capsys.readouterr().err


def written(name: str, **targets: str) -> str:
    """A printed program as a file here, maybe for another target; its name."""
    text = (HERE / "bir_programs" / f"{name}.txt").read_text()
    for target in targets.values():
        text = text.replace("target=trn2", f"target={target}")
        text = text.replace(" gen3\n", f" {ARCH[target]}\n")
    Path(f"{name}.txt").write_text(text)
    return f"{name}.txt"


def kernel_file() -> str:
    """The file of the kernels, here; its name."""
    shutil.copy(HERE / "case_kernels.py", "case_kernels.py")
    return "case_kernels.py"


def kernel_stage(name: str, **args: str):
    """The input stage of a kernel with arguments as on the command line."""
    return programs.kernel_stage(f"{HERE / 'case_kernels.py'}:{name}", TARGETS["trn2"], args)


def line(kernel: str, text: str, module=kernels) -> str:
    """`case_kernels.py:41`: the first line of a kernel with this text."""
    path = Path(module.__file__)
    lines = list(enumerate(path.read_text().split("\n"), 1))
    begin = next(n for n, one in lines if one.startswith(f"def {kernel}("))
    return f"{path.name}:{next(n for n, one in lines[begin:] if text in one)}"


def simulated(kernel):
    return nki.simulate(kernel)


def compiled(kernel):
    return kernel


def outputs(stage, inputs):
    return driver.run(stage, inputs)


def right(stage) -> None:
    """Every stage means the same, on whole numbers and on random ones, and so do the bytes."""
    sets = [checking.whole_numbers(stage), checking.random_numbers(stage)]
    result = checking.check(stage, plan(stage), sets)
    assert not result.failed, f"{result.place}: {result.failed}"
    assert result.rows[-1]["level"] == "neff"


# --- H01: three wide tiles ------------------------------------------------------------------------


@pytest.mark.parametrize("target, usable", [("trn1", 180224), ("trn2", 212984), ("trn3", 245752)])
def test_h01_three_wide_tiles_fit_nowhere(capsys, target, usable):
    status, told = said(capsys, "compile", written("three_wide", target=target))
    assert status == 1
    assert told == (
        "ncc: NCC502 insert-spills, a: 3 tiles that are live at sum take 295704 bytes a partition, "
        f"and {target} has {usable}: a 98568 bytes, b 98568 bytes and c 98568 bytes "
        "(make the tiles smaller, or keep fewer of them at a time)\n"
    )
    assert not Path("three_wide.neff").exists()


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_h01_two_wide_tiles_fit_the_larger_machines(target):
    """The sum is written over one of its operands: two tiles of 98,568 bytes a partition."""
    stage = read_stage(Path(written("two_wide", target=target)).read_text(), "p.txt")
    a, b = values.whole(stage, 0)
    (got,) = outputs(stage, [a, b])
    np.testing.assert_array_equal(got, a + b)


def test_h01_two_wide_tiles_do_not_fit_trn1(capsys):
    status, told = said(capsys, "compile", written("two_wide", target="trn1"))
    assert status == 1
    assert told.startswith("ncc: NCC502 insert-spills, a: ")
    assert "2 tiles" in told and "take 197136 bytes" in told
    assert "and trn1 has 180224: a 98568 bytes and b 98568 bytes " in told


@pytest.mark.parametrize("target, usable", [("trn1", 180224), ("trn2", 212984), ("trn3", 245752)])
def test_h01_three_wide_tiles_of_a_kernel(capsys, target, usable):
    wide = "f32[128,24642]"
    arguments = ["--arg", f"A={wide}", "--arg", f"B={wide}", "--target", target]
    a, b, c = (line("three_wide", f'name="{name}"') for name in "abc")
    assert said(capsys, "compile", f"{kernel_file()}:three_wide", *arguments) == (
        1,
        f"ncc: NCC502 {a}, insert-spills, three_wide:a: 3 tiles that are live at three_wide:i2"
        f" ({line('three_wide', 'tensor_tensor')}) take 295704 bytes a partition, and {target} has"
        f" {usable}: three_wide:a 98568 bytes ({a}), three_wide:b 98568 bytes ({b}) and three_wide:c"
        f" 98568 bytes ({c}) (make the tiles smaller, or keep fewer of them at a time)\n",
    )


@pytest.mark.parametrize("target, fits", [("trn1", False), ("trn2", True), ("trn3", True)])
def test_h01_two_wide_tiles_of_a_kernel(monkeypatch, target, fits):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    a, b = np.random.default_rng(1).integers(-8, 8, (2, 128, 24642)).astype(np.float32)
    if fits:
        np.testing.assert_array_equal(kernels.two_wide(a, b), a + b)
        return
    made = line("two_wide", 'name="a"')
    with pytest.raises(NccError, match=f"NCC502 {made}, .*trn1 has 180224"):
        kernels.two_wide(a, b)
    np.testing.assert_array_equal(nki.simulate(kernels.two_wide)(a, b), a + b)


# --- H02: a product wider than a PSUM bank --------------------------------------------------------


def test_h02a_one_product_over_two_banks_is_refused(capsys):
    text = (HERE / "bir_programs" / "two_banks.txt").read_text()
    wide = text.replace(
        "p:float32[[1024,128],[1,512]] <- x_t:bfloat16[[1024,128],[1,512]] ",
        "p:float32[[1024,128],[1,1024]] <- x_t:bfloat16[[1024,128],[1,1024]] ",
    )
    assert wide != text
    Path("p.txt").write_text(wide)
    assert said(capsys, "compile", "p.txt") == (
        1,
        "ncc: NCC416 after unroll, left: has K=128, M=128, N=1024; the most are 128, 128 and 512\n",
    )


def test_h02b_two_products_into_one_tile_of_two_banks():
    stage = printed("two_banks")
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == [3, 3], "two groups"
    assert [field(b, "dst").byte for b in products] == [0, 2048], "two banks"
    w, x = values.whole(stage, 0)
    (got,) = outputs(stage, [w, x])
    np.testing.assert_array_equal(got, np.asarray(w, float).T @ np.asarray(x, float))
    right(stage)


def test_h02b_from_hlo():
    stage = hlo(product(128, 128, 1024))
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == [3, 3]
    assert [field(b, "dst").byte for b in products] == [0, 2048]
    right(stage)


def sums(count: int) -> str:
    """A printed program of sums that grow all at once, each a bank wide, in two rounds."""
    head = (HERE / "bir_programs" / "two_banks.txt").read_text().split("    set p ")[0]
    head = head.replace("set out float32 (128,1024)", f"set out float32 (128,{512 * count})")
    head = head.replace("loc out DRAM (1,524288)", f"loc out DRAM (1,{262144 * count})")
    sets, lines = "", ""
    for n in range(count):
        sets += f"    set p{n} float32 (128,512) memory=PSUM\n      loc p{n} PSUM (128,2048)\n"
        sets += f"    set o{n} float32 (128,512) memory=SB\n      loc o{n} SB (128,2048)\n"
    lines += (
        "      load_w = Load DMA w_t:bfloat16[[128,128],[1,128]] <- w:bfloat16[[128,128],[1,128]]\n"
    )
    lines += (
        "      load_x = Load DMA x_t:bfloat16[[1024,128],[1,1024]] <- "
        "x:bfloat16[[1024,128],[1,1024]]\n"
    )
    for half in (0, 1):
        for n in range(count):
            place = "x_t:bfloat16[[1024,128],[1,512]]" + ("+512" if half else "")
            lines += (
                f"      mm{n}.{half} = Matmult PE p{n}:float32[[512,128],[1,512]] <- {place} "
                f"w_t:bfloat16[[128,128],[1,128]]{' accumulate=true' if half else ''}\n"
            )
    for n in range(count):
        whole = "float32[[512,128],[1,512]]"
        lines += f"      copy{n} = TensorCopy DVE o{n}:{whole} <- p{n}:{whole}\n"
        at = f"+{512 * n}" if n else ""
        lines += f"      save{n} = Save DMA out:float32[[{512 * count},128],[1,512]]{at} <- o{n}:{whole}\n"
    return f"{head}{sets}    block Block1\n{lines}      exit = Exit ALL\n"


def test_h02c_nine_sums_that_grow_at_once_are_refused_with_their_banks(capsys):
    right(read_stage(sums(8), "eight.txt"))
    Path("nine.txt").write_text(sums(9))
    tiles = ", ".join(f"p{n} 1 bank" for n in range(8)) + " and p8 1 bank"
    assert said(capsys, "compile", "nine.txt") == (
        1,
        "ncc: NCC503 alloc-psum, p0: 9 PSUM tiles that are live at mm8.0 take 9 banks, and trn2 has "
        f"8: {tiles} (copy a finished sum to SBUF before the next one starts)\n",
    )


def w_and_x(columns: int = 1024, dtype=BF16):
    """Weights [128, 128] and columns to multiply by them, whole numbers; and the product."""
    draw = np.random.default_rng(2)
    w, x = draw.integers(-4, 5, (128, 128)), draw.integers(-4, 5, (128, columns))
    return w.astype(dtype), x.astype(dtype), (w.T @ x).astype(np.float32)


@pytest.mark.parametrize("how", [simulated, compiled])
def test_h02a_one_product_of_a_kernel_over_two_banks(how):
    w, x, _ = w_and_x()
    with pytest.raises(NccError) as told:
        how(kernels.one_product)(w, x)
    assert str(told.value) == (
        f"NCC337 {line('one_product', 'nc_matmul(')}: nc_matmul writes 4096 bytes a partition to dst p (128, 1024), a "
        "PSUM bank holds 2048 (cut the moving operand into parts of 512 columns)"
    )


@pytest.mark.parametrize("how", [simulated, compiled])
def test_h02b_two_products_of_a_kernel_into_one_tile(how):
    w, x, want = w_and_x()
    np.testing.assert_array_equal(how(kernels.two_products)(w, x), want)


def test_h02b_the_kernel_has_two_groups_in_two_banks():
    stage = kernel_stage("two_products", w="bf16[128,128]", x="bf16[128,1024]")
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == [3, 3]
    assert sorted(field(b, "dst").byte for b in products) == [0, 2048]


def test_h02c_nine_sums_of_a_kernel_are_refused_with_their_banks():
    w, x, _ = w_and_x()
    want = np.float32(w).T @ np.float32(x[:, :512]) + np.float32(w).T @ np.float32(x[:, 512:])
    np.testing.assert_array_equal(kernels.many_sums(w, x, 8), np.stack([want] * 8))
    np.testing.assert_array_equal(simulated(kernels.many_sums)(w, x, 9), np.stack([want] * 9))
    with pytest.raises(NccError) as told:
        kernels.many_sums(w, x, 9)
    made = line("many_sums", 'name=f"p{n}"')
    tiles = ", ".join(f"many_sums:p{n} 1 bank ({made})" for n in range(8))
    assert str(told.value) == (
        f"NCC503 {made}, alloc-psum, many_sums:p0: 9 PSUM tiles that are live at many_sums:i10 "
        f"({line('many_sums', 'nc_matmul(')}) take 9 banks, and trn2 has 8: {tiles} and many_sums:p8 1 bank "
        f"({made}) (copy a finished sum to SBUF before the next one starts)"
    )


# --- H03: a row block of 256 ----------------------------------------------------------------------


@pytest.mark.parametrize("rows", [256, 129])
def test_h03_more_rows_than_partitions(capsys, rows):
    text = (HERE / "bir_programs" / "rows.txt").read_text()
    text = text.replace("(256,", f"({rows},").replace("256]", f"{rows}]")
    Path("rows.txt").write_text(text.replace("65536", str(rows * 256)))
    assert said(capsys, "compile", "rows.txt") == (
        1,
        f"ncc: NCC310 after unroll, t: {too_many(rows, 64)}\n",
    )


def too_many(rows: int, width: int) -> str:
    """The sentence behind the place: one rule and one text at every level."""
    hint = f", or reshape to (128, 2, {width})" if rows == 256 else ""
    more = f"(loop over blocks of 128 rows{hint})"
    return f"dimension 0 is the partition dimension, {rows} > 128 {more}"


@pytest.mark.parametrize("rows", [256, 129])
@pytest.mark.parametrize("how", [simulated, compiled])
@pytest.mark.parametrize("age, made", [(kernels, 'name="t"'), (old, "nl.load")])
def test_h03_more_rows_than_partitions_in_a_kernel(age, made, how, rows):
    with pytest.raises(NccError) as told:
        how(age.rows)(np.zeros((rows, 64), np.float32), rows)
    what = "the tensor t" if age is kernels else "the tensor"
    assert str(told.value) == f"NCC310 {line('rows', made, age)}, {what}: {too_many(rows, 64)}"


@pytest.mark.parametrize("rows", [256, 129])
def test_h03_more_rows_than_partitions_in_a_written_kernel(capsys, rows):
    """A kernel's body as text, where it stands between nki-trace and inlining."""
    stage = kernel_stage("rows", x="f32[128,64]", count="128")
    text = driver.compile(stage, stop_after="nki-seal").text()
    wide = text.replace(
        't = buffer("t", "float32", (128, 64)', f't = buffer("t", "float32", ({rows}, 64)'
    )
    assert wide != text
    Path("rows.txt").write_text(wide)
    status, told = said(capsys, "compile", "rows.txt")
    assert status == 1
    assert told.startswith("ncc: NCC310 ") and told.endswith(f", t: {too_many(rows, 64)}\n")


def test_h03_128_rows_are_right():
    text = (HERE / "bir_programs" / "rows.txt").read_text()
    text = text.replace("(256,", "(128,").replace("256]", "128]").replace("65536", "32768")
    right(read_stage(text, "rows.txt"))


# --- H04: two index conditions joined -------------------------------------------------------------


@pytest.mark.parametrize("how", [simulated, compiled])
def test_h04_masks_joined_with_and(how):
    """x has no more rows and columns than the mask leaves: the rest is never read."""
    x = np.arange(70 * 300, dtype=np.float32).reshape(70, 300)
    want = np.full((128, 512), 7, np.float32)
    want[:70, 3:300] = x[:, 3:]
    np.testing.assert_array_equal(how(old.masked)(x), want)


@pytest.mark.parametrize("how", [simulated, compiled])
@pytest.mark.parametrize(
    "kernel, told",
    [
        (
            "either",
            ": a mask cannot be built with | (comparisons of nl.arange, "
            "nl.mgrid and numbers, joined with &)",
        ),
        (
            "by_data",
            ": nl.load takes mask= as something known while tracing, was "
            "given a tensor (a mask is a comparison of nl.arange or nl.mgrid with numbers, joined "
            "with &; choose by data with nl.where or a predicate)",
        ),
    ],
)
def test_h04_other_masks_are_refused(how, kernel, told):
    with pytest.raises(NccError) as fault:
        how(getattr(old, kernel))(np.ones((128, 512), np.float32))
    assert str(fault.value) == f"NCC372 {line(kernel, 'mask=', old)}{told}"


# --- H05: a step that does not fit its field ------------------------------------------------------


def test_h05_a_wide_step_is_split_in_two():
    stage = printed("wide_step")
    copies = [b for b in streams(program_of(stage))["DVE"] if b.op == "Copy"]
    starts = [field(b, "src").byte for b in copies]
    assert [field(b, "src").dims for b in copies] == [(), ()], "one element each"
    assert starts[1] - starts[0] == 46208
    (x,) = values.whole(stage, 0)
    np.testing.assert_array_equal(outputs(stage, [x])[0], x[:, :, 0])


@pytest.mark.parametrize("step", [40000, -40000, 32768, -32769])
@pytest.mark.parametrize("side", ["src", "dst"])
def test_h05_a_step_in_a_listing_is_refused_and_never_wrapped(capsys, step, side):
    Path("m.hlo").write_text(product(128, 512, 256))
    assert call(["compile", "m.hlo", "-o", "m.neff"]) == 0
    capsys.readouterr()
    assert call(["disasm", "m.neff"]) == 0
    lines = capsys.readouterr().out.split("\n")
    (at,) = [n for n, line in enumerate(lines) if line.startswith("  Copy ")]
    lines[at] = re.sub(rf"({side}=\S+)\[1:256\]", rf"\1[{step}:256]", lines[at])
    Path("bad.s").write_text("\n".join(lines))
    assert said(capsys, "asm", "bad.s", "-o", "bad.neff") == (
        1,
        f"ncc: NCC702 bad.s:{at + 1}, Copy: {side}: step {step} of dimension 0 is outside "
        "-32768..32767 (split the pattern into two instructions)\n",
    )
    assert not Path("bad.neff").exists()


# --- H07: a tile reused by the next iteration -----------------------------------------------------


@pytest.mark.parametrize("address", [None, (0, 0)])
def test_h07_each_iteration_has_its_own_value_at_every_level(address):
    """Left to ncc the tile gets copies of its own; at a fixed address the iterations wait."""
    a = np.random.default_rng(7).integers(-9, 9, (4, 128, 64)).astype(np.float32)
    for how in (simulated, compiled):
        np.testing.assert_array_equal(how(kernels.reused)(a, address), 2 * a)
    right(kernel_stage("reused", A="f32[4,128,64]", address=str(address)))


def reused_listing(capsys) -> list[str]:
    """The bundles of the kernel whose tile has an address."""
    pinned = ["--arg", "A=f32[4,128,64]", "--arg", "address=(0, 0)", "-o", "r.neff"]
    assert call(["compile", f"{kernel_file()}:reused", *pinned]) == 0
    capsys.readouterr()
    assert call(["disasm", "r.neff"]) == 0
    return capsys.readouterr().out.split("\n")


def test_h07_the_load_waits_for_the_store_before():
    stage = kernel_stage("reused", A="f32[4,128,64]", address="(0, 0)")
    done = driver.compile(stage, stop_after="anti-deps").module.main.blocks[0].insts
    loads = [i for i in done if i.opcode == "Load"]
    stores = [i for i in done if i.opcode == "Save"]
    assert len(loads) == len(stores) == 4
    for store, load in zip(stores, loads[1:], strict=False):
        assert (store.name, "Anti") in [(name, kind) for name, kind, *_ in load.deps], load.name


@pytest.mark.parametrize("iteration", [1, 2, 3])
def test_h07_without_the_wait_the_race_names_the_load_and_the_store(capsys, iteration):
    lines = reused_listing(capsys)
    loads = [n for n, line in enumerate(lines) if re.match(r"  DmaDirect2d .*src=v1", line)]
    at = loads[iteration]
    lines[at], found = re.subn(r" wait=S\d+>=\d+", "", lines[at])
    assert found == 1
    Path("bad.s").write_text("\n".join(lines))
    assert said(capsys, "asm", "bad.s", "-o", "bad.neff")[0] == 0
    status, told = said(capsys, "run", "bad.neff", "--random", "1")
    assert status == 1
    assert told == (
        f"ncc: NCC902 SP {iteration} (DmaDirect2d): writes sb rows 0 to 127 bytes 0 to 255 that "
        f"Activation {iteration - 1} (DmaDirect2d) reads, and no wait orders them (make the later one "
        "wait for the other)\n"
    )


# --- H08: overlapping groups in PSUM --------------------------------------------------------------


@pytest.mark.parametrize("name, flags", [("overlap", [3, 2]), ("overlap_split", [3, 0, 2])])
def test_h08_a_product_that_accumulates_into_a_part(name, flags):
    """A into all columns, B added to the right half. In the second version the right half of A and
    B are one group: STOP stands on its last member alone."""
    stage = printed(name)
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == flags
    w, x = (np.asarray(v, np.float64) for v in values.whole(stage, 0))
    want = w.T @ x[:, :512]
    want[:, 256:] += w.T @ x[:, 512:]
    np.testing.assert_array_equal(outputs(stage, values.whole(stage, 0))[0], want)
    right(stage)


def test_h08_a_read_before_the_last_product_sees_what_is_there():
    """The program reads between A and B: that closes A, and both reads are right."""
    text = printed("overlap").text()
    read = "p:float32[[512,128],[1,512]]\n"
    early = f"      early = TensorCopy DVE out_t:float32[[512,128],[1,512]] <- {read}"
    stage = read_stage(text.replace("      b = ", f"{early}      b = "), "p.txt")
    done = driver.compile(stage, stop_after="mm-acc-flags").module.main.blocks[0].insts
    flags = [key(i, "accumulation_flag") for i in done if i.opcode == "Matmult"]
    assert flags == [3, 6]
    right(stage)


def test_h08_a_read_of_a_group_that_no_stop_closed_is_reported(capsys):
    """The same read where the flags say that the group goes on."""
    text = printed("overlap").text()
    stage = driver.compile(read_stage(text, "p.txt"), stop_after="mm-acc-flags")
    Path("open.txt").write_text(stage.text().replace("accumulation_flag=6", "accumulation_flag=4"))
    status, told = said(capsys, "compile", "open.txt")
    assert (status, told) == (
        1,
        "ncc: NCC612 after mm-acc-flags, evict: reads the group of b before a matmul with STOP has "
        "closed it\n",
    )


@pytest.mark.parametrize("how", [simulated, compiled])
@pytest.mark.parametrize("parts, flags", [(1, [3, 2]), (2, [3, 0, 2])])
def test_h08_products_of_a_kernel_that_overlap(how, parts, flags):
    w, x, product_of_all = w_and_x(768)
    want = product_of_all[:, :512].copy()
    want[:, 256:] += product_of_all[:, 512:]
    np.testing.assert_array_equal(how(kernels.overlap)(w, x, parts), want)
    stage = kernel_stage("overlap", w="bf16[128,128]", x="bf16[128,768]", parts=str(parts))
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == flags


@pytest.mark.parametrize("how", [simulated, compiled])
def test_h08_a_product_beside_a_value_that_its_start_would_zero(how):
    w, x, product_of_all = w_and_x(512, np.float32)
    want = np.concatenate([product_of_all[:, 256:], x[:, :256]], axis=1)
    np.testing.assert_array_equal(how(kernels.beside)(w, x), want)


# --- H09: a slice at a run-time row ---------------------------------------------------------------

SRC = np.arange(512, dtype=np.float32).reshape(32, 16)


@pytest.mark.parametrize("how", [simulated, compiled])
@pytest.mark.parametrize("name", ["by_pairs", "by_pairs_of_scalars"])
def test_h09_a_slice_that_starts_at_the_index_of_a_device_loop(how, name):
    kernel = how(getattr(kernels, name))
    np.testing.assert_array_equal(kernel(SRC, 16), SRC)
    with pytest.raises(NccError) as told:
        kernel(SRC, 17)
    assert told.value.code == "NCC280"
    place = told.value.place
    assert f"{place.file}:{place.line}" == line(name, "tensor_copy")
    assert "2 elements from index 16 leave dimension 1 of " in told.value.said
    assert told.value.said.endswith(" (32, 16), which has 16")


def test_h09_the_same_at_every_level():
    right(kernel_stage("by_pairs", src="f32[32,16]", end="16"))


def test_h09_a_form_that_a_release_forbids_names_the_other():
    where = line("by_pairs_of_registers", "tensor_copy")
    with pytest.raises(NccError, match=rf"NCC364 {where}: .*nl.ds\(register, size\)"):
        simulated(kernels.by_pairs_of_registers)(SRC)


@pytest.mark.parametrize("end", [16, 17])
def test_h09_an_end_that_only_the_machine_knows(end):
    kernel, last = simulated(kernels.by_pairs_up_to), np.array([[end]], np.int32)
    if end == 16:
        np.testing.assert_array_equal(kernel(SRC, last), SRC)
        return
    where = line("by_pairs_up_to", "tensor_copy")
    with pytest.raises(NccError, match=f"NCC280 {where}, .*index 16 .*has 16"):
        kernel(SRC, last)


# --- H10: a product beyond 2^24 -------------------------------------------------------------------

LARGE = np.array([[0x7FFFFFFF, 16777217]], np.uint32), np.array([[0xD251, 3]], np.uint32)


@pytest.mark.parametrize("how", [simulated, compiled])
def test_h10_integers_are_multiplied_exactly(how, recwarn):
    assert how(kernels.exact)(*LARGE).tolist() == [[2147429807, 50331651]]
    assert not [one for one in recwarn if "NCC359" in str(one.message)]


@pytest.mark.parametrize("how", [simulated, compiled])
def test_h10_on_the_vector_engine_they_are_rounded_with_a_warning(how):
    kernel = nki.jit(kernels.rounded.func)  # which nobody has traced yet
    where = line("rounded", "tensor_tensor")
    with pytest.warns(UserWarning, match=rf"NCC359 {where}: .*above 2\^24 are rounded"):
        got = how(kernel)(*LARGE)
    exact = [
        float(np.float32(a)) * float(np.float32(b))
        for a, b in zip(*map(np.ravel, LARGE), strict=True)
    ]
    want = [min(int(np.float32(x)), 2**32 - 1) for x in exact]
    assert got.tolist() == [want] == [[4294967295, 50331648]]


def test_h10_a_product_of_integers_in_hlo_is_refused(capsys):
    text = (
        "HloModule m\n\nENTRY main {\n  a = u32[2]{0} parameter(0)\n  b = u32[2]{0} parameter(1)\n"
    )
    Path("m.hlo").write_text(f"{text}  ROOT out = u32[2]{{0}} multiply(a, b)\n}}\n")
    status, told = said(capsys, "compile", "m.hlo")
    assert status == 1
    assert told.startswith("ncc: NCC116 m.hlo:4:3, hlo-to-mhlo, a: u32 is not compiled; ")


# --- H12: batch dimensions that are not in front, and integers ------------------------------------

SCORES = """HloModule scores

ENTRY main {
  q = f32[1,2,2,3]{3,2,1,0} parameter(0)
  k = f32[1,3,2,3]{3,2,1,0} parameter(1)
  ROOT out = f32[1,2,2,3]{3,2,1,0} dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2},
    lhs_contracting_dims={3}, rhs_contracting_dims={3}
}
"""
WHOLE = """HloModule whole

ENTRY main {
  a = s32[2,3]{1,0} parameter(0)
  b = s32[3,2]{1,0} parameter(1)
  ROOT out = s32[2,2]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_h12_batch_dimensions_that_are_not_in_front(target):
    stage = hlo(SCORES, target)
    q = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    k = np.arange(18, dtype=np.float32).reshape(1, 3, 2, 3)
    (got,) = outputs(stage, [q, k])
    assert got.tolist() == [
        [[[5, 23, 41], [23, 149, 275]], [[50, 122, 194], [122, 302, 482]]],
    ]
    right(stage)


def test_h12_a_product_of_integers_is_refused(capsys):
    Path("w.hlo").write_text(WHOLE)
    assert said(capsys, "compile", "w.hlo") == (
        1,
        "ncc: NCC115 w.hlo:6:8, hlo-to-mhlo, out: dot of s32: integer products are not exact on the "
        "tensor engine (convert the operands to f32 first)\n",
    )


# --- H13: nothing to do ---------------------------------------------------------------------------

EMPTY = """HloModule nothing

ENTRY main {
  a = f32[M,K]{1,0} parameter(0)
  b = f32[K,N]{1,0} parameter(1)
  ROOT out = f32[M,N]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize(
    "target, m, k, n",
    [
        *(("trn2", 3, 0, 2), ("trn1", 0, 4, 2), ("trn2", 3, 4, 0), ("trn1", 0, 0, 0)),
        *(("trn1", 3, 0, 2), ("trn2", 200, 0, 700)),
    ],
)
def test_h13_products_without_elements(capsys, m, k, n, target):
    text = EMPTY.replace("M", str(m)).replace("K", str(k)).replace("N", str(n))
    text = text.replace(f"Hlo{m}odule", "HloModule").replace(f"E{n}TRY", "ENTRY")
    right(hlo(text, target))
    (got,) = outputs(hlo(text, target), [np.zeros((m, k)), np.zeros((k, n))])
    assert got.shape == (m, n) and not got.any()
    Path("e.hlo").write_text(text)
    assert said(capsys, "compile", "e.hlo", "--target", target)[0] == 0
    assert call(["neff", "verify", "e.neff"]) == 0
    assert capsys.readouterr().out == "e.neff: 15 members, sound\n"
    assert call(["neff", "list", "e.neff"]) == 0
    assert call(["disasm", "e.neff"]) == 0
    sizes = re.search(
        rb'"out": \{[^}]*"size": (\d+)', pack.read(Path("e.neff").read_bytes()).get("sg00/def.json")
    )
    assert sizes is not None and int(sizes[1]) == 4 * m * n
    for stage in ("hlo-verify", "mhlo-to-penguin", "unroll", "encode", "pack"):
        arguments = ["draw", "e.hlo", "--after", stage, "-o", "e.svg", "--target", target]
        assert call(arguments) == 0
        assert Path("e.svg").read_text().rstrip().endswith("</svg>")


# --- H16: constants that do not survive -----------------------------------------------------------

ELIDED = """HloModule elided

ENTRY main {
  ROOT c = f32[4]{0} constant({...})
}
"""
LITERALS = """HloModule literals

ENTRY main {
  a = f32[6]{0} constant({inf, -inf, nan, -0.0, 1e-45, 3.4028235e+38})
  b = f32[] constant(nan(0x400123))
  c = bf16[3]{0} constant({1.00390625, -inf, 3.3895e38})
  d = pred[2]{0} constant({true, false})
  e = f32[0]{0} constant({})
  ROOT out = (f32[6]{0}, f32[], bf16[3]{0}, pred[2]{0}, f32[0]{0}) tuple(a, b, c, d, e)
}
"""


def test_h16a_values_that_were_left_out(capsys):
    Path("c.hlo").write_text(ELIDED)
    assert said(capsys, "compile", "c.hlo") == (
        1,
        "ncc: NCC103 c.hlo:4:22, c: this dump left the values out; dump with large constants\n",
    )


def test_h16b_every_literal_is_what_it_says():
    body = hlo(LITERALS).module.computations[0].instructions[:5]
    arrays = [array_of(inst.literal) for inst in body]
    want = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4028235e38], np.float32)
    np.testing.assert_array_equal(arrays[0], want)
    assert np.signbit(arrays[0][3])
    assert arrays[1].view(np.uint32) == 0x7FC00123
    assert arrays[2].astype(np.float32)[0] == 1.0, "bf16 rounds to even"
    assert arrays[3].tolist() == [True, False]
    assert arrays[4].shape == (0,)


def test_h16c_printed_and_read_twice():
    first = hlo(LITERALS)
    once = first.text()
    again = read_stage(once, "once.txt")
    twice = again.text()
    assert once == twice and again.module == first.module
    assert read_stage(twice, "twice.txt").text() == once
    assert "constant({inf, -inf, nan, -0.0, 1e-45, 3.4028235e+38})" in once
    assert "constant(nan(0x400123))" in once and "constant({1, -inf, 3.3895314e+38})" in once


def test_h16_floats_that_are_returned_keep_their_bits_down_to_the_bytes():
    text = LITERALS.replace("  d = pred[2]{0} constant({true, false})\n", "")
    text = text.replace(", pred[2]{0}", "").replace("c, d, e", "c, e")
    a, b, c, e = outputs(hlo(text), [])
    want = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4028235e38], np.float32)
    np.testing.assert_array_equal(a.view(np.uint32), want.view(np.uint32))
    assert np.isnan(b)
    assert c.astype(np.float32).tolist() == [1.0, -np.inf, float(np.float32(3.3895314e38))]
    assert e.shape == (0,)


# --- H19: a feature the reader does not know ------------------------------------------------------

OLD = "(the reader is too old: use a newer ncc, or an older compiler)"


@pytest.fixture(scope="module")
def good():
    """The members of the NEFF of the seed matmul."""
    neff = driver.compile(hlo(product(128, 512, 256))).module
    return {m.path: m.data for m in neff.members}


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    "fields, told",
    [
        (
            {"header__neff_version_major": 3},
            f"neff_version_major is 3, and this reader supports 0 to 2 {OLD}",
        ),
        (
            {"header__feature_bits": 0x1000 | 1 << 28},
            f"feature_bits is 0x10001000, and this reader supports bits 0 to 26, not bit 28 {OLD}",
        ),
    ],
)
@pytest.mark.parametrize("command", [["neff", "verify"], ["neff", "list"], ["run"]])
def test_h19_a_feature_that_no_reader_here_knows(capsys, good, header, fields, told, command):
    Path("m.neff").write_bytes(wrapped(changed(good, "info.json", **fields), header=header))
    place = "header" if header else "info.json"
    assert said(capsys, *command, "m.neff") == (1, f"ncc: NCC805 m.neff, {place}: {told}\n")


@pytest.mark.parametrize("header", [False, True])
def test_h19_a_feature_that_is_known_is_listed_by_name(capsys, good, header):
    found = changed(good, "info.json", header__feature_bits=0x100)
    Path("m.neff").write_bytes(wrapped(found, header=header))
    assert call(["neff", "list", "m.neff"]) == 0
    assert "\nfeature bits: 0x100 (indirect-copy bound check)\n" in capsys.readouterr().out
    assert call(["neff", "verify", "m.neff"]) == 0
    assert capsys.readouterr().out == "m.neff: 15 members, sound\n"


def test_h19_the_header_is_judged_by_its_own_record(capsys, good):
    """A header of major 3 in front of members that say 2: the two must agree, too."""
    raw = wrapped(good, header=True)
    bad = bytearray(raw)
    at = 24  # pkg_version, header_size and data_size are eight bytes each
    assert int.from_bytes(bad[at : at + 8], "little") == 2
    bad[at] = 3
    Path("m.neff").write_bytes(rehashed(bytes(bad[1024:]), bytes(bad)))
    assert said(capsys, "neff", "verify", "m.neff") == (
        1,
        "ncc: NCC805 m.neff, header: neff_version_major is 3, and this reader supports 0 to 2 "
        f"{OLD}\n",
    )


# --- H20: a member is missing ---------------------------------------------------------------------


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    "member, told",
    [
        ("sg00/def.json", "is missing (kelf-0.json names it)"),
        ("sg00/Pool0.bin", "is missing (sg00/def.json names it as 'pool_instr')"),
    ],
)
@pytest.mark.parametrize("command", [["neff", "verify"], ["run"]])
def test_h20_a_member_is_missing(capsys, good, header, member, told, command):
    found = {path: data for path, data in good.items() if path != member}
    Path("m.neff").write_bytes(wrapped(signed(found), header=header))
    assert said(capsys, *command, "m.neff") == (1, f"ncc: NCC811 m.neff, {member}: {told}\n")


@pytest.mark.parametrize("header", [False, True])
def test_h20_an_unknown_member_is_listed_with_a_warning(capsys, good, header):
    found = signed({**good, "sg00/notes.txt": b"hello"})
    Path("m.neff").write_bytes(wrapped(found, header=header))
    assert call(["neff", "list", "m.neff"]) == 0
    out = capsys.readouterr().out
    assert "\nwarning: sg00/notes.txt is a member that nothing reads\n" in out
    assert re.search(r"^sg00/notes.txt +5\b", out, re.M)
    assert call(["neff", "verify", "m.neff"]) == 0


@pytest.mark.parametrize("header", [False, True])
def test_h20_a_stream_cut_in_the_middle_of_a_bundle(capsys, good, header):
    short = signed({**good, "sg00/PE0.bin": good["sg00/PE0.bin"][:-32]})
    Path("m.neff").write_bytes(wrapped(short, header=header))
    told = (
        "ncc: NCC813 m.neff, sg00/PE0.bin: has 544 bytes, no multiple of 64: it ends inside bundle "
        "8 (sg00/def.json names it)\n"
    )
    assert said(capsys, "neff", "verify", "m.neff") == (1, told)
    assert call(["disasm", "m.neff"]) == 1
    out, err = capsys.readouterr()
    assert err == told
    assert out.count("\n  LoadStationary ") == 4 and out.count("\n  Matmul ") == 4
    assert "# PE ends early: 32 bytes of bundle 8 are there" in out
