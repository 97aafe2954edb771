"""How often ``po.compare`` alarms without a change, and which planted changes it finds.

``python -m benchmarks.claims versions [--full]`` compares versions on fresh tables of
the populations of :mod:`benchmarks.claims`. ``--full`` adds the outcomes that
``claim_versions.csv`` next to this file lacks: 200 pairs without a change and three
plantings of each change with refits; one of each with pooled divisions. ``python -m
benchmarks.claim_versions`` prints the tables of ``background/version_changes.md``.

The old and the new version are trained on two tables of a population, without a change
or with one:

============== ====================================================================
shuffled       a column is joined to the wrong rows
unit           a column is 60 times as large: seconds for minutes
label noise    10 % of the outcomes are flipped, or exchanged if they are numbers
dropped        a column is constant, so its contributions are 0
duplicated     a fifth of the rows is there ten times
threshold      15 % of the rows leave the upper class, those with its least scores
other features half of the columns are constant
scaled         outcomes are 1.5 times as large
categories     the categories of a column are permuted
subgroup       outcomes are flipped in half of the rows of a subgroup of a fifth
============== ====================================================================

The column is the one with the largest mean size in the old version, among numbers for
unit, and among categories for categories. ``refits`` are 20 bootstrap refits of each
version, and rows of the old table are explained. ``pooled`` are 19 divisions, and rows
of neither table are explained.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

import lightgbm
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from benchmarks.claims import POPULATIONS, Population


OUTCOMES: Final = Path(__file__).with_suffix(".csv")
CASES: Final = [
    (table, kind)
    for table in POPULATIONS
    for kind in ("linear", "trees")
    if (table, kind) != ("categories", "linear")
]
CHANGES: Final = (
    *("shuffled", "unit", "label noise", "dropped", "duplicated"),
    *("threshold", "other features", "scaled", "categories", "subgroup"),
)
OF_COLUMNS: Final = ("shuffled", "unit", "dropped", "categories")
"""Changes of a single column."""

LEVELS: Final = {"refits": (200, 3), "pooled": (len(CASES), 1)}
"""Pairs without a change on record, and how often each change is planted in a case."""

N_EXPLAINED = N_BACKGROUND = 30


def learner(name: str, population: Population) -> Any:
    """Not fitted."""
    if name == "linear":
        linear = LogisticRegression if population.has_classes else LinearRegression
        return make_pipeline(SimpleImputer(), StandardScaler(), linear())
    trees: Any = lightgbm.LGBMRegressor
    if population.has_classes:
        trees = lightgbm.LGBMClassifier
    how = {"n_estimators": 20, "num_leaves": 6, "learning_rate": 0.2, "random_state": 0}
    return trees(min_child_samples=5, n_jobs=1, verbose=-1, **how)


def changed(
    population: Population,
    scored: tuple[pd.DataFrame, Any],
    change: str,
    column: str,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, Any] | None:
    """Rows and outcomes of a table with a change; None where it cannot have it."""
    X, score = scored[0].copy(), scored[1]
    y = population.outcomes(score)
    n = len(y)
    match change:
        case "shuffled":
            X[column] = X[column].iloc[rng.permutation(n)].array
        case "unit":
            X[column] *= 60.0
        case "label noise":
            part = rng.choice(n, n // 10, replace=False)
            y = np.array(y)
            y[part] = (
                1 - y[part] if population.has_classes else rng.permutation(y[part])
            )
        case "dropped":
            X[column] = _constant(X[column])
        case "duplicated":
            part = rng.choice(n, n // 5, replace=False)
            places = np.concatenate([np.arange(n), *[part] * 9])
            return X.iloc[places].reset_index(drop=True), y[places]
        case "threshold":
            if not population.has_classes:
                return None
            lower = np.mean(score <= 0.0) + 0.15
            y = population.outcomes(score, np.quantile(score, lower))
        case "other features":
            for lost in [x for x in X.columns if x != column][: X.shape[1] // 2]:
                X[lost] = _constant(X[lost])
        case "scaled":
            if population.has_classes:
                return None
            y = 1.5 * y
        case "categories":
            if not column:
                return None
            values = X[column].cat.categories
            order = dict(zip(values, rng.permutation(values), strict=True))
            X[column] = X[column].map(order).astype(X[column].dtype)
        case "subgroup":
            first = X.iloc[:, 0]
            group = (first >= first.quantile(0.8)) & (rng.random(n) < 0.5)
            flipped = (1 if population.has_classes else 2.0 * y.mean()) - y
            y = np.where(group, flipped, y)
    return X, y


def _constant(column: pd.Series[Any]) -> Any:
    """Its mean, or its most frequent category."""
    if column.dtype == "category":
        return pd.Categorical([column.mode()[0]] * len(column), column.cat.categories)
    return column.mean()


@dataclass(frozen=True)
class Outcome:
    """The outcome of one comparison; its first five fields identify it."""

    level: str
    table: str
    learner: str
    change: str
    seed: int
    column: str  # the changed one
    flagged: str  # names, and "sum" and "base"


def outcomes(
    level: str, name: str, kind: str, seed: int, planted: bool
) -> Iterator[Outcome]:
    """Two tables of a population: no change, and each that is planted."""
    rng = np.random.default_rng([seed, len(kind)])
    population = POPULATIONS[name]
    X, y = population.table(seed, 0)
    new = population.scored(seed, 1)
    model = learner(kind, population)
    output: Any = "auto"
    if population.has_classes:
        output = "log_odds" if kind == "linear" else "margin"
    rows = X[-N_EXPLAINED:]
    if level == "pooled":
        rows = population.table(seed, 2)[0][:N_EXPLAINED]

    def explained(fitted: Any) -> Any:
        function = po.wrap(fitted, data=X, output=output)
        shap = po.explainers.ExactShap(data=X[:N_BACKGROUND])
        return shap.explain(function, rows)

    def refits(*table: Any) -> list[Any]:
        made = po.null_models.bootstrap_refits
        return [*map(explained, made(model, *table, times=20, rng=seed))]

    def pooled(*table: Any) -> Any:
        divided = po.null_models.pooled_refits(model, (X, y), table, rng=seed)
        versions = ([*map(explained, x)] for x in (divided.old, divided.new))
        return po.null_models.PooledRefits(*versions)

    before = explained(clone(model).fit(X, y))
    of_old = refits(X, y) if level == "refits" else None
    for change in ("none", *(CHANGES if planted else ())):
        column = _column(before, X, change)
        table = changed(population, new, change, column, rng)
        if table is not None:
            null = pooled(*table) if of_old is None else (of_old, refits(*table))
            after = explained(clone(model).fit(*table))
            result = po.compare(before, after, level=null)
            flags = [*result.flagged, result.total_flagged, result.base_flagged]
            names = [*result.features, "sum", "base"]
            flagged = "; ".join(x for x, flag in zip(names, flags, strict=True) if flag)
            yield Outcome(level, name, kind, change, seed, column, flagged)


def _column(explained: Any, X: pd.DataFrame, change: str) -> str:
    """The column to change: the largest, the largest number, or with categories."""
    sizes = pd.Series(np.abs(explained.attributions).mean(axis=0), X.columns)
    kinds = {"categories": "category", "unit": "number"}
    if change in kinds:
        sizes = sizes[list(X.select_dtypes(kinds[change]))]
    return str(sizes.idxmax()) if len(sizes) else ""


# ---- Outcomes on record, and the tables of the page


def read() -> pd.DataFrame:
    """The outcomes on record."""
    return pd.read_csv(OUTCOMES, keep_default_na=False)


def measure(level: str) -> None:
    """Add the outcomes that are not on record."""
    names = [x.name for x in fields(Outcome)]
    if not OUTCOMES.exists():
        OUTCOMES.write_text(",".join(names) + "\n")
    done = {tuple(row) for row in read()[names[:5]].astype(str).to_numpy()}
    pairs, planted = LEVELS[level]
    for number in range(pairs):
        seed, place = divmod(number, len(CASES))
        key = (level, *CASES[place])
        changes = seed < planted
        last = "subgroup" if changes else "none"
        if (*key, last, str(seed)) not in done:
            found = [*map(astuple, outcomes(*key, seed, changes))]
            with OUTCOMES.open("a", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(found)


def tables(found: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Alarms without a change, and changes that are found: counts of pairs, as text."""
    found = found.assign(case=found["table"] + ", " + found["learner"])
    found["any"] = found["flagged"] != ""
    pairs = zip(found["column"], found["flagged"], strict=True)
    found["right"] = [column in flags.split("; ") for column, flags in pairs]
    levels = {level: found[found["level"] == level] for level in LEVELS}
    alarms = {k: _cells(x[x["change"] == "none"]) for k, x in levels.items()}
    power = {}
    for change in (*CHANGES, "all"):
        refits, pooled = (
            x[(x["change"] != "none") if change == "all" else (x["change"] == change)]
            for x in levels.values()
        )
        column = _share(refits.loc[refits["change"].isin(OF_COLUMNS), "right"])
        cells = {"its column": column, "pooled, all": _share(pooled["any"])}
        power[change] = _cells(refits) | cells
    frames = {"without a change": alarms, "change": power}
    return {k: pd.DataFrame.from_dict(x, orient="index") for k, x in frames.items()}


def page_tables(found: pd.DataFrame) -> list[str]:
    """The lines of both tables in Markdown."""
    lines = []
    for name, table in tables(found).items():
        lines += [
            f"| {name} | {' | '.join(table)} |",
            f"|---{'|---:' * table.shape[1]}|",
        ]
        lines += [f"| {k} | {' | '.join(row)} |" for k, row in table.T.items()]
        lines.append("")
    return lines


def claims(full: bool = False) -> dict[str, pd.DataFrame]:
    """The tables of all pairs on record if ``full``, else of a fresh one a case."""
    warnings.simplefilter("ignore")
    if full:
        for level in LEVELS:
            measure(level)
        return tables(read())
    fresh = (outcomes("refits", *case, 1000, False) for case in CASES)
    return tables(pd.DataFrame(asdict(x) for found in fresh for x in found))


def _cells(found: pd.DataFrame) -> dict[str, str]:
    """Flagged ones of all pairs, by case and together."""
    cases = [f"{table}, {kind}" for table, kind in CASES]
    cells = {case: _share(found.loc[found["case"] == case, "any"]) for case in cases}
    return cells | {"all": _share(found["any"])}


def _share(flags: pd.Series[Any]) -> str:
    return f"{flags.sum()}/{len(flags)}" if len(flags) else ""


if __name__ == "__main__":
    print("\n".join(page_tables(read())))
