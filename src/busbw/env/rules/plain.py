"""What was probably meant where a text is slightly wrong: rules about names and values go by that."""

from msgspec import structs

from busbw.model.assignment import Assignment, Reading, Slip

# Stands in a slip for what only running it would tell.
UNKNOWN = "\ufffe"
_QUOTES = ('"', "'")
_BEFORE_NAMES = ("export ", "set ", "setenv ")


def as_meant(reading: Reading) -> Reading:
    """Return a reading without what is told by itself: blanks, quotes, remarks of an nccl.conf, blanks behind `=`."""
    meant = {(slip.line, slip.name): slip.meant for slip in reading.slips if _is_told(slip)}
    if not meant and not any(each.form == "nccl_conf" for each in reading.assignments):
        return reading
    return structs.replace(reading, assignments=tuple(_meant(each, meant) for each in reading.assignments))


def _is_told(slip: Slip) -> bool:
    is_known = slip.meant is not None and not any(sign in slip.meant for sign in (UNKNOWN, "$", "`"))
    return slip.kind == "space_after_equals" and is_known


def _meant(each: Assignment, meant: dict[tuple[int, str | None], str | None]) -> Assignment:
    if each.form == "nccl_conf" and each.value is not None:
        return structs.replace(each, name=plain_name(each.name), value=plain_value(each.value))
    if not each.value and not each.alternatives and (value := meant.get((each.line, each.name))) is not None:
        return structs.replace(each, value=value, written=value)
    return each


def plain_name(name: str) -> str:
    """Return the name that was probably meant, without blanks and `export`."""
    stripped = name.strip()
    for word in _BEFORE_NAMES:
        stripped = stripped.removeprefix(word).strip()
    return stripped


def plain_value(value: str) -> str:
    """Return the value that was probably meant, without blanks, quotes and remarks."""
    stripped = value.strip()
    if len(stripped) > 1 and stripped[0] in _QUOTES and stripped.find(stripped[0], 1) > 0:
        return stripped[1 : stripped.find(stripped[0], 1)]
    return stripped.split(" #", 1)[0].split("\t#", 1)[0].strip()


def is_unexpanded(path: str) -> bool:
    """Whether a path begins with a tilde that a shell would have replaced."""
    return path == "~" or path.startswith("~/")
