"""Stacks that a site's package managers installed: what they are named by, and what is given in place of folders."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.machine.capture.built import examine_host, examine_image
from busbw.machine.read.managers import conda_package, module_file, spack_package, spack_views

from .building import build, needs_gcc

NCCL_OF_EASYBUILD = """help([==[
NCCL: Optimized primitives for collective multi-GPU communication
]==])
whatis([==[Description: NCCL]==])
local root = "{root}"
conflict("NCCL")
if not ( isloaded("CUDA/12.1.1") ) then
    load("CUDA/12.1.1")
end
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTNCCL", root)
setenv("EBVERSIONNCCL", "2.18.3")
-- Built with EasyBuild version 4.8.2
"""
NCCL_OF_SPACK = """#%Module1.0
## Module file created by spack (https://github.com/spack/spack) on 2026-03-01 10:00:00.000000
##
## nccl@2.27.5-1%gcc@12.3.0+cuda cuda_arch=90 arch=linux-rhel9-zen3/abcdefg
##
prepend-path --delim ":" CMAKE_PREFIX_PATH "{root}/."
setenv NCCL_ROOT {root}
"""


def asked(*words: object) -> Result:
    return CliRunner().invoke(busbw, ["recipe", "adopt", *map(str, words)])


def library(folder: Path) -> Path:
    texts = ("NCCL version 2.27.5+cuda12.9", "ncclNetPlugin_v10")
    return build(folder / "libnccl.so.2", defines=("ncclCommInitRank",), texts=texts, soname="libnccl.so.2")


@pytest.mark.parametrize(
    ("text", "name", "manager", "places"),
    [
        (NCCL_OF_EASYBUILD, "NCCL/2.18.3.lua", "EasyBuild", ("/s/NCCL/lib",)),
        (NCCL_OF_SPACK, "nccl/2.27.5", "Spack", ("/s/NCCL",)),
        ('local base = "/s"\nprepend_path("LD_LIBRARY_PATH", base .. "/NCCL/lib64")\n', "a/1.lua", None,
         ("/s/NCCL/lib64",)),
        ("#%Module\nset top /s/NCCL\nprepend-path LD_LIBRARY_PATH $top/lib:${top}/lib64\n", "a/1", None,
         ("/s/NCCL/lib", "/s/NCCL/lib64")),
        ('prepend_path{"LD_LIBRARY_PATH", "/s/lib", delim = ":"}\n', "a/1.lua", None, ("/s/lib",)),
    ],
)  # fmt: skip
def test_a_module_file_is_read_and_not_run(text: str, name: str, manager: str | None, places: tuple[str, ...]) -> None:
    found = module_file(text.replace("{root}", "/s/NCCL"), f"/modules/all/{name}")
    assert found is not None
    assert (found.source.name, found.source.manager, found.places) == (name.removesuffix(".lua"), manager, places)


@pytest.mark.parametrize(
    ("text", "name"),
    [("prepend_path", "notes.txt"), ("-- nothing set\n", "a/1.lua"), ("#%Module\nmodule-whatis {x}\n", "a/1")],
)
def test_what_sets_nothing_is_no_module_file(text: str, name: str) -> None:
    assert module_file(text, f"/m/{name}") is None


@pytest.mark.parametrize(
    ("head", "again", "tail", "name"),
    [
        ('local v0 = "/aaaa"', "local v{} = v{} .. v{}", 'prepend_path("LD_LIBRARY_PATH", v60)', "1.lua"),
        ("#%Module\nset v0 /aaaa", "set v{} $v{}$v{}", "prepend-path LD_LIBRARY_PATH $v60", "1"),
    ],
)
def test_values_that_double_at_each_line_end_at_a_bound(head: str, again: str, tail: str, name: str) -> None:
    text = "\n".join([head, *(again.format(each, each - 1, each - 1) for each in range(1, 61)), tail])
    found = module_file(text, f"/m/a/{name}")
    assert found is None or found.places == ()


def test_views_of_an_environment_are_those_that_it_names_and_the_usual_one() -> None:
    usual = "/env/.spack-env/view"
    assert spack_views("spack:\n  specs: [nccl]\n  view: true\n", "/env") == (usual,)
    named = "spack:\n  view:\n    default:\n      root: /shared/view  # all\n    two:\n      root: ./two\n"
    assert spack_views(named, "/env") == ("/shared/view", "/env/./two", usual)


def test_compilers_of_spack_are_read_in_its_old_form_and_in_its_new_one() -> None:
    old = {"name": "nccl", "version": "2", "compiler": {"name": "gcc", "version": "12.3.0"}}
    new = {"name": "nccl", "version": "2", "annotations": {"compiler": "gcc@=12.3.0"}}
    neither = {"name": "nccl", "version": "2"}
    read = [spack_package(json.dumps({"spec": {"nodes": [each]}}).encode(), "/s", "f") for each in (old, new, neither)]
    assert [each.details for each in read if each is not None] == ["gcc 12.3.0", "gcc 12.3.0", None]


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        ("https://conda.anaconda.org/conda-forge/linux-64", "h1, conda-forge"),
        ("conda-forge", "h1, conda-forge"),
        (None, "h1"),
        (7, "h1"),
    ],
)
def test_a_channel_of_conda_is_said_by_its_name(channel: object, told: str) -> None:
    raw = json.dumps({"name": "nccl", "version": "2.27.5", "build": "h1", "channel": channel}).encode()
    found = conda_package(raw, "/c", "/c/conda-meta/nccl.json")
    assert found is not None
    assert found.details == told


@pytest.mark.parametrize("raw", [b"", b"[]", b"7", b'{"name": 7, "version": "1"}', b"\xff"])
def test_what_is_no_package_of_conda_is_none(raw: bytes) -> None:
    assert conda_package(raw, "/c", "f") is None


@needs_gcc
def test_a_module_file_is_examined_as_what_it_loads_and_load_sh_loads_it(tmp_path: Path) -> None:
    root = tmp_path / "software" / "NCCL" / "2.18.3-CUDA-12.1.1"
    library(root / "lib")
    (root / "easybuild").mkdir()
    (root / "easybuild" / "NCCL-2.18.3-CUDA-12.1.1.eb").write_text("")
    file = tmp_path / "modules" / "all" / "NCCL" / "2.18.3-CUDA-12.1.1.lua"
    file.parent.mkdir(parents=True)
    file.write_text(NCCL_OF_EASYBUILD.replace("{root}", str(root)))

    done = asked(file, "--platform", "azure-nd-h100-v5", "-o", tmp_path / "out")

    assert f"NCCL/2.18.3-CUDA-12.1.1 of EasyBuild  {file}" in " ".join(done.stdout.split(" ")).replace("\n", " ")
    assert "; module NCCL/2.18.3-CUDA-12.1.1" in done.stdout
    assert "NCCL/2.18.3-CUDA-12.1.1" in (tmp_path / "out" / "load.sh").read_text()


@needs_gcc
def test_an_environment_of_spack_is_examined_by_its_view_and_found_there_after_the_next_one(tmp_path: Path) -> None:
    stored = library(tmp_path / "store" / "nccl-2.27.5-abc" / "lib")
    env = tmp_path / "env"
    view = env / ".spack-env" / "._view" / "hash" / "lib"
    view.mkdir(parents=True)
    (env / ".spack-env" / "view").symlink_to(view.parent)
    (view / stored.name).symlink_to(stored)
    with pytest.raises(InputError, match="nothing of a stack"):
        examine_host((env,))
    (env / "spack.yaml").write_text("spack:\n  view: true\n")

    found = examine_host((env,))

    assert [(each.kind, each.manager, each.name) for each in found.sources] == [("environment", "Spack", "env")]
    assert found.library_path == (str(env / ".spack-env" / "view" / "lib"),)


@needs_gcc
def test_a_file_of_conda_is_named_by_the_package_that_lists_it(tmp_path: Path) -> None:
    library(tmp_path / "lib")
    (tmp_path / "conda-meta").mkdir()
    for name, files in (("libfabric", ["lib/libfabric.so.1"]), ("nccl", ["lib/libnccl.so.2"])):
        manifest = {"name": name, "version": "2.27.5.1", "build": "h1", "channel": "conda-forge", "files": files}
        (tmp_path / "conda-meta" / f"{name}.json").write_text(json.dumps(manifest))

    told = [(each.manager, each.name, each.prefix) for each in examine_host((tmp_path,)).packages]

    assert told == [("conda", "nccl", str(tmp_path))]


def test_a_module_file_whose_folders_are_elsewhere_is_refused_with_them(tmp_path: Path) -> None:
    file = tmp_path / "1.0.lua"
    file.write_text('prepend_path("LD_LIBRARY_PATH", "/nowhere/nccl/lib")\n')
    with pytest.raises(InputError, match="there is no /nowhere/nccl/lib"):
        examine_host((file,))


def tar_of(*names: str) -> bytes:
    """Return a tar whose members have these names, in this order."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return whole.getvalue()


OF_DOCKER = tar_of("1f" * 32 + ".tar", "manifest.json")
NO_IMAGE = "is no image: it begins neither"


@pytest.mark.parametrize(("content", "said", "hint"), [
    (OF_DOCKER, "in layers", "apptainer build NAME.sif docker-archive:"),
    (gzip.compress(OF_DOCKER), "in layers", "docker-archive:"),
    (tar_of("blobs/", "index.json"), "in layers", "oci-archive:"),
    (tar_of("./", "./usr/", "./usr/lib/"), "an archive of files", "tar -xf"),
    (b"\x28\xb5\x2f\xfd" + bytes(40), "a packed archive", "tar -tf"),
    (b"", NO_IMAGE, ".sqsh"),
    (b"hello\n" * 40, NO_IMAGE, ".sqsh"),
    (b"\x7fELF" + bytes(400), NO_IMAGE, ".sqsh"),
    (b"hsqs" + bytes(40), "is cut off: it has 44 bytes", ".sqsh"),
    (bytes(32) + b"SIF_MAGIC\0" + bytes(200), "a SIF without a file system", ".sif"),
])  # fmt: skip
def test_what_is_no_image_that_can_be_looked_into_is_bad_input(
    content: bytes, said: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "image").write_bytes(content)
    with pytest.raises(InputError, match=said) as refused:
        examine_image(tmp_path / "image", (), ())
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(("names", "hint"), [
    (("oci-layout", "index.json"), "apptainer build NAME.sif oci:"),
    (("manifest.json", "version"), "skopeo copy dir:"),
])  # fmt: skip
def test_a_folder_in_layers_is_refused_with_what_unpacks_it(names: tuple[str, ...], hint: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match="in layers") as refused:
        examine_image(tmp_path, (), ())
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["docker://nvcr.io/nvidia/pytorch:25.01-py3", "nvcr.io#nvidia/pytorch:25.01-py3"])
def test_a_name_in_a_registry_is_told_from_a_file_that_is_not_there(name: str) -> None:
    with pytest.raises(InputError, match="in a registry"):
        examine_image(Path(name), (), ())
    with pytest.raises(InputError, match="there is no"):
        examine_image(Path("pytorch.sqsh"), (), ())


def test_what_is_neither_a_file_nor_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "image")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        examine_image(tmp_path / "image", (), ())


@pytest.mark.parametrize("named", ["", "spack.lock"])
def test_an_environment_of_spack_that_is_not_installed_is_said_to_be_none(named: str, tmp_path: Path) -> None:
    (tmp_path / "spack.lock").write_text('{"_meta":{"file-type":"spack-lockfile","lockfile-version":5}}')
    with pytest.raises(InputError, match="it has no view") as refused:
        examine_host((tmp_path / named,))
    assert (refused.value.hint or "").startswith(f"spack -e {tmp_path} install")


def test_an_image_that_is_given_as_a_folder_is_told_its_option(tmp_path: Path) -> None:
    (tmp_path / "nccl.sqsh").write_bytes(b"hsqs" + bytes(200))
    with pytest.raises(InputError, match="nothing of a stack") as refused:
        examine_host((tmp_path / "nccl.sqsh",))
    assert refused.value.hint == f"--image {tmp_path / 'nccl.sqsh'}"
