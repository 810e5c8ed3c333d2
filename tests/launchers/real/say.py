"""What each rank runs: it writes what it was started with into a file of the run directory."""

import json
import os
import socket
import sys
from pathlib import Path

NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")

rank = next((os.environ[name] for name in NUMBERS if name in os.environ), str(os.getpid()))
said = {
    "rank": int(rank),
    "host": socket.gethostname(),
    "cpus": sorted(os.sched_getaffinity(0)),
    "folder": str(Path.cwd()),
    "words": sys.argv[2:],
    "env": dict(os.environ),
}
Path(sys.argv[1], f"said.{socket.gethostname()}.{rank}.json").write_text(json.dumps(said), encoding="utf-8")
