"""How far sentences are told in other words, and what of a page of text is read at all."""

import pytest

from busbw.logs.sentences.statements import words_in

from .test_diagnosis import read
from .test_mpi_logs import only


@pytest.mark.parametrize(
    ("line", "reading"),
    [
        ("acme: libacme.so.3: cannot open shared object file: No such file or directory", "sure"),
        ("acme: error: /dev/acme0: permission denied", "sure"),
        ("acme: error: user u17 is not authorized to use partition long", "sure"),
        # It compares.
        ("acme: error: 9 GPUs requested but only 8 available", "one"),
        # The words are of one thing, and what is named stands in another clause.
        ("acme: error: permission denied while it read the layout that begins at /opt/acme", "one"),
        # A limit, or a release that is too old.
        ("acme: error: the limit of files is too low. It was built with another libacme.so", "several"),
    ],
)
def test_a_sentence_is_told_in_other_words_only_where_its_form_is_plain(line: str, reading: str):
    (found,) = words_in([(0, 1, line)]).statements

    assert found.reading == reading


def test_a_sentence_that_leaves_its_meaning_open_is_quoted():
    text = "acme: error: 9 GPUs requested but only 8 available on /dev/acme0\nAborted (core dumped)\n"

    (title,) = [each.title for each in read(text).findings if each.code == "LOG030"]

    assert "9 GPUs requested but only 8 available" in title
    assert "quoted, not interpreted" in title
    assert "read as" not in title


PAGE = """# Starting jobs

The launcher prints `bash: orted: command not found` where **Open MPI** is not there.
See [the page](start.md): error: device /dev/acme0 is busy.
"""
LOG = """[n1:100] something
[n1:101] something else
bash: orted: command not found
[n1:102] the end
"""


@pytest.mark.parametrize("page", [PAGE, f"{PAGE}\n```console\n$ acme\nerror: device /dev/acme0 is busy\n```\n"])
def test_a_page_of_text_is_no_log(page: str):
    assert [each for each in read(page).findings if each.is_serious] == []


def test_a_log_between_fences_of_a_page_is_read():
    assert "orted" in only(f"{PAGE}\n```\n{LOG}```\n", "LOG030").title


def test_prose_without_markup_tells_of_no_failure():
    text = (
        "The link of the second host is down and that is the reason for which the job was not able to start at all.\n"
    )

    assert [each for each in read(text * 3).findings if each.is_serious] == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("EFA internal error: (4112) Failure to post internal receive buffers", "register memory with the EFA"),
        ("[c7:19] PMIX ERROR: OUT-OF-RESOURCE in file dstore/pmix_esh.c at line 831", "PMIx cannot use the store"),
        ("23:09:23 Failed to initialize NVML: could not load NVML library.", "NVML is not in this container"),
    ],
)
def test_lines_of_networks_and_containers_are_known(line: str, says: str):
    assert says in only(f"{line}\n", "LOG030").title


def test_what_libfabric_logs_below_a_warning_is_no_cause():
    text = "libfabric:77:16::psm3:core:psmx3_getinfo():536<info> no PSM3 device is active.\n"

    assert [each for each in read(text).findings if each.severity == "error"] == []
