"""The result: what is known beside coefficients, and its files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from lime_cases import explained, grid, linear, product, tabular

from propopt.base.errors import InvalidInput, Refused
from propopt.lime import LimeExplanation, limits
from propopt.results.explanation import Result


@pytest.fixture(scope="module")
def lime() -> LimeExplanation:
    X = grid(2)
    return explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.8))


def test_it_is_a_result(lime):
    assert isinstance(lime, Result)


def test_a_profile_gives_the_coefficient_of_every_bin_of_its_column(lime):
    profile = lime.profile()
    for j in range(2):
        means, own = profile.means[j], profile.own[j]
        others = np.delete(means, own).mean()  # bins have equal shares
        assert means[own] - others == pytest.approx(lime.coefficients[0, j], rel=1e-9)


def test_the_coefficients_along_a_column_sum_to_zero():
    X = grid(2)
    values = [0.1, 0.3, 0.6, 0.9]
    rows = np.column_stack([values, np.full(4, 0.1)])
    along = limits(product(X), rows, tabular(X, kernel_width=0.8)).coefficients[:, 0]
    assert along.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(along).max() > 0.01


def test_cells_are_what_rows_in_them_have(lime):
    cells = lime.cells_of("x0", 1)
    assert cells.coefficients[cells.own] == pytest.approx(lime.coefficients[0])
    X = grid(2)
    other = explained(product(X), [0.1, 0.6], X, tabular(X, kernel_width=0.8))
    assert cells.coefficients[0, 2] == pytest.approx(other.coefficients[0])
    assert cells.to_frame()["own"].sum() == 1


def test_a_path_at_the_width_of_the_law_is_the_explanation(lime):
    path = lime.path(widths=[0.4, 0.8])
    assert path.coefficients[1] == pytest.approx(lime.coefficients[0], rel=1e-12)


def test_samples_for_a_standard_error_give_it(lime):
    n = int(lime.required_n(0.001)[0, 0])
    assert lime.noise(n)[0, 0] == pytest.approx(0.001, rel=0.01)


def test_one_run_scatters_as_is_said(lime):
    """|z| < 4.5 of a variance ratio of 200 runs: once in 1e5 seeds; this is fixed."""
    X, law, n = grid(2), tabular(grid(2), kernel_width=0.8), 400
    f, rng = product(X), np.random.default_rng(5)
    slopes = []
    for _ in range(200):
        draws = law.draw(np.array([[0.9, 0.1]]), n, rng)
        root = np.sqrt(draws.weights[0])[:, None]
        Z = np.column_stack([np.ones(n), draws.bits[0]])
        y = f.predict(draws.samples[0])
        slopes.append(np.linalg.lstsq(Z * root, y * root[:, 0])[0][1:])
    ratio = np.var(slopes, axis=0, ddof=1) / lime.noise(n)[0] ** 2
    # the package has the row itself as a sample too, and a ridge of 1: within a few %
    assert np.abs(np.log(ratio)).max() < 4.5 * np.sqrt(2.0 / 199) + 0.03


def test_the_mean_of_runs_nears_the_limit(lime):
    apart = [np.abs(lime.expected(n) - lime.coefficients).max() for n in (50, 5000)]
    assert apart[1] < 0.05 * apart[0]
    assert apart[1] > 0.0


def test_r2_is_what_least_squares_explains(lime):
    """Of even draws of Q: within 1 %, with 4096 for the variance and 40,000 here."""
    draws = lime.law.draw_weighted(
        np.array([[0.9, 0.1]]), 40_000, np.random.default_rng(2)
    )
    y = product(grid(2)).predict(draws.samples[0])
    fit = lime.intercept[0] + draws.bits[0] @ lime.coefficients[0]
    assert lime.r2[0] == pytest.approx(1.0 - np.var(y - fit) / np.var(y), abs=0.01)


def test_what_is_exact_and_what_is_estimated_stands_in_text_card_and_table(lime):
    X = grid(2)
    called = explained(lambda Z: Z[:, 0] ** 2, [0.9, 0.1], X, n_samples=200)
    assert "exact" in repr(lime)
    assert "exact" in lime._repr_html_()
    assert set(lime.to_frame()["source"]) == {"exact"}
    for text in (repr(called), called._repr_html_()):
        assert "estimate" in text
        assert "can only be called" in text
        assert "units of the output" in text
    assert called.to_frame()["standard_error"].gt(0.0).any()
    assert (lime.to_frame()["units"] == "units of the output").all()


def test_json_has_the_table(lime, tmp_path):
    lime.to_json(tmp_path / "lime.json")
    records = json.loads((tmp_path / "lime.json").read_text(encoding="utf-8"))
    assert [record["feature"] for record in records] == ["x0", "x1"]
    assert [record["coefficient"] for record in records] == lime.coefficients[
        0
    ].tolist()


def test_a_loaded_explanation_says_what_needs_the_model(lime, tmp_path):
    lime.save(tmp_path / "lime")
    loaded = LimeExplanation.load(tmp_path / "lime")
    assert (loaded.noise() == lime.noise()).all()
    assert (loaded.expected(70) == lime.expected(70)).all()
    assert loaded.as_list() == lime.as_list()
    for ask in (loaded.profile, loaded.path, lambda: loaded.noise(70)):
        with pytest.raises(Refused, match="make it anew"):
            ask()


def test_a_saved_frame_with_names_of_any_kind_comes_back(tmp_path):
    X = pd.DataFrame(
        {"age": [1.0, 2.0, np.nan, 4.0] * 10, "town": list("abca") * 10},
        index=[("r", n) for n in range(40)],
    )

    def f(Z):
        return Z["age"].fillna(-1.0) + (Z["town"] == "b")

    lime = limits(f, X.iloc[:3], data=X, n_samples=100)
    lime.save(tmp_path / "lime")
    same = LimeExplanation.load(tmp_path / "lime").to_frame()
    own = lime.to_frame()
    assert same.drop(columns="row").equals(own.drop(columns="row"))
    assert same["row"].tolist() == [str(name) for name in own["row"]]


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("n_samples", 0, "n_samples: expected an integer >= 1"),
        ("bins", [["a"]], "bins: expected a table of shape"),
        ("first_row", "yes", "first_row: expected true or false"),
    ],
)
def test_a_file_with_something_wrong_is_refused(lime, tmp_path, key, value, match):
    path = tmp_path / "lime.npz"
    lime.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop("header")))
    header[key] = value
    np.savez(path, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(InvalidInput, match=match):
        LimeExplanation.load(path)


def test_rows_that_differ_in_bins_alone_differ():
    X = grid(3)
    rows = np.array([[0.1, 0.1, 0.1], [0.12, 0.2, 0.2], [0.9, 0.1, 0.1]])
    result = limits(linear([1.0, 2.0, 3.0], X), rows, data=X).coefficients
    assert (result[0] == result[1]).all()
    assert result[0, 0] != pytest.approx(result[2, 0])


def test_a_card_is_the_same_when_it_is_shown_again():
    X = grid(2)
    lime = limits(product(X), X[:2], data=X)
    first = lime._repr_html_()
    assert "estimated from 4,096 samples a row" in first
    assert lime._repr_html_() == first


def test_a_card_of_many_rows_does_not_run_the_model():
    X = grid(2)
    lime = limits(product(X), X[:150], data=X)
    before = lime.subject.function.calls.rows
    card = lime._repr_html_()
    assert lime.subject.function.calls.rows == before
    assert "estimated from samples when noise() is asked" in card
    lime.noise()
    assert "estimated from 4,096 samples a row" in lime._repr_html_()
