"""Small problems for minipatches, and learners that do odd things."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge

from propopt.interactions import ILOCO, Minipatches
from propopt.interactions.features import Features
from propopt.interactions.refits import Refits
from propopt.interactions.row_errors import read_error


def small_table(n_rows=90, n_features=6, seed=0):
    """A table and a target with one product in it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, 2.0 * X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=n_rows)


def refits_of(X, y, estimator=None, error="auto", classes=None):
    """Refits of a table without groups."""
    return Refits(
        estimator=Ridge() if estimator is None else estimator,
        table=X,
        y=y,
        classes=classes,
        features=Features.of(list(range(X.shape[1]))),
        error=read_error(error, classes),
    )


def fitted(scheme, X, y, estimator=None, **settings):
    """ILOCO by a scheme, fitted."""
    return ILOCO(Ridge() if estimator is None else estimator, scheme, **settings).fit(
        X, y
    )


def many(n_patches=500, **settings):
    """Patches that are enough for six features."""
    return Minipatches(**{"n_patches": n_patches, "rows": 20, **settings})


class Once(BaseEstimator, RegressorMixin):
    """The mean of the target; the first fit that finds no file does something else.

    Parameters
    ----------
    mark : str
        Name of the file, which is made.
    act : {"kill", "interrupt", "nan", "raise", "none"}
        What is done.
    after : int
        How many fits are made before, by other files.
    """

    def __init__(self, mark, act="none", after=0):
        self.mark = mark
        self.act = act
        self.after = after

    def fit(self, X, y):
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
