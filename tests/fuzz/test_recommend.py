"""Whatever is asked for, a recommendation is sound or refused in a few lines."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from busbw.api.recommendations import GOALS
from busbw.base.errors import InputError
from busbw.env.recommend import recommend
from busbw.machine.named import platforms
from busbw.model.platform import PlatformSetting

PLATFORMS = tuple(each.platform for each in platforms())
NAMES = sorted({each.name for platform in PLATFORMS for each in platform.settings})
VALUES = (
    st.none() | st.text(max_size=20) | st.sampled_from(["0", "1", "2", "5", "32", "=mlx5_0", "^LL128", "none", "tcp"])
)


@settings(max_examples=66, deadline=None, derandomize=True)
@given(
    platform=st.sampled_from(PLATFORMS),
    nodes=st.integers(-2, 2000),
    goal=st.sampled_from(GOALS),
    follow=st.none() | st.text(max_size=30) | st.sampled_from(["article", "gke", "cscs", "pinning"]),
    nccl=st.none() | st.text(max_size=12) | st.sampled_from(["2.18", "2.2", "22809", "2.99.1", "0.0"]),
    size_bytes=st.none() | st.integers(0, 2**50),
)
def test_any_job_gets_an_answer_or_a_clear_error(platform, nodes, goal, follow, nccl, size_bytes):
    try:
        found = recommend(
            platform, nodes=nodes, goal=goal, follow=follow, nccl=nccl, size_bytes=size_bytes, siblings=PLATFORMS
        )
    except InputError as error:
        assert 1 <= len(str(error).splitlines()) <= 4  # noqa: PT017 - the job may be sound instead
        return
    assert len({each.name for each in found.settings}) == len(found.settings)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    platform=st.sampled_from(PLATFORMS),
    name=st.sampled_from(NAMES),
    value=VALUES,
    reason=st.none() | st.text(max_size=9),
)
def test_whatever_a_site_publishes_is_taken_or_left_out(platform, name, value, reason):
    setting = PlatformSetting(name=name, value=value, scope="nccl", reason=reason, source=("site",))
    theirs = structs.replace(platform, settings=(setting,))

    for goal in GOALS:
        found = recommend(theirs, goal=goal)

        assert all(each.reason for each in found.settings)
