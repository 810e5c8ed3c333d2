"""What is said of a run over NCCL before it starts."""

import pytest

from busbw.measure.backends import native_nccl
from busbw.model.request import Request


@pytest.mark.parametrize(
    ("fields", "is_said"),
    [
        ({"suite": "six", "buffers": "registered"}, True),
        ({"collectives": ("all_reduce", "sendrecv"), "buffers": "registered"}, True),
        ({"collectives": ("sendrecv",), "buffers": "registered"}, False),
        ({"collectives": ("all_reduce", "alltoall"), "buffers": "registered"}, False),
        ({"suite": "six"}, False),
    ],
)
def test_registered_buffers_with_sendrecv_among_others_are_spoken_of(fields, is_said):
    said = native_nccl.notes(Request(**fields), None, ())
    assert (said != ()) == is_said
