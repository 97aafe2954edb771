"""Baselines: requests, findings, the gradient, and documents one by one.

Any baseline on documents: each by itself, as a function of its words. A document is a
row of d words, each present or absent
(:class:`propopt.functions.texts.DocumentFunction`), and the background of methods that
have one is the document without any word. Attributions of its words are put into a
table of all words, with 0 for words that are not in a document.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.checks import read_array, read_rng
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.terminal import progress_bar
from propopt.functions import Function
from propopt.functions.function import read_function
from propopt.functions.texts import TextFunction
from propopt.losses.faithfulness import Units
from propopt.proofs.optimum import Parameter
from propopt.results.explanation import Explanation
from propopt.tables.documents import TextDocument
from propopt.tables.frames import Labels


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A function, the points at which to explain it, and a source of randomness."""

    function: Function  # f, as the user gave it
    # (N, D): X; in a categorical column the codes of the function's schema
    points: Points
    labels: Labels  # the names of X
    rng: np.random.Generator  # the source of all draws
    # reports the number of finished points, which may be a fraction
    advance: Callable[[float], None] = lambda _: None

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns hold codes of categories, shape (D,)."""
        return ~self.function.numeric_columns(self.points)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Codes of categories and missing numbers: what no noise moves, (N, D)."""
        return np.isnan(self.points) | self.categorical

    def value(self, points: Array) -> Array:
        """Values of f at points (..., D), as an array of shape (...)."""
        rows = points.reshape(-1, points.shape[-1])
        return self.function.value_at(rows, self._names).reshape(points.shape[:-1])

    def gradient(self, points: Array) -> Array:
        """Gradients of f at points (..., D), as an array of the same shape."""
        rows = points.reshape(-1, points.shape[-1])
        return self.function.gradient_at(rows, self._names).reshape(points.shape)

    def feature_units(self, relative: bool) -> Array:
        """What a method perturbs by, (D,): deviations, 0 if constant; or ones."""
        if not relative:
            return np.ones(self.points.shape[1])
        if self.function.schema is None:
            raise InvalidInput(
                "relative: standard deviations of columns are unknown, as the function "
                "was made without a DataFrame; give it one by wrap(model, data=X)"
            )
        return self.function.schema.scales("std")

    def noise_units(self, relative: bool) -> Array:
        """As :meth:`feature_units`, but 0 for categories, which get no noise."""
        return np.where(self.categorical, 0.0, self.feature_units(relative))

    def row_seeds(self) -> list[int]:
        """One 32-bit seed per point, from the generator and the position only."""
        return [int(seed) for seed in self.rng.integers(2**32, size=len(self.points))]

    @property
    def _names(self) -> Labels:
        # Only the columns are named: a perturbed point is no longer a row of X.
        return self.labels.of_columns()


_UNLIMITED: Final = ("precision", "max_evaluations")
"""Settings that are shown only if they are given."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """The attributions of a method for a request, with details."""

    attributions: Attributions  # (N, D): one attribution vector per point
    standard_errors: Array | None = None  # (N, D): of methods that sample
    base_value: Values | None = None  # (N,): the base of contributions
    prediction: Values | None = None  # (N,): f(x), of contributions
    details: Mapping[str, Array] = field(default_factory=dict)


def _of_documents(
    function: TextFunction,
    documents: Sequence[TextDocument],
    findings: Sequence[Findings],
) -> Findings:
    """Combine findings of single documents, over all words (N, V)."""
    as_table = partial(function.text_schema.in_columns, documents)

    def numbers(arrays: Sequence[Array | None]) -> Array:
        return np.array([np.nan if x is None else x[0] for x in arrays])

    errors = None
    if any(one.standard_errors is not None for one in findings):
        pairs = [(one.standard_errors, one.attributions) for one in findings]
        errors = as_table(
            [
                np.zeros_like(w) if errors_of_words is None else errors_of_words
                for errors_of_words, w in pairs
            ]
        )
    base = numbers([one.base_value for one in findings])
    prediction = numbers([one.prediction for one in findings])
    has_totals = not np.isnan([base, prediction]).all()
    names = [k for one in findings for k, x in one.details.items() if x.ndim == 1]
    return Findings(
        attributions=as_table([one.attributions for one in findings]),
        standard_errors=errors,
        base_value=base if has_totals else None,
        prediction=prediction if has_totals else None,
        details={k: numbers([one.details.get(k) for one in findings]) for k in names},
    )


def request_of_document(
    function: TextFunction, document: TextDocument, rng: np.random.Generator
) -> Request:
    """The request for one document: a row of ones, and a separate generator."""
    at = function.of_document(document)
    return Request(
        function=at,
        points=np.ones((1, at.n_words)),
        labels=Labels(features=at.features),
        rng=np.random.default_rng(rng.integers(2**63)),
    )


def effect_of_the_word(request: Request) -> Findings | None:
    """The LIME coefficient of a document of one word: its effect; else None.

    The word is deleted in all samples but the first, which is the document itself, so
    that the fit has f without it as intercept, and its effect as slope.
    """
    if request.points.shape[1] != 1:
        return None
    effect = request.gradient(request.points)
    without = request.value(np.zeros((1, 1)))
    return Findings(attributions=effect, details={"intercept": without})


PackageUnits: TypeAlias = Literal["gradient", "output"]
"""Units of attributions: slopes, or parts of the output as in packages."""


@dataclass(frozen=True, kw_only=True, eq=False)  # methods define their own equality
class Baseline(ABC):
    """A method that explains a function at given points.

    Each baseline is a frozen dataclass: its fields are its settings. A new one gives
    ``method``, the name it has in files, and ``_findings``.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.explaining.explainers import Gradient
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
            words are present, against the empty text: attributions are in units of
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
            that of a missing number its effect: ``effects`` (N, D) says where.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or if the function gives attributions that
            are not finite.
        """
        start = time.perf_counter()
        function = read_function(function)
        reason = self._texts_refusal() if isinstance(function, TextFunction) else None
        if reason is not None:
            raise InvalidInput(f"{self.method}: {reason}")
        function = function.with_categories_of(X)
        points, labels = function.read(X)
        before = function.calls.rows
        request = Request(
            function=function, points=points, labels=labels, rng=read_rng(rng)
        )
        with progress_bar(self.method, len(points), progress) as advance:
            request = replace(request, advance=advance)
            if isinstance(function, TextFunction):
                findings = self._of_texts(function, X, request)
            else:
                findings = self._findings(request)
        rows = function.calls.rows - before
        return self._explanation(request, findings, rows, time.perf_counter() - start)

    def _explanation(
        self, request: Request, findings: Findings, evaluations: int, seconds: float
    ) -> Explanation:
        """The explanation with the findings of a request."""
        missing = np.isnan(request.points)
        fields = {
            "parameters": self.parameters,
            "units": self.units,
            **request.function.metadata(request.points),
        }
        if isinstance(request.function, TextFunction):
            fields = {"parameters": self._texts_parameters(), "units": "output"}
        return Explanation(
            attributions=read_array(
                findings.attributions, f"{self.method} of X", ndim=2
            ),
            method=self.method,
            labels=request.labels,
            standard_errors=findings.standard_errors,
            effects=missing if missing.any() else None,
            base_value=findings.base_value,
            prediction=findings.prediction,
            details=findings.details,
            quantity=request.function.quantity,
            evaluations=evaluations,
            seconds=seconds,
            **fields,
        )

    def _of_texts(self, function: TextFunction, X: object, of: Request) -> Findings:
        """Explain each document by itself, with a separate generator."""
        documents = function.documents_of(X)
        requests = [request_of_document(function, x, of.rng) for x in documents]
        findings = []
        for request in requests:
            has_words = request.points.shape[1] > 0
            none = Findings(attributions=np.zeros((1, 0)))
            findings.append(self._words(request) if has_words else none)
            of.advance(1)
        return _of_documents(function, documents, findings)

    def _texts_refusal(self) -> str | None:
        """The reason why these settings cannot explain documents, or None."""
        return None

    def _texts_parameters(self) -> dict[str, Parameter]:
        """The settings that apply to documents, as plain values."""
        return self.parameters

    def _words(self, request: Request) -> Findings:
        """The findings for a document: a request with one row of ones."""
        return self._findings(request)

    @property
    def units(self) -> Units:
        """The units of attributions of numeric columns: slopes by default."""
        return "gradient"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings as plain values; a table is given by its shape and hash."""
        return dict(self._plain_settings)

    @cached_property
    def _plain_settings(self) -> dict[str, Parameter]:
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if not (field.name in _UNLIMITED and getattr(self, field.name) is None)
        }

    @abstractmethod
    def _findings(self, request: Request) -> Findings:
        """The attributions of the points of a request, with details."""


def _plain(value: Any) -> Parameter:
    if isinstance(value, np.ndarray | pd.DataFrame):
        content = np.ascontiguousarray(value).tobytes
        if isinstance(value, pd.DataFrame) and not all(
            isinstance(x, np.dtype) and x.kind in "biuf" for x in value.dtypes
        ):  # of text its hash, for objects have addresses as bytes
            content = pd.util.hash_pandas_object(value).to_numpy().tobytes
        digest = hashlib.sha256(content()).hexdigest()
        return f"{'x'.join(map(str, value.shape))} sha256:{digest[:12]}"
    return value.item() if isinstance(value, np.generic) else value


@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Gradient(Baseline):
    """The gradient at each point: w_n = ∇f(x_n).

    The most faithful of all explanations under
    :class:`~propopt.losses.GradientMatching`, whose loss it makes zero.

    Examples
    --------
    >>> from propopt.functions import Sine
    >>> Gradient().explain(Sine(), [[0.0, 0.0]]).attributions
    array([[1., 1.]])
    """

    method: ClassVar[str] = "gradient"

    def _findings(self, request: Request) -> Findings:
        return Findings(attributions=request.gradient(request.points))
