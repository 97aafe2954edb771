"""Which reasons recur in models of fresh tables: all, clear ones, stable ones.

``python -m benchmarks.claims refits [--full]``. A table is drawn from each population
of :mod:`benchmarks.claims`, and a model is fitted to it. 100 other rows are explained,
with ten bootstrap refits. Models of fresh tables of the same size, with other seeds,
show which statements recur. Each line is one population and learner:

============== ===================================================================
made           share of the reasons (of letters with a first reason) that is clear,
               or stable
hold           share of these that is among the first four (the first) in a model of
               a fresh table
unused         share of letters with a column without effect among such reasons
============== ===================================================================
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from benchmarks.claims import POPULATIONS, Population


K: Final = 4
N_EXPLAINED: Final = 100
N_FRESH: Final = 5
KINDS: Final = ("all", "clear", "stable")


def learners(population: str) -> dict[str, Any]:
    """The learners for a population, by name."""
    of_classes = POPULATIONS[population].has_classes
    boosting: Any = HistGradientBoostingRegressor
    lightgbm: Any = LGBMRegressor
    if of_classes:
        boosting = HistGradientBoostingClassifier
        lightgbm = LGBMClassifier
    known = {
        "boosting": boosting(
            max_iter=80, learning_rate=0.08, categorical_features="from_dtype"
        ),
        "lightgbm": lightgbm(
            n_estimators=80,
            learning_rate=0.08,
            num_leaves=15,
            subsample=0.8,
            subsample_freq=1,
            verbose=-1,
            n_jobs=1,
        ),
    }
    if population == "few":
        known["linear"] = make_pipeline(StandardScaler(), LogisticRegression())
        known["forest"] = ExtraTreesClassifier(60, min_samples_leaf=3)
    if population == "correlated":
        known["linear"] = make_pipeline(StandardScaler(), LinearRegression())
    return known


def fitted(learner: Any, X: Any, y: Any, seed: int) -> Any:
    """A model of all rows, with this seed."""
    seeds = {x: seed for x in learner.get_params() if "random_state" in x}
    return clone(learner).set_params(**seeds).fit(X, y)


def statements(population: Population, learner: Any, seed: int) -> pd.DataFrame:
    """For one table each reason, of which kinds it is, and how often it recurs."""
    X, y = population.table(seed)
    rows = population.table(seed, 1)[0][:N_EXPLAINED]
    model = fitted(learner, X, y, seed)
    best = po.explain(model, rows, data=X)
    refits = po.null_models.bootstrap_refits(model, X, y, rng=seed)
    found = best.reasons(K, models=refits, least_share=0.0).to_frame()
    columns = [list(X).index(name) for name in found["feature"]]
    at = found["row"].to_numpy(int), columns
    holds, holds_first = np.zeros((2, len(found)))
    for k in range(N_FRESH):
        other = fitted(learner, *population.table(seed, 2, k), 1_000 + k)
        phi, _ = best.retrained.contributions(other)
        rank = (-phi).argsort(axis=1).argsort(axis=1)
        holds += ((rank < K) & (phi > 0.0))[at] / N_FRESH
        holds_first += ((rank == 0) & (phi > 0.0))[at] / N_FRESH
    found["unused"] = found["feature"].str.startswith("unused")
    return found.assign(all=True, holds=holds, holds_first=holds_first)


def measured(full: bool) -> pd.DataFrame:
    """All statements on all populations, learners and tables."""
    found = []
    for name, population in POPULATIONS.items():
        for kind, learner in learners(name).items():
            for seed in range(10 if full else 3):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    some = statements(population, learner, seed)
                case = {"population": name, "learner": kind, "table": seed}
                found.append(some.assign(**case))
    return pd.concat(found, ignore_index=True)


def summary(found: pd.DataFrame) -> dict[str, float]:
    """Shares of statements that are made, and of these that hold."""
    first = found[found["rank"] == 1]
    letters = found.groupby(["population", "learner", "table", "row"])
    line: dict[str, float] = {"letters": letters.ngroups}
    for kind in KINDS:
        line[f"{kind} made"] = found[kind].mean()
        line[f"{kind} hold"] = found["holds"][found[kind]].mean()
        leads = first["stable_first" if kind == "stable" else kind].astype(bool)
        line[f"{kind} first made"] = leads.mean()
        line[f"{kind} first hold"] = first["holds_first"][leads].mean()
        unused = found["unused"] & found[kind]
        line[f"{kind} unused"] = unused.groupby(letters.ngroup()).any().mean()
    return line


def claims(full: bool = False) -> dict[str, pd.DataFrame]:
    """Shares by population, by population and learner, and of all."""
    found = measured(full)
    found[[*KINDS]] = found[[*KINDS]].astype(bool)
    keys = ["population", "learner"]
    cases = {"all": found}
    for by in (keys[:1], keys):
        cases |= {" ".join(case): some for case, some in found.groupby(by)}
    shares = pd.DataFrame({case: summary(some) for case, some in cases.items()}).T
    return {
        kind: shares[["letters", *[x for x in shares if x.startswith(f"{kind} ")]]]
        for kind in KINDS
    }
