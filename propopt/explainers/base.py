"""What every baseline has in common: tables in, one :class:`Explanation` out."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions
from propopt.checks import read_array, read_rng
from propopt.errors import InvalidInput
from propopt.estimates import Units
from propopt.explainers.request import Request
from propopt.explainers.texts.each import (
    DocumentTable,
    WordsFound,
    request_of_document,
)
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.functions.cost import Cost, cost_of
from propopt.functions.text import TextFunction
from propopt.output.progress import progress_bar
from propopt.results.coordinates import EFFECTS
from propopt.results.explanation import Explanation, Parameter


MANY_EVALUATIONS: Final = 10_000
"""Evaluations from which a few are timed before; of others it is seen meanwhile."""

PackageUnits: TypeAlias = Literal["gradient", "output"]
"""Slopes, or parts of the output: what packages give, and what is comparable."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What a method says of the points of a request.

    Parameters
    ----------
    attributions : array (N, D)
        One attribution vector per point.
    standard_errors : array (N, D) or None
        Of a method that samples, where it knows them.
    details : mapping of arrays
        What it knows besides.
    """

    attributions: Attributions
    standard_errors: Array | None = None
    details: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Baseline(ABC):
    """A method that explains a function at given points.

    Each baseline is a frozen dataclass: its fields are its settings. A new one gives
    ``method``, the name it has in files, and ``_findings``.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.explainers import Gradient
    >>> from propopt.functions import Power
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> Gradient().explain(Power(3), X).attributions
    array([[ 0.,  3.],
           [12., 27.]])
    """

    method: ClassVar[str]

    def explain(
        self,
        function: Function,
        X: object,
        *,
        rng: int | np.random.Generator | None = None,
        progress: bool | None = None,
    ) -> Explanation:
        """Explain ``function`` at the rows of ``X``.

        Parameters
        ----------
        function : Function
            f; see :func:`propopt.wrap` for models and callables.
        X : array or DataFrame (N, D), or documents
            The points. A DataFrame reaches the function as a DataFrame, and its names
            are kept in the result. Of a :class:`~propopt.functions.TextFunction` a list
            or Series of texts, each of which is explained as a function of which of its
            words are kept, beside the text without any: attributions are in units of
            the output, and 0 for words that are not in a document.
        rng : int, numpy.random.Generator or None
            A seed, or a generator, which is then advanced. None is seed 0: a result
            never changes from run to run unless another seed is asked for.
        progress : bool, optional
            Show a bar on standard error; by default only on a terminal.

        Returns
        -------
        Explanation
            With ``method``, ``parameters``, ``labels``, ``units``, ``seconds``,
            ``evaluations``, and the ``standard_errors`` and ``details`` that the method
            documents. With a schema its columns are the encoded ones, and the
            attribution of a category is the effect of that category on the output, and
            that of a missing number its effect: ``details["effects"]`` (N, D) says
            where.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or if the function gives attributions that
            are not finite.
        """
        start = time.perf_counter()
        function = read_function(function)
        if isinstance(function, TextFunction):
            return self._explained_texts(function, X, read_rng(rng), progress)
        points, labels = function.read(X)
        before = function.calls.rows
        with progress_bar(self.method, len(points), progress) as bar:
            request = Request(
                function=function,
                points=points,
                labels=labels,
                rng=read_rng(rng),
                advance=partial(bar.advance, bar.task_ids[0]),
            )
            with self._announced([request], progress):
                findings = self._findings(request)
        rows, seconds = function.calls.rows - before, time.perf_counter() - start
        return self._explanation(request, findings, rows, seconds)

    def _explanation(
        self, request: Request, findings: Findings, evaluations: int, seconds: float
    ) -> Explanation:
        """What was found, with what it was asked."""
        missing = np.isnan(request.points)
        return Explanation(
            attributions=read_array(
                findings.attributions, f"{self.method} of X", ndim=2
            ),
            method=self.method,
            labels=request.labels,
            parameters=self.parameters,
            standard_errors=findings.standard_errors,
            details={
                **findings.details,
                **({EFFECTS: missing} if missing.any() else {}),
            },
            units=self.units,
            quantity=request.function.quantity,
            evaluations=evaluations,
            seconds=seconds,
        )

    def _explained_texts(
        self,
        function: TextFunction,
        X: object,
        rng: np.random.Generator,
        progress: bool | None,
    ) -> Explanation:
        """Each document by itself, with a generator of its own."""
        start, before = time.perf_counter(), function.calls.rows
        reason = self._texts_refusal()
        if reason is not None:
            raise InvalidInput(f"{self.method}: {reason}")
        table = DocumentTable.of(function, X)
        asked = [request_of_document(function, x, rng) for x in table.documents]
        found = []
        with (
            progress_bar(self.method, len(asked), progress) as bar,
            self._announced(asked, progress),
        ):
            for request in asked:
                has_words = request.points.shape[1] > 0
                found.append(self._words(request) if has_words else _NO_WORDS)
                bar.advance(bar.task_ids[0])
        return Explanation(
            attributions=table.attributions(found),
            method=self.method,
            labels=table.labels,
            parameters=self._texts_parameters(),
            standard_errors=table.standard_errors(found),
            details=table.details(found),
            units="output",
            quantity=function.quantity,
            evaluations=function.calls.rows - before,
            seconds=time.perf_counter() - start,
        )

    def _texts_refusal(self) -> str | None:
        """Why these settings have no meaning for documents; None if they have."""
        return None

    def _texts_parameters(self) -> dict[str, Parameter]:
        """The settings that have a meaning for documents."""
        return self.parameters

    def _words(self, request: Request) -> WordsFound:
        """What is said of a document: the request has one row, of ones."""
        found = self._findings(request)
        errors = found.standard_errors
        return WordsFound(
            attributions=found.attributions[0],
            standard_errors=None if errors is None else errors[0],
            details={
                name: float(values[0])
                for name, values in found.details.items()
                if values.ndim == 1
            },
        )

    @property
    def units(self) -> Units:
        """What the attributions of numbers are: slopes, unless a method says other."""
        return "gradient"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings as plain values; a table is named by its shape and digest."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }

    def _announced(
        self, requests: list[Request], progress: bool | None
    ) -> AbstractContextManager[None]:
        """Say what is going to be evaluated, where that is known and takes long."""
        asked = [request for request in requests if request.points.shape[1] > 0]
        expected = sum(map(self._expected, asked))
        if expected == 0:
            return nullcontext()
        longest = max(asked, key=lambda request: request.points.shape[1])
        at, calls = longest.function, sum(map(self._expected_calls, asked))
        cost = Cost(expected, math.inf)
        if expected >= MANY_EVALUATIONS:
            cost = cost_of(at, longest.points, longest.labels, expected, calls)
        return cost.announced(self.method, at.calls, progress)

    def _expected(self, request: Request) -> int:
        """How many evaluations a method makes, or 0 where it does not know before."""
        del request
        return 0

    def _expected_calls(self, request: Request) -> int:
        """In how many calls it makes them, at least."""
        del request
        return 1

    @abstractmethod
    def _findings(self, request: Request) -> Findings:
        """The attributions of the request's points, and what is known of them."""


_NO_WORDS: Final = WordsFound(attributions=np.zeros(0))
"""Of a document without words."""


def _plain(value: Any) -> Parameter:
    if isinstance(value, np.ndarray | pd.DataFrame):
        digest = hashlib.sha256(_bytes(value)).hexdigest()
        return f"{'x'.join(map(str, value.shape))} sha256:{digest[:12]}"
    if isinstance(value, np.generic):
        return value.item()
    return value


def _bytes(table: Array | pd.DataFrame) -> bytes:
    """What a table holds; of text its hash, for objects have addresses as bytes."""
    if isinstance(table, pd.DataFrame) and not all(
        isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in table.dtypes
    ):
        return pd.util.hash_pandas_object(table).to_numpy().tobytes()
    return np.ascontiguousarray(table).tobytes()
