"""Numbers and sizes as C reads them from text, and as a person means them."""

import re

from busbw.base.value import Value

_C_SPACE = " \t\n\v\f\r"
_HEX = re.compile(r"0[xX]([0-9a-fA-F]+)", re.ASCII)
_OCTAL = re.compile(r"0([0-7]*)", re.ASCII)
_DECIMAL = re.compile(r"[1-9][0-9]*", re.ASCII)
_SUFFIX = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([kmgt])(i?b)?", re.ASCII | re.IGNORECASE)
_SCIENTIFIC = re.compile(r"(\d{1,9})(?:\.0*)?e\+?(\d{1,2})", re.ASCII | re.IGNORECASE)
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# More digits than this are no 64-bit integer in any base; Python itself refuses to read very many.
_MOST_DIGITS = 64
_LARGEST = 2**63 - 1


class Numeral(Value, kw_only=True, frozen=True):
    """The integer at the beginning of a text, as strtoll with base 0 takes it."""

    # None: it does not fit into 64 bits.
    value: int | None
    # 8, 10 or 16.
    base: int
    # The digits as written, with a sign and 0x, and what comes after them and is not looked at.
    digits: str
    rest: str


def leading_integer(text: str) -> Numeral | None:
    """Return the integer that `text` begins with: 0x is hexadecimal, a leading 0 octal. None: it begins with none."""
    body = text.lstrip(_C_SPACE)
    sign = body[:1] if body[:1] in ("+", "-") else ""
    unsigned = body[len(sign) :]
    for base, pattern in ((16, _HEX), (8, _OCTAL), (10, _DECIMAL)):
        match = pattern.match(unsigned)
        if match is not None:
            digits = match[0] if base == 10 else match[1]
            rest = unsigned[match.end() :]
            return Numeral(value=_value(sign, digits, base), base=base, digits=sign + match[0], rest=rest)
    return None


def _value(sign: str, digits: str, base: int) -> int | None:
    if len(digits.lstrip("0")) > _MOST_DIGITS:
        return None
    value = int(digits or "0", base) * (-1 if sign == "-" else 1)
    return value if -_LARGEST - 1 <= value <= _LARGEST else None


def meant_bytes(text: str) -> int | None:
    """Return the number that a person means by `8M`, `512 KiB`, `1.5g` or `1e6`; None where that is not plain."""
    match = _SUFFIX.fullmatch(text.strip())
    if match is not None:
        whole, fraction, unit = match[1], match[2] or "", match[3].lower()
        scaled, rest = divmod(int(whole + fraction) * _BINARY[unit], 10 ** len(fraction))
        return scaled if rest == 0 and scaled <= _LARGEST else None
    match = _SCIENTIFIC.fullmatch(text.strip())
    if match is not None:
        value = int(match[1]) * 10 ** int(match[2])
        return value if value <= _LARGEST else None
    return None


def suffixed_bytes(text: str) -> int | None:
    """Return the bytes of a number with at most k, m, g or t and b behind it, as UCX takes it; None: it is none."""
    if re.fullmatch(r"\d{1,18}[bB]?", text, re.ASCII):
        return int(text.rstrip("bB"))
    match = re.fullmatch(r"(\d{1,15})([kmgtKMGT])[bB]?", text, re.ASCII)
    return int(match[1]) * _BINARY[match[2].lower()] if match is not None else None
