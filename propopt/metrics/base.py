"""What a metric is: one number per point; and the kinds, by what they need to know."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions
from propopt.errors import InvalidInput, PropoptWarning
from propopt.explainers.request import Request
from propopt.explainers.texts.each import DocumentTable, request_of_document
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.functions.text import TextFunction
from propopt.metrics.methods import ExplanationMethod, MethodAtPoints
from propopt.metrics.reading import (
    attributions_of,
    metric_rng,
    read_present,
    read_task,
    refuse_documents,
)
from propopt.results.foreign import AttributionsLike
from propopt.tables.alignment import read_attributions


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


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """A metric of explanations under the name that the literature gives it.

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
        """The class, and the settings that are not the default.

        Examples
        --------
        >>> from propopt.metrics import MaxSensitivity
        >>> MaxSensitivity().name, MaxSensitivity(scale=0.5).name
        ('MaxSensitivity', 'MaxSensitivity(scale=0.5)')
        """
        changed = [
            f"{field.name}={_short(value)}"
            for field in dataclasses.fields(self)
            if not _same(value := getattr(self, field.name), field.default)
        ]
        kind = type(self).__name__
        return f"{kind}({', '.join(changed)})" if changed else kind


@dataclass(frozen=True, kw_only=True)
class ComplexityMetric(Metric):
    """A metric of the attributions alone."""

    def __call__(
        self, explanation: AttributionsLike, *, present: TableLike | None = None
    ) -> Array:
        """One number per point, shape (N,).

        Parameters
        ----------
        explanation : Explanation, shap.Explanation, DataFrame or array
            W (N, D).
        present : array or DataFrame (N, D), optional
            Which features a point has, all that is not zero, such as counts of words:
            others have no part in its number. By default those that the objective of
            the explanation is about, and all where it has none.

        Raises
        ------
        InvalidInput
            If the attributions are not a finite table, or ``present`` has another
            shape.
        """
        attributions, _ = read_attributions(explanation, "attributions")
        here = read_present(present, explanation, attributions)
        if here is None:
            return warn_undefined(self._rows(attributions), self.name)
        rows = np.full(len(here), np.nan)
        for n in np.flatnonzero(here.any(axis=1)):
            rows[n] = self._rows(attributions[[n]][:, here[n]])[0]
        return warn_undefined(rows, self.name)

    @abstractmethod
    def _rows(self, attributions: Attributions) -> Array:
        """The number of each row."""


@dataclass(frozen=True, kw_only=True)
class FaithfulnessMetric(Metric):
    """A metric of attributions against the function that they explain."""

    def __call__(
        self,
        explanation: AttributionsLike,
        function: Function,
        X: TableLike,
        *,
        rng: RandomSeed = None,
    ) -> Array:
        """One number per point, shape (N,).

        Parameters
        ----------
        explanation : Explanation, shap.Explanation, DataFrame or array
            W (N, D); rows and columns with names are put in the order of X.
        function : Function
            f; see :func:`propopt.wrap`.
        X : array or DataFrame (N, D), or documents
            The points; a DataFrame reaches the function as a DataFrame. A list or
            Series of texts, of a function of these: a document is then compared with
            what is left of it without words, in place of a mean.
        rng : int, numpy.random.Generator or None
            A seed, or a generator, which is then advanced. None is seed 0.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or if W and X differ in shape or in names.
        """
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
        """Each document by itself, as a function of which of its words are kept."""
        reason = self._texts_refusal()
        if reason is not None:
            raise InvalidInput(f"{self.name}: {reason}")
        points, labels = function.read(X)
        W = attributions_of(explanation, points, labels)
        table = DocumentTable.of(function, X)
        rows = np.full(len(W), np.nan)
        for n, document in enumerate(table.documents):
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


@dataclass(frozen=True, kw_only=True)
class RobustnessMetric(Metric):
    """A metric of an explanation *method*, which can be asked about any points."""

    def __call__(
        self, explain: ExplanationMethod, X: TableLike, *, rng: RandomSeed = None
    ) -> Array:
        """One number per point, shape (N,).

        Parameters
        ----------
        explain : callable
            From points (m, D) to attributions (m, D); it is asked about X, and about
            many perturbed points at once. A DataFrame X reaches it as DataFrames.
            :class:`BaselineMethod` makes one of an explainer and a function.
        X : array or DataFrame (N, D)
            The points.
        rng : int, numpy.random.Generator or None
            A seed, or a generator, which is then advanced. None is seed 0.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or if the method gives attributions of
            another shape, or such as are not finite. If X are documents: words are
            present or absent, and have no points near them.
        """
        refuse_documents(self.name, X)
        method = MethodAtPoints.read(explain, X)
        return warn_undefined(self._rows(method, metric_rng(rng)), self.name)

    @abstractmethod
    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        """The number of each row."""


@dataclass(frozen=True, kw_only=True)
class OutputRobustnessMetric(Metric):
    """A metric of an explanation method against changes of the function's output."""

    def __call__(
        self,
        explain: ExplanationMethod,
        function: Function,
        X: TableLike,
        *,
        rng: RandomSeed = None,
    ) -> Array:
        """One number per point, shape (N,).

        Parameters
        ----------
        explain : callable
            From points (m, D) to attributions (m, D), as for
            :class:`RobustnessMetric`.
        function : Function
            f.
        X : array or DataFrame (N, D)
            The points.
        rng : int, numpy.random.Generator or None
            A seed, or a generator, which is then advanced. None is seed 0.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or X are documents.
        """
        f = read_function(function)
        refuse_documents(self.name, X)
        method = MethodAtPoints.read(explain, X, f)
        values = self._rows(method, f, metric_rng(rng))
        return warn_undefined(values, self.name)

    @abstractmethod
    def _rows(
        self, method: MethodAtPoints, function: Function, rng: np.random.Generator
    ) -> Array:
        """The number of each row."""


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, np.ndarray | pd.DataFrame | pd.Series):
        return False
    return bool(value == default)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray | pd.DataFrame | pd.Series):
        return "x".join(map(str, value.shape))
    return repr(value)
