"""Lists of nodes to drain: every form that busbw reads, commands quoted for the shell, and nothing executed."""

import shlex

import msgspec
import pytest

from busbw.base.hostlist import expand
from busbw.check.draining import FORMS, drain_text, nodes_to_drain
from busbw.facts.rules import finding
from busbw.machine.read.allocation import chosen
from busbw.model.check.report import NodeAnswer, NodeToDrain, StageAnswer


def node(host, severity="error", title_host=None):
    found = finding("CHK005", host=title_host or host, evidence="x")
    answer = NodeAnswer(host=host, outcome=severity, because="x", findings=(found,))
    return answer if severity == "error" else NodeAnswer(host=host, outcome=severity, because="x")


def test_errors_drain_and_warnings_do_not_and_spares_go_in_their_place():
    drain = nodes_to_drain([node("n0"), node("n1", "warn"), node("n2")], (), ("n2", "n8"))

    assert [(each.host, each.spare) for each in drain] == [("n0", "n8"), ("n2", None)]


def test_what_a_stage_suspects_is_drained_with_its_words():
    found = msgspec.structs.replace(finding("FAB001", what="node n5", evidence="x"), severity="error")
    stage = StageAnswer(name="fabric", state="done", because="x", findings=(found,), suspects=("n5",))

    (drain,) = nodes_to_drain([node("n5", "ok")], (stage,), ())

    assert drain.reason == "busbw check: fabric: FAB001 node n5 is slower than the others"


HOSTILE = 'it\'s $(reboot); `x` "y" \\ \n!'


@pytest.mark.parametrize("form", ["scontrol", "kubectl"])
def test_reasons_are_quoted_for_the_shell(form):
    (drain,) = nodes_to_drain([node("n1.cluster", title_host=HOSTILE)], (), ())

    text = drain_text([drain], form)

    lines = [shlex.split(line) for line in text.splitlines()]
    assert all("\n" not in word for words in lines for word in words)
    if form == "scontrol":
        assert lines[0][:4] == ["scontrol", "update", "nodename=n1", "state=drain"]
        assert lines[0][4].startswith("reason=busbw check: CHK005 it's $(reboot); `x`")
        assert len(lines[0]) == 5
    else:
        assert lines[0] == ["kubectl", "cordon", "n1.cluster"]
        assert lines[1][:4] == ["kubectl", "annotate", "node", "n1.cluster"]


def test_lists_are_read_back():
    drain = [NodeToDrain(host=f"n{number:02}", reason="x", spare="s1" if number == 8 else None) for number in (7, 8, 9)]

    assert expand(drain_text(drain, "list").strip(), where="x") == ("n07", "n08", "n09")
    assert drain_text(drain, "hosts").split() == ["n07", "n08", "n09"]
    whole = drain_text(drain, "all")
    assert [each.name for each in chosen("drain", whole, None).hosts] == ["n07", "n08", "n09"]
    assert "# in the place of n08: s1\n" in whole
    assert "# in the place of n07: no spare is left\n" in whole


@pytest.mark.parametrize("form", FORMS)
def test_no_node_is_an_empty_list(form):
    assert drain_text([], form).strip() == ("# no node to drain" if form == "all" else "")


def test_an_address_stays_an_address_for_slurm():
    assert "nodename=10.0.0.7 " in drain_text([NodeToDrain(host="10.0.0.7", reason="x")], "scontrol")
