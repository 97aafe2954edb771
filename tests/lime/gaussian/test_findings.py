"""What is delicate about rows: each rule on both sides of its limit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw


def kinds(law, X, n_samples=10_000_000):
    found = po.lime.gaussian_findings(law, X, n_samples)
    return {(one.kind, one.row, one.feature) for one in found}


def one_column(width=1.0):
    return GaussianLaw.of([0.0], 1.0, width)


def test_a_row_in_the_middle_of_everything_has_none():
    assert kinds(one_column(), [[1.0]]) == set()


@pytest.mark.parametrize(
    ("kind", "there", "not_there", "width"),
    [
        ("far", 3.01, 2.99, 1.0),
        ("edge", 0.6745 + 0.009, 0.6745 + 0.011, 1.0),
        ("edge", 0.6745 - 0.009, 0.6745 - 0.011, 3.0),
        ("critical width", 0.43198, 0.1, 0.53 * 1.09),
        ("critical width", 0.43198, 0.1, 0.53 * 0.92),
        ("opposite sign", -0.5, 0.5, 1.0),
    ],
)
def test_a_rule_of_a_column(kind, there, not_there, width):
    law = one_column(width)
    assert (kind, 0, "x0") in kinds(law, [[there]])
    assert (kind, 0, "x0") not in kinds(law, [[not_there]])


def test_nothing_outside_the_bin_is_counted_in_samples():
    law = GaussianLaw.of([0.0], 1.0, 0.3)
    outside = po.lime.gains(law, [[0.3]]).complement[0, 0]
    share = np.exp(po.lime.gains(law, [[0.3]]).log_weight[0])
    enough = int(30.0 / (outside * share)) + 1
    assert ("never outside", 0, "x0") not in kinds(law, [[0.3]], enough)
    (found,) = po.lime.gaussian_findings(law, [[0.3]], enough - 1)
    assert found.kind == "never outside"
    assert found.value == pytest.approx(30.0, rel=1e-2)
    # GLIME's samples all count, and too few of them are outside
    assert ("never outside", 0, "x0") in kinds(GlimeLaw(law), [[0.3]], 30)
    enough = int(30.0 / outside) + 1
    assert kinds(GlimeLaw(law), [[0.3]], enough) == set()
    narrow = one_column(0.02)
    assert ("never outside", 0, "x0") in kinds(narrow, [[0.3]], 10**12)


def test_few_effective_samples_are_of_the_row():
    law = GaussianLaw.of(np.zeros(10), 1.0, 0.5)
    x = np.full((1, 10), 1.0)
    found = po.lime.gaussian_findings(law, x, 10_000)
    (few,) = [one for one in found if one.kind == "few samples"]
    assert few.feature is None
    assert few.limit == 100.0
    share = np.exp(2.0 * po.lime.gains(law, x).log_weight[0])
    share /= np.exp(po.lime.gains(law.with_width(0.5 / np.sqrt(2.0)), x).log_weight[0])
    assert few.value == pytest.approx(10_000 * share, rel=1e-10)
    glime = po.lime.gaussian_findings(GlimeLaw(law), x, 10_000)
    assert all(one.kind != "few samples" for one in glime)


def test_findings_are_named_and_say_what_they_mean():
    X = pd.DataFrame({"a": [1.0, 4.0], "b": [1.0, -0.5]}, index=["r", "s"])
    law = GaussianLaw.of([0.0, 0.0], 1.0, 1.0)
    found = po.lime.gaussian_findings(law, X, 10**9)
    assert [(one.kind, one.row, one.feature) for one in found] == [
        ("far", "s", "a"),
        ("opposite sign", "s", "b"),
    ]
    assert found[0].sentence == (
        "the value is 4 standard deviations from the mean of the samples"
    )
    assert found[0].limit == 3.0


def test_columns_that_are_no_numbers_and_constants_have_none(rng):
    X = np.column_stack([rng.normal(size=60), np.ones(60), rng.integers(0, 2, 60)])
    law = GaussianLaw.from_data(X, categorical=[2])
    x = np.array([[1.1, 1.0, 0.0]])
    assert {one.feature for one in po.lime.gaussian_findings(law, x)} <= {"x0", None}


def test_what_is_no_number_of_samples_is_refused():
    with pytest.raises(InvalidInput, match="n_samples"):
        po.lime.gaussian_findings(one_column(), [[0.0]], 0)
