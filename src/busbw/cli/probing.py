"""`busbw probe`: captures this host or opens a captured one, writes the snapshot, prints what it says."""

import sys
from pathlib import Path

from busbw.model.host import Snapshot


def probe_host(host: Path | None, output: Path | None, *, anonymous: bool, as_json: bool) -> None:
    """Capture this host, or open a captured one; write it to `output` where that is given; print it."""
    from busbw.machine.named import host_of_snapshot, keep_snapshot
    from busbw.model import codec

    snapshot = _snapshot(host, anonymous=anonymous)
    # Before it is written: what cannot be read is no snapshot to keep.
    said = host_of_snapshot(snapshot)
    if output is not None:
        keep_snapshot(output, snapshot)
        print(f"wrote {output}: {len(snapshot.files)} files, {len(snapshot.answers)} answers", file=sys.stderr)
        if not snapshot.anonymous:
            print("hint: it names this host and its devices; --anonymous makes one to show to others", file=sys.stderr)
    if as_json:
        sys.stdout.write(codec.encode_pretty(said).decode())
    else:
        from busbw.show.text.host import host_text

        host_text(said)


def _snapshot(host: Path | None, *, anonymous: bool) -> Snapshot:
    from busbw.machine import named

    if host is not None:
        return named.anonymous_snapshot_of_file(host) if anonymous else named.snapshot_of_file(host)
    return named.anonymous_snapshot_here() if anonymous else named.snapshot_here()
