"""What is bound, and what the absence of a path says before anything starts."""

import pytest

from busbw.base.errors import InputError
from busbw.measure.containers.inside import missing, settled, wanted
from busbw.measure.containers.place import ContainerPlace
from busbw.measure.plan.containing import wrap
from busbw.model.request import RuntimeName

from .makers import SRUN, bind, container, program

TOPOLOGY = "/opt/microsoft/ndv5-topo.xml"


def sources(*args: object) -> list[str]:
    return [each.source for each in wanted(*args)]


def test_the_files_that_settings_name_are_bound_and_needed() -> None:
    binds = wanted(container("apptainer"), program(NCCL_TOPO_FILE=TOPOLOGY), ContainerPlace(directory="/runs/1"))
    assert [(each.source, each.optional, each.read_only) for each in binds] == [
        ("/runs/1", False, False),
        ("/etc/nccl.conf", True, True),
        (TOPOLOGY, False, True),
    ]
    with pytest.raises(InputError) as caught:
        settled(binds, frozenset({"/runs/1", "/etc/nccl.conf"}), "node7")
    assert str(caught.value) == (
        f"error: missing for the container: {TOPOLOGY} (the topology file that NCCL is told to read, NCCL_TOPO_FILE)\n"
        "  --> node7\n"
        "hint: put it there on every host, take out the setting that needs it, or bind another path to the same target "
        "with --bind SOURCE:TARGET"
    )


def test_a_file_that_only_nccl_conf_names_is_bound_too() -> None:
    assert TOPOLOGY in sources(container("pyxis"), program(), SRUN, (("NCCL_TOPO_FILE", TOPOLOGY),))
    # What the program sets wins over the file.
    given = sources(container("pyxis"), program(NCCL_TOPO_FILE="/mine.xml"), SRUN, (("NCCL_TOPO_FILE", TOPOLOGY),))
    assert "/mine.xml" in given
    assert TOPOLOGY not in given


def test_without_an_nccl_conf_on_the_host_none_is_bound() -> None:
    binds = wanted(container("apptainer"), program(), ContainerPlace())
    assert settled(binds, frozenset()) == ()
    assert [each.source for each in settled(binds, frozenset({"/etc/nccl.conf"}))] == ["/etc/nccl.conf"]


def test_slingshot_brings_its_devices_and_libraries() -> None:
    place = ContainerPlace(
        starter="srun", pmi="descriptor", fabric="Slingshot", devices=("/dev/cxi0", "/dev/cxi1", "/dev/null")
    )
    binds = wanted(container("podman"), program(), place)
    assert [(each.source, each.target) for each in binds[-4:]] == [
        ("/dev/cxi0", None),
        ("/dev/cxi1", None),
        ("/opt/cray/libfabric", "/host/opt/cray/libfabric"),
        ("/usr/lib64", "/host/usr/lib64"),
    ]
    assert [each.source for each in missing(binds, frozenset({"/dev/cxi0", "/dev/cxi1", "/tmp"}))] == [
        "/opt/cray/libfabric",
        "/usr/lib64",
    ]


@pytest.mark.parametrize(
    ("fabric", "path"), [("Slingshot", "/dev/cxi0"), ("InfiniBand", "/dev/infiniband"), ("EFA", "/dev/infiniband")]
)
@pytest.mark.parametrize("runtime", ["apptainer", "pyxis", "podman", "docker", "charliecloud"])
def test_a_host_without_the_devices_of_the_fabric_is_an_error_in_every_runtime(
    runtime: RuntimeName, fabric: str, path: str
) -> None:
    binds = wanted(container(runtime), program(), ContainerPlace(starter="srun", fabric=fabric))
    assert path in [each.source for each in missing(binds, frozenset())]
    words = " ".join(
        wrap(container(runtime, binds=binds), program(), ContainerPlace(starter="srun", fabric=fabric)).program.argv
    )
    # The others have the host's /dev.
    assert (f"--device {path}" in words) == (runtime in {"podman", "docker"})
    assert path not in words or runtime in {"podman", "docker"}


def test_only_those_that_share_nothing_are_given_the_folders_of_the_launcher() -> None:
    for runtime in ("podman", "docker"):
        found = sources(container(runtime), program(), SRUN)
        assert {"/tmp", "/var/spool/slurmd"} <= set(found)
        assert "/tmp" not in sources(container(runtime), program(), ContainerPlace())
    for runtime in ("apptainer", "charliecloud"):
        assert "/tmp" not in sources(container(runtime), program(), SRUN)
    assert "/var/spool/slurmd" not in sources(container("pyxis"), program(), SRUN)


def test_what_the_user_binds_takes_the_place_of_what_is_advised() -> None:
    own = bind("/site/topology.xml", TOPOLOGY)
    binds = wanted(container("apptainer", binds=(own,)), program(NCCL_TOPO_FILE=TOPOLOGY), ContainerPlace())
    assert [each.source for each in binds] == ["/site/topology.xml", "/etc/nccl.conf"]


def test_two_sources_of_one_target_are_refused() -> None:
    both = container("apptainer", binds=(bind("/a", "/c"), bind("/b", "/c")))
    with pytest.raises(InputError, match="/a and /b are both to be /c"):
        wanted(both, program(), ContainerPlace())
