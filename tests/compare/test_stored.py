"""Stored results and files of other tools as they are compared."""

import shutil
from pathlib import Path

import pytest

from busbw.api.comparing import compare_stored
from busbw.errors import InputError

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"


def copies(folder, name, count):
    suffix = Path(name).suffix
    return [str(shutil.copy(SAMPLES / name, folder / f"{folder.name}-{number}{suffix}")) for number in range(count)]


def compared(*names, anyway=False):
    return compare_stored(names, anyway=anyway, geometric_mean=False)


def test_two_logs_of_one_launch_each_cannot_tell(tmp_path):
    one, other = copies(tmp_path, "nccl-tests-json-3.json", 2)

    found = compared(one, other)

    assert found.verdict.outcome == "cannot_tell"
    assert [side.kind for side in found.sides] == ["import", "import"]
    assert [finding.code for finding in found.findings] == ["CMP017"]
    assert all(point.estimate.ratio == 1 for point in found.versus[0].points)


def test_several_launches_of_a_side_are_separated_by_commas(tmp_path):
    names = copies(tmp_path, "nccl-tests-json-3.json", 24)

    found = compared(",".join(names[:12]), ",".join(names[12:]))

    assert found.blocks == 12
    assert found.verdict.outcome == "same"
    assert [finding.code for finding in found.findings] == ["CMP014"]


def test_logs_over_other_ranks_are_refused():
    one, other = (str(SAMPLES / f"nccl-tests-2.17.{patch}.log") for patch in (3, 9))

    with pytest.raises(InputError, match="A: 4 ranks; B: 8 ranks"):
        compared(one, other)
    with pytest.raises(InputError, match="have no point in common"):
        compared(one, other, anyway=True)


def test_a_result_is_not_compared_with_itself(tmp_path):
    (one,) = copies(tmp_path, "nccl-tests-json-3.json", 1)

    with pytest.raises(InputError, match="named twice"):
        compared(one, f"{tmp_path}/../{tmp_path.name}/{Path(one).name}")


@pytest.mark.parametrize("name", ["", ",", "nowhere", "\0", "a" * 5000])
def test_a_name_that_means_nothing_is_refused(name):
    with pytest.raises(InputError):
        compared(name, str(SAMPLES / "nccl-tests-json-3.json"))


def test_a_file_that_nobody_reads_is_refused():
    with pytest.raises(InputError, match="nothing in it"):
        compared(str(SAMPLES / "SOURCES.md"), str(SAMPLES / "nccl-tests-json-3.json"))
