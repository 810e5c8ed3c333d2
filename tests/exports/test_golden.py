"""What each text format looks like, word for word.

After a wanted change: `GOLDEN=write python -m pytest tests/exports`, then read the difference before it is committed.
"""

import os
from pathlib import Path

import pytest

from busbw.show.exports.registry import FORMATS
from busbw.show.exports.rows import export_of_run

from .factories import make_run

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.is_text])
def test_a_run_is_written_as_a_person_has_read_it(name: str):
    written = FORMATS[name].write(export_of_run(make_run(tag='before "x"')))

    path = GOLDEN / f"run.{name}"
    if os.environ.get("GOLDEN") == "write":
        path.write_bytes(written)
    assert written == path.read_bytes()
