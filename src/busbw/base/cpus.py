"""Sets of CPUs as the kernel's lists (`0-3,8`) and as hexadecimal masks (`ffff,00000000`)."""

import re

# No Linux counts further; a longer list or mask is a mistake or an attack.
MOST_CPUS = 65_536
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_WORD_BITS = 32


def parse_cpu_list(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a kernel list, ascending; () for an empty one, None when it is not a list."""
    numbers: set[int] = set()
    if not text.strip():
        return ()
    # A list may say one thing ten thousand times.
    for part in set(text.strip().split(",")):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last >= MOST_CPUS:
            return None
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def format_cpu_list(cpus: tuple[int, ...]) -> str:
    """Return CPUs as a kernel list: `0-3,8`; empty for none."""
    parts: list[str] = []
    ordered = sorted(set(cpus))
    start = 0
    for place, cpu in enumerate(ordered):
        if place + 1 == len(ordered) or ordered[place + 1] != cpu + 1:
            parts.append(f"{ordered[start]}-{cpu}" if ordered[start] != cpu else str(cpu))
            start = place + 1
    return ",".join(parts)


def parse_mask(text: str) -> tuple[int, ...] | None:
    """Return the CPUs of 32-bit hexadecimal words, the most significant first; None when it is not a mask.

    A word that is shorter than eight digits counts as its number, as NCCL and the kernel read it.
    """
    words = text.strip().split(",")
    if len(words) > MOST_CPUS // _WORD_BITS or not all(re.fullmatch(r"[0-9a-fA-F]{1,8}", word) for word in words):
        return None
    bits = 0
    for word in words:
        bits = bits << _WORD_BITS | int(word, 16)
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)


def format_mask(cpus: tuple[int, ...], words: int = 1) -> str:
    """Return CPUs as words of eight hexadecimal digits, the most significant first, at least `words` of them."""
    bits = mask_bits(cpus)
    count = max(words, -(-bits.bit_length() // _WORD_BITS), 1)
    return ",".join(f"{bits >> _WORD_BITS * place & 0xFFFFFFFF:08x}" for place in reversed(range(count)))


def mask_bits(cpus: tuple[int, ...]) -> int:
    """Return CPUs as one number with a bit for each."""
    bits = 0
    for cpu in set(cpus):
        bits |= 1 << cpu
    return bits
