"""A judged fabric made by hand: what is drawn of it does not change with how faults are found."""

from busbw.fabric.answers import FabricAnswer
from busbw.fabric.report import FabricReport
from busbw.fabric.views import (
    FabricBar,
    FabricMatrix,
    FabricTree,
    FabricViews,
    HistogramBin,
    HostSpot,
    LeafBox,
    LeafLink,
    RailGrid,
    SuspectDetail,
    SuspectTest,
    ViewLine,
)
from busbw.facts.rules import finding
from busbw.model.finding import Verdict

NAMES = ("n0", "n1", "n2", "n3")


def matrix(names=NAMES, bad=1) -> FabricMatrix:
    every = range(len(names))
    losses = tuple(
        tuple(None if one == other else 0.11 if bad in (one, other) else 0.004 * other - 0.002 for other in every)
        for one in every
    )
    return FabricMatrix(
        lines=tuple(ViewLine(name=name, endpoints=1, suspect=at == bad) for at, name in enumerate(names)),
        typical=losses,
        worst=tuple(tuple(None if each is None else each + 0.05 for each in row) for row in losses),
        tests=tuple(tuple(0 if one == other else 2 for other in every) for one in every),
        silent=tuple(tuple(int((one, other) == (3, 3)) for other in every) for one in every),
    )


def bars(names, bad) -> tuple[FabricBar, ...]:
    return tuple(
        FabricBar(
            name=name,
            sending=0.108 if at == bad else 0.013,
            receiving=0.101 if at == bad else -0.0004,
            tests=12,
            slow=1.0 if at == bad else 0.25,
            suspect=at == bad,
        )
        for at, name in enumerate(names)
    )


def views(names=NAMES, place="node n1", rails=()) -> FabricViews:
    boxes = (
        LeafBox(name="leafA", group=0, leaves=1, endpoints=2, leaving=0.004, entering=-0.001, inside=0.002,
                hosts=(HostSpot(name=names[0], loss=0.01), HostSpot(name=names[1], loss=0.108, suspect=True))),
        LeafBox(name="leafB", group=1, leaves=1, endpoints=2, leaving=0.07, entering=0.002, inside=None, suspect=True,
                hosts=(HostSpot(name=names[2], loss=-0.01), HostSpot(name=names[3], loss=0.04))),
    )  # fmt: skip
    grid = RailGrid(
        rails=tuple(ViewLine(name=rail, endpoints=4) for rail in rails),
        lines=tuple(ViewLine(name=name, endpoints=2, suspect=at == 1) for at, name in enumerate(names)),
        cells=tuple(tuple(0.11 if (at, rail) == (1, 1) else 0.01 for rail in range(len(rails))) for at in range(4)),
        suspects=tuple(tuple((at, rail) == (1, 1) for rail in range(len(rails))) for at in range(4)),
    )
    return FabricViews(
        suspects=(place, "uplinks of leafB"),
        every=1,
        matrix=matrix(names),
        details=(SuspectDetail(place=place, matrix=matrix(names), others=(0.001, None, 0.002, -0.0003)),),
        histogram=(
            HistogramBin(low=None, high=40e9, tests=3, suspects=3),
            HistogramBin(low=40e9, high=42e9, tests=0),
            HistogramBin(low=42e9, high=44e9, tests=9, suspects=5),
            HistogramBin(low=44e9, high=None, tests=36),
        ),
        nodes=bars(names, 1),
        rails=bars(rails, 1),
        leaves=bars(("leafA", "leafB"), 1),
        grid=grid if rails else None,
        tree=FabricTree(
            groups=("group 0", "group 1"),
            boxes=boxes,
            links=(LeafLink(one=0, other=1, loss=0.07, tests=8, suspect=True),),
        ),
        tests=(
            SuspectTest(place=place, sender=names[1], receiver=names[0], value=42.1e9, loss=0.11, round=6, retest=True),
            SuspectTest(place=place, sender=names[2], receiver=names[1], value=None, loss=None, round=2),
        ),
        more_tests=4,
    )


def made_report(names=NAMES, place="node n1", rails=(), title="bandwidth of pairs in pairs.csv") -> FabricReport:
    answer = FabricAnswer(
        kind="node",
        place=place,
        loss=0.108,
        confidence="likely",
        evidence=(f"{names[1]} -> {names[0]}: 42.10 GB/s (round 6)",),
        slow_tests=6,
        of_tests=6,
        otherwise="its NIC, its cable or its port at the leaf",
        clears="the node's own counters and `busbw doctor --here` on it",
        nodes=(names[1],),
        parts=(names[1],),
    )
    found = finding("FAB001", evidence="10.8 % slower", fix=answer.clears, confidence="likely", effect="", what=place)
    return FabricReport(
        title=title,
        simulated=False,
        metric="bandwidth",
        unit="B/s",
        nodes=4,
        endpoints=4 * max(1, len(rails)),
        leaves=(("leafA", 2), ("leafB", 2)),
        rounds=6,
        tests=48,
        unanswered=1,
        median=47.3e9,
        noise=0.015,
        least_seen=0.05,
        answers=(answer,),
        cleared=1,
        findings=(found,),
        verdict=Verdict(
            outcome="slow", sentence=f"slow: consistent with: {place}, 11 % slower (likely)", because=("FAB001",)
        ),
        views=views(names, place, rails),
    )
