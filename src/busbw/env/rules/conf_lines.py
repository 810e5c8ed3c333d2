"""Lines of an nccl.conf: NCCL takes every character as it stands."""

from collections.abc import Iterator

from busbw.env.rules.plain import is_unexpanded, plain_name, plain_value
from busbw.env.rules.subject import Subject, known, report, setting_text, shown, where, where_value
from busbw.model.assignment import Assignment
from busbw.model.finding import Finding

_QUOTES = ('"', "'")
_LONGEST_VALUE = 1023


def conf_lines(subject: Subject) -> Iterator[Finding]:
    """Yield what is part of a name or a value and was not meant to be."""
    for each in subject.written.assignments:
        if each.form == "nccl_conf":
            yield from _name(each)
            yield from _value(each)
        yield from _unexpanded(each)


def _name(each: Assignment) -> Iterator[Finding]:
    meant = plain_name(each.name)
    if each.name.lstrip() != each.name.lstrip().removeprefix("export ").removeprefix("set ").removeprefix("setenv "):
        yield report(
            "ENV013", at=where(each), evidence=f"the name is {shown(each.name)}", fix=f"{meant}={each.written}"
        )
    elif meant != each.name:
        yield report(
            "ENV014",
            at=where(each),
            evidence=f"the name is {shown(each.name)}",
            effect="nothing reads that name",
            fix=f"{meant}={plain_value(each.written)}",
            part="name",
        )


def _value(each: Assignment) -> Iterator[Finding]:
    value, meant = each.written, plain_value(each.written)
    fix = f"{plain_name(each.name)}={meant}"
    at = where_value(each)
    if len(value) > _LONGEST_VALUE:
        yield report("ENV016", at=at, evidence=f"{len(value)} characters", name=plain_name(each.name))
    if value.strip()[:1] in _QUOTES:
        yield report("ENV012", at=at, evidence=f"the value is {shown(value)}", fix=fix, name=plain_name(each.name))
    elif " #" in value or "\t#" in value:
        yield report("ENV015", at=at, evidence=f"the value is {shown(value)}", fix=fix, name=plain_name(each.name))
    elif value != value.strip():
        yield report("ENV014", at=at, evidence=f"the value is {shown(value)}", fix=fix, part="value")


def _unexpanded(each: Assignment) -> Iterator[Finding]:
    """Yield a tilde or a variable that nothing will replace."""
    variable = known(plain_name(each.name))
    value = plain_value(each.written) if each.form == "nccl_conf" else each.value or ""
    is_path = variable is not None and variable.kind == "path"
    what = "a tilde" if is_path and is_unexpanded(value) else None
    if each.form == "nccl_conf" and "$" in value:
        what = "a variable"
    if what is not None and not each.computed:
        yield report(
            "ENV017",
            at=where_value(each),
            evidence=setting_text(each),
            effect="the program looks for exactly that name",
            fix="write the whole path" if what == "a tilde" else "write the value itself",
            name=plain_name(each.name),
            what=what,
        )
