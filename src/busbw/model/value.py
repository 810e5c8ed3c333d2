"""The form every value has: frozen, keyword-only, strict about unknown fields."""

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value that is JSON as it stands."""
