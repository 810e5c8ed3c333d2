"""Questions to the history: which runs, and which points of them. What is asked for goes in as parameters only."""

from collections.abc import Sequence

import msgspec

from busbw.base.collectives import collective_named
from busbw.model.history import ListRow, PointKind, PointSelection, RunInTime, Selection, Strand, Strands
from busbw.store import duck
from busbw.store.history import ROW_COLUMNS, History

_HAS_COLLECTIVE = (
    "list_has_any(list_concat(collectives, list_transform(points, lambda each: each.collective)), {0}::VARCHAR[])"
)
# What rows can be ordered by, as SQL; the name of a run begins with its time.
ORDERS = {
    "time": "created_unix_s NULLS FIRST, name",
    "name": "name",
    "host": "host NULLS FIRST, name",
    "platform": "platform NULLS FIRST, name",
    "verdict": "outcome, name",
    "collective": "collectives, name",
    "ranks": "ranks NULLS FIRST, name",
    "tag": "tag NULLS FIRST, name",
}
_HAS_TAG = "(tag = {0} OR name IN (SELECT name FROM tagged WHERE tag = {0}))"
_KIND_FIELDS = tuple(duck.columns(PointKind))
# Each run's place in the order of time.
_PLACES = "SELECT name, row_number() OVER (ORDER BY created_unix_s, name) - 1 AS place"


def rows(
    history: History, selection: Selection, *, order: str = "time", limit: int | None = None
) -> tuple[ListRow, ...]:
    """Return the selected runs in one of ORDERS, of more than `limit` the last; imports and unreadable runs too."""
    conditions, parameters = _conditions(selection)
    names = ", ".join(map(duck.quoted, ROW_COLUMNS))
    skipped = max(count(history, selection) - limit, 0) if limit is not None else 0
    query = f"""
        SELECT name, {names} FROM runs WHERE {conditions} ORDER BY {ORDERS[order]} OFFSET {skipped}
        """  # noqa: S608 - our own names
    return tuple(
        _row(history, name, dict(zip(ROW_COLUMNS, values, strict=True)), history.tags.get(name, ()))
        for name, *values in history.ask(query, parameters)
    )


def count(history: History, selection: Selection) -> int:
    """Return how many runs are selected."""
    conditions, parameters = _conditions(selection)
    ((number,),) = history.ask(f"SELECT count(*) FROM runs WHERE {conditions}", parameters)  # noqa: S608 - our own names
    return int(number)


def strands(history: History, selection: Selection, wanted: PointSelection, number: str) -> Strands:
    """Return one number of the wanted points of the selected runs; runs without a time have no place in it.

    `number` is a field of HistoryPoint. DuckDB gathers the values: a Python value for each point and field would take
    longer than everything else.
    """
    conditions, parameters = _conditions(selection)
    of_runs, parameters_of_runs = f"{conditions} AND created_unix_s IS NOT NULL", tuple(parameters)
    of_points = _point_conditions(wanted, parameters)
    value = f"point.{duck.quoted(number)}"
    kind = ", ".join(f"point.{duck.quoted(name)} AS {duck.quoted(name)}" for name in _KIND_FIELDS)
    found = history.ask(
        f"""
        WITH places AS ({_PLACES} FROM runs WHERE {of_runs}),
        wanted AS (
            SELECT place, unnest(list_filter(points, lambda point: {of_points})) AS point
            FROM runs JOIN places USING (name)
        )
        SELECT {kind}, count(*) - count(*) FILTER ({value} > 0) AS without_value,
            list(place) FILTER ({value} > 0), list({value}) FILTER ({value} > 0)
        FROM wanted GROUP BY ALL
        """,  # noqa: S608 - names of our own fields
        parameters,
    )
    return Strands(
        runs=_runs_in_time(history, of_runs, parameters_of_runs),
        strands=tuple(
            Strand(kind=PointKind(**dict(zip(_KIND_FIELDS, of_kind, strict=True))), runs=runs, values=values)
            for *of_kind, _without, runs, values in found
            if values
        ),
        without_value=sum(without for *_, without, _runs, _values in found),
    )


def _runs_in_time(history: History, conditions: str, parameters: Sequence[object]) -> tuple[RunInTime, ...]:
    query = f"""
        {_PLACES}, run_id, created_unix_s, platform, tag, busbw_version, settings
        FROM runs WHERE {conditions} ORDER BY place
        """
    return tuple(
        RunInTime(
            run_id=run_id,
            created_unix_s=created_unix_s,
            platform=platform,
            tags=_all_tags(tag, history.tags.get(name, ())),
            busbw_version=version,
            settings=tuple(settings or ()),
        )
        for name, _place, run_id, created_unix_s, platform, tag, version, settings in history.ask(query, parameters)
    )


def _conditions(selection: Selection) -> tuple[str, list[object]]:
    """Return the condition on a row of `runs`, and its parameters."""
    asked: list[tuple[str, object]] = [
        ("kind = {0}", selection.kind),
        ("(host GLOB {0} OR len(list_filter(hosts, lambda each: each GLOB {0})) > 0)", selection.host),
        ("platform GLOB {0}", selection.platform),
        (_HAS_COLLECTIVE, _spellings(selection.collective)),
        ("list_contains({0}::VARCHAR[], outcome)", list(selection.outcomes) or None),
        ("created_unix_s >= {0}", selection.since_unix_s),
        ("created_unix_s < {0}", selection.until_unix_s),
        *((_HAS_TAG, tag) for tag in selection.tags),
        ("backend = {0}", selection.backend),
        ("len(list_filter(nccl, lambda each: each = {0} OR starts_with(each, {0} || '.'))) > 0", selection.nccl),
    ]
    given = [(condition, value) for condition, value in asked if value is not None]
    parts = [condition.format(f"${number}") for number, (condition, _) in enumerate(given, start=1)]
    return " AND ".join(["true", *parts]), [value for _, value in given]


def _spellings(collective: str | None) -> list[str] | None:
    """Return what stored results may call a collective: the word itself, as imported tests have it, and our name."""
    if collective is None:
        return None
    return list(dict.fromkeys((collective, collective_named(collective) or collective)))


def _point_conditions(wanted: PointSelection, parameters: list[object]) -> str:
    """Return the condition on a point, and add its parameters to those there are."""
    parts = ["true"]
    if wanted.collective is not None:
        parameters.append(_spellings(wanted.collective))
        parts.append(f"list_contains(${len(parameters)}::VARCHAR[], point.collective)")
    for name in ("dtype", "op", "in_place", "ranks"):
        value = getattr(wanted, name)
        if value is not None:
            parameters.append(value)
            parts.append(f"point.{duck.quoted(name)} = ${len(parameters)}")
    if wanted.sizes_bytes:
        parameters.append(list(wanted.sizes_bytes))
        parts.append(f"list_contains(${len(parameters)}::BIGINT[], point.size_bytes)")
    return " AND ".join(parts)


def _row(history: History, name: str, values: dict[str, object], given: tuple[str, ...]) -> ListRow:
    """Return a row of the list."""
    tag = values["tag"]
    assert tag is None or isinstance(tag, str)
    return msgspec.convert(values | {"path": str(history.base / name), "tags": _all_tags(tag, given)}, ListRow)


def _all_tags(tag: str | None, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in (tag, *given) if each is not None))
