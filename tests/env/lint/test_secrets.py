"""What is printed of a script holds none of its secrets: in text, in JSON and in a diff."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.cli.command import busbw
from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.model.settings import masked, plain

from .corpus import context_of

SECRETS = ("abcd1234abcd1234", "hf_abcdefghijklmnop1234", "hunter2hunter2", "with blanks", "user:pw", "topsecretpw")
SCRIPT = """#!/bin/bash
export WANDB_API_KEY="abcd1234abcd1234"; export NCCL_MIN_CHANNELS=8
mpirun -np 8 -x "HF_TOKEN=hf_abcdefghijklmnop1234" -x NCCL_BUFFSIZE=8M ./app --password hunter2hunter2
docker run -e "MY_PASSWORD=s3cret with blanks" -e NCCL_BUFFSIZE=8M img
curl https://user:pw@host/x && NCCL_BUFFSIZE=4M srun ./app
export NCCL_MIN_CHANNELS="$TOKEN_X" MYSQL_PWD=topsecretpw
"""


@pytest.mark.parametrize("option", [None, "--json", "--fix"])
def test_no_secret_is_printed(tmp_path: Path, option: str | None):
    file = tmp_path / "job.sh"
    file.write_text(SCRIPT)

    done = CliRunner().invoke(busbw, ["env", "lint", str(file), *([option] if option else [])])

    assert done.exit_code == 1
    assert "NCCL_BUFFSIZE" in done.output
    assert [secret for secret in SECRETS if secret in done.output] == []


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("A_TOKEN=abc NCCL_DEBUG=INFO", "A_TOKEN=*** NCCL_DEBUG=INFO"),
        ('"api_key": "abc", "b": 1', '"api_key": "***", "b": 1'),
        ("x --auth-token abc --nodes 2", "x --auth-token *** --nodes 2"),
        ("export PASSWORD='a b' X=1", "export PASSWORD='***' X=1"),
        ("NCCL_IB_PKEY=0x7fff OFI_NCCL_MR_KEY_SIZE=2", "NCCL_IB_PKEY=0x7fff OFI_NCCL_MR_KEY_SIZE=2"),
        ("export TOKEN=$OTHER PWD=/x", "export TOKEN=$OTHER PWD=/x"),
        ("cd $PWD; srun --ntasks-per-node=8 ./app -b 8", "cd $PWD; srun --ntasks-per-node=8 ./app -b 8"),
        ("sshpass -p abc ssh -p 22 h", "sshpass -p *** ssh -p 22 h"),
        ("sshpass -v -pabc ssh h", "sshpass -v -p*** ssh h"),
        ('docker login -u me -p "a b" nvcr.io', 'docker login -u me -p "***" nvcr.io'),
        ("curl -sS -u me:abc http://h/x", "curl -sS -u me:*** http://h/x"),
        ("redis-cli -h h -a abc ping", "redis-cli -h h -a *** ping"),
        ("sshpass -p $PW ssh h; mkdir -p /a", "sshpass -p $PW ssh h; mkdir -p /a"),
        (
            "docker run -p 80:80 -u 0:0 img; curl -o a:b http://h:80/x",
            "docker run -p 80:80 -u 0:0 img; curl -o a:b http://h:80/x",
        ),
    ],
)
def test_a_mask_is_as_long_as_what_it_hides_and_hides_nothing_else(line: str, shown: str):
    assert masked(line) == shown
    assert len(masked(line)) == len(line)


@pytest.mark.parametrize("line", ["sshpass -p abcXYZ ssh h", "docker login -p abcXYZ r", "curl -u me:abcXYZ http://h"])
def test_a_password_of_one_letters_option_is_not_kept(line: str):
    assert "abcXYZ" not in plain(line)
    assert plain("ssh -p 22 h; mkdir -p a; curl -o a:b http://h") == "ssh -p 22 h; mkdir -p a; curl -o a:b http://h"


ISOLATED = "# NVLink alone, without the NICs\nexport NCCL_IB_DISABLE=1\nmpirun -np 8 ./all_reduce_perf\n"


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("export NCCL_IB_DISABLE=1\nsrun -N 2 ./app\n", ["certain"]),
        (ISOLATED, ["possible"]),
        ("export NCCL_IB_DISABLE=1\nmpirun -np $N ./app\n", ["likely"]),
        ("export NCCL_IB_DISABLE=1\nsrun -N 1 ./app\n", []),
        ("mpirun -np 8 -H localhost:8 -x NCCL_IB_DISABLE=1 ./app\n", []),
    ],
)
def test_sockets_are_no_certain_fault_of_a_test_of_nvlink(text: str, sure: list[str]):
    found = lint(read(text, "job.sh"), context_of(platform="azure-nd-h100-v5"))

    assert [each.confidence for each in found if each.code == "ENV087"] == sure


def test_a_command_that_became_one_line_has_no_lines_below():
    (one,) = lint(read("mpirun -np 16 \\ --map-by ppr:8:node \\ ./app\n", "job.sh"), context_of())
    (more,) = lint(read("mpirun -np 16 \\ \n  --map-by ppr:8:node ./app\n", "job.sh"), context_of())

    assert "below" not in (one.effect or "")
    assert "the lines below" in (more.effect or "")
