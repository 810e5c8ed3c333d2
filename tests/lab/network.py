"""The network between hosts: a bridge for each leaf, a bridge for the spine, a cable to each host."""

import subprocess
from collections.abc import Iterable, Sequence

from tests.patience import wait_until

from .host import Host
from .processes import children_of

# Hosts of a leaf.
PER_LEAF = 2
_PREFIX = "10.77"


def address_of(number: int) -> str:
    """Return the address of host n`number`; its third part is the leaf."""
    return f"{_PREFIX}.{number // PER_LEAF}.{number + 10}"


def _hardware(number: int) -> str:
    return f"address 02:00:00:00:00:{number:02x}"


class Network:
    """Bridges in a network namespace of their own."""

    def __init__(self, hosts: int, per_leaf: int = PER_LEAF) -> None:
        self._per_leaf = per_leaf
        # `sleep` holds the namespace, until the process that runs the tests ends.
        hold = ["unshare", "--net", "--fork", "--kill-child", "--", "sleep", "infinity"]
        self._holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *hold], stdin=subprocess.DEVNULL)
        wait_until(lambda: bool(children_of(self._holder.pid)), 30, "the network namespace")
        (self._inside,) = children_of(self._holder.pid)
        lines = ["link add spine type bridge", "link set spine up"]
        for leaf in range((hosts + per_leaf - 1) // per_leaf):
            lines += [
                f"link add leaf{leaf} type bridge",
                f"link set leaf{leaf} up",
                f"link add up{leaf} type veth peer name down{leaf}",
                f"link set up{leaf} master leaf{leaf} up",
                f"link set down{leaf} master spine up",
            ]
        self._ip(lines)

    @property
    def process_ids(self) -> tuple[int, int]:
        """Return the ids of what must not outlive the lab."""
        return self._holder.pid, self._inside

    def plug_in(self, numbers: Iterable[int], hosts: dict[int, Host]) -> None:
        """Connect hosts, none of which is connected, and give them their addresses."""
        chosen = tuple(numbers)
        for number in chosen:
            # What is left of a host that has ended goes away with its namespace, a moment later.
            subprocess.run([*self._enter, "ip", "link", "del", f"port{number}"], stderr=subprocess.DEVNULL, check=False)
        lines = []
        for number in chosen:
            lines += [
                # A host keeps its hardware address when it starts anew: others remember it for a while.
                f"link add port{number} type veth peer name eth0 {_hardware(number)} netns {hosts[number].init}",
                f"link set port{number} master leaf{number // self._per_leaf} up",
            ]
        self._ip(lines)
        for number in chosen:
            inside = [f"address add {address_of(number)}/16 dev eth0", "link set eth0 up"]
            _batch([*_enter(hosts[number].init), "ip", "-batch", "-"], inside)

    def set_link(self, number: int, state: str) -> None:
        """Put the cable of a host `up` or `down`; the host sees no carrier when it is down."""
        self._ip([f"link set port{number} {state}"])

    def shape(self, number: int, host: Host, rate: str | None, ways: Sequence[str] = ("sends", "receives")) -> None:
        """Limit a cable to a rate such as `50mbit`, each of `ways` of its host by itself; None: no limit."""
        if "receives" in ways:
            _limit([*self._enter, "tc"], f"port{number}", rate)
        if "sends" in ways:
            _limit([*_enter(host.init), "tc"], "eth0", rate)

    def shape_uplink(self, leaf: int, rate: str | None) -> None:
        """Limit what goes from a leaf to the spine, and what comes from there, each to a rate; None: no limit."""
        for device in (f"up{leaf}", f"down{leaf}"):
            _limit([*self._enter, "tc"], device, rate)

    def close(self) -> None:
        """Remove the bridges."""
        self._holder.kill()
        self._holder.wait()

    @property
    def _enter(self) -> list[str]:
        return _enter(self._inside)

    def _ip(self, lines: list[str]) -> None:
        _batch([*self._enter, "ip", "-batch", "-"], lines)


def _limit(tc: list[str], device: str, rate: str | None) -> None:
    if rate is None:
        words = ["qdisc", "del", "dev", device, "root"]
    else:
        limit = ["tbf", "rate", rate, "burst", "64kb", "latency", "50ms"]
        words = ["qdisc", "replace", "dev", device, "root", *limit]
    subprocess.run([*tc, *words], check=True, capture_output=True)


def _enter(process_id: int) -> list[str]:
    return ["nsenter", f"--target={process_id}", "--net", "--"]


def _batch(command: list[str], lines: list[str]) -> None:
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)
