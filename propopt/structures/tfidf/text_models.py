"""Sums of trees after a vectoriser, and exact structures of text models."""

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
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Tree
from propopt.structures.kinds import UNREADABLE, fitted_value, is_a
from propopt.structures.products.sums import SumOfProducts, stacked_paths
from propopt.structures.readers.model_products import without_trees
from propopt.structures.readers.model_reader import ModelSum
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.registry import (
    as_estimator,
    final_of,
    members_in,
    read_trees,
    reader_of,
    unreadable,
)
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import TextStructure
from propopt.structures.tfidf.text_sums import AddedTexts, TextLinear
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
)
from propopt.tables.documents import TextDocument
from propopt.tables.frames import listed


# ---- Paths through trees, by the words of one document that are retained


MOST_CONJUNCTIONS: Final = 2**18
"""The most conjunctions of a document in which several words share a feature."""

_AT_ONCE: Final = 2**13
"""Paths of one batch, which stays in the processor's cache."""


@final
@dataclass(frozen=True, eq=False)
class TreePaths:
    """Signed conjunctions of retained and deleted words, each with a node of a tree."""

    node: Indices  # (n,): the node of each path
    sign: Array  # (n,): 1 or −1
    # (n, K): 2 j + 1 if word j is retained, 2 j if it is deleted; padded with −1
    literals: Indices

    def take(self, chosen: Mask | Indices) -> TreePaths:
        """The chosen paths."""
        return TreePaths(self.node[chosen], self.sign[chosen], self.literals[chosen])

    def further(self, path: Indices, literal: Indices) -> TreePaths:
        """The paths with more literals for some of them; ``path`` is nondecreasing."""
        position = np.arange(len(path)) - np.searchsorted(path, path)
        position += (self.literals >= 0).sum(axis=1)[path]
        n, width = self.literals.shape
        longest = max(width, int(position.max(initial=-1)) + 1)
        literals = np.full((n, longest), -1, np.intp)
        literals[:, :width] = self.literals
        literals[path, position] = literal
        return replace(self, literals=literals)

    @classmethod
    def together(cls, parts: Sequence[TreePaths]) -> TreePaths:
        """All paths of several parts."""
        return cls(
            np.concatenate([part.node for part in parts]),
            np.concatenate([part.sign for part in parts]),
            stacked_paths([part.literals for part in parts]),
        )

    def conjunctions(self, values: Array, base: float, n_words: int) -> Conjunctions:
        """Sum base + Σ sign · value of the node, with equal conjunctions combined."""
        # equal rows have equal sums of random 64-bit numbers; the converse is checked
        literals = np.sort(self.literals, axis=1)
        for seed in count():
            rng = np.random.default_rng(seed)
            numbers = rng.integers(0, 2**64, 2 * n_words + 1, np.uint64, endpoint=False)
            numbers[-1] = 0  # the padding
            sums = numbers[literals].sum(axis=1, dtype=np.uint64)
            _, first, where = np.unique(sums, return_index=True, return_inverse=True)
            if (literals == literals[first[where]]).all():
                break
        literals = literals[first]
        total = np.zeros(len(first))
        np.add.at(total, where, self.sign * values[self.node])
        used = total != 0.0
        return Conjunctions.of_factors(base, total[used], literals[used, ::-1], n_words)


@final
@dataclass(frozen=True, eq=False)
class TextTrees:
    """Sums of trees of the features of a vectoriser, for any text.

    A node tests one feature. Its words are decided one after the other, the most
    frequent first, until all remaining counts go to one side.
    """

    vectoriser: Vectoriser  # without norm
    base: float  # the constant
    trees: Tree  # all trees, with tests of the V features
    absent: float  # the input value of a feature that does not occur

    def at(self, document: TextDocument, /) -> Conjunctions | Reason:
        """The function of the retained words of a document."""
        features = document_features(self.vectoriser, document)
        if isinstance(features, Reason):
            return features
        occurs = np.zeros(self.vectoriser.n_features + 1, bool)  # the last: leaves
        occurs[features.feature] = True
        tested_nodes = occurs[self.trees.feature]
        next_node = self._shown(tested_nodes)
        roots = next_node[list(self.trees.roots)]
        nothing = np.zeros((len(roots), 0), np.intp)
        done = []
        todo = [TreePaths(roots, np.ones(len(roots)), nothing)]
        n_ways = 0
        while todo:
            paths = todo.pop()
            if len(paths.node) > _AT_ONCE:
                first = np.arange(len(paths.node)) < _AT_ONCE
                todo.append(paths.take(~first))
                paths = paths.take(first)
            at_leaf = self.trees.feature[paths.node] < 0
            done.append(paths.take(at_leaf))
            n_ways += int(at_leaf.sum())
            if n_ways > MOST_CONJUNCTIONS and len(features.shared) > 0:
                names = [*map(self.vectoriser.name_of, features.shared.tolist())]
                return Reason(
                    "several words of the document feed one feature "
                    f"({listed(names, 3)}), and the trees that test them make more "
                    f"than {MOST_CONJUNCTIONS:,} conjunctions"
                )
            if not at_leaf.all():
                paths = self._branches(paths.take(~at_leaf), features)
                todo.append(replace(paths, node=next_node[paths.node]))
        whole = TreePaths.together(done)
        return whole.conjunctions(self.trees.value, self.base, features.n_words)

    def _shown(self, tested_nodes: Mask) -> Indices:
        """The next node, from each node on, that tests a feature of the document."""
        every = np.arange(len(self.trees.feature))
        target = np.where(tested_nodes | (self.trees.feature < 0), every, self._without)
        while ((next_target := target[target]) != target).any():
            target = next_target
        return target

    @cached_property
    def _without(self) -> Indices:
        """The child of each node for a feature that does not occur."""
        every = np.arange(len(self.trees.feature))
        return self._sent(every, np.full(len(every), self.absent))

    def _sent(self, nodes: Indices, seen: Array) -> Indices:
        """The child of each node for given input values."""
        tree = self.trees
        left = seen <= tree.threshold[nodes]
        left = np.where(np.isnan(seen), tree.missing_left[nodes], left)
        return np.where(left, tree.left[nodes], tree.right[nodes])

    def _branches(self, paths: TreePaths, features: DocumentFeatures) -> TreePaths:
        """The paths at the children of their nodes, or with one more word decided."""
        n = len(paths.node)
        feature = self.trees.feature[paths.node]
        path, word, count = features.feeding(feature)
        literals = paths.literals[path]
        is_retained = (literals == 2 * word[:, None] + 1).any(axis=1)
        retained_count = np.bincount(path, count * is_retained, n)
        left = ~is_retained & (literals != 2 * word[:, None]).all(axis=1)
        path = path[left]
        word = word[left]
        count = count[left]
        n_left = np.bincount(path, minlength=n)

        low, high = (
            retained_count + np.bincount(path, of_sign(count, 0.0), n)
            for of_sign in (np.minimum, np.maximum)
        )
        fewest = np.full(n, np.inf)
        np.minimum.at(fewest, path, count)
        nearest = np.where(n_left > 0, retained_count + fewest, retained_count)
        seen = self._seen(np.tile(feature, 3), np.concatenate([low, nearest, high]))
        least, one, most = self._sent(np.tile(paths.node, 3), seen).reshape(3, n)
        # inputs are monotone in the count, except at a count of zero
        same_side = (low > 0.0) | (high < 0.0)
        same_side |= (low == 0.0) & (fewest > 0.0) & (one == most)
        same_side |= (low < 0.0) & (high > 0.0) & (self._without[paths.node] == most)
        decided = (least == most) & (same_side | (n_left == 0))
        parts = [replace(paths, node=least).take(decided)]
        # if any single word suffices: "at least one" is 1 − Π (1 − z)
        suffices = ~decided & (n_left > 2) & (fewest > 0.0) & (one == most)
        if suffices.any():
            still_open = suffices[path]
            rank = np.cumsum(suffices) - 1
            parents = paths.take(suffices)
            without = parents.further(rank[path[still_open]], 2 * word[still_open])
            parts += [
                replace(without, node=least[suffices]),
                replace(parents, node=most[suffices]),
                replace(without, node=most[suffices], sign=-parents.sign),
            ]
        # for the other paths, the most frequent word
        others = np.flatnonzero(~decided & ~suffices)
        order = np.lexsort([-np.abs(count), path])
        first = order[np.searchsorted(path, others)]
        rises = count[first] > 0.0
        last = n_left[others] == 1
        parents = paths.take(others)
        for is_retained, more, less in ((0, least, most), (1, most, least)):
            node = np.where(rises, more[others], less[others])
            here = replace(parents, node=np.where(last, node, parents.node))
            literals = 2 * word[first] + is_retained
            parts.append(here.further(np.arange(len(others)), literals))
        return TreePaths.together(parts)

    def _seen(self, features: Indices, counts: Array) -> Array:
        """The input values of features with these counts, shape (E,)."""
        seen = np.full(len(features), self.absent)
        come = counts != 0.0
        seen[come] = self.vectoriser.weighted_counts(counts[come], features[come])
        return seen


def _of_trees(vectoriser: Vectoriser, trees: TreeSum) -> TextTrees | Reason:
    """Trees, forests or boosting on counts, presence or tf-idf without norm."""
    joined = Tree.concatenate_trees(trees.trees)
    # comparisons with 0 ask whether a word is present, whatever the norm
    if vectoriser.norm is not None and joined.threshold[joined.feature >= 0].any():
        return Reason(
            f"trees test values that norm={vectoriser.norm!r} divides by a sum over "
            "all words; with norm=None they are exact"
        )
    absent = _absent(vectoriser.rest)
    if absent is None:
        return Reason(
            "a word that is absent is missing for some members and 0 for others"
        )
    signed = fitted_value(vectoriser.counter, "alternate_sign")
    if np.isnan(absent) and signed and not vectoriser.binary:
        return Reason(
            "hashed words with cancelling signs are 0 to XGBoost, and absent ones are "
            "missing; with alternate_sign=False it is exact"
        )
    return TextTrees(vectoriser, trees.base, joined, absent)


def _absent(rest: Any) -> float | None:
    """The input value of a feature that does not occur; None if members differ."""
    packages = {type(model).__module__.partition(".")[0] for model in _members(rest)}
    if "xgboost" not in packages:
        return 0.0
    given: Any = sp.csr_array((1, fitted_value(rest, "n_features_in_", 1)))
    if type(rest) is Pipeline:  # an empty document as the last step is given it
        given = rest[:-1].transform(given)
    if not sp.issparse(given):
        return 0.0
    # entries that a sparse table lacks are missing for XGBoost, and 0 for all others
    return np.nan if packages == {"xgboost"} else None


def _members(model: Any) -> Iterator[Any]:
    """The models that a model combines; the model itself if it combines none."""
    final = final_of(as_estimator(model))
    members = members_in(final)
    for part in members:
        yield from _members(part)
    if not members:
        yield final


# ---- Exact structures of fitted text models


def read_text_model(
    model: Any, output: str, index: int | None
) -> TextStructure | Reason:
    """Exact structure of a fitted model of texts, or the reason why there is none."""
    wanted = ModelOutput(output, index)
    vectoriser = Vectoriser.of(model)
    if isinstance(vectoriser, Reason):
        alone: TextStructure | Reason = vectoriser
    elif vectoriser.rest is None:
        alone = Reason("a vectoriser alone gives no number")
    else:
        alone = _behind(vectoriser, wanted)
    if not isinstance(alone, Reason):
        return alone
    total = members_of(model, wanted)
    if total is None or isinstance(total, Reason):
        return total or alone
    members, base = total
    parts = []
    for weight, member, selected, _ in members:
        result = read_text_model(as_estimator(member), selected.name, selected.index)
        if isinstance(result, Reason):
            return result
        parts.append((weight, result))
    return AddedTexts(tuple(parts), base)


def _behind(vectoriser: Vectoriser, output: ModelOutput) -> TextStructure | Reason:
    """The model after a vectoriser, if it is a sum of trees or linear."""
    rest = vectoriser.rest
    view = ColumnView.of_counts(vectoriser.n_features)
    try:
        trees = read_trees(rest, output, view)
        if trees is not None:
            return _of_trees(vectoriser, trees)
        products = without_trees(rest, output, view)
    except UNREADABLE as error:
        return unreadable(rest, error)
    linear = (
        TextLinear.of(vectoriser, products)
        if isinstance(products, SumOfProducts)
        else products
    )
    if isinstance(linear, Reason):
        return Reason(f"{type(final_of(rest)).__name__}: {linear.reason}")
    return linear


def members_of(model: Any, output: ModelOutput) -> ModelSum | Reason | None:
    """The sum of inner models with the same input; None if the model is no such sum."""
    if type(model) is Pipeline:
        result = members_of(model.steps[-1][1], output)
        if result is None or isinstance(result, Reason):
            return result
        members, base = result
        before = model.steps[:-1]
        parts = (
            (weight, Pipeline([*before, ("member", member)]), *others)
            for weight, member, *others in members
        )
        return tuple(parts), base
    rule = reader_of(model).sum
    if rule is None or is_a(model, "sklearn.BaseBagging"):
        return None  # members of bags are applied to different columns
    return rule(model, output, ColumnView.of_counts(0))
