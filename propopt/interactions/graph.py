"""A graph of interacting features, for the smoothness of attributions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from propopt.base.arrays import Indices, Sparse, Values
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.interactions.features import FeatureSets
from propopt.interactions.inference import Adjustment
from propopt.interactions.scores import (
    InteractionScores,
    are_positions,
    clear_scores,
    indices_of_columns,
    intervals_in_words,
    require_pairs,
)
from propopt.losses.graphs.points import SimilarityGraph
from propopt.tables.frames import table_labels
from propopt.tables.schema import TableSchema


@suggests_arguments
def interaction_graph(
    result: InteractionScores,
    columns: Any = None,
    *,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
) -> SimilarityGraph:
    """A graph that joins features which interact, weighted by their scores.

    S_jk = (iLOCO_jk − r_jk)₊ / max, so that the strongest pair has 1. Here r_jk is
    zero, or the score that a model without interactions would have where that is
    larger. Columns of one feature are joined with weight 1. The weight of two features
    is split evenly among the pairs of their columns, so that the number of columns has
    no effect.

    Parameters
    ----------
    result : InteractionScores
        Scores of pairs. Only pairs with intervals above r_jk are joined.
    columns : DataFrame, TableSchema or sequence of names, optional
        Columns of the explained table, which give the order of the nodes. By default
        they are the columns of the features of the result, feature by feature, or in
        the order of the array that it was fitted to.
    level : float
        Confidence level of the intervals.
    adjust : Adjustment
        Correction of the level, see :meth:`InteractionScores.intervals`.

    Returns
    -------
    SimilarityGraph
        With the names of the columns, and the largest iLOCO_jk − r_jk as a parameter.

    Raises
    ------
    InvalidInput
        If the scores are not of pairs, if no pair has such an interval, or if the
        columns are not those of the features of the result.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> scores = po.interactions.InteractionScores(
    ...     sets=np.array([[0, 1], [0, 2], [1, 2]]),
    ...     names=("a", "b", "c"),
    ...     estimates=np.array([0.5, 0.1, -0.2]),
    ...     standard_errors=np.full(3, 0.02),
    ...     monte_carlo=np.zeros(3),
    ...     counts=np.ones(3),
    ...     n_rows=100,
    ...     n_candidates=3,
    ...     method="split",
    ...     error="squared",
    ...     units="u²",
    ... )
    >>> graph = po.interactions.interaction_graph(scores, ["c", "b", "a"])
    >>> graph
    <interaction graph: 3 nodes, 2 edges, largest=0.5>
    >>> graph.similarities.toarray()
    array([[0. , 0. , 0.2],
           [0. , 0. , 1. ],
           [0.2, 1. , 0. ]])
    >>> po.Smoothness(graph).n_features
    3
    """
    above, _ = clear_scores(result, level, adjust)
    require_pairs(result, "interaction_graph")
    leak = np.nan_to_num(result.leak, nan=0.0)
    beyond = np.maximum(result.estimates - np.maximum(leak, 0.0), 0.0)
    strength = np.where(above, beyond, 0.0)
    if not strength.any():
        raise InvalidInput(
            f"result: none of {len(strength)} pairs clearly interacts "
            f"({intervals_in_words(result, level, adjust)}), so there is nothing to "
            "draw"
        )
    names = _column_names(columns, result)
    column_names = chain.from_iterable(result.columns)
    n_columns = sum(1 for _ in column_names) if names is None else len(names)
    members = indices_of_columns(result, names, n_columns, "the graph")
    largest = float(strength.max())
    graph = SimilarityGraph(
        _joined(members, result.sets, strength / largest),
        "interaction",
        {"largest": largest},
    )
    graph.names = names
    return graph


def _column_names(
    columns: Any, result: InteractionScores
) -> tuple[Hashable, ...] | None:
    """The given names, or those of the result; None for the columns of an array."""
    if isinstance(columns, TableSchema):
        return columns.names
    if columns is not None:
        named = table_labels(columns).columns
        return tuple(columns) if named is None else named
    column_names = tuple(chain.from_iterable(result.columns))
    return None if are_positions(column_names) else column_names


def _joined(members: Sequence[Indices], sets: FeatureSets, weights: Values) -> Sparse:
    """Zᵀ W Z for Z = 1/(number of columns of the feature), plus 1 within features."""
    n_features = len(members)
    W = sp.coo_array((weights, tuple(sets.T)), shape=(n_features,) * 2).tocsr()
    owner = np.repeat(np.arange(n_features), [len(positions) for positions in members])
    column = np.concatenate(members)
    member = sp.csr_array((np.ones(len(owner)), (owner, column)))
    Z = sp.csr_array(sp.diags_array(1.0 / member.sum(axis=1)) @ member)
    within = member.T @ member - sp.eye_array(len(column))
    return sp.csr_array(Z.T @ (W + W.T) @ Z + within)
