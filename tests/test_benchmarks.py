"""Benchmarks: peers do the work they are timed for; README says what was measured."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from tests.support.studies import study


peers, record, timing = study("peers"), study("record"), study("timing")
texts, guard = study("lime_texts"), study("guard")


def normal(n_points, n_features):
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, n_points, n_features))


# ---- the record
def test_the_table_of_the_readme_is_made_from_the_record():
    text, measured = record.README.read_text("utf-8"), pd.read_csv(record.RECORD)
    assert text == record.page(text, measured), "run: python -m benchmarks.record"
    assert set(measured["role"]) <= {"propopt", "best", "general", "other"}
    assert not measured.duplicated(["work", "method"]).any()
    # peers do the work they are timed for: their gap, or how far they are off
    of_losses = measured["case"].isin(measured["case"][measured["gap"].notna()])
    off = measured[of_losses & (measured["role"] == "best")][["gap", "difference"]]
    assert len(off) > 20
    assert (off.min(axis=1) < 1e-6).all()
    changed = measured.assign(seconds=1.5 * measured["seconds"])
    assert text != record.page(text, changed)


def test_a_case_that_is_run_again_takes_the_place_of_its_rows(tmp_path):
    row = timing.Row(
        work="w", method="m", role="best", seconds=1.0, ratio=2.0, runs=3, gap=1e-9
    )
    path = tmp_path / "record.csv"
    record.kept(path, {"a": [row], "b": [row]}).to_csv(path, index=False)
    again = record.kept(path, {"a": [row, row]})
    assert list(again["case"]) == ["b", "a", "a"]
    assert again["gap"].tolist() == [1e-9] * 3


# ---- the clock
def test_methods_take_turns_and_only_parts_are_scaled():
    turns = []

    def run(name, seconds):
        turns.append(name)
        return timing.Timed(seconds, np.array([1.0, 2.0 + 0.1 * (name == "b")]))

    a, b = (
        timing.Method(
            name=name,
            role=role,
            run=lambda name=name, s=s: run(name, s),
            runs=runs,
            made=1,
            of=10,
            answer=np.asarray,
        )
        for name, role, s, runs in [("a", "propopt", 2.0, 3), ("b", "best", 5.0, 2)]
    )
    ours, peer = timing.race("work", a, b)
    assert turns == ["a", "b", "a", "b", "a"]
    assert (ours.seconds, ours.ratio, peer.seconds, peer.ratio) == (2.0, 1.0, 5.0, 2.5)
    assert peer.difference == pytest.approx(0.05)
    assert ours.difference is None

    def busy():
        return sum(range(200_000))

    whole = timing.Method(name="a", run=busy, runs=5)
    tenth = timing.Method(name="b", run=busy, made=1, of=100, runs=5)
    ours, peer = timing.race("work", whole, tenth)
    assert 30 < peer.ratio < 300  # 100 times as much is scaled from as much


# ---- peers do the same work


def test_shap_is_asked_with_a_background_or_without():
    model = RandomForestRegressor(3, max_depth=3, random_state=0)
    X, y = normal(60, 4)
    model.fit(X, y[:, 0])
    trees = pytest.importorskip("shap").TreeExplainer(model, X[:10])
    against = peers.shap_values(model, X[:10], X[-5:])()
    np.testing.assert_array_equal(against, trees.shap_values(X[-5:]))
    totals = against.sum(axis=1) + model.predict(X[:10]).mean()
    np.testing.assert_allclose(totals, model.predict(X[-5:]), atol=1e-6)
    other = peers.path_dependent(model, X[-5:]).run()
    assert np.abs(other - against).max() > 1e-3


def test_a_batched_pass_over_texts_asks_the_model_for_the_same_texts():
    corpus = texts.corpus(40, 30)
    labels = np.arange(40) % 2
    (document,) = po.functions.TextSchema.of(corpus[:1]).documents
    Z = np.random.default_rng(0).random((50, document.n_words)) < 0.7
    Z[0] = False
    linear = texts.linear_model(corpus, labels)
    score = texts.score_of_words(linear, document, "log_odds")
    kept = document.texts(Z)
    np.testing.assert_allclose(
        score(Z * 1.0), linear.decision_function(kept), atol=1e-12
    )
    forest = texts.word_forest(corpus, labels, 5)
    score = texts.score_of_words(forest, document, "probability")
    expected = forest.predict_proba(kept)[:, 1]
    np.testing.assert_allclose(score(Z * 1.0), expected, atol=1e-12)


# ---- the guard
def test_the_guard_fails_where_a_ratio_is_above_its_limit(monkeypatch, capsys):
    def busy(size):
        return lambda: sum(range(size))

    def found(limit):
        return [guard.Guarded("work", busy(300_000), busy(100_000), limit)]

    monkeypatch.setattr(guard, "guarded", lambda: found(30.0))
    guard.main()
    assert "at most 30: work" in capsys.readouterr().out
    monkeypatch.setattr(guard, "guarded", lambda: found(0.3))
    with pytest.raises(SystemExit, match="slower than the limit: work"):
        guard.main()
