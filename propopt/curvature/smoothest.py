"""The attributions that other losses leave least of, among those whose rows add up.

Where rows add up over entries of their own, such as the words of documents, losses that
couple entries cannot be brought to zero. With W(ε) the optimum of ε‖W − G‖² beside
them,

    2 W(ε/2) − W(ε) = W(0) + O(ε²)

is the one nearest to G of those at which they are least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from propopt._typing import Attributions
from propopt.curvature.tangential import ConstrainedPart
from propopt.errors import Refused
from propopt.losses import GradientMatching, Program, PropertyLoss
from propopt.losses.restricted import is_complete
from propopt.losses.totals import Totals
from propopt.maps import OverEntries
from propopt.penalties import Squared


_LITTLE: Final = 1e-6
"""ε, of the largest curvature."""


def smoothest(
    program: Program, coupled: Sequence[PropertyLoss], G: Attributions
) -> Attributions | None:
    """The complete W nearest to G at which coupled losses are least; None if not known.

    Parameters
    ----------
    program : Program
        Whose bounds say what rows add up to.
    coupled : sequence of PropertyLoss
        Losses of it, squared, over single entries.
    G : array (N, D)
        The target.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> shared = po.SharedRobustness(po.chain_graph(2), np.ones((2, 2)))
    >>> total = po.Completeness([1.0, 3.0], np.ones((2, 2)))
    >>> program = po.losses.Program((shared,), (total.bound(2),))
    >>> smoothest(program, [shared], np.zeros((2, 2))).round(9)
    array([[0.5, 0.5],
           [1.5, 1.5]])
    """
    if not coupled or not all(map(_is_known, coupled)):
        return None
    most = max(_largest_curvature(loss) for loss in coupled) or 1.0
    bounds = tuple(bound for bound in program.bounds if is_complete(bound))
    own = GradientMatching(G, name="distance from the target")
    part = ConstrainedPart(Program((own, *coupled), bounds, program.shape))
    weights = np.ones(1 + len(coupled))
    found = []
    for share in (_LITTLE, _LITTLE / 2.0):
        weights[0] = share * most
        try:
            found.append(part.optimum(weights))
        except Refused:
            return None
    return np.asarray(2.0 * found[1] - found[0])


def least_among(program: Program, totals: Totals, loss: PropertyLoss) -> float | None:
    """The smallest value of a loss among complete attributions; None if not known.

    Parameters
    ----------
    program : Program
        Whose bounds say what rows add up to.
    totals : Totals
        The same.
    loss : PropertyLoss
        One of its losses.
    """
    if not _is_known(loss) or totals.is_shared:
        return totals.least(loss)
    W = smoothest(program, [loss], totals.fixed)
    return None if W is None else loss.value_at(W)


def _is_known(loss: PropertyLoss) -> bool:
    return isinstance(loss.map, OverEntries) and isinstance(loss.penalty, Squared)


def _largest_curvature(loss: PropertyLoss) -> float:
    assert isinstance(loss.map, OverEntries), "see smoothest"
    return float(loss.map.gram.diagonal().max(initial=0.0))
