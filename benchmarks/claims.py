"""What the package says, held against populations from which fresh tables are drawn.

``python -m benchmarks.claims [--full] [CASE ...]`` prints the tables of the cases, each
of which is a chapter ``benchmarks/claim_<case>.py`` with a function ``claims``. Four
populations are shared; each table has columns without effect, named ``unused``:

=========== =======================================================================
categories  2,000 applicants: classes, eight columns with categories of 2 to 12 levels
missing     1,200 patients: classes, a fifth to a half of three columns is missing
correlated  1,500 customers: a number, twelve columns of three factors, r about .9
few         300 patients: classes, ten columns, of which four have an effect
=========== =======================================================================
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import logit


Rng: TypeAlias = np.random.Generator
Drawn: TypeAlias = tuple[pd.DataFrame, Any]

CASES: Final = ("mixtures", "refits", "audits", "versions")


# ---- Populations


@dataclass(frozen=True)
class Population:
    """A population of rows and scores, and the number of rows of a table of it."""

    draw: Callable[[Rng, int], Drawn]
    n_rows: int
    has_classes: bool = True

    def scored(self, *seed: int) -> Drawn:
        """A table of rows and scores."""
        return self.draw(np.random.default_rng(seed), self.n_rows)

    def outcomes(self, score: Any, threshold: float = 0.0) -> Any:
        """The classes, 1 above the threshold, or else the scores themselves."""
        return (score > threshold).astype(int) if self.has_classes else score

    def table(self, *seed: int) -> Drawn:
        """A table of rows and outcomes."""
        X, score = self.scored(*seed)
        return X, self.outcomes(score)


def _categories(rng: Rng, n: int) -> Drawn:
    def levels(count: int, power: float = 0.7) -> Any:
        p = 1.0 / np.arange(1, count + 1) ** power
        return rng.choice(count, n, p=p / p.sum())

    codes = {"housing": 3, "purpose": 8, "job": 5, "region": 12, "phone": 2}
    values = {name: levels(count) for name, count in codes.items()}
    values |= {"unused branch": levels(6), "unused weekday": levels(5, 0.0)}
    values["history"] = np.clip(values["job"] // 2 + rng.integers(0, 3, n), 0, 4)
    months = rng.gamma(3.0, 8.0, n).round()
    amount = np.exp(rng.normal(7.5, 0.8, n) + months / 60.0).round()
    age = rng.integers(19, 75, n)
    risk = np.array([0.0, 0.5, 0.9])[values["housing"]]
    risk = risk + np.linspace(0.8, -0.8, 8)[values["purpose"]]
    risk = risk - 0.5 * values["history"] + 0.03 * months - 0.015 * age
    risk = risk + 0.7 * (np.log(amount) - 8.0) * (values["purpose"] < 3) - 0.4
    table = {"months": months, "amount": amount, "age": age}
    table |= {name: pd.Categorical(_words(name, x)) for name, x in values.items()}
    return pd.DataFrame(table), risk - logit(rng.random(n))


def _words(name: str, codes: Any) -> list[str]:
    return [f"{name} {code}" for code in codes]


def _missing(rng: Rng, n: int) -> Drawn:
    age = rng.normal(55.0, 14.0, n)
    pressure = 110.0 + 0.4 * age + rng.normal(0.0, 12.0, n)
    sugar = np.exp(rng.normal(4.7, 0.25, n) + 0.002 * age)
    fat = rng.normal(200.0, 35.0, n)
    kidney = 100.0 - 0.6 * age + rng.normal(0.0, 15.0, n)
    noise = rng.normal(size=(2, n))
    risk = 0.05 * (age - 55.0) + 0.03 * (pressure - 132.0) + 2.0 * (sugar > 140.0)
    risk = risk - 0.02 * (kidney - 67.0) + 0.5 * (fat > 240.0) - 0.8
    table = pd.DataFrame(
        {
            "age": age,
            "pressure": pressure,
            "sugar": sugar,
            "fat": fat,
            "kidney": kidney,
            "unused code": noise[0],
            "unused test": noise[1],
        }
    )
    measured = rng.random((3, n)) > np.array([[0.2], [0.3], [0.5]])
    measured[0] |= age > 60.0  # the old are tested
    for name, seen in zip(("sugar", "fat", "unused test"), measured, strict=True):
        table[name] = table[name].where(seen)
    return table, risk - logit(rng.random(n))


def _correlated(rng: Rng, n: int) -> Drawn:
    factors = rng.normal(size=(3, n))
    names = ("calls", "data", "spend")
    table = pd.DataFrame(
        {
            f"{name} {part}": factor + 0.3 * rng.normal(size=n)
            for name, factor in zip(names, factors, strict=True)
            for part in ("day", "night", "weekend")
        }
    )
    for j in range(3):
        table[f"unused {j + 1}"] = factors[j] + 1.2 * rng.normal(size=n)
    score = 2.0 * table["calls day"] + np.abs(table["data night"]) * 1.5
    score = score + table["spend day"] * table["spend weekend"]
    score = score - 0.7 * table["data weekend"] + rng.normal(0.0, 1.5, n)
    return table, score.to_numpy()


def _few(rng: Rng, n: int) -> Drawn:
    markers = rng.normal(size=(6, n))
    markers[1] = 0.7 * markers[0] + 0.7 * markers[1]
    noise = rng.normal(size=(4, n))
    noise[0] = 0.5 * markers[0] + 0.9 * noise[0]
    risk = 1.2 * markers[0] - 0.9 * markers[2] + 0.8 * (markers[3] > 0.5)
    risk = risk + 0.6 * markers[1] - 0.3
    table = {f"marker {j + 1}": x for j, x in enumerate(markers[:4])}
    table |= {f"unused {j + 1}": x for j, x in enumerate([*noise, *markers[4:]])}
    return pd.DataFrame(table), risk - logit(rng.random(n))


POPULATIONS: Final[Mapping[str, Population]] = {
    "categories": Population(_categories, 2_000),
    "missing": Population(_missing, 1_200),
    "correlated": Population(_correlated, 1_500, has_classes=False),
    "few": Population(_few, 300),
}


# ---- The runner


def main() -> None:
    """Print the tables of the cases named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--full", action="store_true", help="all tables, hours")
    options = parser.parse_args()
    for case in options.cases or CASES:
        if case not in CASES:
            parser.error(f"no case is called {case}; there are {', '.join(CASES)}")
        chapter = import_module(f"benchmarks.claim_{case}")
        for name, table in chapter.claims(options.full).items():
            print(f"\n{case}: {name}\n\n{table.round(3).to_string()}", flush=True)


if __name__ == "__main__":
    main()
