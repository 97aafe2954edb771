"""The table of models in the guide: what it says of each is so, and right."""

import numpy as np
import pytest
from model_catalogue import (
    CASES,
    explained,
    is_installed,
    rows_of_page,
    status,
    table_row,
    truth,
)


def present(name):
    if not is_installed(name):
        pytest.skip(f"{CASES[name].needs} is not installed")
    return name


def test_the_page_has_a_line_for_each_model():
    assert list(rows_of_page()) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_line_of_a_model_is_what_it_is_now(name):
    assert rows_of_page()[name] == table_row(present(name))


@pytest.mark.parametrize(
    "output", [None, "probability"], ids=["default", "probability"]
)
@pytest.mark.parametrize("name", CASES)
def test_contributions_are_those_of_all_coalitions(name, output):
    result = explained(present(name), output)
    if status(result) in ("–", "refused"):
        pytest.skip("it has no such output")
    right = truth(name, result)
    size = np.abs(right).max()
    most = 3e-5 if CASES[name].single else 1e-9
    assert np.abs(result.contributions - right).max() <= most * size
    assert result.sampling_excess == 0.0
    for wrong in (1.001 * right, right[:, ::-1], np.zeros(right.shape)):
        assert np.abs(result.contributions - wrong).max() > most * size
