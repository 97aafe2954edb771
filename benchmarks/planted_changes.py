"""How often ``po.compare`` alarms without a change, and which planted changes it sees.

``python -m benchmarks.planted_changes [--pairs 200] [--planted 10] [--short 1.0]``
prints two tables. Tables are synthetic, and those of scikit-learn.

A table is split in two at random. The old version learns from one half, with ten
refits on halves as level, and the new version from the other half, with one change:

============== ====================================================================
shuffled       a column is joined to the wrong rows
unit           a column is 60 times as large: seconds for minutes
label noise    10 % of the outcomes are flipped, or exchanged if they are numbers
dropped        a column is constant
duplicated     a fifth of the rows is there ten times
threshold      the least outcome of the upper class is the 65 % quantile, not the 50 %
other features half of the columns are constant
scaled         outcomes are 1.5 times as large
categories     the codes of a column are permuted
subgroup       outcomes are flipped in half of the rows of a subgroup of a fifth
============== ====================================================================

The column is the one of which the old version says most, but for categories.
With ``--short 0.5`` the new version learns from half as many rows as the old one.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import lightgbm
import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


TABLES: Final = (
    *("numbers", "classes", "diabetes", "diabetes classes"),
    *("cancer", "wine", "iris", "digits"),
)
PLANTED_IN: Final = ("numbers", "classes", "diabetes", "cancer")
LEARNERS: Final = ("linear", "trees")
CHANGES: Final = (
    *("shuffled", "unit", "label noise", "dropped", "duplicated"),
    *("threshold", "other features", "scaled", "categories", "subgroup"),
)
N_EXPLAINED = N_BACKGROUND = 50
CODES: Final = np.array([2.0, 0.0, 3.0, 1.0])


@dataclass(frozen=True)
class Table:
    """Rows and outcomes; of classes the score of which they are the upper half."""

    X: pd.DataFrame
    y: Any
    score: Any = None

    @property
    def is_classes(self) -> bool:
        """Whether outcomes are 0 and 1."""
        return {*np.unique(self.y).tolist()} == {0.0, 1.0}

    def rows(self, places: Any) -> Table:
        """Some of them."""
        score = None if self.score is None else self.score[places]
        X = self.X.iloc[places].reset_index(drop=True)
        return Table(X, self.y[places], score)


@cache
def bundled(name: str) -> Table:
    """A table of scikit-learn."""
    loads = {"cancer": "breast_cancer"}
    if name == "digits":
        result = datasets.load_digits()
        X = result.data.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
        return Table(pd.DataFrame(X).add_prefix("p"), (result.target % 2).astype(float))
    short = name.partition(" ")[0]
    load = getattr(datasets, f"load_{loads.get(short, short)}")
    result = load(as_frame=True)
    X, y = result.data, result.target.to_numpy(dtype=float)
    if name == "diabetes":
        return Table(X, y / 50.0)
    if name == "diabetes classes":
        return Table(X, (y > np.median(y)).astype(float), y)
    if name == "cancer":
        return Table(X.iloc[:, :10], y)
    return Table(X, (y == 1.0).astype(float))


def synthetic(name: str, rng: np.random.Generator, n: int = 4000) -> Table:
    """Six columns: three numbers, four codes, two values, and one without effect."""
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x0", "x1", "x2", "no"])
    X["x1"] = 0.5 * X["x0"] + np.sqrt(0.75) * X["x1"]
    X["code"] = rng.integers(4, size=n).astype(float)
    X["b"] = (rng.random(n) < 0.2).astype(float)
    effects = np.array([1.0, 0.6, 0.4, 0.0, 0.5, 1.0])
    score = X.to_numpy() @ effects + 0.3 * (X["x0"] * X["x2"]).to_numpy()
    if name == "numbers":
        return Table(X, score + rng.normal(size=n))
    score = score + rng.logistic(size=n)
    return Table(X, (score > np.median(score)).astype(float), score)


def learner(name: str, is_classes: bool) -> Any:
    """Not fitted."""
    if name == "linear":
        model = LogisticRegression() if is_classes else LinearRegression()
        return make_pipeline(StandardScaler(), model)
    cls = lightgbm.LGBMClassifier if is_classes else lightgbm.LGBMRegressor
    how: dict[str, Any] = {"n_estimators": 40, "num_leaves": 6, "random_state": 0}
    return cls(min_child_samples=5, n_jobs=1, verbose=-1, **how)


def changed(
    table: Table, change: str, column: str, rng: np.random.Generator
) -> Table | None:
    """The new table with a change; None where it cannot have it."""
    X, y, n = table.X.copy(), table.y.copy(), len(table.y)
    match change:
        case "shuffled":
            X[column] = rng.permutation(X[column].to_numpy())
        case "unit":
            X[column] *= 60.0
        case "label noise":
            part = rng.choice(n, n // 10, replace=False)
            y[part] = 1.0 - y[part] if table.is_classes else rng.permutation(y[part])
        case "dropped":
            X[column] = X[column].mean()
        case "duplicated":
            part = rng.choice(n, n // 5, replace=False)
            return table.rows(np.concatenate([np.arange(n), *[part] * 9]))
        case "threshold":
            if table.score is None:
                return None
            y = (table.score > np.quantile(table.score, 0.65)).astype(float)
        case "other features":
            lost = [x for x in X.columns if x != column][: X.shape[1] // 2]
            X[lost] = X[lost].mean().to_numpy()
        case "scaled":
            if table.is_classes:
                return None
            y = 1.5 * y
        case "categories":
            if "code" in X:
                X["code"] = CODES[X["code"].to_numpy().astype(int)]
            elif "sex" in X:
                X["sex"] = X["sex"].min() + X["sex"].max() - X["sex"]
            else:
                return None
        case "subgroup":
            first = X["b"] if "b" in X else X.iloc[:, 0]
            group = (first >= np.quantile(first, 0.8)) & (rng.random(n) < 0.5)
            y = np.where(group, (1.0 if table.is_classes else 2.0 * y.mean()) - y, y)
    return Table(X, y)


@dataclass(frozen=True)
class Found:
    """What a comparison flagged."""

    table: str
    learner: str
    change: str
    distance: bool
    size: bool  # or that of all columns together
    base: bool

    @property
    def any(self) -> bool:
        """Whether anything is flagged."""
        return self.distance or self.size or self.base


def pairs(
    name: str, kind: str, seed: int, short: float, planted: bool
) -> Iterator[Found]:
    """One split of a table: no change, and each that is planted."""
    rng = np.random.default_rng([seed, TABLES.index(name), LEARNERS.index(kind)])
    whole = synthetic(name, rng) if name in ("numbers", "classes") else bundled(name)
    order, half = rng.permutation(len(whole.y)), len(whole.y) // 2
    old, new = whole.rows(order[:half]), whole.rows(order[half:])
    new = new.rows(np.arange(int(short * len(new.y))))
    model = learner(kind, old.is_classes)
    level = po.null_models.split_half_refits(model, old.X, old.y, rng=seed)
    output = "auto"
    if old.is_classes:
        output = "log_odds" if kind == "linear" else "margin"
    how: dict[str, Any] = {"data": old.X[:N_BACKGROUND], "robustness": 1.0}
    how["output"] = output
    rows, before = old.X[-N_EXPLAINED:], learner(kind, old.is_classes)
    before.fit(old.X, old.y)
    after = learner(kind, old.is_classes).fit(new.X, new.y)
    same = po.compare(before, after, rows, level=level, **how)
    yield _found(name, kind, "none", same)
    column = same.features[int(np.abs(same.before).mean(axis=0).argmax())]
    for change in CHANGES if planted else ():
        other = changed(new, change, column, rng)
        if other is not None:
            after = learner(kind, other.is_classes).fit(other.X, other.y)
            bare = po.compare(before, after, rows, **how)
            yield _found(name, kind, change, replace(bare, level=same.level))


def _found(name: str, kind: str, change: str, result: po.results.Comparison) -> Found:
    size = bool(result.size_flagged.any() or result.total_flagged)
    flags = bool(result.distance_flagged.any()), size, result.base_flagged
    return Found(name, kind, change, *flags)


def measured(n_pairs: int, n_planted: int, short: float = 1.0) -> list[Found]:
    """All pairs, the first few of some tables with planted changes."""
    kinds = [(name, kind) for name in TABLES for kind in LEARNERS]
    result = []
    for number in range(n_pairs):
        seed, place = divmod(number, len(kinds))
        name, kind = kinds[place]
        planted = name in PLANTED_IN and seed < n_planted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result += pairs(name, kind, seed, short, planted)
    return result


def page_tables(result: list[Found]) -> list[str]:
    """What the guide has: alarms without a change, then what is seen."""
    none = [x for x in result if x.change == "none"]
    counts = [sum(getattr(x, by) for x in none) for by in FLAGS]
    lines = ["| without a change, flagged by | distance | size | base | any |"]
    lines += ["|---|---:|---:|---:|---:|"]
    lines += [f"| of {len(none)} pairs | {' | '.join(map(str, counts))} |", ""]
    lines += [f"| change | {' | '.join(PLANTED_IN)} | by distance alone |"]
    lines += [f"|---{'|---:' * (len(PLANTED_IN) + 1)}|"]
    for change in CHANGES:
        cells = []
        for name in PLANTED_IN:
            group = [x for x in result if (x.table, x.change) == (name, change)]
            cells.append(f"{sum(x.any for x in group)}/{len(group)}" if group else "")
        group = [x for x in result if x.change == change]
        cells.append(f"{sum(x.distance for x in group)}/{len(group)}")
        lines.append(f"| {change} | {' | '.join(cells)} |")
    return lines


FLAGS: Final = ("distance", "size", "base", "any")


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--short", type=float, default=1.0)
    options = parser.parse_args()
    result = measured(options.pairs, options.planted, options.short)
    for one in result:
        if one.change == "none" and one.any:
            print(one)
    print("\n".join(page_tables(result)))


if __name__ == "__main__":
    main()
