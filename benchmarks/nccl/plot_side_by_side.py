"""Draws what side_by_side.py measured: busbw's median over nccl-tests', by size. Needs plotly, Playwright and Chromium.

Run: python benchmarks/nccl/plot_side_by_side.py RESULT.json PICTURE.png
"""

import json
import sys
import tempfile
from pathlib import Path

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
MARKERS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
BROWSER = "/usr/bin/chromium"
WIDTH, HEIGHT = 1000, 480


def figure(rows: list[dict[str, object]]) -> go.Figure:
    """Return the figure: ratio by size, one line a collective, the limits shaded."""
    drawn = go.Figure()
    names = list(dict.fromkeys(row["collective"] for row in rows))
    for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
        mine = [row for row in rows if row["collective"] == name]
        drawn.add_scatter(
            x=[row["size_bytes"] for row in mine],
            y=[row["ratio"] for row in mine],
            name=name,
            mode="lines+markers",
            line={"color": colour},
            marker={"symbol": marker, "size": 7},
        )
    # Below 1 MiB the limit is 0.5 us: as a share of the shortest of these times it is 8 %, of the longest 3 %.
    small = sorted({row["size_bytes"] for row in rows if row["size_bytes"] < 2**20})
    widest = [max(0.5 / row["nccl_tests_us"] for row in rows if row["size_bytes"] == size) for size in small]
    drawn.add_scatter(
        x=[*small, *reversed(small)],
        y=[*(1 + share for share in widest), *(1 - share for share in reversed(widest))],
        fill="toself",
        fillcolor="rgba(0,0,0,0.08)",
        line={"width": 0},
        name="within 0.5 us",
    )
    drawn.add_shape(type="rect", x0=2**20, x1=2**33, y0=0.98, y1=1.02, fillcolor="rgba(0,0,0,0.08)", line_width=0)
    ticks = [2**power for power in range(10, 34, 3)]
    labels = ["1 KiB", "8 KiB", "64 KiB", "512 KiB", "4 MiB", "32 MiB", "256 MiB", "2 GiB"]
    drawn.update_layout(
        template="simple_white",
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 70, "r": 20, "t": 50, "b": 60},
        title="busbw's median over nccl-tests' time, stream mode, four H200 (shaded: 2 % from 1 MiB on)",
        xaxis={"type": "log", "tickvals": ticks, "ticktext": labels, "title": "size"},
        yaxis={"title": "busbw / nccl-tests", "range": [0.82, 1.18]},
    )
    return drawn


def main() -> int:
    """Draw into a PNG."""
    result, picture = map(Path, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "figure.html"
        page_file.write_text(figure(json.loads(result.read_text())).to_html(include_plotlyjs=True))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH + 20, "height": HEIGHT + 20})
            page.goto(page_file.as_uri())
            page.wait_for_timeout(1500)
            page.screenshot(path=str(picture))
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
