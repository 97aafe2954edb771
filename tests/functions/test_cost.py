"""What work costs is known before it begins, and said where it is long."""

import itertools
import re

import numpy as np
import pytest

import propopt as po
from propopt.functions import cost, jumps
from propopt.functions.cost import Cost, cost_of
from propopt.lime import text_limits
from propopt.tables.frames import Labels


X = np.random.default_rng(0).normal(size=(40, 4))
CALM = [(0.02, 1e-5), (2e-3, 1e-4), (1e-4, 2e-6), (0.0, 1e-3), (1e-2, 0.0)]
SLOW = [(0.09, 1e-3), (0.5, 1e-4), (2.0, 1e-3)]


class Clock:
    """A clock that a model turns on, per call and row, and by ``others`` in turn."""

    def __init__(self, per_call=0.0, per_row=0.0, first=0.0, others=(1.0,)):
        self.now, self.per_call, self.per_row = 0.0, per_call, per_row
        self.first, self.others = first, itertools.cycle(others)
        self.sizes = []

    def perf_counter(self):
        return self.now

    def took(self, n_rows):
        seconds = self.per_call + self.per_row * n_rows
        self.now += seconds * next(self.others) + (0 if self.sizes else self.first)
        self.sizes.append(n_rows)

    def model(self, table):
        self.took(len(table))
        return np.round(3 * table[:, 0]) + table[:, 1]


def measured(monkeypatch, clock, evaluations, calls=1):
    monkeypatch.setattr(cost, "time", clock)
    function = po.wrap(clock.model)
    result = cost_of(function, X, Labels(), evaluations, calls)
    assert function.calls.rows == 0
    assert function.calls.trials == sum(clock.sizes)
    return result


@pytest.mark.parametrize("first", [0.0, 60.0])
@pytest.mark.parametrize("calls", [1, 50])
@pytest.mark.parametrize(
    ("per_call", "per_row", "others"),
    [
        *((*cost, (1.0,)) for cost in [*CALM, *SLOW]),
        *((*cost, (5.0, 1.0)) for cost in CALM),
        *((*cost, (1.0, 3.0, 8.0)) for cost in CALM),
    ],
)
def test_a_call_costs_its_overhead_and_its_rows(
    monkeypatch, per_call, per_row, calls, first, others
):
    clock = Clock(per_call, per_row, first, others)
    result = measured(monkeypatch, clock, 10**7, calls)
    n_calls = max(calls, -(-(10**7) // 2**14))
    assert result.calls == n_calls
    assert result.seconds == pytest.approx(n_calls * per_call + 1e7 * per_row, rel=1e-9)


def test_slow_rows_and_short_work_are_not_measured_for_long(monkeypatch):
    clock = Clock(per_row=4.0)
    result = measured(monkeypatch, clock, 1000)
    assert result.seconds == pytest.approx(4000.0)
    assert result.in_words() == "1,000 evaluations, about 67 min at the measured speed"
    assert set(clock.sizes) == {3}
    clock = Clock(per_call=0.01)
    result = measured(monkeypatch, clock, 200)
    assert max(clock.sizes) == 3
    assert result.seconds < 1.0
    clock = Clock(per_call=0.5, per_row=0.1)  # calls are no longer than those of work
    result = measured(monkeypatch, clock, 2000, calls=1000)
    assert set(clock.sizes) == {2}
    assert result.seconds == pytest.approx(1000 * 0.5 + 2000 * 0.1)
    assert measured(monkeypatch, Clock(), 10**6).seconds == 0.0  # a clock stands still


# what is announced of real work, beside what it takes by the same clock

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0}


def announced(err, after=" at the measured speed"):
    """Seconds, where they are said."""
    size, unit = re.search(rf"about ([\d.]+) (s|min|h|days){after}", err).groups()
    return float(size) * UNITS[unit]


MORE = np.random.default_rng(1).normal(size=(400, 4))
DOCUMENTS = [" ".join(f"w{n + k}" for k in range(30)) for n in range(20)]
WORK = {
    "limits": lambda f: po.lime.limits(f, X, data=X, n_samples=8000).coefficients,
    "texts": lambda f: text_limits(f, DOCUMENTS, n_samples=4000),
    # of the reference: the rows to explain have a bar
    "draws": lambda f: po.Explainer(f, MORE, law="data", kind="slopes").fit(),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize(("per_call", "per_row"), [(3.0, 1e-4), (1e-2, 2e-3)])
def test_waiting_is_announced_within_a_factor_of_three(
    monkeypatch, work, per_call, per_row
):
    def of_texts(given):
        clock.took(len(given))
        return [float("w3" in text) * len(text) for text in given]

    clock = Clock(per_call, per_row, first=30.0)
    monkeypatch.setattr(cost, "time", clock)
    told = []
    monkeypatch.setattr(cost, "_say", lambda line: told.append((clock.now, line)))
    WORK[work](of_texts if work == "texts" else po.wrap(clock.model))
    begun, line = told[0]
    assert 1 / 3 < announced(line) / (clock.now - begun) < 3


@pytest.mark.parametrize("kind", ["smooth", "jumps"])
def test_the_wait_for_a_jump_test_is_announced_for_both_ends(monkeypatch, kind):
    clock = Clock(per_call=4.0, per_row=0.05, first=30.0)
    monkeypatch.setattr(cost, "time", clock)
    monkeypatch.setattr(jumps, "time", clock)

    def model(table):
        clock.took(len(table))
        return (np.sin if kind == "smooth" else np.round)(3 * table[:, 0])

    told = []
    monkeypatch.setattr(cost, "_say", lambda line: told.append((clock.now, line)))
    assert po.wrap(model).jumps_at(X).kind == kind
    ((begun, line),) = told
    said = announced(line) if kind == "smooth" else announced(line, r"\): 1,152")
    assert 1 / 3 < said / (clock.now - begun) < 3


@pytest.fixture
def told(monkeypatch):
    """What is said of waits."""
    lines = []
    monkeypatch.setattr(cost, "_say", lines.append)
    return lines


def asks(function):
    for _ in range(10):
        function.value_at(np.zeros((5000, 4)))


def test_a_wait_that_grows_is_said_again(monkeypatch, told):
    clock = Clock(per_row=1e-3)
    function = po.wrap(clock.model)
    monkeypatch.setattr(cost, "time", clock)
    with cost_of(function, X, Labels(), 100_000).announced("work", function.calls):
        asks(function)
        clock.per_row = 6e-3  # somebody else takes the machine
        asks(function)
    # 50,000 rows took 50 s, and 5,000 take 30 s now: for 3 of these all seem to take
    # (50 + 3 · 30) s · 100 / 65 = 215 s, more than twice 100 s, and 350 s in the end
    assert told == [
        "work: 100,000 evaluations, about 100 s at the measured speed",
        "work: 65,000 of 100,000 evaluations took 2 min, about 75 s are left",
    ]


def test_work_that_seemed_short_is_said_when_it_is_not(monkeypatch, told):
    clock = Clock(per_row=1e-5)
    function = po.wrap(clock.model)
    monkeypatch.setattr(cost, "time", clock)
    expected = ["work: 5,000 of 100,000 evaluations took 5.0 s, about 95 s are left"]
    for slower, wanted, lines in (
        (1.0, None, []),
        (100.0, None, expected),
        (1.0, False, expected),
    ):
        clock.per_row *= slower
        with Cost(100_000, 1e5).announced("work", function.calls, wanted):
            asks(function)
            asks(function)
        assert told == lines


def test_trials_are_no_part_of_the_work():
    function = po.wrap(lambda P: P[:, 0])
    heard = []
    with function.calls.notifying(heard.append):
        function.value_at(X)
        with function.calls.as_trial():
            function.value_at(X)
        function.value_at(X)
    function.value_at(X)
    assert heard == [0, 40]
