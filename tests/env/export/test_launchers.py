"""What real launchers hand on to a rank, word for word."""

import subprocess
from pathlib import Path

import pytest
from tests.e2e.runner import clean_environment, environment_of

from busbw.env.export import export_text

from .values import nasty_settings, settings_of

# Each form with the MPIs that it is for, and a setting that only this family reads.
LAUNCHERS = {
    "Open MPI": ("mpirun", "OMPI_MCA_coll", "^hcoll", ("--oversubscribe", "-n", "1")),
    "MPICH": ("mpiexec", "MPIR_CVAR_CH4_NETMOD", "ofi", ("-n", "1")),
    "Intel MPI": ("mpiexec", "I_MPI_DEBUG", "0", ("-n", "1")),
}
# A rank prints its environment. The mpiexec of MPICH 5.0 hands on the end of standard input without looking whether the
# rank still lives: one rank in forty that ends at once has mpiexec killed by SIGPIPE. This one ends after its input;
# that of Intel MPI would never end.
RANKS = {"MPICH": ("/bin/cat", "-", "/proc/self/environ")}
RANK = ("/usr/bin/env", "-0")


@pytest.mark.parametrize("mpi", LAUNCHERS)
def test_a_rank_gets_every_value_as_it_is(mpi: str, tmp_path: Path) -> None:
    form, name, value, options = LAUNCHERS[mpi]
    environment = clean_environment(environment_of(mpi), tmp_path)
    values = {**nasty_settings(), name: value}
    script = tmp_path / "start.sh"
    script.write_text(export_text(form, settings_of(dict(values), "because")), encoding="utf-8")
    done = subprocess.run(
        ["bash", str(script), *options, *RANKS.get(mpi, RANK)],
        env={**environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = dict(entry.split("=", maxsplit=1) for entry in done.stdout.decode().split("\0") if "=" in entry)
    assert {each: found.get(each) for each in values} == values
