"""`busbw run` with its ranks in real containers."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import clean_environment, environment_of, read_run
from tests.sleeping import SLEEPING

from .images import MAKERS, Image

pytestmark = [pytest.mark.root, pytest.mark.timed]


@pytest.fixture(scope="module", params=list(MAKERS))
def image(request: pytest.FixtureRequest) -> Iterator[Image]:
    # Podman takes no folder of more than 50 characters for what runs.
    with (
        tempfile.TemporaryDirectory(prefix="busbw-", ignore_cleanup_errors=True) as folder,
        MAKERS[request.param](Path(folder)) as made,
    ):
        yield made


def busbw_in(image: Image, folder: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    container = image.container
    environment = clean_environment(environment_of("Open MPI"), folder / "runs") | SLEEPING
    words = [f"--mount={bind.source}" for bind in container.binds]
    words += [f"--container-option={word}" for word in container.options]
    done = subprocess.run(
        [
            environment_of("Open MPI") / "bin" / "busbw", "run", "all_reduce", "-n", "2", "-b", "8", "-e", "64",
            "--time-limit", "5", "--container", container.runtime, "--image", container.image,
            "--image-python", sys.executable, *words, *map(str, arguments),
        ],
        env={**environment, "PATH": f"{image.folder}:{environment['PATH']}", "USER": "root"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_ranks_measure_inside_an_image(image: Image, tmp_path: Path) -> None:
    where = tmp_path / "run"

    done = busbw_in(image, tmp_path, "-o", where)

    assert done.returncode in (0, 1, 4), done.stderr
    run = read_run(where)
    assert run.outcome is not None
    assert run.outcome.ended in ("complete", "time")
    assert len(run.ranks) == 2
    assert run.measurements
    assert any(image.container.image in word for word in run.plan.job.argv)


def test_a_path_that_is_missing_stops_before_the_start(image: Image, tmp_path: Path) -> None:
    done = busbw_in(image, tmp_path, "-o", tmp_path / "run", "--mount=/nowhere/at/all")

    assert done.returncode == 2
    assert "missing for the container: /nowhere/at/all" in done.stderr
    assert not (tmp_path / "run").exists()


def test_an_image_without_busbw_is_refused(image: Image, tmp_path: Path) -> None:
    done = busbw_in(image, tmp_path, "-o", tmp_path / "run", "--image-python=/usr/bin/false")

    assert done.returncode == 2
    assert "busbw does not start in the image" in done.stderr
