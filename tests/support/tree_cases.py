"""Tables and models for readers of trees, and what they are held to."""

import numpy as np
import pandas as pd

import propopt as po
from propopt.structures.boxes.boxes import DOUBLE_TOLERANCE, SINGLE_TOLERANCE, Boxes
from propopt.structures.readers.model_products import exact_products
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.registry import as_estimator


N = 400
EXACT, SINGLE = 3e-15, 2e-5  # sums of trees in float64 and in float32


def numbers(rng: int = 0) -> np.ndarray:
    """Normal, binary, a few integers, skewed, constant, of large numbers."""
    rng = np.random.default_rng(rng)
    return np.column_stack(
        [
            rng.normal(size=N),
            rng.integers(0, 2, N),
            rng.integers(0, 7, N),
            np.exp(rng.normal(size=N)),
            np.full(N, 3.0),
            1e4 * rng.normal(size=N),
        ]
    )


def response(X: np.ndarray, rng: int = 1) -> np.ndarray:
    """With interactions and noise."""
    noise = np.random.default_rng(rng).normal(size=len(X))
    return X[:, 0] + 2.0 * X[:, 1] * (X[:, 3] > 1) + np.sin(X[:, 2]) + 0.3 * noise


X = numbers()
Y = response(X)
CLASSES = (np.median(Y) < Y).astype(int)
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
GAPS = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
WEIGHTS = np.random.default_rng(3).random(N) + 0.1


def table() -> pd.DataFrame:
    """Numbers, and categories of every dtype."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "size": X[:, 0],
            "flag": X[:, 1] > 0,
            "count": X[:, 2].astype(int),
            "letter": pd.Categorical(rng.choice(list("uvwxy"), N)),
            "weight": X[:, 3],
            "number": pd.Categorical(rng.choice([7, 3, 11, 5], N)),
            "text": pd.Series(rng.choice(list("pqrs"), N), dtype=object),
        }
    )


def table_response(frame: pd.DataFrame) -> np.ndarray:
    """Which depends on the categories, too."""
    letters = frame["letter"].isin(["u", "x"]) * 2.0
    texts = frame["text"].isin(["q", "s"]) * 1.5 if "text" in frame else 0.0
    return Y + letters + texts + (frame["number"].astype(float) == 7)


def boxes_of(model, output="value", index=None, data=X):
    """What is read of a model of a table of numbers, or of a DataFrame."""
    if isinstance(data, pd.DataFrame):
        view = ColumnView.of_schema(po.functions.TableSchema.of(data))
    else:
        view = ColumnView.of_numbers(data.shape[1], lambda points: points)
    read = exact_products(as_estimator(model), ModelOutput(output, index), view)
    return read if isinstance(read, Boxes) else None


def agrees(boxes, truth, data=X, tolerance=EXACT) -> None:
    """Boxes are the model at all rows, over max(1, |f|)."""
    if isinstance(data, pd.DataFrame):
        data = po.functions.TableSchema.of(data).encode(data)[0]
    errors = np.abs(boxes.value(data) - truth) / np.maximum(1.0, np.abs(truth))
    assert errors.max() <= tolerance
    allowed = DOUBLE_TOLERANCE if tolerance <= DOUBLE_TOLERANCE else SINGLE_TOLERANCE
    assert boxes.tolerance == allowed
