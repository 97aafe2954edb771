"""Scores of boosted models, which some libraries give by no method of their own.

Classes of other libraries are known by their names, so that none is imported for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final

from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.pipeline import Pipeline

from propopt._typing import Array
from propopt.structures.boosters import LightGBMBooster, XGBoostBooster


@final
@dataclass(frozen=True)
class Margins:
    """The sums of trees that a model predicts from.

    Parameters
    ----------
    scores : callable
        From the table that the model takes to (n,), or (n, K) of K classes.
    find_logit : callable
        How many times the score the log-odds of the second of two classes are; None
        where they are another function of it.
    """

    scores: Callable[[Any], Array]
    find_logit: Callable[[], float | None] = lambda: None


def margins_of(model: Any) -> Margins | None:
    """The scores of a boosted classifier, or of a native booster; None of others.

    Parameters
    ----------
    model : estimator
        Fitted; or a pipeline that ends in one, or a search for one.
    """
    if isinstance(model, Pipeline):
        return _behind_steps(model)
    for kind in type(model).__mro__:
        rule = _RULES.get((kind.__module__.partition(".")[0], kind.__name__))
        if rule is not None:
            return rule(model)
    return None


def _behind_steps(pipeline: Pipeline) -> Margins | None:
    margins = margins_of(pipeline.steps[-1][1])
    if margins is None or len(pipeline.steps) == 1:
        return margins
    return replace(margins, scores=partial(_after, pipeline[:-1], margins.scores))


def _after(steps: Pipeline, scores: Callable[[Any], Array], table: Any) -> Array:
    return scores(steps.transform(table))


def _searched(model: Any) -> Margins | None:
    return margins_of(model.best_estimator_) if model.refit else None


def _hist_gradient_boosting(model: HistGradientBoostingClassifier) -> Margins:
    return Margins(model.decision_function, lambda: 1.0)


def _gradient_boosting(model: GradientBoostingClassifier) -> Margins:
    logits = {"log_loss": 1.0, "exponential": 2.0}
    return Margins(model.decision_function, lambda: logits.get(model.loss))


def _lightgbm(model: Any) -> Margins:
    return Margins(
        partial(model.predict, raw_score=True),
        lambda: _lightgbm_logit(model.booster_),
    )


def _lightgbm_logit(booster: Any) -> float | None:
    """Sigmoid's slope, of which the objective tells: ``objective=binary sigmoid:1``."""
    header = booster.model_to_string(num_iteration=1).splitlines()
    told = [line for line in header if line.startswith("objective=")]
    name, *settings = told[0].partition("=")[2].split() if told else [""]
    given = dict(s.split(":") for s in settings if ":" in s)
    slope = float(given.get("sigmoid", 1.0))
    if "average_output" in header:  # the mean of a random forest
        slope /= max(booster.best_iteration, 0) or booster.current_iteration()
    return slope if name == "binary" else None


def _xgboost(model: Any) -> Margins:
    return Margins(
        partial(model.predict, output_margin=True),
        lambda: _xgboost_logit(model.get_booster()),
    )


def _xgboost_logit(booster: Any) -> float | None:
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    return 1.0 if objective == "binary:logistic" else None


def _catboost(model: Any) -> Margins:
    return Margins(
        partial(model.predict, prediction_type="RawFormulaVal"),
        lambda: _catboost_logit(model),
    )


def _catboost_logit(model: Any) -> float | None:
    loss = model.get_all_params().get("loss_function")
    return 1.0 if loss in ("CrossEntropy", "Logloss") else None


def _native(model: LightGBMBooster | XGBoostBooster) -> Margins:
    return Margins(model.scores)


_RULES: Final[Mapping[tuple[str, str], Callable[[Any], Margins | None]]] = {
    ("catboost", "CatBoostClassifier"): _catboost,
    ("lightgbm", "LGBMClassifier"): _lightgbm,
    ("propopt", "LightGBMBooster"): _native,
    ("propopt", "XGBoostBooster"): _native,
    ("sklearn", "BaseSearchCV"): _searched,
    ("sklearn", "GradientBoostingClassifier"): _gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): _hist_gradient_boosting,
    ("xgboost", "XGBClassifier"): _xgboost,
}
