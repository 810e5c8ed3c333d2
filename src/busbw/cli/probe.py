"""The verb `probe`: capture this host, or open a captured one, and print what it says."""

import sys
from pathlib import Path

import click

from busbw.cli.options import JSON
from busbw.machine import named
from busbw.model import codec
from busbw.model.host import Snapshot


@click.command()
@click.argument("host", metavar="[HOST.tar]", required=False, type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="HOST.tar", help="Write a snapshot.")
@click.option("--anonymous", is_flag=True, help="Replace names, serial numbers and addresses.")
@JSON
def probe(host: Path | None, output: Path | None, *, anonymous: bool, as_json: bool) -> None:
    """Capture what is needed to understand this host, as root or not; print what it says.

    With HOST.tar print what that captured host says.
    """
    snapshot = _snapshot(host, anonymous=anonymous)
    # Before it is written: what cannot be read is no snapshot to keep.
    said = named.host_of_snapshot(snapshot)
    if output is not None:
        named.keep_snapshot(output, snapshot)
        print(f"wrote {output}: {len(snapshot.files)} files, {len(snapshot.answers)} answers", file=sys.stderr)
        if not snapshot.anonymous:
            print("hint: it names this host and its devices; --anonymous makes one to show to others", file=sys.stderr)
    if as_json:
        sys.stdout.write(codec.encode_pretty(said).decode())
    else:
        from busbw.show.text.host import host_text

        host_text(said)


def _snapshot(host: Path | None, *, anonymous: bool) -> Snapshot:
    if host is not None:
        return named.anonymous_snapshot_of_file(host) if anonymous else named.snapshot_of_file(host)
    return named.anonymous_snapshot_here() if anonymous else named.snapshot_here()
