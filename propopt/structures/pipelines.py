"""Pipelines: their first and last steps, and the steps that do nothing."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def last_step(model: Any) -> Any:
    """The final estimator of a pipeline, or the model itself."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def first_step(model: Any) -> Any:
    """The part of a model that sees the table: the first working step of a pipeline.

    None for a pipeline whose steps all do nothing.
    """
    while isinstance(model, Pipeline):
        steps = (step for _, step in model.steps)
        model = next((step for step in steps if not is_passthrough(step)), None)
    return model


def is_passthrough(step: object) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")
