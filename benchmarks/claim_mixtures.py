"""Which relations between columns are found, true ones and false ones.

``python -m benchmarks.claims mixtures [--full]``. ``--full`` has all 1,360 tables of
independent columns, else 200 of them, and 20 tables for each structure, else 5.

============= =====================================================================
independent   tables in which a pair, a nesting, a relation or a group is found, of
              tables of 5 to 100 independent columns with twelve kinds of marginals
structures    tables in which a structure of two to five columns is found among 28
              harmless columns, and in which a harmless column is blamed
shares        the share of mixtures never seen of two correlated columns beside
              harmless ones, and the true share
signs         on the populations of :mod:`benchmarks.claims`: the share of clear signs
              that the sums of groups withdraw, and how often signs recur in models of
              fresh tables
============= =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

import propopt as po
from benchmarks.claims import POPULATIONS
from propopt.base.text import Reason
from propopt.laws.mixtures import Mixtures


Rng: TypeAlias = np.random.Generator
Table: TypeAlias = tuple[list[Any], list[bool]]  # columns, and which are categories

SIZES: Final = (200, 500, 1_000, 5_000, 20_000)
COLUMNS: Final = (5, 15, 40, 100)
PER_SIZE: Final = {False: 10, True: 68}  # 200 tables, or 1,360


# ---- Independent columns


def _zipf(rng: Rng, n: int, levels: int) -> Any:
    p = 1.0 / np.arange(1, levels + 1)
    return rng.choice(levels, n, p=p / p.sum()).astype(float)


def _with_gaps(rng: Rng, n: int) -> Any:
    return np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))


MARGINALS: Final[dict[str, tuple[Callable[[Rng, int], Any], bool]]] = {
    "normal": (lambda rng, n: rng.normal(size=n), False),
    "lognormal": (lambda rng, n: rng.lognormal(sigma=2.0, size=n), False),
    "cauchy": (lambda rng, n: rng.standard_cauchy(n), False),
    "uniform": (lambda rng, n: rng.random(n), False),
    "counts": (lambda rng, n: rng.poisson(1.0, n).astype(float), False),
    "half zero": (
        lambda rng, n: rng.exponential(size=n) * rng.integers(2, size=n),
        False,
    ),
    "ages": (lambda rng, n: rng.integers(18, 90, n).astype(float), False),
    "rare flag": (lambda rng, n: (rng.random(n) < 0.05).astype(float), False),
    "missing": (_with_gaps, False),
    "flag": (lambda rng, n: rng.integers(2, size=n).astype(float), True),
    "six levels": (lambda rng, n: _zipf(rng, n, 6), True),
    "sixty levels": (lambda rng, n: _zipf(rng, n, 60), True),
}
"""Kinds of columns, and whether they are categories."""


def independent(rng: Rng, n: int, kinds: list[str]) -> Table:
    """Independent columns of some kinds."""
    makers = [MARGINALS[kind] for kind in kinds]
    return [make(rng, n) for make, _ in makers], [
        is_category for _, is_category in makers
    ]


def mixtures_of(table: Table) -> Mixtures:
    """The mixtures of a table."""
    columns, is_category = table
    found = Mixtures.of(np.column_stack(columns), np.array(is_category))
    assert not isinstance(found, Reason), found
    return found


def false_relations(full: bool = False) -> pd.DataFrame:
    """Tables of independent columns in which something is found, by their size."""
    names = list(MARGINALS)
    lines = []
    for n in SIZES:
        for D in COLUMNS:
            rng = np.random.default_rng([n, D])
            count = PER_SIZE[full]
            found = 0
            for t in range(count):
                # of one kind each, and as many of mixed kinds
                one = [names[t // 2 % len(names)]] * D
                kinds = one if t % 2 else rng.choice(names, D).tolist()
                seen = mixtures_of(independent(rng, n, kinds))
                found += bool(
                    seen.void.any() or seen.nestings or seen.relations or seen.groups()
                )
            lines.append({"rows": n, "columns": D, "tables": count, "false": found})
    return pd.DataFrame(lines)


# ---- Structures among harmless columns


def _correlated(r: float) -> Callable[[Rng, int], Table]:
    def columns(rng: Rng, n: int) -> Table:
        z = rng.normal(size=n)
        return [z, r * z + np.sqrt(1.0 - r * r) * rng.normal(size=n)], [False, False]

    return columns


def _squared(rng: Rng, n: int) -> Table:
    z = rng.normal(size=n)
    return [z, z**2 + 0.1 * rng.normal(size=n)], [False, False]


def _circle(rng: Rng, n: int) -> Table:
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return [np.cos(angle), np.sin(angle) + 0.05 * rng.normal(size=n)], [False, False]


def _duplicate(rng: Rng, n: int) -> Table:
    z = rng.lognormal(size=n)
    return [z, z], [False, False]


def _birth_year(rng: Rng, n: int) -> Table:
    age = rng.integers(18, 90, n).astype(float)
    return [age, 2025.0 - age - rng.integers(2, size=n)], [False, False]


def _zip_in_town(rng: Rng, n: int) -> Table:
    code = rng.integers(60, size=n).astype(float)
    return [code, code // 10.0], [True, True]


def _nested(rng: Rng, n: int) -> Table:
    inner = rng.integers(6, size=n).astype(float)
    return [inner, inner // 2.0], [True, True]


def _level_and_number(rng: Rng, n: int) -> Table:
    level = rng.integers(4, size=n).astype(float)
    return [level, 4.0 * level + rng.normal(size=n)], [True, False]


def _missing_together(rng: Rng, n: int) -> Table:
    gaps = rng.random(n) < 0.2
    return [np.where(gaps, np.nan, rng.normal(size=n)) for _ in range(2)], [False] * 2


def _one_hot(rng: Rng, n: int) -> Table:
    level = rng.integers(5, size=n)
    return [(level == k).astype(float) for k in range(5)], [False] * 5


def _ratio(rng: Rng, n: int) -> Table:
    debt, income = rng.lognormal(sigma=0.6, size=(2, n))
    return [debt, income, debt / income], [False] * 3


def _sum(rng: Rng, n: int) -> Table:
    a, b = rng.normal(size=(2, n))
    return [a, b, a + b], [False] * 3


def _body_mass(rng: Rng, n: int) -> Table:
    height = rng.normal(1.7, 0.1, n)
    weight = 22.0 * height**2 * rng.lognormal(sigma=0.15, size=n)
    return [height, weight, weight / height**2], [False] * 3


def _parity(rng: Rng, n: int) -> Table:
    a, b = rng.integers(2, size=(2, n))
    return [a.astype(float), b.astype(float), (a ^ b).astype(float)], [False] * 3


STRUCTURES: Final[dict[str, Callable[[Rng, int], Table]]] = {
    "r = .99": _correlated(0.99),
    "r = .9": _correlated(0.9),
    "r = .7": _correlated(0.7),
    "r = .5": _correlated(0.5),
    "x²": _squared,
    "circle": _circle,
    "duplicate": _duplicate,
    "age, year of birth": _birth_year,
    "postcode in town": _zip_in_town,
    "category in category": _nested,
    "category and number": _level_and_number,
    "missing together": _missing_together,
    "one-hot, 5 levels": _one_hot,
    "debt / income": _ratio,
    "a + b": _sum,
    "body mass index": _body_mass,
    "exclusive or": _parity,
}
"""Columns that are not independent."""


def among_harmless(name: str, n: int, harmless: int, rng: Rng) -> tuple[Table, int]:
    """A structure beside columns of mixed kinds, and its number of columns."""
    columns, is_category = STRUCTURES[name](rng, n)
    kinds = rng.choice(list(MARGINALS), harmless).tolist()
    others, of_others = independent(rng, n, kinds)
    return ([*columns, *others], [*is_category, *of_others]), len(columns)


def found_relations(full: bool = False) -> pd.DataFrame:
    """The shares of tables with each structure found, and with a false one."""
    repeats = 20 if full else 5
    lines = []
    for name in STRUCTURES:
        line: dict[str, Any] = {"structure": name}
        false = 0
        for n in (200, 500, 1_000):
            rng = np.random.default_rng([n, len(lines)])
            found = 0
            for _ in range(repeats):
                table, d = among_harmless(name, n, 28, rng)
                seen = mixtures_of(table)
                causes = [*(x.members for x in seen.relations)]
                causes += [(x.inner, x.outer) for x in seen.nestings]
                causes += np.argwhere(seen.shares > 0.0).tolist()
                found += any(max(cause) < d for cause in causes)
                false += any(max(cause) >= d for cause in causes)
            line[f"n = {n:,}"] = found / repeats
        lines.append(line | {"false": false / (3 * repeats)})
    return pd.DataFrame(lines).set_index("structure")


def shares(full: bool = False) -> pd.DataFrame:
    """The share of mixtures never seen beside harmless columns, and of the pair alone.

    The truth is a share of the mixtures of the pair in which the density of the
    table is below a tenth of that of mixtures: only these can be void.
    """
    lines = []
    for name, harmless in [(x, k) for x in ("r = .99", "r = .9") for k in (0, 28, 98)]:
        values = []
        for seed in range(10 if full else 3):
            rng = np.random.default_rng(seed)
            table, _ = among_harmless(name, 1_000, harmless, rng)
            seen = mixtures_of(table)
            share, _ = seen.never_seen(seen.data, np.arange(harmless + 2))
            values.append(share)
        true = _true_share({"r = .99": 0.99, "r = .9": 0.9}[name], harmless + 2)
        line = {"pair": name, "harmless": harmless, "found": np.mean(values)}
        lines.append(line | {"true": true})
    return pd.DataFrame(lines)


def _true_share(r: float, D: int) -> float:
    """P(a random coalition separates two of D players) P(density ratio < 0.1)."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200_000))
    exponent = (2.0 * r * x * y - r * r * (x * x + y * y)) / (2.0 * (1.0 - r * r))
    ratio = np.exp(np.minimum(exponent, 50.0)) / np.sqrt(1.0 - r * r)
    split = [2.0 * k * (D - k) / (D * (D - 1)) for k in range(1, D)]
    return float(np.mean(split) * np.mean(ratio < 0.1))


# ---- Signs against the sum of their group


def opposed_signs(full: bool = False) -> pd.DataFrame:
    """Clear signs that the rule of groups withdraws, and signs that recur, by table.

    A sign recurs in a model of a fresh table if its Shapley value has it too.
    """
    # the other tables need no learners
    from benchmarks.claim_refits import N_EXPLAINED, N_FRESH, fitted, learners

    lines = []
    for name, population in POPULATIONS.items():
        for seed in range(8 if full else 2):
            X, y = population.table(seed)
            rows = population.table(seed, 1)[0][:N_EXPLAINED]
            learner = learners(name)["boosting"]
            best = po.explain(fitted(learner, X, y, seed), rows, data=X)
            signs = replace(best, together=()).clear().signs
            withdrawn = signs * (best.clear().signs == 0)
            recurs = np.zeros(signs.shape)
            for k in range(N_FRESH):
                other = fitted(learner, *population.table(seed, 2, k), 1_000 + k)
                phi, _ = best.retrained.contributions(other)
                recurs += (np.sign(phi) == signs) / N_FRESH
            lines.append(
                {
                    "population": name,
                    "never seen": best.parameters["mixtures never seen"],
                    "groups": len(best.groups()),
                    "clear": np.count_nonzero(signs),
                    "withdrawn": np.count_nonzero(withdrawn) / np.count_nonzero(signs),
                    "others recur": recurs[(signs != 0) & (withdrawn == 0)].mean(),
                    "withdrawn recur": recurs[withdrawn != 0].mean()
                    if withdrawn.any()
                    else np.nan,
                }
            )
    return pd.DataFrame(lines).groupby("population", sort=False).mean()


def claims(full: bool = False) -> dict[str, pd.DataFrame]:
    """All tables by their names; without ``full`` in some three minutes."""
    return {
        "independent": false_relations(full),
        "structures": found_relations(full),
        "shares": shares(full),
        "signs": opposed_signs(full),
    }
