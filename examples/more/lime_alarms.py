"""False alarms of the diagnosis of LIME, and its detection of planted problems.

For linear models of independent columns, the only problem is that the coefficient of a
bin is not a slope: it may have the opposite sign, or be close to zero in a middle bin.
Other findings are false alarms. Each planted case has one problem to detect.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeRegressor

import propopt as po


AGAINST, CANCELS = "sign against the profile", "cancellation by binning"


def normal(rng: np.random.Generator, n_columns: int) -> Any:
    """A table of independent normal numbers."""
    return rng.normal(size=(500, n_columns))


def counts(rng: np.random.Generator, n_columns: int) -> Any:
    """A table of counts, mostly small; every fourth column is binary."""
    means = rng.gamma(1.0, 8.0, (500, n_columns))
    X = rng.poisson(means).astype(float)
    X[:, ::4] = X[:, ::4] > 5.0
    return X


def grades(rng: np.random.Generator, n_columns: int) -> Any:
    """A table of codes from 1 to 2, 3 or 6, in turn."""
    most = np.resize([2, 2, 3, 6], n_columns)
    shares = [rng.dirichlet(np.full(count, 3.0)) for count in most]
    return np.stack([1.0 + rng.choice(len(p), size=500, p=p) for p in shares], axis=1)


def harmless(
    n_rows: int = 20, columns: tuple[int, ...] = (3, 5, 10, 20), table: Any = normal
) -> Any:
    """Findings per row of linear models: false alarms, notes, and two true problems.

    True problems are signs opposite to the slope, and slopes cancelled by bins.
    """
    rows = []
    for D in columns:
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, slopes = table(rng, D), rng.normal(size=D)
            y = X / X.std(axis=0) @ slopes + 0.1 * rng.normal(size=500)
            model = LinearRegression().fit(X, y)
            lime = po.lime.limits(model, X[:n_rows], data=X)
            diagnosis = lime.diagnose(progress=False)
            products = lime.coefficients * model.coef_
            signs = sum(products[i.row, i.column] < 0 for i in diagnosis.of(AGAINST))
            zeros = sum(item.rule == CANCELS for item in diagnosis.findings)
            other = len(diagnosis.findings) - signs - zeros
            rows.append([D, other, len(diagnosis.notes), signs, zeros])
    names = ["columns", "false alarms", "notes", "signs against the slope", "cancelled"]
    result = pd.DataFrame(rows, columns=names).groupby("columns").sum()
    return result / (3 * n_rows)


def planted() -> Any:
    """Whether each rule detects the problem planted for it, with its severity."""
    rows = []
    for rule, label, lime, n_samples in _cases():
        diagnosis = lime.diagnose(n_samples, progress=False)
        items = diagnosis.of(rule)
        severity = items[0].severity if items else np.nan
        named = "note" if items and items[0] in diagnosis.notes else "finding"
        kind = named if items else "nothing"
        rows.append([rule, label, kind, severity, len(diagnosis.findings)])
    names = ["rule", "planted", "named as", "severity", "findings of all rules"]
    return pd.DataFrame(rows, columns=names).set_index("rule")


def _even(n_columns: int, low: float = 0.0, high: float = 1.0) -> Any:
    even = low + (high - low) * (np.arange(400) + 0.5) / 400
    rng = np.random.default_rng(7)
    return np.stack([rng.permutation(even) for _ in range(n_columns)], axis=1)


def _linear(slopes: list[float], X: Any) -> Any:
    model = LinearRegression().fit(X, X @ slopes)
    model.coef_ = np.array(slopes)  # without rounding
    return model


def _product(X: Any) -> Any:
    """A model that equals x1 (x2 - 0.3)."""
    terms = PolynomialFeatures(2, interaction_only=True)
    return make_pipeline(terms, LinearRegression()).fit(X, X[:, 0] * (X[:, 1] - 0.3))


def _at(model: Any, row: list[float], X: Any, **law: Any) -> Any:
    bins = po.lime.TabularLaw.from_data(X, **law)
    return po.lime.limits(model, np.array([row]), bins, data=X)


def _cases() -> Iterator[tuple[str, str, Any, int]]:
    """Cases: rule, planted problem, explanation, and samples of a run."""
    X, two, n = _even(2), _even(2, -10.0, 10.0), 5000
    rises = DecisionTreeRegressor(max_depth=4, monotonic_cst=[1, 0])
    rises.fit(X, X.sum(axis=1))
    yield AGAINST, "a tree that can only rise", _at(rises, [0.4, 0.6], X), n

    bump = np.random.default_rng(3).uniform(-10.0, 10.0, (1000, 2))
    height = np.exp(-0.5 * ((bump - [-3.0, 3.0]) ** 2).sum(axis=1))
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(bump, height)
    below = _at(tree, [-3.0, -2.3], bump, kernel_width=1.0)
    yield "alignment artifact", "a bump next to a flat row", below, n

    fragile = _at(_product(X), [0.1, 0.1], X, kernel_width=0.6)
    yield "bandwidth fragility", "a root close to the width", fragile, n
    five = _at(_linear([5.0, 1.0], two), [0.5, 7.0], two, n_bins=5)
    yield "cancellation by binning", "the middle one of five bins", five, n
    rivals = _even(5)
    close = _at(_linear([5.0, 4.0, 3.0, 2.99, 0.1], rivals), [0.1] * 5, rivals)
    yield "noise", "a slope near 0, a run of 20 samples", close, 20

    narrow = _at(_product(X), [0.9, 0.1], X, kernel_width=0.2)
    yield "weight collapse: ridge", "a narrow kernel", narrow, n
    first = _at(_product(X), [0.99, 0.99], X, kernel_width=0.25)
    yield "weight collapse: first row", "a narrow kernel, 30 samples", first, 30
    many = _even(12)
    twelve = _at(_linear([1.0] * 12, many), [0.1] * 12, many, kernel_width=0.4)
    yield "weight collapse: samples", "a narrow kernel, 12 columns", twelve, n

    centred = _even(2, -1.0, 1.0)
    both = _at(_product(centred), [0.99, 0.99], centred, kernel_width=100.0)
    yield "low fidelity: r2", "a product of centred columns", both, n
    yield "low fidelity: local gap", "the same at its corner", both, n

    slopes = [10.0, -10.0, 0.0]
    normal = _linear(slopes, _even(3, -2.0, 2.0))

    def gaussian(row: list[float], width: float) -> Any:
        law = po.lime.GaussianLaw.of(np.zeros(3), 1.0, width)
        return po.lime.limits(normal, np.array([row]), law)

    yield "switched off", "the width of a zero", gaussian([1.0, 0.432, 0.1], 0.53), n
    low = gaussian([1.0, -1.5, 0.1], 2.0)
    yield "sign opposite to gradient", "a value below the mean", low, n
    alone = gaussian([0.3, 0.3, 0.3], 0.08)
    yield "no samples outside the bin", "a very narrow kernel", alone, n


if __name__ == "__main__":
    for kind in (normal, counts, grades):
        print(f"{kind.__name__}\n{harmless(table=kind).round(2).to_string()}\n")
    cases = planted()
    print(f"\n{cases.round(2).to_string()}")
    named = (cases["named as"] == "finding").sum()
    print(f"\n{named} of {len(cases)} planted cases are findings, the others notes")
