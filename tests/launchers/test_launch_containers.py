"""`busbw launch --container`: a program wrapped as `run` wraps its ranks, with the mounts it needs and why."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from busbw.api.launches import launch_line
from busbw.api.settings import lint_file
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.machine.named import platforms
from busbw.measure.containers.inside import wanted
from busbw.measure.containers.place import ContainerPlace
from busbw.measure.plan.containing import PROGRAMS, wrap
from busbw.model.launch import LaunchLine, LaunchRequest
from busbw.model.plan import Program
from busbw.model.request import Container, RuntimeName
from busbw.show.text.recommendation import launch_script

H100 = "azure-nd-h100-v5"
TOPOLOGY = "/opt/microsoft/ndv5/topo.xml"
IMAGE = "nccl.sif"
FOLDER = "/runs/1"
RUNTIMES = get_args(RuntimeName)
PAIRS = [
    (runtime, launcher)
    for runtime in RUNTIMES
    for launcher in ("mpirun", "srun", "sbatch")
    if (runtime, launcher) != ("pyxis", "mpirun")
]
GPUS_OF_NDV4 = ["24-47", "24-47", "0-23", "0-23", "72-95", "72-95", "48-71", "48-71"]


def line(runtime: str | None = "apptainer", **changes: object) -> LaunchLine:
    asked = {"image": IMAGE if runtime is not None else None, "platform": H100, **changes}
    program = asked.pop("program", ("./train", "--steps", "50"))
    return launch_line(LaunchRequest(program=program, runtime=runtime, **asked), FOLDER)


def script(found: LaunchLine) -> str:
    return launch_script(found, FOLDER, with_files=True)


def command(found: LaunchLine) -> str:
    """Return the words of the job, those of its script where it is a batch job."""
    return shlex.join(found.job.argv) + "".join(file.text for file in found.job.files)


@pytest.mark.parametrize(("runtime", "launcher"), PAIRS)
def test_bash_lint_and_shellcheck_accept_the_script(runtime: RuntimeName, launcher: str, tmp_path: Path) -> None:
    path = tmp_path / "launch.sh"
    path.write_text(script(line(runtime, launcher=launcher, nodes=2, hosts="n[0-1]", goal="training")))

    done = subprocess.run(["bash", "-n", path], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = lint_file(str(path), platform=H100)
    assert [each for each in found.findings if each.severity in ("error", "warning")] == []
    if shutil.which("shellcheck") is not None:
        checked = subprocess.run(["shellcheck", path], text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("runtime", ["apptainer", "singularity", "charliecloud", "podman"])
def test_the_program_is_wrapped_as_run_wraps_it(runtime: RuntimeName) -> None:
    found = line(runtime, launcher="srun", nodes=2)
    settings = tuple(found.recommendation.env().items())
    place = ContainerPlace(starter="srun", pmi="pmix", ranks_per_host=8, directory=FOLDER, fabric="InfiniBand")
    bare = Container(runtime=runtime, program=PROGRAMS[runtime], image=IMAGE, gpus=True)
    program = Program(argv=("./train", "--steps", "50"), env=settings)
    # /etc/nccl.conf is not known to be on the nodes.
    binds = tuple(each for each in wanted(bare, program, place) if each.source != "/etc/nccl.conf")
    whole = Container(runtime=runtime, program=PROGRAMS[runtime], image=IMAGE, gpus=True, binds=binds)
    user = {"user": f"{os.getuid()}:{os.getgid()}"} if os.geteuid() != 0 else {}
    wrapped = wrap(whole, program, ContainerPlace(**{**_fields(place), **user}))

    assert found.job.argv[-len(wrapped.program.argv) :] == wrapped.program.argv


def _fields(place: ContainerPlace) -> dict[str, object]:
    return {name: getattr(place, name) for name in place.__struct_fields__}


def test_pyxis_is_told_once_and_the_recommended_words_do_not_come_twice() -> None:
    found = line("pyxis", launcher="srun", nodes=2, goal="training", image="/images/nemo.sqsh")

    for option in ("--container-image=", "--container-mounts=", "--container-env=", "--container-workdir="):
        assert sum(word.startswith(option) for word in found.job.argv) == 1, option
    assert f"--container-mounts={FOLDER},{TOPOLOGY}:{TOPOLOGY}:ro" in found.job.argv


@pytest.mark.parametrize("runtime", ["apptainer", "pyxis", "podman", "docker", "charliecloud"])
def test_the_mounts_that_are_named_are_those_of_the_line(runtime: RuntimeName) -> None:
    found = line(runtime, launcher="srun", nodes=2, mounts=("/scratch/data:/data:rw",))

    text = script(found)
    sources = [each.source for each in found.mounts]
    assert {"/scratch/data", FOLDER, TOPOLOGY} <= set(sources)
    assert all(source in command(found) for source in sources)
    assert all(f"# mounted: {source}" in text for source in sources)
    assert "# mounted: /scratch/data at /data, writable: asked for with --mount" in text
    # Apptainer, Charliecloud and enroot show the host's devices anyway.
    assert ("/dev/infiniband" in command(found)) == (runtime in ("podman", "docker"))
    assert ("/dev/infiniband" in sources) == (runtime in ("podman", "docker"))


def test_a_topology_file_is_mounted_where_the_settings_name_one_alone() -> None:
    found = line(platform="nvidia-dgx-h100", launcher="srun", nodes=2)

    assert "NCCL_TOPO_FILE" not in found.recommendation.env()
    assert [each.source for each in found.mounts] == [FOLDER, "/var/spool/slurmd"]


def test_another_folder_of_slurms_takes_the_place_of_the_default() -> None:
    usual = line(launcher="srun", nodes=2)
    site = line(launcher="srun", nodes=2, mounts=("/run/slurm:/run/slurm:rw", "/run/slurm:/var/spool/slurmd:rw"))

    assert any("SlurmdSpoolDir is another folder" in note for note in usual.notes)
    assert [each.target for each in site.mounts if each.source == "/run/slurm"] == ["/run/slurm", "/var/spool/slurmd"]
    assert "--bind /var/spool/slurmd" not in command(site)
    assert not any("SlurmdSpoolDir" in note for note in site.notes)


def test_nccl_conf_is_mounted_where_it_is_asked_for() -> None:
    with_it = line(mounts=("/etc/nccl.conf",))
    without = line()

    assert "/etc/nccl.conf:/etc/nccl.conf:ro" in command(with_it)
    assert not any("/etc/nccl.conf of the nodes" in note for note in with_it.notes)
    assert "/etc/nccl.conf" not in command(without)
    assert any("/etc/nccl.conf of the nodes is not mounted" in note for note in without.notes)


def test_a_mount_that_is_not_on_this_host_is_told_and_one_that_is_is_not(tmp_path: Path) -> None:
    def told(*mounts: str) -> list[str]:
        return [note for note in line(mounts=mounts).notes if "not on this host" in note]

    assert told(f"{tmp_path}:/here") == []
    assert told(f"{tmp_path}/none:/data", f"{tmp_path}:/here") == [
        f"not on this host: {tmp_path}/none. Every node must have it, or the container does not start"
    ]
    assert any("/images/none.sif" in note for note in line(image="/images/none.sif").notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runtime": None, "image": IMAGE}, "--image needs a runtime"),
        ({"runtime": None, "launcher": "srun", "image": IMAGE}, "--container pyxis"),
        ({"runtime": None, "mounts": ("/data",)}, "--mount needs a runtime"),
        ({"image": None}, "no image is named"),
        ({"runtime": "pyxis", "launcher": "mpirun"}, "pyxis is part of srun"),
        ({"launcher": "flux"}, "are not started by flux"),
        ({"launcher": "jsrun"}, "are not started by jsrun"),
        ({"launcher": "mpijob"}, "mpijob has nothing to do with --container"),
        ({"runtime": None, "launcher": "mpijob", "image": "r/i:1", "cpus": "even"}, "nothing to do with --cpus"),
        ({"runtime": "pyxis", "launcher": "srun", "image": "nemo.sqsh"}, "for an image of a registry"),
        ({"runtime": "podman", "launcher": "srun", "mpi": "mpich"}, "does not inherit the file descriptor"),
        ({"runtime": "docker", "cpus": "even"}, "docker does not keep them"),
        ({"runtime": "podman", "binding": "masks"}, "podman does not keep them"),
        ({"mounts": ("relative",)}, "is not an absolute path"),
        ({"mounts": ("/a:/b:rx",)}, "is not a mount"),
        ({"mounts": ("/a,b",)}, "cannot be told of a path with ','"),
        ({"image": "--evil"}, "cannot be an image"),
        ({"cpus": "even", "binding": "core"}, "both give processes their CPUs"),
        ({"cpus": "even", "ranks_per_node": 4}, "8 GPUs have CPUs of their own, and 4 processes"),
        ({"cpus": "numa", "platform": "azure-hbv4", "ranks_per_node": 4}, "are not published"),
        ({"cpus": "even", "platform": "azure-hbv4", "ranks_per_node": 200}, "200 processes for 176 cores"),
        ({"cpus": "even", "platform": "azure-nd-mi300x-v5"}, "cannot tell which CPUs"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as refused:
        line(**changes)

    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) <= 4


def test_what_is_not_known_of_a_machine_is_not_let_in_and_a_note_says_so() -> None:
    generic = line(platform="generic", ranks_per_node=2)
    google = line(platform="gcp-a3-mega")

    assert "--nv" not in generic.job.argv
    assert any("GPUs and NICs of generic are not known" in note for note in generic.notes)
    assert any("what TCPXO needs of the host is not known here" in note for note in google.notes)
    assert not any("not known" in note for note in line().notes)


@pytest.mark.parametrize("platform", [each.platform.id for each in platforms() if each.platform.gpu.count])
def test_every_platform_with_gpus_lets_them_in(platform: str) -> None:
    found = line(platform=platform, launcher="srun", nodes=2)

    assert {"--nv", "--rocm"} & set(found.job.argv)
    assert not any("None" in note for note in found.notes)
    assert ("NCCL_TOPO_FILE" in found.recommendation.env()) == any(
        "NCCL_TOPO_FILE" in (each.why or "") for each in found.mounts
    )


def test_pods_keep_their_image_without_a_runtime() -> None:
    assert "image: registry.example/nccl:1" in command(
        line(None, launcher="mpijob", image="registry.example/nccl:1", nodes=2)
    )


def test_a_container_that_does_not_keep_its_cpus_is_not_bound_and_says_so() -> None:
    podman = line("podman", launcher="srun", nodes=2)
    apptainer = line("apptainer", launcher="srun", nodes=2)

    assert "--cpu-bind=none" in podman.job.argv
    assert any(note.startswith("processes are not bound: Podman and Docker") for note in podman.notes)
    assert any(word.startswith("--cpu-bind=mask_cpu:") for word in apptainer.job.argv)
    assert not any("not bound" in note for note in apptainer.notes)


def masks(**changes: object) -> str:
    """Return what srun is given, which the note has too."""
    found = line(None, launcher="srun", nodes=2, **changes)
    given = next(word for word in found.job.argv if word.startswith("--cpu-bind=")).removeprefix("--cpu-bind=mask_cpu:")
    assert any(given in note for note in found.notes)
    return given


def test_even_shares_of_ndv5_are_the_masks_of_the_training_write_up() -> None:
    assert masks(cpus="even") == ",".join("fff" + "000" * gpu for gpu in range(8))


def test_whole_numa_nodes_go_by_the_gpu_and_not_by_the_rank() -> None:
    assert masks(cpus="numa") == ",".join(["f" * 12] * 4 + ["f" * 12 + "0" * 12] * 4)
    ndv4 = masks(platform="azure-ndv4", cpus="numa").split(",")
    bits = [
        sum(1 << cpu for cpu in range(int(each.split("-")[0]), int(each.split("-")[1]) + 1)) for each in GPUS_OF_NDV4
    ]
    assert [int(mask, 16) for mask in ndv4] == bits


@pytest.mark.parametrize("platform", [H100, "azure-ndv4", "oci-bm-gpu-h100-8", "isambard-ai-phase2"])
def test_even_shares_are_disjoint_as_large_as_each_other_and_within_the_numa_node_of_the_gpu(platform: str) -> None:
    shares, nodes = (
        [int(mask, 16) for mask in masks(platform=platform, cpus=sharing).split(",")] for sharing in ("even", "numa")
    )

    assert len({share.bit_count() for share in shares}) == 1
    assert sum(share.bit_count() for share in shares) == sum(shares).bit_count()
    assert all(share & node == share for share, node in zip(shares, nodes, strict=True))
    assert sum(shares) == sum(set(nodes))


def test_a_node_without_gpus_is_shared_by_the_numbers_of_its_cores() -> None:
    shares = [int(mask, 16) for mask in masks(platform="azure-hbv4", cpus="even", ranks_per_node=3).split(",")]

    assert sum(shares) == (1 << 176) - 1
    assert sorted(share.bit_count() for share in shares) == [58, 59, 59]


def test_sbatch_has_directives_and_the_step_in_the_container() -> None:
    job = next(
        file.text
        for file in line(
            "pyxis", launcher="sbatch", nodes=4, time_s=3600, batch_options=("--partition=hpc",), cpus="even"
        ).job.files
        if file.path == "job.sh"
    )

    for directive in ("--nodes=4", "--ntasks-per-node=8", "--exclusive", "--time=01:00:00", "--partition=hpc"):
        assert f"#SBATCH {directive}\n" in job
    assert job.splitlines()[-1].startswith("exec srun --mpi=pmix --nodes=4 --ntasks=32")
    assert f"--container-image={IMAGE}" in job
    assert "unset LD_LIBRARY_PATH" in job


EVIL = st.text(st.sampled_from(list("ab -_=;.'\"\\$`!#%&|<>(){}[]*?~^@é→")), min_size=1, max_size=10)


@given(image=EVIL, target=EVIL, word=EVIL)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hostile_names_reach_the_runtime_as_they_are_or_are_refused(
    image: str, target: str, word: str, tmp_path: Path
) -> None:
    # A program of this name on PATH, which says what it was started with.
    said = tmp_path / "said"
    for name in ("mpirun", "srun"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" > {shlex.quote(str(said))}\n")
        program.chmod(0o755)
    for runtime, launcher in (("apptainer", "mpirun"), ("pyxis", "srun"), ("charliecloud", "srun")):
        try:
            found = line(
                runtime,
                launcher=launcher,
                image=image,
                mounts=(f"/data/x:/in/{target}",),
                program=("./train", word),
                binding="none",
            )
        except InputError as error:
            assert 1 <= len(error.cause) < 400  # noqa: PT017 - it may not be refused
            continue
        text = script(found)
        subprocess.run(
            ["bash", "-c", text],
            env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
            check=True,
            capture_output=True,
            cwd=tmp_path,
        )
        assert tuple(said.read_text().split("\0")[:-1]) == found.job.argv[1:]
        assert any(image in each for each in found.job.argv)
        assert word in found.job.argv[-1]


def test_the_options_are_those_of_the_command_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        busbw,
        [
            *("launch", "--platform", H100, "--launcher", "srun", "--nodes", "2", "--container", "pyxis"),
            *("--image", "/images/nemo.sqsh", "--mount", f"{tmp_path}:/cfg", "--mount", "/none:/results:rw"),
            *("--container-option", "--container-writable", "--cpus", "even", "--json", "--", "./train"),
        ],
    )

    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert "--container-writable" in found["job"]["argv"]
    assert [each["source"] for each in found["mounts"]] == [str(tmp_path), "/none", str(Path.cwd()), TOPOLOGY]
