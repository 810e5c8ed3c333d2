"""docs/add-a-machine.md: its file is taken, its commands answer, and what a file leaves out is missed as it says."""

import os
import re
import shlex
from pathlib import Path

import pytest
from tests.warm import warm_busbw

PAGE = (Path(__file__).parents[2] / "docs" / "add-a-machine.md").read_text(encoding="utf-8")
((NAME, FILE),) = re.findall(r"`([a-z0-9-]+)\.toml`:\n\n```toml\n(.*?)```", PAGE, re.DOTALL)
((TABLE, CELLS),) = re.findall(r"`([a-z]+\.csv)`:\n\n```text\n(.*?)```", PAGE, re.DOTALL)
SHOWN = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
COMMANDS = [shlex.split(line)[1:] for line in SHOWN if line.startswith("busbw ")]


def site(folder: Path, text: str = FILE) -> dict[str, str]:
    """Put the files there; return the environment in which they are found."""
    (folder / "platforms").mkdir()
    (folder / "platforms" / f"{NAME}.toml").write_text(text, encoding="utf-8")
    (folder / TABLE).write_text(CELLS, encoding="utf-8")
    return {**os.environ, "BUSBW_DATA": str(folder), "NO_COLOR": "1", "XDG_CONFIG_HOME": str(folder / "none")}


def test_the_commands_with_the_page_s_file_answer(tmp_path: Path) -> None:
    environment = site(tmp_path)
    assert [argv[0] for argv in COMMANDS] == ["platform", "predict", "predict", "predict"]
    done = [warm_busbw(*argv, env=environment, cwd=tmp_path) for argv in COMMANDS]
    assert [each.returncode for each in done] == [0] * len(done), [each.stderr for each in done]
    shown, plain, calibrated, against = (each.stdout for each in done)
    assert f"gpu.count = 8  <- {tmp_path}/platforms/{NAME}.toml" in shown
    (words,) = re.findall(r"^in family: .*$", PAGE, re.MULTILINE)
    assert words in plain
    assert calibrated.count("\ncalibrated: ") == 3
    assert "in family" in calibrated
    assert "acceptance" in against


@pytest.mark.parametrize(
    ("left_out", "code", "words"),
    [
        ('[gpu]\ncount = 8\nsource = ["blue-order"]\nchecked = "2026-11-26"\n', 2, "say it: --gpus 8"),
        ('[nic]\nports = 8\nsource = ["blue-order"]\nchecked = "2026-11-26"\n', 4, "cannot tell"),
        (', "family/nic-cx7-ndr"', 4, "cannot tell"),
        ('"family/gpu-h200-sxm", ', 0, "across: the constant that counts most is from other GPUs"),
    ],
)
def test_what_a_file_leaves_out_is_missed_as_the_page_says(
    left_out: str, code: int, words: str, tmp_path: Path
) -> None:
    assert left_out in FILE
    environment = site(tmp_path, FILE.replace(left_out, ""))
    asked = ("predict", "all_reduce", "--platform", NAME, "--size", "1G", "--nodes", "4")
    done = warm_busbw(*asked, env=environment, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
