"""Boosters of the libraries that are there, in one thread and without a word."""

import pytest


QUIET = {
    "lightgbm": ("LGBM", {"verbose": -1, "n_jobs": 1}),
    "xgboost": ("XGB", {"n_jobs": 1}),
    "catboost": (
        "CatBoost",
        {"verbose": 0, "thread_count": 1, "allow_writing_files": False},
    ),
}


def booster(package, kind="Regressor", **settings):
    """One of a library, not fitted; a test without the library is skipped."""
    prefix, quiet = QUIET[package]
    library = pytest.importorskip(package)
    return getattr(library, prefix + kind)(**{**quiet, **settings})
