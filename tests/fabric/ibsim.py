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


def fat_tree(leaves: int, hosts: int, spines: int, narrow: str = "", width: str = "4xHDR") -> str:
    """Return a net for ibsim: leaves with hosts `n0`..., a cable from each leaf to each spine; `narrow` has one lane."""
    first_lid = 1 + leaves + spines
    blocks = []
    for leaf in range(leaves):
        lines = [f'Switch\t{hosts + spines} "S-leaf{leaf}"\t\t# "leaf{leaf}" enhanced port 0 lid {1 + leaf} lmc 0']
        for at in range(hosts):
            name = f"n{leaf * hosts + at}"
            rate = "1xHDR" if name == narrow else width
            lines.append(f'[{at + 1}]\t"H-{name}"[1]\t\t# "{name} mlx5_0" lid {first_lid + leaf * hosts + at} {rate}')
        for spine in range(spines):
            lines.append(
                f'[{hosts + 1 + spine}]\t"S-spine{spine}"[{leaf + 1}]\t\t# "spine{spine}" lid {1 + leaves + spine} {width}'
            )
        blocks.append("\n".join(lines))
    for spine in range(spines):
        lines = [
            f'Switch\t{leaves} "S-spine{spine}"\t\t# "spine{spine}" enhanced port 0 lid {1 + leaves + spine} lmc 0'
        ]
        lines += [
            f'[{leaf + 1}]\t"S-leaf{leaf}"[{hosts + 1 + spine}]\t\t# "leaf{leaf}" lid {1 + leaf} {width}'
            for leaf in range(leaves)
        ]
        blocks.append("\n".join(lines))
    for number in range(leaves * hosts):
        leaf, at = divmod(number, hosts)
        name = f"n{number}"
        rate = "1xHDR" if name == narrow else width
        blocks.append(
            f'Hca\t1 "H-{name}"\t\t# "{name} mlx5_0"\n'
            f'[1]\t"S-leaf{leaf}"[{at + 1}]\t\t# lid {first_lid + number} lmc 0 "leaf{leaf}" lid {1 + leaf} {rate}'
        )
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
