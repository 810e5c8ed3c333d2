"""The verb `probe`: capture this host, or open a captured one, and print what it says."""

import math
import sys
from pathlib import Path

import click

from busbw.base.errors import InputError
from busbw.cli.options import JSON
from busbw.machine import named
from busbw.model import codec
from busbw.model.host import Probe, Snapshot

_MOST_NOISE_S = 600.0
_DEFAULT_NOISE_S = 10.0


@click.command()
@click.argument("host", metavar="[HOST.tar]", required=False, type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="HOST.tar", help="Write a snapshot.")
@click.option("--anonymous", is_flag=True, help="Replace names, serial numbers and addresses.")
@click.option(
    "--noise",
    "noise_s",
    type=float,
    is_flag=False,
    flag_value=str(_DEFAULT_NOISE_S),
    metavar="[SECONDS]",
    help=f"Measure first what disturbs fixed work on every CPU [{_DEFAULT_NOISE_S:g} s].",
)
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="OTHER.tar", help="Compare the noise with that of another."
)
@click.option("--counters", is_flag=True, help="Print only the counters of network ports, as one line of JSON.")
@JSON
def probe(
    host: Path | None,
    output: Path | None,
    *,
    anonymous: bool,
    noise_s: float | None,
    against: Path | None,
    counters: bool,
    as_json: bool,
) -> None:
    """Capture what is needed to understand this host, as root or not; print what it says.

    With HOST.tar print what that captured host says.
    """
    if counters:
        if output is not None or anonymous or noise_s is not None or against is not None:
            raise InputError("--counters goes with HOST.tar and nothing else", hint="busbw probe --counters >> FILE")
        read = named.counters_of_file(host) if host is not None else named.counters_here()
        sys.stdout.write(f"{codec.encode(read).decode()}\n")
        return
    # What cannot be compared is said before anything is measured.
    other = _measured(named.host_of_snapshot(named.snapshot_of_file(against)), against) if against is not None else None
    snapshot = _snapshot(host, anonymous=anonymous, noise_s=noise_s)
    # Before it is written: what cannot be read is no snapshot to keep.
    said = named.host_of_snapshot(snapshot)
    if other is not None:
        _measured(said, host)
    if output is not None:
        named.keep_snapshot(output, snapshot)
        print(f"wrote {output}: {len(snapshot.files)} files, {len(snapshot.answers)} answers", file=sys.stderr)
        if not snapshot.anonymous:
            print("hint: it names this host and its devices; --anonymous makes one to show to others", file=sys.stderr)
    if as_json:
        sys.stdout.write(codec.encode_pretty(said).decode())
    else:
        _print(said, other)


def _print(said: Probe, other: Probe | None) -> None:
    from busbw.show.text.host import host_text

    host_text(said)
    if other is not None and said.noise is not None and other.noise is not None:
        from busbw.show.text.noise import noise_comparison_text

        noise_comparison_text(said.noise, said.hardware.hostname, other.noise, other.hardware.hostname)


def _measured(said: Probe, path: Path | None) -> Probe:
    """Return a host whose noise was measured. Raises InputError for any other."""
    if said.noise is None:
        where = str(path) if path is not None else said.hardware.hostname
        raise InputError("its noise was not measured", where=where, hint="busbw probe --noise -o HOST.tar")
    return said


def _snapshot(host: Path | None, *, anonymous: bool, noise_s: float | None) -> Snapshot:
    if noise_s is not None:
        if host is not None:
            raise InputError("a captured host cannot be measured any more", where=str(host), hint="busbw probe --noise")
        if not math.isfinite(noise_s) or not 0 < noise_s <= _MOST_NOISE_S:
            raise InputError(f"--noise takes up to {_MOST_NOISE_S:g} s, and is {noise_s:g}")
        print(f"noise: all CPUs work for {noise_s:g} s", file=sys.stderr)
        if anonymous:
            return named.anonymous_measured_snapshot_here(noise_s)
        return named.measured_snapshot_here(noise_s)
    if host is not None:
        return named.anonymous_snapshot_of_file(host) if anonymous else named.snapshot_of_file(host)
    return named.anonymous_snapshot_here() if anonymous else named.snapshot_here()
