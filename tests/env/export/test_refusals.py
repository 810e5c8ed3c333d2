"""What cannot be written is refused with its reason, and nothing is written in its place."""

import pytest

from busbw.base.errors import InputError
from busbw.env.export import FORMS, export, export_text

from .values import settings_of


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "value", ["a\nb", "a\rb", "a\0b", "\x1b[31m", "a\u2028b", "a\u202eb", "\ud800", "a\tb", "\xa0"]
)
def test_a_value_that_nobody_would_see_whole_is_refused(form: str, value: str) -> None:
    with pytest.raises(InputError, match=r"the value of NCCL_NET holds U\+[0-9A-F]{4}"):
        export_text(form, settings_of({"NCCL_NET": value}))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["", "A B", "1A", "A=B", "A\n", "A;rm", "É", "A" * 300, "-x"])
def test_what_no_shell_takes_for_a_name_is_refused(form: str, name: str) -> None:
    with pytest.raises(InputError, match="not a name of a variable"):
        export_text(form, settings_of({name: "1"}))


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_the_kernel_does_not_pass_is_refused(form: str) -> None:
    with pytest.raises(InputError, match="bytes"):
        export_text(form, settings_of({"NCCL_NET": "a" * 2**17}))


def test_a_settings_file_takes_no_more_than_nccl_reads() -> None:
    assert "a" * 1023 in export_text("nccl.conf", settings_of({"NCCL_NET": "a" * 1023}))
    with pytest.raises(InputError, match="NCCL reads 1023"):
        export_text("nccl.conf", settings_of({"NCCL_NET": "é" * 512}))


@pytest.mark.parametrize("value", [" a", "a ", " "])
def test_a_settings_file_takes_no_spaces_at_the_ends(value: str) -> None:
    with pytest.raises(InputError, match="begins or ends with a space"):
        export_text("nccl.conf", settings_of({"NCCL_NET": value}))


def test_a_settings_file_leaves_out_what_is_read_before_it_and_says_so() -> None:
    written = export("nccl.conf", settings_of({"OMPI_MCA_pml": "ucx", "NCCL_NET": "IB", "NCCL_CONF_FILE": "/a"}))
    assert "OMPI_MCA_pml=" not in written.text
    (note,) = written.notes
    assert "OMPI_MCA_pml, NCCL_CONF_FILE" in note


def test_comments_of_a_settings_file_hold_no_sign_that_makes_a_setting() -> None:
    text = export_text("nccl.conf", settings_of({"NCCL_NET": "IB"}, "NCCL_ALGO=Tree helps where size <= 4 and n >= 2"))
    assert [line for line in text.split("\n") if "=" in line] == ["NCCL_NET=IB"]
    assert "# NCCL_ALGO:Tree helps where size at most 4 and n at least 2" in text


def test_each_mpi_gets_the_settings_of_its_own() -> None:
    mixed = settings_of({"OMPI_MCA_pml": "ucx", "I_MPI_FABRICS": "ofi", "NCCL_NET": "IB"})
    open_mpi, hydra = export("mpirun", mixed), export("mpiexec", mixed)
    assert "settings+=(--mca pml 'ucx')" in open_mpi.text
    assert "settings+=(-x NCCL_NET='IB')" in open_mpi.text
    assert "settings+=(-genv I_MPI_FABRICS 'ofi')" in hydra.text
    assert any("I_MPI_FABRICS" in note for note in open_mpi.notes)
    assert any("OMPI_MCA_pml" in note for note in hydra.notes)


def test_a_form_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="there is no form 'yaml'") as refused:
        export("yaml", settings_of({}))
    assert all(form in str(refused.value) for form in FORMS)
