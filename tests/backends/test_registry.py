import sys

import pytest

from busbw.base.errors import InputError
from busbw.measure.backends import native_mpi, registry
from busbw.measure.backends.backend import OPTIONAL, check_options
from busbw.model.request import Request

# A backend of another package that is ours under another name.
WHOLE = 'from busbw.measure.backends.native_mpi import *\nname = "site"\n'
GIVEN = {
    "pairs": {"pairs": "all"},
    "matrix_file": {"matrix_file": "/x/matrix"},
    "unaligned": {"unaligned": True},
    "runtime": {"runtime": "apptainer", "image": "x.sif"},
    "masks": {"binding": "masks"},
    "config": {"config": ("CTAPolicy=2",)},
    "cache": {"cache": "warm"},
    "gpu_buffers": {"gpu_buffers": True},
    "buffers": {"buffers": "registered"},
    "memory": {"memory": "cuda"},
    "load_side": {"load_side": 1024},
    "max_samples": {"max_samples": 5},
    "multicast_off": {"multicast_off": True},
    "nccl": {"nccl": "/x/libnccl.so.2"},
    "driver": {"driver": "/x/libcuda.so.1"},
    "nvrtc": {"nvrtc": "/x/libnvrtc.so"},
    "gpus_per_process": {"gpus_per_process": 2},
    "programs": {"programs": "/x"},
    "graphs": {"graphs": 1},
}


def install(folder, entry: str, module: str = "") -> None:
    """Lay down a package as an installer does: metadata with one entry point, and the module it names."""
    metadata = folder / "site_backend-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: site-backend\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[busbw.backends]\n{entry}\n")
    (folder / "site_backend.py").write_text(module)


def test_our_own_backend_is_found_by_its_name():
    assert registry.find(native_mpi.name) is native_mpi


def test_a_site_adds_a_backend_with_an_entry_point(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "site = site_backend", WHOLE)
    try:
        assert registry.find("site").name == "site"
        assert registry.over("site") == "mpi"
    finally:
        sys.modules.pop("site_backend", None)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ('name = "site"\n', "lacks capabilities, check_ranks, is_ours, joining, launches"),
        (WHOLE + "is_ours = False\n", "lacks complaint, failure_of, formats, is_failure"),
        (WHOLE + 'name = "other"\n', "calls itself 'other'"),
    ],
)
def test_a_backend_that_is_not_whole_is_refused_with_what_it_lacks(tmp_path, monkeypatch, module, reason):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "site = site_backend", module)
    try:
        with pytest.raises(InputError, match=reason):
            registry.find("site")
    finally:
        sys.modules.pop("site_backend", None)


@pytest.mark.parametrize("name", ["native-mpi", "native-nccl", "nccl-tests", "osu"])
def test_what_the_registry_says_without_reading_a_module_is_what_the_module_says(name):
    backend = registry.find(name)
    assert backend.name == name
    assert registry.over(name) == backend.over
    assert backend.takes <= set(OPTIONAL)


@pytest.mark.parametrize("name", ["native-mpi", "native-nccl", "nccl-tests", "osu"])
@pytest.mark.parametrize("option", OPTIONAL)
def test_an_option_is_refused_where_the_backend_does_not_take_it(name, option):
    backend = registry.find(name)
    request = Request(backend=name, **GIVEN[option])
    if option in backend.takes:
        check_options(request, backend)
        return
    with pytest.raises(InputError, match=f"{name} has no "):
        check_options(request, backend)


def test_another_package_does_not_replace_our_own_backend(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "native-mpi = site_backend")
    assert registry.find("native-mpi") is native_mpi


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InputError) as caught:
        registry.find("nativ")
    assert "native-mpi" in (caught.value.hint or "")


def test_a_backend_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "site = site_backend_that_is_not_there")
    with pytest.raises(InputError, match="site_backend_that_is_not_there"):
        registry.find("site")
