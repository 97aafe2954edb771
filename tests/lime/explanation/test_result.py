"""The result: what is known beside coefficients, and its files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    header_of,
    members_of,
    npy,
    signed,
    with_header,
    write,
)
from lime_cases import explained, grid, linear, product, tabular
from sklearn.linear_model import LogisticRegression

from propopt.base.errors import InvalidInput, Refused
from propopt.lime import LimeExplanation, limits
from propopt.lime.expectations import cell_coefficients


@pytest.fixture(scope="module")
def lime() -> LimeExplanation:
    X = grid(2)
    return explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.8))


def test_a_profile_gives_the_coefficient_of_every_bin_of_its_column(lime):
    for j, (means,) in enumerate(lime.subject.profiles(lime.points)):
        own = lime.law.columns[j].place(lime.points[:, j])[0]
        others = np.delete(means, own).mean()  # bins have equal shares
        assert means[own] - others == pytest.approx(lime.coefficients[0, j], rel=1e-9)


def test_cells_are_what_rows_in_them_have(lime):
    subject = lime.subject
    cells = cell_coefficients(subject.limits, subject.law, lime.points, (0, 1))
    assert cells[3, 0] == pytest.approx(lime.coefficients[0])
    X = grid(2)
    other = explained(product(X), [0.1, 0.6], X, tabular(X, kernel_width=0.8))
    assert cells[0, 2] == pytest.approx(other.coefficients[0])


def test_a_path_at_the_width_of_the_law_is_the_explanation(lime):
    path = lime.path(widths=[0.4, 0.8])
    assert path.coefficients[1] == pytest.approx(lime.coefficients[0], rel=1e-12)


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


def test_a_loaded_explanation_says_what_needs_the_model(lime, tmp_path):
    lime.save(tmp_path / "lime")
    loaded = LimeExplanation.load(tmp_path / "lime")
    assert (loaded.noise() == lime.noise()).all()
    assert (loaded.expected(70) == lime.expected(70)).all()
    assert loaded.r2 == pytest.approx(lime.r2, abs=0)
    for ask in (lambda: loaded.noise(70), lambda: loaded.law):
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


ODD = {
    "n_samples: expected an integer >= 1": {"n_samples": 0},
    "bins: expected a table of shape": {"bins": [["a"]]},
    "cells: expected a table of shape": {"cells": [[1.0, None], [1.0, None]]},
    "first_row: expected true or false": {"first_row": "yes"},
    "labels: expected 1 names of points, got 2": {
        "shared": [{"points": [1, 2], "features": None}]
    },
    "standard_errors: the source 'guess' has its errors": {"source": "guess"},
    "scatter: it is that of other rows or runs": {"n_samples": 77},
    "quantity.kind: expected 'value'": {"quantity": {"model": "", "kind": "sum"}},
}
ODD_ARRAYS = {
    "alpha: expected numbers from 0 to 1": {"alpha": [[0.5, -0.1]]},
    "intercept: 1 of 1 values are not finite": {"intercept": [np.nan]},
    r"points: expected shape \(1, 2\)": {"points": [[0.0, 0.0, 0.0]]},
    "standard_errors: the source 'exact' has no": {"standard_errors": [[0.0, 0.1]]},
    "scatter: it is that of other rows": {"scatter.deviations": [[0.1, 0.1, 0.1]]},
    "scatter.deviations: expected numbers >= 0": {"scatter.deviations": [[0.1, -1.0]]},
    "it also has the array 'more'": {"more": [1.0]},
}


@pytest.mark.parametrize("match", [*ODD, *ODD_ARRAYS])
def test_a_file_with_something_wrong_is_refused(lime, tmp_path, match):
    path = tmp_path / "lime.npz"
    lime.save(path)
    members = members_of(path)
    for name, numbers in ODD_ARRAYS.get(match, {}).items():
        members[f"{name}.npy"] = npy(numbers)
    header = header_of(members)
    change = {
        key: {**header[key], **value} if isinstance(value, dict) else value
        for key, value in ODD.get(match, {}).items()
    }
    write(path, signed(with_header(members, header | change)))
    with pytest.raises(InvalidInput, match=match):
        LimeExplanation.load(path)


def test_what_is_explained_and_the_card_are_loaded(lime, tmp_path):
    lime.save(tmp_path / "lime")
    loaded = LimeExplanation.load(tmp_path / "lime")
    assert loaded.quantity == lime.quantity
    assert loaded.explained_in_words == lime.explained_in_words != "output"
    assert loaded.card().text() == str(lime)
    assert pickle.loads(pickle.dumps(lime))._repr_html_() == loaded._repr_html_()


def test_a_card_says_what_is_explained_of_whom_and_where_runs_fall(lime):
    first, *rest = str(lime).split("\n")
    assert first == (
        f"Why the model predicts {lime.values[0]:.4g} for row 0 "
        f"({lime.mean[0]:.4g} on average around it)"
    )
    (j, _), *_ = lime.as_map()[1]
    low, high = lime.intervals()[0, j]
    name, weight = lime.as_list()[0]
    told = [" ".join(line.split()) for line in rest]
    assert f"{name} {weight:+.3g} {low:+.3g} to {high:+.3g}" in told
    assert rest[-1] == (
        "exact: no samples, no seed · lines: where 95 % of single runs of 5,000 "
        "samples fall"
    )


def test_a_card_is_of_any_row_and_names_a_class():
    X = pd.DataFrame(grid(12), columns=[f"<i>{j}" for j in range(12)])
    X.index = [f"patient {n}" for n in range(len(X))]
    model = LogisticRegression().fit(X, np.where(X.iloc[:, 3] > 0.5, "ill", "well"))
    lime = limits(model, X.iloc[:3], data=X, target="ill", output="probability")
    card = lime.card("patient 1")
    assert card.title.startswith(
        f"Why the probability of ill is {lime.values[1]:.4g} for patient 1 ("
    )
    assert len(card.rows) == 10
    others = sorted(np.abs(lime.coefficients[1]))[1]
    assert card.rest == f"2 others, at most {others:.3g} in size"
    assert "2 more rows in this result" in card.subtitle
    assert "<i>" not in card.html()


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
