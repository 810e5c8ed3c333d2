"""A folder of a recipe is there as a whole or not at all, and nothing that is there is written over."""

import stat
from pathlib import Path

import pytest

from busbw.base.errors import InputError, RunError
from busbw.store.files import write_folder

FILES = (("a.sh", "one\n", True), ("b.txt", "two\n", False))


def test_files_have_their_text_and_programs_may_be_started(tmp_path: Path) -> None:
    write_folder(tmp_path / "new $(x) folder", FILES)

    folder = tmp_path / "new $(x) folder"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.sh": "one\n", "b.txt": "two\n"}
    assert stat.S_IMODE((folder / "a.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "b.txt").stat().st_mode) == 0o644
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_what_is_there_stays(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "there"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")

    with pytest.raises(InputError, match="is there already"):
        write_folder(place, FILES)

    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not place.is_file() or place.read_text() == "mine"


def test_a_folder_above_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        write_folder(tmp_path / "a" / "b", FILES)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write new"):
        write_folder(tmp_path / "new", (*FILES, ("x" * 300, "too long a name", False)))
    assert list(tmp_path.iterdir()) == []
