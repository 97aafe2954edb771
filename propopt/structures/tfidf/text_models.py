"""Sums of trees behind a vectoriser, and which models of texts are read at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from propopt.base.arrays import Array, Indices, Mask
from propopt.base.text import Reason
from propopt.structures.boxes.sets import Tree
from propopt.structures.fitted_model import FittedModel, unreadable
from propopt.structures.kinds import UNREADABLE
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_models import ModelSum, read_trees
from propopt.structures.registry import exact_products
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.tfidf.text_sums import (
    AddedTexts,
    TextLinear,
    TextStructure,
    members_of,
    read_text_linear,
)
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
)
from propopt.tables.documents import TextDocument


# ---- Ways through trees of features, by which words of one document are kept


MOST_CONJUNCTIONS: Final = 2**18
"""So many a document may have of which several words feed one feature."""

_AT_ONCE: Final = 2**13
"""Ways: what is made of them stays near the processor."""


@final
@dataclass(frozen=True, eq=False)
class Ways:
    """Σ sign · 1[words are kept and deleted as a way has them], each at a node."""

    node: Indices  # (n,): where each way is
    sign: Array  # (n,): 1 or −1
    # (n, K): 2 j + 1 where word j is kept, 2 j where it is deleted; −1 at the end
    asked: Indices

    def take(self, chosen: Mask | Indices) -> Ways:
        """Those that are chosen."""
        return Ways(self.node[chosen], self.sign[chosen], self.asked[chosen])

    def further(self, way: Indices, literal: Indices) -> Ways:
        """With more literals of some ways, which increase."""
        place = np.arange(len(way)) - np.searchsorted(way, way)
        place += (self.asked >= 0).sum(axis=1)[way]
        n, width = self.asked.shape
        asked = np.full((n, max(width, int(place.max(initial=-1)) + 1)), -1, np.intp)
        asked[:, :width] = self.asked
        asked[way, place] = literal
        return replace(self, asked=asked)

    @classmethod
    def together(cls, parts: Sequence[Ways]) -> Ways:
        """All of them."""
        sizes = [part.asked.shape for part in parts]
        width, n = max(k for _, k in sizes), np.cumsum([0, *(n for n, _ in sizes)])
        asked = np.full((n[-1], width), -1, np.intp)
        for start, part, (size, k) in zip(n, parts, sizes, strict=False):
            asked[start : start + size, :k] = part.asked
        return cls(
            np.concatenate([part.node for part in parts]),
            np.concatenate([part.sign for part in parts]),
            asked,
        )

    def conjunctions(self, values: Array, base: float, n_words: int) -> Conjunctions:
        """``base`` + Σ sign · value of the node, with each conjunction once."""
        # equal rows have equal sums of random numbers of 64 bits; the reverse is seen
        asked = np.sort(self.asked, axis=1)
        for seed in count():
            rng = np.random.default_rng(seed)
            numbers = rng.integers(0, 2**64, 2 * n_words + 1, np.uint64, endpoint=False)
            numbers[-1] = 0  # of no word
            sums = numbers[asked].sum(axis=1, dtype=np.uint64)
            _, first, where = np.unique(sums, return_index=True, return_inverse=True)
            if (asked == asked[first[where]]).all():
                break
        asked, total = asked[first], np.zeros(len(first))
        np.add.at(total, where, self.sign * values[self.node])
        used = total != 0.0
        return Conjunctions.of_factors(base, total[used], asked[used, ::-1], n_words)


@final
@dataclass(frozen=True, eq=False)
class TextTrees:
    """Sums of trees of the features of a vectoriser, on any text.

    A node asks for one feature, and so for the words that feed it, one after the other,
    the most frequent first, until all counts that are left go to one side.
    """

    vectoriser: Vectoriser  # what the features are; without norm
    base: float  # what is added
    trees: Tree  # all of them, by the V features
    absent: float  # what the model sees of a feature that does not come

    def at(self, document: TextDocument, /) -> Conjunctions | Reason:
        """The function of which words of a document are kept."""
        features = document_features(self.vectoriser, document)
        if isinstance(features, Reason):
            return features
        fed = np.zeros(self.vectoriser.n_features + 1, bool)  # the last is of leaves
        fed[features.feature] = True
        fed = fed[self.trees.feature]
        shown = self._shown(fed)
        roots = shown[list(self.trees.roots)]
        nothing = np.zeros((len(roots), 0), np.intp)
        done = [Ways(roots[:0], np.zeros(0), nothing[:0])]
        todo, n_ways = [Ways(roots, np.ones(len(roots)), nothing)], 0
        while todo:
            ways = todo.pop()
            if len(ways.node) > _AT_ONCE:
                first = np.arange(len(ways.node)) < _AT_ONCE
                todo.append(ways.take(~first))
                ways = ways.take(first)
            at_leaf = self.trees.feature[ways.node] < 0
            done.append(ways.take(at_leaf))
            n_ways += int(at_leaf.sum())
            if n_ways > MOST_CONJUNCTIONS and len(features.shared) > 0:
                several = features.shared[:3].tolist()
                names = ", ".join(repr(self.vectoriser.name_of(v)) for v in several)
                return Reason(
                    f"several words of the document feed one feature ({names}, ...), "
                    "and what the model asks of them makes more than "
                    f"{MOST_CONJUNCTIONS:,} conjunctions"
                )
            if not at_leaf.all():
                ways = self._asked(ways.take(~at_leaf), features)
                todo.append(replace(ways, node=shown[ways.node]))
        whole = Ways.together(done)
        return whole.conjunctions(self.trees.value, self.base, features.n_words)

    def _shown(self, fed: Mask) -> Indices:
        """From each node to the next that asks for a feature of the document."""
        every = np.arange(len(self.trees.feature))
        shown = np.where(fed | (self.trees.feature < 0), every, self._without)
        while ((further := shown[shown]) != shown).any():
            shown = further
        return shown

    @cached_property
    def _without(self) -> Indices:
        """Where each node sends a feature that does not come."""
        every = np.arange(len(self.trees.feature))
        return self._sent(every, np.full(len(every), self.absent))

    def _sent(self, nodes: Indices, seen: Array) -> Indices:
        """Where nodes send what they see."""
        tree = self.trees
        left = seen <= tree.threshold[nodes]
        left = np.where(np.isnan(seen), tree.missing_left[nodes], left)
        return np.where(left, tree.left[nodes], tree.right[nodes])

    def _asked(self, ways: Ways, features: DocumentFeatures) -> Ways:
        """The ways at the children of their nodes, or with one word more."""
        n, feature = len(ways.node), self.trees.feature[ways.node]
        way, word, often = features.feeding(feature)
        literals = ways.asked[way]
        kept = (literals == 2 * word[:, None] + 1).any(axis=1)
        sure = np.bincount(way, often * kept, n)
        left = ~kept & (literals != 2 * word[:, None]).all(axis=1)
        way, word, often = way[left], word[left], often[left]
        n_left = np.bincount(way, minlength=n)

        low, high = (
            sure + np.bincount(way, of_sign(often, 0.0), n)
            for of_sign in (np.minimum, np.maximum)
        )
        fewest = np.full(n, np.inf)
        np.minimum.at(fewest, way, often)
        near = np.where(n_left > 0, sure + fewest, sure)
        seen = self._seen(np.tile(feature, 3), np.concatenate([low, near, high]))
        least, one, most = self._sent(np.tile(ways.node, 3), seen).reshape(3, n)
        # what is seen rises with the count, or falls, but for what is seen of none
        alike = (low > 0.0) | (high < 0.0)
        alike |= (low == 0.0) & (fewest > 0.0) & (one == most)
        alike |= (low < 0.0) & (high > 0.0) & (self._without[ways.node] == most)
        told = (least == most) & (alike | (n_left == 0))
        parts = [replace(ways, node=least).take(told)]
        # of words each of which is enough: "one at least" is 1 − Π (1 − z)
        none = ~told & (n_left > 2) & (fewest > 0.0) & (one == most)
        if none.any():
            asked, rank = none[way], np.cumsum(none) - 1
            some = ways.take(none)
            without = some.further(rank[way[asked]], 2 * word[asked])
            parts += [
                replace(without, node=least[none]),
                replace(some, node=most[none]),
                replace(without, node=most[none], sign=-some.sign),
            ]
        # the most frequent word of others
        others = np.flatnonzero(~told & ~none)
        order = np.lexsort([-np.abs(often), way])
        first = order[np.searchsorted(way, others)]
        rises, last, some = often[first] > 0.0, n_left[others] == 1, ways.take(others)
        for kept, more, less in ((0, least, most), (1, most, least)):
            node = np.where(rises, more[others], less[others])
            here = replace(some, node=np.where(last, node, some.node))
            parts.append(here.further(np.arange(len(others)), 2 * word[first] + kept))
        return Ways.together(parts)

    def _seen(self, features: Indices, counts: Array) -> Array:
        """What the model sees of features that have these counts, (E,)."""
        seen, come = np.full(len(features), self.absent), counts != 0.0
        seen[come] = self.vectoriser.weighed(counts[come], features[come])
        return seen


def read_text_trees(vectoriser: Vectoriser, output: ModelOutput) -> TextTrees | Reason:
    """Trees, forests and boosting on counts, presence or tf-idf that has no norm."""
    view, rest = (
        ColumnView.of_numbers(vectoriser.n_features, sp.csr_array),
        vectoriser.rest,
    )
    try:
        trees = read_trees(rest, output, view)
        products = exact_products(rest, output, view) if trees is None else None
    except UNREADABLE as error:
        return Reason(unreadable(rest, error))
    if trees is None:
        name = type(FittedModel.of(rest).final).__name__
        if isinstance(products, Reason):
            return Reason(f"{name}: {products.reason}")
        return Reason(f"{name} is no sum of trees")
    if vectoriser.norm is not None:
        return Reason(
            f"trees ask for values that norm={vectoriser.norm!r} divides by a sum over "
            "all words at once; with norm=None they are exact"
        )
    absent = _absent(rest)
    if absent is None:
        return Reason(
            "a word that is absent is missing for some members and 0 for others"
        )
    signed = getattr(vectoriser.counter, "alternate_sign", False)
    if np.isnan(absent) and signed and not vectoriser.binary:
        return Reason(
            "hashed words whose signs cancel are 0 to XGBoost, and absent ones are "
            "missing; with alternate_sign=False it is exact"
        )
    return TextTrees(vectoriser, trees.base, Tree.beside(trees.trees), absent)


def _absent(rest: Any) -> float | None:
    """What is seen of a feature that does not come; None where members differ."""
    packages = {type(model).__module__.partition(".")[0] for model in _members(rest)}
    if "xgboost" not in packages:
        return 0.0
    given: Any = sp.csr_array((1, getattr(rest, "n_features_in_", 1)))
    if type(rest) is Pipeline:  # an empty document as the last step is given it
        given = rest[:-1].transform(given)
    if not sp.issparse(given):
        return 0.0
    # what a sparse table does not hold is missing for XGBoost, and 0 for all others
    return np.nan if packages == {"xgboost"} else None


def _members(model: Any) -> Iterator[Any]:
    """The models that a model is made of; itself, where it is made of none."""
    fitted = FittedModel.of(model)
    for part in fitted.members:
        yield from _members(part)
    if not fitted.members:
        yield fitted.final


# ---- Which fitted models of texts are read, by what they are made of


def read_text_model(
    model: Any, output: str, index: int | None
) -> TextStructure | Reason:
    """What a fitted model of texts is made of; the first reason if it is not read."""
    wanted, vectoriser = ModelOutput(output, index), Vectoriser.of(model)
    reasons = []
    if isinstance(vectoriser, Reason):
        reasons.append(vectoriser)
    elif vectoriser.rest is None:
        reasons.append(Reason("a vectoriser alone gives no number"))
    else:
        linear = read_text_linear(vectoriser, wanted)
        if isinstance(linear, TextLinear):
            return linear
        trees = read_text_trees(vectoriser, wanted)
        if isinstance(trees, TextTrees):
            return trees
        reasons += [trees] if linear is None else [linear, trees]
    added = _read_members(model, wanted)
    if isinstance(added, AddedTexts):
        return added
    if added is not None:
        reasons.insert(-1, added)  # before that of what is tried last
    return reasons[0]


def _read_members(model: Any, output: ModelOutput) -> AddedTexts | Reason | None:
    """What a model adds up; None where it is no sum of others."""
    total = members_of(model, output)
    if not isinstance(total, ModelSum):
        return total
    parts = []
    for part in total.parts:
        result = read_text_model(part.model, part.output.name, part.output.index)
        if isinstance(result, Reason):
            return result
        parts.append((part.weight, result))
    return AddedTexts(tuple(parts), total.base)
