"""Profiles: those that are shipped, what a site may write, and the clear refusal of everything else."""

import pytest

from busbw.base.errors import InputError
from busbw.check.profiles import MOST_BYTES, rate_Bps, read_profile, screening_of
from busbw.facts.check_profiles import shipped_profiles

from .made import PROFILE, profile

THRESHOLD = '[[threshold]]\nmeasure = "send"\nat_least = "80Gb/s"\nsource = "us"\n'


@pytest.mark.parametrize("name", ["quick", "daily", "acceptance"])
def test_shipped_profiles_keep_to_the_schema_and_name_their_sources(name):
    read = read_profile(shipped_profiles()[name], name)

    assert read.title.startswith(name)
    assert all(each.source for each in read.threshold)


def test_quick_takes_at_most_30_seconds_and_drains_for_errors_alone():
    quick = read_profile(shipped_profiles()["quick"], "quick")

    assert screening_of(quick, None).time_limit_s <= 30
    assert (quick.fail_on, quick.when_cannot_tell, quick.stages) == ("error", "pass", ("screening",))


@pytest.mark.parametrize(
    ("text", "cause", "line"),
    [
        (PROFILE.replace("time_limit_s", "time_limt_s"), "unknown key 'time_limt_s'; maybe: time_limit_s", 4),
        (PROFILE.replace("parts", "part"), "unknown key 'part' in [screening]; maybe: parts", 6),
        (
            PROFILE + THRESHOLD.replace("at_least", "atleast"),
            "unknown key 'atleast' in [threshold]; maybe: at_least",
            9,
        ),
        (PROFILE + THRESHOLD.replace("send", "sned"), "invalid enum value 'sned' in threshold", None),
        (PROFILE + THRESHOLD.replace('at_least = "80Gb/s"', ""), "a threshold of send without a bound", 7),
        (PROFILE + THRESHOLD.replace("80Gb/s", "80"), "'80' is not a rate", 7),
        (PROFILE + THRESHOLD.replace('"us"', '" "'), "a threshold needs a source", 7),
        (PROFILE + THRESHOLD.replace("send", "noise"), "noise is bounded from above", 7),
        (PROFILE + THRESHOLD.replace('at_least = "80Gb/s"', "below_peers_percent = 5"), "depends on the partner", 7),
        (PROFILE + THRESHOLD.replace('at_least = "80Gb/s"', "at_most_percent = 5"), "send is bounded from below", 7),
        (PROFILE.replace('["screening"]', "[]"), "no stage", 3),
        (PROFILE.replace('["screening"]', '["judge"]'), "judge needs what the suite measures", 3),
        (PROFILE.replace('["memory"]', '["memory", "memory"]'), "parts names something twice", 6),
        (PROFILE + 'required = ["gpus"]\n', "gpus is required and not among the parts", 7),
        (PROFILE + 'required = ["memory", "memory"]\n', "required names something twice", 7),
        (PROFILE + THRESHOLD.replace('at_least = "80Gb/s"', "below_link_percent = 5"), "not bounded by a PCIe link", 7),
        (PROFILE.replace("30", "0"), "float` > 0", 4),
        (PROFILE.replace("30", "1e999"), "float` <= 86400", 4),
        (PROFILE.replace("30", '"soon"'), "expected `float`, got `str`", 4),
        (PROFILE + '[health]\nignore = ["HOST999"]\n', "'HOST999' is no code of a host's health", 8),
        (PROFILE + '[health]\nignore = ["HOST001"]\nwarn = ["HOST001"]\n', "HOST001 stands in two lists", 7),
        (PROFILE + '[suite]\ncollectives = ["allreduce"]\n', "'allreduce' is not a collective", 8),
        (PROFILE + '[transfer]\npartners = "n[3-1]"\n', "a range that runs backwards", 8),
        (PROFILE + "[transfer]\nremote_shell = []\n", "remote_shell is empty", 8),
        (PROFILE + THRESHOLD * 201, "201 thresholds; 200 are the most", None),
        ("title = ", "not valid TOML", None),
        ("a" * (MOST_BYTES + 1), "a profile has at most", None),
        ("a." * 300 + "a = 1", "a line with more than 200 dots", 1),
        ("", "missing required field", None),
    ],
)
def test_what_a_profile_may_not_say_is_refused_with_its_line(text, cause, line):
    with pytest.raises(InputError) as refused:
        read_profile(text, "site.toml")

    assert cause in refused.value.cause
    if line is not None:
        assert refused.value.where == f"site.toml:{line}"


@pytest.mark.parametrize(("text", "rate"), [("80Gb/s", 10e9), ("12 GB/s", 12e9), ("200Gbps", 25e9), ("1GiB/s", 2**30)])
def test_rates_are_in_bits_or_bytes(text, rate):
    assert rate_Bps(text) == rate


def test_partners_of_the_command_go_before_the_profiles():
    read = read_profile(PROFILE + '[transfer]\npartners = "n[0-3]"\n' + THRESHOLD, "site.toml")

    assert screening_of(read, None).partners == ("n0", "n1", "n2", "n3")
    assert screening_of(read, None, ("x", "x")).partners == ("x",)
    assert screening_of(read, None).enough_Bps == 10e9
    assert screening_of(profile(), None).enough_Bps is None
