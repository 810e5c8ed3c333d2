"""What is found in the texts of the corpus, and nothing else."""

import pytest

from .corpus import Case, cases, found_in, short

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_findings_are_those_of_the_corpus(case: Case):
    assert [short(each) for each in found_in(case)] == case.findings


def test_the_corpus_is_large_and_names_each_case_once():
    names = [case.name for case in CASES]

    assert len(names) >= 150
    assert len(set(names)) == len(names)
