"""What plug-ins of NCCL set by themselves, from data/plugin_exports.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value
from busbw.model.settings import PluginExport


class _Exports(Value, frozen=True, kw_only=True):
    export: tuple[PluginExport, ...]


@cache
def plugin_exports() -> tuple[PluginExport, ...]:
    """Return everything that plug-ins are known to export, in the order of the file."""
    raw = files("busbw").joinpath("data", "plugin_exports.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Exports).export
