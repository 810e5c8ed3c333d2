"""The verbs `platform list` and `platform show`."""

import sys

import msgspec

from busbw.machine.named import platform, platforms
from busbw.model import codec


def list_platforms(*, as_json: bool) -> None:
    """Print one line a platform, or all of them as JSON."""
    known = tuple(each.platform for each in platforms())
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(known), indent=1).decode() + "\n")
        return
    from busbw.show.text.platform import platforms_text

    platforms_text(known)
    print("busbw platform show ID tells what is known of one", file=sys.stderr)


def show_platform(name: str, *, origins: bool, as_json: bool) -> None:
    """Print the page about a platform, where each of its values comes from, or both as JSON."""
    resolved = platform(name)
    if as_json:
        sys.stdout.write(codec.encode_pretty(resolved).decode())
    elif origins:
        from busbw.show.text.platform import origins_text

        origins_text(resolved)
    else:
        from busbw.show.text.platform import platform_text

        platform_text(resolved)
