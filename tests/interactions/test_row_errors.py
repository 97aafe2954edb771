"""Errors of rows: their formulas, those of users, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refit_cases import product_table, read
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import mean_squared_error
from sklearn.naive_bayes import GaussianNB

from propopt.base.arrays import Array
from propopt.base.errors import AdditiveErrorWarning, InvalidInput
from propopt.interactions import DataSplit
from propopt.interactions.errors_of_rows import (
    ABSOLUTE,
    ABSOLUTE_LEAK,
    ABSOLUTE_LEAK_OF_TWO,
    PROBABILITY,
    SQUARED,
    read_error,
)
from propopt.interactions.left_out import Refits


RNG = np.random.default_rng(0)
Y = RNG.normal(size=6)
KNOWN = RNG.normal(size=(6, 3, 1))
PLACES = np.array([0, 2, 1, 0, 2, 1])
SHARES = RNG.dirichlet(np.ones(3), size=(6, 4))
LABELS = np.array(["a", "b", "c"])


def test_formulas_of_numbers() -> None:
    for i in range(6):
        for q in range(3):
            apart = Y[i] - KNOWN[i, q, 0]
            assert SQUARED.of(Y, KNOWN)[i, q] == pytest.approx(apart**2)
            assert ABSOLUTE.of(Y, KNOWN)[i, q] == pytest.approx(abs(apart))


def test_one_less_the_probability_of_the_class() -> None:
    known = np.stack(
        [PROBABILITY.known(SHARES[:, q], PLACES) for q in range(4)], axis=1
    )
    result = PROBABILITY.of(PLACES, known)
    for i in range(6):
        np.testing.assert_allclose(result[i], 1 - SHARES[i, :, PLACES[i]], rtol=1e-15)


def test_of_two_classes_it_is_the_distance_to_the_probability_of_one() -> None:
    p = RNG.uniform(size=6)
    y = np.array([0, 1, 1, 0, 1, 0])
    known = PROBABILITY.known(np.column_stack([1 - p, p]), y)
    result = PROBABILITY.of(y, known[:, None])[:, 0]
    np.testing.assert_allclose(result, np.abs(y - p), rtol=1e-15)


def test_errors_of_users_get_numbers_in_their_order() -> None:
    error = read_error(lambda y, p: 2 * (y - p) ** 2, None)
    result = error.of(Y, KNOWN)
    np.testing.assert_allclose(result, 2 * SQUARED.of(Y, KNOWN), rtol=1e-15)


def test_errors_of_users_get_labels_and_all_probabilities() -> None:
    def wrong(y: Any, p: Any) -> Array:
        assert p.shape == (len(y), 3)
        return 1 - p[np.arange(len(y)), np.searchsorted(LABELS, y)]

    error = read_error(wrong, LABELS)
    known = np.stack([error.known(SHARES[:, q], PLACES) for q in range(4)], axis=1)
    expected = 1 - SHARES[np.arange(6), :, PLACES]
    np.testing.assert_allclose(error.of(PLACES, known), expected, rtol=1e-15)
    assert error.name == "wrong"


def test_an_error_of_a_user_through_a_fit_is_that_of_ours() -> None:
    X, y = product_table()
    pairs = np.array([[0, 1], [1, 2]])

    def rows(learner: Any, target: Any, error: Any) -> Array:
        refits = read(learner, X, target, error=error)
        return DataSplit().fit(refits, seed=0).errors(pairs).rows

    np.testing.assert_allclose(
        rows(LinearRegression(), y, lambda t, p: (t - p) ** 2),
        rows(LinearRegression(), y, "squared"),
        rtol=1e-14,
    )
    labels = np.where(y > 0, "up", "down")
    np.testing.assert_allclose(
        rows(
            LogisticRegression(),
            labels,
            lambda t, p: 1 - np.where(t == "up", p[:, 1], p[:, 0]),
        ),
        rows(LogisticRegression(), labels, "auto"),
        rtol=1e-13,
    )


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            mean_squared_error,
            "mean_squared_error: expected one error for each of 18 row",
        ),
        (lambda y, p: np.stack([y, p]), r"got shape \(2, 18\)"),
        (lambda y, p: np.where(y == y[0], np.nan, p), "3 of 18 errors are not finite"),
        (lambda y, p: ["no"] * len(p * y), "error: expected numbers, got could not"),
    ],
)
def test_errors_of_users_that_cannot_be_used(
    function: Callable[[Any, Any], Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_error(function, None).of(Y, KNOWN)


@pytest.mark.parametrize(
    ("choice", "classes", "words"),
    [
        (
            "probability",
            None,
            "of a regressor expected 'auto', 'squared', 'absolute' or",
        ),
        ("squared", LABELS, "of a classifier expected 'auto', 'probability' or a call"),
        ("absolute", LABELS, "of a classifier expected"),
        ("sqared", None, r"got 'sqared' \(did you mean 'squared'\?\)"),
        (None, None, "got None"),
    ],
)
def test_errors_that_are_not_known(choice: Any, classes: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_error(choice, classes)


def test_the_error_by_default() -> None:
    assert read_error("auto", None) == SQUARED
    assert read_error("auto", LABELS) == PROBABILITY


def test_absolute_errors_warn_with_the_numbers_of_the_closed_form() -> None:
    with pytest.warns(AdditiveErrorWarning, match=r"0\.077 of it.*0\.38"):
        read_error("absolute", None)
    for effect, said in ((1.0, ABSOLUTE_LEAK), (2.0, ABSOLUTE_LEAK_OF_TWO)):
        one, two = 1 + effect**2, 1 + 2 * effect**2
        score = np.sqrt(2 / np.pi) * (2 * np.sqrt(one) - 1 - np.sqrt(two))
        assert said == float(f"{score:.2g}")


@pytest.mark.parametrize(
    ("learner", "y", "message"),
    [
        (LinearRegression(), ["yes", "no"] * 5, "got 'yes'; of classes take a classif"),
        (GaussianNB(), [1, "a"] * 5, "expected labels of one type, got 'int', 'str'"),
        (GaussianNB(), [b"a", b"b"] * 5, "expected numbers or text, got bytes"),
    ],
)
def test_targets_of_another_kind_are_refused_with_what_would_do(learner, y, message):
    labels = np.array(y, dtype=object)
    with pytest.raises(InvalidInput, match=f"^y: .*{message}"):
        Refits.of(learner, np.arange(20.0).reshape(10, 2), labels)
