"""Nothing outside the allow-list survives, and what decides the speed of an exchange does."""

import pytest
from tests.cost import check_cost

from busbw.formats.lines.prefix import scrub
from busbw.model.settings import WITHHELD, is_allowed, kept


@pytest.mark.parametrize(
    "line",
    [
        "HF_TOKEN=hf_S3CRET", "export AWS_SECRET_ACCESS_KEY=S3CRET/x+y", "+ WANDB_API_KEY=S3CRET python train.py",
        "[1,0]<stdout>:DB_PASSWORD=S3CRET words after", 'declare -x TOKEN="S3CRET with \\" spaces"',
        "mpirun -x HF_TOKEN=S3CRET -x NCCL_DEBUG=INFO ./all_reduce_perf", "http_proxy=http://me:S3CRET@proxy:3128",
        "git clone https://me:S3CRET@host/x", "Authorization: Bearer S3CRETS3CRET", "login --token S3CRET",
        '{"env":["PATH=/S3CRET","A=S3CRET"]}', '"password": "S3CRET"', "SLURM_JWT=S3CRET", "UCX_AUTH_TOKEN=S3CRET",
        "NCCL_DEBUG_FILE=/logs/hf_S3CRETS3CRETS3CRETS3CRET/%h.log", "UCX_IB_KEY=S3CRET", "FI_EFA_ACCESS_KEYS=S3CRET",
        "NCCL_NET_PLUGIN_URL=https://me:S3CRET@host/x", "OMPI_MCA_x=https://S3CRETS3CRETS3CRETS3CRET@host/x",
        "NCCL_TOPO_FILE=s3://b/topo.xml?X-Amz-Signature=S3CRETS3CRET", "NCCL_TUNER_CONFIG_FILE=/t/token=S3CRET/f",
        "mpirun -x NCCL_DEBUG_FILE=/x/ghp_S3CRETS3CRETS3CRETS3CRET ./a", "UCX_LOG_FILE=/l/glpat-S3CRETS3CRETS3CRET.txt",
        "NCCL_CONF_FILE=/a/eyJhbGciOiJI.S3CRETS3CRET.c2ln", "I_MPI_HYDRA_ENV_SECRET=S3CRET", "NCCL_HOST_PWD=S3CRET",
        "srun env MY_VAR='S3CRET and more' ./a", "2024-07-18T15:41:05Z MY_VAR=S3CRET",
    ],
)  # fmt: skip
def test_a_secret_is_withheld(line):
    assert "S3CRET" not in scrub(line)
    assert WITHHELD in scrub(line)


@pytest.mark.parametrize(
    "line",
    [
        "NCCL_DEBUG=INFO", "[1,0]<stdout>:UCX_TLS=rc,sm", "mpirun -x NCCL_ALGO=Ring -x FI_PROVIDER=efa ./a",
        "  8589934592    2147483648     float     sum      -1  40838.9  210.34  368.09       0",
        "# nccl-tests version 2.17.9 nccl-headers=22602 nccl-library=22602", "the token was lost",
        "NCCL_IB_PKEY=3", "UCX_IB_PKEY=0x8001", "NCCL_DEBUG_FILE=/home/me/logs/nccl.%h.%p.log", "FI_LOG_LEVEL=warn",
        "NCCL_CONF_FILE=/shared/task-force/high_speed.conf", "NCCL_SOCKET_IFNAME==eth0", "git@github.com:a/b.git",
        '{"size":4194304,"root":"    -1"}', "CUDA_VISIBLE_DEVICES=0,1,2,3",
    ],
)  # fmt: skip
def test_what_explains_a_result_stays(line):
    assert scrub(line) == line


def test_kept_variables_are_sorted_and_the_others_counted():
    assert kept(["PATH=/x", "UCX_TLS=rc", "NCCL_ALGO=Ring=1", "no variable", "NCCL_API_KEY=x"]) == (
        (("NCCL_ALGO", "Ring=1"), ("UCX_TLS", "rc")),
        3,
    )


def test_a_secret_of_an_allowed_family_is_no_exception():
    assert is_allowed("NCCL_DEBUG")
    assert not is_allowed("NCCL_NET_SECRET")
    assert kept(["NCCL_DEBUG_FILE=/logs/hf_0123456789abcdef0123/x", "UCX_KEY=x"]) == (
        (("NCCL_DEBUG_FILE", "/logs/<withheld>/x"),), 1
    )  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    [
        '"A=\\',
        '"A=',
        "token",
        "A=",
        "://a:",
        "_token_",
        "export A",
        "=",
        "'",
        "A" * 60 + "=",
        "sk-",
        "eyJ",
        "eyJaaaaaaaaa.",
        "hf_",
        "://aaaa",
    ],
)
def test_time_grows_with_length_only(pattern):
    check_cost(lambda: scrub(pattern * (400_000 // len(pattern))), most_s=4)
