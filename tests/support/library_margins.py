"""Margins and contributions of boosted models, by the methods of their libraries."""

import numpy as np
import pytest


def library_of(model):
    return type(model).__module__.partition(".")[0]


def matrix_of(rows, target=None, given=None):
    """A table of XGBoost."""
    matrix = pytest.importorskip("xgboost").DMatrix
    return matrix(rows, target, base_margin=given, enable_categorical=True)


def margin_of(model, rows, given=None):
    """The margin of the library's own prediction, with base margins that are given.

    LightGBM and scikit-learn predict without offsets; users add them.
    """
    library = library_of(model)
    if library == "xgboost":
        if hasattr(model, "get_booster"):
            return model.predict(rows, output_margin=True, base_margin=given)
        return model.predict(matrix_of(rows, given=given), output_margin=True)
    if library == "catboost":
        categories = model.get_cat_feature_indices()
        pool = pytest.importorskip("catboost").Pool
        cells = pool(rows, baseline=given, cat_features=categories)
        return model.predict(cells, prediction_type="RawFormulaVal")
    if library == "lightgbm":
        margin = model.predict(rows, raw_score=True)
    else:
        margin = getattr(model, "decision_function", model.predict)(rows)
    return margin + (0.0 if given is None else given)


def contributions_of(model, rows):
    """The values of the library itself, with the base, as it returns them."""
    library = library_of(model)
    if library == "lightgbm":
        return model.predict(rows, pred_contrib=True)  # (N, K (D + 1))
    if library == "xgboost":
        native = model.get_booster() if hasattr(model, "get_booster") else model
        return native.predict(matrix_of(rows), pred_contribs=True)
    pool = pytest.importorskip("catboost").Pool
    return np.asarray(model.get_feature_importance(pool(rows), type="ShapValues"))
