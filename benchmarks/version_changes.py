"""How often a comparison of two versions alarms without a change, and what it sees.

``python -m benchmarks.version_changes [--seeds A B] [--rows N ...] [--learners ...]``
adds outcomes to ``version_changes.csv`` beside this file, a line for each pair, and
prints the counts; ``--table`` prints them alone. What is in the file stays as it is.

Two tables of a known law train two versions. Eight columns: five normal ones, whose
correlation is 0.3, with effects 1, 0.8, 0.6, 0.4 and 0.2; b (20 % ones, 2.5), r (3 %
ones, 1), and one without effect; x2 and x3 have an interaction of 0.3. Outcomes have
noise of 1, or are classes with these log-odds. In the new table one thing is another:

=========== =======================================================================
none        nothing
effect      the effect of x0, times the size
flips       the share of labels of rows with b = 1 that are flipped; classes alone
interaction of x3 and x4, by the size, which was none
rare        the effect of r, times the size
in f        the effect of x0 in the fitted model itself, times the size: no new table
shift       of groups under one model, of x1 in the second group
=========== =======================================================================

Sizes of tables were chosen on other seeds, from 10,000: classes, which say less each,
need more rows for the same power. With ``--rows 1000`` it is counted for small tables.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

import propopt as po


OUTCOMES = Path(__file__).with_suffix(".csv")

EFFECTS = {"x0": 1.0, "x1": 0.8, "x2": 0.6, "x3": 0.4, "x4": 0.2}
EFFECTS |= {"b": 2.5, "r": 1.0, "no": 0.0}

SIZES: dict[str, tuple[float, ...]] = {
    "effect": (1.1, 1.2, 1.4, 1.6, 2.0),
    "flips": (0.05, 0.1, 0.2, 0.3, 0.4),
    "interaction": (0.1, 0.2, 0.4, 0.6, 1.0),
    "rare": (1.5, 2.0, 3.0, 5.0, 8.0),
    "in f": (1.2, 1.6, 3.0),
    "shift": (0.2, 0.4, 0.6, 0.8, 1.0),
}

PLANTED = {"effect": "x0", "flips": "b", "interaction": "x3 x4", "rare": "r"}
PLANTED |= {"in f": "x0", "shift": "x1"}

N_EXPLAINED = N_BACKGROUND = 60

Fit = Callable[..., Any]


def _trees(kind: str) -> Fit:
    import lightgbm

    cls = {"value": lightgbm.LGBMRegressor, "class": lightgbm.LGBMClassifier}[kind]
    how: dict[str, Any] = {"n_estimators": 50, "num_leaves": 6, "n_jobs": 1}
    how |= {"subsample": 0.8, "subsample_freq": 1, "random_state": 0, "verbose": -1}
    return cls(**how)


LEARNERS: dict[str, Callable[[], Any]] = {
    "linear": LinearRegression,
    "logistic": lambda: LogisticRegression(max_iter=1000),
    "trees": lambda: _trees("value"),
    "trees of classes": lambda: _trees("class"),
}
OF_CLASSES = ("logistic", "trees of classes")
ROWS = {"linear": 2000, "logistic": 6000, "trees": 2000, "trees of classes": 6000}
"""The number of rows of a table, by learner."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one comparison; its first six fields identify it."""

    learner: str
    rows: int
    change: str
    size: float
    level: str
    seed: int
    flagged: str  # names, the farthest apart first
    largest: float  # the largest distance in levels

    @property
    def key(self) -> tuple[str, ...]:
        """Which comparison it is."""
        return tuple(map(str, list(asdict(self).values())[:6]))


def table(
    rng: np.random.Generator,
    n: int,
    classes: bool,
    change: str = "none",
    size: float = 0,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """X and y of n rows, by a law of which one thing may be another."""
    shared = rng.normal(size=(n, 1))
    X = pd.DataFrame(
        np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=(n, 5)),
        columns=list(EFFECTS)[:5],
    )
    X["b"], X["r"] = (rng.random((2, n)) < [[0.2], [0.03]]).astype(float)
    X["no"] = rng.normal(size=n)
    if change == "shift":
        X["x1"] += size
    effects = dict(EFFECTS)
    if change in ("effect", "rare"):
        effects[PLANTED[change]] *= size
    score = X.to_numpy() @ np.array([*effects.values()]) + 0.3 * X["x2"] * X["x3"]
    if change == "interaction":
        score += size * X["x3"] * X["x4"]
    if not classes:
        return X, (score + rng.normal(size=n)).to_numpy()
    y = rng.random(n) < expit(score - 1.0)
    if change == "flips":
        y = y ^ ((X["b"] == 1.0) & (rng.random(n) < size))
    return X, y.to_numpy().astype(int)


@dataclass(frozen=True)
class Study:
    """An old table and its level, and new versions of what it trains."""

    learner: str
    rows: int
    seed: int

    def outcomes(self, done: set[tuple[str, ...]]) -> Iterator[Outcome]:
        """Those of all changes and levels that are not done."""
        todo = [
            (change, size)
            for change, size in self.changes
            if self._blank(change, size, "split_half_refits").key not in done
        ]
        levels = {"split_half_refits"} if todo else set()
        levels |= {
            level
            for level in self.other_levels
            if self._blank("none", 0.0, level).key not in done
        }
        if not levels:
            return
        rng = np.random.default_rng([self.seed, self.rows])
        X, y = table(rng, self.rows, self.classes)
        explained, _ = table(rng, N_EXPLAINED, self.classes)
        how: dict[str, Any] = {"data": X[:N_BACKGROUND], "robustness": 1.0}
        how["output"] = self.output
        old = self.estimator.fit(X, y)
        made = {
            "split_half_refits": lambda: po.null_models.split_half_refits(
                self.estimator, X, y, rng=self.seed
            ),
            "bootstrap_refits": lambda: po.null_models.NullModels(
                "bootstrap_refits",
                po.null_models.bootstrap_refits(
                    self.estimator, X, y, times=5, rng=self.seed
                ),
            ),
            "seed_refits": lambda: po.null_models.seed_refits(self.estimator, X, y),
        }
        null = {
            level: po.compare(
                old, self.fitted("none", 0.0), explained, level=made[level](), **how
            )
            for level in sorted(levels)
        }
        for level, result in null.items():
            if ("none", 0.0) in todo or level != "split_half_refits":
                yield self._filled("none", 0.0, level, result)
        for change, size in todo:
            if change != "none":
                new = self.fitted(change, size, old)
                result = po.compare(old, new, explained, **how)
                levelled = replace(result, level=null["split_half_refits"].level)
                yield self._filled(change, size, "split_half_refits", levelled)

    def groups(self, done: set[tuple[str, ...]]) -> Iterator[Outcome]:
        """Two groups of 100 rows under one model, alike and shifted."""
        rng, model = np.random.default_rng([self.seed, self.rows, 7]), None
        for change, size in [("none", 0.0), *[("shift", s) for s in SIZES["shift"]]]:
            draws = rng.spawn(2)
            if self._blank(change, size, "permutations").key in done:
                continue
            if model is None:
                training = np.random.default_rng([self.seed, self.rows])
                X, y = table(training, self.rows, self.classes)
                model = self.estimator.fit(X, y)
            pair = [table(draws[0], 100, False)[0]]
            pair.append(table(draws[1], 100, False, change, size)[0])
            how = {"data": X[:N_BACKGROUND], "output": self.output}
            result = po.compare(model, rows=pair, n_permutations=199, **how)
            yield self._filled(change, size, "permutations", result)

    @property
    def classes(self) -> bool:
        """Whether outcomes are classes."""
        return self.learner in OF_CLASSES

    @property
    def output(self) -> Any:
        """What is explained: of classes the sum that is their log-odds."""
        kinds = {"logistic": "log_odds", "trees of classes": "margin"}
        return kinds.get(self.learner, "auto")

    @property
    def estimator(self) -> Any:
        """Not fitted."""
        return LEARNERS[self.learner]()

    @property
    def changes(self) -> list[tuple[str, float]]:
        """What is planted, by the first seeds, and none, by all."""
        planted = [
            (change, size)
            for change in ("effect", "flips", "interaction", "rare", "in f")
            for size in SIZES[change]
            if self.seed % 1000 < (50 if self.is_strong(change, size) else 25)
            if (change != "flips" or self.classes)
        ]
        return [("none", 0.0), *planted]

    @staticmethod
    def is_strong(change: str, size: float) -> bool:
        """Those that have to be seen, of which more are counted."""
        return change == "in f" or (change, size) in (("effect", 1.6), ("flips", 0.4))

    @property
    def other_levels(self) -> list[str]:
        """Beside split_half_refits, of tables without a change."""
        return [
            "bootstrap_refits",
            *(["seed_refits"] if "trees" in self.learner else []),
        ]

    def fitted(self, change: str, size: float, old: Any = None) -> Any:
        """The new version: of another table, or of the old model."""
        if change == "in f":
            part = LinearRegression().fit(*table(np.random.default_rng(0), 20, False))
            part.intercept_ = 0.0
            part.coef_ = np.where(np.array([*EFFECTS]) == "x0", 1.0, 0.0)
            beta = size - 1.0
            X, _ = table(np.random.default_rng(0), 20, False)
            return po.wrap(old, output=self.output, data=X) + beta * po.wrap(
                part, data=X
            )
        place = (
            [*SIZES].index(change) + 1 if change in SIZES else 99
        )  # zeros at the end are no seed
        draws = np.random.default_rng([self.seed, self.rows, place, int(100 * size)])
        X, y = table(draws, self.rows, self.classes, change, size)
        estimator = self.estimator
        if "trees" in self.learner:
            estimator.set_params(random_state=self.seed + 1)
        return estimator.fit(X, y)

    def _blank(self, change: str, size: float, level: str) -> Outcome:
        key = (self.learner, self.rows, change, size, level, self.seed)
        return Outcome(*key, flagged="", largest=0.0)

    def _filled(
        self, change: str, size: float, level: str, result: po.results.Comparison
    ) -> Outcome:
        order = np.argsort(-result.distances)
        names = [result.features[j] for j in order if result.distance_flagged[j]]
        blank = self._blank(change, size, level)
        largest = round(float(result.times_level.max()), 4)
        return replace(blank, flagged=" ".join(names), largest=largest)


def read() -> pd.DataFrame:
    """The outcomes that are there."""
    names = [field.name for field in fields(Outcome)]
    if not OUTCOMES.exists():
        return pd.DataFrame(columns=names)
    return pd.read_csv(OUTCOMES, keep_default_na=False)


def counts(outcomes: pd.DataFrame) -> pd.DataFrame:
    """By learner, rows, change, size and level: pairs, alarms, and what was named."""
    rows = []
    names = ["learner", "rows", "change", "size", "level"]
    for key, group in outcomes.groupby(names, sort=True):
        planted = PLANTED.get(str(key[2]), "").split()
        flagged = [str(text).split() for text in group["flagged"]]
        rows.append(
            [
                *key,
                len(group),
                sum(bool(x) for x in flagged),
                sum(x[:1] != [] and x[0] in planted for x in flagged),
                sum(bool({*x} - {*planted}) for x in flagged),
            ]
        )
    return pd.DataFrame(rows, columns=[*names, "pairs", "alarms", "planted", "others"])


def page_tables(outcomes: pd.DataFrame) -> list[str]:
    """What ``background/version_changes.md`` has: false alarms, then what was seen."""
    every, lines = counts(outcomes), []
    for small, none in ((s, x) for s in (False, True) for x in (True, False)):
        group = every[(every["rows"] <= 1000) == small]
        group = group[(group["change"] == "none") == none]
        noun = "level" if none else "change | size"
        lines += [f"| {noun} | {' | '.join(LEARNERS)} |"]
        lines += [f"|---{'' if none else '|---:'}{'|---:' * len(LEARNERS)}|"]
        keys = ["level"] if none else ["change", "size"]
        for key, some in group.groupby(keys, sort=True):
            result = some.set_index("learner")
            cells = [
                _cell(result.loc[x], none) if x in result.index else ""
                for x in LEARNERS
            ]
            lines.append(f"| {' | '.join(map(str, (*key, *cells)))} |")
        lines.append("")
    return lines


def _cell(result: Any, none: bool) -> str:
    """Alarms of pairs; or how often what was planted came first, and alarms beside."""
    if none:
        return f"{result['alarms']}/{result['pairs']}"
    others = f" ({result['others']})" if result["others"] else ""
    return f"{result['planted']}/{result['pairs']}{others}"


def main() -> None:
    """Go on with what is not done, and print counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 100])
    parser.add_argument("--rows", type=int, nargs="+", default=[0])
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--table", action="store_true", help="count alone")
    parser.add_argument("--output", type=Path, default=OUTCOMES)
    options = parser.parse_args()
    globals()["OUTCOMES"] = options.output
    if not options.table:
        seeds = range(*options.seeds)
        done = {tuple(map(str, group[:6])) for group in read().to_numpy().tolist()}
        for seed, n, learner in itertools.product(
            seeds, options.rows, options.learners
        ):
            study = Study(learner, n or ROWS[learner], seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = [*study.outcomes(done), *study.groups(done)]
            append(result)
    print("\n".join(page_tables(read())))


def append(result: list[Outcome]) -> None:
    """Add lines, all of one study at once."""
    new = not OUTCOMES.exists()
    with OUTCOMES.open("a", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow([field.name for field in fields(Outcome)])
        writer.writerows(list(asdict(one).values()) for one in result)
        stream.flush()
        os.fsync(stream.fileno())


if __name__ == "__main__":
    main()
