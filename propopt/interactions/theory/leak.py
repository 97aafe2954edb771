"""What main effects alone make of the scores of larger sets, by fixed patches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Values
from propopt.checks import known_word, read_array, read_positive
from propopt.errors import InvalidInput
from propopt.interactions.minipatches.drawing.patches import ColumnSampling
from propopt.interactions.row_errors import RowError
from propopt.interactions.theory.places import read_set_places
from propopt.interactions.theory.shares import (
    BernoulliColumns,
    FixedColumns,
    KeptShares,
)
from propopt.interactions.theory.targets import Shortfall, coefficient, shortfall


_ROUNDING = 1e-9
"""Of 1 + Mκ, which is zero for probabilities and else of the order of m/M."""


def additive_leak(
    main_effects: ArrayLike,
    n_kept: float,
    sets: ArrayLike,
    error: RowError,
    columns: ColumnSampling = "fixed",
) -> Values:
    """Scores that sets would have if no features interacted, with these main effects.

    By patches of exactly m features the target of a pair without interaction is not
    zero: without one feature the others are in more of the patches, and their effects
    are shrunk less. V_j ≥ 0 are those of an additive f* whose own LOCO by such patches
    comes nearest to the main effects; the leak is what it makes of each set. Of single
    features it is what the others make of the LOCO of one that has no effect.

    Parameters
    ----------
    main_effects : array (M,)
        LOCO of each feature, by the same patches.
    n_kept : float
        m, features of a patch.
    sets : array of int (Q, r)
        Places of features.
    error : RowError
        Err.
    columns : {"fixed", "bernoulli"}
        How features are drawn; of ``"bernoulli"`` the leak is zero.

    Returns
    -------
    array (Q,)
        Exact for ideal learners and independent features; NaN where the error is
        neither squared nor a probability, as there is no closed form.

    Raises
    ------
    InvalidInput
        If main effects are not finite, the error or sampling is none, patches of a
        fixed size have no whole number of features, or they never leave out some set.

    Examples
    --------
    >>> from propopt.interactions.row_errors import SquaredError
    >>> pairs = np.array([(0, 1), (0, 5), (5, 6)])
    >>> mains = [1.25] * 5 + [-0.2] * 5
    >>> additive_leak(mains, 2, pairs, SquaredError()).round(3)
    array([-0.287, -0.131,  0.025])
    >>> additive_leak(mains, 2, pairs, SquaredError(), columns="bernoulli")
    array([0., 0., 0.])
    """
    effects = read_array(main_effects, "main_effects", ndim=1)
    given: object = error
    if given is None or isinstance(given, str):
        raise InvalidInput(f"error: expected one such as SquaredError(), got {error!r}")
    places, phi = read_set_places(sets, len(effects)), shortfall(error)
    if phi is None:
        return np.full(len(places), np.nan)
    shares = _shares(len(effects), n_kept, columns)
    variances = _main_variances(effects, _Parts.of(shares, phi, 1))
    parts = _Parts.of(shares, phi, places.shape[1])
    inside = variances[places].sum(axis=1)
    leak = parts.other * (variances.sum() - inside)
    if places.shape[1] > 1:
        leak += parts.own * inside
    return np.asarray(leak)


class _Parts(NamedTuple):
    """What a main effect counts in the score of a set of so many features."""

    own: float
    """Of a feature of the set."""

    other: float
    """Of another."""

    @classmethod
    def of(cls, shares: KeptShares, phi: Shortfall, order: int) -> _Parts:
        return cls(
            coefficient(shares, phi, order, 1, 1), coefficient(shares, phi, order, 1, 0)
        )


def _shares(n_features: int, n_kept: float, columns: ColumnSampling) -> KeptShares:
    size = read_positive(n_kept, "n_kept")
    if known_word(columns, ColumnSampling, "columns") == "bernoulli":
        return BernoulliColumns(size / n_features)
    if size != int(size):
        raise InvalidInput(
            f"n_kept: patches of a fixed size have a whole number of features, got "
            f"{size:g}"
        )
    return FixedColumns(n_features, int(size))


def _main_variances(effects: Values, parts: _Parts) -> Values:
    """V ≥ 0 with the least Σ_j (Δ_j − a V_j − c Σ_{l ≠ j} V_l)².

    A = (a − c) I + c J gives AᵀA = (a − c)² (I + κ J), with κ ≤ 0. So the optimum is
    V_j = max(0, h_j − κ Σ V), where h = AᵀΔ/(a − c)²: the k largest h are in it, with
    Σ V = (h_1 + ... + h_k)/(1 + kκ). For probabilities 1 + Mκ = 0: V is known but for a
    constant, which no score depends on, and the least is taken.
    """
    gap, n = parts.own - parts.other, len(effects)
    kappa = (2.0 * gap + n * parts.other) * parts.other / gap**2
    h = effects / gap + parts.other * effects.sum() / gap**2
    ordered = -np.sort(-h)
    shrunk = 1.0 + kappa * np.arange(n + 1)
    most = n if shrunk[n] > _ROUNDING else n - 1
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[: most + 1] / shrunk[: most + 1]
    done = ordered[:most] - kappa * sums[:most] <= 0.0  # the next is not positive
    return np.maximum(h - kappa * sums[np.argmax(np.append(done, True))], 0.0)
