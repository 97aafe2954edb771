"""What a run was, for ``<name>.json``: its subject, its score, what was picked."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, isnan
from typing import Any

from propopt.output.gaps import target_in_words
from propopt.problems.subject.subject import Subject
from propopt.results.conclusions.saved_shares import with_nulls
from propopt.results.explanation import Explanation


def manifest(
    job: str,
    name: str,
    subject: Subject,
    explanation: Explanation | None,
    *,
    gradient: str | None,
    **others: Any,
) -> dict[str, Any]:
    """What is known of a run, in plain values.

    Parameters
    ----------
    job : str
        The section that said what to do.
    name : str
        Of the problem.
    subject : Subject
        What was explained; the score is that of its model.
    explanation : Explanation or None
        Whose attributions are in the table.
    gradient : str
        How slopes were computed; None where there are none.
    **others
        More of it.
    """
    quantity = subject.function.quantity
    return {
        "job": job,
        "name": name,
        "function": repr(subject.function),
        "quantity": {**quantity.as_fields(), "in_words": quantity.in_words()},
        "gradient": gradient,
        "n_points": len(subject.points),
        "n_features": subject.n_features,
        "score": _score(subject),
        "picked": None if explanation is None else _explanation(explanation),
        **others,
    }


def _score(subject: Subject) -> dict[str, Any] | None:
    score = subject.score
    return None if score is None else {**vars(score), "in_words": score.in_words()}


def _explanation(explanation: Explanation) -> dict[str, Any]:
    return {
        "weights": _finite(explanation.rates),
        "losses": _finite(explanation.losses),
        "shares": with_nulls(explanation.loss_shares),
        "objective": explanation.objective,
        "gap": explanation.gap,
        "target_error": _target_error(explanation),
        "solver": explanation.solver,
        "units": explanation.units,
        "attributions": explanation.units_in_words,
        "parameters": dict(explanation.parameters),
    }


def _target_error(explanation: Explanation) -> dict[str, Any]:
    """JSON has no NaN: what is not known is null."""
    target, known = explanation.target, explanation.target_error
    is_known = target is not None and not isnan(known)
    return {
        "relative": known if is_known else None,
        "interval": target.interval if target is not None and is_known else None,
        "in_words": target_in_words(explanation),
    }


def _finite(numbers: Mapping[str, float]) -> dict[str, float | str]:
    """JSON has no infinity, which the multiplier of a limit of zero can be."""
    return {
        name: float(value) if isfinite(value) else str(value)
        for name, value in numbers.items()
    }
