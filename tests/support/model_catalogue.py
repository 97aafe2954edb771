"""Small fitted models of all kinds: how each is explained, and what is true of it.

``python tests/support/model_catalogue.py`` writes the table of ``docs/guide/models.md``
anew, where all packages are installed.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from coalitions import shapley_by_definition
from estimators import sk
from quiet_boosters import booster
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base.errors import InvalidInput


# ---- Tables of five columns


N, SEED = 160, 0
_RNG = np.random.default_rng(SEED)
NUMBERS = pd.DataFrame(_RNG.normal(size=(N, 5)), columns=list("abcde")).round(2)
GAPS = NUMBERS.assign(a=NUMBERS["a"].mask(_RNG.random(N) < 0.15))
MINUS_999 = GAPS.fillna(-999.0)
MIXED = NUMBERS.assign(
    d=_RNG.choice(list("xyz"), N), e=pd.Categorical(_RNG.choice(list("pqrs"), N))
)
WORDS = ["d", "e"]
Y = (NUMBERS["a"] * NUMBERS["b"] + NUMBERS["c"]).to_numpy()
Y = Y + (MIXED["d"] == "y") * (1.0 + MIXED["e"].isin(["p", "r"]))
TWO, THREE = (Y > 0.3).astype(int).to_numpy(), np.digitize(Y, [0.0, 1.0])
SEVERAL_Y = np.column_stack([Y, NUMBERS["d"] - Y])
ROWS, BACKGROUND = slice(0, 3), slice(40, 52)


# ---- Models


@dataclass(frozen=True)
class Case:
    """A model, and what is asked of it."""

    fit: Callable[[], Any]
    data: pd.DataFrame = field(default_factory=lambda: NUMBERS)
    needs: str | None = None  # a package
    asked: dict[str, Any] = field(default_factory=dict)  # target=
    # its scores, (n,) or of each class (n, K), where they are no log-odds of p
    scores: Callable[[Any, Any], Any] | None = None
    single: bool = False  # whether it computes in float32


def _of(library, kind, target=TWO, data=NUMBERS, fitting=None, **settings):
    model = booster(library, kind, n_estimators=8, **settings)
    return model.fit(data, target, **(fitting or {}))


VECTORS, DEPTHWISE = "multi_output_tree", {"grow_policy": "Depthwise"}


def _boosting(
    library, kind, target=TWO, data=NUMBERS, asked=None, scores=None, **settings
):
    """The case of a model of a library of boosting."""
    return Case(
        lambda: _of(library, kind, target, data, **settings),
        data,
        library,
        asked or {},
        scores,
        library == "xgboost",
    )


def _custom_lightgbm():
    import lightgbm

    def objective(scores, data):
        p = 1.0 / (1.0 + np.exp(-scores))
        return p - data.get_label(), p * (1.0 - p)

    settings = {"objective": objective, "verbose": -1, "num_threads": 1}
    return lightgbm.train(settings, lightgbm.Dataset(NUMBERS, TWO), 8)


def _ranker(library):
    group = {"group": [20] * (N // 20)}
    if library == "catboost":
        group = {"group_id": np.repeat(np.arange(N // 20), 20)}
    return _of(library, "Ranker", THREE, fitting=group)


def _balanced(kind):
    from imblearn import ensemble, pipeline, under_sampling

    if kind == "forest":
        few = {"sampling_strategy": "all", "replacement": True, "bootstrap": False}
        return ensemble.BalancedRandomForestClassifier(6, random_state=0, **few).fit(
            NUMBERS, TWO
        )
    sampler = under_sampling.RandomUnderSampler(random_state=0)
    final = sk.GradientBoostingClassifier(n_estimators=8, random_state=0)
    return pipeline.make_pipeline(sampler, sk.StandardScaler(), final).fit(NUMBERS, TWO)


def _forest(target=TWO, kind="Classifier", **settings):
    forest = getattr(sk, f"RandomForest{kind}")(6, random_state=0, **settings)
    return forest.fit(NUMBERS, target)


def _boosted(kind="Classifier", target=TWO):
    return getattr(sk, f"GradientBoosting{kind}")(n_estimators=8, random_state=0).fit(
        NUMBERS, target
    )


def _encoded(final):
    encoder = sk.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    from sklearn.compose import make_column_transformer

    columns = make_column_transformer((encoder, WORDS), remainder="passthrough")
    return make_pipeline(columns, final).fit(MIXED, TWO)


def _own(model, target=TWO):
    return lambda: model().fit(NUMBERS, target)


def _decision(model, rows):
    return model.decision_function(rows)


def _margin(model, rows):
    return model.predict(rows, output_margin=True)


def _raw(model, rows):
    return model.predict(rows, raw_score=True)


def _formula(model, rows):
    return model.predict(rows, prediction_type="RawFormulaVal")


_CLASS = {"target": 1}
_GB = sk.GradientBoostingClassifier(n_estimators=8, random_state=0)

CASES: dict[str, Case] = {
    # trees of scikit-learn
    "decision tree: regression": Case(
        lambda: sk.DecisionTreeRegressor(max_depth=4).fit(NUMBERS, Y)
    ),
    "decision tree, random forest, extra trees: classes": Case(
        _forest, asked={"target": 1}
    ),
    "decision tree, three classes": Case(
        lambda: sk.DecisionTreeClassifier(max_depth=4).fit(NUMBERS, THREE), asked=_CLASS
    ),
    "random forest, extra trees: regression": Case(lambda: _forest(Y, "Regressor")),
    "extra trees, missing values": Case(
        lambda: sk.ExtraTreesRegressor(5, max_depth=5, random_state=0).fit(GAPS, Y),
        GAPS,
    ),
    "forest of several outputs, `target=`": Case(
        lambda: _forest(SEVERAL_Y, "Regressor"), asked=_CLASS
    ),
    "forest of several labels, `target=`": Case(
        lambda: _forest(np.column_stack([TWO, THREE > 0])), asked=_CLASS
    ),
    "gradient boosting: regression": Case(lambda: _boosted("Regressor", Y)),
    "gradient boosting: two classes": Case(_boosted),
    "gradient boosting: three classes": Case(
        lambda: _boosted(target=THREE), asked=_CLASS, scores=_decision
    ),
    "histogram boosting, missing values": Case(
        lambda: sk.HistGradientBoostingClassifier(max_iter=8).fit(GAPS, TWO), GAPS
    ),
    "histogram boosting, Poisson": Case(
        lambda: sk.HistGradientBoostingRegressor(loss="poisson", max_iter=8).fit(
            NUMBERS, np.exp(Y / 3)
        )
    ),
    "AdaBoost": Case(
        _own(lambda: sk.AdaBoostClassifier(n_estimators=5, random_state=0))
    ),
    # boosting of other libraries
    "LightGBM: regression": _boosting("lightgbm", "Regressor", Y, GAPS),
    "LightGBM: two classes, categories": _boosting(
        "lightgbm", "Classifier", data=MIXED.astype({"d": "category"})
    ),
    "LightGBM: three classes": _boosting(
        "lightgbm", "Classifier", THREE, asked=_CLASS, scores=_raw
    ),
    "LightGBM: Poisson": _boosting(
        "lightgbm", "Regressor", np.exp(Y / 3), objective="poisson"
    ),
    "LightGBM: ranker": Case(lambda: _ranker("lightgbm"), needs="lightgbm"),
    "LightGBM: linear trees": _boosting("lightgbm", "Regressor", Y, linear_tree=True),
    "`lightgbm.train`, own objective": Case(
        _custom_lightgbm,
        needs="lightgbm",
        scores=lambda model, rows: model.predict(rows),
    ),
    "XGBoost: regression": _boosting("xgboost", "Regressor", Y, GAPS),
    "XGBoost: two classes": _boosting("xgboost", "Classifier"),
    "XGBoost: three classes": _boosting(
        "xgboost", "Classifier", THREE, asked=_CLASS, scores=_margin
    ),
    "XGBoost: `missing=-999`": _boosting(
        "xgboost", "Classifier", data=MINUS_999, missing=-999.0
    ),
    "XGBoost: vector leaves": _boosting(
        "xgboost", "Regressor", SEVERAL_Y, asked=_CLASS, multi_strategy=VECTORS
    ),
    "XGBoost: `gblinear`": _boosting("xgboost", "Regressor", Y, booster="gblinear"),
    "CatBoost: two classes, missing values": _boosting(
        "catboost", "Classifier", data=GAPS
    ),
    "CatBoost: three classes": _boosting(
        "catboost", "Classifier", THREE, asked=_CLASS, scores=_formula
    ),
    "CatBoost: categories, symmetric trees": _boosting(
        "catboost", "Classifier", data=MIXED, cat_features=WORDS
    ),
    "CatBoost: categories, trees of other shapes": _boosting(
        "catboost", "Classifier", data=MIXED, cat_features=WORDS, **DEPTHWISE
    ),
    "CatBoost: ranker": Case(lambda: _ranker("catboost"), needs="catboost"),
    # what combines and wraps
    "votes, bagging: means of regressions": Case(
        lambda: sk.BaggingRegressor(random_state=0, n_estimators=4).fit(NUMBERS, Y)
    ),
    "soft votes of forests": Case(
        _own(
            lambda: sk.VotingClassifier(
                [("one", sk.DecisionTreeClassifier(max_depth=3)), ("two", _forest())],
                voting="soft",
            )
        )
    ),
    "soft votes of boosted models": Case(
        _own(lambda: sk.VotingClassifier([("a", _GB), ("b", _GB)], voting="soft"))
    ),
    "stacks that end in a logistic regression": Case(
        _own(
            lambda: sk.StackingClassifier(
                [("a", sk.DecisionTreeClassifier(max_depth=3))]
            )
        )
    ),
    "pipeline: scaler, boosting": Case(
        _own(lambda: make_pipeline(sk.StandardScaler(), clone(_GB)))
    ),
    "pipeline: one-hot codes, boosting": Case(lambda: _encoded(clone(_GB)), MIXED),
    "pipeline: PCA, boosting": Case(_own(lambda: make_pipeline(sk.PCA(3), clone(_GB)))),
    "search: `GridSearchCV`": Case(
        _own(lambda: sk.GridSearchCV(_GB, {"max_depth": [2, 3]}, cv=2))
    ),
    "`FrozenEstimator`": Case(_own(lambda: FrozenEstimator(_boosted()))),
    "`TunedThresholdClassifierCV`": Case(
        _own(lambda: sk.TunedThresholdClassifierCV(_GB, cv=2))
    ),
    "`FixedThresholdClassifier`": Case(
        _own(lambda: sk.FixedThresholdClassifier(_GB, threshold=0.3))
    ),
    "`CalibratedClassifierCV` over a forest": Case(
        _own(lambda: sk.CalibratedClassifierCV(_forest(), cv=2))
    ),
    "scaled target: `TransformedTargetRegressor`": Case(
        _own(
            lambda: sk.TransformedTargetRegressor(
                sk.DecisionTreeRegressor(max_depth=3), transformer=sk.StandardScaler()
            ),
            Y,
        )
    ),
    "imbalanced-learn: pipeline with a sampler": Case(
        lambda: _balanced("pipeline"), needs="imblearn"
    ),
    "imbalanced-learn: balanced forest": Case(
        lambda: _balanced("forest"), needs="imblearn"
    ),
    # smooth models
    "linear regression": Case(_own(sk.LinearRegression, Y)),
    "logistic regression": Case(_own(sk.LogisticRegression), scores=_decision),
    "support vector regression": Case(_own(lambda: sk.SVR(C=2.0), Y)),
    "support vector classifier": Case(_own(lambda: sk.SVC(C=2.0)), scores=_decision),
    "Gaussian naive Bayes": Case(_own(sk.GaussianNB)),
    "perceptron": Case(
        _own(
            lambda: sk.MLPClassifier((4,), solver="lbfgs", max_iter=40, random_state=0)
        )
    ),
    "nearest neighbours": Case(_own(sk.KNeighborsRegressor, Y)),
    "callable": Case(lambda: lambda rows: np.prod(np.asarray(rows, float), axis=1)),
}


# ---- How each is explained


@cache
def fitted(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name].fit()


@cache
def explained(name: str, output: str | None) -> Any:
    """The explanation of three rows against twelve, or the error; None if not asked."""
    case, model = CASES[name], fitted(name)
    if output is not None and not hasattr(model, "predict_proba"):
        return None
    asked = dict(case.asked) if output is None else {**case.asked, "output": output}
    several = output is None and case.scores in (_margin, _raw, _formula)
    if several and case.asked:
        asked["output"] = "margin"
    rows, background = case.data.iloc[ROWS], case.data.iloc[BACKGROUND]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return po.explain(model, rows, data=background, robustness=0, **asked)
        except InvalidInput as error:
            return error


def truth(name: str, explanation: Any) -> np.ndarray:
    """Shapley values by the definition, of what the model itself predicts."""
    case, model = CASES[name], fitted(name)
    rows, background = case.data.iloc[ROWS], case.data.iloc[BACKGROUND]
    kind, k = explanation.quantity.kind, case.asked.get("target")

    def answer(table):
        if kind == "value":
            ask = model if callable(model) else model.predict
            found = np.asarray(ask(table))
            return found if found.ndim == 1 else found[:, k]
        if case.scores is not None and kind != "probability":
            found = np.asarray(case.scores(model, table))
            return found if found.ndim == 1 else found[:, k]
        p = model.predict_proba(table)
        p = np.asarray(p[k] if isinstance(p, list) else p, float)
        place = 1 if k is None or isinstance(model.classes_, list) else k
        if kind == "probability":
            return p[:, place]
        return np.log(p[:, place]) - np.log(1.0 - p[:, place])

    return shapley_by_definition(answer, rows, background)


EXACT, SETS, FEW = "exact", "exact for few columns", "sampled"


def status(explanation: Any) -> str:
    """A word for how contributions were computed."""
    if explanation is None:
        return "–"
    if isinstance(explanation, InvalidInput):
        return "refused"
    source = str(explanation.parameters["contributions"])
    if "from its scores" in source:
        return SETS
    return FEW if "all sets" in source or "orders" in source else EXACT


_KINDS = {"log_odds": "log-odds", "value": "prediction"}


def table_row(name: str) -> str:
    """The line of the table of a model."""
    default, probability = explained(name, None), explained(name, "probability")
    first, second = status(default), status(probability)
    if first != "refused":
        kind = default.quantity.kind
        first = f"{_KINDS.get(kind, kind)}: {first}"
    return f"| {name} | {first} | {second} |"


PAGE = Path(__file__).parents[2] / "docs" / "guide" / "models.md"
HEADER = "| model | contributions by default | to the probability |\n|---|---|---|\n"
BLOCK = re.compile(r"(?<=<!-- models -->\n\n).*?(?=\n\n<!-- /models -->)", re.DOTALL)


def is_installed(name: str) -> bool:
    needs = CASES[name].needs
    return needs is None or find_spec(needs) is not None


def rows_of_page() -> dict[str, str]:
    """The lines of the page by their models."""
    block = BLOCK.search(PAGE.read_text(encoding="utf-8"))
    lines = [] if block is None else block[0].splitlines()[2:]
    return {line.split("|")[1].strip(): line for line in lines}


def write_page() -> None:
    """The table anew; lines of models whose package is absent stay as they are."""
    known = rows_of_page()
    lines = [table_row(n) if is_installed(n) else known[n] for n in CASES]
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        BLOCK.sub(lambda _: HEADER + "\n".join(lines), page), encoding="utf-8"
    )


if __name__ == "__main__":
    write_page()
