"""Processors by the numbers that makers and NCCL give them."""

_AMD = "AuthenticAMD"
# AMD's extended family is added to this one.
_AMD_BASE = 15


def real_family(vendor: str | None, family: int | None) -> int | None:
    """Return a processor's true family: NCCL up to 2.30 writes AMD's 23 and 25 as 143 and 175.

    It adds the extended family, times 16.
    """
    if vendor == _AMD and family is not None and family > _AMD_BASE and family % 16 == _AMD_BASE:
        return _AMD_BASE + family // 16
    return family
