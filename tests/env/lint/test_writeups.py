"""What is found in the five write-ups: each finding with its reason, and nothing else.

Their texts are not part of this repository: they are read where they lie beside it, and without them this is skipped.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from busbw.env.lint import lint
from busbw.env.reading import read

from .corpus import context_of, short

SEEDS = Path(__file__).parents[3] / ".." / "shared" / "seeds"
INTERCONNECTS, PINNING = "azure-interconnects.txt", "azure-cpu-pinning.txt"
OCI, ISAMBARD, MUG = "oci-nccl.txt", "isambard-nccl.txt", "mvapich2-at-azure.txt"
NDV4, NDV5 = "azure-ndv4", "azure-nd-h100-v5"
OLD_NAME = "NCCL_MIN_NCHANNELS is read, and NCCL_MIN_CTAS has been its name since 2.17"
UNREAD_SOURCE = "the file that is sourced is not there to be read"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Lines of a write-up, and the reason of every finding on them by its line within the part and its code."""

    file: str
    first: int
    last: int
    platform: str | None = None
    # Lines of a table with bars between variable and value, as lines of an environment.
    is_table: bool = False
    reasons: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the lines, those of a table as settings."""
        lines = (SEEDS / self.file).read_text(encoding="utf-8").split("\n")[self.first - 1 : self.last]
        if self.is_table:
            cells = re.findall(r"^([A-Z][A-Z0-9_]+) *\| *\n?([^|\n]+?) *\|", "\n".join(lines), re.MULTILINE)
            lines = [f"{name}={value}" for name, value in cells if "<" not in value]
        return "\n".join(lines) + "\n"


LAUNCH_ORDER_V4 = "S8: ranks follow the launch order and GPUs are on NUMA nodes 1,1,0,0,3,3,2,2"
LAUNCH_ORDER_V5 = (
    "Open MPI turns to the NUMA nodes by turns and GPUs 0-3 are on node 0: ranks 4 and 6 are wrong under each"
)
ONE_NODE_V5 = "as the article says: HPC-X puts all ranks on NUMA node 0, and GPUs 4-7 are on node 1"
CAPPED = "2 MiB with NCCL's default buffer of 4 MiB, an eighth of which is 512 KiB"
PASTED = "a command of several lines that became one: each backslash stands before a blank"
NVLS_A100 = "S4: NCCL_NVLS_ENABLE is NVLink SHARP, which an A100 does not have, and not NVLink"
NIC_CHECK = "a test of the NICs, and noted as that"
PARTS = (
    # The four command lines of the interconnect article.
    Part(file=INTERCONNECTS, first=24, last=35),
    Part(
        file=INTERCONNECTS,
        first=24,
        last=35,
        platform=NDV4,
        reasons={"1 ENV120": LAUNCH_ORDER_V4, "11 ENV082": NVLS_A100},
    ),
    Part(file=INTERCONNECTS, first=24, last=35, platform=NDV5, reasons={"1 ENV120": LAUNCH_ORDER_V5}),
    Part(file=INTERCONNECTS, first=38, last=51),
    Part(
        file=INTERCONNECTS,
        first=38,
        last=51,
        platform=NDV4,
        reasons={"1 ENV120": LAUNCH_ORDER_V4, "12 ENV088": NIC_CHECK},
    ),
    Part(
        file=INTERCONNECTS,
        first=38,
        last=51,
        platform=NDV5,
        reasons={"1 ENV120": LAUNCH_ORDER_V5, "12 ENV088": NIC_CHECK},
    ),
    Part(file=INTERCONNECTS, first=54, last=72, reasons={"14 ENV024": OLD_NAME}),
    Part(
        file=INTERCONNECTS,
        first=54,
        last=72,
        platform=NDV4,
        reasons={"1 ENV120": LAUNCH_ORDER_V4, "14 ENV024": OLD_NAME, "17 ENV082": NVLS_A100},
    ),
    Part(
        file=INTERCONNECTS,
        first=54,
        last=72,
        platform=NDV5,
        reasons={"1 ENV120": LAUNCH_ORDER_V5, "14 ENV024": OLD_NAME},
    ),
    Part(file=INTERCONNECTS, first=74, last=78, reasons={"2 ENV067": "right for all_reduce, and for nothing else"}),
    # Its exports for training, and the table of the same.
    Part(
        file=INTERCONNECTS,
        first=278,
        last=291,
        reasons={"2 ENV066": CAPPED, "3 ENV024": OLD_NAME, "14 ENV001": UNREAD_SOURCE},
    ),
    Part(
        file=INTERCONNECTS,
        first=278,
        last=291,
        platform=NDV5,
        reasons={"2 ENV066": CAPPED, "3 ENV024": OLD_NAME, "14 ENV001": UNREAD_SOURCE},
    ),
    Part(
        file=INTERCONNECTS,
        first=278,
        last=291,
        platform=NDV4,
        reasons={
            "1 ENV085": "the file of NDv5 on NDv4",
            "2 ENV066": CAPPED,
            "3 ENV024": OLD_NAME,
            "7 ENV120": "masks that count upwards, as NDv5's GPUs do",
            "14 ENV001": UNREAD_SOURCE,
        },
    ),
    Part(
        file=INTERCONNECTS,
        first=256,
        last=273,
        is_table=True,
        reasons={"1 ENV131": "/opt/Microsoft with a capital", "2 ENV066": CAPPED, "3 ENV024": OLD_NAME},
    ),
    Part(file=INTERCONNECTS, first=242, last=242, reasons={"1 ENV006": "curly quotes of the web page"}),
    # The pinning article.
    Part(file=PINNING, first=37, last=37, reasons={"1 ENV005": PASTED}),
    Part(file=PINNING, first=37, last=37, platform=NDV5, reasons={"1 ENV120": ONE_NODE_V5, "1 ENV005": PASTED}),
    Part(
        file=PINNING, first=39, last=39, reasons={"1 ENV005": PASTED, "1 ENV019": "<topo-file.xml> is to be replaced"}
    ),
    Part(
        file=PINNING,
        first=45,
        last=48,
        is_table=True,
        reasons={"1 ENV020": "S2: nothing reads NCCL_MIN_CHANNELS", "2 ENV030": "S3: NCCL reads 512K as 512 bytes"},
    ),
    Part(
        file=PINNING,
        first=63,
        last=68,
        is_table=True,
        reasons={"1 ENV020": "S2: nothing reads NCCL_MIN_CHANNELS", "2 ENV030": "S3: NCCL reads 512K as 512 bytes"},
    ),
    # The OCI article: its script is right about the shapes, and wrong as a script.
    *(
        Part(
            file=OCI,
            first=33,
            last=66,
            platform=platform,
            reasons={
                "1 ENV019": "`if[` without a blank, and the lines with `fi` are lost",
                "5 ENV003": "a space behind the equals sign",
                "11 ENV003": "a space behind the equals sign",
                "14 ENV005": "a blank behind each backslash",
                "28 ENV009": "-mca coll_hcoll_enable=0 takes the next option for its value",
                "32 ENV003": "a space behind the equals sign",
            },
        )
        for platform in (None, "oci-bm-gpu4-8", "oci-bm-gpu-b4-8")
    ),
    # The Isambard guide.
    Part(
        file=ISAMBARD,
        first=26,
        last=50,
        reasons={"10 ENV024": OLD_NAME, "12 ENV035": "0 has been the default since 2.19"},
    ),
    Part(
        file=ISAMBARD,
        first=26,
        last=50,
        platform="isambard-ai-phase2",
        reasons={
            "10 ENV024": OLD_NAME,
            "12 ENV035": "0 has been the default since 2.19",
            "22 ENV070": "GDRCopy is on and LL128 not off: only these keep sums right",
        },
    ),
    Part(file=ISAMBARD, first=102, last=109),
    Part(file=ISAMBARD, first=130, last=132),
    Part(file=ISAMBARD, first=201, last=206),
    Part(file=ISAMBARD, first=221, last=290, reasons={"60 ENV001": "a sentence of the guide"}),
    Part(file=ISAMBARD, first=294, last=315),
)


@pytest.fixture(scope="module", autouse=True)
def seeds() -> None:
    """Skip where the write-ups are not there."""
    if not SEEDS.is_dir():
        pytest.skip(f"the write-ups are not at {SEEDS}: no finding on them is checked")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.file}:{part.first}-{part.last} on {part.platform}")
def test_each_finding_on_a_write_up_has_a_reason_and_nothing_else_is_found(part: Part):
    reading = read(part.text(), part.file, "environment" if part.is_table else None)

    found = lint(reading, context_of(platform=part.platform))

    assert [short(each) for each in found] == list(part.reasons)


@pytest.mark.parametrize(
    ("platform", "line", "other"),
    [("oci-bm-gpu4-8", 75, "oci-bm-gpu-b4-8"), ("oci-bm-gpu-b4-8", 77, "oci-bm-gpu4-8")],
)
def test_the_exchanged_lists_of_the_oci_article_are_found(platform: str, line: int, other: str):
    text = (SEEDS / OCI).read_text(encoding="utf-8").split("\n")[line - 1]
    listed = text[text.index('"') :]

    found = lint(read(f"export NCCL_IB_HCA={listed}\n", OCI, "shell"), context_of(platform=platform))

    assert [(each.code, other in each.title) for each in found] == [("ENV044", True)]


@pytest.mark.parametrize("platform", ["oci-bm-gpu4-8", "oci-bm-gpu-b4-8"])
def test_the_lists_of_the_script_of_the_oci_article_are_right(platform: str):
    lines = (SEEDS / OCI).read_text(encoding="utf-8").split("\n")
    number = {"oci-bm-gpu-b4-8": 37, "oci-bm-gpu4-8": 43}[platform]
    listed = lines[number - 1][lines[number - 1].index('"') :]

    assert lint(read(f"export NCCL_IB_HCA={listed}\n", OCI, "shell"), context_of(platform=platform)) == ()


def test_the_slides_set_nothing():
    assert read((SEEDS / MUG).read_text(encoding="utf-8"), MUG, "shell").assignments == ()
