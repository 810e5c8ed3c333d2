"""Which algorithm is predicted where NCCL's own model, a map and what was measured disagree."""

from dataclasses import replace

from busbw.api.predictions import PredictRequest, predict
from busbw.facts.platforms import all_platforms

GIB = 2**30
# On four nodes of Azure ND H100 v5 NCCL's own model takes a ring from some GiB on, and NVLSTree was measured.
CALL = PredictRequest(
    platform="azure-nd-h100-v5", collective="all_reduce", nodes=(4,), sizes_bytes=(4 * GIB,), nccl="2.28.9"
)


def test_what_was_measured_goes_before_what_a_map_lets_nccl_take() -> None:
    found = predict(CALL)
    (row,) = found.rows
    assert row.choice is not None
    assert row.expected is not None
    assert (row.choice.chosen.algorithm, row.expected.algorithm, row.expected.kinship) == (
        "ring",
        "nvlstree",
        "in family",
    )
    assert row.chosen_by is not None
    assert row.chosen_by.startswith("as measured on such machines")
    assert any("not measured on such machines: for 4 GiB on 4 nodes ring" in note for note in found.notes)


def test_a_graph_of_the_machine_itself_goes_before_what_others_measured() -> None:
    (row,) = predict(replace(CALL, stated=("ring=16x45/45",))).rows
    assert row.choice is not None
    assert row.expected is not None
    assert row.expected.algorithm == row.choice.chosen.algorithm == "ring"


def test_a_map_takes_no_answer_away() -> None:
    for each in all_platforms(()):
        if not each.gpu.count:
            continue
        asked = replace(CALL, platform=each.id, sizes_bytes=(2**20, GIB))
        for row in predict(asked).rows:
            assert row.expected is not None or "would take" not in (row.cannot or ""), each.id
