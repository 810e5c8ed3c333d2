"""What the name of a line says of how NCCL ran: `NCCL`, `NCCL-Tuned` and `NCCL+SHARP` over 256 to 3,168 GPUs."""

from pathlib import Path

import pytest

from busbw.api.scaling_reports import ScalingRequest, scaling
from busbw.judge.scaling.collective import KnownPlatform, collective_view
from busbw.judge.scaling.lines import meaning_of
from busbw.machine.named import platform
from busbw.model.scaling import Scaling, ScalingSeries

from .observed import GiB, measured

# The sizes of the machine and the names of the lines are those of a published figure, whose values stand in a picture
# only: these are made up, below both limits.
TABLE = """collective, size, gpus, busbw_GBps, series
all_reduce, 8G,  256, 360, NCCL
all_reduce, 8G, 1024, 355, NCCL
all_reduce, 8G, 3168, 350, NCCL
all_reduce, 8G,  256, 372, NCCL-Tuned
all_reduce, 8G, 1024, 370, NCCL-Tuned
all_reduce, 8G, 3168, 368, NCCL-Tuned
all_reduce, 8G,  256, 520, NCCL+SHARP
all_reduce, 8G, 1024, 515, NCCL+SHARP
all_reduce, 8G, 3168, 510, NCCL+SHARP
"""


def drawn(tmp_path: Path, text: str = TABLE, **asked: object) -> Scaling:
    file = tmp_path / "slides.csv"
    file.write_text(text)
    request = ScalingRequest(sources=(str(file),), platform="azure-nd-h100-v5", **asked)  # type: ignore[arg-type]
    (view,) = scaling(request).views
    return view


def line(view: Scaling, label: str) -> ScalingSeries:
    (found,) = [each for each in view.series if each.label == label]
    return found


def limits(found: ScalingSeries) -> set[str]:
    return {str(point.limit_words).split(":")[0] for point in found.points}


def test_a_line_called_sharp_is_held_against_the_limit_of_switches_that_add(tmp_path: Path) -> None:
    view = drawn(tmp_path)

    assert [point.nodes for point in line(view, "NCCL").points] == [32, 128, 396]
    assert limits(line(view, "NCCL")) == limits(line(view, "NCCL-Tuned")) == {"by ring, the highest"}
    assert limits(line(view, "NCCL+SHARP")) == {"by collnet"}
    ring = [point.limit_Bps for point in line(view, "NCCL").points]
    assert ring == pytest.approx([400e9] * 3)
    assert all(
        each.limit_Bps is not None and 790e9 < each.limit_Bps < 800e9 for each in line(view, "NCCL+SHARP").points
    )
    told = [note for note in view.notes if "by its name" in note]
    assert len(told) == 2
    assert told[0].startswith("NCCL-Tuned: by its name with settings of its own")
    assert told[1].startswith("NCCL+SHARP: by its name the switches of the network add (collnet)")


def test_no_result_under_the_limit_of_sharp_is_above_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "slides.csv"
    file.write_text(TABLE)
    request = ScalingRequest(sources=(str(file),), platform="azure-nd-h100-v5")

    assert "SCAL003" not in [each.code for each in scaling(request).findings]
    file.write_text(TABLE.replace("NCCL+SHARP", "another library"))
    assert "SCAL003" in [each.code for each in scaling(request).findings]


def test_an_algorithm_that_somebody_names_goes_before_the_name_of_a_line(tmp_path: Path) -> None:
    view = drawn(tmp_path, algorithm="ring")

    assert limits(line(view, "NCCL+SHARP")) == {"by ring"}
    assert not [note for note in view.notes if "by its name" in note]


@pytest.mark.parametrize(
    "known",
    [{"NCCL_COLLNET_ENABLE": "0"}, {"algorithm": "Ring"}, {"NCCL_ALGO": "Ring"}],
    ids=lambda known: next(iter(known)),
)
def test_what_the_library_or_a_setting_says_goes_before_the_name(known: dict[str, str]) -> None:
    here = [measured(nodes, 360, settings={"series": "NCCL+SHARP", **known}) for nodes in (32, 128, 396)]
    machine = KnownPlatform(platform=platform("azure-nd-h100-v5").platform, name="azure-nd-h100-v5")

    view = collective_view(here, axis="nodes", size_bytes=GiB, known=machine)

    assert not [note for note in view.notes if "by its name" in note]
    assert not any("collnet" in str(point.limit_words) for each in view.series for point in each.points)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("NCCL+SHARP", "sharp"),
        ("NCCL + SHARPv3", "sharp"),
        ("SHARP", "sharp"),
        ("nccl w/ sharp", "sharp"),
        ("with_sharp", "sharp"),
        ("sharp on", "sharp"),
        ("NCCL-Tuned", "tuned"),
        ("NCCL (optimized)", "tuned"),
        ("NCCL", None),
        ("no SHARP", None),
        ("NCCL w/o SHARP", None),
        ("without-sharp", None),
        ("sharp=0", None),
        ("SHARP off", None),
        ("NVLink SHARP", None),
        ("NVLSharp", None),
        ("nvls_sharp", None),
        ("sharpened", None),
        ("untuned", None),
        ("not tuned", None),
        ("not told", None),
        ("", None),
        ("sharp" * 100_000, None),
    ],
)
def test_only_a_name_that_says_it_is_taken_so(name: str, meaning: str | None) -> None:
    assert meaning_of(name) == meaning


def test_gains_that_are_published_for_the_platform_are_told_beside_the_figure(tmp_path: Path) -> None:
    text = "collective, size, nodes, ranks, busbw_GBps\nalltoall, 256M, 2, 16, 20\nalltoall, 256M, 4, 32, 18\n"
    file = tmp_path / "alltoall.csv"
    file.write_text(text)

    def notes(name: str) -> list[str]:
        (view,) = scaling(ScalingRequest(sources=(str(file),), platform=name)).views
        return [note for note in view.notes if note.startswith("published, for information")]

    assert len(notes("azure-ndm-a100-v4")) == 2
    assert (
        "alltoall_2dh 256 MiB on 256 nodes: gain over a linear alltoall, more than 6.7 x"
        in notes("azure-ndm-a100-v4")[0]
    )
    assert notes("azure-nd-h100-v5") == []
