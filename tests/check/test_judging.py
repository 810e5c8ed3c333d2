"""A node is held against what is asked for, nodes of its kind, its own past; what is not shown accuses nobody."""

import random

import msgspec
import pytest

from busbw.check.judging import judge_nodes, past_of, values_of
from busbw.facts.rules import finding
from busbw.model.check.screening import NodeReading, NotScreened, ScreenedNodes, SilentNode
from busbw.model.finding import HostCheck

from .made import KIND, node, nodes, past, profile, transfer

PEERS = 'measure = "memory_copy"\nbelow_peers_percent = 15'
SEND = 'measure = "send"\nat_least = "80Gb/s"'


def codes(screened, asked, earlier=None):
    """Return the outcome and the codes of each node."""
    answers = judge_nodes(screened, asked, earlier or {})
    return {each.host: (each.outcome, [found.code for found in each.findings]) for each in answers}


def test_the_best_sample_is_held_against_the_least_rate():
    asked = profile('measure = "memory_copy"\nat_least = "100GB/s"')

    found = codes(nodes(101e9, 99e9), asked)

    assert found == {"n0": ("ok", []), "n1": ("error", ["CHK001"])}


def test_the_severity_and_the_source_are_the_profiles():
    asked = profile('measure = "memory_copy"\nat_least = "100GB/s"\nseverity = "warn"')

    (answer,) = judge_nodes(nodes(50e9), asked, {})

    assert answer.outcome == "warn"
    assert answer.findings[0].source == "the contract"
    assert "50.0 GB/s" in answer.findings[0].evidence


def test_a_node_below_its_fellows_is_named_and_they_are_not():
    assert codes(nodes(100e9, 101e9, 99e9, 100e9, 70e9), profile(PEERS)) == {
        **{f"n{number}": ("ok", []) for number in range(4)},
        "n4": ("error", ["CHK002"]),
    }


def test_nodes_that_differ_by_themselves_accuse_nobody():
    found = codes(nodes(100e9, 60e9, 140e9, 90e9, 70e9), profile(PEERS))

    assert [code for _outcome, listed in found.values() for code in listed] == []
    assert found["n1"][0] == "cannot_tell"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_too_few_nodes_of_a_kind_are_no_median(number):
    assert codes(nodes(*[100e9] * (number - 1), 10e9), profile(PEERS))[f"n{number - 1}"] == ("ok", [])


def test_nodes_of_another_kind_are_not_its_fellows():
    others = [node(f"n{number}", 100e9) for number in range(5)]
    small = node("small", 50e9, kind=msgspec.structs.replace(KIND, cpus=8))

    assert codes(ScreenedNodes(nodes=(*others, small)), profile(PEERS))["small"] == ("ok", [])


def test_sound_nodes_with_noise_are_hardly_ever_accused():
    # 2 % of noise and a bound of 15 %: of 400 fleets of 16 nodes not one node should be named.
    draws = random.Random(7)
    asked = profile(PEERS)
    named = [
        host
        for _fleet in range(400)
        for host, (_outcome, found) in codes(nodes(*(draws.gauss(100e9, 2e9) for _ in range(16))), asked).items()
        if found
    ]
    assert named == []


def test_a_node_that_became_slower_than_it_ever_was_is_named():
    asked = profile('measure = "memory_copy"\nbelow_own_past_percent = 20')

    assert codes(nodes(70e9), asked, {"n0": past("n0", *[100e9] * 5)}) == {"n0": ("error", ["CHK003"])}
    # Too few, seen before when it was sound, or only seen when something was wrong.
    assert codes(nodes(70e9), asked, {"n0": past("n0", *[100e9] * 4)}) == {"n0": ("ok", [])}
    assert codes(nodes(70e9), asked, {"n0": past("n0", *[100e9] * 5, 69e9)}) == {"n0": ("ok", [])}
    assert codes(nodes(70e9), asked, {"n0": past("n0", *[100e9] * 9, outcome="warn")}) == {"n0": ("ok", [])}


def test_noise_is_bounded_from_above():
    asked = profile('measure = "noise"\nat_most_percent = 5')
    quiet, loud = (
        node(host, None, NodeReading(measure="noise", samples=shares))
        # One CPU where a daemon runs does not make the node a noisy one.
        for host, shares in (("quiet", (0.01, 0.01, 0.4)), ("loud", (0.2, 0.1, 0.3)))
    )

    assert codes(ScreenedNodes(nodes=(quiet, loud)), asked) == {"quiet": ("ok", []), "loud": ("error", ["CHK001"])}


def test_one_partner_that_is_fast_clears_the_node():
    screened = ScreenedNodes(nodes=(node("n0", None, transfer("send", "n1", 1e9), transfer("send", "n2", 12e9)),))

    assert codes(screened, profile(SEND)) == {"n0": ("ok", [])}


def test_slow_with_two_partners_is_the_nodes_own():
    screened = ScreenedNodes(nodes=(node("n0", None, transfer("send", "n1", 1e9), transfer("send", "n2", 2e9)),))

    assert codes(screened, profile(SEND)) == {"n0": ("error", ["CHK004"])}


def test_slow_with_one_partner_cannot_be_told():
    screened = ScreenedNodes(nodes=(node("n0", None, transfer("send", "n1", 1e9)),))

    (answer,) = judge_nodes(screened, profile(SEND), {})

    assert (answer.outcome, answer.findings) == ("cannot_tell", ())
    assert "one partner does not tell which end is slow" in answer.because


def test_directions_are_judged_apart():
    both = profile(SEND, 'measure = "receive"\nat_least = "80Gb/s"')
    readings = [transfer("send", each, 12e9) for each in ("n1", "n2")]
    readings += [transfer("receive", each, 1e9) for each in ("n1", "n2")]

    (answer,) = judge_nodes(ScreenedNodes(nodes=(node("n0", None, *readings),)), both, {})

    assert [each.title for each in answer.findings] == ["n0 is slow in receiving, whichever partner it has"]


def health(code, **names):
    return HostCheck(name="x", outcome="found", look="x", findings=(finding(code, evidence="seen", **names),))


def test_a_site_says_what_of_a_hosts_health_is_an_error():
    checks = (health("HOST004"), health("HOST021", device="mlx5_0"), health("HOST006"))
    screened = ScreenedNodes(nodes=(msgspec.structs.replace(node("n0", 1e9), checks=checks),))
    head = ""

    def outcome(table):
        return codes(screened, profile(head=head) if not table else with_health(table))["n0"]

    def with_health(table):
        asked = profile()
        return msgspec.structs.replace(asked, health=msgspec.convert(table, type(asked.health)))

    assert outcome(None) == ("error", ["HOST004", "HOST021"])
    assert outcome({"ignore": ["HOST021"]}) == ("warn", ["HOST004"])
    assert outcome({"ignore": ["HOST021", "HOST004"], "warn": ["HOST006"]}) == ("warn", ["HOST006"])
    assert outcome({"warn": ["HOST021"]}) == ("warn", ["HOST004", "HOST021"])


def test_what_was_not_screened_is_open_and_what_is_not_there_is_not():
    hung = NotScreened(part="transfer", because="n1: no answer in time")
    absent = NotScreened(part="gpus", because="no GPU", absent=True)
    one, other = (msgspec.structs.replace(node("n0", 1e9), unscreened=(each,)) for each in (hung, absent))

    assert codes(ScreenedNodes(nodes=(one,)), profile())["n0"][0] == "cannot_tell"
    assert codes(ScreenedNodes(nodes=(other,)), profile())["n0"][0] == "ok"


def test_what_a_profile_requires_is_open_and_the_rest_is_noted():
    missing = (
        NotScreened(part="memory", because="no memory"),
        NotScreened(part="nics", because="mlx5_0: no time was left"),
        NotScreened(part="gpus", because="no GPU", absent=True),
    )
    screened = ScreenedNodes(nodes=(msgspec.structs.replace(node("n0", 1e9), unscreened=missing),))

    def answered(*required):
        asked = profile()
        table = msgspec.structs.replace(asked.screening, required=required)
        (answer,) = judge_nodes(screened, msgspec.structs.replace(asked, screening=table), {})
        return answer.outcome, answer.open, answer.notes

    assert answered("health")[0] == "ok"
    assert answered("memory")[1] == ("memory: no memory",)
    assert answered("memory")[2] == ("nics: mlx5_0: no time was left", "gpus: no GPU")
    # A node that must have GPUs, and has none.
    assert answered("gpus")[:2] == ("cannot_tell", ("gpus: no GPU",))


def test_a_silent_node_is_told_with_the_last_words():
    silent = SilentNode(host="n9", words="ssh: connect to host n9 port 22: No route to host")

    (answer,) = judge_nodes(ScreenedNodes(nodes=(), silent=(silent,)), profile(), {})

    assert answer.outcome == "error"
    assert "No route to host" in answer.findings[0].evidence


def test_of_pairs_of_gpus_the_slowest_counts_and_of_partners_the_best():
    readings = [
        NodeReading(measure="gpu_pair", samples=(3e9, 4e9), partner="0-1"),
        NodeReading(measure="gpu_pair", samples=(1e9, 2e9), partner="0-2"),
        transfer("send", "n1", 1.0),
        transfer("send", "n2", 5.0),
        NodeReading(measure="receive", samples=()),
    ]

    assert values_of(readings) == {"gpu_pair": 2e9, "send": 5.0}


def test_the_history_keeps_what_was_judged():
    (answer,) = judge_nodes(nodes(50e9), profile('measure = "memory_copy"\nat_least = "100GB/s"'), {})

    kept = past_of(answer, profile="daily", unix_s=5.0)

    assert (kept.outcome, kept.codes, kept.values) == ("error", ("CHK001",), (("memory_copy", 50e9),))
