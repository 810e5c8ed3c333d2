"""docs/training-launch.md: its commands, the scripts that they print, and the write-up that it reads."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.api.settings import lint_file
from busbw.cli.command import busbw
from busbw.measure.plan.masks import rank_masks

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "training-launch.md").read_text(encoding="utf-8")
WRITE_UP = ROOT.parent / "shared" / "seeds" / "azure-interconnects.txt"
LAUNCHES = [
    shlex.split(line.partition("  # exits")[0])
    for line in re.findall(r"^\$ busbw (launch .+?  # exits 0)$", PAGE.replace("\\\n", ""), re.MULTILINE)
]
JOB = re.compile(r"^```text\n(#!/bin/bash\n.*?)^```", re.MULTILINE | re.DOTALL)
SIZES = re.findall(
    r"^\| (\d+) \| (\d+) \| `results/25.01/fp8/314b/(\d+)` \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE
)
PLATFORM = "azure-nd-h100-v5"
STAGE = "/shared/grok1"


def written(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run a launch of the page in a folder and return the folder with its files."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(busbw, arguments)
    assert done.exit_code == 0, done.output
    return folder / arguments[arguments.index("-o") + 1]


@pytest.mark.parametrize("arguments", LAUNCHES, ids=lambda each: each[each.index("--container") + 1])
def test_every_script_of_the_page_is_shell_and_lint_finds_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(arguments, tmp_path, monkeypatch)

    for name in ("job.sh", "launch.sh"):
        done = subprocess.run(["bash", "-n", folder / name], text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        found = lint_file(str(folder / name), platform=PLATFORM).findings
        # It cannot read configure.sh, and says so.
        assert [each.code for each in found if each.code != "ENV001"] == []


def test_the_job_of_the_page_is_the_one_that_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = JOB.findall(PAGE)
    folder = written(LAUNCHES[0], tmp_path, monkeypatch)

    assert shown == [(folder / "job.sh").read_text().replace(str(tmp_path), STAGE)]


def test_the_page_starts_every_proxy_of_the_write_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [int(gpus) for gpus, *_rest in SIZES] == [8 << place for place in range(8)]
    for gpus, nodes, of_folder, *_model in SIZES:
        arguments = list(LAUNCHES[0])
        arguments[arguments.index("--nodes") + 1] = nodes
        arguments[arguments.index("-o") + 1] = f"results/{of_folder}"
        job = (written(arguments, tmp_path, monkeypatch) / "job.sh").read_text()

        assert of_folder == gpus
        assert f"#SBATCH --nodes={nodes}\n" in job
        assert f" --ntasks={gpus} " in job


@pytest.mark.skipif(not WRITE_UP.exists(), reason="the write-up is not here")
def test_what_the_page_says_of_the_write_up_is_there() -> None:
    text = WRITE_UP.read_text(encoding="utf-8")
    table = re.sub(r"\s*\|\s*", " ", text)

    for gpus, _nodes, _folder, layers, sequence, batch in SIZES:
        # GPUs, SeqLen, Layers, then parallelism, and GBS before GA at the end.
        assert re.search(rf" {gpus} {sequence} {layers} (?:\S+ ){{7}}{batch} 128 ", table), gpus
    for words in (
        "export STAGE_PATH=”",
        "change “cp -vf configure.sh launch.sh $STAGE_PATH” to “cp -vf configure.sh launch.sh $STAGE_PATH/cfg”",
        "$STAGE_PATH/configure.sh:/gsw/configure.sh",
        "/opt/Microsoft/ndv5-topo.xml",
        "export NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml",
        "grep train_step_timing *.out",
        "--container-writable",
        "--no-container-mount-home",
    ):
        assert words in text, words
    masks = re.search(r'mask_cpu:"([0-9a-f,]+)"', text)
    assert masks is not None
    assert masks[1] in PAGE


def test_the_masks_of_the_page_are_the_even_shares_that_busbw_computes() -> None:
    share = next(form.srun for form in rank_masks(PLATFORM).forms if form.cpus == "share")

    assert PAGE.count(share) >= 2
