import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from .browsing import ARGUMENTS


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "no chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()
