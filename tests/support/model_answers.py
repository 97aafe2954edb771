"""What a model itself says, and that what was read of it says the same."""

import numpy as np

from propopt.structures.products.sums import SumOfProducts


def of_class(model, output, target, data):
    """What a classifier itself says of a class, by its position."""
    if output == "margin":
        margin = model.decision_function(data)
        return margin[:, target] if margin.ndim == 2 else (2 * target - 1) * margin
    p = model.predict_proba(data)
    if output == "probability":
        return p[:, target]
    return np.log(p[:, target]) - np.log(np.delete(p, target, 1).sum(axis=1))


def is_read(function, data, tolerance=1e-12):
    """The sum of products of a function, which is its value, to rounding."""
    read = function.products
    assert isinstance(read, SumOfProducts), read.reason
    points, _ = function.read(data)
    values = function.value(data)
    size = max(1.0, np.abs(values).max())
    assert np.abs(read.value(points) - values).max() <= tolerance * size
    return read
