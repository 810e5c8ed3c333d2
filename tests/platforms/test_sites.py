"""A site's directories, as a user has them: real files, a real environment, a process of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.warm import warm_busbw

NEW = 'names = ["Our Cluster"]\nprovider = "us"\nkind = "gpu"\n[gpu]\ncount = {count}\n'


def busbw(*arguments: str, **environment: str | Path) -> subprocess.CompletedProcess[str]:
    """Run busbw with nothing of the caller's configuration."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return warm_busbw(*arguments, env={**kept, **{name: str(value) for name, value in environment.items()}})


def put(directory: Path, name: str, text: str) -> Path:
    path = directory / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def shown(name: str, **environment: str | Path) -> dict[str, object]:
    done = busbw("platform", "show", name, "--json", **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_directories_of_a_user_and_of_busbw_data_are_laid_over_each_other(tmp_path: Path) -> None:
    first = put(tmp_path / "home" / ".config" / "busbw" / "platforms", "ours", NEW.format(count=8))
    second = put(tmp_path / "data" / "platforms", "ours", "[gpu]\ncount = 4\n")

    resolved = shown("our cluster", HOME=tmp_path / "home", BUSBW_DATA=tmp_path / "data")

    assert resolved["platform"]["gpu"]["count"] == 4
    assert resolved["files"] == [str(second), str(first)]
    assert {"path": "gpu.count", "file": str(second), "source": [], "checked": None} in resolved["origins"]


def test_the_configuration_directory_can_be_elsewhere(tmp_path: Path) -> None:
    put(tmp_path / "config" / "busbw" / "platforms", "ours", NEW.format(count=8))
    put(tmp_path / "home" / ".config" / "busbw" / "platforms", "ours", NEW.format(count=4))
    resolved = shown("ours", HOME=tmp_path / "home", XDG_CONFIG_HOME=tmp_path / "config")
    assert resolved["platform"]["gpu"]["count"] == 8


def test_a_relative_configuration_directory_is_ignored(tmp_path: Path) -> None:
    put(tmp_path / ".config" / "busbw" / "platforms", "ours", NEW.format(count=4))
    assert shown("ours", HOME=tmp_path, XDG_CONFIG_HOME="config")["platform"]["gpu"]["count"] == 4


def test_families_of_a_site_lie_in_a_folder_beside_its_platforms(tmp_path: Path) -> None:
    put(tmp_path / "platforms" / "family", "card", '[gpu]\nmodel = "X1"\n')
    put(tmp_path / "platforms", "ours", 'extends = ["family/card"]\n' + NEW.format(count=8))
    assert shown("ours", BUSBW_DATA=tmp_path)["platform"]["gpu"]["model"] == "X1"


def test_without_a_home_and_without_files_there_are_the_shipped_ones() -> None:
    done = busbw("platform", "list")
    assert done.returncode == 0, done.stderr


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = busbw("platform", "list", BUSBW_DATA=tmp_path / "gone")
    assert done.returncode == 2
    assert done.stderr.startswith("error: BUSBW_DATA names no directory\n")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"\xff\xfe", "not UTF-8 text"),
        (b"# " + b"x" * 2**18, "over the limit of 262144 bytes"),
        (b"gpu = [", "not valid TOML"),
        (b"", "missing required field `names`"),
        (b"<html>", "not valid TOML"),
        (b"\x00" * 50, "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes, cause: str) -> None:
    path = put(tmp_path / "platforms", "ours", "")
    path.write_bytes(content)
    done = busbw("platform", "show", "ours", BUSBW_DATA=tmp_path)
    assert done.returncode == 2
    assert cause in done.stderr
    assert str(path) in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_pipe_and_a_folder_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    os.mkfifo(tmp_path / "platforms" / "ours.toml")
    done = busbw("platform", "show", "ours", BUSBW_DATA=tmp_path)
    assert (done.returncode, "not a file" in done.stderr) == (2, True)


def test_a_path_that_is_no_text_is_written_as_escapes(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    put(folder / "platforms", "ours", NEW.format(count=8))
    assert shown("ours", BUSBW_DATA=folder)["files"] == [str(tmp_path) + "/d\\udcff/platforms/ours.toml"]


def test_files_lie_in_the_directory_itself_or_in_its_folder_platforms_which_wins(tmp_path: Path) -> None:
    beside = put(tmp_path, "ours", NEW.format(count=4))
    assert shown("ours", BUSBW_DATA=tmp_path)["files"] == [str(beside)]
    within = put(tmp_path / "platforms", "ours", NEW.format(count=8))
    resolved = shown("ours", BUSBW_DATA=tmp_path)
    assert (resolved["files"], resolved["platform"]["gpu"]["count"]) == ([str(within), str(beside)], 8)
