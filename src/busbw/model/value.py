"""The form every value has: frozen, keyword-only, strict about unknown fields."""

import msgspec


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen value that is JSON as it stands.

    Subclasses say `kw_only=True` themselves: msgspec applies it to a class's own fields and does not pass it on.
    """
