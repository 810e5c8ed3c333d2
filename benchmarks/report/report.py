"""What reports of many runs cost: to write, to open, to use.

    python benchmarks/report/report.py RUN_JSON [NUMBER...]

Takes one real run.json, makes NUMBER runs of it (1, 20 and 200 unless said otherwise) whose times differ, and writes a
report of each number. Printed are the size of the file; the processor time to write it as a multiple of that for one
run; and of the page's own thread in headless Chromium, in seconds of processor time, which other processes do not
change: from the start of loading until the first figure stands, until all in sight stand, and what opening a run
takes until its first curves stand.
"""

import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import structs
from playwright.sync_api import Browser, sync_playwright

from busbw.model import codec
from busbw.model.run import Run
from busbw.show.page.html import report_html
from busbw.show.page.pictures import ReportSubject, labels_of

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
FIGURES = "performance.getEntriesByName('figure').map((entry) => entry.startTime)"


def varied(run: Run, number: int) -> Run:
    """Return the run with other times, as another launch would have."""
    drawn = random.Random(number)  # noqa: S311 - noise, no secret
    items = []
    for item in run.measurements:
        share = drawn.lognormvariate(0, 0.05)
        items.append(
            structs.replace(
                item,
                median_s=item.median_s * share,
                low_s=item.low_s * share,
                high_s=item.high_s * share,
                busbw_Bps=item.busbw_Bps / share,
                algbw_Bps=item.algbw_Bps / share,
            )
        )
    plan = structs.replace(run.plan, run_id=f"{run.plan.run_id}-{number}", tag=f"run {number}")
    return structs.replace(run, plan=plan, measurements=tuple(items))


def main() -> None:
    run = codec.decode(Path(sys.argv[1]).read_bytes(), Run, where=sys.argv[1])
    numbers = [int(text) for text in sys.argv[2:]] or [1, 20, 200]
    print(f"{len(run.measurements)} points a run, {run.plan.placement.ranks} ranks")
    print("runs  size (MB)  write (x one)  first figure (s)  figures in sight (s)  open a run (s)")
    report_html(tuple(subjects(run, 1)))  # Plotly is compressed once.
    alone_s = None
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for number in numbers:
            started = time.process_time()
            html = report_html(tuple(subjects(run, number)))
            took_s = time.process_time() - started
            alone_s = alone_s or took_s
            file = Path(folder, f"{number}.html")
            file.write_text(html, encoding="utf-8")
            first_s, sight_s, opening_s = used(browser, file, several=number > 1)
            print(
                f"{number:4}  {len(html) / 1e6:9.2f}  {took_s / alone_s:13.1f}  {first_s:16.2f}  {sight_s:20.2f}  "
                f"{'n/a' if opening_s is None else f'{opening_s:.2f}':>14}"
            )
        browser.close()


def subjects(run: Run, number: int) -> Iterator[ReportSubject]:
    runs = tuple(varied(run, each) for each in range(number))
    for each, label in zip(runs, labels_of(runs), strict=True):
        yield ReportSubject(run=each, label=label)


def used(browser: Browser, file: Path, *, several: bool) -> tuple[float, float, float | None]:
    """Return seconds of the page's thread until the first figure, until those in sight, and for opening a run."""
    page = browser.new_context(offline=True, viewport={"width": 1200, "height": 900}).new_page()
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})

    def thread_s() -> float:
        found = {each["name"]: each["value"] for each in client.send("Performance.getMetrics")["metrics"]}
        return float(found["TaskDuration"])

    page.goto(file.as_uri())
    page.locator(".plot").first.scroll_into_view_if_needed()
    page.wait_for_function(f"() => {FIGURES}.length > 0")
    first_s = thread_s()
    page.wait_for_timeout(3000)
    sight_s = thread_s()
    if not several:
        return first_s, sight_s, None
    drawn = page.evaluate(f"{FIGURES}.length")
    page.evaluate("location.hash = 'run-2-curves'")
    page.wait_for_function(f"() => {FIGURES}.length > {drawn}")
    page.wait_for_timeout(1000)
    return first_s, sight_s, thread_s() - sight_s


if __name__ == "__main__":
    main()
