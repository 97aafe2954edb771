"""Why functions are no sums of products: half sentences, with what would do."""

from __future__ import annotations

from typing import Final


SIGMOID: Final = (
    "a probability is the logistic function of a sum; "
    "wrap(model, output='log_odds') is exact"
)
SOFTMAX: Final = (
    "a probability of one of several classes is a softmax of their scores; "
    "wrap(model, output='margin', target=...) is exact where the model has margins"
)
LOG_ODDS_OF_MANY: Final = (
    "log-odds of one of several classes hold the logarithm of a sum over the others; "
    "wrap(model, output='margin', target=...) is exact where the model has margins"
)
EXPONENTIAL: Final = (
    "its values are the exponential of a sum of products, and only that of a sum over "
    "single columns is a product"
)
MIXED: Final = (
    "its steps mix columns, as PCA does, before what is no linear function of them"
)
UNITS: Final = "layers of {} units are no sum of products of single columns"
COSINES: Final = "its random features are cosines of sums of columns"
UNKNOWN: Final = "its scores are not known to be a sum of products"
