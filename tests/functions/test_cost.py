"""What work costs is known before it begins, and said where it is long."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.functions import cost
from propopt.functions.cost import Cost, cost_of
from propopt.tables.names import Labels


X = np.random.default_rng(0).normal(size=(5, 2))


class Clock:
    """A clock that a model turns on by so many seconds per call and per row."""

    def __init__(self, per_call, per_row):
        self.now, self.per_call, self.per_row = 0.0, per_call, per_row
        self.sizes = []

    def perf_counter(self):
        return self.now

    def model(self, table):
        self.sizes.append(len(table))
        self.now += self.per_call + self.per_row * len(table)
        return table[:, 0]


def measured(monkeypatch, evaluations, per_call=0.0, per_row=0.0):
    clock = Clock(per_call, per_row)
    monkeypatch.setattr(cost, "time", clock)
    function = po.wrap(clock.model)
    found = cost_of(function, X, Labels(), evaluations)
    assert function.calls.rows == function.calls.batches == 0
    assert function.calls.trials == sum(clock.sizes)
    return found, clock.sizes


def test_the_speed_of_a_slow_model_is_that_of_a_few_rows(monkeypatch):
    found, sizes = measured(monkeypatch, 1000, per_row=0.5)
    assert found.seconds == pytest.approx(500.0)
    assert sizes == [3, 3, 3, 3]  # two of them see whether it answers alike
    assert found.in_words() == "1,000 evaluations, about 8 min at the measured speed"


def test_the_speed_of_a_fast_model_is_that_of_a_batch(monkeypatch):
    found, sizes = measured(monkeypatch, 10**6, per_call=0.01, per_row=1e-5)
    assert sizes[-1] == 256
    assert found.seconds == pytest.approx(1e6 * (0.01 / 256 + 1e-5))


def test_short_work_is_not_measured_any_further(monkeypatch):
    found, sizes = measured(monkeypatch, 100, per_call=0.01)
    assert max(sizes) == 3
    assert found.seconds < 2.0


def test_a_clock_that_stands_still_does_no_harm(monkeypatch):
    found, _ = measured(monkeypatch, 10**6)
    assert 0.0 < found.seconds < 1.0


@pytest.mark.parametrize(
    ("seconds", "wanted", "said"),
    [
        (30.0, None, True),
        (1.0, None, False),
        (30.0, False, False),
        (1.0, True, True),
    ],
)
def test_long_work_is_announced_on_standard_error(seconds, wanted, said, capsys):
    Cost(1000, 1000 / seconds).announce("draws", wanted)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("draws: 1,000 evaluations, about" in err) == said


def test_the_cost_of_sampled_slopes_is_exact():
    function = po.wrap(lambda P: np.round(P[:, 0]))
    mean = po.smoothed(function, None, 100, law="data", data=X)
    found = cost_of(function, X, Labels(), mean.evaluations(X))
    assert found.evaluations == mean.evaluations(X) == 100 * 5
    mean.gradient(X)
    assert function.calls.rows == found.evaluations
