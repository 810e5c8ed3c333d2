"""The forms that settings are written in: shell, nccl.conf, modulefiles, launchers, Slurm, containers, Kubernetes."""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from busbw.base.errors import InputError
from busbw.env.export.page import (
    Entry,
    SettingsPage,
    Written,
    cannot_unset,
    comment_lines,
    head_lines,
    page_of,
    tail_lines,
)
from busbw.model.recommendation import Recommendation
from busbw.model.settings import Settings

_USE_OF_MODULEFILE = "Use: put it into a folder of MODULEPATH, and: module load NAME"
_BARE = re.compile(r"[\w./:,+@%=^][\w./:,+@%=^-]*", re.ASCII)
# Between braces Tcl changes nothing but these.
_NOT_IN_BRACES = re.compile(r"[{}\\]")
_IN_TCL_QUOTES = re.compile(r'[\\"$\[\]]')


def write_tcl(page: SettingsPage) -> Written:
    """Return `setenv` and `unsetenv` commands below the line that makes a file a modulefile."""
    lines = ["#%Module1.0", *_comments(head_lines(page, _USE_OF_MODULEFILE)), f"module-whatis {_word(page.title[0])}"]
    for entry in page.entries:
        command = f"unsetenv {entry.name}" if entry.value is None else f"setenv {entry.name} {_word(entry.value)}"
        lines += ["", *_comments(comment_lines(entry.comments)), command]
    lines += _comments(tail_lines(page))
    return Written(text="\n".join(lines) + "\n")


def _word(text: str) -> str:
    if _BARE.fullmatch(text) is not None:
        return text
    if _NOT_IN_BRACES.search(text) is None:
        return "{" + text + "}"
    return '"' + _IN_TCL_QUOTES.sub(r"\\\g<0>", text) + '"'


def _comments(lines: list[str]) -> list[str]:
    """Return comments that end where their line does: a backslash there would take the next line in."""
    return [f"{line} ." if line.endswith("\\") else line for line in lines]


_LUA_USE = "Use: put it into a folder of MODULEPATH as NAME.lua, and: module load NAME"


def write_lua(page: SettingsPage) -> Written:
    """Return `setenv` and `unsetenv` calls."""
    lines = [*head_lines(page, _LUA_USE, mark="--"), f"whatis({_quoted_for_lua(page.title[0])})"]
    for entry in page.entries:
        name = _quoted_for_lua(entry.name)
        call = f"unsetenv({name})" if entry.value is None else f"setenv({name}, {_quoted_for_lua(entry.value)})"
        lines += ["", *comment_lines(entry.comments, "--"), call]
    lines += tail_lines(page, "--")
    return Written(text="\n".join(lines) + "\n")


def _quoted_for_lua(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# NCCL copies at most so much of a name and of a value.
_LONGEST_BYTES = 1023
# What is read after NCCL has read the file: by itself, and by plug-ins that it loads.
_READ_LATER = ("NCCL_", "RCCL_", "OFI_NCCL_", "SHARP_")
_WITHOUT_EQUALS = {">=": "at least", "<=": "at most", "==": "is", "=": "is"}
_NOT_FROM_ITSELF = ("NCCL_CONF_FILE",)
_USE_OF_NCCL_CONF = (
    "Use: as /etc/nccl.conf or .nccl.conf in the home folder, on every node; what the environment sets goes before it"
)
_WHY_NOT_NCCL_CONF = "a settings file can only set, and only what the environment does not: unset it where jobs start"


def write(page: SettingsPage) -> Written:
    """Return `NAME=value` lines; what would be read too early is left out, and said.

    Raises InputError for a value that is longer than NCCL takes, or begins or ends with a space.
    """
    unset = [entry for entry in page.entries if entry.value is None]
    early = [entry for entry in page.entries if entry.value is not None and not _is_read_later(entry.name)]
    lines = head_lines(page, _USE_OF_NCCL_CONF)
    for entry in page.entries:
        lines += ["", *comment_lines(entry.comments), *_lines(entry)]
    lines += tail_lines(page)
    return Written(
        text="".join(f"{_without_equals(line) if line.startswith('#') else line}\n" for line in lines),
        notes=tuple(_notes(unset, early)),
    )


def _lines(entry: Entry) -> Iterator[str]:
    if entry.value is None:
        yield from comment_lines((f"not here: {entry.name} should be unset, and {_WHY_NOT_NCCL_CONF}",))
    elif not _is_read_later(entry.name):
        yield from comment_lines((f"not here: {entry.name} may be read before NCCL reads this file",))
    else:
        _check(entry.name, entry.value)
        yield f"{entry.name}={entry.value}"


def _check(name: str, value: str) -> None:
    if len(value.encode()) > _LONGEST_BYTES:
        raise InputError(
            f"{name} has {len(value.encode())} bytes, and NCCL reads {_LONGEST_BYTES} of a value", hint="--format sh"
        )
    if value != value.strip():
        raise InputError(
            f'{name} = "{value}" begins or ends with a space, which cannot be seen in a file without quotes',
            hint="--format sh",
        )


def _notes(unset: list[Entry], early: list[Entry]) -> Iterator[str]:
    if unset:
        yield f"{', '.join(entry.name for entry in unset)} should be unset, and {_WHY_NOT_NCCL_CONF}"
    if early:
        names = ", ".join(entry.name for entry in early)
        yield f"left out, as NCCL may read this file too late for it: {names}; set it in the job itself: --format sh"


def _is_read_later(name: str) -> bool:
    return name.startswith(_READ_LATER) and name not in _NOT_FROM_ITSELF


def _without_equals(text: str) -> str:
    for sign, words in _WITHOUT_EQUALS.items():
        text = text.replace(f" {sign} ", f" {words} ").replace(sign, ":" if sign == "=" else f" {words} ")
    return text


def quoted(value: str) -> str:
    """Return a value in single quotes, in which a shell finds nothing to do."""
    return "'" + value.replace("'", "'\\''") + "'"


def export_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield an empty line, the comments and the assignment of each variable."""
    for entry in entries:
        yield ""
        yield from comment_lines(entry.comments)
        yield f"unset {entry.name}" if entry.value is None else f"export {entry.name}={quoted(entry.value)}"


_USE_OF_SHELL = (
    "Use: source this file where ranks are started; mpirun passes nothing of it to other nodes, --format mpirun does"
)


def write_sh(page: SettingsPage) -> Written:
    """Return `export` and `unset` lines."""
    lines = [*head_lines(page, _USE_OF_SHELL), *export_lines(page.entries), *tail_lines(page)]
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
_WHY_NOT_SHELL = "mpirun cannot do that: it is unset here, and on other nodes stays what their logins set"


def write_mpirun(page: SettingsPage) -> Written:
    """Return a script that passes `-x NAME=value` and `--mca NAME value` to one mpirun."""
    mine, left_out = apart(page, _OF_OTHERS)
    unset = [entry.name for entry in mine.entries if entry.value is None]
    return Written(
        text=script(mine, _MPIRUN_USE, _option, "mpirun"),
        notes=(_MPIRUN_USE[0], *cannot_unset(unset, _WHY_NOT_SHELL), *left_out),
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


_USE_OF_CONTAINERS = "Use: docker build --build-arg BASE=IMAGE -f THIS_FILE ."
_IN_QUOTES = re.compile(r'[\\"$]')
_WHY_NOT_CONTAINERS = (
    "a Dockerfile cannot do that: start the container with `docker run -e NAME` from a shell without NAME"
)


def write_docker(page: SettingsPage) -> Written:
    """Return `ENV` instructions; the first line is not a directive of the parser, whatever it says."""
    lines = [*head_lines(page, _USE_OF_CONTAINERS), "ARG BASE", "FROM ${BASE}"]
    unset = [entry.name for entry in page.entries if entry.value is None]
    for entry in page.entries:
        lines += ["", *comment_lines(entry.comments)]
        if entry.value is None:
            lines += comment_lines((f"not here: {entry.name} should be unset, and {_WHY_NOT_CONTAINERS}",))
        else:
            lines.append(f'ENV {entry.name}="{_IN_QUOTES.sub(_escaped, entry.value)}"')
    lines += tail_lines(page)
    return Written(text="\n".join(lines) + "\n", notes=tuple(cannot_unset(unset, _WHY_NOT_CONTAINERS)))


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


_APPTAINER_USE = "Use: apptainer build --build-arg BASE=IMAGE OUTPUT.sif THIS_FILE, with Apptainer 1.2 or later"
_HEADER = ("Bootstrap: docker", "From: {{ BASE }}", "", "%environment")


def write_apptainer(page: SettingsPage) -> Written:
    """Return a definition with an %environment section, which a shell in the container sources."""
    body = [f"    {line}" if line else "" for line in map(_without_template, export_lines(page.entries))]
    return Written(text="\n".join([*head_lines(page, _APPTAINER_USE), *_HEADER, *body, *tail_lines(page)]) + "\n")


def _without_template(line: str) -> str:
    """Return a line in which no pair of braces is left that Apptainer would take for a build argument of its own."""
    mark = "{ " if line.startswith("#") else "{''"
    while "{{" in line:
        line = line.replace("{{", f"{mark}{{", 1)
    return line


_KUBERNETES_USE = (
    "Use: put your image in, or copy `env` into the containers of your job's workers",
    "In an MPIJob ranks start over ssh, which sees none of it: give mpirun the options of --format mpirun too",
)
_KUBERNETES_HEADER = (
    "apiVersion: v1",
    "kind: Pod",
    "metadata:",
    "  name: busbw-settings",
    "spec:",
    "  restartPolicy: Never",
    "  containers:",
    "    - name: worker",
    "      image: IMAGE",
)
_KUBERNETES_WHY = "a manifest cannot do that: take it out of the image, or unset it in the container's command"
# Kubernetes puts variables in for $(NAME), and takes $$ for a plain $.
_EXPANDED = re.compile(r"\$+(?=\()|\$\$+")


def write_kubernetes(page: SettingsPage) -> Written:
    """Return a Pod with an `env` list; every value is a string in double quotes, as JSON and YAML both read it."""
    unset = [entry.name for entry in page.entries if entry.value is None]
    lines: list[str] = []
    for entry in page.entries:
        item = [f"- name: {entry.name}", f"  value: {_quoted(entry.value)}"] if entry.value is not None else []
        missing = (f"not here: {entry.name} should be unset, and {_KUBERNETES_WHY}",) if entry.value is None else ()
        lines += [f"        {line}" for line in (*comment_lines((*entry.comments, *missing)), *item)]
    is_empty = len(unset) == len(page.entries)
    body = [
        *head_lines(page, *_KUBERNETES_USE),
        *_KUBERNETES_HEADER,
        "      env: []" if is_empty else "      env:",
        *lines,
        *tail_lines(page),
    ]
    return Written(text="\n".join(body) + "\n", notes=(_KUBERNETES_USE[1], *cannot_unset(unset, _KUBERNETES_WHY)))


def _quoted(value: str) -> str:
    text = json.dumps(_EXPANDED.sub(lambda match: match[0] * 2, value), ensure_ascii=False)
    # Where the manifest becomes a chart of Helm, two braces would begin a template.
    while "{{" in text:
        text = text.replace("{{", "{\\u007b", 1)
    return text


FORMS: dict[str, Callable[[SettingsPage], Written]] = {
    "sh": write_sh,
    "nccl.conf": write,
    "modulefile-lua": write_lua,
    "modulefile-tcl": write_tcl,
    "slurm": write_slurm,
    "mpirun": write_mpirun,
    "mpiexec": write_mpiexec,
    "docker": write_docker,
    "apptainer": write_apptainer,
    "k8s": write_kubernetes,
}


def export(form: str, settings: Recommendation | Settings) -> Written:
    """Return settings in a form, with what it could not say.

    Raises InputError for an unknown form, and for a name or a value that cannot be written in it.
    """
    check_form(form)
    return FORMS[form](page_of(form, settings))


def export_text(form: str, settings: Recommendation | Settings) -> str:
    """Return the text of `export` alone."""
    return export(form, settings).text


def check_form(form: str) -> None:
    """Raise InputError for an unknown form."""
    if form not in FORMS:
        raise InputError(f"there is no form {form[:80]!r}", where="--format", hint=f"--format {', '.join(FORMS)}")
