"""`busbw recipe adopt`: what somebody built, made small with gcc, and what is found wrong with it."""

import atexit
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from busbw.api.recipes import adopted, adopted_recipe, machine
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.model.finding import Finding
from busbw.model.host import Adoption
from busbw.recipes.stack_rules import adoption

from .building import build, container, entry, libfabric, link, moved, nccl, needs_gcc, plugin

pytestmark = needs_gcc
# A platform with InfiniBand needs no plug-in; one with Slingshot is for another processor than a test's.
HERE = os.uname().machine
PLAIN, SLINGSHOT = "azure-nd-h100-v5", "isambard-ai-phase2"
SM_90 = container(entry(90))


def examine(*places: Path, platform: str = PLAIN) -> Adoption:
    """Return what is found, as if the platform had this host's processor."""
    found = adopted(tuple(map(str, places)), platform)
    return adoption(found.stack, replace(machine(platform), processor=HERE))


def codes(found: Adoption) -> set[str]:
    return {each.code for each in found.findings}


def one(found: Adoption, code: str) -> Finding:
    return next(each for each in found.findings if each.code == code)


@pytest.fixture
def stack(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Return folders of an NCCL, a plug-in and a libfabric that fit Slingshot and each other."""
    fabric = libfabric(tmp_path / "fabric" / "lib64")
    nccl(tmp_path / "nccl" / "lib", code=SM_90)
    plugin(tmp_path / "ofi" / "lib", fabric)
    return tmp_path / "nccl", tmp_path / "ofi", tmp_path / "fabric"


def test_a_sound_stack_has_notes_at_most_and_says_what_it_is(stack: tuple[Path, Path, Path]) -> None:
    found = examine(*stack, platform=SLINGSHOT)
    assert [each for each in found.findings if each.is_serious] == []
    files = {each.role: each for each in found.stack.files}
    assert (files["nccl"].version, files["nccl"].cuda) == ("2.27.7", "12.9")
    assert files["plugin"].version == "1.7.4-aws"
    assert (files["libfabric"].version, files["libfabric"].providers) == ("1.22.0", ("cxi",))
    assert files["nccl"].common_interface(files["plugin"]) == "ncclNetPlugin_v6"
    assert [str(code) for code in files["nccl"].code] == ["sm_90"]
    assert [each.by for each in files["plugin"].needs if each.name == "libfabric.so.1"] == ["given folder"]


def test_a_library_that_is_gone_is_named_once_with_all_that_want_it(stack: tuple[Path, Path, Path]) -> None:
    (stack[2] / "lib64" / "libcxi.so.1").unlink()
    found = examine(*stack, platform=SLINGSHOT)
    assert [each.title for each in found.findings if each.code == "STACK001"] == [
        "nothing provides libcxi.so.1, wanted by libfabric.so.1"
    ]


@pytest.mark.parametrize(("platform", "is_missing"), [(PLAIN, False), ("aws-p5", False), (SLINGSHOT, True)])
def test_a_provider_that_cannot_be_loaded_matters_where_the_fabric_needs_it(
    platform: str, is_missing: bool, tmp_path: Path
) -> None:
    fabric = libfabric(tmp_path / "fabric", provider=None)
    cxi = build(tmp_path / "away" / "libcxi.so.1", defines=("cxi_open",), soname="libcxi.so.1")
    build(
        tmp_path / "fabric" / "libfabric" / "libcxi-fi.so", defines=("fi_prov_ini", "fi_getinfo"), needs=(fabric, cxi)
    )
    shutil.rmtree(tmp_path / "away")
    found = examine(tmp_path / "fabric", platform=platform)
    roles = {each.path.rpartition("/")[2]: each.role for each in found.stack.files}
    assert roles == {"libfabric.so.1": "libfabric", "libcxi-fi.so": "provider"}
    titles = [each.title for each in found.findings if each.code == "STACK001"]
    assert titles == (["nothing provides libcxi.so.1, wanted by libcxi-fi.so"] if is_missing else [])


def test_files_that_call_themselves_alike_and_are_named_otherwise_are_no_copies(tmp_path: Path) -> None:
    for number, release in enumerate(("1.1", "1.12")):
        build(
            tmp_path / f"libverbs-{release}-fi.so", defines=("fi_prov_ini",), texts=("x" * (number + 1) * 40,),
            soname="libverbs-fi.so",
        )  # fmt: skip
    assert "STACK004" not in codes(examine(tmp_path))


def test_an_image_without_a_loader_cache_is_searched_where_debians_loader_looks(tmp_path: Path) -> None:
    lib = tmp_path / "root" / "usr" / "lib" / f"{HERE}-linux-gnu"
    build(lib / "libc.so.6", defines=("puts",), soname="libc.so.6")
    away = libfabric(lib, provider=None)
    plugin(tmp_path / "root" / "opt" / "ofi", away)
    found = adopted(("/opt/ofi",), PLAIN, image=tmp_path / "root")
    assert [each.by for each in found.stack.files[0].needs if each.name == "libfabric.so.1"] == ["default folder"]
    away.unlink()
    assert "STACK001" in codes(adopted(("/opt/ofi",), PLAIN, image=tmp_path / "root"))


def test_intel_mpi_says_its_release(tmp_path: Path) -> None:
    texts = ("Intel(R) MPI Library, Version %s  Build %s", "2021.18.1")
    build(tmp_path / "libmpi.so.12", defines=("MPI_Init",), texts=texts, soname="libmpi.so.12")
    assert [each.version for each in examine(tmp_path).stack.files] == ["Intel MPI 2021.18.1"]


def test_what_comes_with_the_driver_is_not_missing(tmp_path: Path) -> None:
    driver = build(tmp_path / "away" / "libcuda.so.1", defines=("cuInit",), soname="libcuda.so.1")
    nccl(tmp_path / "nccl", code=SM_90)
    build(tmp_path / "nccl" / "libnccl-tuner.so", defines=("ncclTunerPlugin_v4",), needs=(driver,))
    shutil.rmtree(tmp_path / "away")
    found = examine(tmp_path / "nccl")
    assert "STACK001" not in codes(found)
    assert any("libcuda.so.1" in each for each in found.cannot_tell)


def test_versions_of_symbols_are_held_against_what_is_loaded(tmp_path: Path) -> None:
    names = tmp_path / "new.map"
    names.write_text("FABRIC_1.6 { fi_getinfo; };\nFABRIC_1.7 { fi_getinfo2; };\n")
    new = build(
        tmp_path / "new" / "libfabric.so.1", defines=("fi_getinfo", "fi_getinfo2"), soname="libfabric.so.1",
        options=(f"-Wl,--version-script={names}",),
    )  # fmt: skip
    made = tmp_path / "ofi" / "libnccl-net.so"
    made.parent.mkdir()
    source = tmp_path / "p.c"
    source.write_text("extern int fi_getinfo2; int *of = &fi_getinfo2; int ncclNetPlugin_v6 = 1;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source, new], check=True, timeout=60)
    assert "STACK002" not in codes(examine(tmp_path / "ofi", tmp_path / "new"))

    names.write_text("FABRIC_1.6 { fi_getinfo; };\n")
    old = build(
        tmp_path / "old" / "libfabric.so.1", defines=("fi_getinfo",), soname="libfabric.so.1",
        options=(f"-Wl,--version-script={names}",),
    )  # fmt: skip
    found = one(examine(tmp_path / "ofi", tmp_path / "old"), "STACK002")
    assert found.title == f"{old} has no FABRIC_1.7"


def test_rpath_that_leads_past_the_given_copy_is_found_and_runpath_is_not(tmp_path: Path) -> None:
    given = nccl(tmp_path / "given", code=SM_90)
    other = nccl(tmp_path / "other", version="2.21.5", code=SM_90)
    for kind, wrong in (("--disable-new-dtags", True), ("--enable-new-dtags", False)):
        made = tmp_path / kind / "all_reduce_perf"
        build(made, program=True, needs=(other,), options=(f"-Wl,-rpath,{other.parent}", f"-Wl,{kind}"), code=SM_90)
        assert ("STACK003" in codes(examine(given.parent, made))) is wrong


def test_two_copies_in_one_search_path_are_found_and_the_same_twice_is_not(tmp_path: Path) -> None:
    nccl(tmp_path / "a", code=SM_90)
    nccl(tmp_path / "b", version="2.29.2", code=SM_90)
    found = one(examine(tmp_path / "a", tmp_path / "b"), "STACK004")
    assert found.evidence.index("2.27.7") < found.evidence.index("2.29.2")
    assert found.title == "libnccl.so.2 lies twice in the search path"
    shutil.rmtree(tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "b", symlinks=True)
    assert "STACK004" not in codes(examine(tmp_path / "a", tmp_path / "b"))


def test_folders_of_rpath_that_are_absent_or_relative_are_found(tmp_path: Path) -> None:
    made = tmp_path / "x" / "libnccl-tuner.so"
    build(made, defines=("ncclTunerPlugin_v4",), options=("-Wl,-rpath,/no/such/folder:$ORIGIN:../lib",))
    found = examine(tmp_path / "x")
    assert one(found, "STACK005").title.endswith("/no/such/folder, which is not there")
    assert one(found, "STACK007").title.endswith("by a relative path, ../lib")
    build(made, defines=("ncclTunerPlugin_v4",), options=("-Wl,-rpath,$ORIGIN",))
    assert codes(examine(tmp_path / "x")) & {"STACK005", "STACK007"} == set()


@pytest.mark.parametrize(
    ("folder", "named"),
    [
        ("/tmp/x", "/tmp"),
        ("/var/tmp/x", "/var/tmp"),
        ("/dev/shm/x", "/dev/shm"),
        ("/local/u/x", "/local"),
        ("/home/u/x", None),
        ("/tmpfs/x", None),
        ("/runs/x", None),
        ("/shared/tmp/x", None),
    ],
)
def test_a_folder_that_each_node_has_for_itself_is_found(folder: str, named: str | None, tmp_path: Path) -> None:
    nccl(tmp_path, code=SM_90)
    found = adoption(moved(examine(tmp_path).stack, tmp_path, folder), replace(machine(PLAIN), processor=HERE))
    titles = [each.title for each in found.findings if each.code == "STACK006"]
    assert titles == ([f"what was given lies in {named}, which other nodes may not have"] if named else [])


def test_a_folder_of_an_image_is_the_same_on_every_node(tmp_path: Path) -> None:
    root = tmp_path / "root"
    nccl(root / "tmp" / "nccl", code=SM_90)
    found = adopted(("/tmp/nccl",), PLAIN, image=root)
    assert found.stack.places
    assert "STACK006" not in codes(found)


@pytest.mark.parametrize(
    ("plug_in", "fabric", "library", "expected"),
    [
        (
            "1.9.1-aws",
            "1.17.0",
            "2.27.7",
            "aws-ofi-nccl 1.9.1-aws asks for libfabric 1.18.0 or later, and 1.17.0 is loaded",
        ),
        ("1.9.1-aws", "1.18.0", "2.27.7", None),
        # Its own release notes ask for the same: what is known is that of the release before it.
        (
            "1.9.2-aws",
            "1.17.0",
            "2.27.7",
            "aws-ofi-nccl 1.9.2-aws asks for libfabric 1.18.0 or later, and 1.17.0 is loaded",
        ),
        ("1.10.0-aws", "1.17.0", "2.27.7", None),
        ("1.9.1-aws", "1.22.0", "2.4.7", "aws-ofi-nccl 1.9.1-aws asks for NCCL 2.4.8 or later, and 2.4.7 is loaded"),
        ("1.9.1-aws", "1.22.0", "2.4.8", None),
        # Its release notes ask for no libfabric; and of one that busbw does not know nothing is asked.
        ("1.16.3", "1.9.0", "2.27.7", None),
        ("1.7.4-aws", "1.9.0", "2.4.7", None),
    ],
)
def test_what_the_makers_of_a_plug_in_ask_for_is_held_against_what_is_loaded(
    plug_in: str, fabric: str, library: str, expected: str | None, tmp_path: Path
) -> None:
    nccl(tmp_path / "nccl", version=library, code=SM_90)
    plugin(tmp_path / "ofi", libfabric(tmp_path / "fabric", version=fabric), version=plug_in)
    found = examine(tmp_path / "nccl", tmp_path / "ofi", tmp_path / "fabric")
    assert [each.title for each in found.findings if each.code == "STACK032"] == ([expected] if expected else [])
    if expected:
        assert one(found, "STACK032").source == "aws-ofi-nccl, release notes of v1.9.0 and v1.9.1"


@pytest.mark.parametrize(("runtime", "is_wrong"), [("13", True), ("12", False)])
def test_two_versions_of_cuda_are_found_where_their_major_versions_differ(
    runtime: str, is_wrong: bool, tmp_path: Path
) -> None:
    made = nccl(tmp_path / "nccl", code=SM_90)
    name = f"libcudart.so.{runtime}"
    cuda = build(tmp_path / "cuda" / name, defines=("cudaMalloc",), soname=name)
    build(tmp_path / "tests" / "all_reduce_perf", program=True, needs=(made, cuda), texts=("nccl-tests version %s",))
    found = examine(tmp_path / "nccl", tmp_path / "tests", tmp_path / "cuda")
    assert ("STACK034" in codes(found)) is is_wrong
    if is_wrong:
        assert one(found, "STACK034").title == "CUDA 12 and CUDA 13 are in one stack"
        assert one(found, "STACK034").evidence.endswith("all_reduce_perf needs libcudart.so.13")


def test_a_link_without_its_file_is_found(tmp_path: Path) -> None:
    made = nccl(tmp_path, code=SM_90)
    assert "STACK008" not in codes(examine(tmp_path))
    link(made, "libnccl-net.so")
    (tmp_path / "libnccl-net.so").unlink()
    (tmp_path / "libnccl-net.so").symlink_to("gone.so")
    assert one(examine(tmp_path), "STACK008").title == f"{tmp_path}/libnccl-net.so leads to no file"


@pytest.mark.parametrize(
    ("has", "asks", "code"),
    [
        (range(2, 7), range(6, 11), None),
        (range(2, 6), range(6, 11), "STACK010"),
        (range(11, 13), range(6, 11), "STACK010"),
        (range(0), range(6, 11), "STACK011"),
    ],
)
def test_interfaces_of_a_plug_in_are_held_against_those_that_nccl_asks_for(
    has: range, asks: range, code: str | None, tmp_path: Path
) -> None:
    nccl(tmp_path / "nccl", code=SM_90, asks=asks)
    plugin(tmp_path / "ofi", libfabric(tmp_path / "fabric"), has=has)
    found = codes(examine(tmp_path / "nccl", tmp_path / "ofi", tmp_path / "fabric"))
    assert found & {"STACK010", "STACK011"} == ({code} if code else set())


def test_a_tuner_that_this_nccl_does_not_ask_for_is_found_and_one_that_it_does_is_not(tmp_path: Path) -> None:
    texts = ("NCCL version 2.22.3+cuda12.9", "ncclNetPlugin_v8", "ncclTunerPlugin_v3", "ncclTunerPlugin_v2")
    build(tmp_path / "libnccl.so.2", defines=("ncclCommInitRank",), texts=texts, code=SM_90, soname="libnccl.so.2")
    build(tmp_path / "libnccl-tuner.so", defines=("ncclTunerPlugin_v5", "ncclTunerPlugin_v4"))
    assert one(examine(tmp_path), "STACK015").title == "NCCL takes no tuner from libnccl-tuner.so"
    build(tmp_path / "libnccl-tuner.so", defines=("ncclTunerPlugin_v5", "ncclTunerPlugin_v3"))
    assert "STACK015" not in codes(examine(tmp_path))


def test_a_fabric_without_its_plug_in_is_found_and_infiniband_needs_none(tmp_path: Path) -> None:
    nccl(tmp_path, code=SM_90)
    assert one(examine(tmp_path, platform=SLINGSHOT), "STACK012").title == "there is no plug-in for Slingshot"
    assert one(examine(tmp_path, platform="aws-p5"), "STACK012").title == "there is no plug-in for EFA"
    assert "STACK012" not in codes(examine(tmp_path))


@pytest.mark.parametrize(("provider", "platform", "wrong"), [
    ("efa", SLINGSHOT, True), (None, SLINGSHOT, True), ("cxi", SLINGSHOT, False), ("efa", "aws-p5", False),
    ("cxi", "aws-p5", True), (None, PLAIN, False),
])  # fmt: skip
def test_the_provider_of_the_fabric_is_looked_for(
    provider: str | None, platform: str, wrong: bool, tmp_path: Path
) -> None:
    nccl(tmp_path / "nccl", code=SM_90)
    plugin(tmp_path / "ofi", libfabric(tmp_path / "fabric", provider=provider))
    found = examine(tmp_path / "nccl", tmp_path / "ofi", tmp_path / "fabric", platform=platform)
    assert ("STACK013" in codes(found)) is wrong


@pytest.mark.parametrize(("texts", "expected"), [((), {"STACK017"}), (("cudaMemcpy",), set())])
def test_a_libfabric_that_was_built_without_cuda_is_found(
    texts: tuple[str, ...], expected: set[str], tmp_path: Path
) -> None:
    fabric = libfabric(tmp_path / "fabric", texts=("1.22.0", *texts))
    made = plugin(tmp_path / "ofi", fabric)
    ours = nccl(tmp_path / "nccl", code=SM_90)
    found = examine(made.parent, ours.parent, fabric.parent, platform=SLINGSHOT)
    assert {each.code for each in found.findings if each.is_serious} == expected
    # InfiniBand goes past libfabric.
    assert "STACK017" not in codes(examine(made.parent, ours.parent, fabric.parent))


@pytest.mark.parametrize(("name", "expected"), [("libcudart.so", set()), ("libcudart.so.12", {"STACK016"})])
def test_a_library_that_a_plug_in_opens_by_name_is_looked_for(name: str, expected: set[str], tmp_path: Path) -> None:
    # An image, as this host may have a CUDA.
    root = tmp_path / "root"
    fabric = libfabric(root / "usr" / "lib64", options=("-Wl,-rpath,$ORIGIN",))
    made = plugin(root / "opt" / "ofi", fabric, opens=("libcudart.so",), options=("-Wl,-rpath,$ORIGIN",))
    build(made.parent / name, defines=("cudaGetDeviceCount",), soname="libcudart.so.12")
    nccl(root / "opt" / "nccl", code=SM_90)
    build(root / "usr" / "lib64" / "libc.so.6", defines=("puts",), soname="libc.so.6")
    found = examine_inside(root)
    assert {each.code for each in found.findings if each.is_serious} == expected
    if expected:
        assert "opens libcudart.so by this name" in one(found, "STACK016").evidence


def test_a_provider_in_a_file_of_its_own_counts(tmp_path: Path) -> None:
    nccl(tmp_path / "nccl", code=SM_90)
    plugin(tmp_path / "ofi", libfabric(tmp_path / "fabric", provider=None))
    build(tmp_path / "fabric" / "libfabric" / "libcxi-fi.so", defines=("fi_prov_ini",))
    found = examine(tmp_path / "nccl", tmp_path / "ofi", tmp_path / "fabric", platform=SLINGSHOT)
    assert "STACK013" not in codes(found)


def test_a_plug_in_with_a_name_of_its_own_is_said_and_loaded_by_it(tmp_path: Path) -> None:
    nccl(tmp_path / "nccl", code=SM_90)
    made = plugin(tmp_path / "ofi", libfabric(tmp_path / "ofi"), name="libnccl-net-ofi.so")
    found = examine(tmp_path / "nccl", tmp_path / "ofi")
    assert one(found, "STACK014").fix == f"NCCL_NET_PLUGIN={made}"
    files = {each.name: each.text for each in adopted_recipe(found).files}
    assert f"net_plugin='{made}'" in files["load.sh"]
    link(made, "libnccl-net.so")
    assert "STACK014" not in codes(examine(tmp_path / "nccl", tmp_path / "ofi"))
    (tmp_path / "ofi" / "libnccl-net.so").unlink()
    shutil.copy(made, tmp_path / "ofi" / "libnccl-net.so")
    assert "STACK014" not in codes(examine(tmp_path / "nccl", tmp_path / "ofi"))


@pytest.mark.parametrize(("code", "expected"), [
    (container(entry(90)), None),
    (container(entry(80), entry(90)), None),
    (container(entry(80), entry(86)), "STACK020"),
    (container(entry(90, flags=0x100011)), None),
    (container(entry(80), entry(80, kind=1)), "STACK021"),
    (container(entry(100), entry(100, kind=1)), "STACK020"),
    (container(entry(90), entry(100)) * 3 + container(entry(100)), None),
])  # fmt: skip
def test_code_is_held_against_the_gpu(code: bytes, expected: str | None, tmp_path: Path) -> None:
    nccl(tmp_path, code=code)
    assert codes(examine(tmp_path)) & {"STACK020", "STACK021"} == ({expected} if expected else set())


def test_files_of_another_processor_are_one_finding(stack: tuple[Path, Path, Path]) -> None:
    for path in (stack[0] / "lib" / "libnccl.so.2.27.7", stack[1] / "lib" / "libnccl-net.so"):
        of_another_processor(path)
    other = "aarch64" if HERE == "x86_64" else "x86_64"
    found = [each for each in examine(*stack).findings if each.code == "STACK022"]
    assert [each.title for each in found] == [f"2 files are for {other}, and {PLAIN} has {HERE}"]


def of_another_processor(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    struct.pack_into("<H", raw, 18, 183 if HERE == "x86_64" else 62)
    path.write_bytes(raw)


def test_what_a_file_of_another_processor_needs_is_not_missing_besides(stack: tuple[Path, Path, Path]) -> None:
    of_another_processor(stack[1] / "lib" / "libnccl-net.so")
    found = examine(*stack)
    assert codes(found) & {"STACK001", "STACK022"} == {"STACK022"}

    # On a login node of one kind, for a platform of the other.
    other = "aarch64" if HERE == "x86_64" else "x86_64"
    elsewhere = adoption(found.stack, replace(machine(PLAIN), processor=other))
    assert codes(elsewhere) & {"STACK001", "STACK022"} == {"STACK022"}
    assert f"what libnccl-net.so loads: this host has no libraries for {other}" in elsewhere.cannot_tell


def test_a_file_that_is_cut_off_is_one_finding(stack: tuple[Path, Path, Path]) -> None:
    path = stack[1] / "lib" / "libnccl-net.so"
    raw = path.read_bytes()
    for kept_bytes in (300, 700, 4096):
        path.write_bytes(raw[:kept_bytes])
        found = examine(*stack, platform=SLINGSHOT)
        assert codes(found) & {"STACK001", "STACK009", "STACK011", "STACK012", "STACK013"} == {"STACK009"}
        assert one(found, "STACK009").title == (
            f"libnccl-net.so is cut off: {kept_bytes} bytes, and its own header names {len(raw)}"
        )


def test_what_is_linked_in_cannot_be_told_from_a_search_path(tmp_path: Path) -> None:
    mpi = build(tmp_path / "mpi" / "libmpi.so.40", defines=("MPI_Init",), soname="libmpi.so.40")
    build(tmp_path / "t" / "all_reduce_perf", texts=("nccl-tests version",), needs=(mpi,), program=True, code=SM_90)
    build(tmp_path / "p" / "libnccl-net.so", defines=("ncclNetPlugin_v8",))
    told = " ".join(examine(tmp_path, platform=SLINGSHOT).cannot_tell)
    assert "which NCCL all_reduce_perf measures: it is linked in" in told
    assert "whether libnccl-net.so goes over cxi: it needs no libfabric.so" in told


def test_what_is_loaded_as_a_library_can_be_told(stack: tuple[Path, Path, Path]) -> None:
    library = stack[0] / "lib" / "libnccl.so.2.27.7"
    build(stack[0] / "all_reduce_perf", texts=("nccl-tests version",), needs=(library,), program=True, code=SM_90)
    assert [each for each in examine(*stack, platform=SLINGSHOT).cannot_tell if "linked in" in each] == []


def test_versions_that_are_known_not_to_fit_are_said_with_their_source(tmp_path: Path) -> None:
    nccl(tmp_path, version="2.30.3", code=SM_90)
    assert one(examine(tmp_path), "STACK031").source == "NVIDIA, NCCL release notes 2.30.7"
    old = tmp_path / "old"
    nccl(old, version="2.24.3", code=container(entry(100)))
    unfit = one(examine(old, platform="nvidia-dgx-b200"), "STACK030")
    assert ("Blackwell" in unfit.title, unfit.fix) == (True, "take NCCL 2.27.7 or later")
    new = tmp_path / "new"
    nccl(new, version="2.30.7", code=SM_90)
    assert codes(examine(new)) & {"STACK030", "STACK031"} == set()


def test_nccl_tests_without_mpi_are_found_and_those_beside_others_with_it_are_not(tmp_path: Path) -> None:
    made = nccl(tmp_path, code=SM_90)
    build(tmp_path / "all_reduce_perf", program=True, needs=(made,), texts=("nccl-tests version %s",))
    assert "STACK033" in codes(examine(tmp_path))
    mpi = build(tmp_path / "libmpi.so.40", defines=("MPI_Init",), texts=("Open MPI v4.1.4",), soname="libmpi.so.40")
    build(tmp_path / "all_reduce_perf_mpi", program=True, needs=(made, mpi))
    found = examine(tmp_path)
    assert "STACK033" not in codes(found)
    assert {each.version for each in found.stack.files if each.role == "mpi"} == {"Open MPI 4.1.4"}


def test_spack_and_easybuild_are_named_as_the_source(tmp_path: Path) -> None:
    nccl(tmp_path / "s" / "lib", code=SM_90)
    (tmp_path / "s" / ".spack").mkdir()
    spec = {"spec": {"nodes": [{
        "name": "nccl", "version": "2.27.7-1", "hash": "abcdefghij",
        "compiler": {"name": "gcc", "version": "12.3.0"}, "parameters": {"cuda_arch": ["90"]},
    }]}}  # fmt: skip
    (tmp_path / "s" / ".spack" / "spec.json").write_text(json.dumps(spec))
    libfabric(tmp_path / "e" / "lib", provider=None)
    (tmp_path / "e" / "easybuild").mkdir()
    (tmp_path / "e" / "easybuild" / "libfabric-1.22.0-GCCcore-13.3.0.eb").write_text("")
    nccl(tmp_path / "log" / "lib", code=SM_90)
    (tmp_path / "log" / "easybuild").mkdir()
    (tmp_path / "log" / "easybuild" / "easybuild-NCCL-2.27.7-20260101.120000.log.bz2").write_text("")
    told = {(each.manager, each.name, each.version, each.details) for each in examine(tmp_path).stack.packages}
    assert told == {
        ("Spack", "nccl", "2.27.7-1", "gcc 12.3.0, cuda_arch=90, /abcdefg"),
        ("EasyBuild", "libfabric", "1.22.0", "GCCcore-13.3.0"),
        ("EasyBuild", "NCCL", "2.27.7", None),
    }


def recipe(*words: object) -> Result:
    return CliRunner().invoke(busbw, ["recipe", "adopt", *map(str, words)])


def test_the_verb_prints_a_page_writes_a_folder_and_exits_with_what_it_found(
    stack: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    done = recipe(*stack, "--platform", "generic", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    for words in ("NCCL          2.27.7 for CUDA 12.9", "NCCL takes ncclNetPlugin_v6", "providers: cxi"):
        assert words in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) >= ["README.md", "check.sh", "load.sh", "run.sh"]
    (stack[2] / "lib64" / "libcxi.so.1").unlink()
    again = recipe(*stack, "--platform", "generic", "--no-files", "--json")
    assert again.exit_code == 1
    assert {each["code"] for each in json.loads(again.stdout)["findings"]} >= {"STACK001"}


@pytest.mark.parametrize(
    "words", [(), ("/no/such/folder",), ("EMPTY",), ("EMPTY", "--bind", "/a:/b"), ("EMPTY", "--module", "a b")]
)
def test_what_cannot_be_examined_is_refused_and_nothing_is_written(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    done = recipe(*(str(tmp_path / "empty") if word == "EMPTY" else word for word in words), "--platform", PLAIN)
    assert isinstance(done.exception, InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_load_puts_the_stack_first_and_keeps_what_was_there(stack: tuple[Path, Path, Path], tmp_path: Path) -> None:
    assert recipe(*stack, "--platform", "generic", "-o", tmp_path / "out dir").exit_code == 0
    done = subprocess.run(
        ["bash", "-euc", 'cd "$1"; . ./load.sh; printf %s "$LD_LIBRARY_PATH"', "bash", tmp_path / "out dir"],
        env={**os.environ, "LD_LIBRARY_PATH": "/mine"}, text=True, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == f"{stack[0]}/lib:{stack[1]}/lib:{stack[2]}/lib64:/mine"


def test_folders_of_the_system_are_not_put_first_and_nothing_leaves_the_search_path_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    nccl(root / "usr" / "lib64", code=SM_90)
    found = adopted(("/usr/lib64",), PLAIN, image=root)
    assert found.stack.library_path == ()
    bare = replace(found, stack=replace(found.stack, image=None))
    text = next(each.text for each in adopted_recipe(bare).files if each.name == "load.sh")
    (tmp_path / "load.sh").write_text(text)
    done = subprocess.run(
        ["bash", "-euc", 'cd "$1"; . ./load.sh; printf %s "${LD_LIBRARY_PATH-none}"', "bash", tmp_path],
        env={name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"},
        text=True, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "none"


def test_a_view_of_links_is_searched_where_it_lies(tmp_path: Path) -> None:
    made = nccl(tmp_path / "store" / "abc")
    (made.parent / "libnccl.so.2").unlink()
    view = tmp_path / "view" / "lib"
    view.mkdir(parents=True)
    (view / "libnccl.so.2").symlink_to(made)
    tests = build(tmp_path / "tests" / "all_reduce_perf", program=True, needs=(made,))
    found = examine(tmp_path / "view", tests)
    assert "STACK001" not in codes(found)
    assert found.stack.library_path[0] == str(view)


def test_the_check_says_which_file_is_not_as_it_was_examined(stack: tuple[Path, Path, Path], tmp_path: Path) -> None:
    recipe(*stack, "--platform", "generic", "-o", tmp_path / "out")
    text = (tmp_path / "out" / "check.sh").read_text()
    begin = text[: text.index("# Proves what the recipe promises")] + "\nconclude\n"
    (tmp_path / "out" / "part.sh").write_text(begin)

    def check() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", tmp_path / "out" / "part.sh"], text=True, capture_output=True, check=False, timeout=60,
            env={name: value for name, value in os.environ.items() if name != "SLURM_JOB_ID"},
        )  # fmt: skip

    assert check().stdout.endswith("\nproven\n")
    path = stack[2] / "lib64" / "libfabric.so.1"
    path.write_bytes(path.read_bytes() + b"x")
    (stack[2] / "lib64" / "libcxi.so.1").unlink()
    said = check().stdout
    assert f"{path} is not as it was examined" in said
    assert "libcxi.so.1 => not found" in said
    assert "not proven:\n  every node has the files that were examined\n  every node finds what they need\n" in said


def test_shellcheck_finds_nothing_in_what_is_written(stack: tuple[Path, Path, Path], tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    recipe(*stack, "--platform", SLINGSHOT, "-o", tmp_path / "a", "--module", "site/cuda")
    paths = [path for path in (tmp_path / "a").glob("*.sh") if path.name != "env_vars.sh"]
    done = subprocess.run(["shellcheck", *paths], capture_output=True, text=True, check=False)
    assert (done.stdout, len(paths)) == ("", 3)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the libraries of two of NVIDIA's wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    found = []
    names = ("nvidia-nccl-cu12==2.18.1", "nvidia-nccl-cu13==2.29.2")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", folder, *names], check=False, capture_output=True, timeout=300)
    if done.returncode != 0:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"pip cannot download {' and '.join(names)}")
    for name in names:
        (wheel,) = folder.glob(f"{name.partition('=')[0].replace('-', '_')}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            found.append(Path(archive.extract("nvidia/nccl/lib/libnccl.so.2", folder / name)))
        wheel.unlink()
    return found[0], found[1]


@pytest.mark.timeout(600)
def test_nccl_of_wheels_is_read_as_it_is(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    told = [examine(each).stack.files[0] for each in wheels]
    assert [(each.version, each.cuda, each.span) for each in told] == [
        ("2.18.1", "12.1", "ncclNetPlugin v4 to v6"),
        ("2.29.2", "13.1", "ncclNetPlugin v6 to v11"),
    ]
    assert [" ".join(map(str, each.code)) for each in told] == [
        "sm_50 sm_60 sm_61 sm_70 sm_80 sm_90 compute_90",
        "sm_75 sm_80 sm_90 sm_100 sm_110 sm_120 compute_120",
    ]
    assert codes(examine(wheels[0], platform="nvidia-dgx-b200")) & {"STACK021", "STACK030"} == {"STACK030"}
    assert not [each for each in examine(wheels[1], platform="nvidia-dgx-b200").findings if each.is_serious]
    # The guide's pair for the host meets at v6; the wheel of 2.18 asks for v4 to v6 too, and no later plug-in.
    made = plugin(tmp_path / "ofi", libfabric(tmp_path / "ofi"))
    assert "STACK010" not in codes(examine(wheels[1], made.parent))
    plugin(tmp_path / "ofi", tmp_path / "ofi" / "libfabric.so.1", has=range(7, 12))
    assert "STACK010" in codes(examine(wheels[0], made.parent))
    assert "STACK004" in codes(examine(*wheels))


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what Debian's packages of libfabric, Open MPI and hwloc hold."""
    folder = tmp_path_factory.mktemp("packages")
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("no apt-get here")
    names = ("libfabric1", "libopenmpi3", "libhwloc15")
    done = subprocess.run(["apt-get", "download", *names], cwd=folder, check=False, capture_output=True, timeout=120)
    if done.returncode != 0:
        pytest.skip("apt-get cannot download packages here")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True, timeout=60)
    return folder / "root"


@pytest.mark.timeout(300)
def test_libfabric_open_mpi_and_hwloc_of_debian_are_read_as_they_are(packages: Path, tmp_path: Path) -> None:
    found = examine(packages)
    files = {each.path.rpartition("/")[2]: each for each in found.stack.files if each.given}
    fabric = next(each for name, each in files.items() if name.startswith("libfabric.so"))
    assert (fabric.role, fabric.providers) == ("libfabric", ("efa",))
    mpi = next(each for name, each in files.items() if name.startswith("libmpi.so"))
    assert mpi.version is not None
    assert mpi.version.startswith("Open MPI ")
    assert next(each for name, each in files.items() if name.startswith("libhwloc.so")).version is not None
    assert {each.role for each in files.values()} == {"libfabric", "mpi", "hwloc"}
    # What it links and is in none of these packages.
    assert any("libefa.so.1" in each.title for each in found.findings if each.code == "STACK001") is not (
        Path("/usr/lib/x86_64-linux-gnu/libefa.so.1").exists()
    )
    nccl(tmp_path / "nccl", code=SM_90)
    plugin(tmp_path / "ofi", Path(fabric.path))
    assert "STACK013" in codes(examine(packages, tmp_path / "nccl", tmp_path / "ofi", platform=SLINGSHOT))
    assert "STACK013" not in codes(examine(packages, tmp_path / "nccl", tmp_path / "ofi", platform="aws-p5"))


def mksquashfs(folder: Path, image: Path, *options: str) -> None:
    """Pack a folder; skip where there is no program for it, and none can be downloaded."""
    program, libraries = shutil.which("mksquashfs"), ""
    if program is None:
        tools = _squashfs_tools()
        program = str(tools / "usr" / "bin" / "mksquashfs")
        libraries = os.pathsep.join(str(each.parent) for each in tools.rglob("liblzo2.so.2"))
    subprocess.run(
        [program, folder, image, "-quiet", "-no-progress", *options], check=True, timeout=120, capture_output=True,
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
    )  # fmt: skip


@cache
def _squashfs_tools() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="busbw-squashfs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    done = subprocess.run(
        ["apt-get", "download", "squashfs-tools", "liblzo2-2"],
        cwd=folder,
        check=False,
        capture_output=True,
        timeout=120,
    )
    if done.returncode != 0:
        pytest.skip("no mksquashfs here: apt-get install squashfs-tools")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True, timeout=60)
    return folder


@pytest.fixture
def image_root(tmp_path: Path) -> Path:
    """Return an unpacked image: NCCL where the loader looks, a plug-in for a libfabric that the host is to bring."""
    root = tmp_path / "root"
    nccl(root / "usr" / "lib64", code=SM_90)
    fabric = libfabric(tmp_path / "host" / "lib64", options=("-Wl,-rpath,$ORIGIN",))
    plugin(root / "opt" / "ofi" / "lib", fabric, options=("-Wl,-rpath,/host/fabric/lib64",))
    (root / "etc").mkdir()
    (root / "etc" / "environment").write_text("PATH=/bin\nLD_LIBRARY_PATH=/opt/ofi/lib:/usr/local/nvidia/lib\n")
    # What every system has; it is not what is looked at.
    for name in ("libc.so.6",):
        build(root / "usr" / "lib64" / name, defines=("puts",), soname=name)
    (root / "usr" / "lib").symlink_to("lib64")
    return root


def examine_inside(image: Path, *binds: tuple[Path, str]) -> Adoption:
    found = adopted((), SLINGSHOT, image=image, binds=tuple((str(here), inside) for here, inside in binds))
    return adoption(found.stack, replace(machine(SLINGSHOT), processor=HERE))


def test_an_unpacked_image_is_looked_into_with_what_is_bound_into_it(image_root: Path, tmp_path: Path) -> None:
    alone = examine_inside(image_root)
    assert [each.title for each in alone.findings if each.code == "STACK001"] == [
        "nothing provides libfabric.so.1, wanted by libnccl-net.so"
    ]
    bound = examine_inside(image_root, (tmp_path / "host", "/host/fabric"))
    assert not [each for each in bound.findings if each.is_serious]
    assert {each.path for each in bound.stack.files} == {
        "/usr/lib64/libnccl.so.2.27.7",
        "/opt/ofi/lib/libnccl-net.so",
        "/host/fabric/lib64/libfabric.so.1",
    }


@pytest.mark.parametrize("packer", [("gzip",), ("xz",), ("lz4",), ("lzo",), ("lzo", "-noD"), ("zstd",)])
def test_a_packed_image_is_read_in_place(packer: tuple[str, ...], image_root: Path, tmp_path: Path) -> None:
    mksquashfs(image_root, tmp_path / "image.sqsh", "-comp", *packer)
    found = examine_inside(tmp_path / "image.sqsh", (tmp_path / "host", "/host/fabric"))
    if packer == ("zstd",) and sys.version_info < (3, 14):
        assert found.stack.files == ()
        assert "zstd" in found.cannot_tell[0]
        return
    unpacked = examine_inside(image_root, (tmp_path / "host", "/host/fabric"))
    assert found.stack.files == unpacked.stack.files
    assert found.findings == unpacked.findings


def sif(image: Path, made: Path, *, system: int = 1) -> Path:
    """Put a file system into a SIF as Apptainer lays it out (apptainer/sif, pkg/sif)."""
    data = image.read_bytes()
    start = 36864
    extra = struct.pack("<ii3s", system, 2, b"02\0").ljust(384, b"\0")
    table = b"".join(
        struct.pack("<i?IIIqqqqqqq128s384s", kind, True, 1, 1, 0, offset, size, size, 0, 0, 0, 0, b"x", more)
        for kind, offset, size, more in ((0x4001, 32768, 10, b""), (0x4004, start, len(data), extra))
    )
    head = b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16)
    head += struct.pack("<qqqqqqqq", 0, 0, 46, 48, 4096, 48 * 585, 32768, len(data))
    made.write_bytes(head.ljust(4096, b"\0") + table.ljust(start - 4096, b"\0") + data)
    return made


def test_an_image_of_apptainer_is_read_in_place_and_what_cannot_be_read_is_left_to_the_check(
    image_root: Path, tmp_path: Path
) -> None:
    mksquashfs(image_root, tmp_path / "x.squashfs")
    found = examine_inside(sif(tmp_path / "x.squashfs", tmp_path / "x.sif"), (tmp_path / "host", "/host/fabric"))
    assert {each.role for each in found.stack.files} == {"nccl", "plugin", "libfabric"}

    encrypted = sif(tmp_path / "x.squashfs", tmp_path / "y.sif", system=4)
    done = recipe("--image", encrypted, "--platform", SLINGSHOT, "-o", tmp_path / "out")
    assert done.exit_code == 4
    assert "encrypted" in done.stdout
    check = (tmp_path / "out" / "check.sh").read_text()
    assert f"container_image='{encrypted}'" in check
    assert "mounts=('/opt/cray/libfabric:/host/opt/cray/libfabric' '/usr/lib64:/host/usr/lib64')" in check
    if shutil.which("shellcheck") is not None:
        paths = [path for path in (tmp_path / "out").glob("*.sh") if path.name != "env_vars.sh"]
        assert subprocess.run(["shellcheck", *paths], capture_output=True, text=True, check=False).stdout == ""


@pytest.mark.parametrize(("name", "words"), [
    ("x.sif", ["--ntasks-per-node=1", "--network=disable_rdzv_get", "apptainer", "exec", "--nv", "--bind", "/a:/b"]),
    ("x.sqsh", ["--ntasks-per-node=1", "--network=disable_rdzv_get", "--container-image=", "--container-mounts=/a:/b"]),
])  # fmt: skip
def test_a_program_is_started_in_the_image_by_what_it_is_for(
    name: str, words: list[str], image_root: Path, tmp_path: Path
) -> None:
    mksquashfs(image_root, tmp_path / "x.sqsh")
    sif(tmp_path / "x.sqsh", tmp_path / "x.sif")
    found = adopted((), SLINGSHOT, image=tmp_path / name)
    files = {each.name: each.text for each in adopted_recipe(found, binds=(("/a", "/b"),)).files}
    out = tmp_path / "out"
    out.mkdir()
    for each, text in files.items():
        (out / each).write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir()
    for each in ("srun", "apptainer"):
        (programs / each).write_text('#!/bin/bash\nprintf "%s\\0" srun "$@"\n')
        (programs / each).chmod(0o755)
    done = subprocess.run(
        ["bash", out / "run.sh", "a b", "$(id)"], text=True, capture_output=True, check=True, timeout=60,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    said = [word.replace(f"{tmp_path}/{name}", "") for word in done.stdout.split("\0")[1:-1]]
    assert said[: len(words)] == words
    assert said[-2:] == ["a b", "$(id)"]


def test_the_environment_of_an_image_of_apptainer_decides_as_the_guide_of_isambard_ai_has_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    environment = root / ".singularity.d" / "env"
    environment.mkdir(parents=True)
    (environment / "10-docker2singularity.sh").write_text(
        '#!/bin/sh\nexport LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-"/usr/local/nvidia/lib:/usr/local/nvidia/lib64"}"\n'
    )
    (environment / "90-environment.sh").write_text(
        "export NCCL_HOME=/opt/slingshot/nccl\nexport LIBFABRIC_HOME=/host/opt/cray/libfabric/1.22.0\n"
        "export LD_LIBRARY_PATH=$LIBFABRIC_HOME/lib64:$NCCL_HOME/lib:/opt/slingshot/aws-ofi-nccl/lib"
        ":$LD_LIBRARY_PATH:/host/usr/lib64\n"
    )
    build(root / "lib64" / "libc.so.6", defines=("puts",), soname="libc.so.6")
    host, built = tmp_path / "host", tmp_path / "nccl_build"
    fabric = libfabric(host / "cray" / "1.22.0" / "lib64")
    (host / "usr").mkdir()
    (fabric.parent / "libcxi.so.1").rename(host / "usr" / "libcxi.so.1")
    nccl(built / "nccl" / "lib", version="2.29.2", code=SM_90)
    plugin(built / "aws-ofi-nccl" / "lib", fabric)
    binds = ((host / "cray", "/host/opt/cray/libfabric"), (host / "usr", "/host/usr/lib64"), (built, "/opt/slingshot"))

    found = examine_inside(root, *binds)

    assert not [each for each in found.findings if each.is_serious]
    files = {each.role: each for each in found.stack.files}
    assert files["libfabric"].path == "/host/opt/cray/libfabric/1.22.0/lib64/libfabric.so.1"
    assert "/host/usr/lib64/libcxi.so.1" in [each.path for each in files["libfabric"].needs]
    assert "STACK001" in codes(examine_inside(root, binds[0], binds[2]))
