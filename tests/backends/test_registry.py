import sys

import pytest

from busbw.base.errors import InputError
from busbw.measure.backends import native_mpi, registry


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
    install(tmp_path, "site = site_backend", 'name = "site"\n')
    try:
        assert registry.find("site").name == "site"
    finally:
        sys.modules.pop("site_backend", None)


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
