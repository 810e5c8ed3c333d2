"""A snapshot that may be shown to everybody: names, serial numbers and addresses replaced, the same by the same."""

import getpass
import os
import re
import socket
from collections.abc import Callable

from busbw.model.host import Snapshot

_HEX = "0-9A-Fa-f"
# Control groups of Kubernetes spell them with underscores.
_UUID = re.compile(rf"(?<![{_HEX}])[{_HEX}]{{8}}(?:[-_][{_HEX}]{{4}}){{3}}[-_][{_HEX}]{{12}}(?![{_HEX}])")
# Hardware addresses of InfiniBand have 20 bytes, of Ethernet 6.
_MAC = re.compile(
    rf"(?<![{_HEX}:-])(?:(?:[{_HEX}]{{2}}:){{19}}|(?:[{_HEX}]{{2}}:){{5}}|(?:[{_HEX}]{{2}}-){{5}})[{_HEX}]{{2}}(?![{_HEX}:-])"
)
_GUID = re.compile(rf"(?<![{_HEX}:])(?:0x[{_HEX}]{{16}}|[{_HEX}]{{4}}(?::[{_HEX}]{{4}}){{3}})(?![{_HEX}:])")
_GROUP = rf"[{_HEX}]{{1,4}}"
_IPV6 = re.compile(rf"(?<![\w:.])(?:(?:{_GROUP}:){{7}}{_GROUP}|(?:{_GROUP}:){{1,6}}(?::{_GROUP}){{1,6}})(?![\w:])")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_CLOUD_ID = re.compile(r"\bocid1\.[\w.-]{10,200}|\bi-[0-9a-f]{8,17}\b")
_DIGEST = re.compile(rf"(?<![{_HEX}])[{_HEX}]{{32}}(?:[{_HEX}]{{32}})?(?![{_HEX}])")
_SERIAL = re.compile(
    r"(?P<before>(?i:serial(?:[ _]?(?:number|num|no))?|\bNID|\bGUID(?=: \d{6})|asset_?tag)"
    r"\"?\s*(?::|=|>|\"?\s*value=\")\s*)"
    r"(?P<value>[^\s\"'<>][^\"'<>\n]{0,100})"
)
_HOST = re.compile(r"(?P<before>\"HostName\"\s+value=\")(?P<value>[^\"]{1,255})")
_HOME = re.compile(r"(?P<before>/(?:home|users|Users)/)(?P<value>[^/\s:\"'<>]{1,64})")
# Tags that say which cloud a machine is of; any other is a number in somebody's inventory.
_CLOUD_TAGS = ("7783-7084-3265-9085-8269-3286-77", "oraclecloud.com", "amazon ec2")
_TAG_FILES = ("/sys/class/dmi/id/chassis_asset_tag", "/sys/class/dmi/id/board_asset_tag")
_NO_ADDRESSES = ("0.0.0.0", "127.0.0.1", "255.255.255.255")  # noqa: S104 - text, nothing is bound
_NO_VALUE = {"n/a", "none", "unknown", "0", ""}
# Variables that name other hosts, or this one.
_HOST_LISTS = (
    "NODELIST", "NODENAME", "SUBMIT_HOST", "IPADDR", "_HOSTS", "HOSTFILE", "HOSTID", "COMM_ID", "node_regex",
)  # fmt: skip
# Hosts and users called as everybody's, and names that mean something else wherever else they stand, as `node1` does: a
# NUMA node in every file of the kernel.
_COMMON = re.compile(
    r"(?:node|numa|cpu|gpu|nic|ib|eth|hsn|cxi|mlx|host|vm|localhost|linux|debian|nvidia|amd|intel|azure|aws)[-_]?\d*"
    r"|root|nobody|user|admin|ubuntu|opc|ec2-user|azureuser|default"
    # A machine called as what is in it: its GPUs and processors would be no more what they are.
    r"|a(?:10|30|40|100|800)|b[123]00|h(?:20|[128]00)|l[24]0s?|[pv]100|g[bh]\d{2,3}|mi\d{2,3}[ax]?|[dh]gx|epyc|xeon|grace|tesla|instinct|system|link|state|active"
    r"|infiniband|ethernet|microsoft|standard",
    re.IGNORECASE,
)
_KERNEL = ("/sys/", "/proc/")
_SHORTEST_NAME = 3


class _Cleaner:
    """Replaces everything in one text after the other; what was the same becomes the same."""

    def __init__(self, names: re.Pattern[str] | None) -> None:
        self._names = names
        self._numbers: dict[str, dict[str, int]] = {}
        # Longer forms first: the beginning of a UUID is no GUID, and a group of eight no MAC.
        self._rules: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
            (_UUID, lambda match: f"00000000-0000-0000-0000-{self._number('uuid', match[0]):012x}"),
            (_SERIAL, self._serial),
            (_MAC, self._mac),
            (_GUID, self._guid),
            (_IPV6, lambda match: f"2001:db8::{self._number('address6', match[0]):x}"),
            (_IPV4, self._address),
            (_CLOUD_ID, lambda match: f"id{self._number('id', match[0])}"),
            (_DIGEST, lambda match: f"digest{self._number('digest', match[0])}"),
            (_HOST, lambda match: f"{match['before']}host{self._number('host', match['value'])}"),
            (_HOME, lambda match: f"{match['before']}user{self._number('user', match['value'])}"),
        )

    def clean(self, text: str) -> str:
        """Return a text without names, numbers and addresses that identify."""
        text = self.clean_numbers(text)
        if self._names is None:
            return text
        return self._names.sub(lambda match: f"name{self._number('name', match[0])}", text)

    def clean_path(self, path: str) -> str:
        """Return a path without them; the kernel's are no names that anybody gave."""
        return self.clean_numbers(path) if path.startswith(_KERNEL) else self.clean(path)

    def clean_numbers(self, text: str) -> str:
        """Return a text without numbers and addresses; names stay."""
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        return text

    def _number(self, kind: str, value: str) -> int:
        """Return the number that a value has among those of its kind; the first is 1."""
        known = self._numbers.setdefault(kind, {})
        return known.setdefault(value.lower(), len(known) + 1)

    def _guid(self, match: re.Match[str]) -> str:
        digits = match[0].lower().removeprefix("0x").replace(":", "")
        # None, and masks of bits.
        if digits.strip("0") == "" or digits.startswith("ffff"):
            return match[0]
        digits = f"{self._number('guid', digits):016x}"
        return f"0x{digits}" if match[0].startswith("0x") else ":".join(digits[at : at + 4] for at in range(0, 16, 4))

    def _mac(self, match: re.Match[str]) -> str:
        address = match[0].replace("-", ":")
        if address.strip("0:") == "" or address.lower().strip("f:") == "":
            return match[0]
        digits = f"{self._number('mac', address):0{address.count(':') * 2}x}"
        return ":".join(["02", *(digits[at : at + 2] for at in range(0, len(digits), 2))])

    def _address(self, match: re.Match[str]) -> str:
        # Four numbers may be a version as well: 580.159.3.4 is not an address.
        if match[0] in _NO_ADDRESSES or any(int(part) > 255 for part in match[0].split(".")):
            return match[0]
        return f"192.0.2.{self._number('address', match[0]) % 256}"

    def _serial(self, match: re.Match[str]) -> str:
        value = match["value"].strip()
        if value.lower() in (*_NO_VALUE, *_CLOUD_TAGS):
            return match[0]
        return f"{match['before']}serial{self._number('serial', value)}"


def user() -> tuple[str, ...]:
    """Return the names under which this user and this host are known."""
    names = {socket.gethostname(), os.environ.get("SLURMD_NODENAME", "")}
    try:
        names.add(getpass.getuser())
    except (KeyError, OSError, ImportError):
        # A user without an entry in the user database, as in many containers.
        names.add(os.environ.get("USER", ""))
    return tuple(sorted(names - {""}))


def anonymous(snapshot: Snapshot, *, user: tuple[str, ...] = ()) -> Snapshot:
    """Return a snapshot without names, serial numbers, UUIDs, GUIDs and addresses. `user` are more names to replace.

    What was the same stays the same, in files and answers alike: ports of one adapter still share their GUID.
    """
    cleaner = _Cleaner(_names(snapshot.hostname, user))
    clean, clean_path = cleaner.clean, cleaner.clean_path
    return Snapshot(
        busbw_version=snapshot.busbw_version,
        captured=snapshot.captured,
        hostname="host1",
        root=snapshot.root,
        anonymous=True,
        container=snapshot.container,
        files=tuple(
            type(file)(path=clean_path(file.path), text=_file_text(file.path, file.text, clean), reason=file.reason)
            for file in snapshot.files
        ),
        links=tuple(
            type(link)(path=clean_path(link.path), target=cleaner.clean_numbers(link.target)) for link in snapshot.links
        ),
        answers=tuple(
            type(answer)(
                name=answer.name,
                argv=tuple(clean(word) for word in answer.argv),
                ended=answer.ended,
                exit_code=answer.exit_code,
                output=clean(answer.output),
                error=clean(answer.error),
            )
            for answer in snapshot.answers
        ),
        environment={
            name: "<hosts>" if any(part in name for part in _HOST_LISTS) else clean(value)
            for name, value in snapshot.environment.items()
        },
        libraries=tuple(
            type(one)(
                name=one.name,
                path=clean(one.path),
                version=one.version,
                found_by=one.found_by,
                unresolved=one.unresolved,
                kind=one.kind,
            )
            for one in snapshot.libraries
        ),
    )


def _file_text(path: str, text: str | None, clean: Callable[[str], str]) -> str | None:
    if text is None:
        return None
    if path in _TAG_FILES and text.strip().lower() not in (*_CLOUD_TAGS, *_NO_VALUE):
        return "<tag>\n"
    return clean(text)


def _names(hostname: str, user: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return the pattern of names that are replaced wherever they stand alone; None when there is none.

    A name of two letters is in many files something else.
    """
    names = {hostname, *user} | {name.partition(".")[0] for name in (hostname, *user)}
    wanted = sorted(name for name in names if len(name) >= _SHORTEST_NAME and _COMMON.fullmatch(name) is None)
    if not wanted:
        return None
    longest_first = sorted(wanted, key=len, reverse=True)
    return re.compile("|".join(_standing_alone(name) for name in longest_first), re.IGNORECASE)


def _standing_alone(name: str) -> str:
    """Return the pattern of a name, where it is not a common word also of gpu17-ib0 and gpu17.cluster.example.org."""
    if not any(letter.isdecimal() or letter == "-" for letter in name):
        return rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    return (
        rf"(?<![A-Za-z0-9]){re.escape(name)}(?:(?:\.[A-Za-z0-9-]{{1,63}}){{1,5}}\.[A-Za-z]{{2,20}}\b)?(?![A-Za-z0-9])"
    )
