"""The verb `limit`."""

import sys
from pathlib import Path

from busbw.api.machine import limit_of_host, limit_of_platform
from busbw.base.errors import ExitCode, InputError
from busbw.model import codec


def show_limit(
    name: str | None,
    host: Path | None,
    *,
    nodes: int,
    gpus: int | None,
    collective: str | None,
    algorithm: str | None,
    as_json: bool,
) -> None:
    """Print the budget and the ceilings it leads to; exit with 4 where none can be told."""
    if (name is None) is (host is None):
        given = "nothing is named" if name is None else f"both {name!r} and {str(host)!r} are given"
        raise InputError(given, hint="a platform: --platform azure-ndv4; or a captured host: --host HOST.tar")
    if host is not None:
        limit = limit_of_host(host, nodes=nodes, gpus=gpus, collective=collective, algorithm=algorithm)
    else:
        limit = limit_of_platform(name or "", nodes=nodes, gpus=gpus, collective=collective, algorithm=algorithm)
    if as_json:
        sys.stdout.write(codec.encode_pretty(limit).decode())
    else:
        from busbw.show.text.host import limit_text

        limit_text(limit, detailed=collective is not None)
        if collective is None:
            print("add --collective all_reduce to see the formulas", file=sys.stderr)
    if all(bound.busbw_Bps is None for bound in limit.bounds):
        sys.exit(ExitCode.CANNOT_TELL)
