"""The PCI configuration space of one function: its access control (ACS)."""

from typing import Final

_EXTENDED: Final = 0x100
_SPACE_BYTES: Final = 4096
_ACS_ID: Final = 0x000D
# As many four-byte capabilities as fit behind the first 256 bytes: a list that is longer goes in circles.
_MOST_CAPABILITIES: Final = 960
UNREAD: Final = "unread"
NONE: Final = "none"


def acs_of(config: bytes) -> str:
    """Return the ACS control word as four hexadecimal digits, `none` for a function without, else `unread`.

    Only root is shown more than the first 64 bytes, and only a PCIe machine has more than 256.
    """
    if len(config) < _SPACE_BYTES:
        return UNREAD
    at = _EXTENDED
    for _place in range(_MOST_CAPABILITIES):
        header = int.from_bytes(config[at : at + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return NONE
        if header & 0xFFFF == _ACS_ID:
            return f"{int.from_bytes(config[at + 6 : at + 8], 'little'):04x}"
        at = header >> 20
        if at < _EXTENDED or at > _SPACE_BYTES - 8:
            return NONE
    return NONE


def acs_word(text: str | None) -> int | None:
    """Return the control word that `acs_of` wrote; None for none and for what is no such word."""
    is_word = text is not None and len(text) == 4 and all(digit in "0123456789abcdef" for digit in text)
    return int(text, 16) if is_word and text is not None else None
