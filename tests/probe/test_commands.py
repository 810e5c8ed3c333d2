"""Programs are asked within their time and their length; these are real ones, made for the test."""

import os
import threading
import time
from pathlib import Path

import pytest
from tests.patience import wait_until, with_more_time

from busbw.machine.capture.files import ask
from busbw.machine.read.commands import COMMANDS, Command
from busbw.model.host import Answer


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what puts a shell script of a name first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(name: str, script: str) -> Command:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return Command(name=name, programs=(name,), timeout_s=60)

    return write


def asked(*commands: Command, total_s: float = 60):
    return ask(commands, total_s=total_s)


def asked_until_it_speaks(command: Command) -> Answer:
    """Ask a program that does not end in time, with time enough to say something."""
    return with_more_time(
        lambda time_s: asked(Command(name=command.name, programs=command.programs, timeout_s=time_s))[0],
        lambda answer: answer.output != "",
    )


def test_an_answer_holds_output_error_and_exit_code(programs) -> None:
    (answer,) = asked(programs("talk", "echo said; echo complained >&2; exit 3"))
    assert (answer.ended, answer.exit_code, answer.output, answer.error) == ("failed", 3, "said\n", "complained\n")


def test_a_program_that_is_not_there_is_absent() -> None:
    (answer,) = asked(Command(name="none", programs=("no-such-program-here", "nor-this"), arguments=("-x",)))
    assert (answer.ended, answer.argv) == ("absent", ("no-such-program-here", "-x"))


def test_the_first_program_that_is_there_is_asked(programs) -> None:
    programs("second", "echo second")
    (answer,) = asked(Command(name="either", programs=("no-such-program-here", "second")))
    assert answer.output == "second\n"
    assert answer.argv[0].endswith("/second")


def test_a_program_that_hangs_is_ended_and_what_it_said_is_kept(programs) -> None:
    command = programs("slow", "echo begun; sleep 600")
    answer = asked_until_it_speaks(command)
    assert (answer.ended, answer.output, answer.exit_code) == ("timeout", "begun\n", None)


def has_ended(status: Path) -> bool:
    try:
        return status.read_text().split()[2] == "Z"
    except OSError:
        return True


def test_what_a_program_leaves_behind_is_ended_too(programs, tmp_path: Path) -> None:
    command = programs("parent", f"sleep 600 & echo $! > {tmp_path}/pid; echo done")
    answer = asked_until_it_speaks(command)
    assert answer.output == "done\n"
    status = Path("/proc") / (tmp_path / "pid").read_text().strip() / "stat"
    wait_until(lambda: has_ended(status), 30, f"the end of {status.parent}")


def test_output_without_end_is_cut(programs) -> None:
    (answer,) = asked(programs("endless", "yes 0123456789"))
    assert answer.ended == "cut"
    assert len(answer.output) == 4 * 2**20


def test_all_together_have_one_time(programs) -> None:
    slow = programs("slow", "sleep 600")
    start_s = time.monotonic()
    answers = asked(*(Command(name=f"slow{place}", programs=slow.programs) for place in range(20)), total_s=1)
    assert {answer.ended for answer in answers} == {"timeout"}
    # Any one alone would take a minute.
    assert time.monotonic() - start_s < 50


def test_a_program_neither_waits_for_input_nor_speaks_another_language(programs, monkeypatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    (answer,) = asked(programs("reads", 'read line; echo "got <$line> in $LC_ALL"'))
    assert answer.output == "got <> in C\n"


def test_bytes_that_are_no_text_do_not_stop_it(programs) -> None:
    (answer,) = asked(programs("binary", r"printf 'a\377b\000c'"))
    assert answer.output == "a\N{REPLACEMENT CHARACTER}b\0c"


def test_a_file_that_cannot_be_started_is_an_answer(programs, tmp_path: Path) -> None:
    programs("broken", "")
    (tmp_path / "broken").write_bytes(b"\x7fELF\0\0\0")
    (answer,) = asked(Command(name="broken", programs=("broken",)))
    assert (answer.ended, answer.exit_code) == ("failed", None)


def test_a_folder_of_path_that_is_not_absolute_is_not_searched(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "planted").write_text("#!/bin/sh\necho planted\n")
    (tmp_path / "planted").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    (answer,) = asked(Command(name="planted", programs=("planted",)))
    assert answer.ended == "absent"


def test_command_lines_of_others_on_the_gpus_are_not_kept(programs) -> None:
    xml = (
        "<gpu><processes><process_info><pid>7</pid><process_name>python train.py --user alice"
        "</process_name></process_info></processes><accounted_processes><x>bob</x></accounted_processes>"
        "<product_name>NVIDIA H200</product_name></gpu>"
    )
    (answer,) = asked(programs("smi", f"cat <<'END'\n{xml}\nEND"))
    assert answer.output == "<gpu><product_name>NVIDIA H200</product_name></gpu>\n"


def test_every_question_has_a_name_of_its_own_and_a_bound() -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    assert all(0 < command.timeout_s <= 30 for command in COMMANDS)
    assert all(command.name.replace("-", "").replace("_", "").isalnum() for command in COMMANDS)


def test_serial_numbers_that_lstopo_tells_root_are_left_out(programs) -> None:
    xml = (
        '    <info name="DMIProductSerial" value="J12345"/>\n    <info name="DMIProductName" value="X"/>\n'
        '    <info name="DMIProductUUID" value="0000-1"/>'
    )
    (answer,) = asked(programs("lstopo", f"cat <<'END'\n{xml}\nEND"))
    assert answer.output == '    <info name="DMIProductName" value="X"/>\n'


def test_where_no_thread_can_be_started_programs_are_asked_one_after_the_other(programs) -> None:
    commands = (programs("one", "echo 1"), programs("two", "echo 2"))
    before = threading.stack_size(2**46)
    try:
        answers = asked(*commands)
    finally:
        threading.stack_size(before)
    assert [answer.output for answer in answers] == ["1\n", "2\n"]
