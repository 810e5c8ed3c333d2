"""MVAPICH's variables: names, values as each generation reads them, and those of another generation."""

import pytest

from busbw.env.lint import lint
from busbw.env.misspelled import read_name
from busbw.env.reading import read
from busbw.env.rules.combinations import interactions
from busbw.env.rules.subject import CheckContext
from busbw.env.values import read_value
from busbw.facts.envvars import owners, readers, variable, variables
from busbw.model.finding import Finding

MVAPICH = [each for each in variables().values() if each.owner.startswith("MVAPICH")]


def found(text: str, language: str = "shell") -> list[Finding]:
    return list(lint(read(text, "job.sh", language), CheckContext()))


def codes(text: str) -> list[str]:
    return [each.code for each in found(text)]


def test_each_generation_has_its_variables_and_its_versions():
    counted = {owner: sum(each.owner == owner for each in MVAPICH) for owner in ("MVAPICH2", "MVAPICH 3", "MVAPICH 4")}

    assert counted["MVAPICH2"] >= 120
    assert counted["MVAPICH 3"] >= 20
    assert counted["MVAPICH 4"] >= 40
    assert {"MVAPICH2", "MVAPICH 3", "MVAPICH 4"} <= set(owners())


def test_every_one_says_what_it_does_where_it_is_from_and_how_far_it_was_checked():
    for each in MVAPICH:
        assert each.meaning.endswith("."), each.name
        assert each.source, each.name
        assert each.checked in {"source", "manual", "recipe"}, each.name
        assert all(note.endswith(".") for note in each.notes), each.name
        assert each.same_as is None or each.same_as in variables(), each.name
        assert each.replaced_by is None or each.replaced_by in variables(), each.name


def test_a_word_defaults_to_one_of_its_choices():
    for each in MVAPICH:
        if each.choices and each.default not in (None, "auto"):
            assert each.default in each.choices, each.name


@pytest.mark.parametrize("name", ["MV2_CKPT_FILE", "MV2_UD_MTU", "MVP_CH4_MT_MODEL", "UCR_SHOW_ENV_INFO"])
def test_a_name_that_is_read_and_not_described_is_no_slip(name: str):
    said = read_name(name)

    assert (said.verdict, said.meant) == ("open", ())
    assert said.note is not None
    assert said.note.startswith("read by MVAPICH")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MV2_ENABLE_AFFINTY", "MV2_ENABLE_AFFINITY"),
        ("MV2_IBA_EAGR_THRESHOLD", "MV2_IBA_EAGER_THRESHOLD"),
        ("MV2_USE_MCASST", "MV2_USE_MCAST"),
        ("MVP_CH4_NETMD", "MVP_CH4_NETMOD"),
        ("MV2_CKPT_FIL", "MV2_CKPT_FILE"),
    ],
)
def test_a_slip_is_told_what_was_meant(written: str, meant: str):
    assert meant in read_name(written).meant
    assert "ENV020" in codes(f"export {written}=1\nmpiexec -n 2 ./app\n")


@pytest.mark.parametrize(
    ("name", "text", "value", "kind"),
    [
        ("MV2_USE_CUDA", "1", "1", None),
        ("MV2_USE_CUDA", "yes", "0", "other value"),
        ("MV2_USE_CUDA", "2", "2", "odd"),
        ("MV2_THREADS_PER_PROCESS", "0x4", "0", "other value"),
        ("MV2_THREADS_PER_PROCESS", "010", "10", None),
        ("MV2_IBA_EAGER_THRESHOLD", "64K", "65536", None),
        ("MV2_IBA_EAGER_THRESHOLD", "64k", "65536", None),
        ("MV2_IBA_EAGER_THRESHOLD", "64KB", "64", "other value"),
        ("MV2_IBA_EAGER_THRESHOLD", "17408", "17408", None),
        ("MV2_CPU_BINDING_POLICY", "SCATTER", "scatter", None),
        ("MV2_CPU_BINDING_POLICY", "Scatter", None, "fails"),
        ("MV2_CPU_BINDING_LEVEL", "numa", None, "fails"),
        ("MV2_RAIL_SHARING_POLICY", "round_robin", "FIXED_MAPPING", "ignored"),
        ("MVP_ENABLE_GPU", "yes", "1", None),
        ("MVP_ENABLE_GPU", "y", None, "fails"),
        ("MVP_CH4_OFI_MAX_NICS", "-1", "-1", None),
        ("MVP_CH4_OFI_MAX_NICS", "4k", None, "fails"),
        ("MVP_ALLREDUCE_INTRA_ALGORITHM", "osu_sharp", "osu_sharp", None),
        ("MVP_ALLREDUCE_INTRA_ALGORITHM", "sharp", None, "fails"),
        ("MVP_CH4_NETMOD", "ucx", "ucx", None),
    ],
)
def test_a_value_is_what_its_reader_makes_of_it(name: str, text: str, value: str | None, kind: str | None):
    taken = read_value(variable(name), text)

    assert (taken.value, taken.kind) == (value, kind)


@pytest.mark.parametrize(
    ("named", "name", "is_told"),
    [
        ("module load mvapich/4.0", "MV2_CPU_BINDING_POLICY=scatter", True),
        ("module load mvapich-plus/4.0", "MVP_ENABLE_AFFINITY=0", True),
        ("module load mvapich2/2.3.7", "MVP_CH4_NETMOD=ucx", True),
        ("export PATH=/opt/mvapich2-2.3.7-1/bin:$PATH", "MVP_ENABLE_AFFINITY=0", True),
        ("module load mvapich/3.0", "MVP_CH4_NETMOD=ucx", True),
        # Neighbours that must stay silent.
        ("module load mvapich/4.0", "MVP_CH4_NETMOD=ucx", False),
        ("module load mvapich/3.0", "MV2_CPU_BINDING_POLICY=scatter", False),
        ("module load mvapich2/2.3.7", "MV2_CPU_BINDING_POLICY=scatter", False),
        ("module load mvapich2-gdr/2.3.7", "MV2_USE_GDR=1", False),
        ("module load mvapich/4.0 # was mvapich2", "MVP_CH4_NETMOD=ucx", False),
        ("module load openmpi/4.1", "MV2_CPU_BINDING_POLICY=scatter", False),
        ("module load mvapich/4.0 mvapich2/2.3.7", "MV2_CPU_BINDING_POLICY=scatter", False),
    ],
)
def test_a_variable_of_another_generation_is_told(named: str, name: str, is_told: bool):
    assert ("ENV028" in codes(f"{named}\nexport {name}\nmpiexec -n 2 ./app\n")) == is_told


def test_what_says_the_same_to_the_generation_in_use_is_named():
    (one,) = [
        each
        for each in found("module load mvapich/4.0\nexport MV2_USE_CUDA=1\nmpiexec -n 2 ./app\n")
        if each.code == "ENV028"
    ]

    assert one.title == "MVAPICH 4 does not read MV2_USE_CUDA"
    assert one.fix is not None
    assert "MVP_ENABLE_GPU" in one.fix
    assert one.effect == "read by MVAPICH2: the default stays in force"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"MV2_ENABLE_AFFINITY": "0", "MV2_CPU_MAPPING": "0:1"}, ["no effect"]),
        ({"MV2_ENABLE_AFFINITY": "1", "MV2_CPU_MAPPING": "0:1"}, []),
        ({"MV2_CPU_MAPPING": "0:1", "MV2_CPU_BINDING_POLICY": "bunch"}, ["no effect"]),
        ({"MV2_CPU_BINDING_POLICY": "bunch", "MV2_HYBRID_BINDING_POLICY": "numa"}, ["no effect"]),
        ({"MV2_CPU_BINDING_POLICY": "hybrid", "MV2_HYBRID_BINDING_POLICY": "numa"}, []),
        ({"MV2_ENABLE_SHARP": "0", "MV2_ENABLE_SHARP_BCAST": "1"}, ["contradiction"]),
        ({"MV2_ENABLE_SHARP": "1", "MV2_ENABLE_SHARP_BCAST": "1"}, []),
    ],
)
def test_settings_together(values: dict[str, str], said: list[str]):
    assert [each.kind for each in interactions(values)] == said


def test_multicast_on_one_host_does_nothing():
    values = {"MV2_USE_MCAST": "1"}

    assert [each.kind for each in interactions(values, nodes=1)] == ["no effect"]
    assert interactions(values, nodes=2) == ()
    assert interactions(values) == ()


def test_names_of_the_lists_are_read_by_the_generations_that_have_them():
    assert readers()["MVP_BCAST_SEGMENT_SIZE"] == ("MVAPICH 3", "MVAPICH 4")
    assert readers()["MV2_UD_MTU"] == ("MVAPICH2",)
    assert "MVP_ENABLE_AFFINITY" in readers()
    assert "MVAPICH 4" not in readers()["MVP_ENABLE_AFFINITY"]
