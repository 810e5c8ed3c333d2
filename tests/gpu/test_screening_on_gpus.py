"""What a check of nodes screens on real GPUs: copies between the host and each GPU, and between pairs of them."""

from busbw.api.nodes.screenings import screen_here
from busbw.check.parts import link_limit
from busbw.check.profiles import read_profile, screening_of
from busbw.facts.check_profiles import shipped_profiles
from busbw.model.check.screening import Screening

from .conftest import gpu_count


def test_copies_to_and_from_every_gpu_are_measured_and_lie_below_the_link() -> None:
    found = screen_here(Screening(parts=("pcie",), time_limit_s=120.0))

    assert (found.unscreened, found.changed) == ((), ())
    for measure in ("to_gpu", "from_gpu"):
        own = [each for each in found.readings if each.measure == measure]
        assert len(own) == gpu_count()
        for each in own:
            print(measure, each.partner, [f"{rate / 1e9:.1f}" for rate in each.samples], each.way)
            # A lane of PCIe 3 carries about 1 GB/s: no link of a GPU is that narrow.
            assert min(each.samples) > 1e9
            limit = link_limit(each.way)
            assert limit is None or max(each.samples) <= limit.rate_Bps


def test_the_daily_screening_of_sound_gpus_leaves_nothing_required_open() -> None:
    profile = read_profile(shipped_profiles()["daily"], "daily")

    found = screen_here(screening_of(profile, None))

    print([(each.measure, each.partner, each.samples) for each in found.readings])
    assert profile.screening.required is not None
    assert [each for each in found.unscreened if each.part in profile.screening.required] == []
    assert {"to_gpu", "from_gpu", "gpu_pair"} <= {each.measure for each in found.readings}
