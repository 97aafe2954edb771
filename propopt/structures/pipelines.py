"""Pipelines: their first and last steps, and the steps that do nothing."""

from __future__ import annotations

from typing import Any, Final

from sklearn.pipeline import Pipeline


UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a model raises that is kept in another way than is known."""


def unreadable(model: Any, error: Exception) -> str:
    """Why a model was not read, with its class.

    Parameters
    ----------
    model : estimator
        Whose last step is named.
    error : Exception
        One of ``UNREADABLE``.
    """
    name = type(last_step(model)).__name__
    return f"{name} cannot be read: {type(error).__name__}: {error}"


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


def working_steps(model: Any) -> list[Any]:
    """The steps of a pipeline that do something, those of pipelines in it among them.

    A model that is no pipeline is its only step.
    """
    if type(model) is not Pipeline:
        return [] if is_passthrough(model) else [model]
    return [step for _, part in model.steps for step in working_steps(part)]


def is_passthrough(step: object) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")
