"""Audits of 60 right and 60 wrong sources: verdicts, and causes that are named.

``python -m benchmarks.claims audits`` prints a line for each kind. Right values come
from the packages that people use; faults are planted in them. Models are fitted on
correlated numbers, and on a table with categories and missing values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import shap
import xgboost
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(7)
_COMMON = RNG.normal(size=(400, 1))
X = pd.DataFrame(
    0.7 * _COMMON + RNG.normal(size=(400, 6)).round(2), columns=list("abcdef")
)
Y = X.a * (X.b > 0.0) + 2.0 * X.c + np.abs(X.d) + 0.5 * X.e * X.f
MIXED = X[["a", "b"]].assign(
    c=pd.Categorical(RNG.choice(list("uvw"), 400)),
    d=X.d.where(RNG.random(400) > 0.2),
)
LEARN, DATA, ROWS, OTHERS = np.split(np.arange(400), [150, 290, 330])


@dataclass(frozen=True)
class Source:
    """Values from somewhere, and what an audit has to say."""

    kind: str
    model: str
    values: Callable[[], tuple[Any, Any]]  # the values, and their base or None
    verdict: str
    causes: tuple[str, ...] = ()
    output: str | None = None


_FEW: dict[str, Any] = {"n_estimators": 25, "random_state": 0}
_LGB: dict[str, Any] = {**_FEW, "min_child_samples": 5, "verbosity": -1, "n_jobs": 1}
_XGB: dict[str, Any] = {**_FEW, "max_depth": 3, "n_jobs": 1}

MODELS: dict[str, Callable[[], Any]] = {
    "gb": lambda: GradientBoostingRegressor(**_FEW),
    "forest": lambda: RandomForestRegressor(max_depth=5, **_FEW),
    "hist": lambda: HistGradientBoostingRegressor(max_iter=25, random_state=0),
    "lgb": lambda: lightgbm.LGBMRegressor(**_LGB),
    "xgb": lambda: xgboost.XGBRegressor(**_XGB),
    "mixed": lambda: lightgbm.LGBMRegressor(**_LGB),
    "linear": LinearRegression,
    "lgb classes": lambda: lightgbm.LGBMClassifier(**_LGB),
    "xgb classes": lambda: xgboost.XGBClassifier(**_XGB),
    "gb classes": lambda: GradientBoostingClassifier(**_FEW),
    "counts": lambda: lightgbm.LGBMRegressor(objective="poisson", **_LGB),
}


def table(name: str) -> pd.DataFrame:
    return MIXED if name == "mixed" else X


@cache
def fitted(name: str) -> Any:
    y = {"classes": Y > 1.0, "counts": np.exp(0.3 * Y)}.get(name.split()[-1], Y)
    return MODELS[name]().fit(table(name).iloc[LEARN], y[LEARN])


def exact(name: str, data: Any, output: str | None = None) -> tuple[Any, Any]:
    """Values of propopt over some rows, which tests compare with enumeration."""
    function = po.wrap(fitted(name), output=output or "auto", data=table(name))
    rows = table(name).iloc[ROWS]
    made = po.explainers.ExactShap(data=data).explain(function, rows)
    return made.attributions, made.base_value


def trees(name: str, data: Any = None, **how: Any) -> tuple[Any, Any]:
    """Values of shap.TreeExplainer, with its base."""
    explainer = shap.TreeExplainer(fitted(name), data, **how)
    phi = np.asarray(explainer.shap_values(table(name).iloc[ROWS]))
    phi = phi[..., -1] if phi.ndim == 3 else phi
    return phi, float(np.ravel(explainer.expected_value)[-1])


def saabas(name: str) -> tuple[Any, Any]:
    """Changes of node means on the path of each row, as treeinterpreter has them."""
    rows = X.iloc[ROWS].to_numpy(np.float32)
    model = fitted(name)
    if name == "xgb":
        matrix = xgboost.DMatrix(X.iloc[ROWS])
        how = {"pred_contribs": True, "approx_contribs": True}
        phi = model.get_booster().predict(matrix, **how)
        return phi[:, :-1], float(phi[0, -1])
    phi = np.zeros(rows.shape)
    for member in model.estimators_:
        tree = member.tree_
        for n, x in enumerate(rows):
            node = 0
            while (j := tree.feature[node]) >= 0:
                left = x[j] <= tree.threshold[node]
                after = (tree.children_left if left else tree.children_right)[node]
                phi[n, j] += tree.value[after, 0, 0] - tree.value[node, 0, 0]
                node = after
    base = np.mean([one.tree_.value[0, 0, 0] for one in model.estimators_])
    return phi / len(model.estimators_), float(base)


def correlated(seed: int) -> tuple[Any, Any]:
    np.random.seed(seed)  # noqa: NPY002 - shap draws from the global generator
    explainer = shap.LinearExplainer(
        fitted("linear"), shap.maskers.Impute(X.iloc[DATA]), nsamples=1000
    )
    return explainer.shap_values(X.iloc[ROWS]), None


# ---- Right sources


def right() -> Iterator[Source]:
    """Sixty sources of right values; ten of them have a background not given."""
    given = ("exact values",)
    for name in MODELS:
        output = "log_odds" if "classes" in name else None
        output = "margin" if name == "counts" else output

        def over(rows: Any, name: str = name, output: Any = output) -> Any:
            data = table(name).iloc[rows] if np.ndim(rows) else rows
            return lambda: exact(name, data, output)

        yield Source("given background", name, over(DATA), "exact", given, output)
        yield Source(
            "another background", name, over(OTHERS[:25]), "not reproduced", (), output
        )
        if name in ("gb", "forest", "lgb", "xgb", "lgb classes"):
            other = ("another background",)
            yield Source("audited rows", name, over(ROWS), "exact", other, output)
            yield Source("one row", name, over(DATA[[7]]), "exact", other, output)
        if name in ("gb", "lgb", "linear"):
            rounded = lambda over=over: tuple(np.round(V, 3) for V in over(DATA)())  # noqa: E731
            yield Source("rounded", name, rounded, "exact", ("rounding",), output)
    data = X.iloc[DATA]
    for name in ("lgb", "xgb", "lgb classes", "xgb classes"):
        output = "log_odds" if "classes" in name else None
        other = ("another background",)
        yield Source(
            "shap's 100 rows",
            name,
            lambda n=name: trees(n, data),
            "exact",
            other,
            output,
        )
        for k in (10, 25) if output is None else ():
            make = lambda n=name, k=k: trees(n, shap.kmeans(data, k).data)  # noqa: E731
            yield Source("shap.kmeans", name, make, "exact", other, output)
    for name in (
        "gb",
        "forest",
        "hist",
        "lgb",
        "xgb",
        "mixed",
        "lgb classes",
        "xgb classes",
        "gb classes",
    ):
        output = "log_odds" if "classes" in name else None
        yield Source(
            "path-dependent",
            name,
            lambda n=name: trees(n),
            "exact",
            ("path-dependent",),
            output,
        )
    for name in ("forest", "xgb"):
        yield Source("Saabas", name, lambda n=name: saabas(n), "exact", ("Saabas",))
    for name in ("lgb classes", "xgb classes", "gb classes"):
        make = lambda n=name: trees(n, data.iloc[:60], model_output="probability")  # noqa: E731
        yield Source(
            "rescaled log-odds",
            name,
            make,
            "exact",
            ("rescaled log-odds",),
            "probability",
        )
    yield Source(
        "log of prediction",
        "counts",
        lambda: trees("counts"),
        "exact",
        ("path-dependent",),
    )
    for seed in range(3):
        make = lambda s=seed: correlated(s)  # noqa: E731
        yield Source("correlated", "linear", make, "exact", ("correlated",))


# ---- Wrong ones


def _columns(W: Any, rng: Any) -> Any:
    i, j = rng.choice(W.shape[1], 2, replace=False)
    W[:, [i, j]] = W[:, [j, i]]
    return W


def _moved(W: Any, rng: Any) -> Any:
    i, j = rng.choice(W.shape[1], 2, replace=False)
    W[:, j] += 0.8 * W[:, i]
    W[:, i] *= 0.2
    return W


def _sign_of_column(W: Any, _: Any) -> Any:
    W[:, np.abs(W).mean(axis=0).argmax()] *= -1.0
    return W


def _slip(W: Any, rng: Any) -> Any:
    n = int(rng.integers(len(W)))
    W[n, np.abs(W[n]).argmax()] *= 10.0
    return W


def _dropped(W: Any, _: Any) -> Any:
    W[:, np.abs(W).mean(axis=0).argsort()[-2]] = 0.0
    return W


def _booked(W: Any, _: Any) -> Any:
    j = int(np.abs(W).mean(axis=0).argsort()[-2])
    W[:, 0 if j else 1] += W[:, j]
    W[:, j] = 0.0
    return W


def _top(W: Any, _: Any) -> Any:
    return np.where(np.abs(W) >= np.sort(np.abs(W), axis=1)[:, [-2]], W, 0.0)


FAULTS: dict[str, tuple[Callable[[Any, Any], Any], tuple[str, ...]]] = {
    "columns swapped": (_columns, ("columns in another's place",)),
    "columns rolled": (
        lambda W, _: np.roll(W, 1, axis=1),
        ("columns in another's place",),
    ),
    "rows shifted": (
        lambda W, _: np.roll(W, 1, axis=0),
        ("rows in another's place",),
    ),
    "rows permuted": (lambda W, rng: rng.permutation(W), ("rows in another's place",)),
    "permuted in rows": (
        lambda W, rng: rng.permuted(W, axis=1),
        ("values permuted within rows",),
    ),
    "80 % of a column moved": (_moved, ("single slips",)),
    "signs": (lambda W, _: -W, ("signs",)),
    "signs of a column": (_sign_of_column, ("signs",)),
    "absolute values": (lambda W, _: np.abs(W), ("absolute values",)),
    "factor": (lambda W, _: W / np.log(2.0), ("a constant factor",)),
    "normalised": (
        lambda W, _: W / np.abs(W).sum(axis=1, keepdims=True),
        ("normalised rows",),
    ),
    "slip": (_slip, ("single slips",)),
    "column dropped": (_dropped, ("blanked values",)),
    "column booked to another": (_booked, ("one-hot sums", "single slips")),
    "two largest": (_top, ("blanked values",)),
    "noise": (
        lambda W, rng: W + rng.normal(scale=0.1 * W.std(), size=W.shape),
        (),
    ),
}
"""Faults, and the causes that are right; rows with noise do not add up."""


def wrong() -> Iterator[Source]:
    """Sixty-six faults: each in four models, and thresholds in single precision."""
    for kind, (change, causes) in FAULTS.items():
        for n, name in enumerate(("gb", "lgb", "xgb", "mixed")):

            def make(name: str = name, n: int = n, change: Any = change) -> Any:
                W, base = exact(name, table(name).iloc[DATA])
                return change(W.copy(), np.random.default_rng(n)), base

            yield Source(kind, name, make, "wrong", causes)
    for name in ("hist", "forest"):
        make = lambda n=name: single(n)  # noqa: E731
        yield Source("single precision", name, make, "wrong", ("single precision",))


@cache
def coarse(name: str) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """A model some of whose thresholds are numbers of the table, rows, background."""
    rows = pd.DataFrame(RNG.normal(size=(700, 6)).round(2), columns=X.columns)
    y = rows.a * (rows.b > 0.0) + 2.0 * rows.c
    model = MODELS[name]().fit(rows, y)
    return model, rows[:40], rows[50:140]


def single(name: str) -> tuple[Any, Any]:
    model, rows, data = coarse(name)
    explainer = shap.TreeExplainer(model, data)
    phi = explainer.shap_values(rows, check_additivity=False)
    return phi, float(np.ravel(explainer.expected_value)[0])


# ---- Verdicts


def audited(source: Source) -> tuple[str, str]:
    """The verdict of an audit, and its cause."""
    values, base = source.values()
    model = fitted(source.model)
    rows = table(source.model).iloc[ROWS]
    data = table(source.model).iloc[DATA]
    if source.kind == "single precision":
        model, rows, data = coarse(source.model)
    if source.kind == "rescaled log-odds":
        data = data.iloc[:60]
    base = None if base is None else np.broadcast_to(base, len(rows))
    how: dict[str, Any] = {"data": data, "base": base, "output": source.output}
    try:
        result = po.audit(values, model, rows, **how)
    except InvalidInput as error:
        return "refused", str(error)
    return result.verdict, result["values"].cause


def results() -> pd.DataFrame:
    """A row for each source: what was said, and whether it is right."""
    lines = []
    for is_right, sources in ((True, right()), (False, wrong())):
        for one in sources:
            verdict, cause = audited(one)
            named = not one.causes or cause in one.causes
            lines.append(
                {
                    "right": is_right,
                    "kind": one.kind,
                    "model": one.model,
                    "verdict": verdict,
                    "cause": cause,
                    "as expected": verdict == one.verdict and named,
                }
            )
    return pd.DataFrame(lines)


def claims(full: bool = False) -> dict[str, pd.DataFrame]:
    """Verdicts by kind, sources with another one than expected, and their numbers."""
    del full  # there is one size
    warnings.simplefilter("ignore")
    found = results()
    counts = found.groupby(["right", "kind", "verdict", "cause"], sort=False).size()
    return {
        "verdicts": counts.to_frame("sources"),
        "not as expected": found[~found["as expected"]],
        "numbers": found.groupby("right")["as expected"].agg(["sum", "size"]),
    }
