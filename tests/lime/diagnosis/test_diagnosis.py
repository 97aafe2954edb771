"""What all rules share, and the result of a diagnosis: table, text, card.

The contract of results (``tests/results``) has its files, copies and forgeries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lime_cases import explained, grid, product, tabular
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, limits
from propopt.lime.diagnosis.evidence import Gauged
from propopt.lime.diagnosis.rules import LIME_RULES


NAMES = sorted(rule.name for rule in LIME_RULES)
RULES = pytest.mark.parametrize("rule", LIME_RULES, ids=lambda rule: rule.name)


# ---- no number is beyond its threshold without a word on it


def passes(item):
    (rule,) = [rule for rule in LIME_RULES if rule.name == item.rule]
    return item.number < item.threshold if rule.below else item.number > item.threshold


def told(rule, numbers, **settings):
    text = "at {}, {}".format
    checked = Gauged(
        numbers=numbers, stakes=np.ones((1, 1)), sentence=text, remedy=text, **settings
    )
    return list(replace(rule, check={None: checked}.get).findings(None))


@RULES
def test_a_number_beyond_its_threshold_is_found_or_excused(rule):
    sign = -1.0 if rule.below else 1.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        numbers = rule.threshold + rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-9, 2)
        numbers[rng.random(numbers.shape) < 0.2] = np.nan
        excuses = {
            name: rng.random((4, 3)) < 0.6 for name in ("it rains", "it is late")
        }
        beyond = sign * numbers > sign * rule.threshold
        excused = excuses["it rains"] | excuses["it is late"]
        items = told(rule, numbers, excuses=excuses)
        result = [item for item in items if item.remedy]
        assert len(result) == (beyond & ~excused).sum()
        assert all(map(passes, result))
        for item in set(items) - set(result):
            assert not result
            assert passes(item) == (", but it" in item.sentence)
    # an excuse is told where it was decisive
    numbers = np.array([[rule.threshold - sign, rule.threshold + sign]])
    excuses = {"a": np.array([[True, True]]), "b": np.array([[True, False]])}
    (item,) = told(rule, numbers, excuses=excuses)
    assert not item.remedy
    assert item.sentence.endswith(", but a")
    (item,) = told(rule, numbers[:, :1], excuses={"a": excuses["a"][:, :1]})
    assert "but" not in item.sentence


def forest_of(X):
    y = X[:, 0] * X[:, 1] + (X[:, 2] > 0.6)
    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)


def cases():
    X = grid(3)
    forest, narrow = forest_of(X), GaussianLaw.from_data(X, kernel_width=0.4)

    def net(Z):
        return np.tanh(3.0 * Z @ [1.0, -1.0, 0.3] + Z[:, 0] * Z[:, 1])

    yield limits(forest, X[:9], data=X)
    yield limits(forest, X[:9], tabular(X, kernel_width=0.3), data=X)
    yield limits(forest, X[:4], GaussianLaw.from_data(X), data=X)
    yield limits(net, X[:4], data=X, n_samples=500)
    yield limits(net, X[:2], narrow, data=X, n_samples=500)
    yield limits(forest, X[:2], GlimeLaw(tabular(X)), data=X)


def test_no_diagnosis_contradicts_its_thresholds():
    n_excused = 0
    for lime in cases():
        diagnosis = lime.diagnose()
        rules = [item.rule for item in diagnosis.quiet]
        found = {item.rule for item in diagnosis.told}
        assert sorted({*rules, *found}) == NAMES
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
    cautions = {"edge proximity", "out of range"}
    cautions |= {name for name in weight if name.startswith(("package", "sampling"))}
    assert min(weight[name] for name in misread) > max(weight[n] for n in cautions)


def test_an_estimate_takes_few_calls_and_says_so():
    X = grid(3, -1.0, 1.0)
    law = tabular(X, n_bins=5)
    f = po.wrap(lambda Z: np.exp(0.1 * Z[:, 0] * Z[:, 1]) + Z[:, 2])
    rows = X[:20].copy()
    rows[0] = [0.9, law.columns[1].edges[-1] + 1e-3, 0.0]
    lime = limits(f, rows, law, data=X, n_samples=500)
    before = f.calls.rows
    diagnosis = lime.diagnose()
    # common draws, and some for places beyond edges and in other bins
    assert f.calls.rows - before < 8192 + 20 * 500 + 20 * 2 * 500
    for rule in ("cancellation by binning", "edge proximity"):
        assert "an estimated" in diagnosis.of(rule)[0].sentence


# ---- rows of their own


@pytest.fixture(scope="module")
def rows():
    return next(cases())


def facts(diagnosis, row):
    return {
        (item.rule, item.column): (item.number, item.severity, item.sentence)
        for item in diagnosis.told
        if item.row == row
    }


def test_a_row_alone_is_diagnosed_as_among_others(rows):
    whole, alone = rows.diagnose(), rows.diagnose(rows=[5])
    own, same = facts(whole.of_row(5), 5), facts(alone, 0)
    assert own == facts(whole, 5) != {}
    assert own.keys() == same.keys()
    for key, (number, severity, _) in own.items():
        assert same[key][:2] == pytest.approx((number, severity), rel=1e-6)
    assert list(alone.to_frame().columns) == list(whole.to_frame().columns)
    assert set(alone.to_frame()["row"]) <= {5, None}
    # rules are told once each
    here = {item.rule: item.sentence for item in whole.of_row(5).quiet}
    told = {item.rule for item in whole.of_row(5).told}
    assert sorted([*told, *(item.rule for item in whole.of_row(5).quiet)]) == NAMES
    assert {item.row for item in whole.of_row(5).told} <= {5, None}
    elsewhere = {item.rule for item in whole.told} - told
    assert elsewhere
    assert all(here[rule] == "nothing found at this row" for rule in elsewhere)
    for n in range(5):  # where a rule found something once
        pair = rows.diagnose(rows=[5, n])
        quiet = {item.rule: item.threshold for item in pair.of_row(5).quiet}
        for rule in {item.rule for item in pair.told} & quiet.keys():
            assert quiet[rule] == pair.of(rule)[0].threshold
    for ask in (lambda: rows.diagnose(rows=[99]), lambda: whole.of_row(99)):
        with pytest.raises(InvalidInput, match="no row 99"):
            ask()


# ---- the result


@pytest.fixture(scope="module")
def lime():
    X = grid(2)
    law = tabular(X, kernel_width=0.5)
    return explained(product(X), [0.9, 0.1], X, law, n_samples=500)


@pytest.fixture(scope="module")
def diagnosis(lime):
    return lime.diagnose()


def test_the_table_has_what_was_found_and_what_was_not(diagnosis):
    frame = diagnosis.to_frame()
    assert frame["found"].sum() == len(diagnosis.findings)
    assert len(frame) == len(diagnosis.told) + len(diagnosis.quiet)
    kinds = {"finding": diagnosis.findings, "note": diagnosis.notes}
    for kind, items in kinds.items():
        assert (frame["kind"] == kind).sum() == len(items) > 0
    assert all(item.severity >= 0.25 for item in diagnosis.findings)
    assert all(item.severity < 0.25 for item in diagnosis.notes)
    assert set(diagnosis.rules) == set(frame.loc[frame["found"], "rule"])
    assert (frame.loc[frame["found"], "remedy"] != "").all()
    assert frame.loc[frame["kind"] == "quiet", "severity"].isna().all()


def test_text_and_card_say_first_what_misleads_most(diagnosis):
    worst, text, card = diagnosis.findings[0], str(diagnosis), diagnosis.card()
    assert card.title.startswith(
        f"What misleads most: {worst.rule}, of the coefficient of"
    )
    assert text.startswith(card.title)
    assert text == card.text()
    assert worst.sentence[:40] in text
    whole, short = diagnosis._repr_html_(), repr(diagnosis)
    assert all(rule in whole and rule in short for rule in diagnosis.rules)
    assert max(len(line) for line in f"{text}\n{short}".split("\n")) < 120
    nothing = replace(diagnosis, findings=(), notes=())
    assert nothing.card().title.startswith("Nothing was found that misleads")
    assert "None" not in nothing.card().html()
    # rules that found nothing share a line, and are told in full by the card
    *_, notes, others = short.split("\n")
    assert others == f"- {len(diagnosis.quiet)} other rules found nothing"
    assert all(item.rule in notes for item in diagnosis.notes)
    for item in (*diagnosis.notes, *diagnosis.quiet):
        assert item.rule in whole or np.isnan(item.number)
    for item in diagnosis.quiet:
        assert item.sentence.split(":")[0] in whole or np.isnan(item.number)
    assert whole.count("nothing found; ") > 5
    assert "nothing found; " not in short
    assert "<details" in whole
