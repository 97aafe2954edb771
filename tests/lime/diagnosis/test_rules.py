"""What all rules share: no number is beyond its threshold without a word on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lime_cases import explained, grid, linear, tabular
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.lime.diagnosis.evidence import Gauged, LimeFinding
from propopt.lime.diagnosis.rules import LIME_RULES


RULES = pytest.mark.parametrize("rule", LIME_RULES, ids=lambda rule: rule.name)


def passes(item: LimeFinding) -> bool:
    (rule,) = [rule for rule in LIME_RULES if rule.name == item.rule]
    return item.number < item.threshold if rule.below else item.number > item.threshold


def told(rule, numbers, **settings):
    checked = Gauged(
        numbers=numbers,
        stakes=np.ones((1, 1)),
        sentence="at {}, {}".format,
        remedy="at {}, {}".format,
        **settings,
    )
    return list(replace(rule, check={None: checked}.get).findings(None))


@RULES
@pytest.mark.parametrize("seed", range(5))
def test_a_number_beyond_its_threshold_is_found_or_excused(rule, seed):
    rng = np.random.default_rng(seed)
    numbers = rule.threshold + rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-9, 2)
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    excuses = {
        "it rains": rng.random(numbers.shape) < 0.6,
        "it is late": rng.random(numbers.shape) < 0.6,
    }
    sign = -1.0 if rule.below else 1.0
    beyond = sign * numbers > sign * rule.threshold
    excused = excuses["it rains"] | excuses["it is late"]
    items = told(rule, numbers, excuses=excuses)
    result = [item for item in items if item.remedy]
    assert len(result) == (beyond & ~excused).sum()
    assert all(map(passes, result))
    for item in set(items) - set(result):
        assert not result
        assert passes(item) == (", but it" in item.sentence)


@RULES
def test_an_excuse_is_told_where_it_was_decisive(rule):
    step = -1.0 if rule.below else 1.0
    numbers = np.array([[rule.threshold - step, rule.threshold + step]])
    excuses = {"a": np.array([[True, True]]), "b": np.array([[True, False]])}
    (item,) = told(rule, numbers, excuses=excuses)
    assert not item.remedy
    assert item.sentence.endswith(", but a")
    (item,) = told(rule, numbers[:, :1], excuses={"a": excuses["a"][:, :1]})
    assert "but" not in item.sentence


def cases():
    X = grid(3)
    y = X[:, 0] * X[:, 1] + (X[:, 2] > 0.6)
    forest = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)

    def net(Z: np.ndarray) -> np.ndarray:
        return np.tanh(3.0 * Z @ [1.0, -1.0, 0.3] + Z[:, 0] * Z[:, 1])

    yield po.lime.limits(forest, X[:9], data=X)
    yield po.lime.limits(forest, X[:9], tabular(X, kernel_width=0.3), data=X)
    yield po.lime.limits(forest, X[:4], po.lime.GaussianLaw.from_data(X), data=X)
    yield po.lime.limits(net, X[:4], data=X, n_samples=500)
    narrow = po.lime.GaussianLaw.from_data(X, kernel_width=0.4)
    yield po.lime.limits(net, X[:2], narrow, data=X, n_samples=500)
    yield po.lime.limits(forest, X[:2], po.lime.GlimeLaw(tabular(X)), data=X)


def test_no_diagnosis_contradicts_its_thresholds():
    n_excused = 0
    for lime in cases():
        diagnosis = lime.diagnose()
        rules = [item.rule for item in diagnosis.quiet]
        told = {item.rule for item in diagnosis.told}
        assert sorted({*rules, *told}) == sorted(r.name for r in LIME_RULES)
        assert len(rules) == len(set(rules))
        for item in diagnosis.quiet:
            assert passes(item) == (", but" in item.sentence)
            n_excused += passes(item)
        for item in diagnosis.told:
            assert passes(item) or item.rule == "bandwidth fragility"
    assert n_excused > 0


def test_misreadings_weigh_more_than_cautions():
    weight = {rule.name: rule.weight for rule in LIME_RULES}
    misread = {
        "alignment artifact",
        "bandwidth fragility",
        "cancellation by binning",
        "noise",
        "low fidelity: r2",
        "low fidelity: local gap",
        "non-local weights",
    }
    cautions = {
        "edge proximity",
        "out of range",
        "sampling mismatch: bin mean",
        "sampling mismatch: correlation",
        "sampling mismatch: off the data",
        *(name for name in weight if name.startswith("package")),
    }
    assert min(weight[name] for name in misread) > max(weight[n] for n in cautions)


def test_cancellation_comes_before_an_edge_that_is_near():
    X = grid(2, -10.0, 10.0)
    law = tabular(X, n_bins=5)
    edge = law.columns[1].edges[-1]
    five = explained(linear([5.0, 4.0], X), [0.5, edge + 0.05], X, law)
    rules = [item.rule for item in five.diagnose().told]
    assert rules.index("cancellation by binning") < rules.index("edge proximity")


# ---- rows of their own


@pytest.fixture(scope="module")
def lime():
    return next(cases())


def facts(diagnosis, row):
    return {
        (item.rule, item.column): (item.number, item.severity, item.sentence)
        for item in diagnosis.told
        if item.row == row
    }


def test_a_row_alone_is_diagnosed_as_among_others(lime):
    whole, alone = lime.diagnose(), lime.diagnose(rows=[5])
    assert facts(whole, 5)
    own, same = facts(whole.of_row(5), 5), facts(alone, 0)
    assert own == facts(whole, 5)
    assert own.keys() == same.keys()
    for key, (number, severity, _) in own.items():
        assert same[key][:2] == pytest.approx((number, severity), rel=1e-6)
    assert list(alone.to_frame().columns) == list(whole.to_frame().columns)
    assert set(alone.to_frame()["row"]) <= {5, None}


def test_of_a_row_rules_are_told_once_each(lime):
    whole = lime.diagnose()
    n = 5
    own = whole.of_row(n)
    quiet = [item.rule for item in own.quiet]
    told = {item.rule for item in own.told}
    assert sorted([*told, *quiet]) == sorted(rule.name for rule in LIME_RULES)
    assert {item.row for item in own.told} <= {n, None}
    elsewhere = {item.rule for item in whole.told} - told
    assert elsewhere
    here = {item.rule: item.sentence for item in own.quiet}
    assert all(here[rule] == "nothing found at this row" for rule in elsewhere)


def test_rows_that_are_not_there_are_refused(lime):
    with pytest.raises(InvalidInput, match="no row 99"):
        lime.diagnose(rows=[99])
    with pytest.raises(InvalidInput, match="no row 99"):
        lime.diagnose().of_row(99)
    with pytest.raises(InvalidInput, match="rows: expected"):
        lime.diagnose(rows=[])


def test_an_explanation_of_some_rows_is_that_of_all(lime):
    some = lime.of_rows([3, 1])
    assert some.labels.points == (3, 1)
    np.testing.assert_array_equal(some.coefficients, lime.coefficients[[3, 1]])
    np.testing.assert_allclose(some.noise(), lime.noise()[[3, 1]], rtol=1e-10)
    assert some.as_list(1) == lime.as_list(1)
    own = some.subject.profiles(some.points)[0]
    assert own == pytest.approx(lime.subject.profiles(lime.points)[0][[3, 1]])


def test_an_estimate_takes_few_calls_and_says_so():
    X = grid(3, -1.0, 1.0)
    law = tabular(X, n_bins=5)
    f = po.wrap(lambda Z: np.exp(0.1 * Z[:, 0] * Z[:, 1]) + Z[:, 2])
    rows = X[:20].copy()
    rows[0] = [0.9, law.columns[1].edges[-1] + 1e-3, 0.0]
    lime = po.lime.limits(f, rows, law, data=X, n_samples=500)
    before = f.calls.rows
    diagnosis = lime.diagnose()
    # common draws, and some for places beyond edges and in other bins
    assert f.calls.rows - before < 8192 + 20 * 500 + 20 * 2 * 500
    for rule in ("cancellation by binning", "edge proximity"):
        assert "an estimated" in diagnosis.of(rule)[0].sentence
