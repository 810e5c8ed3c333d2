"""What pairs of ranks reach between nodes: OSU's osu_mbw_mr and osu_bibw held against what the NICs can send."""

import pytest

from busbw.api.machine import limit_of_platform
from busbw.base.errors import InputError

from .tables import codes, judged

HEAD = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n"
COLUMNS = "# Size                  MB/s        Messages/s\n"


def table(pairs, *rows):
    lines = [f"{size} {size * rate / 1e6:.2f} {rate:.2f}" for size, rate in rows]
    return f"{HEAD}# [ pairs: {pairs} ] [ window size: 64 ]\n{COLUMNS}" + "\n".join(lines) + "\n"


def explain(tmp_path, text, platform="azure-hbv4", nodes=2):
    return judged(tmp_path, text, platform, nodes=nodes)


@pytest.mark.parametrize(("platform", "most"), [("azure-ndv2", 200e6), ("azure-hbv3", 215e6), ("azure-hbv4", 330e6)])
def test_each_generation_of_nics_has_the_rate_of_the_slides(platform, most):
    limit = limit_of_platform(platform, nodes=2, collective="message_rate")
    assert limit.messages_per_s == most


def test_eight_nics_a_node_send_eight_times_as_many():
    limit = limit_of_platform("azure-nd-h100-v5", nodes=4, collective="message_rate")
    assert limit.messages_per_s == 2 * 8 * 330e6


def test_a_nic_whose_rate_is_not_published_says_so():
    limit = limit_of_platform("aws-p5", nodes=2, collective="message_rate")
    assert limit.messages_per_s is None
    assert any("messages a second" in words for words in limit.bounds[0].missing)


def test_within_one_node_there_is_no_bound():
    with pytest.raises(InputError, match="within one node"):
        limit_of_platform("azure-hbv4", nodes=1, collective="message_rate")


def test_a_rate_near_that_of_the_nic_is_ok(tmp_path):
    explained = explain(tmp_path, table(64, (1, 312e6), (8, 312e6), (64, 300e6)))
    assert explained.verdict.outcome == "ok"
    assert "312 M messages/s, 95 % of the 330 M messages/s" in explained.verdict.sentence


def test_too_few_pairs_are_counted_and_not_accused(tmp_path):
    explained = explain(tmp_path, table(16, (1, 80e6), (8, 80e6), (64, 70e6)))
    assert explained.verdict.outcome == "cannot_tell"
    assert "80 M messages/s" in explained.verdict.sentence
    assert any("16 pairs sent 5 M messages/s each: 66 such pairs" in step for step in explained.next_steps)


def test_more_than_the_nic_can_send_is_called_impossible(tmp_path):
    explained = explain(tmp_path, table(64, (1, 439e6), (8, 439e6)))
    assert explained.verdict.outcome == "cannot_tell"
    assert "PERF010" in codes(explained)
    # Twice the nodes can send it.
    assert "PERF010" not in codes(explain(tmp_path, table(64, (1, 439e6), (8, 439e6)), nodes=4))


def test_of_large_messages_the_bytes_decide(tmp_path):
    # 4 KiB at 12 M/s are 49 of 50 GB/s; 330 M/s would be 1.35 TB/s.
    explained = explain(tmp_path, table(64, (4096, 11.9e6), (1048576, 46_000)))
    assert [size.verdict.outcome for size in explained.series[0].sizes] == ["ok", "ok"]
    assert explained.series[0].sizes[0].ceiling_Bps == pytest.approx(50e9 / 64)


def test_large_messages_at_half_of_the_line_are_slow(tmp_path):
    explained = explain(tmp_path, table(64, (1048576, 24_000), (4194304, 6_000)))
    assert explained.verdict.outcome == "slow"


def test_without_the_number_of_pairs_nothing_is_judged(tmp_path):
    explained = explain(tmp_path, f"{HEAD}{COLUMNS}1 250.11 250110000.00\n")
    assert explained.verdict.outcome == "cannot_tell"
    assert any("pairs" in words for words in explained.left_out)


def test_both_directions_together_may_pass_the_rate_of_one(tmp_path):
    text = "# OSU MPI Bi-Directional Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n4194304             93750.00\n"
    explained = explain(tmp_path, text)
    assert explained.verdict.outcome == "ok"
    assert codes(explained) == set()
