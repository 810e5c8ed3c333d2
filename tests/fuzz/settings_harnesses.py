"""Harnesses of what sets variables, and of what NCCL logs."""

import contextlib
import json
from collections.abc import Callable
from functools import cache

from tests.doctor.made import Job

from busbw.base.errors import InputError
from busbw.env.lint import lint
from busbw.env.reading import LANGUAGES, read, text_of
from busbw.env.rules.subject import CheckContext
from busbw.facts.platforms import find_platform
from busbw.logs.diagnosis import diagnose
from busbw.logs.reader import LogReader

_SCRIPT = b"""#!/bin/bash
#SBATCH -N 2 --export=ALL,NCCL_DEBUG=INFO
export NCCL_IB_HCA==mlx5_0,mlx5_1 NCCL_ALGO='Ring;allreduce:Tree'
ARGS=(-x NCCL_IB_HCA --mca pml ucx)
cat > /etc/nccl.conf <<EOF
NCCL_BUFFSIZE=8M
EOF
if true; then mpirun -np 16 "${ARGS[@]}" --bind-to numa ./a.out; fi
"""
_MANIFEST = b"""apiVersion: kubeflow.org/v2beta1
kind: MPIJob
spec:
  mpiReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - env: [{name: NCCL_DEBUG, value: WARN}]
              command: [bash, -c, "export UCX_TLS=rc; srun --export=A=b,C ./a"]
"""
_PROGRAM = b"""import os
HCA = "mlx5_0," + "mlx5_1"
DEVICES = {"BM.GPU.H100.8": ["mlx5_0"], "NCCL_ALGO": ["Ring", "Tree"]}
def run(n, sharp):
    cmd = f"mpirun -np {n} -x NCCL_IB_HCA={HCA} "
    if sharp:
        cmd += "-x %s=%d" % ("NCCL_COLLNET_ENABLE", 1)
    for algo in ("Ring", "Tree"):
        os.environ["NCCL_ALGO"] = algo
    args = ["srun", "-N2", *["--export=ALL,NCCL_DEBUG={}".format("INFO")]]
    args.append("./a")
    return os.system(cmd + " ./a"), args
"""
_OTHERS = (
    b"FROM a\nENV NCCL_ALGO=Ring \\\n  UCX_TLS rc\nRUN <<EOF\nexport A=b\nEOF\n",
    b"Bootstrap: docker\n%environment\n  export FI_PROVIDER=cxi\n%runscript\n  exec ./a\n",
    b'#%Module\nsetenv NCCL_NET "AWS Libfabric"\nunsetenv NCCL_ALGO\n',
    b'setenv("NCCL_PROTO", [[Simple]])\npushenv("UCX_TLS", "rc")\n',
    b"# a\n```bash\nexport NCCL_ALGO=Ring\n```\n  ~~~\n  $ srun ./a\n  ~~~\n",
    b"NCCL_DEBUG=WARN\nPATH=/bin\nOMPI_MCA_btl=^openib\n",
    b"modes:\n  a:\n    env: {NCCL_DEBUG: INFO, NCCL_ALGO: [Ring, Tree]}\n    args: [-x, UCX_TLS=rc]\n",
    b"Some words stand here before all of the commands.\n\nmpirun -np 2 \\\n\n  -x NCCL_DEBUG=INFO ./a\nfi\n",
    _PROGRAM,
)


@cache
def _context() -> CheckContext:
    return CheckContext(platform=find_platform("azure-ndv4").platform)


def _settings(data: bytes) -> int:
    """Read a text in every language it may be in, as told or as found, and lint it beside a platform."""
    text = text_of(data)
    found = 0
    for language in (None, *LANGUAGES):
        with contextlib.suppress(InputError):
            found += len(lint(read(text, "job", language), _context()))
    return found


def _log(data: bytes) -> object:
    reader = LogReader()
    for start in range(0, len(data), 61):
        reader.feed(data[start : start + 61])
    reader.end_source()
    return diagnose(reader, ("job.log",))


SETTINGS_HARNESSES: dict[str, Callable[[bytes], object]] = {"settings": _settings, "nccl_log": _log}
SETTINGS_SEEDS: dict[str, tuple[bytes, ...]] = {
    "settings": (_SCRIPT, _MANIFEST, *_OTHERS),
    "nccl_log": (
        Job().text().encode(),
        Job(network="Socket", between="NET/Socket/0").text().encode(),
        # As a collector keeps it, and two launches in one log.
        b"\n".join(json.dumps({"log": f"{line}\n", "time": "2026-11-21T10:00:00Z"}).encode() for line in Job().lines()),
        (Job().text() + Job(hosts=3).text().replace("0x77aa", "0x88bb")).encode(),
    ),
}
