"""Features that matter jointly, as a graph for the smoothness of attributions."""

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
    """Features that matter jointly are similar, in proportion to their scores.

    S_jk = (iLOCO_jk − r_jk)₊ / max, so that the strongest pair has 1. Here r_jk is
    zero, or what a model without interactions would show where that is more. Columns of
    one feature are joined by 1; the similarity of two features is shared evenly among
    the pairs of their columns, so that many columns weigh no more than one.

    Parameters
    ----------
    result : InteractionScores
        Of pairs. Only those whose intervals are above r_jk are joined.
    columns : DataFrame, TableSchema or sequence of names, optional
        The columns of the table that is explained: nodes are in their order. By default
        they are those of the features of the result, feature by feature; and where
        these were the columns of an array, in its order.
    level : float
        Of the intervals.
    adjust : Adjustment
        As :meth:`InteractionScores.intervals` has it.

    Returns
    -------
    SimilarityGraph
        With the names of the columns, and the largest score less r as a parameter.

    Raises
    ------
    InvalidInput
        If the result is none of pairs, if there is no such pair, or if the columns have
        other names than the features of the result.

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
            f"result: of {len(strength)} pairs none contributes jointly "
            f"({intervals_in_words(result, level, adjust)}), so that there is nothing "
            "to join"
        )
    names = _column_names(columns, result)
    own = chain.from_iterable(result.columns)
    n_columns = sum(1 for _ in own) if names is None else len(names)
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
    """Those given, else those of the result; None of the columns of an array."""
    if isinstance(columns, TableSchema):
        return columns.names
    if columns is not None:
        named = table_labels(columns).columns
        return tuple(columns) if named is None else named
    own = tuple(chain.from_iterable(result.columns))
    return None if are_positions(own) else own


def _joined(members: Sequence[Indices], sets: FeatureSets, weights: Values) -> Sparse:
    """Zᵀ W Z of columns, with Z = 1/(columns of the feature), and 1 within features."""
    n_features = len(members)
    W = sp.coo_array((weights, tuple(sets.T)), shape=(n_features,) * 2).tocsr()
    owner = np.repeat(np.arange(n_features), [len(own) for own in members])
    column = np.concatenate(members)
    member = sp.csr_array((np.ones(len(owner)), (owner, column)))
    Z = sp.csr_array(sp.diags_array(1.0 / member.sum(axis=1)) @ member)
    within = member.T @ member - sp.eye_array(len(column))
    return sp.csr_array(Z.T @ (W + W.T) @ Z + within)
