"""Observations of runs, of what other tools printed, and of what somebody published."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from busbw.base.collectives import COLLECTIVES, busbw_Bps
from busbw.formats.arithmetic import printed
from busbw.judge.scaling.lines import OUT_OF_PLACE
from busbw.model.imported import Imported, Reading, Source, Table
from busbw.model.platform import Platform, Published, PublishedSweep
from busbw.model.run import Measurement, Run
from busbw.model.scaling import Basis, Observation, ScalingEstimate

# Variables that change what is measured; others are noise here.
_VARIABLES = ("NCCL_", "RCCL_", "MSCCL_", "MSCCLPP_", "UCX_", "FI_", "SHARP_", "OMPI_MCA_")
_NOT_THESE = ("NCCL_DEBUG",)
# Of the others some tools count what one rank gives, some what it has in the end.
_COUNTED_ALIKE = ("all_reduce", "broadcast", "reduce")


def of_run(run: Run) -> tuple[Observation, ...]:
    """Return one observation for each point whose result was not wrong and took a time."""
    plan = run.plan
    environment = plan.surroundings.environment if plan.surroundings is not None else {}
    libraries = f"{plan.mpi.family} {plan.mpi.version or ''}".strip() if plan.mpi is not None else ""
    nccl = dict.fromkeys(hello.gpu.nccl for hello in run.ranks if hello.gpu is not None)
    setup = plan.gpu_setup
    settings = (
        ("tool", plan.backend),
        *_named("tag", plan.tag),
        *_named("libraries", ", ".join([*([libraries] if libraries else []), *(f"NCCL {each}" for each in nccl)])),
        *_named("buffers", f"{setup.buffers}, {setup.cache}" if setup is not None else None),
        *_variables(environment.items()),
    )
    return tuple(
        _measured(run, item, settings)
        for item in run.measurements
        if item.wrong is None and item.median_s > 0 and item.busbw_Bps > 0
    )


def _measured(run: Run, item: Measurement, settings: tuple[tuple[str, str], ...]) -> Observation:
    plan = run.plan
    nodes = len(plan.placement.hosts) or 1
    used = dict.fromkeys(choice.algorithm for choice in item.nccl.choices if choice.algorithm) if item.nccl else {}
    # One sample says nothing of how far the next may lie off.
    bounds = (item.low_s, item.high_s) if item.samples > 1 and item.low_s > 0 else (None, None)
    basis: Basis | None = "samples" if bounds[0] is not None else None
    return Observation(
        source=plan.run_id,
        conditions=(
            ("collective", item.collective),
            ("type", item.dtype),
            ("op", item.op),
            ("form", "in place" if item.in_place else OUT_OF_PLACE),
            ("mode", item.mode),
            ("statistic", "median"),
            *_named("ranks of a node", str(item.ranks // nodes) if item.ranks % nodes == 0 else None),
            *_named("pair", "two ranks" if item.pair is not None else None),
        ),
        settings=(*settings, *_named("algorithm", ",".join(used))),
        nodes=nodes,
        gpus=item.ranks if plan.gpus is not None else None,
        ranks=item.ranks,
        size_bytes=item.size_bytes,
        time_s=ScalingEstimate(value=item.median_s, low=bounds[0], high=bounds[1], basis=basis),
        busbw_Bps=ScalingEstimate(
            value=item.busbw_Bps,
            low=item.busbw_Bps * item.median_s / bounds[1] if bounds[1] is not None else None,
            high=item.busbw_Bps * item.median_s / bounds[0] if bounds[0] is not None else None,
            basis=basis,
        ),
        platform=plan.surroundings.platform if plan.surroundings is not None else None,
    )


def of_import(imported: Imported, readings: Iterable[Reading]) -> tuple[Observation, ...]:
    """Return one observation for each row of a collective that was not wrong and has a bus bandwidth above zero.

    Where a tool prints times only, bus bandwidth follows for the collectives whose size all tools count alike.
    """
    tables = {table.number: table for table in imported.tables}
    found = of_readings(imported.sources, tables, imported.tag, readings)
    return tuple(replace(each, platform=imported.stated.platform) for each in found)


def of_readings(
    sources: Sequence[Source],
    tables: dict[int, Table],
    tag: str | None,
    readings: Iterable[Reading],
    known: Mapping[str, int] | None = None,
) -> tuple[Observation, ...]:
    """Return what `of_import` does. `known`: counts of the machine for where the tool tells none."""
    elsewhere = known or {}
    found = []
    for reading in readings:
        table = tables.get(reading.table)
        if table is None or not reading.time_s or (reading.wrong or 0) > 0:
            continue
        # Algorithm and bus bandwidth give the number of ranks away; a listing may have been cut short.
        is_cut = table.ranks_from_rates is not None and len(table.devices) < table.ranks_from_rates
        candidates = (
            table.ranks_from_rates if is_cut else None,
            reading.ranks,
            table.ranks,
            table.ranks_from_rates,
            elsewhere.get("ranks"),
            elsewhere.get("gpus"),
        )
        ranks = next((ranks for ranks in candidates if ranks is not None), None)
        rate_Bps = reading.busbw_Bps or _from_time(reading, ranks)
        if rate_Bps:
            name = sources[table.source].name if 0 <= table.source < len(sources) else "?"
            hosts = 0 if is_cut else len({device.host for device in table.devices if device.host})
            nodes = hosts or elsewhere.get("nodes")
            found.append(_printed(table, reading, name, tag, ranks=ranks, nodes=nodes, rate_Bps=rate_Bps))
    return tuple(found)


def _from_time(reading: Reading, ranks: int | None) -> float | None:
    if reading.what not in _COUNTED_ALIKE or not ranks or not reading.size_bytes or not reading.time_s:
        return None
    return busbw_Bps(COLLECTIVES[reading.what], reading.size_bytes, ranks, reading.time_s)


def _printed(
    table: Table,
    reading: Reading,
    name: str,
    tag: str | None,
    *,
    ranks: int | None,
    nodes: int | None,
    rate_Bps: float,
) -> Observation:
    forms = {True: "in place", False: OUT_OF_PLACE, None: None}
    return Observation(
        source=f"{name}:{reading.line}",
        conditions=(
            ("collective", reading.what),
            *_named("type", reading.dtype),
            *_named("op", reading.op if reading.op != "none" else None),
            *_named("form", forms[reading.in_place]),
            ("statistic", table.statistic),
            *_named("ranks of a node", str(ranks // nodes) if ranks and nodes and ranks % nodes == 0 else None),
        ),
        settings=(
            ("tool", table.tool),
            *_named("tag", tag),
            *_named("libraries", ", ".join(f"{library} {version}" for library, version in table.versions)),
            *_variables(table.environment),
        ),
        nodes=nodes,
        ranks=ranks,
        size_bytes=reading.size_bytes,
        time_s=ScalingEstimate(value=reading.time_s or 0.0),
        busbw_Bps=ScalingEstimate(value=rate_Bps),
    )


def of_platform(platform: Platform) -> tuple[Observation, ...]:
    """Return the bus bandwidths that somebody measured on such a platform and published with their number of nodes.

    A node that sends to itself through its NICs is not a machine of one node. A table of one node holds for a kind of
    GPU and may be another platform's: only those of several nodes are this one's for sure.
    """
    figures = (
        _published(platform, row, ((row.size_bytes, row.value),))
        for row in platform.published
        if row.metric == "busbw" and row.kind == "measured" and row.nodes is not None and row.unit == "GB/s"
        if row.network != "loopback"
    )
    tables = (_published(platform, each, each.points) for each in platform.sweeps if each.nodes > 1)
    return tuple(observation for made in (*figures, *tables) for observation in made)


def _published(
    platform: Platform, row: Published | PublishedSweep, points: Iterable[tuple[int | None, float]]
) -> Iterator[Observation]:
    """Yield what `row` says of sizes in bytes, with their bus bandwidths in GB/s."""
    for size_bytes, rate in points:
        yield Observation(
            source=f"published: {', '.join(row.source)}",
            conditions=(("collective", row.test.removeprefix("rccl ")),),
            settings=(("series", f"published, {platform.id}"), *_named("conditions", row.conditions)),
            nodes=row.nodes,
            gpus=row.gpus,
            ranks=row.gpus,
            size_bytes=size_bytes,
            busbw_Bps=_as_printed(rate),
            platform=platform.id,
        )


def _as_printed(value: float) -> ScalingEstimate:
    """Return a published number in GB/s with what its digits stand for: 354.2 is anything from 354.15 to 354.25."""
    found = printed(str(value).removesuffix(".0"), 9)
    if found is None:
        return ScalingEstimate(value=value * 1e9)
    return ScalingEstimate(value=found.value, low=found.low, high=found.high, basis="digits")


def _named(name: str, value: str | None) -> tuple[tuple[str, str], ...]:
    return ((name, value),) if value else ()


def _variables(environment: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in sorted(environment)
        if name.startswith(_VARIABLES) and not name.startswith(_NOT_THESE)
    )
