"""Sections of models that are made here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from propopt.base.arrays import Attributions, Points, Values
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.resources import require_memory
from propopt.base.text import Reason
from propopt.functions import Function, smoothed
from propopt.functions.function import OfFunction
from propopt.functions.smoothing import LawName
from propopt.laws.draws import N_BLOCKS
from propopt.losses.faithfulness import Estimate
from propopt.problems.sections import (
    MOST_NUMBERS,
    Count,
    Label,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    Shaped,
    part,
    section_of,
    wrong,
)
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels, listed, read_points
from propopt.tables.schema import array_scales


# ---- What all models of a problem file have in common


StopWords: TypeAlias = Annotated[
    Literal["english"] | list[str], Shaped("'english', or a list of words")
]
Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
MOST_OF_A_GRAM: Final = 20


class VectorizerSection(Section):
    """What counts words: settings and defaults are those of scikit-learn's class.

    Of its settings those are not here that are code or take numbers from elsewhere;
    ``import`` a pipeline for these. A pattern of one's own is code, too: there are some
    that never end.
    """

    lowercase: bool = True
    strip_accents: Literal["ascii", "unicode"] | None = None
    stop_words: StopWords | None = Field(
        None, description="words that are not counted: a list of them, or english"
    )
    token_pattern: Literal[r"(?u)\b\w\w+\b", r"(?u)\b\w+\b"] = Field(
        r"(?u)\b\w\w+\b", description="the second pattern counts single letters, too"
    )
    ngram_range: list[Annotated[int, Field(ge=1, le=MOST_OF_A_GRAM)]] = Field(
        [1, 1], description="the fewest words in a row that are counted, and the most"
    )
    min_df: Count = Field(1, description="in how many documents it stands at least")
    max_df: Share = Field(1.0, description="in what share of documents at most")
    max_features: Count | None = Field(None, description="those that come most often")
    binary: bool = Field(False, description="whether it is there, not how often")

    def conflicts(self) -> Iterator[PropoptError]:
        lengths = self.ngram_range
        if len(lengths) != 2 or lengths[0] > lengths[1]:
            expected = "expected two numbers, the smaller first, such as [1, 2]"
            yield wrong(f"ngram_range: {expected}")

    def make(self, **others: Any) -> Any:
        lengths = tuple(self.ngram_range)
        return super().make(ngram_range=lengths, dtype=np.float64, **others)

    def vocabulary(self, texts: Sequence[str]) -> list[str]:
        """The words that are counted in documents, or runs of words."""
        least, most = self.ngram_range
        n_grams = sum(map(len, texts)) / 2.0 * (most - least + 1)
        n_bytes = n_grams * (60.0 + 6.0 * most)
        require_memory(n_bytes, "so many n-grams", "take shorter ones")
        try:
            with warnings.catch_warnings(action="ignore"):  # they come with the model
                return [*self.make().fit(texts).vocabulary_]
        except ValueError as error:
            raise InvalidInput(f"in the documents to fit on: {error}") from None


VECTORIZERS: Final[tuple[type[VectorizerSection], ...]] = (
    section_of(
        CountVectorizer,
        VectorizerSection,
        "CountVectorizerSection",
        "How often each word comes.",
        kind=Literal["counts"],
    ),
    section_of(
        TfidfVectorizer,
        VectorizerSection,
        "TfidfVectorizerSection",
        "How often each word comes, more where few documents have it, to length one.",
        kind=Literal["tfidf"],
        norm=Literal["l1", "l2"] | None,
        use_idf=bool,
        smooth_idf=bool,
        sublinear_tf=bool,
    ),
)
AnyVectorizer: TypeAlias = Annotated[VectorizerSection, OneOf("kind", VECTORIZERS)]
TFIDF: Final = VECTORIZERS[1].model_validate({"kind": "tfidf"})
"""What documents are learned by where nothing else is said."""


# ---- The key ``smooth`` of a model: gradients of its mean under noise


@dataclass(frozen=True, eq=False, repr=False)
class SmoothGradients(OfFunction):
    """The values of a function, and the gradients of its mean near each point."""

    function: Function
    mean: Function

    def __repr__(self) -> str:
        return repr(self.mean)

    @property
    def gradient_method(self) -> str:
        return self.mean.gradient_method

    @property
    def boxes(self) -> Boxes | None:
        """Those of the function."""
        return self.function.boxes

    @property
    def margin_boxes(self) -> Boxes | None:
        """Those of the function."""
        return self.function.margin_boxes

    @property
    def products(self) -> SumOfProducts | Reason:
        """Those of the function."""
        return self.function.products

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        return self.function.products_in(n_columns)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self.mean.estimate_at(points, labels)

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.function.value_at(points, labels)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.mean.gradient_at(points, labels)


class Smooth(Section):
    """Slopes of the mean of a model under a law, by :func:`propopt.functions.smoothed`.

    Values are those of the model itself.
    """

    law: LawName = Field(
        "gaussian",
        description="over what is averaged: x + δ ∘ ε with ε ~ N(0, I), or the values "
        "near x of the rows that are fitted on, the default of models that jump",
    )
    scale: Positive = Field(
        0.5,
        description="of gaussian noise, δ in standard deviations of each column of the "
        "rows that are fitted on",
    )
    n_samples: Annotated[int, Field(ge=2, le=1_000_000)] = Field(
        500,
        description="draws where nothing is known exactly, for gaussian noise pairs of "
        "them; gradients need at least two for each feature",
    )

    def conflicts(self) -> Iterator[PropoptError]:
        if self.law == "data" and "scale" in self.model_fields_set:
            yield wrong("scale: the data law has its own bandwidths; leave it out")

    def check(self, extent: Any) -> None:
        least = 2 * extent.n_numbers
        if self.law == "gaussian" and self.n_samples < least:
            raise wrong(
                f"expected at least {least}, two for each of {extent.n_numbers} "
                f"numeric columns, got {self.n_samples}",
                "n_samples",
            )
        if self.law == "data" and self.n_samples % N_BLOCKS:
            raise wrong(
                f"expected a multiple of {N_BLOCKS}, the number of blocks of draws "
                f"that tell their error, got {self.n_samples}",
                "n_samples",
            )

    def build(self, function: Function, table: Any, seed: int) -> Function:
        """The function with these gradients; of a table the law is made."""
        if self.law == "data":
            asked = "n_samples" in self.model_fields_set
            count = self.n_samples if asked else None
            mean: Function = smoothed(
                function, law="data", data=table, n_samples=count, rng=seed
            )
            return SmoothGradients(function, mean)
        if function.schema is None:
            sizes = array_scales(read_points(table, "X")[0], "std")
        else:
            sizes = function.schema.scales("std")
        noisy = smoothed(function, self.scale * sizes, self.n_samples, seed)
        return SmoothGradients(function, noisy)


# ---- Whether a problem file may run Python code that it names


class Code(Enum):
    """Python objects that a problem file names: imported, or refused.

    Importing a module runs it. A file from elsewhere therefore imports nothing unless
    whoever runs it says so.
    """

    REFUSED = "refused"
    ALLOWED = "allowed"


TaskKind: TypeAlias = Literal["classification", "regression"]


class ModelSection(Section):
    """A model, and the output of it that is explained.

    A subclass has a ``kind``, and settings with their defaults; ``make`` gives an
    estimator, to be fitted or fitted already, or a callable. It may take the ``folder``
    of the problem file, its ``columns`` and those that are ``categorical``, its
    ``task``, a ``seed``, a ``vectorizer``, and whether ``code`` may run. Its place in
    ``AnyModel`` makes it one of the models that a file may name.
    """

    of_texts: ClassVar[dict[str, str]] = {
        "vectorizer": "has no effect without data.text"
    }
    of_tables: ClassVar[dict[str, str]] = {
        "smooth": "words are there or not; leave it out"
    }
    words: ClassVar[str] = "a model"
    """What messages call it."""
    needs_target: ClassVar[bool] = True
    """Whether it is fitted, to a table and its target."""
    takes_texts: ClassVar[bool] = False
    """Whether it learns documents, or may have learned them."""
    takes_missing: ClassVar[bool] = False
    """Whether numbers may be missing, as far as this is known before it is fitted."""

    output: Literal["auto", "value", "probability", "log_odds", "margin"] = "auto"
    smooth: Smooth | None = Field(
        None,
        description="take the slopes of the mean of the model, under gaussian noise by "
        "default; models that jump, such as trees, have those over observed values",
    )

    @property
    def chosen_class(self) -> Label | None:
        """The class to explain, where there are classes."""
        return vars(self).get("target_class")

    @classmethod
    def takes(cls, setting: str) -> bool:
        """Whether it has this setting."""
        return setting in cls.model_fields

    def check_size(self, n_columns: int, n_outputs: int, n_rows: int) -> None:
        """Refuse, before it is fitted, a model that would not fit into memory."""

    def check_missing(self, columns: Sequence[str]) -> None:
        """Refuse columns of numbers in which some are missing, where that is known."""
        if columns and not self.takes_missing:
            raise InvalidInput(
                f"{self.words} takes no missing numbers, and some are in "
                f"{listed(columns)}; take kind: hist_gradient_boosting, or import a "
                "pipeline that imputes them first"
            )

    def check_table(self, model: Any, table: Any) -> None:
        """Refuse a table on which the model has no gradient worth its name."""


_CLASS: Final = (Label | None, "label to explain", None)
_VECTORIZER: Final = (
    AnyVectorizer | None,
    "of documents: what is counted, and how; by default kind: tfidf",
    None,
)


class TaskSection(ModelSection):
    """A model that learns classes or numbers, of a table or documents, as told."""

    takes_texts: ClassVar[bool] = True

    target_class: Label | None = Field(None, description=_CLASS[1])
    vectorizer: AnyVectorizer | None = Field(None, description=_VECTORIZER[1])
    task: TaskKind | None = Field(
        None,
        description="by default as the target shows: fractions, and more than 10 "
        "different whole numbers, are for regression, all else for classification",
    )


def scaled(
    estimator: Any, categorical: Sequence[str], vectorizer: VectorizerSection | None
) -> Any:
    """The estimator behind what makes numbers of one size, or of documents."""
    if vectorizer is not None:
        return make_pipeline(vectorizer.make(), estimator)
    if not categorical:
        return make_pipeline(StandardScaler(), estimator)
    # a category that occurs only in rows to explain has no indicator
    encoder = OneHotEncoder(handle_unknown="ignore")
    categories = ("categories", encoder, list(categorical))
    columns = ColumnTransformer([categories], remainder=StandardScaler())
    return make_pipeline(columns, estimator)


# ---- Linear models and networks, behind a scaler


def _linear(categorical: Sequence[str], vectorizer: Any) -> Any:
    """Least squares."""
    return scaled(LinearRegression(), categorical, vectorizer)


def _logistic(
    categorical: Sequence[str], vectorizer: Any, regularization: Nonnegative = 1e-2
) -> Any:
    """Logistic regression."""
    strength = 1 / regularization if regularization else np.inf
    model = LogisticRegression(C=strength, max_iter=10_000)
    return scaled(model, categorical, vectorizer)


def _network(
    categorical: Sequence[str],
    vectorizer: Any,
    task: TaskKind,
    seed: int | None,
    hidden: Sequence[Count] = (32, 32),
    activation: Literal["tanh", "relu", "logistic", "identity"] = "tanh",
    regularization: Nonnegative = 1e-2,
    target: Literal["as_is", "standardized"] = "as_is",
) -> Any:
    """A multi-layer perceptron."""
    if target == "standardized" and task == "classification":
        raise wrong("labels of classes cannot be standardized", "target")
    kind = MLPClassifier if task == "classification" else MLPRegressor
    network = kind(
        hidden_layer_sizes=tuple(hidden),
        activation=activation,
        alpha=regularization,
        solver="lbfgs",  # tables are small: it converges, least by chance
        max_iter=20_000,
        random_state=seed,
    )
    if target == "standardized":
        network = TransformedTargetRegressor(network, transformer=StandardScaler())
    return scaled(network, categorical, vectorizer)


def _check_network(own: Any, n_columns: int, n_outputs: int, n_rows: int) -> None:
    """What L-BFGS keeps of the weights, and what each layer keeps of the rows."""
    widths = (n_columns, *own.hidden, n_outputs)
    n_weights = sum((1 + one) * other for one, other in pairwise(widths))
    # 42 copies of the weights: ten pairs of steps and changes, and what a step needs
    n_bytes = 8.0 * (42 * n_weights + 3 * n_rows * sum(widths))
    with part("hidden"):
        if n_weights > MOST_NUMBERS:
            raise InvalidInput(
                f"expected at most {MOST_NUMBERS:,} weights, got {n_weights:,}"
            )
        require_memory(n_bytes, "a network of this size", "make `hidden` smaller")


def _learned(
    kind: str, words: str, made: Any, name: str, base: Any = ModelSection, **said: Any
) -> Any:
    """A section of the settings of what makes a model."""
    section = section_of(
        made, base, name, without=("categorical", "seed"), **said, kind=Literal[kind]
    )
    section.words, section.takes_texts = words, True
    return section


LinearModel: Final = _learned(
    "linear", "a linear model", _linear, "LinearModel", vectorizer=_VECTORIZER
)
LogisticModel: Final = _learned(
    "logistic",
    "a logistic regression",
    _logistic,
    "LogisticModel",
    target_class=_CLASS,
    vectorizer=_VECTORIZER,
    regularization="1/C",
)
NetworkModel: Final = _learned(
    "mlp",
    "an mlp",
    _network,
    "NetworkModel",
    TaskSection,
    hidden=(Annotated[list[Count], Field(max_length=20)], None, [32, 32]),
    regularization="alpha",
    target="what a regression is fitted to; standardized, the same alpha means the "
    "same in any units",
)
NetworkModel.check_size = _check_network


# ---- Forests and gradient boosting


Trees: TypeAlias = Annotated[int, Field(ge=1, le=10_000)]
Depth: TypeAlias = Annotated[int, Field(ge=1, le=1_000)]
Leaf: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Leaves: TypeAlias = Annotated[int, Field(ge=2, le=100_000)]


class TreesSection(TaskSection):
    """Trees: settings and defaults are those of scikit-learn's estimators."""

    takes_missing: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    """Whether it learns counts of words as they come."""
    classifier: ClassVar[type[Any]]
    regressor: ClassVar[type[Any]]

    def make(self, **others: Any) -> Any:
        kind = self.classifier if others["task"] == "classification" else self.regressor
        settings = self.settings("kind", *TaskSection.model_fields)
        trees = kind(**settings, random_state=others["seed"])
        if others["vectorizer"] is None:
            return make_pipeline(_as_numbers(others["categorical"]), trees)
        dense = FunctionTransformer(_dense, accept_sparse=True)
        between = [] if self.takes_sparse else [dense]
        return make_pipeline(others["vectorizer"].make(), *between, trees)


ForestModel: Final = section_of(
    RandomForestClassifier,
    TreesSection,
    "ForestModel",
    "A random forest.",
    kind=Literal["forest"],
    n_estimators=Trees,
    max_depth=Depth | None,
    min_samples_leaf=Leaf,
)
ForestModel.words = "a forest"
ForestModel.classifier = RandomForestClassifier
ForestModel.regressor = RandomForestRegressor

BoostingModel: Final = section_of(
    HistGradientBoostingClassifier,
    TreesSection,
    "BoostingModel",
    "Gradient boosting.",
    kind=Literal["hist_gradient_boosting"],
    max_iter=Trees,
    max_depth=Depth | None,
    max_leaf_nodes=Leaves | None,
    learning_rate=Positive,
    min_samples_leaf=Leaf,
)
BoostingModel.words, BoostingModel.takes_sparse = "gradient boosting", False
BoostingModel.classifier = HistGradientBoostingClassifier
BoostingModel.regressor = HistGradientBoostingRegressor


def _as_numbers(categorical: tuple[str, ...]) -> Any:
    """What makes an array from the columns; trees do not see their scale."""
    if not categorical:
        return FunctionTransformer(_array)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    categories = ("categories", encoder, list(categorical))
    return ColumnTransformer([categories], remainder="passthrough")


def _dense(counts: Any) -> Any:
    return counts.toarray() if issparse(counts) else np.asarray(counts)


def _array(table: Any) -> Any:
    return np.asarray(table, dtype=float)
