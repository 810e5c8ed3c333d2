"""Why a job failed in the words of programs that nobody wrote a pattern for."""

import pytest

from busbw.facts.failure_words import predicates
from busbw.logs.excerpts import Excerpts, lines_of
from busbw.logs.sentences.reasons import what_would_tell
from busbw.logs.sentences.statements import Statement, words_in

from .made import Job
from .test_diagnosis import codes, read
from .test_mpi_logs import only

RULE = "-" * 74
AFTER = "srun: error: n1: task 3: Exited with exit code 1\n"
ABORTED = "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"


def said(*lines: str) -> list[Statement]:
    return list(words_in((0, number, line) for number, line in enumerate(lines, 1)).statements)


@pytest.mark.parametrize(
    ("line", "predicate", "subject"),
    [
        ("foo-launch: libfoo.so.3: cannot open shared object file: No such file", "library", "libfoo.so.3"),
        ("acmerun: error: option --gpu-layout is not recognized by this release", "option", "--gpu-layout"),
        ("acme: ERROR: ACME_TRANSPORT=warp is not a supported value", "invalid", "ACME_TRANSPORT=warp"),
        ("acmed[77]: fatal: user u17 is not authorized to use partition long", "denied", "u17"),
        ("acme: error: 9 GPUs requested but only 8 available", "limit", "9 GPUs"),
        ("acme: ERROR: device /dev/acme0 is busy", "busy", "/dev/acme0"),
        ("acme: cannot open a.conf for writing, currently in use by another process", "busy", "a.conf"),
        ("acme: Error: Requested GPU 3 but only 1GPU(s) available!", "limit", "GPU 3"),
        ("acme: error: number of threads (1) does not match thread-MPI ranks", "division", "thread-MPI"),
        ("acme: ERROR: built with a GPU-enabled backend but no GPUs are requested", "unset", "GPU-enabled"),
        ("acme: fatal: libacme.so.2 was built for a different version of the driver", "differs", "libacme.so.2"),
        ("acme: error: node n17 is down", "not-running", "n17"),
        ("acme: could not resolve host n9: name not known", "name", "n9"),
        ("acme: error: the parameter of --np does not match the expected format", "invalid", "--np"),
    ],
)
def test_a_sentence_is_read_by_its_words_and_what_they_are_about(line: str, predicate: str, subject: str):
    (found,) = said(line)

    assert (found.predicate.id, found.subject) == (predicate, subject)


@pytest.mark.parametrize(
    "line",
    [
        "acme: warning: cannot find /etc/acme.conf, using default",
        "acme: INFO: /etc/acme.conf not found",
        "acme: finished with 0 errors",
        "   if not found: raise ValueError('x not found')",
        "acme: libfast.so: cannot open shared object file, falling back to sockets",
        "acme: connection to 10.0.0.2:77 refused, retrying",
        "acme: process exited with exit code 1",
        "acme: nothing about it",
    ],
)
def test_what_a_program_survives_and_how_it_ended_is_no_reason(line: str):
    assert said(line) == []


def test_a_sentence_goes_on_in_the_next_line():
    (found,) = said(
        "acme: error: the shared library that it needs was not",
        "found anywhere on this host, libacme.so.2",
        "",
        "other",
    )

    assert found.subject == "libacme.so.2"
    assert list(found.box) == [1, 2]


def test_a_message_between_dashes_is_no_error_where_it_says_that_work_goes_on():
    box = (RULE, "acme could not open /dev/acme0.", "It will be ignored and the program goes on.", RULE)

    assert said(*box) == []
    assert [each.subject for each in said(box[0], box[1], "Please check it.", RULE)] == ["/dev/acme0"]


def test_a_reason_is_told_where_known_lines_tell_the_outcome_alone():
    found = only(f"acmerun: error: option --gpu-layout is not recognized by this release\n{AFTER}", "LOG030")

    assert "in the words of acmerun: acmerun: error: option --gpu-layout" in found.title
    assert found.confidence == "possible"
    assert found.place is not None
    assert found.place.line == 1


def test_a_hint_below_is_told_with_the_reason():
    text = "acme: error: device /dev/acme0 is busy\nHint: set ACME_SHARED=1\n" + AFTER

    assert "below it stands: Hint: set ACME_SHARED=1" in only(text, "LOG030").evidence


def test_several_reasons_are_told_in_their_order():
    text = "acme: error: device /dev/acme0 is busy\nacme: error: libacme.so.2: cannot open shared object\n" + AFTER
    found = only(text, "LOG030")

    assert "/dev/acme0" in found.title
    assert "libacme.so.2" in found.evidence


def test_a_known_line_counts_more_than_words():
    text = f"acme: error: device /dev/acme0 is busy\nbash: line 1: orted: command not found\n{AFTER}"

    assert "in the words of" not in only(text, "LOG030").title


def test_a_reason_far_before_the_outcome_is_none():
    text = "acme: error: device /dev/acme0 is busy\n" + "".join(f"line {n} of acme\n" for n in range(150)) + AFTER

    assert "/dev/acme0" not in "".join(f"{each.title} {each.evidence}" for each in read(text).findings)


def test_the_end_of_a_log_gives_the_reason_where_nothing_is_known():
    text = "start\nacme: error: device /dev/acme0 is busy\n"

    assert "/dev/acme0" in only(f"{text}Aborted (core dumped)\n", "LOG030").title
    assert "/dev/acme0" in only(text, "LOG048").title
    assert read(text).verdict.outcome == "cannot_tell"


def test_work_that_goes_on_makes_it_no_failure():
    text = "acme: error: device /dev/acme0 is busy\nstep 1 loss 3.0\nstep 2 loss 2.0\n"

    assert not any(each.severity == "error" for each in read(text).findings)


def test_an_error_that_is_known_and_that_a_job_got_over_is_a_note():
    text = "ImportError: No module named 'boto3'\nstep 1 loss 3.0\nstep 2 loss 2.0\n"

    assert only(text, "LOG047").severity == "note"
    assert "LOG030" in codes(read(text + ABORTED))


def test_a_healthy_job_of_nccl_is_left_alone():
    assert read("acme: error: device /dev/acme0 is busy\n" + Job().text()).findings == ()


def test_what_stands_above_an_abort_is_quoted():
    found = only("starting task 0\nERROR reading namelist domains\n-----\n" + ABORTED, "LOG030")

    assert "above it stands, in words that busbw does not know: ERROR reading namelist domains" in found.evidence


def test_a_heading_is_quoted_with_what_stands_below_it():
    found = only("Error in routine fft (6):\n  there are processes with no planes\n" + ABORTED, "LOG030")

    assert "know: Error in routine fft (6): there are processes with no planes" in found.evidence


def test_what_would_tell_more_is_by_who_speaks():
    (found,) = [each for each in read(AFTER).findings if each.code == "LOG036"]

    assert "NCCL_DEBUG=INFO and srun -vv" in (found.fix or "")
    assert what_would_tell([]) == "NCCL_DEBUG=INFO"


def test_pieces_keep_the_numbers_of_their_lines():
    lines = [f"line {number} {'x' * 90}".encode() for number in range(1, 20001)]
    excerpts = Excerpts()
    for start in range(0, len(lines), 5000):
        block = b"\n".join(lines[start : start + 5000]) + b"\n"
        excerpts.feed(block, start + 1, start + 5001, [block.find(b"line 7777 ")] if start == 5000 else [])
    excerpts.end_source()
    kept = {number: text for _source, number, text in lines_of(tuple(excerpts.kept))}

    assert {1, 7777, 20000} < kept.keys()
    assert 15 * 2**10 < len(kept) * 100 < 2**19
    assert all(text.startswith(f"line {number} ") for number, text in kept.items())


def test_every_predicate_says_what_to_do():
    for each in predicates():
        assert each.cause, each.id
        assert each.fix, each.id
        assert all(more.kind in each.subjects for more in each.of), each.id
