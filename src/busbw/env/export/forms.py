"""The forms there are, by name."""

from collections.abc import Callable

from busbw.base.errors import InputError
from busbw.env.export import (
    apptainer,
    containers,
    kubernetes,
    modulefile_lua,
    modulefiles,
    mpiexec,
    mpirun,
    nccl_conf,
    sh,
    slurm,
)
from busbw.env.export.page import Page, Written, page_of
from busbw.model.recommendation import Recommendation
from busbw.model.settings import Settings

FORMS: dict[str, Callable[[Page], Written]] = {
    "sh": sh.write,
    "nccl.conf": nccl_conf.write,
    "modulefile-lua": modulefile_lua.write,
    "modulefile-tcl": modulefiles.write,
    "slurm": slurm.write,
    "mpirun": mpirun.write,
    "mpiexec": mpiexec.write,
    "docker": containers.write,
    "apptainer": apptainer.write,
    "k8s": kubernetes.write,
}


def export(form: str, settings: Recommendation | Settings) -> Written:
    """Return settings in a form, with what it could not say.

    Raises InputError for a form that is none, and for a name or a value that cannot be written in it.
    """
    check_form(form)
    return FORMS[form](page_of(form, settings))


def export_text(form: str, settings: Recommendation | Settings) -> str:
    """Return the text of `export` alone."""
    return export(form, settings).text


def check_form(form: str) -> None:
    """Raise InputError for a form that is none."""
    if form not in FORMS:
        raise InputError(f"there is no form {form[:80]!r}", where="--format", hint=f"--format {', '.join(FORMS)}")
