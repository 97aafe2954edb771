"""Which outputs of which models are linear, and why others are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingRegressor, VotingClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from propopt._typing import Array
from propopt.structures.links import Exponentiated, Link, LogOdds, Score
from propopt.structures.readers.parameters import dense_floats, floats
from propopt.structures.readers.trees.scores import TreeOutput
from propopt.structures.readers.trees.sums import ModelSum
from propopt.structures.registry import exact_link, exact_network
from propopt.structures.subsets import NoSetFunction
from propopt.structures.tfidf.linear.rows import LinearRow, is_affine
from propopt.structures.tfidf.linear.steps import before
from propopt.structures.tfidf.members import members_of


Found: TypeAlias = LinearRow | NoSetFunction | None
RowRule: TypeAlias = Callable[[Any, TreeOutput], Found]
"""From a fitted model and an output of it to its row, the reason, or None."""


def linear_row(model: Any, output: TreeOutput) -> Found:
    """The row of an output of a fitted model; None of models that are not linear.

    Parameters
    ----------
    model : estimator
        Of features.
    output : TreeOutput
        The output, and the class or column.
    """
    rule = _RULES.get(type(model), _of_members)
    return rule(model, output)


def _of_scores(model: Any, output: TreeOutput) -> Found:
    """Of models whose scores are A x + b."""
    network = exact_network(model)
    if network is None or not is_affine(network):
        return None
    if output.index is None and network.n_scores > 1:
        return NoSetFunction(f"{type(model).__name__} has {network.n_scores} outputs")
    link = exact_link(model, output.name, output.index or 0, network.n_scores)
    if not isinstance(link, Score):
        return NoSetFunction(_curved(model, link))
    cotangents = np.zeros(network.n_scores)
    cotangents[link.index] = link.sign
    return LinearRow.of_network(network, cotangents, model.n_features_in_)


def _curved(model: Any, link: Link | None) -> str:
    """Why what is made of scores is no sum over words."""
    name = type(model).__name__
    match link:
        case None:
            return f"what {name} makes of its weighted sums is not known"
        case Exponentiated():
            return f"{name} predicts exp of a weighted sum of words, which is none"
        case LogOdds():
            return (
                "the log-odds of one of several classes hold a log of sums over the "
                "others, and are no sum of words; output='margin' is"
            )
        case _:
            return (
                "probabilities are a curve of a weighted sum of words; "
                "output='log_odds' of two classes, or 'margin', is the sum"
            )


def _pipeline(model: Any, output: TreeOutput) -> Found:
    found = linear_row(model.steps[-1][1], output)
    for _, step in reversed(model.steps[:-1]):
        if not isinstance(found, LinearRow):
            return found
        found = before(step, found)
    return found


def _of_members(model: Any, output: TreeOutput) -> Found:
    """Of models that add up what others predict; of others by their scores."""
    total = members_of(model, output)
    if not isinstance(total, ModelSum):
        return _of_scores(model, output) if total is None else total
    rows = []
    for part in total.parts:
        row = linear_row(part.model, part.output)
        if not isinstance(row, LinearRow):
            return row
        rows.append(row)
    return _added(rows, [part.weight for part in total.parts], total.base)


def _added(rows: list[LinearRow], weights: list[float], base: float) -> Found:
    if any(row.thresholds is not None for row in rows):
        return NoSetFunction("members compare what they are given with thresholds")
    found = LinearRow.added(rows, weights)
    return replace(found, intercept=found.intercept + base)


def _bagging(model: Any, output: TreeOutput) -> Found:
    """The mean over members, each of which is given its own columns."""
    rows = []
    for member, columns in zip(
        model.estimators_, model.estimators_features_, strict=True
    ):
        row = linear_row(member, output)
        if not isinstance(row, LinearRow):
            return row
        rows.append(row.placed(np.asarray(columns), model.n_features_in_))
    return _added(rows, [1.0 / len(rows)] * len(rows), 0.0)


def _support_vectors(model: Any, output: TreeOutput) -> Found:
    """Of linear kernels."""
    name = type(model).__name__
    if model.kernel != "linear":
        return NoSetFunction(f"{name}(kernel={model.kernel!r}) is no sum of words")
    wanted = "value" if isinstance(model, SVR | NuSVR) else "margin"
    if output.name != wanted:
        return NoSetFunction(f"{output.name!r} of {name} is no sum; {wanted!r} is")
    coefficients = dense_floats(model.coef_)
    if len(coefficients) > 1:
        return NoSetFunction(f"{name} counts votes between pairs of classes")
    row = LinearRow(coefficients[0], float(np.ravel(model.intercept_)[0]))
    return row.times(-1.0) if wanted == "margin" and output.index == 0 else row


def _kernel_ridge(model: Any, output: TreeOutput) -> Found:
    if model.kernel != "linear":
        return NoSetFunction(f"KernelRidge(kernel={model.kernel!r}) is no sum of words")
    dual = np.asarray(model.dual_coef_, float)
    own = dual if dual.ndim == 1 else dual[:, output.index or 0]
    return LinearRow(np.asarray(model.X_fit_.T @ own, float).ravel(), 0.0)


def _multinomial(model: Any, output: TreeOutput) -> Found:
    """Log p(k) + Σ_v x_v log p(v | k)."""
    return _naive_bayes(
        model, output, floats(model.feature_log_prob_), floats(model.class_log_prior_)
    )


def _complement(model: Any, output: TreeOutput) -> Found:
    """Σ_v x_v w_vk, without priors."""
    logs = floats(model.feature_log_prob_)
    return _naive_bayes(model, output, logs, np.zeros(len(logs)))


def _bernoulli(model: Any, output: TreeOutput) -> Found:
    """Log p(k) + Σ_v log p or log(1 − p) of what is there or is not."""
    logs = floats(model.feature_log_prob_)
    gone = np.log1p(-np.exp(logs))
    priors = floats(model.class_log_prior_) + gone.sum(axis=1)
    row = _naive_bayes(model, output, logs - gone, priors)
    if model.binarize is None or not isinstance(row, LinearRow):
        return row
    thresholds = np.full(len(row.coefficients), float(model.binarize))
    return replace(row, thresholds=thresholds)


def _naive_bayes(model: Any, output: TreeOutput, logs: Array, priors: Array) -> Found:
    """The log-odds of two classes, from their log-likelihoods."""
    if output.name != "log_odds" or len(priors) != 2:
        return NoSetFunction(
            f"{output.name!r} of {type(model).__name__} with {len(priors)} classes is "
            "no sum of words; output='log_odds' of two classes is"
        )
    sign = -1.0 if output.index == 0 else 1.0
    return LinearRow(logs[1] - logs[0], float(priors[1] - priors[0])).times(sign)


def _calibrated(_model: Any, _output: TreeOutput) -> Found:
    return NoSetFunction(
        "calibrated probabilities are means of curves of weighted sums of words; the "
        "margin of the model before calibration is a sum"
    )


def _votes(model: Any, output: TreeOutput) -> Found:
    found = _of_members(model, output)
    if not isinstance(found, NoSetFunction) or output.name != "probability":
        return found
    return NoSetFunction(
        "votes are counted, or probabilities averaged, which are curves of weighted "
        "sums of words; the margin of each member is a sum"
    )


_RULES: Final[Mapping[type, RowRule]] = {
    **dict.fromkeys((SVC, NuSVC, SVR, NuSVR), _support_vectors),
    BaggingRegressor: _bagging,
    BernoulliNB: _bernoulli,
    CalibratedClassifierCV: _calibrated,
    ComplementNB: _complement,
    KernelRidge: _kernel_ridge,
    MultinomialNB: _multinomial,
    Pipeline: _pipeline,
    VotingClassifier: _votes,
}
"""Models by their class, never a subclass; others by their members or their scores."""
