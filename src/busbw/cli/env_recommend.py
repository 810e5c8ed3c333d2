"""The verb `env recommend`."""

import sys

from busbw.base.errors import ExitCode
from busbw.model import codec
from busbw.model.recommendation import Recommendation


def print_recommendation(found: Recommendation, *, as_json: bool) -> None:
    """Print what to set and what not, with reasons; exit with 4 where there is nothing to recommend."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.recommendation import recommendation_text

        recommendation_text(found)
        sys.stdout.flush()
        if found.settings:
            print("ready to paste: busbw env export --format sh, with the same options", file=sys.stderr)
    if not found.recommends:
        sys.exit(ExitCode.CANNOT_TELL)
