import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from propopt.interactions.features import pairs_matrix, subsets_of
from propopt.interactions.inference import ErrorRange
from propopt.interactions.learning import weight_name
from propopt.interactions.patch_draws import (
    features_in_patch,
    rounded_up,
    rows_in_patch,
)
from propopt.interactions.splitting import dealt_folds, held_out_groups


@pytest.mark.parametrize(
    ("deal", "expected"),
    [
        (lambda: dealt_folds(5, 2, seed=0), [[1, 2, 3], [0, 4]]),
        (
            lambda: dealt_folds(5, 2, 0, groups=np.array([0, 0, 0, 1, 2])),
            [[0, 1, 2], [3, 4]],
        ),
        (
            lambda: [held_out_groups(np.array([0, 0, 1, 1, 2, 2]), 3, seed=0)],
            [[0, 1, 4, 5]],
        ),
    ],
)
def test_rows_that_are_judged(deal, expected):
    assert [fold.test.tolist() for fold in deal()] == expected


def test_sizes_of_patches():
    assert [rows_in_patch(0.2, n) for n in (10, 60, 500)] == [5, 20, 100]
    assert rows_in_patch("sqrt", 250) == 16
    assert [features_in_patch(None, n) for n in (5, 20, 50)] == [3, 10, 10]
    assert [rounded_up(m) for m in (0.2 * 15, 2.1)] == [3, 3]


def test_subsets_and_pairs_of_sets():
    subsets, places = subsets_of(np.array([[0, 1], [0, 3]]), 1)
    assert subsets.tolist() == [[0], [1], [3]]
    assert places.tolist() == [[0, 0], [1, 2]]
    matrix = pairs_matrix(np.array([2.0]), np.array([[0, 1]]), 2)
    np.testing.assert_array_equal(matrix, [[np.nan, 2.0], [2.0, np.nan]])


def test_the_range_of_a_score_of_two():
    assert ErrorRange(0.0, 1.0, True).of_score(2) == 2.0


def test_weights_of_a_pipeline_are_those_of_its_last_step():
    steps = make_pipeline(StandardScaler(), Ridge())
    assert weight_name(steps) == "ridge__sample_weight"
