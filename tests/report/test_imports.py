"""Reports and drawings of what other tools wrote: all that they say, nothing that they do not, and nothing hostile."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from playwright.sync_api import Browser

from busbw.base.errors import InputError
from busbw.cli.command import busbw

from .browsing import opened

_HEAD = """# nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824 step: 8(factor) \
warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
"""
_COLUMNS = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
_FOOT = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100.0\n#\n"


def table(*, model: str = "NVIDIA H100 80GB HBM3", cut: bool = False, wrong: int = 0) -> str:
    """Return what all_reduce_perf of eight GPUs prints of three sizes."""
    devices = "".join(
        f"#  Rank  {rank} Group  0 Pid  100{rank} on node-a device  {rank} [{rank:04x}:00:00] {model}\n"
        for rank in range(8)
    )
    rows = "".join(
        f"{size:>12} {size // 4:>12} float sum -1 {time_us:.2f} {size / time_us / 1e3:.2f} "
        f"{1.75 * size / time_us / 1e3:.2f} {wrong} {time_us:.2f} {size / time_us / 1e3:.2f} "
        f"{1.75 * size / time_us / 1e3:.2f} 0\n"
        for size, time_us in ((8, 20.0), (1 << 20, 40.0), (1 << 30, 4000.0))
    )
    return f"{_HEAD}{devices}{_COLUMNS}{rows}{'' if cut else _FOOT}"


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what calls busbw in an empty folder with a folder of runs of its own."""
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)

    def call(*argv: str) -> Result:
        return CliRunner().invoke(busbw, list(argv))

    return call


def page_of(called, text: str, *options: str) -> str:
    Path("job.log").write_text(text)
    folder = f"job-{len(list(Path().glob('job-*')))}"
    called("import", "job.log", "-o", folder)
    done = called("report", folder, *options)
    assert done.exit_code == 0, done.exception
    return Path("report.html").read_text()


def raw_of(page: str) -> dict[str, object]:
    found = re.search(r'id="raw-1">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_an_import_has_a_page_with_its_verdict_curves_tables_and_sources(called):
    page = page_of(called, table(), "--machine", "azure-nd-h100-v5")

    assert "<title>ok: busbw on " in page
    assert "all_reduce 1 GiB: 469.8 GB/s" in page
    assert 'id="import-1-curve-1-time"' in page
    assert 'id="import-1-curve-2-rate"' in page
    assert "8 x NVIDIA H100 80GB HBM3 on node-a" in page
    raw = raw_of(page)
    assert len(raw["readings"]) == 6  # type: ignore[arg-type]
    assert raw["left_out"] == 0


def test_an_import_has_no_ranks_spread_settings_or_command_that_nobody_recorded(called):
    page = page_of(called, table())

    for made_up in (
        'id="ranks"',
        'id="import-1-ranks"',
        "Spread of each size",
        'id="reproduce"',
        'id="import-1-settings"',
    ):
        assert made_up not in page


def test_what_a_table_lacks_is_said(called):
    page = page_of(called, table(cut=True))
    assert "not seen: the table was cut off" in page

    unknown = page_of(called, table(model="Some GPU"), "-o", "report.html")
    assert "cannot tell" in unknown
    assert "busbw report --machine" in unknown


def test_wrong_rows_are_in_the_table_and_not_on_the_curve(called):
    page = page_of(called, table(wrong=5))

    assert "<title>wrong: " in page
    assert page.count('class="plot" id="import-1-curve-') == 2


def test_a_file_of_another_tool_is_reported_without_an_import_being_kept(called, tmp_path: Path):
    Path("job.log").write_text(table())

    assert called("report", "job.log").exit_code == 0
    assert called("plot", "job.log", "-o", "c.svg").exit_code == 0

    assert "busbw on job.log" in Path("report.html").read_text()
    assert "bus bandwidth" in Path("c.svg").read_text()
    assert not (tmp_path / "runs").exists()


def test_two_imports_are_on_one_page_apart(called):
    for name in ("one.log", "two.log"):
        Path(name).write_text(table())

    called("report", "one.log", "two.log")

    page = Path("report.html").read_text()
    assert "<h1>busbw: 2 imports</h1>" in page
    assert '<h2 id="import-2">Import two.log</h2>' in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_an_import_and_another_thing_make_no_drawing_together(called):
    for name in ("one.log", "two.log"):
        Path(name).write_text(table())

    done = called("plot", "one.log", "two.log", "-o", "c.svg")

    assert isinstance(done.exception, InputError)
    assert not Path("c.svg").exists()


def test_a_file_without_results_is_an_error_and_writes_nothing(called):
    Path("empty.txt").write_text("hello\n")

    done = called("report", "empty.txt")

    assert isinstance(done.exception, InputError)
    assert not Path("report.html").exists()


def test_rows_beyond_what_a_page_holds_are_counted(called, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("busbw.api.reports._MOST_READINGS", 4)

    page = page_of(called, table())

    assert "2 more rows are left out here" in page
    assert raw_of(page)["left_out"] == 2


def test_a_hostile_log_injects_nothing_and_every_figure_is_drawn(called, browser: Browser):
    hostile = "<img src=x onerror=window.injected=1></script><script>window.injected=1</script>\x1b[31m"
    page_of(called, table(model=hostile).replace("node-a", "<b>node</b>") + f"{hostile}\n", "--machine", "dgx-h100")

    with opened(browser, Path("report.html").absolute()) as tab:
        tab.draw_all()
        assert tab.faults == []
        assert tab.page.evaluate("window.injected") is None
        assert tab.page.locator("#import-1-curves .plot .scatterlayer path.js-line").count() >= 4
        serious = [fault for fault in tab.accessibility_faults() if fault[1] in ("serious", "critical")]
        assert serious == []
