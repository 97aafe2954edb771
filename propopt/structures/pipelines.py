"""Pipelines: their last step, and the steps that do nothing."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def last_step(model: Any) -> Any:
    """The final estimator of a pipeline, or the model itself."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def is_passthrough(step: object) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")
