"""One rank: says where it runs and whom it reaches, as one line of JSON."""

import json
import os
import socket
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
hosts = world.allgather(socket.gethostname())
line = {
    "rank": world.rank,
    "ranks": world.size,
    "host": socket.gethostname(),
    "hosts": hosts,
    "cpus": sorted(os.sched_getaffinity(0)),
    "library": MPI.Get_library_version().splitlines()[0].strip("\0 "),
    "variable": os.environ.get("LAB_VARIABLE"),
}
# Lines of several ranks must not be mixed: one write each.
sys.stdout.write(json.dumps(line) + "\n")
sys.stdout.flush()
