"""Models that are piecewise constant: trees, forests, boosting and their like.

Classes are known by their names and modules, so that no package is imported for it.
"""

from __future__ import annotations

from typing import Any, Final

from propopt.structures.boosters import (
    LightGBMBooster,
    XGBoostBooster,
    as_estimator,
)
from propopt.structures.pipelines import last_step


FLAT_CLASSES: Final = {
    "sklearn": frozenset(
        {
            "DecisionTreeClassifier",
            "DecisionTreeRegressor",
            "DummyClassifier",
            "DummyRegressor",
            "ExtraTreeClassifier",
            "ExtraTreeRegressor",
            "ExtraTreesClassifier",
            "ExtraTreesRegressor",
            "HistGradientBoostingClassifier",
            "HistGradientBoostingRegressor",
            "IsolationForest",
            "RandomForestClassifier",
            "RandomForestRegressor",
        }
    ),
    "catboost": frozenset({"CatBoost"}),
}
"""By package, the classes that are piecewise constant whatever their settings."""

BOOSTED: Final = frozenset({"GradientBoostingClassifier", "GradientBoostingRegressor"})
NEIGHBORS: Final = frozenset(
    {
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "RadiusNeighborsClassifier",
        "RadiusNeighborsRegressor",
    }
)
ENSEMBLES: Final = frozenset(
    {
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "BaggingClassifier",
        "BaggingRegressor",
        "StackingClassifier",
        "StackingRegressor",
        "VotingClassifier",
        "VotingRegressor",
    }
)


def is_piecewise_constant(model: Any) -> bool:
    """Whether a fitted model is constant between jumps, so that its gradient is 0.

    Known are the trees, forests, boosted trees, nearest neighbours with equal weights,
    and ensembles of these of scikit-learn; LightGBM without linear trees, XGBoost
    without ``gblinear`` and CatBoost; pipelines that end in one, and searches for one.

    Parameters
    ----------
    model : estimator or callable
        A fitted model; any other object is not known to be flat.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from propopt.structures.piecewise import is_piecewise_constant
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]
    >>> is_piecewise_constant(DecisionTreeRegressor().fit(X, y))
    True
    >>> is_piecewise_constant(LinearRegression().fit(X, y))
    False
    """
    final = as_estimator(last_step(model))
    kinds = {
        (kind.__module__.partition(".")[0], kind.__name__)
        for kind in type(final).__mro__
    }
    if any(name in FLAT_CLASSES.get(package, ()) for package, name in kinds):
        return True
    names = {name for package, name in kinds if package == "sklearn"}
    if names & BOOSTED:
        return isinstance(final.init_, str) or is_piecewise_constant(final.init_)
    if names & NEIGHBORS:
        return bool(final.weights == "uniform")
    if names & ENSEMBLES:
        return _is_flat_ensemble(final)
    if "BaseSearchCV" in names:
        return is_piecewise_constant(final.best_estimator_)
    if "TransformedTargetRegressor" in names:
        return is_piecewise_constant(final.regressor_)
    if "CalibratedClassifierCV" in names:
        calibrated = final.calibrated_classifiers_
        return all(is_piecewise_constant(part.estimator) for part in calibrated)
    return _is_boosted_elsewhere(final, kinds)


def _is_flat_ensemble(model: Any) -> bool:
    """All members are flat, and what combines them sees nothing but their outputs."""
    passes_features = bool(model.get_params(deep=False).get("passthrough", False))
    return not passes_features and all(map(is_piecewise_constant, model.estimators_))


def _is_boosted_elsewhere(model: Any, kinds: set[tuple[str, str]]) -> bool:
    if ("lightgbm", "LGBMModel") in kinds:
        return not model.get_params().get("linear_tree", False)
    if isinstance(model, XGBoostBooster | LightGBMBooster):
        return model.is_made_of_trees
    if ("xgboost", "XGBModel") in kinds:
        return bool(model.get_params().get("booster") != "gblinear")
    return False
