"""ILOCO among the estimators of scikit-learn, by its own checks."""

from __future__ import annotations

import pytest
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from propopt.interactions import ILOCO, DataSplit, Minipatches


SPLIT = ILOCO(Ridge(), DataSplit(), order=1)
PATCHES = ILOCO(Ridge(), Minipatches(n_patches=80, n_features=0.8), order=1)


@pytest.mark.filterwarnings("ignore")  # checks fit tables too small to say much
@parametrize_with_checks([SPLIT])
def test_scikit_learns_own_checks_by_a_split(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([PATCHES])
def test_scikit_learns_own_checks_by_patches(estimator, check):
    check(estimator)
