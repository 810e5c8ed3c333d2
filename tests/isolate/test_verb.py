"""`busbw isolate` with programs of a user, as it is started in a terminal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import wait_until
from tests.warm import warm_busbw

PROGRAM = Path(__file__).with_name("programs") / "step.sh"
TIME = ("--read", r"time: ([0-9.]+)", "--lower-is-better", "--seed", "1", "--repeats", "2")
HOSTS = ("--hosts", "n[0-3]")


def step(*words: str) -> tuple[str, ...]:
    return ("--", str(PROGRAM), "{hosts}", *words)


def isolated(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "BUSBW_RUNS": str(folder / "runs"), "NO_COLOR": "1", "COLUMNS": "80"}
    done = warm_busbw("isolate", *words, env=environment, cwd=folder, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_slow_host_is_named_with_its_groups_and_what_was_sound(tmp_path):
    done = isolated(tmp_path, *HOSTS, *TIME, "--out", "it", "--json", *step("slow", "n2"))
    found = json.loads(done.stdout)

    assert done.returncode == 1, done.stderr
    assert [answer["hosts"] for answer in found["answers"]] == [["n2"]]
    assert found["answers"][0]["kind"] == "node"
    assert abs(found["answers"][0]["loss"] - 1 / 3) < 0.02
    assert [each["code"] for each in found["findings"]] == ["FAB030"]
    assert any("sound" in line for line in found["answers"][0]["evidence"])
    assert json.loads((tmp_path / "it" / "result.json").read_text()) == found
    first = tmp_path / "it" / "round-001" / "group-000"
    assert (first / "stdout").read_text() == "step 3 of 3\ntime: 10.05 s\n"
    assert (first / "hosts").read_text() == "n0\nn1\n"

    # It is listed and shown as what is stored is.
    shown = warm_busbw("show", "it", cwd=tmp_path)
    assert (shown.returncode, shown.stdout.partition(",")[0]) == (1, "slow: node n2 slows every group it is in")
    written = warm_busbw("report", "it", "-o", "it.html", cwd=tmp_path)
    page = (tmp_path / "it.html").read_text()
    assert (written.returncode, "<title>slow: busbw isolate</title>" in page, "FAB030" in page) == (0, True, True)
    refused = warm_busbw("plot", "it", cwd=tmp_path)
    assert (refused.returncode, "has no curves" in refused.stderr) == (2, True)
    environment = {**os.environ, "BUSBW_RUNS": str(tmp_path)}
    (row,) = json.loads(warm_busbw("runs", "--json", cwd=tmp_path, env=environment).stdout)
    assert (row["kind"], row["collectives"], row["outcome"]) == ("isolation", ["step.sh"], "slow")

    # A search that is complete is read again, and nothing is started.
    drained = isolated(tmp_path, "--resume", "it", "--drain-list", "-", "--drain-form", "scontrol")
    assert drained.stdout.startswith("scontrol update nodename=n2 state=drain 'reason=busbw isolate: "), drained
    listed = isolated(tmp_path, "--resume", "it", "--drain-list", "d", "--spares", "n2,m0")
    assert (listed.returncode, "# in the place of n2: m0" in (tmp_path / "d").read_text()) == (1, True)
    again = isolated(tmp_path, "--resume", "it")
    assert again.returncode == 1
    assert again.stderr == ""
    assert again.stdout.startswith("slow: node n2 slows every group it is in")
    assert max(map(len, again.stdout.splitlines())) < 80


@pytest.mark.parametrize(("what", "said"), [("fail", "exited with code 7: cannot open device"), ("silent", "matches")])
def test_a_host_whose_groups_fail_is_named(tmp_path, what, said):
    done = isolated(tmp_path, *HOSTS, *TIME, *step(what, "n1"))

    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("failed: groups with node n1 fail")
    assert said in " ".join(done.stdout.split())


# Sound groups must end within the limit too, on cores that are busy.
@pytest.mark.flaky(reruns=2, reruns_delay=3)
def test_groups_that_hang_end_alone_with_what_they_started(tmp_path):
    words = ("--no-whole", "--repeats", "1", "--timeout", "2", "--rounds", "6", "--hosts", "n[0-2]", "--out", "it")
    done = isolated(tmp_path, *words, *step("hang", "n2"))

    assert done.returncode == 1, done.stderr
    assert "not finished after 2 s" in done.stdout
    assert left_of("it") == []


def left_of(name: str) -> list[int]:
    """Return the processes that carry the mark of a search."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and f"BUSBW_RUN={name}.round-".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_where_all_are_alike_it_cannot_tell_without_an_expectation_and_can_with_one(tmp_path):
    without = isolated(tmp_path, *HOSTS, *TIME, *step())
    expected = isolated(tmp_path, *HOSTS, *TIME, "--expect", "10", *step())
    missed = isolated(tmp_path, *HOSTS, *TIME, "--expect", "5", *step())

    assert (without.returncode, expected.returncode, missed.returncode) == (4, 0, 1)
    assert "cannot tell whether all of it is slow" in without.stdout
    assert expected.stdout.startswith("ok: no node slows its groups of 2")
    assert missed.stdout.startswith("slow: every group")


def test_where_every_group_fails_it_is_the_command(tmp_path):
    done = isolated(tmp_path, *HOSTS, "--no-whole", "--repeats", "1", "--", "false", "{hosts}")

    assert done.returncode == 4
    assert "every group fails, the first with: exited with code 1" in " ".join(done.stdout.split())


def test_a_plan_shows_the_first_round_and_starts_nothing(tmp_path):
    done = isolated(tmp_path, "--hosts", "n[0-4]", "--plan", "--out", "it", "--", "echo", "{hosts}", "a b;", "{nodes}")

    assert done.returncode == 0
    assert "n[0-1]: echo n0,n1 'a b;' 2" in done.stdout
    assert not (tmp_path / "it").exists()


def test_leaves_of_a_file_make_the_first_groups(tmp_path):
    tree = tmp_path / "topology.conf"
    tree.write_text("SwitchName=s1 Nodes=n[0,2]\nSwitchName=s2 Nodes=n[1,3]\nSwitchName=sp Switches=s[1-2]\n")

    done = isolated(tmp_path, *HOSTS, "--topology", str(tree), "--plan", "--", "echo", "{hosts}")
    lacking = isolated(tmp_path, "--hosts", "n[0-4]", "--topology", str(tree), "--plan", "--", "echo", "{hosts}")

    assert "n[0,2]: echo n0,n2\nn[1,3]: echo n1,n3\n" in done.stdout
    assert lacking.returncode == 2
    assert "not in the topology: n4" in lacking.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hosts", "n0,n1,n0", "--", "echo", "{hosts}"), "2 hosts cannot be told from each other"),
        (("--hosts", "n0,n1", "--", "echo", "{hosts}"), "3 are the least"),
        ((*HOSTS, "--", "echo", "hello"), "says which hosts a group has"),
        ((*HOSTS, "--"), "no command is named"),
        ((*HOSTS,), "neither a collective nor a command"),
        ((*HOSTS, "--read", "abc", "--lower-is-better", "--", "echo", "{hosts}"), "0 groups, and one must hold"),
        ((*HOSTS, "--read", "last-number", "--", "echo", "{hosts}"), "which numbers are better"),
        ((*HOSTS, "--group", "3", "--", "echo", "{hosts}"), "groups of 3 cannot be"),
        ((*HOSTS, "--repeats", "0", "--", "echo", "{hosts}"), "--repeats lies between"),
        ((*HOSTS, "--timeout", "0", "--", "echo", "{hosts}"), "must be more than 0"),
        ((*HOSTS, "-b", "1M", "--", "echo", "{hosts}"), "your command would not get it"),
        ((*HOSTS, "all_reduce", "--", "echo", "{hosts}"), "are both named"),
        ((*HOSTS, "--expect", "x", *TIME, "--", "echo", "{hosts}"), "not a number above 0"),
        ((*HOSTS, "--", "no-such-program-here", "{hosts}"), "there is no program"),
        ((*HOSTS, "all_reduc", "-b", "1M"), "not a collective"),
        ((*HOSTS, "all_reduce"), "compared at one size"),
        ((*HOSTS, "all_reduce", "-b", "1M", "--read", "last-number"), "is for a command of yours"),
        (("--hosts", "n0;n1", "--", "echo", "{hosts}"), "cannot be the name of a host"),
        (("--", "echo", "{hosts}"), "no hosts are named"),
        (("--resume", "nowhere"), "no searches"),
        ((*HOSTS, "--topology", "none.conf", "--", "echo", "{hosts}"), "none.conf"),
        ((*HOSTS, "--drain-list", "-", "--json", "--", "echo", "{hosts}"), "both --json and --drain-list -"),
        ((*HOSTS, "--spares", "n[3-1]", "--", "echo", "{hosts}"), "a range that runs backwards"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path, words, said):
    done = isolated(tmp_path, *words)

    assert done.returncode == 2, done
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_not_taken(tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "mine").touch()

    done = isolated(tmp_path, *HOSTS, "--out", "it", "--", "echo", "{hosts}")

    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_a_search_that_was_cut_off_goes_on_and_with_other_hosts_it_does_not(tmp_path):
    whole = json.loads(isolated(tmp_path, *HOSTS, *TIME, "--out", "it", "--json", *step("slow", "n3")).stdout)
    lines = (tmp_path / "it" / "runs.jsonl").read_bytes().splitlines(keepends=True)
    # In the middle of a round, and of a line.
    (tmp_path / "it" / "runs.jsonl").write_bytes(b"".join(lines[:6]) + lines[6][:20])
    (tmp_path / "it" / "result.json").unlink()

    refused = isolated(tmp_path, "--resume", "it", "--hosts", "n[4-7]")
    done = isolated(tmp_path, "--resume", "it", "--json")

    assert refused.returncode == 2
    assert "leave out --hosts" in refused.stderr
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout) == whole
    assert "round 1:" not in done.stderr
    assert isolated(tmp_path, "--resume", "it").stderr == ""

    # Stored rounds of other groups are not taken for these.
    plan = json.loads((tmp_path / "it" / "isolation.json").read_text())
    (tmp_path / "it" / "isolation.json").write_text(json.dumps({**plan, "hosts": ["m0", "m1", "m2", "m3"]}))
    other = isolated(tmp_path, "--resume", "it")
    assert other.returncode == 2
    assert "had other groups" in other.stderr


def test_ctrl_c_ends_every_group_and_keeps_what_was_measured(tmp_path):
    words = ("--no-whole", "--repeats", "1", "--hosts", "n[0-2]", "--out", "it", *step("hang", "n2"))
    process = subprocess.Popen(
        [sys.executable, "-m", "busbw", "isolate", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # The first round has no n2.
    wait_until(lambda: len(left_of("it")) >= 2, 100.0, lambda: "the group that hangs has not begun")
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=100)

    assert process.returncode == 3, err
    assert b"stopped in round 2" in err
    assert b"busbw isolate --resume" in err
    assert left_of("it") == []
    assert len((tmp_path / "it" / "runs.jsonl").read_text().splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_said_and_ends_the_search(tmp_path):
    isolated(tmp_path, *HOSTS, *TIME, "--out", "it", *step())
    runs = tmp_path / "it" / "runs.jsonl"
    runs.unlink()
    runs.symlink_to("/dev/full")

    done = isolated(tmp_path, "--resume", "it")

    assert done.returncode == 3, done
    assert "cannot write runs.jsonl: No space left on device" in done.stderr
