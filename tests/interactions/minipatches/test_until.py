"""Patches until they are precise: when a run stops, and that nothing else changes."""

import numpy as np
import pytest
from minipatch_cases import Quick, fitted, small_table
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error

from propopt.base.errors import ImpreciseWarning, InterruptedWarning
from propopt.base.resources import Budget
from propopt.interactions import ILOCO, Minipatches, fitting, patch_draws
from propopt.interactions.features import Features
from propopt.interactions.patch_draws import looks
from propopt.interactions.refits import Refits


X, Y = small_table()
LOOKS = [400, 566, 800, 1131, 1600, 2263, 3200, 4525, 6400, 9051, 10_000]


@pytest.fixture(scope="module", autouse=True)
def early_looks():
    """So that few fits are made."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patch_draws, "FIRST_PATCHES", 400)
        yield


def scores(result):
    return result.scores(result.features.all_sets(2), None)


def share(result):
    """By its definition, from the scores of all pairs of a run of so many patches."""
    return np.sqrt(np.mean(scores(result).monte_carlo ** 2)) / np.var(Y)


@pytest.fixture(scope="module")
def requested():
    """Runs of a number of patches that was asked for, by that number."""
    return {n: fitted(Minipatches(n_patches=n), X, Y, Quick()) for n in LOOKS[:4]}


@pytest.fixture(scope="module")
def between(requested):
    """A precision that 800 patches have, and 566 have not."""
    shares = [share(requested[n]) for n in LOOKS[:3]]
    assert shares[2] < min(shares[:2])
    return (shares[2] + min(shares[:2])) / 2


def is_same(result, other):
    assert result.patches.rows.tobytes() == other.patches.rows.tobytes()
    assert (
        np.array(result.predictions).tobytes() == np.array(other.predictions).tobytes()
    )
    assert result.used == other.used
    for name in ("scores", "standard_errors", "monte_carlo"):
        ours, theirs = (getattr(scores(one), name) for one in (result, other))
        np.testing.assert_array_equal(ours, theirs)
    return True


def test_looks_are_at_the_first_and_each_root_two_times_as_many():
    assert list(looks(10_000)) == LOOKS
    assert list(looks(700)) == [400, 566, 700]
    assert list(looks(400)) == [400]
    assert list(looks(300)) == [300]


def test_a_run_stops_at_the_first_look_that_is_precise(requested, between):
    result = fitted(Minipatches(until=between), X, Y, Quick())
    assert is_same(result, requested[800])
    assert (result.stop["why"], result.stop["n_patches"], result.stop["most"]) == (
        *("precise", 800),
        10_000,
    )
    assert result.stop["share"] == pytest.approx(share(requested[800]), rel=1e-12)
    assert result.relative_patch_error == result.stop["share"]


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_the_precision_is_the_one_that_was_asked_for(requested, factor):
    precise = share(requested[800])
    result = fitted(Minipatches(n_patches=800, until=factor * precise), X, Y, Quick())
    assert result.stop["why"] == ("precise" if factor > 1 else "at most")
    assert is_same(result, requested[800])


def test_scores_do_not_depend_on_workers_keeping_or_calls(
    requested, between, monkeypatch
):
    monkeypatch.setattr(fitting, "CHUNKS", Budget(2**25, n_rows=150))
    two = fitted(Minipatches(until=between), X, Y, Quick(), n_jobs=2)
    assert is_same(two, requested[800])
    retained = fitted(Minipatches(until=between, keep=True), X, Y, Quick())
    assert is_same(retained, requested[800])
    assert len(retained.predictors) == 800


def test_where_it_stops_does_not_depend_on_the_sets_that_are_scored(between):
    scheme = Minipatches(until=between)
    for sets in ([(0, 1)], [(2, 5), (3, 4)]):
        result = ILOCO(Quick(), scheme, sets=sets).fit(X, Y).result_
        assert result.n_patches == 800
        assert 0.0 < result.patch_error <= between
        assert np.isnan(result.main.patch_error)


def test_a_folder_goes_on_where_the_run_was_and_stops_at_the_same_place(
    tmp_path, requested, between, monkeypatch
):
    monkeypatch.setattr(fitting, "CHUNKS", Budget(2**25, n_rows=100))
    scheme = Minipatches(until=between, folder=tmp_path / "patches")
    run, calls = fitting.fit_part, []

    def interrupted(*requested):
        calls.append(requested[0].first)
        if requested[0].first >= 566:  # in the second look, or the third
            raise KeyboardInterrupt
        return run(*requested)

    with monkeypatch.context() as patched:
        patched.setattr(fitting, "fit_part", interrupted)
        with pytest.warns(InterruptedWarning, match="566 of at most 10000 patches"):
            half = fitted(scheme, X, Y, Quick())
    assert (half.stop["why"], half.stop["n_patches"]) == ("interrupted", 566)
    assert half.stop["share"] == pytest.approx(share(half), rel=1e-12)
    again = fitted(scheme, X, Y, Quick())
    assert is_same(again, requested[800])
    assert again.stop["why"] == "precise"
    # in a folder of more patches than are needed it stops at the same place
    more = Minipatches(n_patches=1131, folder=tmp_path / "more")
    fitted(more, X, Y, Quick())
    result = fitted(Minipatches(until=between, folder=tmp_path / "more"), X, Y, Quick())
    assert is_same(result, requested[800])


@pytest.mark.slow
def test_it_does_not_stop_where_means_are_of_few_patches():
    scheme = Minipatches(n_features=0.9, until=0.99)  # a pair is absent from 1 of 100
    result = fitted(scheme, X, Y, Quick())
    assert result.stop["n_patches"] in LOOKS[5:-1]
    assert scores(result).counts.min() >= 30
    before = Minipatches(n_features=0.9, n_patches=result.stop["n_patches"] * 5 // 7)
    with pytest.warns(ImpreciseWarning):
        fitted(before, X, Y, Quick())


def test_by_default_it_stops_at_two_thousandths_and_a_number_has_its_meaning(requested):
    assert (Minipatches().precision, Minipatches().most) == (0.002, 10_000)
    assert Minipatches(n_patches=20_000).precision is None
    assert requested[566].stop["why"] == "as requested"
    assert requested[566].stop["share"] is None
    assert np.isnan(scores(requested[566]).patch_error)


def test_the_error_of_a_constant_is_that_of_a_dummy():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    refits = Refits.of(Ridge(), X, Y, sample_weight=weights)
    constant = DummyRegressor().fit(X, Y, weights).predict(X)
    expected = mean_squared_error(Y, constant, sample_weight=weights)
    assert refits.constant_error == pytest.approx(expected, rel=1e-12)
    labels = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 1.0])]
    refits = Refits.of(LogisticRegression(), X, labels, sample_weight=weights)
    p = DummyClassifier().fit(X, labels, weights).predict_proba(X)
    values = p[np.arange(len(Y)), np.unique(labels, return_inverse=True)[1]]
    expected = np.average(1.0 - values, weights=weights)
    assert refits.constant_error == pytest.approx(expected, rel=1e-12)


def test_some_sets_are_all_or_drawn_ones():
    features = Features.of(list("abcdefghijkl"))
    np.testing.assert_array_equal(features.some_sets(2, 66), features.all_sets(2))
    some = features.some_sets(3, 50)
    assert 40 <= len(some) <= 50
    assert (np.diff(some, axis=1) > 0).all()
    assert len({tuple(one) for one in some.tolist()}) == len(some)
    assert set(some.ravel()) == set(range(12))
