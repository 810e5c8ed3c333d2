"""Bindings as users write them."""

import pytest

from busbw.base.errors import InputError
from busbw.topo.ranks.binding import CpuLists, MpirunOptions, RankFile, Slot, SrunOption, Unspecified, parse_binding


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default", Unspecified()),
        ("mpirun", Unspecified()),
        ("--report-bindings", Unspecified()),
        ("--bind-to numa --map-by ppr:8:node", MpirunOptions(bind_to="numa", map_by="node", ppr=8)),
        ("mpirun -bind-to=SOCKET", MpirunOptions(bind_to="socket")),
        ("--map-by package:PE=4:nooversubscribe", MpirunOptions(map_by="socket", cores_per_rank=4)),
        ("--map-by ppr:2:numa:pe=12", MpirunOptions(map_by="numa", ppr=2, cores_per_rank=12)),
        ("--bind-to :overload-allowed", MpirunOptions()),
        ("--map-by :PE=2", MpirunOptions(cores_per_rank=2)),
        ("--map-by l3cache", MpirunOptions(map_by="cache", unclear=("cache",))),
        ("--map-by numa:SPAN", MpirunOptions(map_by="numa", unclear=("span",))),
        ("none", MpirunOptions(bind_to="none")),
        ("srun --cpu-bind=cores", SrunOption(kind="cores")),
        ("map_ldom:0,1", SrunOption(kind="map_ldom:0,1")),
        ("mask_cpu:0x3,F0", CpuLists(lists=((0, 1), (4, 5, 6, 7)), launcher="srun")),
        ('--cpu-bind=verbose,mask_cpu:"3*2,c"', CpuLists(lists=((0, 1), (0, 1), (2, 3)), launcher="srun")),
        ("--cpu-bind map_cpu:0,0x10", CpuLists(lists=((0,), (16,)), launcher="srun")),
        ("taskset -c 0-3", CpuLists(lists=((0, 1, 2, 3),), launcher="taskset")),
        ("0-1;4,6 8", CpuLists(lists=((0, 1), (4, 6), (8,)), launcher="taskset")),
        (
            "rank 1=b slot=1:0-1;2\n# comment\nrank 0=a slots=0:*\n",
            RankFile(ranks=((0, (Slot(socket=0, cores=()),)),), hosts=2),
        ),
    ],
)
def test_a_binding_is_read_as_its_launcher_reads_it(text: str, expected: object) -> None:
    assert parse_binding(text) == expected


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        ("--bind-to", "lacks its value"),
        ("--bind-to nuna", "'nuna' is not known"),
        ("--bind-to node", "not bound to that"),
        ("--map-by none", "mapped to something"),
        ("--bind-to core --bind-to numa", "twice"),
        ("--bind-to core --cpu-bind=cores", "srun and of mpirun"),
        ("--np 8", "not an option that binds"),
        ("--map-by ppr:0:node", "0 ranks"),
        ("mask_cpu:", "is not a mask"),
        ("mask_cpu:0xff,,f", "is not a mask"),
        ("mask_cpu:0", "names no CPU"),
        ("mask_cpu:f*5000", "a list for"),
        ("map_cpu:x", "is not a CPU"),
        ("taskset -c", "without a list"),
        ("taskset -c 5-1", "is not a list"),
        ("coers", "is not a binding"),
        ("rank 0=a slot=x", "is not a slot"),
        ("rank 0=a slot=0\nrank 0=b slot=1", "stands twice"),
        ("rank 0=a slot=0\nnonsense", "not a line of a rankfile"),
        ("x" * 200_001, "over the limit"),
    ],
)
def test_what_no_launcher_knows_is_refused_with_its_cause(text: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        parse_binding(text)


def test_a_misspelt_word_gets_the_nearest_one() -> None:
    with pytest.raises(InputError) as caught:
        parse_binding("--bind-to nuna")
    assert caught.value.hint == "maybe: numa"
