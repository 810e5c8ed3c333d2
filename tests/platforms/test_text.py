"""What `busbw platform list` and `show` print: complete, aligned, and safe."""

import json
import os
import re

import pytest
from tests.warm import warm_busbw

from busbw.facts.platforms import find_platform, platform_ids
from busbw.model import codec
from busbw.model.platform import Platform, ResolvedPlatform
from busbw.show.text.platform import origins_text, platform_text, platforms_text

from .files import platform_file

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def shown(resolved: ResolvedPlatform, capsys: pytest.CaptureFixture[str]) -> str:
    platform_text(resolved)
    return capsys.readouterr().out


def at_80_columns(*arguments: str) -> list[str]:
    """Return the lines as a terminal of 80 columns gets them."""
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "80", "FORCE_COLOR": "1"}
    done = warm_busbw("platform", *arguments, env=environment)
    assert done.returncode == 0, done.stderr
    return ESCAPES.sub("", done.stdout).splitlines()


def test_a_page_has_a_row_for_each_gpu_with_its_numa_node_cpus_and_nics(capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(find_platform("azure-ndv4"), capsys)
    rows = re.findall(r"^(\d) +([0-9a-f:.]+) +(\d) +([\d-]+) +(\S+)", page, re.MULTILINE)
    assert [row[2] for row in rows] == list("11003322")
    assert rows[0] == ("0", "0001:00:00.0", "1", "24-47", "mlx5_ib0")


@pytest.mark.parametrize("name", platform_ids())
def test_a_page_leaves_out_nothing_that_is_known(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    resolved = find_platform(name)
    page = re.sub(r"\s+", "", shown(resolved, capsys))
    platform = resolved.platform
    expected = [
        *platform.names, *platform.traps, *platform.missing, *resolved.files,
        *(f'{each.name} = "{each.value}"' for each in platform.settings if each.value is not None),
        *(f"{each.name} unset" for each in platform.settings if each.value is None),
        *(each.detail for each in platform.disagreements),
        *(each.reference for each in platform.sources),
        *(gpu.bus_id for gpu in platform.gpus if gpu.bus_id),
        *(nic.bus_id for nic in platform.nics if nic.bus_id),
    ]  # fmt: skip
    assert [each for each in expected if re.sub(r"\s+", "", each) not in page] == []
    assert page.count("measured:") >= sum(each.kind == "measured" for each in platform.published)


def test_what_nobody_has_published_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(find_platform("ours", (platform_file("ours"),)), capsys)
    assert re.search(r"^ +NVLink +not published", page, re.MULTILINE)


def test_each_value_is_shown_with_its_file_its_sources_and_its_day(capsys: pytest.CaptureFixture[str]) -> None:
    resolved = find_platform("azure-ndv4")
    origins_text(resolved)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(resolved.origins)
    assert "numa[0].cpus = 0-23  <- " in next(line for line in lines if line.startswith("numa[0].cpus"))
    assert all(" = " in line and ".toml" in line for line in lines)


def test_each_value_is_one_line_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    text = '[[settings]]\nname = "A\\nB"\nvalue = "1\\n2"\nscope = "nccl"\nnote = """one\ntwo"""\n'
    resolved = find_platform("ours", (platform_file("ours", text),))
    origins_text(resolved)
    assert len(capsys.readouterr().out.splitlines()) == len(resolved.origins)


@pytest.mark.parametrize("name", platform_ids())
def test_every_origin_has_its_value_beside_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    origins_text(find_platform(name))
    assert [line for line in capsys.readouterr().out.splitlines() if " =   <- " in line] == []


def test_a_list_has_one_line_for_each_platform(capsys: pytest.CaptureFixture[str]) -> None:
    platforms_text([find_platform(each).platform for each in platform_ids()])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(platform_ids())


@pytest.mark.parametrize("arguments", [("list",), ("show", "azure-ndv4"), ("show", "aws-p5"), ("show", "gcp-a3-high")])
def test_a_terminal_of_80_columns_is_enough(arguments: tuple[str, ...]) -> None:
    lines = at_80_columns(*arguments)
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.endswith(" ")] == []
    if arguments == ("list",):
        assert len(lines) == len(platform_ids()) + 2


def test_ports_whose_rate_nobody_has_published_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    platforms_text([find_platform("azure-nc-a100-v4").platform])
    assert " 1 port " in capsys.readouterr().out


def test_text_of_a_file_does_not_reach_the_terminal_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    evil = '"\\u001b[2J\\u202e[red]x[/red]"'
    text = (
        f"traps = [{evil}]\n[gpu]\nmodel = {evil}\ncount = 1\n"
        f"[[settings]]\nname = {evil}\nvalue = {evil}\nscope = {evil}\n"
        f"[[launches]]\nmethod = {evil}\n[[disagreements]]\ntopic = {evil}\ndetail = {evil}\n"
    )
    resolved = find_platform("ours", (platform_file("ours", text),))
    platform_text(resolved)
    origins_text(resolved)
    platforms_text([resolved.platform])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    # Brackets are text, not markup.
    assert "[red]x[/red]" in out


def test_json_is_the_resolved_platform_and_the_list_is_platforms() -> None:
    one = warm_busbw("platform", "show", "ndv4", "--json", text=False)
    assert codec.decode(one.stdout, ResolvedPlatform, where="stdout").platform.id == "azure-ndv4"
    every = warm_busbw("platform", "list", "--json", text=False)
    found = [codec.decode(json.dumps(each).encode(), Platform, where="stdout") for each in json.loads(every.stdout)]
    assert tuple(each.id for each in found) == platform_ids()
