"""PCI addresses as people and programs write them, in one form."""

import re

_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-9a-f])")


def normal_bus_id(text: str) -> str:
    """Return a bus id as 0000:0f:00.0, in lower case; what is none, such as `fffffff:ffff:ff`, in lower case only.

    NCCL compares bus ids of a file with its own letter by letter, and they are as these here.
    """
    lower = text.strip().lower()
    match = _BUS_ID.fullmatch(lower)
    if match is None:
        return lower
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
