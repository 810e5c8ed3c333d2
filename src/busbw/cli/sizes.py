"""Sizes as arguments: 8, 64K, 1G."""

import click


class _Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, _param: click.Parameter | None, _ctx: click.Context | None) -> int:
        from busbw.base.units import parse_size

        return value if isinstance(value, int) else parse_size(str(value))


SIZE = _Size()
