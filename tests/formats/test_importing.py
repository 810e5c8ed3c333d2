"""`busbw import` as a user starts it: what it prints, what it exits with, what lies on the disk afterwards."""

import gzip
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.api.importing import import_files
from busbw.base.errors import InputError
from busbw.store import imports, sources

from .reading import SAMPLES, sample


def busbw(*arguments, stdin=b"", folder=None, **environment):
    command = ["import", *map(str, arguments)]
    variables = {**os.environ, "NO_COLOR": "1", **environment}
    if not stdin:
        return warm_busbw(*command, cwd=folder, env=variables, text=False)
    program = Path(sys.executable).with_name("busbw")
    return subprocess.run(
        [program, *command], input=stdin, capture_output=True, timeout=60, check=False, cwd=folder, env=variables
    )


def codes(done):
    return {finding["code"] for finding in json.loads(done.stdout)["findings"]}


def test_a_log_becomes_a_directory_that_stays_as_it_is(tmp_path):
    done = busbw(SAMPLES / "nccl-tests-2.17.3.log", "-o", tmp_path / "i", "--json", "--tag", "night")

    assert done.returncode == 0, done.stderr
    imported = imports.read(tmp_path / "i")
    assert json.loads(done.stdout)["import_id"] == imported.import_id
    assert (imported.readings, imported.unread, imported.tag) == (6, 0, "night")
    assert imported.sources[0].lines == imported.reading_lines + imported.known_lines + imported.unread
    assert [reading.busbw_Bps for reading in imports.readings(tmp_path / "i")][-1] == 263.98e9
    assert list(imports.unread(tmp_path / "i")) == []
    (copy,) = (tmp_path / "i" / "raw").iterdir()
    assert copy.read_bytes() == sample("nccl-tests-2.17.3.log")
    files = [path for path in (tmp_path / "i").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o444}


def test_an_import_goes_beside_the_runs(tmp_path):
    done = busbw("-", stdin=sample("osu-5.6-latency.log"), BUSBW_RUNS=str(tmp_path / "runs"))

    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "runs").iterdir()
    assert "-import-stdin-" in made.name
    assert imports.read(made).sources[0].name == "standard input"


def test_the_heartbeats_of_a_run_are_no_logs(tmp_path):
    (tmp_path / "rank-00000.beat").write_bytes(bytes(64))
    (tmp_path / "launcher.0.stdout").write_text("NCCL version 2.28.9\n", encoding="utf-8")

    assert sources.found((str(tmp_path),)) == (str(tmp_path / "launcher.0.stdout"),)


def test_a_folder_is_walked_and_its_files_told_apart(tmp_path):
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    (tmp_path / "logs" / ".hidden").write_bytes(sample("nccl-tests-2.17.3.log"))
    (tmp_path / "logs" / "link").symlink_to(tmp_path)
    (tmp_path / "logs" / "a.log.gz").write_bytes(gzip.compress(sample("nccl-tests-2.17.9.log")))
    (tmp_path / "logs" / "deep" / "b.log").write_bytes(sample("osu-7.5-cuda.log"))

    done = import_files([str(tmp_path / "logs")], tmp_path / "i", tmp_path)

    imported = done.imported
    assert [Path(source.name).name for source in imported.sources] == ["a.log.gz", "b.log"]
    assert [source.compressed for source in imported.sources] == [True, False]
    assert {table.source for table in imported.tables} == {0, 1}
    assert [table.number for table in imported.tables] == list(range(len(imported.tables)))
    copied = tmp_path / "i" / "raw" / "00000-a.log.gz"
    assert gzip.decompress(copied.read_bytes()) == sample("nccl-tests-2.17.9.log")


def test_secrets_of_a_log_are_nowhere_in_its_import(tmp_path):
    log = tmp_path / "job.log"
    log.write_bytes(
        b"+ mpirun -x HF_TOKEN=S3CRET -x NCCL_DEBUG=INFO\nAWS_SECRET_ACCESS_KEY=S3CRET\nNCCL_ALGO=Ring\n"
        + sample("nccl-tests-json-1.json").replace(b"hf_secretsecret", b"S3CRET")
    )

    done = busbw(log, "-o", tmp_path / "i")

    assert b"S3CRET" not in done.stdout + done.stderr
    files = [path for path in (tmp_path / "i").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert not [path for path in files if b"S3CRET" in path.read_bytes()]
    assert b"NCCL_DEBUG=INFO" in next(path.read_bytes() for path in files if path.parent.name == "raw")


def test_no_copy_keeps_none(tmp_path):
    busbw(SAMPLES / "nccl-tests-2.17.3.log", "-o", tmp_path / "i", "--no-copy")
    assert sorted(path.name for path in (tmp_path / "i").iterdir()) == ["import.json", "readings.jsonl", "unread.jsonl"]


@pytest.mark.parametrize(
    ("name", "code", "exits"),
    [
        ("nccl-tests-failure.log", "IMP001", 1),
        ("nccl-tests-2.16.7-wrong.log", "IMP002", 1),
        ("nccl-tests-2.13-one-rank-runs.log", "IMP006", 1),
        ("nccl-tests-2.9-all_reduce-c0.log", "IMP009", 0),
        ("osu-5.7-mbw_mr.log", None, 0),
    ],
)
def test_findings_decide_the_exit_code(tmp_path, name, code, exits):
    done = busbw(SAMPLES / name, "-o", tmp_path / "i", "--json")

    assert done.returncode == exits, done.stderr
    assert codes(done) == ({code} if code else set())


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace(" 98.65", " 78.65"), "IMP004"),
        (lambda text: text.replace("# Rank  3", "x").replace("#  Rank  3 Group  0 Pid   2806", "# nobody"), "IMP005"),
        (lambda text: text.replace("  98.65 ", " 98.65 12 "), "IMP007"),
        (lambda text: text[: text.index("# Out of bounds")], "IMP008"),
        (lambda text: text + "Traceback (most recent call last):\n", "IMP010"),
    ],
)
def test_what_is_odd_about_a_table_is_found(tmp_path, change, code):
    changed = change(sample("nccl-tests-2.17.3.log").decode())

    done = busbw("-", "-o", tmp_path / "i", "--json", stdin=changed.encode())

    assert code in codes(done)
    assert done.returncode == (0 if code == "IMP010" else 1)


def test_compressed_data_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
    whole = gzip.compress(sample("nccl-tests-2.18-three-runs.log") * 20)
    (tmp_path / "log.gz").write_bytes(whole[: len(whole) // 2])

    done = busbw(tmp_path / "log.gz", "-o", tmp_path / "i", "--json")

    assert "IMP003" in codes(done)
    imported = imports.read(tmp_path / "i")
    assert imported.readings > 0
    assert [line.why for line in imports.unread(tmp_path / "i")][-1] == "its compressed data was cut off"
    assert imported.sources[0].lines == imported.reading_lines + imported.known_lines + imported.unread


def test_a_compressed_bomb_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MOST_DECOMPRESSED_BYTES", 2**20)
    bomb = gzip.compress(sample("nccl-tests-2.17.3.log") + b"\n" * 2**24)
    (tmp_path / "bomb.gz").write_bytes(bomb)

    done = import_files([str(tmp_path / "bomb.gz")], tmp_path / "i", tmp_path)

    assert done.imported.readings == 6
    assert [finding.code for finding in done.imported.findings] == ["IMP003"]
    assert "not read further" in done.imported.findings[0].evidence
    assert done.imported.sources[0].size_bytes == len(bomb)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", b"no result of any tool"),
        (b"\n\n", b"no result of any tool"),
        (b"hello\nworld\n", b"no reader knows this line"),
        (b"\x7fELF\x00\x00" * 100, b"null bytes"),
        (b"\x1f\x8b\x08 not gzip", b"damaged"),
        (b'{"a": 1}\n', b"no reader knows this JSON document"),
    ],
)
def test_nothing_readable_is_bad_input_and_leaves_nothing(tmp_path, content, words):
    done = busbw("-", "-o", tmp_path / "i", stdin=content)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: ")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_or_in_the_way_is_bad_input(tmp_path):
    (tmp_path / "empty").mkdir()
    assert busbw(tmp_path / "none").returncode == 2
    assert busbw(tmp_path / "empty").returncode == 2
    assert busbw().returncode == 2
    done = busbw(SAMPLES / "nccl-tests-2.17.3.log", "-o", tmp_path / "empty")
    assert done.returncode == 2
    assert b"is there already" in done.stderr


def test_names_that_would_leave_the_folder_stay_in_it(tmp_path):
    (tmp_path / "..x y;\n.log").write_bytes(sample("nccl-tests-2.17.3.log"))

    done = busbw(tmp_path / "..x y;\n.log", "-o", tmp_path / "i")

    assert done.returncode == 0, done.stderr
    (copy,) = (tmp_path / "i" / "raw").iterdir()
    assert copy.name == "00000-x_y_.log"


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(_event):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(imports.Draft, "keep", lambda _self, readings, _unread: refuse(readings))
    with pytest.raises(Exception, match="No space left on device"):
        import_files([str(SAMPLES / "nccl-tests-2.17.3.log")], tmp_path / "i", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_summary_fits_eighty_columns(tmp_path):
    log = tmp_path / "all.log"
    log.write_bytes(sample("nccl-tests-2.18-three-runs.log") + sample("osu-7.5-cuda.log"))
    script = [
        "script",
        "-qec",
        f"{Path(sys.executable).with_name('busbw')} import {log} -o {tmp_path / 'i'}",
        "/dev/null",
    ]

    done = subprocess.run(
        script, capture_output=True, timeout=60, check=False, env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    )

    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode())
    # A path stays in one piece, however long it is.
    lines = [line for line in shown.splitlines() if str(tmp_path) not in line]
    assert "alltoall" in shown
    assert re.search(r"366\.\d+ GB/s", shown)
    assert max(len(line) for line in lines) <= 80


def test_an_import_file_of_a_newer_busbw_is_refused(tmp_path):
    import_files([str(SAMPLES / "nccl-tests-2.17.3.log")], tmp_path / "i", tmp_path)
    content = (tmp_path / "i" / "import.json").read_bytes().replace(b'"schema": 1', b'"schema": 9')
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "import.json").write_bytes(content)

    with pytest.raises(InputError, match="written by a newer busbw"):
        imports.read(tmp_path / "j")


@pytest.mark.parametrize(("mark", "coding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_text_in_utf_16_is_read_as_any_other(tmp_path, mark, coding, compress):
    source = tmp_path / "windows.log"
    source.write_bytes(compress(mark + sample("nccl-tests-2.17.3.log").decode().encode(coding)))

    done = import_files((str(source),), tmp_path / "i", tmp_path)

    assert (done.imported.readings, done.imported.unread) == (6, 0)


def test_a_beginning_of_perftest_before_the_other_sides_table_is_not_cut_off(tmp_path):
    text = sample("perftest_write_bw.txt").decode()
    beginning = text[: text.index("#bytes")]
    assert "IMP008" not in codes(busbw("-", "-o", tmp_path / "both", "--json", stdin=f"{beginning}{text}".encode()))
    assert "IMP008" in codes(busbw("-", "-o", tmp_path / "none", "--json", stdin=f"{text}{beginning}".encode()))
