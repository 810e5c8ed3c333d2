"""`busbw env recommend`: a page on standard output, hints beside it, an exit code for scripts."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.show.text.recommendation import assigned


def busbw(*arguments: str, data: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "HOME": "/nonexistent"}
    return warm_busbw(
        "env",
        "recommend",
        *arguments,
        env=environment | ({"BUSBW_DATA": str(data)} if data is not None else {}),
    )


def test_a_page_says_what_why_at_what_cost_and_by_whom() -> None:
    done = busbw("--platform", "azure-nd-h100-v5", "--goal", "training", "--nccl", "2.26.5")

    assert done.returncode == 0
    assert '  NCCL_TOPO_FILE="/opt/microsoft/ndv5/topo.xml"\n' in done.stdout
    assert "costs   32 of the GPU's 132 multiprocessors" in done.stdout
    assert '  NCCL_P2P_NET_CHUNKSIZE="524288"' in done.stdout
    assert "2097152 is published; NCCL takes an eighth of NCCL_BUFFSIZE at most" in done.stdout
    assert "published, and left out" in done.stdout
    assert "  pinning-article       Microsoft Community Hub 4371810" in done.stdout
    assert done.stderr == "ready to paste: busbw env export --format sh, with the same options\n"


def test_json_holds_everything_and_nothing_else_is_printed() -> None:
    done = busbw("--platform", "isambard-ai-phase2", "--json")

    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["platform"] == "isambard-ai-phase2"
    assert next(each for each in found["settings"] if each["name"] == "NCCL_NET")["value"] == "AWS Libfabric"


def test_nothing_to_recommend_is_exit_code_4() -> None:
    done = busbw("--platform", "nvidia-dgx-a100")

    assert done.returncode == 4
    assert "no settings are published for nvidia-dgx-a100" in done.stdout


def test_a_machine_without_gpus_gets_what_its_mpi_should_be_told() -> None:
    done = busbw("--platform", "azure-hbv4", "--goal", "latency")

    assert done.returncode == 0
    assert done.stdout.startswith("azure-hbv4: 2 nodes, for latency, hpcx\n")
    assert 'UCX_NET_DEVICES="mlx5_ib0:1"' in done.stdout
    assert "cannot tell" not in done.stdout


def test_an_mpi_that_is_none_is_bad_input() -> None:
    done = busbw("--platform", "azure-hbv4", "--mpi", "mvapich3")

    assert done.returncode == 2
    assert "no MPI that is known; maybe: mvapich" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--platform", "azure-ndv4", "--goal", "shapr"), "not a goal; maybe: sharp"),
        (("--platform", "azure-ndv4", "--collective", "alreduce"), "maybe: all_reduce"),
        (("--platform", "azure-ndv4", "--size", "much"), "is not a size"),
        (("--platform", "azure-ndv4", "--nccl", "new"), "is not a version"),
        (("--platform", "azure-ndv4", "--follow", "me"), "says nothing"),
        (("--platform", "azure-ndv4", "--nodes", "0"), "0 nodes"),
        (("--platform", "azure-ndv9"), "no platform"),
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(arguments: tuple[str, ...], words: str) -> None:
    done = busbw(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "hint: " in done.stderr


def test_what_a_site_writes_cannot_move_the_cursor_or_leave_the_quotes(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "ours.toml").write_text(
        'id = "ours"\nnames = ["ours"]\nprovider = "me"\nkind = "gpu"\nextends = ["generic"]\n'
        '[[settings]]\nname = "NCCL_SOCKET_IFNAME"\nvalue = "a\\"; $(reboot) `x` \\u001b[2J"\nscope = "nccl"\n'
        'reason = "\\u001b[31mred"\nsource = ["me"]\nchecked = "2026-11"\n'
        '[[sources]]\nid = "me"\nreference = "here"\n',
        encoding="utf-8",
    )

    done = busbw("--platform", "ours", data=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert 'NCCL_SOCKET_IFNAME="a\\"; \\$(reboot) \\`x\\`' in done.stdout


def test_a_value_is_quoted_for_a_shell_and_one_to_unset_is_unset() -> None:
    assert assigned("NCCL_IB_HCA", "=mlx5_0") == 'NCCL_IB_HCA="=mlx5_0"'
    assert assigned("A", 'x"$y`\\') == 'A="x\\"\\$y\\`\\\\"'
    assert assigned("A", None) == "unset A"
