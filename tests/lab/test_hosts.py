"""The hosts are hosts: names, networks, processes and files of their own, and an end that leaves nothing."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.lab.folder import remove_leftovers
from tests.lab.lab import Lab
from tests.lab.processes import start_ticks
from tests.patience import wait_until

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
LISTEN = "import socket; s = socket.create_server(('', 7)); c, _ = s.accept(); print(c.recv(99).decode())"
SAY = """
import socket, sys
socket.create_connection((sys.argv[1], 7), 30).sendall(b"from " + socket.gethostname().encode())
"""


def connects(lab: Lab, source: str, target: str) -> bool:
    """Whether `source` reaches the sshd of `target` within a second."""
    program = "import socket, sys; socket.create_connection((sys.argv[1], 22), 1)"
    return lab.run(source, [sys.executable, "-c", program, target]).returncode == 0


def test_hosts_have_names_of_their_own_and_reach_each_other_by_them(lab: Lab) -> None:
    with lab.start("n3", [sys.executable, "-c", LISTEN], stdout=subprocess.PIPE, text=True) as server:
        wait_until(lambda: lab.listens("n3", 7), 30, "the server")
        said = lab.run("n0", [sys.executable, "-c", SAY, "n3"])
        assert said.returncode == 0, said
        assert server.communicate(timeout=30)[0] == "from n0\n"


def test_a_host_sees_its_own_processes_and_devices_and_no_others(lab: Lab) -> None:
    with lab.start("n1", ["sleep", "100"]) as sleeper:
        assert "sleep 100" in lab.run("n1", ["ps", "ax", "-o", "args"]).stdout
        assert "sleep 100" not in lab.run("n2", ["ps", "ax", "-o", "args"]).stdout
        assert [process.argv for process in lab.processes("n1")] == [("sleep", "100")]
        assert lab.processes("n2") == ()
        sleeper.kill()
    assert lab.run("n1", ["ls", "/sys/class/net"]).stdout.split() == ["eth0", "lo"]


def test_memory_and_temporary_files_are_a_host_s_own_and_the_folders_of_tests_are_shared(
    lab: Lab, tmp_path: Path
) -> None:
    # A name that nobody else on this machine has.
    mine = [f"{folder}/{tmp_path.parent.name}-{tmp_path.name}" for folder in ("/dev/shm", "/run", "/tmp")]

    lab.run("n0", ["touch", *mine, tmp_path / "ours"])

    assert lab.run("n0", ["ls", *mine, tmp_path / "ours"]).returncode == 0
    assert not any(Path(path).exists() for path in mine)
    found = lab.run("n1", ["ls", *mine, tmp_path / "ours"])
    assert (found.stdout, found.stderr.count("No such file")) == (f"{tmp_path}/ours\n", 3)
    lab.run("n0", ["rm", *mine])


def test_a_command_gets_its_environment_and_nothing_else(lab: Lab) -> None:
    odd = {"PATH": "/usr/bin", "A": "spaces, 'quotes' and\nlines", "B": ""}

    printed = lab.run("n0", ["env", "-0"], env=odd).stdout

    assert dict(entry.split("=", 1) for entry in printed.split("\0") if entry) == odd


WAITS = """
import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
print("on", flush=True)
signal.pause()
"""


def test_a_signal_goes_to_the_command(lab: Lab) -> None:
    with lab.start("n0", [sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        assert process.wait(30) == 7
    with lab.start("n0", ["sleep", "100"]) as process:
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM


def test_a_command_that_takes_too_long_ends_with_what_it_started(lab: Lab) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        lab.run("n0", ["sh", "-c", "sleep 100; true"], timeout_s=0.2)

    wait_until(lambda: lab.processes("n0") == (), 30, "the end of both")


def test_a_host_that_is_cut_off_does_not_answer_until_it_is_mended(lab: Lab) -> None:
    lab.cut("n2")
    assert not connects(lab, "n0", "n2")
    assert not connects(lab, "n2", "n3")
    wait_until(lambda: connects(lab, "n0", "n3"), 30, "a connection within a second")

    lab.mend("n2")
    wait_until(lambda: connects(lab, "n0", "n2"), 30, "n2")


def test_a_host_that_is_paused_does_nothing_until_it_goes_on(lab: Lab, tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    with lab.start("n1", ["sh", "-c", f"while :; do echo >> {ticks}; sleep 0.01; done"]) as process:
        wait_until(ticks.exists, 30, "a tick")
        lab.pause("n1")
        before = ticks.stat().st_size
        time.sleep(0.2)
        assert ticks.stat().st_size == before

        lab.unpause("n1")
        wait_until(lambda: ticks.stat().st_size > before, 30, "a tick")
        process.kill()


def test_a_host_that_was_killed_starts_anew(lab: Lab) -> None:
    with lab.start("n3", ["sleep", "100"]) as process:
        lab.kill_host("n3")
        assert process.wait(30) == -signal.SIGKILL
    assert not connects(lab, "n0", "n3")

    lab.restart("n3")

    assert lab.run("n0", ["ssh", "n3", "hostname"]).stdout == "n3\n"


def test_a_shaped_host_sends_at_its_rate(lab: Lab) -> None:
    def seconds() -> float:
        with lab.start("n1", [sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True) as server:
            wait_until(lambda: lab.listens("n1", 7), 30, "the server")
            assert lab.run("n0", [sys.executable, "-c", SEND]).returncode == 0
            return float(server.communicate(timeout=30)[0])

    def least(enough_s: float) -> float:
        """Return the shortest of several times: busy cores lengthen any, and shorten none."""
        least_s = seconds()
        for _try in range(4):
            if least_s > enough_s:
                least_s = min(least_s, seconds())
        return least_s

    free_s = least(0.3)
    lab.shape("n0", "40mbit")
    shaped_s = least(1.0)

    # 4 MB are 32 Mbit.
    assert 0.7 < shaped_s <= 1
    assert shaped_s > 2 * free_s


RECEIVE = """
import socket, time
with socket.create_server(("", 7)) as server:
    connection, _ = server.accept()
    began = time.monotonic()
    while connection.recv(1 << 16):
        pass
    print(time.monotonic() - began)
"""
SEND = "import socket; socket.create_connection(('n1', 7)).sendall(bytes(4_000_000))"


def test_the_small_file_system_is_the_same_on_all_hosts_and_fills_up(lab: Lab) -> None:
    with lab.small_file_system(1 << 20) as folder:
        assert lab.run("n0", ["dd", "if=/dev/zero", f"of={folder}/most", "bs=1k", "count=900"]).returncode == 0

        more = lab.run("n1", ["dd", "if=/dev/zero", f"of={folder}/more", "bs=1k", "count=900"])

        assert "No space left on device" in more.stderr
        assert sorted(path.name for path in folder.iterdir()) == ["more", "most"]
    assert list(folder.iterdir()) == []


def test_ssh_goes_from_host_to_host_and_takes_no_environment_along(lab: Lab) -> None:
    done = lab.run("n0", ["ssh", "n2", "hostname; echo [$MINE]"], env={"PATH": "/usr/bin", "MINE": "1"})

    assert done.stdout == "n2\n[]\n", done


def test_the_remote_shell_does_what_ssh_does_and_can_be_seen_at_work(lab: Lab) -> None:
    before = lab.remote_shell_calls

    done = lab.run("n1", [lab.remote_shell, "n0", "hostname"])

    assert done.stdout == "n0\n", done
    assert lab.remote_shell_calls[len(before) :] == ("n0 hostname",)


OWNER = """
import sys, time
from tests.lab.lab import Lab
lab = Lab(2)
lab.start("n1", ["sleep", "100"])
print(lab.folder, *[process.id for host in lab.hosts for process in lab.everything(host)], flush=True)
time.sleep(100)
"""


@pytest.mark.usefixtures("lab")  # for what it needs
def test_a_killed_owner_takes_its_hosts_along_and_the_next_lab_removes_the_rest() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        name, *ids = owner.stdout.readline().split()
        owner.kill()
    folder, process_ids = Path(name), [int(word) for word in ids]

    wait_until(lambda: all(start_ticks(process_id) is None for process_id in process_ids), 30, "the hosts to end")
    assert len(process_ids) == 3  # two sshd, one sleep
    assert (folder / "small").is_mount()
    assert folder in remove_leftovers()
    assert not folder.exists()


@pytest.mark.usefixtures("lab")
def test_leftovers_are_ended_by_id_and_start_so_that_no_other_process_is_hit(lab: Lab) -> None:
    with subprocess.Popen(["sleep", "100"]) as mine, subprocess.Popen(["sleep", "100"]) as other:
        folder = lab.folder.parent / "1.never.0"  # nobody's
        folder.mkdir()
        start = start_ticks(mine.pid)
        (folder / "processes").write_text(f"{mine.pid} {start}\n{other.pid} {start_ticks(other.pid) - 1}\n")

        assert remove_leftovers() == (folder,)

        assert mine.wait(5) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
