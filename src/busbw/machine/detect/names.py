"""What a metadata service calls a kind of machine, out of what it answered."""

import re

import msgspec

from busbw.facts.clouds import Ask

# Every cloud's names are of these characters; a page of a captive portal is not.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONGEST_ANSWER = 2**18


def name_in_answer(ask: Ask, text: str) -> str | None:
    """Return the name of the kind of machine that a service answered, None when the answer holds none.

    Of a path such as `projects/1/machineTypes/a3-megagpu-8g` it is the last part.
    """
    found: object = text[:_LONGEST_ANSWER].strip()
    if ask.field:
        try:
            found = msgspec.json.decode(text[:_LONGEST_ANSWER])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        for key in ask.field:
            found = found.get(key) if isinstance(found, dict) else None
    return machine_name(found.rsplit("/", 1)[-1]) if isinstance(found, str) else None


def machine_name(text: str) -> str | None:
    """Return `text` without blanks around it when it can be the name of a kind of machine, else None."""
    stripped = text.strip()
    return stripped if _NAME.fullmatch(stripped) else None
