"""The forms there are, by name."""

from collections.abc import Callable

from busbw.base.errors import InputError
from busbw.env.export import containers, modulefiles, nccl_conf, shell
from busbw.env.export.page import SettingsPage, Written, page_of
from busbw.model.recommendation import Recommendation
from busbw.model.settings import Settings

FORMS: dict[str, Callable[[SettingsPage], Written]] = {
    "sh": shell.write_sh,
    "nccl.conf": nccl_conf.write,
    "modulefile-lua": modulefiles.write_lua,
    "modulefile-tcl": modulefiles.write_tcl,
    "slurm": shell.write_slurm,
    "mpirun": shell.write_mpirun,
    "mpiexec": shell.write_mpiexec,
    "docker": containers.write_docker,
    "apptainer": containers.write_apptainer,
    "k8s": containers.write_kubernetes,
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
