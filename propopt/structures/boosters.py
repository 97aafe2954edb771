"""Native boosters as estimators, where their own methods take no tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, final

from propopt._typing import Array


@final
@dataclass(frozen=True)
class XGBoostBooster:
    """A booster of XGBoost's native interface, which takes matrices of its own.

    Parameters
    ----------
    booster : xgboost.Booster
        What ``xgboost.train`` returns.
    """

    booster: Any

    @property
    def feature_names_in_(self) -> list[str] | None:
        """The columns that it was fitted on, if they had names."""
        names: list[str] | None = self.booster.feature_names
        return names

    @property
    def n_features_in_(self) -> int:
        """Their number."""
        return int(self.booster.num_features())

    @property
    def is_made_of_trees(self) -> bool:
        """Whether it is piecewise constant: not linear."""
        learner = json.loads(self.booster.save_config())["learner"]
        return bool(learner["gradient_booster"]["name"] != "gblinear")

    def predict(self, table: Any) -> Array:
        """What the booster predicts, in the units of its objective."""
        return self._predict(table, output_margin=False)

    def scores(self, table: Any) -> Array:
        """The sums of its trees, before any link."""
        return self._predict(table, output_margin=True)

    def _predict(self, table: Any, *, output_margin: bool) -> Array:
        import xgboost

        matrix = xgboost.DMatrix(table, enable_categorical=True)
        predicted: Array = self.booster.predict(matrix, output_margin=output_margin)
        return predicted


@final
@dataclass(frozen=True)
class LightGBMBooster:
    """A booster of LightGBM's native interface.

    Parameters
    ----------
    booster : lightgbm.Booster
        What ``lightgbm.train`` returns.
    """

    booster: Any

    @property
    def n_features_in_(self) -> int:
        """The number of columns that it was fitted on."""
        return int(self.booster.num_feature())

    @property
    def is_made_of_trees(self) -> bool:
        """Whether it is piecewise constant: leaves hold no linear models."""
        parameters = self.booster.params
        settings = (parameters.get(name) for name in ("linear_tree", "linear_trees"))
        return not any(str(value).lower() in ("true", "1", "+") for value in settings)

    def predict(self, table: Any) -> Array:
        """What the booster predicts, in the units of its objective."""
        predicted: Array = self.booster.predict(table)
        return predicted

    def scores(self, table: Any) -> Array:
        """The sums of its trees, before any link."""
        scores: Array = self.booster.predict(table, raw_score=True)
        return scores


def as_estimator(model: Any) -> Any:
    """The model, or what gives it the methods of an estimator."""
    kinds = {(kind.__module__, kind.__name__) for kind in type(model).__mro__}
    if ("xgboost.core", "Booster") in kinds:
        return XGBoostBooster(model)
    return LightGBMBooster(model) if ("lightgbm.basic", "Booster") in kinds else model
