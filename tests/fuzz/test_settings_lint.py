"""Any text is linted without a traceback and in a time that grows with its length; its corrections are certain."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_cost

from busbw.api.settings import fixed_file, lint_file
from busbw.base.errors import InputError
from busbw.env.lint import MOST_FINDINGS, corrected, difference, lint
from busbw.env.reading import LANGUAGES, read, text_of
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import newest
from busbw.facts.envvars import misspellings, variables
from busbw.facts.platforms import find_platform
from busbw.facts.rules import rules
from busbw.model import codec

PLATFORMS = [None, "azure-ndv4", "azure-nd-h100-v5", "oci-bm-gpu4-8", "isambard-ai-phase2", "aws-p5"]
NAMES = st.sampled_from([*sorted(variables()), *sorted(misspellings())])
VALUES = st.sampled_from(
    [
        "0", "1", "2", "32", "512K", "8M", "true", "", "Ring", "Tree", "NVLS", "^LL128", "INFO", "=mlx5_0,mlx5_1",
        "mlx5_1", "^=mlx5_0", "a,=b,,c:x", "/opt/microsoft/ndv4-topo.xml", "~/a", "$A", "$(b)",
        "AWS Libfabric", "lo", "IB",
    ]
)  # fmt: skip
COMMANDS = [
    "mpirun -np 8 --bind-to numa --map-by ppr:8:node -x NCCL_ALGO ./a", "mpirun -H a:8,b:8 -x NCCL_NVLS_ENABLE=1 ./a",
    "srun -N 2 --cpu-bind=mask_cpu:ff,ff00 ./a", "srun --export=NCCL_DEBUG=INFO,A ./a", "torchrun a.py",
    "docker run a b",
    "apptainer exec -C a.sif b",
    "if true; then", "else", "fi", "for i in 1 2; do", "done", "#SBATCH -N 2", "set -a",
    "cat > /etc/nccl.conf <<EOF", "EOF", "\\", "FROM a", "ENV A=b", "'", '"', "\u201c", "--mca a=b", "unset NCCL_ALGO",
    "#%Module", "apiVersion: v1", "kind: MPIJob", "  - name: NCCL_ALGO", "    value: 1", "Bootstrap: docker", "\r",
]  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            form = draw(
                st.sampled_from(["export {}={}", "{}={}", "export {}= {}", "{} ={}", "-x {}={} \\ ", "setenv {} {}"])
            )
            lines.append(form.format(draw(NAMES), draw(VALUES)))
        else:
            lines.append(draw(st.sampled_from(COMMANDS)))
    return draw(st.sampled_from(["\n", "\n", "\n", "\r\n"])).join(lines) + draw(st.sampled_from(["\n", ""]))


def context(platform: str | None) -> CheckContext:
    return CheckContext(platform=find_platform(platform).platform if platform is not None else None)


@settings(max_examples=133, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(scripts(), st.sampled_from([None, *LANGUAGES]), st.sampled_from(PLATFORMS))
def test_any_script_has_findings_with_a_place_and_a_rule(text: str, language: str | None, platform: str | None) -> None:
    try:
        reading = read(text, "a:b.sh", language)
    except InputError:
        return

    found = lint(reading, context(platform))

    assert len(found) <= MOST_FINDINGS
    assert len({(each.code, each.place, each.title) for each in found}) == len(found)
    for each in found:
        assert each.place is not None
        assert each.place.column is not None
        assert each.code in rules()
        assert each.place.file == "a:b.sh"
        assert 1 <= each.place.line <= max(1, len(reading.lines))
        assert each.place.column >= 1
        assert each.evidence
    codec.encode_pretty(reading)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=400) | scripts().map(str.encode), st.sampled_from([None, *LANGUAGES]))
def test_any_bytes_are_linted_or_refused_in_words(raw: bytes, language: str | None) -> None:
    try:
        reading = read(text_of(raw), "a", language)
    except InputError:
        return

    assert all(each.title for each in lint(reading, CheckContext()))


@settings(max_examples=83, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(scripts(), st.sampled_from([None, "shell", "nccl.conf"]))
def test_a_corrected_text_has_fewer_findings_and_no_new_ones(text: str, language: str | None) -> None:
    try:
        reading = read(text, "a", language)
    except InputError:
        return

    def check(tried: str):
        return lint(read(tried, "a", reading.language), CheckContext())

    after = corrected(text, reading, newest(), check)

    before, left = check(text), check(after)
    wrong_before, wrong_left = (
        Counter(each.code for each in found if each.severity != "note" or each.code == "ENV001")
        for found in (before, left)
    )
    assert after.count("\n") == text.count("\n")
    assert after == text or (wrong_left.total(), len(left)) < (wrong_before.total(), len(before))
    assert all(wrong_left[code] <= wrong_before[code] for code in wrong_left)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(text=scripts())
def test_patch_makes_of_the_text_what_was_corrected(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("fix")
    reading = read(text, "a.sh", "shell")
    after = corrected(text, reading, newest(), lambda tried: lint(read(tried, "a.sh", "shell"), CheckContext()))
    diff = difference(text, after, "a.sh")
    (folder / "a.sh").write_bytes(text.encode())

    if diff:
        patch = ["patch", "--binary", "--quiet", "-p0", "-i", "-"]
        subprocess.run(patch, cwd=folder, input=diff.encode(), check=True, timeout=20, capture_output=True)

    assert (folder / "a.sh").read_bytes().decode() == after


@pytest.mark.parametrize(
    "line",
    [
        "export NCCL_DEBUG=INFO\n", "export NCCL_IB_HCA=mlx5_1,mlx5_2\n", "export NCCL_MIN_CHANNELS=8M\n",
        "mpirun -np 8 --bind-to numa -x NCCL_ALGO=Ring ./a\n", "if a; then export NCCL_ALGO=Ring; fi\n",
        "export NCCL_P2P_DISABLE=1 NCCL_NVLS_ENABLE=1\nsrun ./a\n", "-x NCCL_DEBUG= INFO \\ \n",
    ],
)  # fmt: skip
def test_half_a_megabyte_is_linted_in_little_time(line: str) -> None:
    text = line * (2**19 // len(line))
    reading = read(text, "a.sh", "shell")

    check_cost(lambda: lint(reading, context("azure-ndv4")), most_s=2.5)


def test_a_file_of_bytes_that_are_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)

    with pytest.raises(InputError, match="not text"):
        lint_file(str(tmp_path / "core"))


def test_bytes_that_are_no_utf8_reach_neither_json_nor_the_diff(tmp_path: Path) -> None:
    file = tmp_path / "job.sh"
    file.write_bytes(b"# caf\xe9\nexport NCCL_BUFFSIZE=8M\nsrun ./a\n")

    checked, fixed = lint_file(str(file)), fixed_file(str(file))

    assert codec.encode_pretty(checked)
    assert codec.encode_pretty(fixed)
    assert "8388608" in fixed.diff
