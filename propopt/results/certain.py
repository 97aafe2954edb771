"""Signs and orders that hold in every explanation almost as good.

All explanations that are almost as good: how far a linear form of them can be off. For
every V whose objective is at most β above that of W,

    |⟨ℓ, V − W⟩| ≤ √((β + e) ⟨ℓ, H⁻¹ℓ⟩) + min(d ‖ℓ‖, √(e ⟨ℓ, H⁻¹ℓ⟩)),

where H is half the Hessian of the squared losses, e the certified excess of W over the
optimum W* and d its certified distance. For F(V) ≥ F* + ⟨V − W*, H (V − W*)⟩, whatever
convex losses F has besides. With bounds F is the Lagrangian, which is no larger than
the objective where the bounds hold. Where W v = t says what rows add up to, H⁻¹ is the
inverse on what that leaves (:mod:`propopt.results.hessian`).

How far attributions may be off because their target was estimated. Block estimates Ĝ_b
of the target, whose mean is Ḡ, move the optimum of squared losses by a H⁻¹(Ĝ_b − Ḡ).
The scatter of B such moves, over √B, is the standard error of
any linear form of W; t_{B−1}(0.975) of them cover it 95 times in 100.

The order of the features of one row: what it costs to overturn, and what is certain.
The size of w_d is above that of w_e in every V of a convex set around W just if both

    s_d v_d − s_e v_e > 0   and   s_d v_d + s_e v_e > 0

hold there, for the signs s of W: two linear forms, whose least values are known. In the
order of values there is one, v_d − v_e.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Final, Literal, Protocol, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from propopt.base.arrays import Array, Attributions, Positions, Truths
from propopt.base.cards import N_FEATURES, Card, CardTable, StatementKind
from propopt.base.checks import known_word, read_nonnegative
from propopt.base.declared import stored
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import Quantity, rounded_percent
from propopt.losses import GradientMatching, Objective, Program
from propopt.losses.maps import Identity
from propopt.losses.restricted import counted, is_complete
from propopt.results.certificate import Certificate
from propopt.results.hessian import Hessian, OfScaled, OfSums, QuadraticPart, is_squared
from propopt.results.result import Result
from propopt.results.target_error import Scatter, TargetError
from propopt.tables.frames import Labels, group_sums


class Optimum(Protocol):
    """What conclusions are drawn of: an explanation, by what it knows of itself.

    W (N, D) with standard errors where it was estimated, losses, weights and
    multipliers by name, together rates; ``target`` is what an estimated one costs.
    """

    @property
    def attributions(self) -> Attributions: ...
    @property
    def standard_errors(self) -> Array | None: ...
    @property
    def target(self) -> TargetError | None: ...
    @property
    def certificate(self) -> Certificate | None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def row_size(self) -> float | None: ...
    @property
    def scales(self) -> Array | None: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def quantity(self) -> Quantity | None: ...
    @property
    def method(self) -> str: ...
    @property
    def weights(self) -> Mapping[str, float]: ...
    @property
    def losses(self) -> Mapping[str, float]: ...
    @property
    def multipliers(self) -> Mapping[str, float]: ...
    @property
    def rates(self) -> dict[str, float]: ...
    def measured(self, losses: Objective) -> Optimum: ...
    def certified(self, objective: Objective) -> Optimum: ...


# ---- What holds in every near-optimal explanation: signs, orders, ranges


@final
@dataclass(frozen=True, eq=False)
class NearOptimal:
    """The set of all V that are at most β worse than W, for any β ≥ 0."""

    hessian: Hessian  # H⁻¹, where it is asked for
    modulus: float  # a, the weight of gradient matching: H ≥ aI
    excess: float  # e; d is infinite where it is not known
    distance: float  # d; d is infinite where it is not known

    @classmethod
    def around(cls, best: Optimum, program: Program) -> NearOptimal:
        """The set around an optimum of the program."""
        certificate = best.certificate
        if certificate is None:
            raise InvalidInput(
                f"certain: expected an optimized explanation, got {best.method!r} "
                "without certificate; certified(objective) gives one"
            )
        # all losses, those of bounds beside the others, are what the Lagrangian weighs;
        # what rows add up to stays a constraint
        kept = tuple(bound for bound in program.bounds if is_complete(bound))
        rest = tuple(bound for bound in program.bounds if bound not in kept)
        losses = (*program.losses, *(bound.loss for bound in rest))
        rates = np.array([best.rates.get(loss.name, 0.0) for loss in losses])
        if not np.isfinite(rates).all():
            raise Refused(
                "certain: a limit of zero leaves a part of all explanations alone, and "
                "what is near an optimum there is not known; use a small limit or a "
                "weight"
            )
        # the modulus is of squared losses of W itself; the excess of F, and of the
        # Lagrangian F + Σ μ (loss − limit), over what is the least
        own = (isinstance(x.map, Identity) and is_squared(x) for x in losses)
        above = math.fsum(
            best.multipliers.get(name, 0.0) * (best.losses[name] - bound.limit)
            for bound in rest
            for name in [bound.loss.name]
        )
        value = certificate.value + max(above, 0.0)
        return cls(
            QuadraticPart(Program(losses, kept, program.shape)).hessian(rates),
            math.fsum(compress(rates.tolist(), own)),
            max(value - certificate.lower_bound, 0.0),
            math.inf if certificate.distance is None else certificate.distance,
        )

    def of_sums(self, sums: Array) -> NearOptimal:
        """The set of all V Aᵀ, for sums A (K, D) of features that are in one each."""
        most = float(sums.sum(axis=1).max())  # ‖A‖²: how much longer forms can be
        return NearOptimal(
            OfSums(self.hessian, sums),
            self.modulus / most,
            self.excess,
            self.distance * math.sqrt(most),
        )

    def scaled(self, scales: Array) -> NearOptimal:
        """The set of all Φ + V S, for one number s_d (D,) for each column."""
        most = float(scales.max(initial=0.0))
        if not most:
            return self
        return NearOptimal(
            OfScaled(self.hessian, scales),
            self.modulus / most**2,
            self.excess,
            self.distance * most,
        )

    def reach(self, beta: float, variances: Array, lengths: float = 1.0) -> Array:
        """How far ⟨ℓ, V⟩ can be from ⟨ℓ, W⟩, for ⟨ℓ, H⁻¹ℓ⟩ and ‖ℓ‖."""
        widths: Array = np.sqrt((beta + self.excess) * variances)
        return widths + self._slack(variances, lengths)

    def price(self, sizes: Array, variances: Array, lengths: float = 1.0) -> Array:
        """The least β for which ⟨ℓ, V⟩ can be zero; infinite if no V changes it."""
        left = np.maximum(sizes - self._slack(variances, lengths), 0.0)
        never = np.where(left > 0.0, np.inf, 0.0)
        prices = np.divide(left**2, variances, out=never, where=variances > 0.0)
        return np.asarray(np.maximum(prices - self.excess, 0.0))

    def _slack(self, variances: Array, lengths: float) -> Array:
        """How far ⟨ℓ, W*⟩ can be from ⟨ℓ, W⟩."""
        return np.minimum(self.distance * lengths, np.sqrt(self.excess * variances))


# ---- What counts as zero among attributions, and how two rows differ


ZERO: Final = 1e-12
"""Attributions up to this share of the largest count as zero."""


def without_dust(W: Attributions) -> Attributions:
    """W with entries up to 1e-12 max|w| set to zero."""
    return np.where(np.abs(W) <= ZERO * np.abs(W).max(initial=0.0), 0.0, W)


def signs_of(W: Attributions) -> NDArray[np.int8]:
    """−1, 0 or 1 of each entry."""
    return np.sign(without_dust(W)).astype(np.int8)


def root_mean_square(W: Array) -> float:
    """√(mean of squares), without overflow."""
    unit = float(np.abs(W).max(initial=0.0)) or 1.0
    return unit * float(np.sqrt(np.mean((W / unit) ** 2)))


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ---- How far attributions may be off because their target was estimated


_LEVEL = 0.975


@final
@dataclass(frozen=True, eq=False)
class TargetScatter:
    """Half-widths of 95 % intervals, for the target's error alone."""

    words: str  # what a reader has to know of it
    # (N, D) of W alone, those of a pair add up at most; or (B, N, D): moves of W with
    # blocks of the target, whose mean is zero, which t_{B−1}(0.975)/√(B(B−1)) scales
    numbers: Array

    def of_entries(self) -> Attributions:
        """For each attribution, (N, D)."""
        if self.numbers.ndim == 2:
            return self.numbers
        squares = np.einsum("bnd,bnd->nd", self.numbers, self.numbers)
        return np.asarray(self._factor * np.sqrt(squares))

    def of_pairs(
        self, row: int, features: Positions, signs: Array
    ) -> tuple[Array, Array]:
        """Of s_d w_d − s_e w_e and of s_d w_d + s_e w_e in one row, (d, d) each."""
        own = self.numbers[..., row, features]
        if own.ndim == 1:
            both = own[:, None] + own
            return both, both
        products = (own * signs).T @ (own * signs)
        own = np.diag(products)
        sums = own[:, None] + own
        rest = np.maximum(sums - 2.0 * products, 0.0)
        both = np.maximum(sums + 2.0 * products, 0.0)
        return self._factor * np.sqrt(rest), self._factor * np.sqrt(both)

    def scaled(self, scales: Array) -> TargetScatter:
        """Those of W, where moves are those of Z and W = Φ + Z S."""
        is_of_w = self.numbers.ndim == 2
        return self if is_of_w else replace(self, numbers=self.numbers * scales)

    def of_sums(self, sums: Array) -> TargetScatter:
        """Those of W Aᵀ: moves are added up, and half-widths add up at most."""
        return replace(self, numbers=np.asarray(self.numbers @ sums.T))

    @cached_property
    def _factor(self) -> float:
        B = len(self.numbers)
        return float(stdtrit(B - 1, _LEVEL)) / math.sqrt(B * (B - 1))


def scatter_of(best: Optimum, program: Program, near: NearOptimal) -> TargetScatter:
    """What is known of the error of W that comes from its target."""
    targets = [
        loss
        for loss in program.losses
        if isinstance(loss, GradientMatching) and best.weights.get(loss.name, 0.0) > 0.0
    ]
    estimates = [target.estimate for target in targets]
    if estimates and all(e is not None and e.exact for e in estimates):
        return TargetScatter("the target is exact", np.zeros(best.shape))
    blocks = estimates[0].blocks if estimates and estimates[0] is not None else None
    # W is linear in its target: squared losses, and sums of rows at most
    is_linear = all(map(is_squared, program.losses))
    is_linear &= all(map(is_complete, program.bounds))
    if len(estimates) == 1 and blocks is not None and is_linear:
        part = Scatter(QuadraticPart(program), blocks)
        inner = near.hessian
        inner = inner.inner if isinstance(inner, OfScaled) else inner
        moves = part.moved(best.weights[targets[0].name], inner)
        words = f"errors of the target from {len(moves)} blocks are included"
        return TargetScatter(words, moves)
    errors = best.standard_errors
    if errors is None or not np.isfinite(errors).all():
        unknown = "the error of the target is not known, and not included"
        return TargetScatter(unknown, np.zeros(best.shape))
    # of the blocks of draws that they were estimated from, where that is known
    B = 0 if best.target is None else best.target.n_blocks
    factor = float(stdtrit(B - 1, _LEVEL) if B > 1 else ndtri(_LEVEL))
    words = "standard errors of the target are included"
    return TargetScatter(words, np.asarray(factor * errors))


# ---- The order of the features of one row: what it costs to overturn, and what is
# certain


OrderBy: TypeAlias = Literal["size", "value"]
"""Features by |w|, the largest first, or by w."""

_LENGTH = np.sqrt(2.0)  # of a form with two entries ±1


def compared(
    w: Array,
    row: int,
    features: Positions,
    near: NearOptimal,
    beta: float,
    scatter: TargetScatter,
    by: OrderBy,
) -> tuple[Array, NDArray[np.bool_]]:
    """Of pairs (d, d): the least rise at which d is not above e, if it surely is."""
    signs = np.ones(len(w)) if by == "value" else np.where(w < 0.0, -1.0, 1.0)
    keys = signs * w
    block = near.hessian.block_of(row, features) * np.outer(signs, signs)
    own = np.diag(block)
    sums = own[:, None] + own
    pairs = [(keys[:, None] - keys, np.maximum(sums - 2.0 * block, 0.0))]
    errors = scatter.of_pairs(row, features, signs)
    if by == "size":
        pairs.append((keys[:, None] + keys, np.maximum(sums + 2.0 * block, 0.0)))
    prices, above = np.full(block.shape, np.inf), np.ones(block.shape, dtype=bool)
    for (forms, variances), error in zip(pairs, errors, strict=False):
        ahead = np.maximum(forms, 0.0)
        prices = np.minimum(prices, near.price(ahead, variances, _LENGTH))
        above &= forms > near.reach(beta, variances, _LENGTH) + error
    return prices, above


def in_order(W: Array, by: OrderBy, present: Truths) -> NDArray[np.intp]:
    """Positions of the features of each row, the largest first, absent ones last."""
    keys = np.where(present, np.abs(W) if by == "size" else W, -np.inf)
    return np.argsort(-keys, axis=1, kind="stable")


SHARE: Final = 0.05
"""A small change of a row, as a share of the root mean square size of a row."""


def small_change(best: Optimum) -> float:
    """δ of an explanation: 5 % of the root mean square size of a row.

    By the reference rows where it has them, so that it is the same for one row alone.
    """
    size = best.row_size
    if size is None:
        W = best.attributions
        size = root_mean_square(W) * math.sqrt(W.shape[1])
    return SHARE * float(size)


_MOST_WORK = 1e10
"""Σ d_n³: products for the orders of all rows, beyond which rows have to be named."""


@final
class Certain(
    Result, kind="propopt certain", noun="saved certain statements", version=4
):
    """What every explanation says whose objective is almost as good.

    The *price* of a sign is the least rise of the objective at which that attribution
    can be zero, w²/[H⁻¹] for half the Hessian H of the squared losses; other convex
    losses can only make it higher. A sign, or an order of two features, is *certain*
    if no explanation within the budget has another, the error of the target included.
    Zero among the signs means "not certain", never "zero".

    The budget is a distance δ in the unit of the attributions. It stands for aδ², with
    a the weight of faithfulness: what moving one row by δ costs in faithfulness. Every
    explanation within the budget is at most δ from the optimum, over all rows together.
    The budget neither vanishes with the optimum nor grows with the number of rows.

    Parameters
    ----------
    attributions : array (N, D)
        W.
    signs : array of int (N, D)
        1 and −1 where the sign is certain, else 0.
    half_widths : array (N, D)
        How far an attribution can be from W within the budget, the 95 % interval of
        the target's error added.
    prices : array (N, D)
        Of the signs, in units of the objective: lower bounds.
    best_ranks, worst_ranks : array of int (N, D)
        The rank of a feature in its row, from 1, lies between these; 1 and D in rows
        whose orders were not asked for.
    order_prices : array (N, D − 1)
        The price of exchanging a feature with the next in the row's order; zero in rows
        whose orders were not asked for.
    order : {"size", "value"}
        What ranks are of: |w| or w.
    budget : float
        δ of each statement, in the unit of the attributions.
    rate : float
        a, so that β = aδ².
    optimum : float
        The objective of the explanation.
    notes : tuple of str
        What is included, and what was not computed.
    labels : Labels
        Names of points and features.
    present : array of bool (N, D), optional
        The features that each row has, such as the words of a document; all by default.
        Nothing is said of others: they are zero in every explanation, and their ranks
        come after those of all that are present.
    quantity : Quantity, optional
        What is explained.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.array([[1.0, -2.0], [1.2, 0.01]]))
    >>> best = po.solve(objective + po.PairwiseRobustness(po.graphs.chain_graph(2)))
    >>> certain = best.certain()
    >>> certain.signs
    array([[ 1, -1],
           [ 1, -1]], dtype=int8)
    >>> certain.distances.round(1)
    array([[1.4, 1.5],
           [1.4, 1. ]])
    """

    rows_are_named = True

    attributions: Attributions = stored("N D", nonempty=True)
    signs: NDArray[np.int8] = stored("N D")
    half_widths: Attributions = stored("N D", low=0.0, infinite=True)
    prices: Attributions = stored("N D", low=0.0, infinite=True)
    best_ranks: NDArray[np.int64] = stored("N D", low=1)
    worst_ranks: NDArray[np.int64] = stored("N D")
    order_prices: Array = stored("N D-1", low=0.0, infinite=True)
    order: OrderBy
    budget: float = stored(low=0.0)
    rate: float = stored(low=0.0)
    optimum: float = stored(low=0.0)
    notes: tuple[str, ...] = ()
    labels: Labels = Labels()
    present: Truths | None = stored("N D", default=None)
    quantity: Quantity | None = None

    def contradictions(self) -> None:
        """Refuse signs, ranks or names that do not follow from the other fields."""
        W, absent = self.attributions, ~self._present
        self.labels.check(self.shape, "labels")
        if (self.signs != np.sign(W) * (np.abs(W) > self.half_widths)).any():
            raise InvalidInput("signs: not those of attributions beyond half-widths")
        if not (self.best_ranks <= self.worst_ranks).all():
            raise InvalidInput("best_ranks: some are above the worst ranks")
        if (self.worst_ranks > self.shape[1]).any():
            raise InvalidInput("worst_ranks: some are above the number of features")
        for name in ("attributions", "half_widths", "prices"):
            if getattr(self, name)[absent].any():
                raise InvalidInput(f"{name}: of a feature that is not present")

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        N, D = self.attributions.shape
        return N, D

    @property
    def share(self) -> float:
        """The share of signs that are certain, of features that are present."""
        return float(np.count_nonzero(self.signs)) / max(self.count, 1)

    @property
    def count(self) -> int:
        """How many attributions something is said of."""
        return int(self._present.sum())

    @property
    def _present(self) -> Truths:
        return np.ones(self.shape, bool) if self.present is None else self.present

    @property
    def distances(self) -> Attributions:
        """Budgets at which signs can turn, in the unit of attributions: √(price/a)."""
        return np.asarray(np.sqrt(_quotient(self.prices, self.rate)))

    @property
    def in_shares(self) -> Attributions:
        """The prices of signs in shares of the optimum."""
        return _quotient(self.prices, self.optimum)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.labels.feature_names(self.shape[1])

    def to_frame(self) -> pd.DataFrame:
        """One row per feature.

        ``certain``, ``positive`` and ``negative`` are shares of the rows in which the
        sign is certain, and certainly that; ``median_distance`` of signs,
        ``median_half_width`` and ``mean_size`` of |w| are in units of the attributions;
        ``certain_first`` is the share of rows that it certainly leads. All are of the
        rows in which the feature is present, and NaN where there is none.
        """
        measures = {
            "certain": (self.signs != 0, "mean"),
            "positive": (self.signs > 0, "mean"),
            "negative": (self.signs < 0, "mean"),
            "median_distance": (self.distances, "median"),
            "median_half_width": (self.half_widths, "median"),
            "mean_size": (np.abs(self.attributions), "mean"),
            "certain_first": (self.worst_ranks == 1, "mean"),
        }
        columns = {
            name: pd.DataFrame(np.where(self._present, values, np.nan)).agg(how)
            for name, (values, how) in measures.items()
        }
        return pd.DataFrame(columns).set_axis(
            pd.Index(self.features, name="feature"), axis=0
        )

    def of_row(self, row: Hashable) -> pd.DataFrame:
        """The features of one row in their order, with all that is known of them.

        Only those that are present.

        Parameters
        ----------
        row : label or int
            The row's name in the index of the inputs; its position where they had none.

        Returns
        -------
        DataFrame
            ``attribution``, ``half_width``, ``sign``, ``distance`` of another sign and
            ``distance_of_order``, of another order with the next feature, as budgets;
            ``best_rank`` and ``worst_rank``.

        Raises
        ------
        InvalidInput
            If there is no such row.
        """
        n = self.labels.position(row, len(self.signs))
        here = self._present[[n]]
        count = int(here.sum())
        indices = in_order(self.attributions[[n]], self.order, here)[0, :count]
        prices = self.order_prices[n, : max(count - 1, 0)]
        orders = np.sqrt(_quotient(prices, self.rate))
        table = pd.DataFrame(
            {
                "attribution": self.attributions[n],
                "half_width": self.half_widths[n],
                "sign": self.signs[n],
                "distance": self.distances[n],
                "best_rank": self.best_ranks[n],
                "worst_rank": self.worst_ranks[n],
            },
            index=pd.Index(self.features, name="feature"),
        ).iloc[indices]
        return table.assign(distance_of_order=[*orders, np.nan][:count])

    def top(self, count: int = 3) -> pd.DataFrame:
        """Which feature is certainly first in each row, second, and so on.

        Empty text where that is not certain.
        """
        names = np.array(self.features, dtype=object)
        fixed = (self.best_ranks == self.worst_ranks) & self._present
        columns = {}
        for rank in range(1, min(count, self.shape[1]) + 1):
            here = fixed & (self.best_ranks == rank)
            named = np.where(here.any(axis=1), names[here.argmax(axis=1)], "")
            columns[f"rank {rank}"] = named
        return pd.DataFrame(columns, index=self.labels.points)

    def __repr__(self) -> str:
        return (
            f"Certain({self.share:.0%} of {self.count:,} signs, within "
            f"{self.budget:.3g} of the optimum; {'; '.join(self.notes)})"
        )

    def card(self) -> Card:
        """How many signs are certain, of which features, and at what price."""
        every = self.to_frame().dropna(subset="certain")  # others are in no row
        table = every.sort_values("mean_size", ascending=False, kind="stable")
        share = rounded_percent(self.share)
        shown, others = table[:N_FEATURES], table[N_FEATURES:]
        shares = shown[["certain", "positive", "negative"]].to_numpy()
        prices = zip(shown.index, shares, shown["median_distance"], strict=True)
        rest = ""
        if len(others):
            average = rounded_percent(float(others["certain"].mean()))
            words = plural(len(others), "other")
            rest = f"{words}, on average certain in {average} of rows"
        proved = (
            "proved for every explanation that is worse by at most what moving one row "
            f"by {self.budget:.3g} costs in faithfulness"
        )
        return Card(
            title=f"{share} of {plural(self.count, 'sign')} are certain"
            f"{explained(self.quantity)}, over {plural(self.shape[0], 'row')}",
            subtitle="share of rows whose sign every explanation almost as good has; "
            "budget at which another sign is possible (median)",
            table=CardTable(
                ("feature", "certain", "positive", "negative", "budget"),
                [
                    [str(name), *map(rounded_percent, own), f"{price:.3g}"]
                    for name, own, price in prices
                ],
            ),
            rest=rest,
            proof=" · ".join([proved, *self.notes]),
            rests_on={
                proved: "proved",
                **{note: note_rests_on(note) for note in self.notes},
            },
            settings={
                "size": " × ".join(map(plural, self.shape, ("row", "feature"))),
                "objective": f"{self.optimum:.6g}",
                "ranks": f"by {self.order} of the attributions",
            },
        )


def note_rests_on(note: str) -> StatementKind:
    """What a note about the target, or about what is not known, rests on."""
    if "not " in note or "no " in note:
        return "not said"
    return "estimated" if "error" in note else "checked"


def explained(quantity: Quantity | None) -> str:
    """Of what something is found, to end a headline."""
    return "" if quantity is None else f", for the {quantity}"


def certain_of(
    best: Optimum,
    program: Program,
    *,
    budget: float | None,
    rows: Sequence[Hashable] | None,
    order: OrderBy,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Certain:
    """See :meth:`propopt.results.Explanation.certain`."""
    known_word(order, OrderBy, "order")
    W, (N, D), labels = best.attributions, best.shape, best.labels
    near, scales = NearOptimal.around(best, program), best.scales
    near = near if scales is None else near.scaled(scales)
    delta = small_change(best) if budget is None else budget
    delta, rate = read_nonnegative(delta, "budget"), near.modulus
    assert best.certificate is not None, "the set around W has seen it"
    optimum = best.certificate.value
    # of a metric ω the least that moving a row by δ costs, a δ²/max ω
    beta, scatter = rate * delta**2, scatter_of(best, program, near)
    scatter = scatter if scales is None else scatter.scaled(scales)
    support = counted(program)
    present = np.ones(W.shape, bool) if support is None else support.mask
    is_little = float((present.sum(axis=1, dtype=float) ** 3).sum()) <= _MOST_WORK
    if groups is not None:
        sums, names = group_sums(groups, labels.feature_names(D))
        W, present = W @ sums.T, (present @ sums.T) > 0.0
        near, scatter = near.of_sums(sums), scatter.of_sums(sums)
        labels = Labels(labels.points, names)
    exact = None  # where it is too large to be had
    if groups is None or is_little:
        with suppress(Refused):
            exact = near.hessian.inverse_diagonal()
    if rows is not None:
        judged: Sequence[int] = [labels.position(row, N) for row in rows]
    else:
        judged = range(N) if exact is not None and is_little else []
    variances = exact
    if variances is None:  # of H⁻¹ in some rows, and else 1/a, which is no less
        variances = np.where(present, 1.0 / near.modulus, 0.0)
        for n in judged:
            here = np.flatnonzero(present[n])
            variances[n, here] = np.diag(near.hessian.block_of(n, here))
    widths = near.reach(beta, variances) + scatter.of_entries()
    widths = np.where(present, widths, 0.0)
    pairs = partial(compared, near=near, beta=beta, scatter=scatter, by=order)
    best_ranks, worst_ranks, order_prices = _orders(W, present, judged, order, pairs)
    notes = [scatter.words]
    if exact is None and len(judged) < N:
        notes.append(
            "half-widths of rows that were not named are those of a ball, which are "
            "safe; certain(rows=...) makes them as narrow as can be"
        )
    elif len(judged) < N:
        notes.append("orders are those of the rows that were named")
    return Certain(
        attributions=W,
        signs=(np.sign(W) * (np.abs(W) > widths)).astype(np.int8),
        half_widths=widths,
        prices=near.price(np.abs(W), variances),
        best_ranks=best_ranks,
        worst_ranks=worst_ranks,
        order_prices=order_prices,
        order=order,
        budget=delta,
        rate=rate,
        optimum=optimum,
        notes=tuple(notes),
        labels=labels,
        present=None if support is None else present,
        quantity=best.quantity,
    )


def _orders(
    W: Attributions,
    present: Truths,
    rows: Sequence[int],
    by: OrderBy,
    pairs: Callable[[Array, int, Positions], tuple[Array, NDArray[np.bool_]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Best and worst ranks, and prices of the orders of neighbours, in some rows."""
    N, D = W.shape
    best, worst = np.ones((N, D), np.int64), np.full((N, D), D, np.int64)
    prices = np.zeros((N, max(D - 1, 0)))
    counts = np.broadcast_to(present.sum(axis=1)[:, None], (N, D))
    best[~present] = counts[~present] + 1
    worst[present] = counts[present]
    for n in rows:
        here = np.flatnonzero(present[n])
        w, every = W[n, here], np.ones((1, len(here)), bool)
        rises, above = pairs(w, n, here)
        # after those certainly above, before those certainly below
        best[n, here] = 1 + np.count_nonzero(above, axis=0)
        worst[n, here] = len(here) - np.count_nonzero(above, axis=1)
        indices = in_order(w[None], by, every)[0]
        following = rises[indices[:-1], indices[1:]]
        prices[n, : len(following)] = following
    return best, worst, prices


def claimed(best: Optimum, objective: Objective) -> Optimum:
    """The explanation with a certificate for the objective: its own, or a new one."""
    same = best.measured(objective)  # without claims if a loss is another
    if same.weights == objective.weights and same.certificate is not None:
        return same
    return best.certified(objective)


def _quotient(prices: Array, unit: float) -> Array:
    """Prices over a unit; where the unit is zero all are infinite."""
    if unit > 0.0:
        return prices / unit
    return np.where(prices > 0.0, np.inf, 0.0)
