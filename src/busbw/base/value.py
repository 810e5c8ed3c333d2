"""The form every value has: frozen, keyword-only, strict about unknown fields."""

from typing import Annotated

import msgspec

# A file may hold a number of any length; what is no 64-bit integer is refused where it is read.
Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen value that is JSON as it stands.

    Subclasses say `kw_only=True` themselves: msgspec applies it to a class's own fields and does not pass it on.
    """
