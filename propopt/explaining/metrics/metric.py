"""Metrics, the methods that they measure, and draws around each point."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Attributions, Mask, Points
from propopt.base.checks import read_seed
from propopt.base.errors import InvalidInput, PropoptWarning
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers import Baseline
from propopt.explaining.explainers.baseline import Request, request_of_document
from propopt.functions import Function
from propopt.functions.function import read_function
from propopt.functions.texts import DocumentFunction, TextFunction
from propopt.laws.perturbations import Perturbations
from propopt.losses.restricted import entry_support
from propopt.results.explanation import Explanation
from propopt.tables.frames import Labels, is_documents, read_points, read_table
from propopt.tables.imported import AttributionsLike, aligned, read_attributions
from propopt.tables.schema import TableSchema


_STREAM = 0x6D657472
"""Sets the draws of metrics apart from those of explainers with the same seed.

Were they the same, a sampled explanation would be judged on the very samples that it
was fitted to, and look better than it is.
"""


def metric_rng(rng: object) -> np.random.Generator:
    """A generator from a seed, None (seed 0) or a generator, which is then advanced."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng([read_seed(rng), _STREAM])


AbsoluteOrRelative: TypeAlias = Literal["absolute", "relative"]


def read_task(
    function: object, X: object, rng: int | np.random.Generator | None
) -> Request:
    """The function, the points as it reads them, and a generator of metrics."""
    f = read_function(function)
    points, labels = f.read(X)
    return Request(function=f, points=points, labels=labels, rng=metric_rng(rng))


def attributions_of(
    explanation: object, points: Points, labels: Labels
) -> Attributions:
    """W (N, D) in the order of X; other points or features raise an error."""
    imported = read_attributions(
        *(explanation, "attributions", labels, points.shape), saved=Explanation.load
    )
    attributions = imported.values
    if attributions.shape != points.shape:
        raise InvalidInput(
            f"attributions: expected the shape of X, {points.shape}, got "
            f"{attributions.shape}"
        )
    return attributions


BACKGROUND_OF_TEXTS: Final = (
    "of documents the background is the text without any word; leave it out"
)


def read_present(
    user_values: object, explanation: object, attributions: Attributions
) -> Mask | None:
    """Which features each point has, (N, D); None where all have all."""
    if user_values is not None:
        table, _ = read_table(user_values, "present")
        if table.shape != attributions.shape:
            raise InvalidInput(
                f"present: expected the shape of the attributions, "
                f"{attributions.shape}, got {table.shape}"
            )
        return np.asarray(table != 0.0)
    if not isinstance(explanation, Explanation) or explanation.program is None:
        return None
    support = entry_support(explanation.program)
    return None if support is None else support.mask


def refuse_documents(metric: str, X: object) -> None:
    """Refuse documents, because the metric needs noise on numbers."""
    if is_documents(X):
        raise InvalidInput(
            f"{metric}: the metric adds noise to numbers, so it is undefined for words "
            "of documents; propopt.losses.SharedRobustness measures how much "
            "explanations of similar documents differ"
        )


def mean_point(task: Request) -> Array:
    """The mean of X, (D,), which categories have not; a document without words."""
    if isinstance(task.function, DocumentFunction):
        return np.zeros(task.points.shape[1])
    if task.categorical.any():
        raise InvalidInput(
            "baseline: categories have no mean; give a baseline, or a background"
        )
    mean: Array = task.points.mean(axis=0)
    return mean


def read_size(k: int | None, n_features: int) -> int:
    """k, by default a quarter of the features; an error if there are fewer."""
    if k is None:
        return max(1, n_features // 4)
    if k > n_features:
        raise InvalidInput(
            f"k: expected at most the {n_features} features of X, got {k}"
        )
    return k


@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class BaselineMethod:
    """An explainer of one function, as a callable ``method(points) -> attributions``.

    This is what the robustness metrics ask, because they need attributions at points
    that nobody has explained yet. An explainer that samples draws anew for every point,
    from one stream which each metric reads from its beginning: the metric then measures
    the Monte-Carlo error of the explainer too, as a user would meet it.

    Parameters
    ----------
    explainer : Baseline
        A method whose explanation of a point does not depend on the other points.
    function : Function
        f.
    rng : int or None
        The seed of the explainer; None is seed 0.

    Raises
    ------
    InvalidInput
        If the explainer would take its background from the points themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.explaining.explainers import Gradient
    >>> from propopt.functions import Power
    >>> method = BaselineMethod(explainer=Gradient(), function=Power(2))
    >>> method(np.array([[1.0, 3.0]]))
    array([[2., 6.]])
    """

    explainer: Baseline
    function: Function
    rng: int | None = None

    def __post_init__(self) -> None:
        read_seed(self.rng)
        settings = self.explainer.parameters
        rows = settings.get("data")
        if rows == "mean" or isinstance(rows, int):  # no table of rows
            raise InvalidInput(
                f"explainer: {self.explainer.method} needs a table as background, such "
                "as data=X; otherwise the explained points are the background, and "
                "perturbed points would change it"
            )

    def __call__(self, X: Any) -> Attributions:
        """Attributions (N, D) at the rows of X; the same each time."""
        return self.begin()(X)

    def begin(self) -> Callable[[Any], Attributions]:
        """The method as a function; successive calls continue one random stream."""
        rng = np.random.default_rng(read_seed(self.rng))

        def explain(X: Any) -> Attributions:
            explanation = self.explainer.explain(
                self.function, X, rng=rng, progress=False
            )
            return explanation.attributions

        return explain


ExplanationMethod: TypeAlias = Callable[[Any], Any]
"""An explanation method: points (m, D), a DataFrame where X is one, to (m, D)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodAtPoints:
    """A method and the points that it explains."""

    explain: ExplanationMethod
    points: Points  # (N, D): X; in a categorical column the codes of the schema
    labels: Labels  # the names that came with X
    # how perturbed points become the tables that the method takes
    schema: TableSchema | None

    @classmethod
    def read(cls, explain: object, X: object) -> Self:
        """The method with the points, read as its function reads them."""
        function = None
        if isinstance(explain, BaselineMethod):
            function, explain = explain.function, explain.begin()
        if not callable(explain):
            raise InvalidInput(
                "explain: expected a callable from points to attributions, got "
                f"{type(explain).__name__}; propopt.metrics.BaselineMethod makes one "
                "of an explainer and a function"
            )
        if function is None:
            points, labels = read_points(X, "X")
            return cls(explain=explain, points=points, labels=labels, schema=None)
        points, labels = function.read(X)
        return cls(
            explain=explain, points=points, labels=labels, schema=function.schema
        )

    @cached_property
    def W(self) -> Attributions:
        """Attributions of the points themselves, (N, D)."""
        return self(self.points)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Codes of categories and missing numbers: what no noise moves, (N, D)."""
        absent = np.isnan(self.points)
        return absent if self.schema is None else absent | self.schema.categorical

    def __call__(self, points: Array) -> Attributions:
        """Attributions at points (..., D), as an array of the same shape."""
        rows = points.reshape(-1, points.shape[-1])
        answer, names = self.explain(self._table(rows)), self.labels.of_columns()
        W = aligned(answer, names, "explain(X)", "X")
        if W.shape != rows.shape:
            raise InvalidInput(
                f"explain(X): expected attributions of shape {rows.shape}, got "
                f"{W.shape}"
            )
        return W.reshape(points.shape)

    def _table(self, rows: Array) -> Array | pd.DataFrame:
        if self.schema is not None:
            return self.schema.decode(rows)
        # Only the columns are named: a perturbed point is no longer a row of X.
        return self.labels.of_columns().table(rows)


class UndefinedRowsWarning(PropoptWarning):
    """A metric divides by zero in some rows; the message counts them."""


def quotient(numerator: ArrayLike, denominator: ArrayLike) -> Array:
    """The quotient as IEEE 754 has it: 0/0 is NaN, anything else over zero is ±∞."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio: Array = np.divide(numerator, denominator)
    return ratio


def warn_undefined(values: Array, name: str) -> Array:
    """``values`` (N,), after a warning if some are NaN or infinite."""
    undefined = int((~np.isfinite(values)).sum())
    if undefined:
        warnings.warn(
            f"{name}: {undefined} of {len(values)} rows divide by zero; they are NaN "
            "where the numerator is zero too, and infinite elsewhere",
            UndefinedRowsWarning,
            stacklevel=3,
        )
    return values


Better: TypeAlias = Literal["higher", "lower"]
RandomSeed: TypeAlias = int | np.random.Generator | None
TableLike: TypeAlias = ArrayLike | pd.DataFrame


@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """Base class of metrics of explanations, named as in the literature.

    Each is a frozen dataclass: its fields are its settings. All give one number per
    point, so that means, medians and tests are left to the caller.

    A division by zero gives what IEEE 754 says, NaN for 0/0 and infinity otherwise, and
    one :class:`UndefinedRowsWarning` with the number of rows.

    Draws depend on ``rng`` alone, never on the memory at hand, and those of a point
    never on later points. The draws of a seed differ from those that an explainer makes
    of the same seed.

    Attributes
    ----------
    better : {"higher", "lower"}
        Which values the literature calls better.
    """

    better: ClassVar[Better]

    @property
    def name(self) -> str:
        """The name of the metric: its class and the settings that are not default.

        Examples
        --------
        >>> from propopt.explaining.metrics import MaxSensitivity
        >>> MaxSensitivity().name, MaxSensitivity(scale=0.5).name
        ('MaxSensitivity', 'MaxSensitivity(scale=0.5)')
        """
        changed = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray | pd.DataFrame | pd.Series):
                changed.append(f"{field.name}={'x'.join(map(str, value.shape))}")
            elif value != field.default:
                changed.append(f"{field.name}={value!r}")
        kind = type(self).__name__
        return f"{kind}({', '.join(changed)})" if changed else kind


@dataclass(frozen=True, kw_only=True)
class FaithfulnessMetric(Metric):
    """A metric of attributions against the function that they explain."""

    def __call__(
        self,
        # W (N, D); rows and columns with names are put in the order of X
        explanation: AttributionsLike,
        function: Function,  # f; see wrap
        # (N, D): the points; a DataFrame reaches the function as a DataFrame
        X: TableLike,
        *,
        # a seed, or a generator, which is then advanced; none is seed 0
        rng: RandomSeed = None,
    ) -> Array:
        """One number per point, shape (N,)."""
        f = read_function(function)
        if isinstance(f, TextFunction):
            rows = self._of_texts(f, explanation, X, metric_rng(rng))
            return warn_undefined(rows, self.name)
        task = read_task(f, X, rng)
        attributions = attributions_of(explanation, task.points, task.labels)
        return warn_undefined(self._rows(task, attributions), self.name)

    def _of_texts(
        self,
        function: TextFunction,
        explanation: AttributionsLike,
        X: object,
        rng: np.random.Generator,
    ) -> Array:
        """One number per document, as a function of its set of words."""
        reason = self._texts_refusal()
        if reason is not None:
            raise InvalidInput(f"{self.name}: {reason}")
        points, labels = function.read(X)
        W = attributions_of(explanation, points, labels)
        rows = np.full(len(W), np.nan)
        for n, document in enumerate(function.documents_of(X)):
            if document.n_words > 0:
                words = W[n : n + 1, function.text_schema.columns_of(document)]
                task = request_of_document(function, document, rng)
                rows[n] = self._rows(task, words)[0]
        return rows

    def _texts_refusal(self) -> str | None:
        """Why it says nothing of documents; None if it does."""
        return "it adds noise to numbers, and words of documents are present or absent"

    @abstractmethod
    def _rows(self, task: Request, attributions: Attributions) -> Array:
        """The number of each row."""


# ---- Draws around each point


Statistic: TypeAlias = Callable[[slice, Array], Array]
"""From rows and their perturbations (n, s, D) to an array (n, s, ...) that is small."""


@dataclass(frozen=True, kw_only=True)
class Noisy(Perturbations):
    """Settings of metrics with noise, which codes and missing numbers do not get."""

    scale: float = 0.1
    n_samples: int = 100


def sampled(
    perturbations: Perturbations,
    fixed: NDArray[np.bool_],
    rng: np.random.Generator,
    statistic: Statistic,
) -> Iterator[tuple[slice, Array]]:
    """The statistic (n, S, ...) of consecutive rows, perturbed where not ``fixed``."""
    blocks = perturbations.blocks(fixed.shape, rng, split=True)
    for rows, pieces in groupby(blocks, key=itemgetter(0)):
        values = []
        for _, noise in pieces:
            noise[np.broadcast_to(fixed[rows, None], noise.shape)] = 0
            values.append(statistic(rows, noise))
        yield rows, np.concatenate(values, axis=1)
