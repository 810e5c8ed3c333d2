"""A simulated InfiniBand: ibsim with a subnet manager over it, and the tools that administrators use.

The stand-in for the umad device is preloaded for one command at a time.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from tests.patience import wait_until

PROGRAMS = {"ibsim": "ibsim-utils", "opensm": "opensm", "ibnetdiscover": "infiniband-diags"}
_TIMEOUT_S = 60


def fat_tree(leaves: int, hosts: int, spines: int, narrow: str) -> str:
    """Return a net for ibsim: hosts `n0`... below leaves, leaves below spines; the cable of `narrow` has one lane."""

    def lid(kind: str, number: int) -> int:
        return 1 + number + {"leaf": 0, "spine": leaves, "host": leaves + spines}[kind]

    def switch(kind: str, number: int, ports: int) -> str:
        return f'Switch\t{ports} "S-{kind}{number}"\t# "{kind}{number}" enhanced port 0 lid {lid(kind, number)} lmc 0'

    def far(port: int, kind: str, number: int, far_port: int) -> str:
        return f'[{port}]\t"S-{kind}{number}"[{far_port}]\t# "{kind}{number}" lid {lid(kind, number)} 4xHDR'

    blocks = []
    for leaf in range(leaves):
        lines = [switch("leaf", leaf, hosts + spines)]
        for at in range(hosts):
            number = leaf * hosts + at
            rate = "1xHDR" if narrow == f"n{number}" else "4xHDR"
            lines.append(f'[{at + 1}]\t"H-n{number}"[1]\t# "n{number} mlx5_0" lid {lid("host", number)} {rate}')
            ends = f'lid {lid("host", number)} lmc 0 "leaf{leaf}" lid {lid("leaf", leaf)} {rate}'
            blocks.append(f'Hca\t1 "H-n{number}"\t# "n{number} mlx5_0"\n[1]\t"S-leaf{leaf}"[{at + 1}]\t# {ends}')
        lines += [far(hosts + 1 + spine, "spine", spine, leaf + 1) for spine in range(spines)]
        # The tools are attached to the first node.
        blocks.insert(leaf, "\n".join(lines))
    for spine in range(spines):
        lines = [switch("spine", spine, leaves)]
        blocks.append("\n".join([*lines, *(far(leaf + 1, "leaf", leaf, hosts + 1 + spine) for leaf in range(leaves))]))
    return "\n\n".join(blocks) + "\n"


@dataclass(frozen=True, kw_only=True)
class SimulatedFabric:
    """A simulator that runs. `console`: what is typed into it."""

    folder: Path
    environment: dict[str, str]
    console: IO[str]
    output: Path

    def ask(self, *argv: str) -> str:
        """Return what a tool prints about the fabric."""
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout

    def inject(self, node: str, port: int, field: str, value: int) -> None:
        """Set a counter of a port, and wait until the simulator has done so."""
        self.console.write(f'PerformanceSet "{node}"[{port}] PortCounters.{field}={value}\n')
        self.console.flush()
        said = f"{node}[{port}] PortCounters.{field} has been set to {value}"
        wait_until(lambda: said in self.output.read_text(errors="replace"), _TIMEOUT_S, f"ibsim to say {said}")


@contextmanager
def simulated(folder: Path, net: str) -> Iterator[SimulatedFabric]:
    """Yield a fabric whose ports a subnet manager has set up; its processes end with it."""
    library = next(iter(sorted(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))), None)
    missing = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    if missing or library is None:
        reason = f"missing packages: apt-get install {' '.join(missing or ['ibsim-utils'])}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    (folder / "net").write_text(net)
    own = {**os.environ, "IBSIM_SOCKNAME": f"busbw-{os.getpid()}-{folder.name}"[:60]}
    output = folder / "ibsim.out"
    with output.open("wb") as said:
        simulator = subprocess.Popen(
            ["ibsim", "-s", "net"], cwd=folder, env=own, stdin=subprocess.PIPE, stdout=said, stderr=said, text=True
        )
    assert simulator.stdin is not None
    try:
        wait_until(lambda: "simulator ready" in output.read_text(errors="replace"), _TIMEOUT_S, "ibsim")
        environment = {
            **own,
            "LD_PRELOAD": str(library),
            "OSM_TMP_DIR": str(folder),
            "OSM_CACHE_DIR": str(folder),
        }
        fabric = SimulatedFabric(folder=folder, environment=environment, console=simulator.stdin, output=output)
        fabric.ask("opensm", "-o", "-f", str(folder / "opensm.log"))
        yield fabric
    finally:
        simulator.kill()
        simulator.wait(_TIMEOUT_S)
        simulator.stdin.close()
