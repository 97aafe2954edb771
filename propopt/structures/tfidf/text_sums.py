"""Linear models after a vectoriser, and sums of text models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast, final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer

from propopt.base.arrays import Indices, Sparse, Values
from propopt.base.text import Reason
from propopt.structures import networks
from propopt.structures.kinds import UNREADABLE, class_name_of, is_passthrough
from propopt.structures.readers.model_products import (
    exact_link,
    exact_network,
    linear_combination,
    pulled_back,
    steps_of,
)
from propopt.structures.readers.pipelines import ColumnView, ModelOutput, floats
from propopt.structures.registry import SUMS, ModelSum, Part, SumRule, unreadable
from propopt.structures.scores import Network
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import Blocks, SetFunction, TextStructure, all_sets
from propopt.structures.subsets.sums import AddedSets, NormalisedSum
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
    map_of,
    takes_norm,
)
from propopt.tables.documents import TextDocument


@final
@dataclass(frozen=True, eq=False)
class LinearRow:
    """A linear function λᵀ x + λ_0, or with thresholds Σ_v λ_v 1{x_v > t_v} + λ_0."""

    coefficients: Values  # (V,): λ
    intercept: float  # λ_0
    thresholds: Values | None = None  # (V,): t

    @classmethod
    def before(cls, network: Network, row: Values, base: float) -> LinearRow | None:
        """The combination row · z + base of a network's scores z, or None."""
        combination = row, base
        for step in reversed(steps_of(network)):
            if not isinstance(step, networks.Affine | networks.Scaling):
                return None
            combination = pulled_back(step, combination)
        return cls(*combination)

    def placed(self, columns: Indices, n_features: int) -> LinearRow:
        """The same function of a table from which only some columns were given."""
        wide = np.zeros(n_features)
        np.add.at(wide, columns, self.coefficients)
        thresholds = None
        if self.thresholds is not None:
            thresholds = np.zeros(n_features)
            thresholds[columns] = self.thresholds
        return LinearRow(wide, self.intercept, thresholds)


# ---- Steps between a vectoriser and a linear model


def row_before(step: Any, row: LinearRow) -> LinearRow | Reason:
    """A linear function of a step's output as one of its input, or the reason."""
    if is_passthrough(step):
        return row
    if isinstance(step, SelectorMixin):
        support = step.get_support()
        return row.placed(np.asarray(support).nonzero()[0], len(support))
    if type(step) is Binarizer:
        if row.thresholds is not None:
            return Reason("values are compared with a threshold twice")
        thresholds = np.full(len(row.coefficients), float(step.threshold))
        return replace(row, thresholds=thresholds)
    network = None if takes_norm(step) else map_of(step)
    result = None
    if network is not None:
        result = LinearRow.before(network, row.coefficients, row.intercept)
    if result is None:
        return Reason(
            f"{type(step).__name__} between the vectoriser and the model has no "
            "linear rule"
        )
    if row.thresholds is None:
        return result
    match network:
        case networks.Scaling(center, factor, offset) if (factor > 0.0).all():
            return replace(row, thresholds=(row.thresholds - offset) / factor + center)
        case _:
            return Reason(
                f"the columns of {type(step).__name__} are sums over words, which the "
                "model compares with a threshold"
            )


# ---- The words of a document as blocks that share features


MOST_SHARED: Final = 12
"""The most words that may share features: their 2^12 sets are enumerated."""


def word_blocks(
    vectoriser: Vectoriser, row: LinearRow, features: DocumentFeatures
) -> tuple[Blocks, ...] | Reason:
    """Blocks of words that share features, with their values and norms."""
    entries = (features.count, (features.word, features.feature))
    counts = sp.csr_array(entries, shape=(features.n_words, features.n_features))
    # words that share features, directly or through others
    n_groups, group = connected_components(counts @ counts.T, directed=False)
    ends = np.cumsum(np.bincount(group, minlength=n_groups))[:-1]
    groups = np.split(np.argsort(group, kind="stable"), ends)
    largest = max(groups, key=len)
    if len(largest) > MOST_SHARED:
        block_features = features.feature[np.isin(features.word, largest)]
        several = np.intersect1d(features.shared, block_features)[:3].tolist()
        names = ", ".join(repr(vectoriser.name_of(v)) for v in several)
        return Reason(
            f"{len(largest)} words of the document share features ({names}, ...), more "
            f"than the supported {MOST_SHARED}"
        )
    by_size = sorted({len(group) for group in groups})
    return tuple(
        _blocks(vectoriser, row, counts, np.array([g for g in groups if len(g) == b]))
        for b in by_size
    )


def _blocks(
    vectoriser: Vectoriser, row: LinearRow, counts: Sparse, words: Indices
) -> Blocks:
    """Blocks (G, b) of words, with the value and the norm of each set of words."""
    shape = (len(words), 2 ** words.shape[1])
    retained = all_sets(shape[1].bit_length() - 1)
    every_block = np.broadcast_to(retained, (len(words), *retained.shape))
    block, state, position = np.nonzero(every_block)
    ones = np.ones(len(block))
    entries = (block * shape[1] + state, words[block, position])
    sets = sp.csr_array((ones, entries), shape=(shape[0] * shape[1], counts.shape[0]))
    values, sizes = _of_sets(vectoriser, row, sp.csr_array(sets @ counts))
    return Blocks(words, values.reshape(shape), sizes.reshape(shape))


def _of_sets(
    vectoriser: Vectoriser, row: LinearRow, counts: Sparse
) -> tuple[Values, Values]:
    """Values λᵀ x of features with counts (n, V), and their parts of the norm."""
    features: Any = vectoriser.values(counts).astype(np.float64)
    if row.thresholds is not None:
        features.data = (features.data > row.thresholds[features.indices]).astype(float)
    power = 2.0 if vectoriser.norm == "l2" else 1.0
    sizes = abs(features).power(power).sum(axis=1)
    return np.asarray(features @ row.coefficients), np.asarray(sizes, np.float64)


# ---- Sums of text models


@final
@dataclass(frozen=True, eq=False)
class AddedTexts:
    """A weighted sum of functions of documents, base + Σ_k weight_k f_k."""

    parts: tuple[tuple[float, TextStructure], ...]  # weights and functions, one or more
    base: float  # the constant

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        parts = []
        for weight, structure in self.parts:
            result = structure.at(document)
            if isinstance(result, Reason):
                return result
            parts.append((weight, result))
        scaled = [f.scaled(w) for w, f in parts if isinstance(f, Conjunctions)]
        if len(scaled) == len(parts):
            whole = Conjunctions.sum_of(scaled).plus(self.base)
            return cast("Conjunctions", whole)
        alone = len(parts) == 1 and parts[0][0] == 1.0 and self.base == 0.0
        return parts[0][1] if alone else AddedSets(parts, self.base)


def members_of(model: Any, output: ModelOutput) -> ModelSum | Reason | None:
    """The sum of inner models with the same input; None if the model is no such sum."""
    if type(model) is Pipeline:
        result = members_of(model.steps[-1][1], output)
        if not isinstance(result, ModelSum):
            return result
        parts = [
            part._replace(model=Pipeline([*model.steps[:-1], ("member", part.model)]))
            for part in result.parts
        ]
        return ModelSum(tuple(parts), result.base)
    if class_name_of(model) in (
        "sklearn.BaggingClassifier",
        "sklearn.BaggingRegressor",
    ):
        return None  # members are applied to different columns
    rule = {**SUMS, **_SUMS_OF_TEXTS}.get(class_name_of(model))
    return None if rule is None else rule(model, output, _NO_TABLE)


_NO_TABLE: Final = ColumnView.of_numbers(0, np.asarray)
"""The rules for sums are used without a table: members are treated as text models."""


def _one_against_rest(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """A separate model for each class; a single one for two classes."""
    if len(model.estimators_) == 1:
        return ModelSum((Part(1.0, model.estimators_[0], output, view),))
    if output.name != "margin" or output.index is None:
        return Reason(
            f"{output.name!r} of one class against the rest is normalised over "
            "classes; output='margin' is exact"
        )
    estimator = model.estimators_[output.index]
    return ModelSum((Part(1.0, estimator, ModelOutput("margin", 1), view),))


_SUMS_OF_TEXTS: Final[Mapping[str, SumRule]] = {
    "sklearn.OneVsRestClassifier": _one_against_rest,
    "sklearn.RANSACRegressor": lambda model, output, view: ModelSum(
        (Part(1.0, model.estimator_, output, view),)
    ),
}
"""Rules in addition to those for tables; never used for subclasses."""


# ---- Linear outputs of models, and reasons why others are not linear


RowResult: TypeAlias = LinearRow | Reason | None
RowRule: TypeAlias = Callable[[Any, ModelOutput], RowResult]
"""From a fitted model and an output to its linear function, the reason, or None."""


def linear_row(model: Any, output: ModelOutput) -> RowResult:
    """An output of a fitted model as a linear function, a reason, or None."""
    rule = _RULES.get(class_name_of(model), _of_members)
    return rule(model, output)


def _of_scores(model: Any, output: ModelOutput) -> RowResult:
    """The linear function of models with scores A x + b."""
    network = exact_network(model)
    name = type(model).__name__
    if network is None:
        return None
    if output.index is None and network.n_scores > 1:
        return Reason(f"{name} has {network.n_scores} outputs")
    link = exact_link(model, output.name, output.column, network.n_scores)
    if link is None:
        return Reason(f"{name} has no exact rule from its weighted sums to this output")
    if isinstance(link, networks.ScoreLink) and link.curve == "exp":
        return Reason(f"{name} predicts the exponential of a weighted sum of words")
    combination = linear_combination(link, network.n_scores)
    if isinstance(combination, Reason):
        return combination
    row = LinearRow.before(network, *combination)
    return Reason(f"the scores of {name} are not linear") if row is None else row


def _pipeline(model: Any, output: ModelOutput) -> RowResult:
    result = linear_row(model.steps[-1][1], output)
    for _, step in reversed(model.steps[:-1]):
        if not isinstance(result, LinearRow):
            return result
        result = row_before(step, result)
    return result


def _of_members(model: Any, output: ModelOutput) -> RowResult:
    """The linear function of a sum of models, or of the model's scores."""
    total = members_of(model, output)
    if not isinstance(total, ModelSum):
        return _of_scores(model, output) if total is None else total
    rows = []
    for part in total.parts:
        row = linear_row(part.model, part.output)
        if not isinstance(row, LinearRow):
            return row
        rows.append(row)
    return _added(rows, [part.weight for part in total.parts], total.base)


def _added(rows: list[LinearRow], weights: list[float], base: float) -> RowResult:
    if any(row.thresholds is not None for row in rows):
        return Reason("members compare their inputs with thresholds")
    pairs = list(zip(weights, rows, strict=True))
    coefficients = np.sum([w * row.coefficients for w, row in pairs], axis=0)
    return LinearRow(coefficients, sum(w * row.intercept for w, row in pairs) + base)


def _bagging(model: Any, output: ModelOutput) -> RowResult:
    """The mean over members, each applied to some of the columns."""
    rows = []
    for member, columns in zip(
        model.estimators_, model.estimators_features_, strict=True
    ):
        row = linear_row(member, output)
        if not isinstance(row, LinearRow):
            return row
        rows.append(row.placed(np.asarray(columns), model.n_features_in_))
    return _added(rows, [1.0 / len(rows)] * len(rows), 0.0)


def _bernoulli(model: Any, output: ModelOutput) -> RowResult:
    """Log p(k) + Σ_v log p or log(1 − p), by whether each feature occurs."""
    logs = floats(model.feature_log_prob_)
    if output.name != "log_odds" or len(logs) != 2:
        return Reason(
            f"{output.name!r} of {type(model).__name__} with {len(logs)} classes is "
            "no sum of words; output='log_odds' of two classes is"
        )
    gone = np.log1p(-np.exp(logs))
    priors = floats(model.class_log_prior_) + gone.sum(axis=1)
    one, other = logs - gone
    sign = -1.0 if output.index == 0 else 1.0
    row = LinearRow(sign * (other - one), sign * float(priors[1] - priors[0]))
    if model.binarize is not None:
        row = replace(row, thresholds=np.full(len(one), float(model.binarize)))
    return row


_RULES: Final[Mapping[str, RowRule]] = {
    "sklearn.BaggingRegressor": _bagging,
    "sklearn.BernoulliNB": _bernoulli,
    "sklearn.Pipeline": _pipeline,
}
"""Rules by class, never used for subclasses; other models use members or scores."""


_LONGEST: Final = 4e9
"""Operations for a document: 5,000 words take at most 3.4e8, and 2 to 4 s."""


@final
@dataclass(frozen=True, eq=False)
class TextLinear:
    """A linear output of the features of a vectoriser, for any document."""

    vectoriser: Vectoriser  # fitted
    row: LinearRow  # the output, as a function of the normalised features

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        if document.n_words == 0:
            return Reason("the document has no word")
        result = document_features(self.vectoriser, document)
        if isinstance(result, Reason):
            return result
        blocks = word_blocks(self.vectoriser, self.row, result)
        if isinstance(blocks, Reason):
            return blocks
        if self.vectoriser.norm is None:
            n_words = document.n_words
            return Conjunctions.of_blocks(self.row.intercept, blocks, n_words)
        power = 0.5 if self.vectoriser.norm == "l2" else 1.0
        function = NormalisedSum(self.row.intercept, blocks, power)
        if function.n_steps > _LONGEST:
            return Reason(
                f"the norm of {document.n_words:,} words takes more than 40 s to treat "
                "exactly; with norm=None it takes no time"
            )
        return function


def read_text_linear(
    vectoriser: Vectoriser, output: ModelOutput
) -> TextLinear | Reason | None:
    """The linear structure after counts or tf-idf, with or without a norm."""
    try:
        row = linear_row(vectoriser.rest, output)
    except UNREADABLE as error:
        return unreadable(vectoriser.rest, error)
    if not isinstance(row, LinearRow):
        return row
    finite = np.isfinite(row.coefficients).all() and np.isfinite(row.intercept)
    if not finite or len(row.coefficients) != len(vectoriser.columns):
        return Reason("a weight of a feature is missing or not finite")
    wide = row.placed(vectoriser.columns, vectoriser.n_features)
    if row.thresholds is None:
        return TextLinear(vectoriser, wide)
    return _of_presence(vectoriser, wide)


def _of_presence(vectoriser: Vectoriser, row: LinearRow) -> TextLinear | Reason:
    """A linear function of features compared with thresholds."""
    used = row.coefficients != 0.0
    assert row.thresholds is not None
    thresholds = row.thresholds[used]
    if (thresholds < 0.0).any():
        return Reason("features that are 0 exceed a threshold below 0")
    if vectoriser.norm is not None and (thresholds > 0.0).any():
        return Reason(
            f"features are compared with a threshold after norm={vectoriser.norm!r}, "
            "which is a sum over all words; with norm=None it is exact"
        )
    return TextLinear(replace(vectoriser, norm=None), row)
