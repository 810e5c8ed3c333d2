"""A report in a tab of a real browser, from a file, without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# What a page is given for anything: many times what it takes where a core is free.
LONGEST_S = 120.0
_FINDINGS = """async (within) => {
  const rules = within.rules.length ? { runOnly: { type: "rule", values: within.rules } } : {};
  const where = within.parts.length ? { include: within.parts.map((each) => [each]) } : document;
  const found = await axe.run(where, { resultTypes: ["violations"], ...rules });
  return found.violations.map((each) => [each.id, each.impact, each.nodes.map((node) => node.html.slice(0, 160))]);
}"""


class Tab:
    """A page, and everything that went wrong in it: errors, words on the console, and requests but for its own file."""

    def __init__(self, page: Page, file: Path, place: str) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", self._asked)
        page.goto(f"{file.as_uri()}{place}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(request.url)

    def draw_all(self) -> None:
        """Scroll until every figure that is on the page is drawn."""
        for plot in self.page.locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for()

    def accessibility_faults(self, *within: str) -> list[Any]:
        """Return what axe finds on the page, or within some of its parts: rule, impact, and the elements."""
        return self._axe(within, ())

    def faults_of_colours(self) -> list[Any]:
        """Return what axe finds that is otherwise in the other colours of a page whose rest was looked at."""
        return self._axe((), ("color-contrast", "link-in-text-block"))

    def _axe(self, parts: tuple[str, ...], rules: tuple[str, ...]) -> list[Any]:
        self.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        return list(self.page.evaluate(_FINDINGS, {"parts": parts, "rules": rules}))


@contextmanager
def opened(browser: Browser, file: Path, *, place: str = "", **options: Any) -> Iterator[Tab]:
    """Open a file at a place of it, and close it again."""
    context = browser.new_context(offline=True, **({"viewport": {"width": 1200, "height": 900}} | options))
    context.set_default_timeout(LONGEST_S * 1000)
    try:
        yield Tab(context.new_page(), file, place)
    finally:
        context.close()
