"""Steps between a vectoriser and a linear model, by what they make of its row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.preprocessing import Binarizer, Normalizer

from propopt.structures.networks import Network, Scaling
from propopt.structures.pipelines import is_passthrough
from propopt.structures.readers.transforms import SKLEARN_TRANSFORMS
from propopt.structures.subsets import NoSetFunction
from propopt.structures.tfidf.linear.rows import LinearRow, is_affine


def before(step: Any, row: LinearRow) -> LinearRow | NoSetFunction:
    """A row of what a fitted step gives, as a row of what it is given.

    Parameters
    ----------
    step : transformer
        A scaler, selection, projection or binarizer; no other is known to be linear.
    row : LinearRow
        Of its columns.
    """
    if is_passthrough(step):
        return row
    if isinstance(step, SelectorMixin):
        support = step.get_support()
        return row.placed(np.asarray(support).nonzero()[0], len(support))
    if type(step) is Binarizer:
        return _binarized(step, row)
    network = None if takes_norm(step) else map_of(step)
    if network is None or not is_affine(network):
        return NoSetFunction(
            f"{type(step).__name__}, which stands between the vectoriser and the "
            "model, is not known to be linear"
        )
    if row.thresholds is not None:
        return _scaled(network, row, type(step).__name__)
    found = LinearRow.of_network(network, row.coefficients, step.n_features_in_)
    return replace(found, intercept=found.intercept + row.intercept)


def takes_norm(step: Any) -> bool:
    """Whether a step divides by a norm."""
    tfidf = type(step) is TfidfTransformer and step.norm is not None
    return tfidf or type(step) is Normalizer


def map_of(step: Any) -> Network | None:
    """The map of a fitted step without its norm; None where it is not known."""
    if type(step) is TfidfTransformer and not step.sublinear_tf:
        zeros = np.zeros(step.n_features_in_)
        return Scaling(zeros, getattr(step, "idf_", zeros + 1.0), zeros)
    read = SKLEARN_TRANSFORMS.get(type(step))
    return None if read is None else read(step)


def _binarized(step: Any, row: LinearRow) -> LinearRow | NoSetFunction:
    if row.thresholds is not None:
        return NoSetFunction("what is compared with a threshold is compared again")
    return replace(
        row, thresholds=np.full(len(row.coefficients), float(step.threshold))
    )


def _scaled(network: Any, row: LinearRow, name: str) -> LinearRow | NoSetFunction:
    """(x − center) factor + offset > t, where x > (t − offset) / factor + center."""
    match network:
        case Scaling(center, factor, offset) if (factor > 0.0).all():
            assert row.thresholds is not None
            return replace(row, thresholds=(row.thresholds - offset) / factor + center)
        case _:
            return NoSetFunction(
                f"the columns of {name} are sums over words, which are compared with "
                "a threshold"
            )
