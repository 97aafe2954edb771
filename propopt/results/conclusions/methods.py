"""What an explanation can be asked beside its numbers: methods of its class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from propopt.errors import InvalidInput
from propopt.losses import Objective, Program, PropertyLoss
from propopt.results.conclusions.certain import (
    BUDGET,
    Certain,
    certain_of,
    claimed,
)
from propopt.results.conclusions.ends import Ends
from propopt.results.conclusions.orders import OrderBy
from propopt.results.conclusions.shares import Shares, shares_of, weighted
from propopt.results.conclusions.stability import TOP, ConclusionStability, stability_of
from propopt.results.conclusions.variations import Solve


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


def certain(
    best: Explanation,
    budget: float = BUDGET,
    objective: Objective | PropertyLoss | None = None,
    *,
    rows: Sequence[Hashable] | None = None,
    order: OrderBy = "size",
) -> Certain:
    """What holds in every explanation whose objective is almost as good.

    All V with F(V) ≤ F(W) + β lie within √(β [H⁻¹]_nd,nd) of an optimal w_nd, where
    H is half the Hessian of the squared losses; with further convex losses no
    farther. The price of a sign is w²/[H⁻¹]: the least rise of the objective at
    which another explanation has another sign.

    Parameters
    ----------
    budget : float
        β for each statement, in mean rows: shares of F(W)/N.
    objective : Objective, optional
        What it was optimized for; needed after loading, when it is not known.
    rows : sequence of labels or ints, optional
        Rows whose orders are wanted, by name or position. All by default, where
        their blocks of H⁻¹ can be afforded; of many points only the rows named here
        have half-widths that are as narrow as can be, by one block of conjugate
        gradients each.
    order : {"size", "value"}
        Ranks of |w|, or of w.

    Returns
    -------
    Certain
        Signs, ranks, half-widths and prices, with a table of them.

    Raises
    ------
    InvalidInput
        If no objective or no certificate is known, or there is no such row.
    Refused
        If there is no squared gradient-matching loss, or a limit is zero.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.array([[3.0, 0.01], [2.0, -0.02]]))
    >>> best = po.solve(objective + po.PairwiseRobustness(po.chain_graph(2)))
    >>> best.certain().to_frame()[["certain", "positive"]]
             certain  positive
    feature
    x0           1.0       1.0
    x1           0.0       0.0
    """
    _ = best.attributions  # losses and certificate are then theirs
    given = None if objective is None else Objective.of(objective)
    program = known_program(best, given, "certain")
    known = best if given is None else claimed(best, given)
    return certain_of(known, program, budget=budget, rows=rows, order=order)


def shares(
    explanation: Explanation, objective: Objective | PropertyLoss | None = None
) -> Shares:
    """Losses as shares kept and removed, and as differences in units of attributions.

    Parameters
    ----------
    objective : Objective, optional
        What to measure against: needed for baselines, and after loading; by default
        what the explanation was optimized for.

    Returns
    -------
    Shares
        With a table of them.

    Raises
    ------
    InvalidInput
        If no objective is known, or it is of another table.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[0.0, 1.0], [2.0, 1.0]])
    >>> objective = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(2))
    >>> mine = po.Explanation(attributions=G + 0.5, method="mine")
    >>> mine.shares(objective)
    Shares(50.0 % of faithfulness kept (gradient_matching); 0.0 % of ...
    """
    given = None if objective is None else Objective.of(objective)
    _ = explanation.attributions  # weights are then those of what was computed
    return shares_of(explanation, given, known_program(explanation, given, "shares"))


def stability(
    best: Explanation,
    k: int = TOP,
    objective: Objective | PropertyLoss | None = None,
    *,
    solve: Solve | None = None,
) -> ConclusionStability:
    """Whether signs, largest features and order survive other settings.

    The weight of each loss beside faithfulness goes from a half to two, in nine steps;
    a graph of nearest neighbours has half and twice as many, at the same weight times
    mean degree; a target that was drawn is drawn again, as far as its blocks tell.

    Parameters
    ----------
    k : int
        How many of the largest attributions of a row are compared as a set; at most one
        fewer than there are features.
    objective : Objective, optional
        What it was optimized for; needed after loading, when it is not known.
    solve : callable, optional
        Such as :func:`propopt.solve`: for losses that are not squared, and for bounds.
        Squared losses have a closed form, and need none.

    Returns
    -------
    ConclusionStability
        With a table of what varied.

    Raises
    ------
    InvalidInput
        If no objective is known, or nothing varies.
    Refused
        If there is no closed form, and no solver was given.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 12)[:, None] * [1.0, 2.0]
    >>> objective = po.GradientMatching(X**2 - 0.3) + po.PairwiseRobustness(
    ...     po.knn_graph(X, 2)
    ... )
    >>> [a.varied for a in po.solve(objective).stability().agreements]
    ['weight of pairwise_robustness', 'neighbours in pairwise_robustness']
    """
    _ = best.attributions  # weights are then those of what was computed
    given = None if objective is None else Objective.of(objective)
    program = known_program(best, given, "stability")
    known = best if given is None else replace(best, weights=given.weights)
    return stability_of(known, program, k, solve)


def loss_shares(explanation: Explanation) -> dict[str, float]:
    """By name what is kept of each faithfulness loss, and removed of every other.

    Of the losses as they are known, without attributions; see
    :class:`propopt.Shares`. Nothing after loading, where the objective is not known.
    """
    program = explanation.program
    if program is None:
        return {}
    ends = Ends.of(program, weighted(explanation, None, program))
    return ends.shares(explanation.losses)


def known_program(
    explanation: Explanation, objective: Objective | None, question: str
) -> Program:
    """What the explanation was optimized for, or what the caller gave.

    Raises
    ------
    InvalidInput
        If there is neither.
    """
    if objective is not None:
        return Program(objective.losses, (), explanation.shape)
    if explanation.program is None:
        raise InvalidInput(
            "objective: a loaded explanation has none, and a baseline was optimized "
            f"for none; give the objective, as in {question}(objective=...)"
        )
    return explanation.program
