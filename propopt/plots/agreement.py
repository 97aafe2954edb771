"""How far neighbours agree: differences of attributions over the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.graphs.base import Graph
from propopt.output.text import drawn
from propopt.plots.axes import CYCLE, OPTIMIZED_COLOUR, framed, given_or_new
from propopt.plots.naming import common_quantity
from propopt.results.explanation import Explanation
from propopt.results.foreign import AttributionsLike, explanations_of


_N_QUANTILES = 400


def plot_agreement(
    explanations: Sequence[AttributionsLike] | Mapping[str, AttributionsLike],
    graph: Graph,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how much of the similarity joins rows that are explained alike.

    For each explanation, against t: the share of similarity Σ S_nn' between rows with
    ‖w_n − w_n'‖ ≤ t · rms_n ‖w_n‖. Higher is more robust, and shrinking all
    attributions alone moves no line.

    Parameters
    ----------
    explanations : sequence, or mapping from names
        Each gets a line: an Explanation, a ``shap.Explanation``, a DataFrame or an
        array (N, D).
    graph : Graph
        Which rows are similar, as in the robustness losses.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If the graph has no edges, or another number of nodes than an explanation rows.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> best = po.solve(1.0 * po.GradientMatching(3 * X**2))
    >>> po.plots.plot_agreement([best], po.chain_graph(9)).get_ylabel()
    'share of similar pairs'
    """
    if not len(explanations):
        raise InvalidInput("explanations: expected at least one, got none")
    axes = given_or_new(ax)
    outcomes = list(explanations_of(explanations, "explanation"))
    for place, outcome in enumerate(outcomes):
        differences, shares = _distribution(outcome, graph)
        optimized = outcome.method == "optimized"
        colour = OPTIMIZED_COLOUR if optimized else CYCLE[place % len(CYCLE)]
        axes.step(differences, shares, where="post", color=colour, label=_name(outcome))
    axes.set(
        xlabel="difference between neighbours, in rms attributions",
        ylabel="share of similar pairs",
        ylim=(0.0, 1.02),
    )
    axes.set_xlim(left=0.0)
    if known := common_quantity(outcomes):
        axes.set_title(fill(f"explanations of the {drawn(known.in_words())}", 50))
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return framed(axes)


def _distribution(outcome: Explanation, graph: Graph) -> tuple[Array, Array]:
    """Differences in rising order, and the share of similarity up to each."""
    W = outcome.attributions
    if len(W) != graph.n_nodes or not len(graph.edges):
        raise InvalidInput(
            f"graph: expected edges between the {len(W)} rows of the explanation, got "
            f"{graph!r}"
        )
    first, second = graph.edges.T
    typical = float(np.sqrt((W**2).sum() / len(W)))
    differences = np.linalg.norm(W[first] - W[second], axis=1) / (typical or 1.0)
    order = np.argsort(differences)
    shares = np.cumsum(sp.triu(graph.similarities, k=1).tocoo().data[order])
    shares /= shares[-1]
    # a line of a million steps would look the same
    kept = np.unique(np.linspace(0, len(order) - 1, _N_QUANTILES).astype(int))
    return np.append(0.0, differences[order][kept]), np.append(0.0, shares[kept])


def _name(outcome: Explanation) -> str:
    """The method, and what was varied."""
    if outcome.method != "optimized":
        scale = outcome.parameters.get("scale")
        name = outcome.method if scale is None else f"{outcome.method}, scale={scale}"
        return drawn(name)
    return drawn(outcome.method)
