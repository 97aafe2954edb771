"""The section ``model``, with one class for each kind of model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from enum import Enum
from functools import partial, reduce
from importlib import import_module
from itertools import compress, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field
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

from propopt.base import extras
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.functions.differences import step_for
from propopt.functions.outputs import SINGLE
from propopt.problems.sections import (
    MOST_NUMBERS,
    Count,
    Label,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    part,
    refused,
    section_of,
    wrong,
)
from propopt.problems.subject.onnx import read_onnx
from propopt.structures.fitted_model import as_stored
from propopt.structures.readers.lightgbm import LightGBMBooster
from propopt.tables.frames import listed, read_table


# ---- Vectorizers of documents


MOST_OF_A_GRAM: Final = 20


class VectorizerSection(Section):
    """A vectorizer with settings and defaults of the scikit-learn class.

    ``import`` a pipeline for other settings.
    """

    ngram_range: list[Annotated[int, Field(ge=1, le=MOST_OF_A_GRAM)]] = Field(
        [1, 1],
        min_length=2,
        max_length=2,
        description="smallest and largest number of consecutive words that are counted",
    )
    min_df: Count = Field(1, description="smallest number of documents with the word")
    max_features: Count | None = Field(
        None, description="number of most frequent words"
    )
    binary: bool = Field(False, description="presence of words instead of counts")

    def make(self, **others: Any) -> Any:
        lengths = tuple(self.ngram_range)
        return super().make(ngram_range=lengths, dtype=np.float64, **others)

    def vocabulary(self, texts: Sequence[str]) -> list[str]:
        """The words or n-grams that are counted in documents."""
        least, most = self.ngram_range
        n_grams = sum(map(len, texts)) / 2.0 * (most - least + 1)
        n_bytes = n_grams * (60.0 + 6.0 * most)
        require_memory(n_bytes, "the n-grams", "use shorter ones")
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
        "Counts of each word.",
        kind=Literal["counts"],
    ),
    section_of(
        TfidfVectorizer,
        VectorizerSection,
        "TfidfVectorizerSection",
        "Counts of each word, weighted by inverse document frequency and normalised.",
        kind=Literal["tfidf"],
        norm=Literal["l1", "l2"] | None,
    ),
)
AnyVectorizer: TypeAlias = Annotated[VectorizerSection, OneOf("kind", VECTORIZERS)]
TFIDF: Final = VECTORIZERS[1].model_validate({"kind": "tfidf"})
"""The default vectorizer."""


# ---- The base of all models, and whether they may run Python code


class Code(Enum):
    """Permission to import the Python objects that a problem file names.

    An import runs code. So a file imports nothing unless the user allows it.

    Parameters
    ----------
    value : {"refused", "allowed"}
        ``"allowed"`` permits imports; ``"refused"`` is the default of readers.
    """

    REFUSED = "refused"
    ALLOWED = "allowed"


TaskKind: TypeAlias = Literal["classification", "regression"]


class ModelSection(Section):
    """A model and the explained output.

    A subclass has a ``kind`` and settings with defaults. Its ``make`` returns an
    estimator, fitted or not, or a callable. It gets the ``folder`` of the problem file,
    ``columns``, ``categorical`` columns, ``task``, ``seed``, ``vectorizer``, and
    whether ``code`` may run. ``MODEL_KINDS`` lists the subclasses.
    """

    of_texts: ClassVar[frozenset[str]] = frozenset({"vectorizer"})

    output: Literal["auto", "value", "probability", "log_odds", "margin"] = "auto"

    @property
    def chosen_class(self) -> Label | None:
        """The explained class of a classifier."""
        return vars(self).get("target_class")

    def check_size(self, n_columns: int, n_outputs: int, n_rows: int) -> None:
        """Refuse a model that would not fit into memory, before it is fitted."""

    def check_table(self, model: Any, table: Any) -> None:
        """Refuse a table on which gradients of the model would be too inexact."""


# ---- Models that are fitted to a table or documents


class LearnedModel(ModelSection):
    """A model that is fitted after encoding of columns or documents."""

    is_scaled: ClassVar[bool] = True
    """Whether numbers are standardized first."""
    takes_sparse: ClassVar[bool] = True
    """Whether it takes sparse word counts."""

    vectorizer: AnyVectorizer | None = Field(
        None,
        description="for documents: the vectorizer; by default kind: tfidf",
    )

    def estimator(self, task: str | None, seed: int | None) -> Any:
        """The unfitted estimator for encoded columns."""

    def make(self, **others: Any) -> Any:
        model = self.estimator(others["task"], others["seed"])
        if others["vectorizer"] is not None:
            dense = FunctionTransformer(_dense, accept_sparse=True)
            between = [] if self.takes_sparse else [dense]
            return make_pipeline(others["vectorizer"].make(), *between, model)
        numbers: Any = StandardScaler() if self.is_scaled else "passthrough"
        columns = list(others["categorical"])
        if columns:
            # a category that occurs only in explained rows has no indicator
            encoder = OneHotEncoder(
                handle_unknown="ignore", sparse_output=self.is_scaled
            )
            parts = [("categories", encoder, columns)]
            numbers = ColumnTransformer(parts, remainder=numbers)
        elif not self.is_scaled:
            numbers = FunctionTransformer(_array)
        return make_pipeline(numbers, model)


def _dense(counts: Any) -> Any:
    return counts.toarray() if issparse(counts) else np.asarray(counts)


def _array(table: Any) -> Any:
    return np.asarray(table, dtype=float)


class LinearModel(LearnedModel):
    """A linear model, fitted by least squares."""

    kind: Literal["linear"]

    def estimator(self, task: str | None, seed: int | None) -> Any:
        del task, seed
        return LinearRegression()


class LogisticModel(LearnedModel):
    """A logistic regression with an L2 penalty."""

    kind: Literal["logistic"]
    target_class: Label | None = Field(None, description="label to explain")
    regularization: Nonnegative = Field(1e-2, description="1/C")

    def estimator(self, task: str | None, seed: int | None) -> Any:
        del task, seed
        strength = 1 / self.regularization if self.regularization else np.inf
        return LogisticRegression(C=strength, max_iter=10_000)


class TaskModel(LearnedModel):
    """A model for classification or regression, by its task."""

    target_class: Label | None = Field(None, description="label to explain")
    task: TaskKind | None = Field(
        None,
        description="by default inferred from the target: regression for fractions, or "
        "for more than 10 different integers; otherwise classification",
    )


class NetworkModel(TaskModel):
    """A multi-layer perceptron, fitted by L-BFGS."""

    kind: Literal["mlp"]
    hidden: list[Count] = Field([32, 32], max_length=20)
    activation: Literal["tanh", "relu", "logistic", "identity"] = "tanh"
    regularization: Nonnegative = Field(1e-2, description="alpha")
    target: Literal["as_is", "standardized"] = Field(
        "as_is",
        description="scale of the target of a regression; if standardized, alpha does "
        "not depend on its units",
    )

    def estimator(self, task: str | None, seed: int | None) -> Any:
        is_scaled = self.target == "standardized"
        if is_scaled and task == "classification":
            raise wrong("labels of classes cannot be standardized", "target")
        kind = MLPClassifier if task == "classification" else MLPRegressor
        network = kind(
            hidden_layer_sizes=tuple(self.hidden),
            activation=self.activation,
            alpha=self.regularization,
            solver="lbfgs",  # converges on small tables, with least randomness
            max_iter=20_000,
            random_state=seed,
        )
        if not is_scaled:
            return network
        return TransformedTargetRegressor(network, transformer=StandardScaler())

    def check_size(self, n_columns: int, n_outputs: int, n_rows: int) -> None:
        """Memory of L-BFGS for weights, and of the layers for rows."""
        widths = (n_columns, *self.hidden, n_outputs)
        n_weights = sum((1 + one) * other for one, other in pairwise(widths))
        # 42 copies of the weights: ten pairs of steps and changes, and a step
        n_bytes = 8.0 * (42 * n_weights + 3 * n_rows * sum(widths))
        with part("hidden"):
            if n_weights > MOST_NUMBERS:
                raise InvalidInput(
                    f"expected at most {MOST_NUMBERS:,} weights, got {n_weights:,}"
                )
            require_memory(n_bytes, "a network of this size", "make `hidden` smaller")


Trees: TypeAlias = Annotated[int, Field(ge=1, le=10_000)]
Depth: TypeAlias = Annotated[int, Field(ge=1, le=1_000)]
Leaf: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Leaves: TypeAlias = Annotated[int, Field(ge=2, le=100_000)]


class TreesModel(TaskModel):
    """Trees with settings and defaults of the scikit-learn estimators."""

    is_scaled: ClassVar[bool] = False
    regressor: ClassVar[type[Any]]

    def estimator(self, task: str | None, seed: int | None) -> Any:
        kind = self.makes if task == "classification" else self.regressor
        return kind(**self.settings("kind", *TaskModel.model_fields), random_state=seed)


@partial(
    section_of,
    RandomForestClassifier,
    kind=Literal["forest"],
    n_estimators=Trees,
    max_depth=Depth | None,
    min_samples_leaf=Leaf,
)
class ForestModel(TreesModel):
    """A random forest of scikit-learn."""

    regressor: ClassVar[type[Any]] = RandomForestRegressor


@partial(
    section_of,
    HistGradientBoostingClassifier,
    kind=Literal["hist_gradient_boosting"],
    max_iter=Trees,
    max_depth=Depth | None,
    max_leaf_nodes=Leaves | None,
    learning_rate=Positive,
    min_samples_leaf=Leaf,
)
class BoostingModel(TreesModel):
    """Histogram-based gradient boosting of scikit-learn."""

    takes_sparse: ClassVar[bool] = False
    regressor: ClassVar[type[Any]] = HistGradientBoostingRegressor


# ---- Imported models


def _module_and_object(path: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", path):
        example = "such as package.module:model"
        raise refused(wrong(f"expected module:object, {example}, got {path[:60]!r}"))
    return path


class ImportedModel(ModelSection):
    """A fitted estimator, a callable, or an estimator to be fitted on the table.

    An unfitted scikit-learn estimator (``check_is_fitted``) is cloned, seeded if its
    ``random_state`` is None, and fitted to the table. Anything else is passed to
    :func:`propopt.wrap`. Modules must be importable: installed, or on ``PYTHONPATH``;
    the folder of the problem file is not searched.
    """

    target_class: Label | None = Field(None, description="label to explain")
    kind: Literal["imported"] = "imported"
    path: Annotated[str, AfterValidator(_module_and_object)] = Field(
        alias="import",
        description="module:object; needs --allow-code, since an import runs code",
    )

    def make(self, **others: Any) -> Any:
        name, _, attributes = self.path.partition(":")
        with part("import"):
            if others["code"] is Code.REFUSED:
                raise InvalidInput(
                    f"importing {self.path} runs Python code; add --allow-code to the "
                    "command (code=Code.ALLOWED in Python) if you trust it"
                )
            try:
                return reduce(getattr, attributes.split("."), import_module(name))
            except ImportError as error:
                raise InvalidInput(
                    f"{name} could not be imported: {error}; install it, or add its "
                    "folder to PYTHONPATH"
                ) from error
            except AttributeError as error:
                raise InvalidInput(f"{self.path}: {error}") from None


# ---- ONNX files


class OnnxModel(ModelSection):
    """A fitted model in an ONNX file, computed by onnxruntime on one thread.

    Its input is a matrix with the columns of the table, in their order, or one column
    for each input, by name. If it returns labels and numbers, these are probabilities;
    classes are labels if the file has them (``zipmap``), else positions. Otherwise the
    numbers are values, and ``target_class`` is the position of one.
    """

    target_class: Label | None = Field(None, description="label to explain")
    kind: Literal["onnx_file"] = "onnx_file"
    onnx: str = Field(description="path of the file, from that of the problem file")
    tensor: str | None = Field(
        None, description="the explained output of the file, if it has several"
    )

    def make(self, **others: Any) -> Any:
        if others["categorical"]:
            raise InvalidInput(
                "an ONNX model takes only numbers, and data has categorical columns"
            )
        with part("onnx"):
            path = others["folder"] / self.onnx
            return read_onnx(path, self.tensor, others["columns"])

    def check_table(self, model: Any, table: Any) -> None:
        if not model.is_single_precision:
            return
        points = read_table(table, "X")[0]
        sizes = np.maximum(1.0, np.abs(points).max(axis=0))
        steps = step_for(SINGLE, self.onnx) * sizes
        small = points.std(axis=0) < _STEPS * steps
        if small.any():
            names = listed([*compress(model.feature_names_in_, small)])
            raise InvalidInput(
                f"{self.onnx} computes in single precision, so its gradients need "
                f"steps of at least {steps.min():.1g}, which exceeds the spread of "
                f"{names}; export it in double precision, or for standardized columns"
            )


_STEPS: Final = 10
"""Smallest ratio of a standard deviation to a step of differences."""


# ---- LightGBM files


class BoosterModel(ModelSection):
    """A fitted LightGBM model, in a text file of its ``save_model``.

    The table must have its training columns, which are found by name. The margin of two
    classes is their log-odds. Reading the file runs no code.
    """

    output: Literal["value", "margin"] = "margin"
    target_class: int | None = Field(
        None, ge=0, description="position of a class, if there are more than two"
    )
    kind: Literal["lightgbm_file"] = "lightgbm_file"
    booster: str = Field(description="path of the file, from that of the problem file")

    def make(self, **others: Any) -> Any:
        with part("booster"):
            return read_booster(others["folder"] / self.booster, others["columns"])


def read_booster(path: Path, columns: Sequence[str]) -> LightGBMBooster:
    """Read a booster from a text file, for a table with these columns."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    package = extras.require("lightgbm")
    try:
        text = path.read_text(encoding="utf-8")
        if not text.startswith("tree\n"):
            raise ValueError("its first line is not 'tree'")
        booster = package.Booster(model_str=text)
    except (ValueError, package.basic.LightGBMError) as error:
        raise InvalidInput(f"{path} is not a LightGBM model: {error}") from None
    names = booster.feature_name()
    unnamed = [f"Column_{j}" for j in range(len(columns))]
    if names != unnamed and sorted(as_stored(columns, names)) != sorted(names):
        raise InvalidInput(
            f"{path.name} was fitted on the columns {listed(names)}; got "
            f"{listed(list(columns))}"
        )
    return LightGBMBooster(booster)


# ---- All kinds of models


MODEL_KINDS: Final[tuple[type[ModelSection], ...]] = (
    LinearModel,
    LogisticModel,
    NetworkModel,
    ForestModel,
    BoostingModel,
    ImportedModel,
    OnnxModel,
    BoosterModel,
)
"""All models of problem files."""

_KEYS = {
    get_args(model.model_fields["kind"].annotation)[0]: {
        field.alias or name for name, field in model.model_fields.items()
    }
    for model in MODEL_KINDS
}
_BY_KEY = {"import": "imported", "onnx": "onnx_file", "booster": "lightgbm_file"}


def _with_kind(value: Any) -> Any:
    """Infer the kind from ``import``, ``onnx`` or ``booster``; refuse other keys."""
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        kinds = [{"kind": kind} for key, kind in _BY_KEY.items() if key in value]
        value = {**next(iter(kinds), {}), **value}
    kind = value.get("kind")
    keys_of_kind = _KEYS.get(kind) if isinstance(kind, str) else None
    others = (
        set() if keys_of_kind is None else set().union(*_KEYS.values()) - keys_of_kind
    )
    for name in sorted(others & set(value)):
        raise refused(wrong(f"{name} has no effect with {kind}"))
    return value


AnyModel: TypeAlias = Annotated[
    ModelSection, OneOf("kind", MODEL_KINDS), BeforeValidator(_with_kind)
]
