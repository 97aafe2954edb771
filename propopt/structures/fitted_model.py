"""A fitted model: its steps, classes, margin, vectorisers and exact structures."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import FeatureUnion, Pipeline

from propopt.base.arrays import Array, Points
from propopt.base.errors import InexactBoxesWarning
from propopt.base.text import QuantityKind, Reason
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import LinkedScores, exact_score
from propopt.structures.kinds import (
    PREDICTION_METHODS,
    UNREADABLE,
    fitted_value,
    has_fitted,
    has_method,
    inherits,
    is_a,
    name_of,
    working_steps,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.model_reader import ModelReader
from propopt.structures.readers.pipelines import ColumnView, ModelOutput, columns_read
from propopt.structures.readers.sklearn_sums import LOGISTIC
from propopt.structures.registry import (
    as_estimator,
    exact_boxes,
    final_of,
    fitted_names,
    members_in,
    reader_of,
    unreadable,
)
from propopt.structures.scores import Link, Network
from propopt.structures.subsets.sets import TextStructure
from propopt.tables.schema import TableSchema


_STACK: Final = "sklearn.StackingClassifier"

_SHIFT_TOLERANCE: Final = 1e-3
"""Relative tolerance of a shift of a margin, which libraries compute in float32."""

_Read = TypeVar("_Read")


MarginScale: TypeAlias = tuple[QuantityKind, bool]
"""The kind of a margin without classes, the prediction itself or a function of it, and
whether there is one for each row."""


_SCALE_TOLERANCE: Final = 1e-4
"""Relative differences of predictions that are rounding, also in single precision."""


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model with its steps, classes and margin, each computed at first use.

    Parameters
    ----------
    estimator : object
        The estimator that predicts; :meth:`of` unwraps searches, thresholds and
        boosters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = FittedModel.of(pipeline.fit(X, [0, 0, 1, 1]))
    >>> model.final, model.n_columns, model.classes.tolist()
    (LogisticRegression(), 1, [0, 1])
    >>> model.margin is None, model.is_piecewise_constant
    (True, False)
    """

    estimator: Any

    @classmethod
    def of(cls, model: Any) -> FittedModel:
        """Wrap a model; a ``FittedModel`` is returned unchanged."""
        return model if isinstance(model, cls) else cls(as_estimator(model))

    def __reduce__(self) -> tuple[Any, ...]:
        return FittedModel, (self.estimator,)

    # ---- Steps

    @property
    def name(self) -> str:
        """A short name of the model for messages."""
        return name_of(self.estimator)

    @cached_property
    def rules(self) -> ModelReader:
        """The rules of its class."""
        return reader_of(self.estimator)

    @property
    def native(self) -> Any:
        """The model of its library: the booster, if an estimator was made of it."""
        wrapped = self.rules.wrapped
        return self.estimator if wrapped is None else wrapped(self.estimator)

    def has(self, method: str) -> bool:
        """Whether the model has a method under its current settings."""
        return has_method(self.estimator, method)

    @cached_property
    def methods(self) -> list[str]:
        """The methods by which the model predicts."""
        return list(filter(partial(has_method, self.estimator), PREDICTION_METHODS))

    @cached_property
    def warned(self) -> set[str]:
        """Reasons why readers failed for which a warning was issued."""
        return set()

    @cached_property
    def steps(self) -> list[Any]:
        """The steps of (nested) pipelines that transform something, or the model."""
        return working_steps(self.estimator)

    @cached_property
    def final(self) -> Any:
        """The final estimator of a pipeline, or the model itself."""
        return final_of(self.estimator)

    @cached_property
    def entry(self) -> Any:
        """First step that transforms something, or the model; None if no step does."""
        return self.steps[0] if self.steps else None

    @cached_property
    def _opened(self) -> tuple[list[Any], Any]:
        model = self.estimator
        transformers = list[Any]()
        while True:
            if inherits(model, "sklearn.Pipeline"):
                if len(model.steps) > 1:
                    transformers.append(model[:-1])
                model = as_estimator(model.steps[-1][1])
            elif inherits(model, _STACK) and has_fitted(model, "final_estimator_"):
                transformers.append(model)
                model = as_estimator(model.final_estimator_)
            else:
                return transformers, model

    @property
    def before(self) -> list[Any]:
        """The transformers that feed the core: steps, and the members of a stack."""
        return self._opened[0]

    @property
    def core(self) -> Any:
        """The estimator that predicts at the end, after all steps and stacks."""
        return self._opened[1]

    @cached_property
    def at_core(self) -> FittedModel:
        """The core as a model by itself, without steps and stacks before it."""
        return self if self.core is self.estimator else FittedModel(self.core)

    def behind_steps(self, scores: Callable[[Any], Array]) -> Callable[[Any], Array]:
        """A scoring function of the core as a function of the model's input table."""
        return partial(_after, self.before, scores) if self.before else scores

    # ---- Columns and classes

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns that the model was fitted on, if it has them."""
        return fitted_names(self.entry)

    def in_order(self, header: pd.Index) -> pd.Index:
        """The labels of a table in the order in which the model was fitted to them.

        The same labels if the model has no names, or others.
        """
        names = self.columns
        for step in self.steps[1:]:
            names = fitted_names(step) if names is None else names
        given = as_stored(header, names or ())
        if names is None or sorted(given) != sorted(names) or given == names:
            return header
        return header[[given.index(name) for name in names]]

    @property
    def checks_columns(self) -> bool:
        """Whether a table needs the columns of the fit, under their names.

        Column transformers ignore unknown ones, and other libraries may rename them.
        """
        if type(self.entry).__module__.startswith("sklearn."):
            return not is_a(self.entry, "sklearn.ColumnTransformer")
        return reader_of(self.entry).constant_if is not None

    @property
    def n_columns(self) -> int | None:
        """The number of columns that the model was fitted on, if it records it."""
        count = fitted_value(self.entry, "n_features_in_")
        return None if count is None else int(count)

    @cached_property
    def columns_read(self) -> frozenset[Any] | None:
        """The labels of the columns that the first steps do not drop; None for all."""
        reads = [columns_read(entry) for entry in self.text_entries]
        if None in reads or fitted_value(self.entry, "passthrough"):
            return None
        return frozenset().union(*(labels for labels in reads if labels is not None))

    @cached_property
    def classes(self) -> Any:
        """The class labels of a classifier; None for other models."""
        classes = fitted_value(self.estimator, "classes_")
        return None if classes is None or len(classes) == 0 else classes

    @cached_property
    def labels(self) -> list[NDArray[Any]] | None:
        """Classes of each label of a multi-label classifier; None for other models."""
        final = self.final
        classes = fitted_value(final, "classes_")
        if classes is None:
            return None
        if isinstance(classes, list) and all(
            np.ndim(label_classes) == 1 for label_classes in classes
        ):
            return list(map(np.asarray, classes))
        count = 1
        if fitted_value(final, "multilabel_"):
            count = len(classes)
        elif fitted_value(final, "out_activation_") == "logistic":
            count = final.n_outputs_
        elif (n_labels := reader_of(final).n_labels) is not None:
            count = n_labels(final)
        return [np.arange(2)] * count if count > 1 else None

    # ---- Margin

    @cached_property
    def margin(self) -> Callable[[Any], Array] | None:
        """The margin (raw score) of boosted models, as a function; None for others.

        It maps the model's input table to scores (n,), or (n, K) for K classes.
        """
        rule = self.at_core.rules.margin
        if rule is None:
            return None
        scores = partial(getattr(self.core, rule.method), **rule.settings)
        if rule.weight is not None and (weight := rule.weight(self.core)) != 1.0:
            scores = partial(scaled_scores, weight, scores)
        return self.behind_steps(scores)

    @cached_property
    def logit_of_margin(self) -> float | None:
        """The factor from the margin to log-odds of the second of two classes."""
        rule = self.at_core.rules.margin
        return None if rule is None else rule.logit(self.core)

    @cached_property
    def is_explained_by_margin(self) -> bool:
        """Whether ``output="auto"`` explains the margin of this class of models.

        It does for boosted classifiers, and for stacks that end in a logistic
        regression.
        """
        if self.at_core.rules.explains_margin is not None:
            return self.at_core.rules.explains_margin(self.core)
        if self.at_core.rules.margin is not None and self.classes is not None:
            return True
        return inherits(self.final, _STACK) and inherits(self.core, *LOGISTIC)

    def margin_scale(self, table: Any) -> MarginScale:
        """Which function of the prediction the margin is, compared at a few rows.

        The objective does not determine it: a CatBoostRegressor, for one, predicts
        exp(margin) with the loss Poisson, and the margin with LogLinQuantile.
        """
        assert self.margin is not None, "only models with a margin are compared"
        try:
            margins = np.asarray(self.margin(table), dtype=np.float64)
            predicted = np.asarray(self.estimator.predict(table), dtype=np.float64)
        except Exception:  # noqa: BLE001 - refused where these rows are explained
            return "score", False
        is_single = margins.size == len(margins)
        margins = margins.reshape(predicted.shape if is_single else margins.shape)
        if margins.shape == predicted.shape:
            with np.errstate(over="ignore"):
                links: tuple[tuple[QuantityKind, Array], ...] = (
                    ("value", margins),
                    ("log", np.exp(margins)),
                    ("logit", expit(margins)),
                )
            for kind, linked in links:
                if np.allclose(linked, predicted, rtol=_SCALE_TOLERANCE, atol=0.0):
                    return kind, is_single
        return "score", is_single

    @cached_property
    def has_exact_log_odds(self) -> bool:
        """Whether log-odds of two classes are a sum of products of the core's columns.

        They are for logistic regression, discriminant analysis and naive Bayes, not for
        networks. Members of a stack, and steps before, may still be sampled.
        """
        core = self.at_core
        classes = self.classes
        if classes is None or len(classes) != 2 or core.network is None:
            return False
        from propopt.structures.networks import Affine
        from propopt.structures.readers.model_products import network_products

        link = core.link("log_odds", 1)
        if link is None or isinstance(core.network, Affine):
            return link is not None
        products = network_products(core.network, link, core.n_columns or 0)
        return isinstance(products, SumOfProducts)

    @property
    def has_custom_objective(self) -> bool:
        """Whether a boosted classifier gives only scores, of a user's objective."""
        predicate = self.at_core.rules.has_custom_objective
        return predicate is not None and predicate(self.core)

    # ---- Exact structures

    def structure(
        self, output: str, index: int | None = None, schema: TableSchema | None = None
    ) -> ModelStructure:
        """The exact structures of one output, each computed at first use.

        Parameters
        ----------
        output : str
            The name of the output, such as "probability".
        index : int, optional
            The class, or the column of the output.
        schema : TableSchema, optional
            The model's input table; None for a table of numbers.

        Returns
        -------
        ModelStructure
            The output as boxes, products, links of scores, or words.
        """
        return ModelStructure(self, output, index, schema)

    @cached_property
    def network(self) -> Network | None:
        """The differentiable scores of the model; None for trees and without a rule."""
        if self.at_core.rules.trees is not None:
            return None
        from propopt.structures.readers.model_products import exact_network  # if used

        return exact_network(self.estimator)

    def link(self, output: str, index: int) -> Link | None:
        """The exact link from the scores of :attr:`network` to an output, or None."""
        from propopt.structures.readers.model_products import exact_link  # if used

        if self.network is None:
            return None
        return exact_link(self.final, output, index, self.network.n_scores)

    @cached_property
    def is_piecewise_constant(self) -> bool:
        """Whether the model is constant between jumps, with zero slopes, as trees."""
        rule = reader_of(self.final).constant_if
        parts = None if rule is None else rule(self.final)
        if parts is None:
            return False
        return all(FittedModel.of(part).is_piecewise_constant for part in parts)

    # ---- Vectorisers of texts

    @cached_property
    def text_entries(self) -> list[Any]:
        """The first steps that receive the texts: one, or one for each member."""
        parts = members_in(self.entry)
        if isinstance(self.entry, FeatureUnion):
            parts = [
                part
                for _, part in self.entry.transformer_list
                if not isinstance(part, str)
            ]
        elif not parts:
            return [self.entry]
        return [entry for part in parts for entry in FittedModel.of(part).text_entries]

    @cached_property
    def text_vectorisers(self) -> list[Any]:
        """The vectorisers that the model begins with; none if other steps do."""
        entries = self.text_entries
        return entries if all(is_a(entry, *_COUNT_WORDS) for entry in entries) else []


_COUNT_WORDS: Final = "sklearn.CountVectorizer", "sklearn.HashingVectorizer"
"""``TfidfVectorizer`` is a subclass of ``CountVectorizer``."""


def scaled_scores(weight: float, scores: Callable[[Any], object], table: Any) -> Array:
    """Scores of a table times a number."""
    return weight * np.asarray(scores(table), dtype=np.float64)


def _after(
    transformers: list[Any], scores: Callable[[Any], Array], table: Any
) -> Array:
    for steps in transformers:
        table = steps.transform(table)
    return scores(table)


def as_stored(labels: Iterable[Hashable], names: Collection[str]) -> tuple[str, ...]:
    """The labels of columns as libraries store them, given the stored names.

    XGBoost joins the levels of a label, and LightGBM writes underscores for spaces.
    """
    stored = []
    for label in labels:
        text = " ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        written = text.replace(" ", "_")
        stored.append(written if written in names and text not in names else text)
    return tuple(stored)


# ---- Exact structures


@final
@dataclass(frozen=True, eq=False)
class ModelStructure:
    """One output of a model with its exact structures, each computed at first use."""

    model: FittedModel
    output: str  # such as "probability"
    index: int | None  # the class, or the column of the output
    # the model's input table; None for a table of numbers
    schema: TableSchema | None = None

    @cached_property
    def boxes(self) -> Boxes | None:
        """The output as a sum of boxes; None if it is no sum of trees."""
        read = self._read(exact_boxes)
        return read if isinstance(read, Boxes) else None

    @cached_property
    def margin_boxes(self) -> Boxes | None:
        """The output, or the score behind it, as a sum of boxes; else None."""
        return self.boxes if self.boxes is not None else self.margin.boxes

    @cached_property
    def margin(self) -> ModelStructure:
        """The structure of the margin of the same class."""
        return replace(self, output="margin")

    @cached_property
    def links(self) -> tuple[LinkedScores, ...]:
        """Candidates for the output as a link of exact scores, if it is no sum itself.

        A comparison with predictions selects one of them.
        """
        from propopt.structures.networks import LogOdds, ScoreLink, Softmax

        if self.output == "margin" or isinstance(self.products, SumOfProducts):
            return ()
        classes = self.model.classes
        index = self.index or 0
        n_classes = 0 if classes is None else len(classes)
        share = replace(self, output="probability")
        if self.output == "log_odds" and share.boxes is not None:
            return (LinkedScores((share.boxes,), ScoreLink("logit")),)
        if self.output == "value" or n_classes <= 2:
            margin = replace(self, output="log_odds")
            links: list[Link] = [ScoreLink("logistic")]
            if self.output == "value":
                margin = self.margin
                links = [ScoreLink("exp"), *links]
            exact = exact_score(margin.products)
            if exact is None:
                return ()
            return tuple(LinkedScores((exact,), link) for link in links)
        parts = (replace(self.margin, index=k) for k in range(n_classes))
        exact_scores = [exact_score(part.products) for part in parts]
        scores = tuple(s for s in exact_scores if s is not None)
        if len(scores) < n_classes:
            return ()
        if self.output == "log_odds":
            return (LinkedScores(scores, LogOdds(index)),)
        # votes that the other classes share, then classes one against the rest
        shared = tuple(s.scaled(1.0 / (n_classes - 1)) for s in scores)
        return (
            LinkedScores(scores, Softmax(index)),
            LinkedScores(shared, Softmax(index)),
            LinkedScores((scores[index],), ScoreLink("logistic")),
        )

    @cached_property
    def products(self) -> SumOfProducts | Reason:
        """The output as a sum of products; the reason if it is none."""
        if self.boxes is not None:
            return self.boxes
        from propopt.structures.readers.model_products import without_trees  # if used

        return self._read(without_trees)

    def with_base_margins(self, margins: Array) -> Array | Reason:
        """The changes (m,) of the output if the library is given base margins o (m,).

        Libraries add o to the sum of their trees; XGBoost replaces its intercept c by
        it, so that the margin changes by o − c. The library's own predictions decide.
        """
        model = self.model
        core = self.model.core
        column = self.index or 0
        if isinstance(core, OneBoostedLabel):
            column = core.position
            core = core.estimator
        logit = model.logit_of_margin or 1.0 if self.output == "log_odds" else 1.0
        n_classes = 0 if model.classes is None else len(model.classes)
        is_first = self.output != "value" and n_classes == 2 and self.index == 0
        factor = -logit if is_first else logit  # two classes share one margin
        if self.output == "log_odds" and n_classes > 2:
            return Reason(
                "log-odds of several classes depend on the margins of all of them; "
                "give output='margin' and those of the class"
            )
        rule = reader_of(core).given_margin
        if rule is None or self.view is None:
            return factor * margins
        table = self.view.transform(self.view.start[None, :])
        for steps in model.before:
            table = steps.transform(table)
        plain = np.asarray(rule(core, table, None), float)
        size = max(1.0, float(np.abs(plain).max()))
        none, some = (
            np.asarray(rule(core, table, np.full(plain.shape, o)), float).ravel()
            for o in (0.0, size)
        )
        if not np.allclose(some - none, size, rtol=_SHIFT_TOLERANCE, atol=0.0):
            return Reason(
                f"{name_of(core)} does not add them to its trees; explain its booster"
            )
        intercept = (plain.ravel() - none)[column if plain.size > 1 else 0]
        return factor * (margins - intercept)

    @property
    def words(self) -> TextStructure | Reason:
        """The output as a function of a document's words, or the reason why not."""
        from propopt.structures.tfidf.text_models import read_text_model  # for texts

        return read_text_model(self.model.estimator, self.output, self.index)

    def _read(
        self, reader: Callable[[Any, ModelOutput, ColumnView], _Read]
    ) -> _Read | Reason:
        """The structure that a reader computes; the reason if it cannot."""
        view = self.view
        if view is None:
            return Reason(f"{self.model.name} can only be called")
        try:
            return reader(
                self.model.estimator, ModelOutput(self.output, self.index), view
            )
        except UNREADABLE as error:
            # future versions of libraries may store trees differently
            reason = unreadable(self.model.estimator, error)
            if reason.reason not in self.model.warned:
                self.model.warned.add(reason.reason)
                frame = traceback.extract_tb(error.__traceback__)[-1]
                warning = InexactBoxesWarning(
                    f"{reason.reason} ({Path(frame.filename).name}, line "
                    f"{frame.lineno}); another exact form is used if there is one, "
                    "else the model is sampled: the card has the error of the target"
                )
                warning.__cause__ = error
                warnings.warn(warning, stacklevel=1)
            return reason

    @property
    def view(self) -> ColumnView | None:
        """The model's input as a function of the table; None if it is unknown."""
        if self.schema is not None:
            return ColumnView.of_schema(self.schema)
        names = self.model.columns
        count = self.model.n_columns
        if count is None:
            return None

        def table(points: Points) -> Any:
            copy = np.array(points)  # a model may write into its input
            return copy if names is None else pd.DataFrame(copy, columns=list(names))

        return ColumnView.of_numbers(count, table)


# ---- Multi-label classifiers


class OneLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # has no types
    """One label of a multi-label classifier, as a classifier by itself.

    Parameters
    ----------
    estimator : estimator
        A fitted multi-label classifier.
    position : int
        The index of the label.
    """

    def __init__(self, estimator: Any, position: int) -> None:
        self.estimator = estimator
        self.position = position

    @property
    def __name__(self) -> str:
        """The name of the multi-label classifier, for messages."""
        return type(self.estimator).__name__

    def fit(self, _X: Any, _y: Any) -> OneLabel:
        """Return the classifier itself, which is fitted already."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of this label."""
        labels = FittedModel.of(self.estimator).labels
        assert labels is not None, "the classifier is multi-label"
        return labels[self.position]

    @property
    def feature_names_in_(self) -> Any:
        """The names of the columns that the classifier was fitted on."""
        return self.estimator.feature_names_in_

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the classifier was fitted on."""
        return int(self.estimator.n_features_in_)

    def predict_proba(self, table: Any) -> Array:
        """Probabilities of the classes of this label, shape (n, K)."""
        given = self.estimator.predict_proba(table)
        if isinstance(given, list):
            return np.asarray(given[self.position])
        p = np.asarray(given)[:, self.position]
        return np.stack([1.0 - p, p], axis=1)


class OneBoostedLabel(OneLabel):
    """One label of boosted trees that fit a separate sum of trees for each label."""

    def scores(self, table: Any) -> Array:
        """The sum of the trees of this label before the link, shape (n,)."""
        margin = FittedModel.of(self.estimator).margin
        assert margin is not None, "boosted trees have a margin"
        return np.asarray(margin(table))[:, self.position]


_INDEPENDENT: Final = "sklearn.MultiOutputClassifier", "sklearn.OneVsRestClassifier"
"""Classes that fit a separate classifier for each label."""


def with_label(model: Any, position: int) -> Any:
    """The binary classifier of one label of a multi-label model."""
    model = as_estimator(model)
    if type(model) is Pipeline:
        *before, (name, final) = model.steps
        return Pipeline([*before, (name, with_label(final, position))])
    if inherits(model, *_INDEPENDENT):
        return as_estimator(model.estimators_[position])
    is_boosted = FittedModel.of(model).margin is not None
    return (OneBoostedLabel if is_boosted else OneLabel)(model, position)
