"""The script in docs/launch.md is the one that `busbw launch` prints."""

import re
from pathlib import Path

from busbw.api.launches import launch_line
from busbw.model.launch import LaunchRequest
from busbw.show.text.recommendation import launch_script

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "launch.md").read_text(encoding="utf-8")
SCRIPT = re.compile(r"^```text\n(#!/bin/bash\n.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = "/runs/1"


def test_the_script_of_the_page_is_the_one_that_is_printed() -> None:
    shown = SCRIPT.findall(PAGE)
    assert len(shown) == 1
    asked = LaunchRequest(program=("all_reduce_perf", "-b", "8", "-e", "8G", "-f", "2"), platform="azure-nd-h100-v5")

    assert shown == [launch_script(launch_line(asked, FOLDER), FOLDER, with_files=True)]
