"""ILOCO among the estimators of scikit-learn, by its own checks."""

from __future__ import annotations

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from propopt.interactions import ILOCO, DataSplit, Minipatches


_SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
SPLIT = ILOCO(LogisticRegression(), DataSplit(), order=1)
PATCHES = ILOCO(
    Ridge(),
    Minipatches(n_patches=80, keep=True, columns="bernoulli", n_features=0.8),
    order=1,
)


def not_expected(estimator: ILOCO) -> dict[str, str]:
    """Checks that cannot hold, with the reason."""
    del estimator
    drawn = (
        "rows are drawn: weighting a row is not the same as having it twice, in "
        "patches or halves of other rows"
    )
    told = {"check_sample_weight_equivalence_on_dense_data": drawn}
    if _SKLEARN < (1, 7):  # it is asked of sparse tables, too
        told["check_sample_weight_equivalence_on_sparse_data"] = drawn
    return told


@pytest.mark.filterwarnings("ignore")  # checks fit tables too small to say much
@parametrize_with_checks([SPLIT], expected_failed_checks=not_expected)
def test_scikit_learns_own_checks_by_a_split(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([PATCHES], expected_failed_checks=not_expected)
def test_scikit_learns_own_checks_by_patches(estimator, check):
    check(estimator)
