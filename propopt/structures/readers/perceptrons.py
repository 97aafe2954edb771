"""Multi-layer perceptrons of scikit-learn, read from fitted models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sklearn.neural_network import MLPClassifier, MLPRegressor

from propopt.structures.links import Exponentiated, Link, Score
from propopt.structures.networks import Layers, Network
from propopt.structures.readers.base import Reader, ScoredOutput, of_logits
from propopt.structures.readers.parameters import floats


def _layers(model: Any) -> Network:
    weights = tuple(floats(layer) for layer in model.coefs_)
    biases = tuple(floats(layer) for layer in model.intercepts_)
    return Layers(weights, biases, model.activation)


def _value(model: Any, quantity: ScoredOutput) -> Link:
    """Regressors of counts give the exponential of their score."""
    link = Exponentiated if model.out_activation_ == "exp" else Score
    return link(quantity.index)


PERCEPTRONS: Final[Mapping[type, Reader]] = {
    MLPClassifier: Reader(_layers, of_logits),
    MLPRegressor: Reader(_layers, _value),
}
