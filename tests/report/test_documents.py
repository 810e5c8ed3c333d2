"""What a JSON document of busbw is, told by its fields: each kind by those of its own class, and nothing by less."""

import json
from pathlib import Path

import msgspec
import pytest

from busbw.base.errors import InputError
from busbw.fabric.report import FabricReport
from busbw.model.check.report import CheckReport
from busbw.model.comparison import Bisection, Comparison
from busbw.model.finding import Diagnosis
from busbw.model.imported import Imported
from busbw.model.predict.prediction import HeldTable, Prediction, TimedSchedule
from busbw.model.predict.step import PredictedStep
from busbw.model.recommendation import Recommendation
from busbw.model.run import Run
from busbw.model.scaling import ScalingReport
from busbw.model.train.plan import TrainPlan
from busbw.model.train.proxy import ProxyResult
from busbw.model.train.trace import TrainReadReport
from busbw.store.documents import decoded, document_kind

KINDS = {
    Bisection: "a bisection",
    CheckReport: "busbw check",
    Comparison: "busbw compare",
    Diagnosis: "busbw doctor",
    FabricReport: "busbw fabric",
    HeldTable: "a table held",
    Imported: "an import",
    PredictedStep: "a predicted step",
    Prediction: "busbw predict",
    ProxyResult: "a step that was trained",
    Recommendation: "env recommend",
    Run: "a run",
    ScalingReport: "busbw scaling",
    TimedSchedule: "a timed schedule",
    TrainPlan: "a plan of a training step",
    TrainReadReport: "train read",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_document_of_another_kind_is_named_with_what_reads_it(kind: type[msgspec.Struct]) -> None:
    content = json.dumps(dict.fromkeys(kind.__struct_fields__)).encode()
    wanted = Comparison if kind is ScalingReport else ScalingReport

    with pytest.raises(InputError) as caught:
        decoded(content, wanted, where="file.json", called="this one", hint="wanted")

    found = document_kind(content)
    assert found is not None
    assert KINDS[kind] in found.words
    assert caught.value.cause == f"this is not this one: it is {found.words}"
    assert caught.value.hint == found.reader


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[1", "this is not a plan: Expected `object`, got `array`"),
        (b'{"name": "x"}', "this is not a plan: Object"),
        (b"", "this is not a plan: Input data was truncated"),
        (b"\xff\xfe", "this is not a plan: "),
        (b"[" * 100_000, "this is not a plan: "),
    ],
)
def test_what_is_no_document_is_refused_with_the_reason(content: bytes, said: str) -> None:
    with pytest.raises(InputError) as caught:
        decoded(content, TrainPlan, where="file.json", called="a plan", hint="what writes it")

    assert caught.value.cause.startswith(said)
    assert caught.value.hint == "what writes it"


def test_a_damaged_document_of_the_wanted_kind_says_what_is_damaged() -> None:
    plan = json.loads((Path(__file__).parents[2] / "docs" / "data" / "step-plan.json").read_bytes())
    plan["gpus"] = "many"

    with pytest.raises(InputError, match="not a valid trainplan: Expected `int`") as caught:
        decoded(json.dumps(plan).encode(), TrainPlan, where="plan.json", called="a plan", hint="what writes it")

    assert "gpus" in caught.value.cause
