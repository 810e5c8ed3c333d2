"""What sshd and ssh of the hosts need: keys of the lab's own, and files that name them and nothing of the user's."""

import subprocess
from pathlib import Path

_SERVER = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
MaxStartups 100
"""
_CLIENT = """\
User root
IdentityFile {folder}/key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile none
StrictHostKeyChecking yes
BatchMode yes
# The default, which resists quantum computers, takes most of the time of a connection.
KexAlgorithms curve25519-sha256
ConnectTimeout 10
LogLevel ERROR
"""


def write(folder: Path, hosts: dict[str, str]) -> None:
    """Write keys and configurations for hosts, each a name with its address, into a new folder."""
    folder.mkdir(mode=0o700)
    for name in ("host_key", "key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    (folder / "authorized_keys").write_bytes((folder / "key.pub").read_bytes())
    names = ",".join([*hosts, *hosts.values()])
    (folder / "known_hosts").write_text(f"{names} {(folder / 'host_key.pub').read_text(encoding='ascii')}")
    (folder / "server").write_text(_SERVER.format(folder=folder), encoding="ascii")
    (folder / "config").write_text(_CLIENT.format(folder=folder), encoding="ascii")


def server(folder: Path) -> tuple[str, ...]:
    """Return the command of the sshd of one host."""
    return "/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "server")
