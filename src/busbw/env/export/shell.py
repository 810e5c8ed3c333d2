"""Settings as shells read them: a file to source, and scripts around mpirun, mpiexec and sbatch."""

from collections.abc import Callable, Iterable, Iterator

from busbw.env.export.page import Entry, SettingsPage, Written, cannot_unset, comment_lines, head_lines, tail_lines


def quoted(value: str) -> str:
    """Return a value in single quotes, in which a shell finds nothing to do."""
    return "'" + value.replace("'", "'\\''") + "'"


def export_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield an empty line, the comments and the assignment of each variable."""
    for entry in entries:
        yield ""
        yield from comment_lines(entry.comments)
        yield f"unset {entry.name}" if entry.value is None else f"export {entry.name}={quoted(entry.value)}"


_USE = "Use: source this file where ranks are started; mpirun passes nothing of it to other nodes, --format mpirun does"


def write_sh(page: SettingsPage) -> Written:
    """Return `export` and `unset` lines."""
    lines = [*head_lines(page, _USE), *export_lines(page.entries), *tail_lines(page)]
    return Written(text="\n".join(lines) + "\n")


def script(page: SettingsPage, uses: tuple[str, ...], option: Callable[[str, str], str], launcher: str) -> str:
    """Return the script; `option` makes one of a name and a value, quoted for bash."""
    lines = ["#!/bin/bash", *head_lines(page, *uses)]
    for entry in page.entries:
        if entry.value is None:
            lines += ["", *comment_lines(entry.comments), f"unset {entry.name}"]
    lines += ["", "settings=()"]
    for entry in page.entries:
        if entry.value is not None:
            lines += ["", *comment_lines(entry.comments), f"settings+=({option(entry.name, entry.value)})"]
    lines += ["", f'{launcher} "${{settings[@]}}" "$@"', *tail_lines(page)]
    return "\n".join(lines) + "\n"


def apart(page: SettingsPage, foreign: tuple[str, ...]) -> tuple[SettingsPage, tuple[str, ...]]:
    """Return a page without the variables of other MPIs, and the note that names those; prefixes tell them."""
    names = [entry.name for entry in page.entries if entry.name.startswith(foreign)]
    kept = tuple(entry for entry in page.entries if entry.name not in names)
    notes = (f"left out, as this MPI does not read it: {', '.join(names)}",) if names else ()
    return SettingsPage(
        title=page.title, entries=kept, launch=page.launch, sources=page.sources, nodes=page.nodes
    ), notes


_MPIRUN_USE = (
    "For mpirun of Open MPI and HPC-X; MPICH, Intel MPI and MVAPICH take --format mpiexec",
    "Use: bash THIS_FILE [OPTIONS OF MPIRUN] PROGRAM [ARGUMENTS]",
)
# Read by mpirun itself too, so they are its options and not only variables of the ranks.
_OPTIONS = {"OMPI_MCA_": "--mca", "PRTE_MCA_": "--prtemca", "PMIX_MCA_": "--pmixmca"}
_OF_OTHERS = ("I_MPI_", "MPIR_CVAR_", "MPICH_", "MV2_", "MVP_", "HYDRA_")
_WHY = "mpirun cannot do that: it is unset here, and on other nodes stays what their logins set"


def write_mpirun(page: SettingsPage) -> Written:
    """Return a script that passes `-x NAME=value` and `--mca NAME value` to one mpirun."""
    mine, left_out = apart(page, _OF_OTHERS)
    unset = [entry.name for entry in mine.entries if entry.value is None]
    return Written(
        text=script(mine, _MPIRUN_USE, _option, "mpirun"), notes=(_MPIRUN_USE[0], *cannot_unset(unset, _WHY), *left_out)
    )


def _option(name: str, value: str) -> str:
    for prefix, option in _OPTIONS.items():
        if name.startswith(prefix) and name != prefix:
            return f"{option} {name.removeprefix(prefix)} {quoted(value)}"
    return f"-x {name}={quoted(value)}"


_MPIEXEC_USE = (
    "For mpiexec of MPICH, Intel MPI and MVAPICH (Hydra); Open MPI and HPC-X take --format mpirun",
    "Use: bash THIS_FILE [OPTIONS OF MPIEXEC] PROGRAM [ARGUMENTS]",
)
_MPIEXEC_OF_OTHERS = ("OMPI_", "PRTE_", "PMIX_MCA_", "HCOLL_")


def write_mpiexec(page: SettingsPage) -> Written:
    """Return a script that passes `-genv NAME value` to one mpiexec, which hands on the rest of its environment."""
    mine, left_out = apart(page, _MPIEXEC_OF_OTHERS)
    return Written(text=script(mine, _MPIEXEC_USE, _mpiexec_option, "mpiexec"), notes=(_MPIEXEC_USE[0], *left_out))


def _mpiexec_option(name: str, value: str) -> str:
    return f"-genv {name} {quoted(value)}"


_SLURM_USE = "Use: sbatch [OPTIONS] THIS_FILE [OPTIONS OF SRUN] PROGRAM [ARGUMENTS]"
# Said outright, because a job submitted with --export=NONE hands that on to srun.
_START = 'srun --export=ALL "$@"'


def write_slurm(page: SettingsPage) -> Written:
    """Return a script with exports and one srun."""
    directives = [f"#SBATCH --nodes={page.nodes}"] if page.nodes is not None else []
    lines = [
        "#!/bin/bash",
        *directives,
        *head_lines(page, _SLURM_USE),
        *export_lines(page.entries),
        "",
        _START,
        *tail_lines(page),
    ]
    return Written(text="\n".join(lines) + "\n")
