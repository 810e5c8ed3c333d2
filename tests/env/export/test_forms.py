"""What is written in a form is what its real reader gets, and what `busbw env lint` reads."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from busbw.env.export import FORMS, export, export_text
from busbw.env.layers import conf_lines
from busbw.env.reading import read

from .interpreters import in_docker, in_kubernetes, in_lua, in_tcl, sourced, started
from .values import CHOICES, NASTY, REASONS, nasty_settings, settings_of

LANGUAGES = {
    "sh": "shell",
    "nccl.conf": "nccl.conf",
    "modulefile-lua": "modulefile",
    "modulefile-tcl": "modulefile",
    "slurm": "slurm",
    "mpirun": "shell",
    "mpiexec": "shell",
    "docker": "dockerfile",
    "apptainer": "apptainer",
    "k8s": "kubernetes",
}
# What busbw's readers take for something filled in elsewhere: rather than wrong, they cannot tell such a value.
UNTOLD = {"docker": "`", "k8s": "¤"}
# What they take for the work of a word processor, and say so.
TYPOGRAPHIC = re.compile("[\u201c\u201d\u201e\u2018\u2019\u201a\u2010-\u2015\u2212]")
# As the releases read it that know no comments, and as the newest do.
VERSIONS = ((2, 18, 3), (2, 28, 9), (2, 32, 3))
few = examples(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
many = examples(max_examples=40, deadline=None)


def chosen(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("NCCL_")}


def in_apptainer(text: str, folder: Path) -> dict[str, str]:
    """Return what the %environment section sets when a shell sources it, as one in a container does."""
    header, _, section = text.partition("%environment\n")
    assert "From: {{ BASE }}" in header
    assert "{{" not in section
    file = folder / "environment.sh"
    file.write_text(section, encoding="utf-8")
    return chosen(sourced("sh", file))


READERS: dict[str, Callable[[str, Path], dict[str, str] | dict[str, str | None]]] = {
    "sh": lambda text, folder: chosen(sourced("bash", put(text, folder))),
    "modulefile-lua": lambda text, folder: in_lua(put(text, folder)),
    "modulefile-tcl": lambda text, folder: in_tcl(put(text, folder)),
    "slurm": lambda text, folder: chosen(started(put(text, folder), "srun")),
    "mpirun": lambda text, folder: chosen(started(put(text, folder), "mpirun")),
    "mpiexec": lambda text, folder: chosen(started(put(text, folder), "mpiexec")),
    "docker": lambda text, _folder: in_docker(text),
    "apptainer": in_apptainer,
    "k8s": lambda text, _folder: in_kubernetes(text),
}


def writable(form: str, values: dict[str, str]) -> dict[str, str]:
    """Return the values that a form takes: without quotes nobody sees a space at an end."""
    return {name: value.strip() if form == "nccl.conf" else value for name, value in values.items()}


def readable(form: str, values: dict[str, str]) -> dict[str, str]:
    """Return values that are writable and that busbw's reader of the form can tell."""
    told = {name: TYPOGRAPHIC.sub("", value) for name, value in values.items()}
    return writable(form, {name: value.replace(UNTOLD.get(form, "\0"), "") for name, value in told.items()})


def put(text: str, folder: Path) -> Path:
    file = folder / "settings"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_form_has_a_reader_here() -> None:
    assert set(FORMS) == set(LANGUAGES) == {*READERS, "nccl.conf"}


@pytest.mark.parametrize("form", READERS)
def test_the_nastiest_values_arrive_as_they_are(form: str, tmp_path: Path) -> None:
    values = nasty_settings()
    assert READERS[form](export_text(form, settings_of(dict(values), "because")), tmp_path) == values


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_shells_agree_about_a_file_to_source(shell: str, tmp_path: Path) -> None:
    values = nasty_settings()
    assert chosen(sourced(shell, put(export_text("sh", settings_of(dict(values))), tmp_path))) == values


@pytest.mark.parametrize("form", READERS)
def test_any_value_arrives_whatever_the_reasons_say(form: str, tmp_path: Path) -> None:
    @few
    @given(CHOICES, REASONS)
    def arrives(values: dict[str, str], reason: str) -> None:
        assert READERS[form](export_text(form, settings_of(dict(values), reason)), tmp_path) == values

    arrives()


@many
@given(CHOICES, REASONS)
def test_any_value_in_a_settings_file_is_what_every_version_of_nccl_reads(values: dict[str, str], reason: str) -> None:
    values = writable("nccl.conf", values)
    text = export_text("nccl.conf", settings_of(dict(values), reason))
    for version in VERSIONS:
        assert {line.name: line.value for line in conf_lines(text, version)} == values


@pytest.mark.parametrize("form", LANGUAGES)
def test_what_is_written_is_read_back_as_the_same_assignments(form: str) -> None:
    @many
    @given(CHOICES, REASONS)
    def is_read_back(values: dict[str, str], reason: str) -> None:
        values = readable(form, values)
        reading = read(export_text(form, settings_of(dict(values), reason)), "settings", LANGUAGES[form])
        assert [(each.name, each.value) for each in reading.assignments] == list(values.items())
        assert (reading.unread, reading.slips) == ((), ())

    is_read_back()


@pytest.mark.parametrize("form", LANGUAGES)
def test_nasty_values_are_read_back(form: str) -> None:
    values = readable(form, nasty_settings())
    reading = read(export_text(form, settings_of(dict(values))), "settings", LANGUAGES[form])
    assert {each.name: each.value for each in reading.assignments} == values


@pytest.mark.parametrize("form", ["sh", "slurm", "mpirun", "mpiexec"])
def test_what_should_be_unset_is_unset_where_the_form_can(form: str, tmp_path: Path) -> None:
    text = export_text(form, settings_of({"NCCL_ALGO": None, "NCCL_PROTO": "Simple"}))
    before = {"NCCL_ALGO": "Tree", "NCCL_DEBUG": "INFO"}
    file = put(text, tmp_path)
    launchers = {"slurm": "srun", "mpirun": "mpirun", "mpiexec": "mpiexec"}
    after = sourced("bash", file, before) if form == "sh" else started(file, launchers[form], before)
    assert chosen(after) == {"NCCL_PROTO": "Simple", "NCCL_DEBUG": "INFO"}


def test_modulefiles_and_container_definitions_unset_too(tmp_path: Path) -> None:
    unset = settings_of({"NCCL_ALGO": None})
    assert in_lua(put(export_text("modulefile-lua", unset), tmp_path)) == {"NCCL_ALGO": None}
    assert in_tcl(put(export_text("modulefile-tcl", unset), tmp_path)) == {"NCCL_ALGO": None}
    assert "    unset NCCL_ALGO\n" in export_text("apptainer", unset)


@pytest.mark.parametrize("form", ["nccl.conf", "docker", "k8s", "mpirun"])
def test_a_form_that_cannot_unset_says_so(form: str) -> None:
    written = export(form, settings_of({"NCCL_ALGO": None, "NCCL_PROTO": "Simple"}))
    assert any("NCCL_ALGO should be unset" in note for note in written.notes)
    reading = read(written.text, "settings", LANGUAGES[form])
    assert [(each.name, each.value) for each in reading.assignments if not each.unsets] == [("NCCL_PROTO", "Simple")]


def test_a_manifest_without_anything_to_set_is_one_all_the_same() -> None:
    assert in_kubernetes(export_text("k8s", settings_of({"NCCL_ALGO": None}))) == {}
    assert in_kubernetes(export_text("k8s", settings_of({}))) == {}


def test_the_list_of_nasty_values_holds_what_it_should() -> None:
    assert len(set(NASTY)) == len(NASTY)
    assert all(value.isprintable() for value in NASTY)
