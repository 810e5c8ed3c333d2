"""Sizes, times and rates: bytes and seconds inside, `4 MiB` and `389.2 GB/s` outside."""

import math
import re

from busbw.base.errors import InputError

_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_LARGEST_BYTES = 2**50
# Beyond this the decimal of a percentage is lost in floating point.
_LARGEST_SHARE = 1e9


def parse_size(text: str) -> int:
    """Return the bytes that `text` names, as nccl-tests reads sizes: `8`, `64K`, `1M`, `4GiB`; K is 1024.

    Raises InputError for anything else, and above 1 PiB.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a size", hint="write bytes, or a number with K, M or G: 8, 64K, 1M, 4G")
    size_bytes = int(match[1]) * _BINARY[match[2].upper()] if len(match[1]) <= 18 else _LARGEST_BYTES + 1
    if size_bytes > _LARGEST_BYTES:
        raise InputError(f"{text!r} is more than 1 PiB")
    return size_bytes


def format_size(size_bytes: int) -> str:
    """Return `size_bytes` in the largest binary unit that keeps it whole, else with two decimals."""
    for unit, bytes_per_unit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= bytes_per_unit:
            whole, rest = divmod(size_bytes, bytes_per_unit)
            return f"{whole} {unit}" if rest == 0 else f"{size_bytes / bytes_per_unit:.2f} {unit}"
    return f"{size_bytes} B"


def format_time(time_s: float) -> str:
    """Return `time_s` with three or four significant digits in ns, us, ms or s."""
    for unit, seconds_per_unit in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(time_s) >= seconds_per_unit:
            return f"{_digits(time_s / seconds_per_unit)} {unit}"
    return f"{time_s / 1e-9:.0f} ns"


def precise_time(time_s: float) -> str:
    """Return a time as `format_time` does, from 1 to 100 s with three decimals: steps of two jobs differ in those."""
    return f"{time_s:.3f} s" if 1 <= time_s < 100 else format_time(time_s)


def format_rate(rate_Bps: float) -> str:
    """Return `rate_Bps` in GB/s (1e9 bytes a second), MB/s below 0.1 GB/s."""
    if abs(rate_Bps) < 1e8:
        return f"{_digits(rate_Bps / 1e6)} MB/s"
    return f"{_digits(rate_Bps / 1e9)} GB/s"


def format_in(value: float, unit: str) -> str:
    """Return a value of a unit: `s` as a time, `B/s` as a rate, `msg/s` in thousands, others in four digits."""
    if unit == "s":
        return format_time(value)
    if unit == "msg/s":
        prefix, scale = next((each for each in (("M", 1e6), ("k", 1e3)) if abs(value) >= each[1]), ("", 1.0))
        return f"{_digits(value / scale)} {prefix}msg/s"
    return format_rate(value) if unit == "B/s" else f"{value:.4g} {unit}"


def percent_range(low: float, high: float) -> str:
    """Return `96.7 to 97.8 %`: an interval whose ends are rounded outward, so that it never looks narrower."""
    if not (abs(low) < _LARGEST_SHARE and abs(high) < _LARGEST_SHARE):
        return f"{100 * low:.1f} to {100 * high:.1f} %"
    # A millionth of a percent is the rounding of the arithmetic.
    least, most = math.floor(1000 * low + 1e-5), math.ceil(1000 * high - 1e-5)
    return f"{least / 10:.1f} to {most / 10:.1f} %"


# Of the ends of an interval of rates, in bytes a second.
_LEAST_IN_GBps = 1e8


def rate_range(low_Bps: float, high_Bps: float) -> str:
    """Return `301 to 388`, in GB/s without the unit; with units where the lower end is below 0.1 GB/s."""
    if low_Bps < _LEAST_IN_GBps:
        return f"{format_rate(low_Bps)} to {format_rate(high_Bps)}"
    return " to ".join(f"{each / 1e9:.3g}" if each < 1e11 else f"{each / 1e9:.0f}" for each in (low_Bps, high_Bps))


def signed_percent(share: float) -> str:
    """Return a difference in percent with its sign and one decimal."""
    return f"{100 * share:+.1f} %"


def _digits(value: float) -> str:
    magnitude = abs(value)
    decimals = 2 if magnitude < 10 else 1 if magnitude < 1000 else 0
    return f"{value:.{decimals}f}"


def short_size(size_bytes: int) -> str:
    """Return a size as options take it: `64K`, `1G`, or bytes."""
    for unit, unit_bytes in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if size_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes}{unit}"
    return str(size_bytes)
