"""What is asked alike of limits at rows of a table and at documents."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lime_cases import grid, linear, product, tabular
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from propopt.base.errors import InvalidInput, Refused
from propopt.lime import limits, text_limits
from propopt.results.result import Result


def exact_rows():
    X = grid(2)
    law = tabular(X, kernel_width=0.8)
    return limits(product(X), X[[36, 7, 120]], law, data=X)


def estimated_rows():
    X = pd.DataFrame(grid(3), columns=list("abc"), index=[f"r{n}" for n in range(400)])
    return limits(lambda Z: Z["a"] ** 2 - Z["b"], X.iloc[:3], data=X, n_samples=200)


def many_columns():
    X = grid(12)
    return limits(linear(np.arange(12.0), X), X[:2], data=X, n_samples=300)


def documents():
    """One by all sets, one that LIME says nothing of, one estimated."""
    texts = ["good food", "bad food", "cold meal", "fair price", "good meal", "bad"]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(texts, [1, 0, 0, 1, 1, 0])
    asked = pd.Series(
        ["good good food, fair price", "", "so a long and bad meal of odd, cold food"],
        index=["p", "q", "r"],
    )
    return text_limits(model, asked, n_samples=300, max_enumerated=5)


@pytest.fixture(
    scope="module", params=[exact_rows, estimated_rows, many_columns, documents]
)
def lime(request):
    return request.param()


def near(own, expected, **tolerance):
    """Of all rows, or of one document after the other."""
    for one, other in zip(own, expected, strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def test_it_is_a_result(lime):
    assert isinstance(lime, Result)
    assert lime.shape[0] == len(lime.row_names) == len(lime.values)


def test_the_surrogate_at_the_row_is_the_sum(lime):
    sums = [own.sum() for own in lime.coefficients]
    np.testing.assert_allclose(lime.at_row, lime.intercept + sums, rtol=1e-13)
    np.testing.assert_allclose(lime.local_gap, lime.values - lime.at_row, rtol=1e-13)


def test_lists_and_the_top_have_the_largest_first(lime):
    noun, feature = lime.to_frame().columns[:2]
    for n, name in enumerate(lime.row_names):
        order = lime.as_map(name)[1]
        assert [lime.coefficients[n][j] for j, _ in order] == [w for _, w in order]
        assert sorted(j for j, _ in order) == list(range(len(order)))
        assert len(order) == len(lime.coefficients[n])
        sizes = [abs(weight) for _, weight in order]
        assert sizes == sorted(sizes, reverse=True)
        assert [w for _, w in lime.as_list(name)] == [w for _, w in order]
        top = lime.top(2, name)
        assert top[noun].tolist() == [name] * len(top)
        assert top["coefficient"].tolist() == [w for _, w in order[:2]]
        pairs = zip(lime.as_list(name), top[feature], strict=False)
        assert all(own.startswith(column) for (own, _), column in pairs)
    assert lime.as_list() == lime.as_list(lime.row_names[0])
    with pytest.raises(InvalidInput, match="k: expected"):
        lime.top(0)
    with pytest.raises(InvalidInput, match="there is no row 'z'"):
        lime.as_list("z")


def test_the_table_has_a_line_for_each_number(lime):
    frame, noun = lime.to_frame(), lime.to_frame().columns[0]
    for n, name in enumerate(lime.row_names):
        own = frame[frame[noun] == name]
        assert own["coefficient"].tolist() == lime.coefficients[n].tolist()
        assert own["single_run_sd"].tolist() == lime.noise()[n].tolist()
        assert own["expected"].tolist() == lime.expected()[n].tolist()
        for column, values in (
            ("intercept", lime.intercept),
            ("prediction", lime.values),
            ("surrogate_at_row", lime.at_row),
        ):
            assert set(own[column]) <= {values[n]}
    assert (frame["n_samples"] == lime.n_samples).all()
    assert (frame["units"] == "units of the output").all()


def test_json_has_the_table(lime, tmp_path):
    lime.to_json(tmp_path / "lime.json")
    records = json.loads((tmp_path / "lime.json").read_text(encoding="utf-8"))
    frame = lime.to_frame()
    assert list(records[0]) == frame.columns.tolist()
    for column in ("coefficient", "expected"):
        assert [record[column] for record in records] == frame[column].tolist()


def test_intervals_are_where_runs_or_limits_are(lime):
    both = zip(lime.intervals(0.6827, n_samples=250), lime.noise(250), strict=True)
    for ends, noise in both:
        assert ends.shape == (*noise.shape, 2)
        np.testing.assert_allclose(np.diff(ends)[..., 0], 2.0 * noise, rtol=1e-4)
    near(
        [ends.mean(axis=-1) for ends in lime.intervals(n_samples=250)],
        lime.expected(250),
        rtol=1e-12,
        atol=1e-15,
    )
    errors, noun = lime.to_frame(), lime.to_frame().columns[0]
    for name, ends, own in zip(
        lime.row_names,
        lime.intervals(0.9545, of="limits"),
        lime.coefficients,
        strict=True,
    ):
        known = errors.loc[errors[noun] == name, "standard_error"]
        np.testing.assert_allclose(ends[:, 1] - own, 2.0 * known, rtol=1e-4, atol=1e-12)
    for wrong in ({"level": 1.0}, {"level": "high"}, {"of": "both"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            lime.intervals(**wrong)


def test_runs_of_other_samples_are_those_of_an_explanation_of_as_many(lime):
    other = replace(lime, n_samples=250, scatter=None)
    near(lime.noise(250), other.noise(), rtol=0.0)
    near(lime.expected(250), other.expected(), rtol=0.0)
    assert any(
        (np.abs(a - b) > 0.0).any()
        for a, b in zip(other.noise(), lime.noise(), strict=True)
    )


def test_required_samples_are_those_of_the_error(lime):
    squares = [(own / 0.01) ** 2 for own in lime.noise()]
    needed = [np.maximum(1.0, np.ceil(lime.n_samples * own)) for own in squares]
    near(lime.required_n(0.01), needed)
    with pytest.raises(InvalidInput, match="se: expected"):
        lime.required_n(0.0)


def test_some_rows_are_those_of_all(lime):
    lime.noise()
    names = [lime.row_names[2], lime.row_names[0]] if len(lime.values) > 2 else [1, 0]
    some, noun = lime.of_rows(names), lime.to_frame().columns[0]
    assert list(some.row_names) == names
    whole = lime.to_frame()
    parts = [whole[whole[noun] == name] for name in names]
    again = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(some.to_frame(), again, check_dtype=False)
    near(some.expected(50), [lime.expected(50)[lime.position(n)] for n in names])
    for wrong in ([], "p"):
        with pytest.raises(InvalidInput, match="rows: expected names"):
            lime.of_rows(wrong)


def test_a_diagnosis_of_some_rows_is_that_of_these_alone(lime):
    name = lime.row_names[0]
    own = lime.diagnose(500, rows=[name], progress=False)
    alone = lime.of_rows([name]).diagnose(500, progress=False)
    assert own.n_samples == 500
    assert own.to_frame().equals(alone.to_frame())
    assert own.labels.points == (name,)


def test_a_loaded_one_is_the_same_and_says_what_needs_the_model(lime, tmp_path):
    lime.save(tmp_path / "lime")
    loaded = type(lime).load(tmp_path / "lime")
    assert loaded.subject is None
    pd.testing.assert_frame_equal(loaded.to_frame(), lime.to_frame())
    assert loaded._repr_html_() == lime._repr_html_()
    assert pickle.loads(pickle.dumps(lime))._repr_html_() == loaded._repr_html_()
    assert repr(loaded) == repr(lime)
    for ask in (loaded.diagnose, loaded.path, lambda: loaded.noise(7)):
        with pytest.raises(Refused, match="make it anew"):
            ask()


def test_arrays_are_read_only(lime):
    with pytest.raises(ValueError, match="read-only"):
        lime.coefficients[0][0] = 1.0


def test_a_card_has_the_largest_and_where_their_runs_fall(lime):
    card, ends = lime.card(lime.row_names[0]), lime.intervals()[0]
    order = lime.as_map()[1]
    assert [row.value for row in card.rows] == [weight for _, weight in order[:10]]
    names = [name for name, _ in lime.as_list()]
    assert [row.name for row in card.rows] == names[:10]
    for (j, _), row in zip(order, card.rows, strict=False):
        assert row.interval == tuple(ends[j])
    others = [weight for _, weight in order[10:]]
    assert (card.rest != "") == bool(others)
    if others:
        assert (
            card.rest == f"{len(others)} others, at most {abs(others[0]):.3g} in size"
        )
    runs = f"lines: where 95 % of single runs of {lime.n_samples:,} samples fall"
    assert card.proof.endswith(runs)
    assert f"{lime.values[0]:.4g} for " in card.title
    assert card.settings["model evaluations"] == f"{lime.evaluations:,}"
