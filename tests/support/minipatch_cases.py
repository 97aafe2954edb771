"""Small problems for minipatches, and learners that do odd things."""

import os
import signal
import time
from pathlib import Path

import numpy as np
from refit_cases import product_table
from sklearn.base import BaseEstimator, RegressorMixin

from papers.iloco.methods import PatchesOfOneSize
from propopt.interactions import Minipatches
from propopt.interactions.refits import Refits


def small_table(n_rows=90, n_features=6, seed=0):
    """A table and a target with one product in it."""
    return product_table(n_rows, n_features, seed, noise=0.1)


def fitted(scheme, X, y, estimator=None, *, order=2, n_jobs=None, **settings):
    """The predictors that a scheme fits, to be asked for sets up to a size."""
    seed, progress = settings.pop("seed", 0), settings.pop("progress", None)
    learner = Quick() if estimator is None else estimator
    refits = Refits.of(learner, X, y, **settings)
    sets = refits.features.all_sets(order)
    return scheme.fit(refits, seed=seed, sets=sets, n_jobs=n_jobs, progress=progress)


class Counted(PatchesOfOneSize):
    """Each patch has features, so that each is a fit of the learner."""

    fit = Minipatches.fit


def many(n_patches=500, **settings):
    """Patches that are enough for six features."""
    sizes = {"n_patches": n_patches, "rows": 20}
    return Counted(**{**sizes, **settings})


class Quick(RegressorMixin, BaseEstimator):
    """The mean of the target and a sum of columns, by a factor."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.value_ = float(np.mean(y))
        return self

    def predict(self, X):
        return self.value_ + self.factor * X.sum(axis=1)


class Once(RegressorMixin, BaseEstimator):
    """The mean of the target; after some fits, by files of a folder, one acts."""

    def __init__(self, mark, act="none", after=0, seconds=0.0):
        self.mark, self.act, self.after, self.seconds = mark, act, after, seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        folder = Path(self.mark)
        number = len(list(folder.iterdir()))
        (folder / f"{os.getpid()}-{number}").touch()
        self.n_features_in_ = X.shape[1]
        self.value_ = float(np.mean(y))
        if number == self.after and self.act != "none":
            self._act()
        return self

    def predict(self, X):
        return self.value_ + X.sum(axis=1)

    def _act(self):
        match self.act:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "interrupt":
                raise KeyboardInterrupt
            case "nan":
                self.value_ = np.nan
            case "raise":
                raise ArithmeticError("no solution")
