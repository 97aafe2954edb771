"""How often ``po.compare`` alarms without a change, and which planted changes it finds.

``python -m benchmarks.claim_versions [--pairs 200] [--planted 5] [--level refits]``
adds outcomes to ``claim_versions.csv`` next to this file, and prints the tables of
``background/version_changes.md``; ``--pairs 0`` only prints.

A table is split in two at random. The old version is trained on one half, the new one
on the other half, without a change or with one:

============== ====================================================================
shuffled       a column is joined to the wrong rows
unit           a column is 60 times as large: seconds for minutes
label noise    10 % of the outcomes are flipped, or exchanged if they are numbers
dropped        a column is constant, so its contributions are 0
duplicated     a fifth of the rows is there ten times
threshold      the least outcome of the upper class is the 65 % quantile, not the 50 %
other features half of the columns are constant
scaled         outcomes are 1.5 times as large
categories     the codes of a column are permuted
subgroup       outcomes are flipped in half of the rows of a subgroup of a fifth
============== ====================================================================

The column is the one with the largest mean size in the old version, except for unit (a
number) and categories. ``--level refits`` has 20 bootstrap refits of each version and
explains rows of the old table. ``--level pooled`` has 19 divisions, and explains rows
of neither table.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

import lightgbm
import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


OUTCOMES: Final = Path(__file__).with_suffix(".csv")
ROWS: Final = {"numbers": 2000, "classes": 2000, "zones": 1400}
"""Rows of synthetic tables; each version has half of them."""
TABLES: Final = (*ROWS, "diabetes", "cancer")
CASES: Final = [
    (table, kind)
    for table in TABLES
    for kind in ("linear", "trees")
    if (table, kind) != ("zones", "linear")
]
CHANGES: Final = (
    *("shuffled", "unit", "label noise", "dropped", "duplicated"),
    *("threshold", "other features", "scaled", "categories", "subgroup"),
)
LEVELS: Final = ("refits", "pooled")
CODES: Final = ("code", "zone", "sex")
N_EXPLAINED = N_BACKGROUND = 30


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
    load = {"diabetes": datasets.load_diabetes, "cancer": datasets.load_breast_cancer}
    result = load[name](as_frame=True)
    y = result.target.to_numpy(dtype=float)
    if name == "diabetes":
        return Table(result.data, y / 50.0)
    return Table(result.data.iloc[:, :10], y)


def synthetic(name: str, rng: np.random.Generator) -> Table:
    """Numbers and codes; in zones also categories with few rows each."""
    n = ROWS[name]
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x0", "x1", "x2", "no"])
    X["x1"] = 0.5 * X["x0"] + np.sqrt(0.75) * X["x1"]
    if name == "zones":
        score = 0.6 * X["x0"] + 0.4 * X["x2"]
        # a fifth of the rows is in zones other than the first: some 137 of a version,
        # above LightGBM's min_data_per_group of 100, and below it in halves
        laws = {"zone": [0.8, *[0.2 / 6] * 6], "kind": [1 / 9] * 9, "id": [1 / 9] * 9}
        for column, law in laws.items():
            codes = rng.choice(len(law), n, p=law)
            levels = [f"{column}{k}" for k in range(len(law))]
            X[column] = pd.Categorical.from_codes(codes, levels)
            effect = {"zone": [0.0, *[2.0] * 6], "kind": np.linspace(-1, 1, 9)}
            score += np.asarray(effect.get(column, [0.0] * 9))[codes]
        return Table(X, (score + rng.normal(size=n)).to_numpy())
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
    how: dict[str, Any] = {
        "n_estimators": 20,
        "num_leaves": 6,
        "learning_rate": 0.2,
        "random_state": 0,
    }
    return cls(min_child_samples=5, n_jobs=1, verbose=-1, **how)


def changed(
    table: Table, change: str, column: str, rng: np.random.Generator
) -> Table | None:
    """The new table with a change; None where it cannot have it."""
    X, y, n = table.X.copy(), table.y.copy(), len(table.y)
    match change:
        case "shuffled":
            X[column] = X[column].to_numpy()[rng.permutation(n)]
            X = X.astype(table.X.dtypes)
        case "unit":
            X[column] *= 60.0
        case "label noise":
            part = rng.choice(n, n // 10, replace=False)
            y[part] = 1.0 - y[part] if table.is_classes else rng.permutation(y[part])
        case "dropped":
            X[column] = _constant(X[column])
        case "duplicated":
            part = rng.choice(n, n // 5, replace=False)
            return table.rows(np.concatenate([np.arange(n), *[part] * 9]))
        case "threshold":
            if table.score is None:
                return None
            y = (table.score > np.quantile(table.score, 0.65)).astype(float)
        case "other features":
            for lost in [x for x in X.columns if x != column][: X.shape[1] // 2]:
                X[lost] = _constant(X[lost])
        case "scaled":
            if table.is_classes:
                return None
            y = 1.5 * y
        case "categories":
            if not column:
                return None
            values = np.unique(X[column])
            order = dict(zip(values, rng.permutation(values), strict=True))
            X[column] = X[column].map(order).astype(table.X[column].dtype)
        case "subgroup":
            first = X["b"] if "b" in X else X.iloc[:, 0]
            group = (first >= np.quantile(first, 0.8)) & (rng.random(n) < 0.5)
            y = np.where(group, (1.0 if table.is_classes else 2.0 * y.mean()) - y, y)
    return Table(X, y)


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
    """One split of a table: no change, and each that is planted."""
    rng = np.random.default_rng([seed, TABLES.index(name), len(kind)])
    whole = synthetic(name, rng) if name in ROWS else bundled(name)
    order = rng.permutation(len(whole.y))
    outside = whole.rows(order[:N_EXPLAINED]).X
    order = order[N_EXPLAINED:]
    half = len(order) // 2
    old = whole.rows(order[:half])
    new = whole.rows(order[half:])
    model = learner(kind, old.is_classes)
    output: Any = "auto"
    if old.is_classes:
        output = "log_odds" if kind == "linear" else "margin"
    rows = old.X[-N_EXPLAINED:] if level == "refits" else outside

    def explained(fitted: Any) -> Any:
        function = po.wrap(fitted, data=old.X, output=output)
        shap = po.explainers.ExactShap(data=old.X[:N_BACKGROUND])
        return shap.explain(function, rows)

    def version(table: Table) -> Any:
        return explained(clone(model).fit(table.X, table.y))

    def refits(table: Table) -> list[Any]:
        made = po.null_models.bootstrap_refits
        return [*map(explained, made(model, table.X, table.y, times=20, rng=seed))]

    def pooled(table: Table) -> Any:
        tables = (old.X, old.y), (table.X, table.y)
        divided = po.null_models.pooled_refits(model, *tables, rng=seed)
        pairs = [(explained(a), explained(b)) for a, b in divided.pairs]
        return po.null_models.PooledRefits(pairs)

    before = version(old)
    of_old = refits(old) if level == "refits" else None
    for change in ("none", *(CHANGES if planted else ())):
        column = _column(before, old.X, change)
        table = new if change == "none" else changed(new, change, column, rng)
        if table is not None:
            null = pooled(table) if of_old is None else (of_old, refits(table))
            result = po.compare(before, version(table), level=null)
            flags = [*result.flagged, result.total_flagged, result.base_flagged]
            names = [*result.features, "sum", "base"]
            flagged = "; ".join(x for x, flag in zip(names, flags, strict=True) if flag)
            yield Outcome(level, name, kind, change, seed, column, flagged)


def _column(explained: Any, X: pd.DataFrame, change: str) -> str:
    """The column to change: the largest, the largest number, or one with codes."""
    sizes = pd.Series(np.abs(explained.attributions).mean(axis=0), X.columns)
    if change == "categories":
        sizes = sizes[[x for x in CODES if x in sizes]]
    elif change == "unit":
        sizes = sizes[list(X.select_dtypes("number"))]
    return str(sizes.idxmax()) if len(sizes) else ""


# ---- Outcomes on record, and the tables of the page


def read() -> pd.DataFrame:
    """The outcomes on record."""
    return pd.read_csv(OUTCOMES, keep_default_na=False)


def measure(level: str, pairs: int, planted: int) -> None:
    """Add the outcomes that are not on record."""
    names = [x.name for x in fields(Outcome)]
    if not OUTCOMES.exists():
        OUTCOMES.write_text(",".join(names) + "\n")
    done = {tuple(row) for row in read()[names[:5]].astype(str).to_numpy()}
    for number in range(pairs):
        seed, place = divmod(number, len(CASES))
        key = (level, *CASES[place])
        changes = seed < planted
        last = "subgroup" if changes else "none"
        if (*key, last, str(seed)) not in done:
            with warnings.catch_warnings(), OUTCOMES.open("a", newline="") as stream:
                warnings.simplefilter("ignore")
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerows(map(astuple, outcomes(*key, seed, changes)))


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


def claims(full: bool) -> dict[str, pd.DataFrame]:
    """The tables of fresh pairs: 200 without a change if ``full``, else one a case."""
    found = []
    for number in range(200 if full else len(CASES)):
        seed, place = divmod(number, len(CASES))
        how = (1000 + seed, full and seed < 3)
        found += [asdict(x) for x in outcomes("refits", *CASES[place], *how)]
    return tables(pd.DataFrame(found))


OF_COLUMNS: Final = ("shuffled", "unit", "dropped", "categories")
"""Changes of a single column."""


def _cells(found: pd.DataFrame) -> dict[str, str]:
    """Flagged ones of all pairs, by case and together."""
    cases = [f"{table}, {kind}" for table, kind in CASES]
    cells = {case: _share(found.loc[found["case"] == case, "any"]) for case in cases}
    return cells | {"all": _share(found["any"])}


def _share(flags: pd.Series[Any]) -> str:
    return f"{flags.sum()}/{len(flags)}" if len(flags) else ""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--planted", type=int, default=5)
    parser.add_argument("--level", choices=LEVELS, default="refits")
    options = parser.parse_args()
    measure(options.level, options.pairs, options.planted)
    print("\n".join(page_tables(read())))


if __name__ == "__main__":
    main()
