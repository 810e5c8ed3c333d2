"""Numbers in attributes, as C's strtol and NCCL's own functions read them."""

import re

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_REAL = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WORD = re.compile(r"[ \t\n\v\f\r]*(?:0[xX])?([0-9a-fA-F]+)")
_LONGEST = 253
# CPU_SETSIZE of the C library, 1024, in words.
_MOST_WORDS = 32


def read_integer(text: str | None) -> int | None:
    """Return the number a value begins with, as strtol with base 0 reads it: `0x2a`, `052` and `42 GT/s` are 42.

    None where there is no digit, which NCCL takes for 0, and where a C int cannot hold the number.
    """
    match = _INTEGER.match(text[:_LONGEST]) if text else None
    if match is None:
        return None
    sign, hexadecimal, octal, decimal = match.groups()
    number = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    number = -number if sign == "-" else number
    return number if -(2**31) <= number < 2**31 else None


def read_real(text: str | None) -> float | None:
    """Return the number a value begins with, None where it begins with none or with one that is not finite."""
    match = _REAL.match(text[:_LONGEST]) if text else None
    if match is None:
        return None
    number = float(match[0])
    return number if abs(number) < float("inf") else None


def read_cpus(text: str | None) -> tuple[int, ...] | None:
    """Return the CPUs of an `affinity`, ascending, as NCCL reads it; None where there is none.

    NCCL takes what it can of each word: digits up to the first other character, the last 32 bits of too many, 0 of
    none. It skips empty words, and drops what comes after 32 words.
    """
    if text is None:
        return None
    bits = 0
    for word in [word for word in text.split(",") if word][:_MOST_WORDS]:
        match = _WORD.match(word)
        bits = bits << 32 | (int(match[1], 16) & 0xFFFFFFFF if match else 0)
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)
