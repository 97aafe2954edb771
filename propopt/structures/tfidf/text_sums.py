"""Linear models behind a vectoriser, and models that add up others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias, cast, final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer

from propopt.base.arrays import Indices, Sparse, Values
from propopt.base.text import Reason
from propopt.structures import networks
from propopt.structures.fitted_model import unreadable
from propopt.structures.kinds import UNREADABLE, class_name_of, is_passthrough
from propopt.structures.readers.model_products import (
    linear_combination,
    pulled_back,
    steps_of,
)
from propopt.structures.readers.pipelines import ColumnView, ModelOutput, floats
from propopt.structures.readers.tree_models import SUMS, ModelSum, Part, SumRule
from propopt.structures.registry import exact_link, exact_network
from propopt.structures.scores import Network
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import (
    Blocks,
    SetFunction,
    all_sets,
)
from propopt.structures.subsets.sums import AddedSets, NormalisedSum
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
    map_of,
    takes_norm,
)
from propopt.tables.documents import TextDocument


class TextStructure(Protocol):
    """A model of texts that was read: a function of the words of any document."""

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        """The function of which words of a document are kept."""


@final
@dataclass(frozen=True, eq=False)
class LinearRow:
    """λᵀ x + λ_0, or with thresholds Σ_v λ_v 1{x_v > t_v} + λ_0."""

    coefficients: Values  # (V,): λ
    intercept: float  # λ_0
    thresholds: Values | None = None  # (V,): t

    @classmethod
    def before(cls, network: Network, row: Values, base: float) -> LinearRow | None:
        """Row · z + base of the scores z of a network; None if it is not affine."""
        combination = row, base
        for step in reversed(steps_of(network)):
            if not isinstance(step, networks.Affine | networks.Scaling):
                return None
            combination = pulled_back(step, combination)
        return cls(*combination)

    def times(self, factor: float) -> LinearRow:
        """All weights times a factor."""
        return replace(
            self,
            coefficients=factor * self.coefficients,
            intercept=factor * self.intercept,
        )

    def placed(self, columns: Indices, n_features: int) -> LinearRow:
        """The same of a table of which it was given some columns."""
        wide = np.zeros(n_features)
        np.add.at(wide, columns, self.coefficients)
        thresholds = None
        if self.thresholds is not None:
            thresholds = np.zeros(n_features)
            thresholds[columns] = self.thresholds
        return LinearRow(wide, self.intercept, thresholds)


# ---- Steps between a vectoriser and a linear model, by what they make of its row


def before(step: Any, row: LinearRow) -> LinearRow | Reason:
    """A row of what a fitted step gives, as a row of what it is given."""
    if is_passthrough(step):
        return row
    if isinstance(step, SelectorMixin):
        support = step.get_support()
        return row.placed(np.asarray(support).nonzero()[0], len(support))
    if type(step) is Binarizer:
        if row.thresholds is not None:
            return Reason("what is compared with a threshold is compared again")
        thresholds = np.full(len(row.coefficients), float(step.threshold))
        return replace(row, thresholds=thresholds)
    network = None if takes_norm(step) else map_of(step)
    result = None
    if network is not None:
        result = LinearRow.before(network, row.coefficients, row.intercept)
    if result is None:
        return Reason(
            f"{type(step).__name__}, which stands between the vectoriser and the "
            "model, is not known to be linear"
        )
    if row.thresholds is None:
        return result
    match network:
        case networks.Scaling(center, factor, offset) if (factor > 0.0).all():
            return replace(row, thresholds=(row.thresholds - offset) / factor + center)
        case _:
            return Reason(
                f"the columns of {type(step).__name__} are sums over words, which are "
                "compared with a threshold"
            )


# ---- The words of a document as blocks, by the features that they feed


MOST_SHARED: Final = 12
"""So many words may share features: their 2^12 sets are enumerated."""


def word_blocks(
    vectoriser: Vectoriser, row: LinearRow, features: DocumentFeatures
) -> tuple[Blocks, ...] | Reason:
    """What words that share features add to the output, and to the norm's power."""
    entries = (features.count, (features.word, features.feature))
    counts = sp.csr_array(entries, shape=(features.n_words, features.n_features))
    # words that share features, directly or through others
    n_groups, group = connected_components(counts @ counts.T, directed=False)
    ends = np.cumsum(np.bincount(group, minlength=n_groups))[:-1]
    groups = np.split(np.argsort(group, kind="stable"), ends)
    largest = max(groups, key=len)
    if len(largest) > MOST_SHARED:
        own = features.feature[np.isin(features.word, largest)]
        several = np.intersect1d(features.shared, own)[:3].tolist()
        names = ", ".join(repr(vectoriser.name_of(v)) for v in several)
        return Reason(
            f"{len(largest)} words of the document share features ({names}, ...), more "
            f"than the {MOST_SHARED} whose sets are enumerated"
        )
    by_size = sorted({len(group) for group in groups})
    return tuple(
        _blocks(vectoriser, row, counts, np.array([g for g in groups if len(g) == b]))
        for b in by_size
    )


def _blocks(
    vectoriser: Vectoriser, row: LinearRow, counts: Sparse, words: Indices
) -> Blocks:
    """Blocks (G, b) of words, with what each set of them has."""
    shape = (len(words), 2 ** words.shape[1])
    kept = all_sets(shape[1].bit_length() - 1)
    block, state, place = np.nonzero(np.broadcast_to(kept, (len(words), *kept.shape)))
    ones = np.ones(len(block))
    which = (block * shape[1] + state, words[block, place])
    sets = sp.csr_array((ones, which), shape=(shape[0] * shape[1], counts.shape[0]))
    values, sizes = _of_sets(vectoriser, row, sp.csr_array(sets @ counts))
    return Blocks(words, values.reshape(shape), sizes.reshape(shape))


def _of_sets(
    vectoriser: Vectoriser, row: LinearRow, counts: Sparse
) -> tuple[Values, Values]:
    """λᵀ of features that have these counts (n, V), and what they add to the norm."""
    features: Any = vectoriser.values(counts).astype(np.float64)
    if row.thresholds is not None:
        features.data = (features.data > row.thresholds[features.indices]).astype(float)
    power = 2.0 if vectoriser.norm == "l2" else 1.0
    sizes = abs(features).power(power).sum(axis=1)
    return np.asarray(features @ row.coefficients), np.asarray(sizes, np.float64)


# ---- Models that add up what other models say of a text


@final
@dataclass(frozen=True, eq=False)
class AddedTexts:
    """Base + Σ_k weight_k f_k, of functions of the words of any document."""

    parts: tuple[tuple[float, TextStructure], ...]  # at least one weight and function
    base: float  # what is added to them

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        parts = []
        for weight, structure in self.parts:
            result = structure.at(document)
            if isinstance(result, Reason):
                return result
            parts.append((weight, result))
        scaled = [own.scaled(w) for w, own in parts if isinstance(own, Conjunctions)]
        if len(scaled) == len(parts):
            whole = Conjunctions.sum_of(scaled).plus(self.base)
            return cast("Conjunctions", whole)
        alone = len(parts) == 1 and parts[0][0] == 1.0 and self.base == 0.0
        return parts[0][1] if alone else AddedSets(parts, self.base)


def members_of(model: Any, output: ModelOutput) -> ModelSum | Reason | None:
    """What a model adds up; None where it has no members that are given what it is."""
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
        return None  # members have columns of their own
    rule = {**SUMS, **_SUMS_OF_TEXTS}.get(class_name_of(model))
    return None if rule is None else rule(model, output, _NO_TABLE)


_NO_TABLE: Final = ColumnView.of_numbers(0, np.asarray)
"""Members are read by themselves, and not in what a table has for them."""


def _one_against_rest(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """A model for each class; one for two."""
    if len(model.estimators_) == 1:
        return ModelSum((Part(1.0, model.estimators_[0], output, view),))
    if output.name != "margin" or output.index is None:
        return Reason(
            f"{output.name!r} of one class against the rest is divided by a sum over "
            "classes; output='margin' is not"
        )
    own = model.estimators_[output.index]
    return ModelSum((Part(1.0, own, ModelOutput("margin", 1), view),))


_SUMS_OF_TEXTS: Final[Mapping[str, SumRule]] = {
    "sklearn.OneVsRestClassifier": _one_against_rest,
    "sklearn.RANSACRegressor": lambda model, output, view: ModelSum(
        (Part(1.0, model.estimator_, output, view),)
    ),
}
"""Beside those that are read of tables; by their class, never a subclass."""


# ---- Which outputs of which models are linear, and why others are not


Found: TypeAlias = LinearRow | Reason | None
RowRule: TypeAlias = Callable[[Any, ModelOutput], Found]
"""From a fitted model and an output of it to its row, the reason, or None."""


def linear_row(model: Any, output: ModelOutput) -> Found:
    """The row of an output of a fitted model; None of models that are not linear."""
    rule = _RULES.get(class_name_of(model), _of_members)
    return rule(model, output)


def _of_scores(model: Any, output: ModelOutput) -> Found:
    """Of models whose scores are A x + b."""
    network, name = exact_network(model), type(model).__name__
    if network is None:
        return None
    if output.index is None and network.n_scores > 1:
        return Reason(f"{name} has {network.n_scores} outputs")
    link = exact_link(model, output.name, output.column, network.n_scores)
    if link is None:
        return Reason(f"what {name} makes of its weighted sums is not known")
    if isinstance(link, networks.ScoreLink) and link.curve == "exp":
        return Reason(f"{name} predicts exp of a weighted sum of words, which is none")
    combination = linear_combination(link, network.n_scores)
    if isinstance(combination, Reason):
        return combination
    row = LinearRow.before(network, *combination)
    return Reason(f"the scores of {name} are no sums of words") if row is None else row


def _pipeline(model: Any, output: ModelOutput) -> Found:
    result = linear_row(model.steps[-1][1], output)
    for _, step in reversed(model.steps[:-1]):
        if not isinstance(result, LinearRow):
            return result
        result = before(step, result)
    return result


def _of_members(model: Any, output: ModelOutput) -> Found:
    """Of models that add up what others predict; of others by their scores."""
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


def _added(rows: list[LinearRow], weights: list[float], base: float) -> Found:
    if any(row.thresholds is not None for row in rows):
        return Reason("members compare what they are given with thresholds")
    pairs = list(zip(weights, rows, strict=True))
    coefficients = np.sum([w * row.coefficients for w, row in pairs], axis=0)
    return LinearRow(coefficients, sum(w * row.intercept for w, row in pairs) + base)


def _bagging(model: Any, output: ModelOutput) -> Found:
    """The mean over members, each of which is given its own columns."""
    rows = []
    for member, columns in zip(
        model.estimators_, model.estimators_features_, strict=True
    ):
        row = linear_row(member, output)
        if not isinstance(row, LinearRow):
            return row
        rows.append(row.placed(np.asarray(columns), model.n_features_in_))
    return _added(rows, [1.0 / len(rows)] * len(rows), 0.0)


def _bernoulli(model: Any, output: ModelOutput) -> Found:
    """Log p(k) + Σ_v log p or log(1 − p) of what is there or is not."""
    logs = floats(model.feature_log_prob_)
    if output.name != "log_odds" or len(logs) != 2:
        return Reason(
            f"{output.name!r} of {type(model).__name__} with {len(logs)} classes is "
            "no sum of words; output='log_odds' of two classes is"
        )
    gone = np.log1p(-np.exp(logs))
    priors = floats(model.class_log_prior_) + gone.sum(axis=1)
    one, other = logs - gone
    row = LinearRow(other - one, float(priors[1] - priors[0]))
    if model.binarize is not None:
        row = replace(row, thresholds=np.full(len(one), float(model.binarize)))
    return row.times(-1.0) if output.index == 0 else row


_RULES: Final[Mapping[str, RowRule]] = {
    "sklearn.BaggingRegressor": _bagging,
    "sklearn.BernoulliNB": _bernoulli,
    "sklearn.Pipeline": _pipeline,
}
"""Models by their class, never a subclass; others by their members or their scores."""


_LONGEST: Final = 4e9
"""Steps of a document: 5,000 words take at most 3.4e8, and 2 to 4 s."""


@final
@dataclass(frozen=True, eq=False)
class TextLinear:
    """A linear output of the features of a vectoriser, on any document."""

    vectoriser: Vectoriser  # fitted
    row: LinearRow  # the output, of its features behind the norm

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
    """Linear outputs behind counts or tf-idf, with a norm or without."""
    try:
        row = linear_row(vectoriser.rest, output)
    except UNREADABLE as error:
        return Reason(unreadable(vectoriser.rest, error))
    if not isinstance(row, LinearRow):
        return row
    finite = np.isfinite(row.coefficients).all() and np.isfinite(row.intercept)
    if not finite or len(row.coefficients) != len(vectoriser.columns):
        return Reason("a weight of a feature is not finite, or there is none")
    wide = row.placed(vectoriser.columns, vectoriser.n_features)
    if row.thresholds is None:
        return TextLinear(vectoriser, wide)
    return _of_presence(vectoriser, wide)


def _of_presence(vectoriser: Vectoriser, row: LinearRow) -> TextLinear | Reason:
    """Of features that are compared with thresholds: a norm must not matter."""
    used = row.coefficients != 0.0
    assert row.thresholds is not None
    thresholds = row.thresholds[used]
    if (thresholds < 0.0).any():
        return Reason("a threshold below 0 is passed by features that are 0")
    if vectoriser.norm is not None and (thresholds > 0.0).any():
        return Reason(
            f"features are compared with a threshold behind norm={vectoriser.norm!r}, "
            "which is a sum over all words; with norm=None it is exact"
        )
    return TextLinear(replace(vectoriser, norm=None), row)
