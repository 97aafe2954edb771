"""Stable reasons: what a model of another training sample would say of the same rows.

φ are the contributions of a model, φᵇ those of B refits on bootstrap samples with other
seeds, at the same rows. Signs are such that positive numbers favour the decision.
Reference rows r, about 200 of the background, show the noise of each column:

    v_nj = Σ_b (φᵇ_nj − φ_nj)²/B,   v̄_j the mean of v over b and r
    ṽ_nj = (B v_nj + 4 v̄_j)/(B + 4)
    κ_j  = max(0, 1 − v̄_j / mean_r φ_rj²)

v of one row has few degrees of freedom, so it is moderated by that of its column. A
contribution of another model is about normal with mean κφ and variance (1 + κ)ṽ: φ is
itself a draw, so its mean is shrunk by κ, the share of the column that is not noise,
and its error counts again. With the shifts φᵇ_na − φᵇ_nb of a difference in ṽ_ab,

    a direction is stable     ⇔  κ|φ| > z √((1 + κ)ṽ)
    a stays above b           ⇔  κ_aφ_a − κ_bφ_b > z √((1 + (κ_a + κ_b)/2) ṽ_ab)
    a stays among the first k ⇔  its direction is stable, and it stays above every
                                 feature that is not among them.

z is 1.3. The first of many is the largest by chance, too: it has z = 2, and is not
called stable if the table has fewer than 500 rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Values
from propopt.base.checks import errors_of, read_count, read_option
from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Fact,
    shape_text,
    share_text,
)
from propopt.base.errors import InvalidInput
from propopt.base.terminal import tracked
from propopt.base.text import Quantity
from propopt.proofs.near_optimal import in_order
from propopt.proofs.optimum import Optimum
from propopt.results.clear import card_of_shares
from propopt.results.result import Result
from propopt.tables.frames import Labels, group_sums


Towards: TypeAlias = Literal["higher", "lower"]
"""Whether the decision follows from a higher or a lower output."""

N_REASONS: Final = 4
"""Most reasons of a row by default, as common in letters on decisions."""

_Z_LINE: Final = 1.3
_Z_FIRST: Final = 2.0
"""Standard errors; chosen by fresh retrainings, of which 95 % have to agree."""

_PRIOR: Final = 4
"""Degrees of freedom of the column's mean shift."""

_LEAST_ROWS: Final = 500
"""Rows of the table below which no first reason is called stable."""

_LEAST_MODELS: Final = 5


class Stable(Result, kind="propopt stable", noun="saved stable reasons"):
    """Reasons that models of other training samples share.

    Parameters
    ----------
    contributions : array (N, K)
        φ, for each row and feature or group.
    votes : array of int (N, K)
        How many refits have the feature among the k largest towards the decision.
    directions : array of bool (N, K)
        Where the sign is stable.
    lines : array of bool (N, K)
        Where the feature stably stays among the first k towards the decision.
    first : array of bool (N,)
        Whether the first reason of a row stably stays the first.
    signal : array (K,)
        κ, the share of the squared contributions of a feature that is not noise.
    noise : array (K,)
        √v̄, the root mean square shift of a feature between the model and its refits.
    n_models : int
        The number B of refits.
    n_rows : int
        The number of rows of ``data``.
    k : int
        The number of reasons of a row.
    towards : {"higher", "lower"}
        Whether the decision follows from a higher or a lower output.
    labels : Labels
        Names of rows and features.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(600, 3)), rng.normal(size=600)
    >>> y = X @ [3.0, 1.0, 0.0] + noise
    >>> model = LinearRegression().fit(X, y)
    >>> refits = po.null_models.bootstrap_refits(model, X, y)
    >>> stable = po.explain(model, X[:100], data=X).stable(refits, k=1)
    >>> stable.to_frame()["signal"].round(1).tolist()
    [1.0, 1.0, 0.0]
    """

    rows_are_named = True

    contributions: Attributions = field("N K", nonempty=True)
    votes: NDArray[np.int64] = field("N K", low=0)
    directions: Mask = field("N K")
    lines: Mask = field("N K")
    first: Mask = field("N")
    signal: Values = field("K", low=0.0, high=1.0)
    noise: Values = field("K", low=0.0)
    n_models: int = field(low=_LEAST_MODELS)
    n_rows: int = field(low=1)
    k: int = field(low=1)
    towards: Towards
    labels: Labels = Labels()
    quantity: Quantity | None = None

    @classmethod
    def of(
        cls,
        best: Optimum,
        models: Any,
        *,
        k: int = N_REASONS,
        towards: str = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        progress: bool | None = None,
    ) -> Stable:
        """Compare the reasons of an explanation with those of retrained models.

        See :meth:`propopt.results.Explanation.stable`.
        """
        retrained = best.retrained
        contributions = best.contributions
        if retrained is None or contributions is None:
            raise InvalidInput(
                "models: this explanation does not know how to explain another model, "
                "as it was loaded, is of documents or slopes, or was made elsewhere; "
                "expected one of po.explain(model, X, data)"
            )
        count = len(models) if isinstance(models, Sequence) else 0
        if count < _LEAST_MODELS:
            raise InvalidInput(
                f"models: expected at least {_LEAST_MODELS} retrained models, such as "
                "po.null_models.bootstrap_refits(model, X_train, y_train), got "
                f"{count or type(models).__name__}"
            )
        k = read_count(k, "k")
        direction = side_of(best, towards)
        names = best.features
        sums = np.eye(len(names))
        if groups is not None:
            sums, names = group_sums(groups, names)
        side = 1.0 if direction == "higher" else -1.0
        sums = side * sums
        of_model = [x @ sums.T for x in retrained.contributions()]
        refits = list[list[Array]]()
        for b, model in enumerate(tracked("retrained models", models, progress), 1):
            with errors_of(f"models: number {b}"):
                theirs = retrained.contributions(model)
            refits.append([x @ sums.T for x in theirs])
        phi = contributions @ sums.T
        stacked = [np.stack(x) for x in zip(*refits, strict=True)]
        rows, reference = (x - y for x, y in zip(stacked, of_model, strict=True))
        if not (rows.any() or reference.any()):
            raise InvalidInput(
                "models: all have the contributions of the model itself; expected "
                "models that are fitted to other samples, and contributions that are "
                "computed, not given"
            )
        moved = _Shifts(phi, rows, reference, (of_model[1] ** 2).mean(axis=0))
        lines, first = moved.among_first(k)
        return cls(
            contributions=side * phi,
            votes=_first_of(stacked[0], k).sum(axis=0),
            directions=moved.directions(_Z_LINE),
            lines=lines,
            first=first & (retrained.n_rows >= _LEAST_ROWS),
            signal=moved.signal,
            noise=np.sqrt(moved.noise),
            n_models=count,
            n_rows=retrained.n_rows,
            k=k,
            towards=direction,
            labels=Labels(best.labels.points, names),
            quantity=best.quantity,
        )

    def validate(self) -> None:
        """Raise an error if statements contradict each other."""
        self.labels.check(self.contributions.shape, "labels")
        if self.votes.max() > self.n_models:
            raise InvalidInput(f"votes: more than {self.n_models} models")
        if (self.lines & ~(self.directions & self.listed)).any():
            raise InvalidInput("lines: some are no reasons of a stable direction")
        if (self.first & ~self.lines.any(axis=1)).any():
            raise InvalidInput("first: some rows have no stable reason")
        if self.n_rows < _LEAST_ROWS and self.first.any():
            raise InvalidInput(f"first: expected none below {_LEAST_ROWS} rows")

    @property
    def _towards_it(self) -> Attributions:
        """The contributions, positive towards the decision."""
        phi = self.contributions
        return phi if self.towards == "higher" else -phi

    @property
    def listed(self) -> Mask:
        """A mask (N, K) of the k largest contributions towards the decision."""
        return _first_of(self._towards_it, self.k)

    @property
    def stable_reasons(self) -> float:
        """The share of reasons that are stable; NaN without any."""
        count = int(self.listed.sum())
        return float(self.lines.sum()) / count if count else np.nan

    def to_frame(self) -> pd.DataFrame:
        """A table of how often each feature is a stable reason, one row each.

        ``listed`` is the share of rows with the feature among the first k,
        ``stable_rows`` that where it stably is, ``stably_first`` that where it stably
        is the first, ``stable_signs`` that with a stable sign. ``signal`` and ``noise``
        are κ and √v̄, ``mean_size`` is the mean of |φ|.
        """
        top = _first_of(self._towards_it, 1)
        columns = {
            "mean_size": np.abs(self.contributions).mean(axis=0),
            "listed": self.listed.mean(axis=0),
            "stable_rows": self.lines.mean(axis=0),
            "stably_first": (top & self.first[:, None]).mean(axis=0),
            "stable_signs": self.directions.mean(axis=0),
            "signal": self.signal,
            "noise": self.noise,
        }
        names = self.labels.feature_names(self.contributions.shape[1])
        return pd.DataFrame(columns, index=pd.Index(names, name="feature"))

    def document(self) -> Document:
        """Summarise how often the largest features are stable reasons."""
        share = share_text(float(self.lines.any(axis=1).mean()))
        few = f"none is said below {_LEAST_ROWS} rows"
        note = "" if self.n_rows >= _LEAST_ROWS else few
        facts = [
            Fact("stable reasons", self.stable_reasons, "%", note=f"{share} of rows"),
            Fact("retrained models", self.n_models),
            Fact("stably first", float(self.first.mean()), "%", note=note),
        ]
        names = ("listed", "stable_rows", "stably_first", "signal")
        columns = {name: name.replace("_", " ") for name in names}
        decision = decision_text(self.quantity, self.towards)
        parts = (shape_text(*self.contributions.shape), decision)
        kind = "Stable reasons"
        return card_of_shares(self, self.quantity, kind, columns, facts, parts)


def side_of(best: Optimum, towards: str) -> Towards:
    """The side of the output that a decision follows from, perhaps named by a class."""
    named: Any = towards if best.quantity is None else best.quantity.side(towards)
    read_option(named, Towards, "towards")
    side: Towards = named
    return side


def decision_text(quantity: Quantity | None, towards: Towards) -> str:
    """What reasons speak for, such as "for default"."""
    if quantity is None:
        return f"for a {towards} output"
    return quantity.decision(towards)


def _first_of(phi: Array, k: int) -> Mask:
    """A mask (..., K) of the k largest positive contributions."""
    order = _order(phi.reshape(-1, phi.shape[-1]))[:, :k]
    mask = np.zeros((len(order), phi.shape[-1]), bool)
    np.put_along_axis(mask, order, True, axis=1)
    return mask.reshape(phi.shape) & (phi > 0.0)


def _order(phi: Array) -> Indices:
    """Features from the largest contribution on, as reasons are ranked, (N, K)."""
    return in_order(phi, "value", phi > 0.0)


@dataclass(frozen=True, eq=False)
class _Shifts:
    """Shifts of contributions by retraining, positive towards the decision."""

    phi: Array  # (N, K): φ
    rows: Array  # (B, N, K): φᵇ − φ
    reference: Array  # (B, R, K): the same at reference rows
    squares: Values  # (K,): the mean of φ² at reference rows

    @cached_property
    def noise(self) -> Values:
        """v̄, the mean square shift of each column, (K,)."""
        return (self.reference**2).mean(axis=(0, 1))

    @cached_property
    def signal(self) -> Values:
        """κ, the share of each column that is not noise, (K,)."""
        share = self.noise / np.maximum(self.squares, np.finfo(float).tiny)
        return np.maximum(0.0, 1.0 - share)

    @cached_property
    def _noise_apart(self) -> Array:
        """v̄ of the differences of columns, (K, K)."""
        r = self.reference
        columns = range(r.shape[2])
        return np.stack([((r[..., [a]] - r) ** 2).mean(axis=(0, 1)) for a in columns])

    def directions(self, z: float) -> Mask:
        """A mask (N, K) of stable directions."""
        noise = (1.0 + self.signal) * _moderated(self.rows, self.noise)
        return self.signal * np.abs(self.phi) > z * np.sqrt(noise)

    def above(self, column: Indices, z: float) -> Mask:
        """Where the given column of each row stays above each other one, (N, K)."""
        n = np.arange(len(column))
        kappa = self.signal
        apart = self.rows[:, n, column, None] - self.rows
        noise = _moderated(apart, self._noise_apart[column])
        noise *= 1.0 + (kappa[column, None] + kappa) / 2.0
        shrunk = kappa * self.phi
        return shrunk[n, column, None] - shrunk > z * np.sqrt(noise)

    def among_first(self, k: int) -> tuple[Mask, Mask]:
        """Where features stay among the first k (N, K); where the first stays (N,)."""
        n = np.arange(len(self.phi))
        listed = _first_of(self.phi, k)
        directions = listed & self.directions(_Z_LINE)
        order = _order(self.phi)
        lines = np.zeros(self.phi.shape, bool)
        for column in order[:, :k].T:
            above = self.above(column, _Z_LINE) | listed
            lines[n, column] = directions[n, column] & above.all(axis=1)
        top = order[:, 0]
        above = self.above(top, _Z_FIRST)
        above[n, top] = True
        is_first = (listed & self.directions(_Z_FIRST))[n, top]
        return lines, is_first & above.all(axis=1)


def _moderated(shifts: Array, of_columns: Array) -> Array:
    """ṽ (N, K) of shifts (B, N, K), given the v̄ of their columns."""
    B = len(shifts)
    return (B * (shifts**2).mean(axis=0) + _PRIOR * of_columns) / (B + _PRIOR)
