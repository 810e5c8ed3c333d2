"""Every single figure that somebody measured is ok on its own platform, and half of it is not; sweeps: test_laws."""

import pytest
from msgspec import structs

from busbw.facts.platforms import all_platforms, facts_of_gpus
from busbw.judge.explaining.explain import explain
from busbw.judge.explaining.known_machine import KnownMachine

from .made_series import make_series

FACTS = facts_of_gpus(all_platforms())
MEASURED = [
    pytest.param(platform, figure, id=f"{platform.id}-{figure.test}-{figure.value:g}-{figure.nodes}")
    for platform in all_platforms()
    for figure in platform.published
    if (figure.kind, figure.metric, figure.unit) == ("measured", "busbw", "GB/s")
    and figure.network != "fallback"
    and figure.nodes
    and figure.gpus
]


def judged(platform, figure, share):
    series = make_series(
        [(figure.size_bytes, share * figure.value * 1e9)],
        collective=figure.test,
        ranks=figure.gpus,
        nodes=figure.nodes,
        algorithms=(figure.algorithm,) if figure.algorithm is not None else (),
        network="loopback" if figure.network == "loopback" else None,
    )
    return explain("s", (series,), KnownMachine(platform=platform, gpus=FACTS)).verdict


def test_there_are_such_figures():
    assert len(MEASURED) >= 12


@pytest.mark.parametrize(("platform", "figure"), MEASURED)
def test_a_published_figure_is_ok_on_its_own_platform(platform, figure):
    assert judged(platform, figure, 1.0).outcome == "ok"


@pytest.mark.parametrize(("platform", "figure"), MEASURED)
def test_a_published_figure_is_ok_by_others_where_there_are_any(platform, figure):
    """Held against everything but itself: other documents, other numbers of nodes, the parts."""
    others = structs.replace(platform, published=tuple(each for each in platform.published if each != figure))
    assert judged(others, figure, 1.0).outcome == "ok"


@pytest.mark.parametrize(("platform", "figure"), MEASURED)
def test_half_of_a_published_figure_is_not_ok(platform, figure):
    assert judged(platform, figure, 0.5).outcome in ("slow", "cannot_tell")


# Between NVLink domains of 72 GPUs a published figure is far below what their NICs carry.
OF_NODES = [each for each in MEASURED if each.values[0].nvlink.domain_gpus is None]


@pytest.mark.parametrize(("platform", "figure"), OF_NODES)
def test_four_times_a_published_figure_is_no_result(platform, figure):
    assert judged(platform, figure, 4.0).outcome == "cannot_tell"
