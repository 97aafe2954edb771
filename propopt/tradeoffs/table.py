"""Trade-offs: optimal explanations for many weights, beside those of baselines."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.errors import InvalidInput, SolverFailure, UnsolvedWarning
from propopt.estimates import Units
from propopt.memory import require_memory
from propopt.output.csv import write_csv
from propopt.output.gaps import percent, target_in_words
from propopt.output.text import printable
from propopt.quantity import Quantity
from propopt.results.conclusions.ends import Ends
from propopt.results.conclusions.saved_ends import ends_of, plain_ends
from propopt.results.deferred import is_deferred
from propopt.results.explanation import Explanation
from propopt.results.later import WhenAsked
from propopt.tradeoffs.card import trade_offs_html
from propopt.tradeoffs.distances import distance_of, why_not_compared
from propopt.tradeoffs.loss_units import units_of_losses
from propopt.tradeoffs.saving import read_trade_offs, write_trade_offs


if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from propopt.plots.trade_offs import AxisScale


_SMALLER: Final[Mapping[str, str]] = {
    "pairwise_robustness": "squared differences between neighbours",
    "kernel_robustness": "squared differences between neighbours",
    "shared_robustness": "squared differences between neighbours",
    "max_difference_robustness": "largest differences between neighbours",
    "smoothness": "squared differences between similar features",
    "sparsity": "total size",
}
"""What is smaller by the share of a loss that is removed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeOffs:
    """Explanations and their losses: the result of a sweep.

    Parameters
    ----------
    optimized : tuple of Explanation
        One for each combination of weights and limits. The attributions of a point on
        a curve are computed when they are first read.
    baselines : tuple of Explanation
        The others, measured on the same losses.
    losses : tuple of str
        Names of the losses.
    failures : tuple of str
        What a solver said where it gave no answer.
    interrupted : bool
        True if the sweep was stopped before its end.
    ends : Ends or None
        The losses at both ends of every trade-off, from which shares follow.
    units : {"gradient", "output", "scaled"} or None
        Those of the target of gradient matching; None where they are not known.
    bounds : mapping
        By loss the limit that all optima keep; zero for what rows add up to.
    """

    optimized: tuple[Explanation, ...]
    baselines: tuple[Explanation, ...]
    losses: tuple[str, ...]
    failures: tuple[str, ...] = ()
    interrupted: bool = False
    ends: WhenAsked[Ends] = WhenAsked()
    units: Units | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """All explanations, in the order of the rows of the table."""
        return self.optimized + self.baselines

    @property
    def quantity(self) -> Quantity | None:
        """What all of them explain; None where they differ, or none tells."""
        told = {one.quantity for one in self.explanations} - {None}
        return told.pop() if len(told) == 1 else None

    @property
    def values(self) -> NDArray[np.float64]:
        """The losses, one row per explanation and one column per loss."""
        return np.array(
            [[e.losses[name] for name in self.losses] for e in self.explanations]
        ).reshape(len(self.explanations), len(self.losses))

    @property
    def on_front(self) -> NDArray[np.bool_]:
        """True where no other is at least as good in every loss and better in one.

        Baselines in other units than the target are nowhere on it, nor are such as do
        not keep what all optima keep.
        """
        alike = np.append(np.ones(len(self.optimized), dtype=bool), self.compared)
        values = np.where(alike[:, None], self.values, np.inf)
        no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
        better = (values[:, None, :] < values[None, :, :]).any(axis=2)
        beaten: NDArray[np.bool_] = np.any(no_worse & better, axis=0)
        return ~beaten & alike

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Which baselines are measured against the optima, shape (len(baselines),).

        They are in the units of the target and keep what all optima keep; of the others
        :meth:`distances` says why not.
        """
        reasons = [why_not_compared(b, self.units, self.bounds) for b in self.baselines]
        return np.array([reason is None for reason in reasons], dtype=bool)

    def certified(self, tolerance: float) -> bool:
        """True if each optimum is certified to a relative gap of ``tolerance``."""
        certificates = [e.certificate for e in self.optimized]
        return all(c is not None and c.holds(tolerance) for c in certificates)

    def prove(self, count: int = 5) -> None:
        """Certify some optima from their attributions, the first and the last included.

        Points on exact curves have losses without attributions, and a claim of their
        gap. Those that are taken here have both from attributions from now on; a
        warning says so where that contradicts the claim.
        """
        if not self.optimized:
            return
        last = len(self.optimized) - 1
        for place in sorted(
            {round(share * last) for share in np.linspace(0, 1, count)}
        ):
            try:
                _ = self.optimized[place].attributions
            except SolverFailure as failure:
                warnings.warn(
                    f"attributions for weight {place + 1} of {last + 1} were not "
                    f"found, so that its losses are not proved by them: {failure}",
                    UnsolvedWarning,
                    stacklevel=2,
                )

    def front(self) -> TradeOffs:
        """Only the explanations on the Pareto front."""
        front = self.on_front
        n_optimized = len(self.optimized)
        return replace(
            self,
            optimized=_pick(self.optimized, front[:n_optimized]),
            baselines=_pick(self.baselines, front[n_optimized:]),
        )

    def knee(self, x: str | None = None, y: str | None = None) -> Explanation:
        """The optimum at the bend of the curve of loss ``y`` against loss ``x``.

        Both losses are scaled to run from 0 to 1 over the optima; the knee has the
        smallest sum, so it lies farthest below the chord of the curve. Beyond it either
        loss costs more than the other gains, each in shares of its own range. It
        depends on the weights swept: sweep until both ends of the curve are flat.

        Parameters
        ----------
        x, y : str, optional
            Names of losses; by default the first two.

        Raises
        ------
        InvalidInput
            If there is no such loss, or nothing was optimized.
        """
        first, second, *_ = (*self.losses, *self.losses)
        columns = [self._column(x or first), self._column(y or second)]
        if not self.optimized:
            raise InvalidInput("knee: there are no optimized explanations")
        values = self.values[: len(self.optimized), columns]
        low, high = values.min(axis=0), values.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        return self.optimized[int(((values - low) / span).sum(axis=1).argmin())]

    def in_words(self, best: Explanation | None = None) -> str:
        r"""What a reader can act on: what an optimum keeps, and who comes near it.

        *As faithful* is the share of faithfulness that is kept, 1 − loss(W)/loss(W_∞):
        100 % at the target, such as the gradients, and 0 % where the other losses cost
        nothing, such as where all rows are explained alike. Differences are *smaller*
        by 1 − loss(W)/loss(target). The nearest baseline is that whose objective, for
        the weights c of this optimum, is the least above it:
        F_c(baseline)/F_c(W) − 1. See :class:`propopt.Shares`.

        Parameters
        ----------
        best : Explanation, optional
            One of the optima; by default that at the knee.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> G = np.array([[1.0], [3.0], [2.0]])
        >>> robust = po.PairwiseRobustness(po.chain_graph(3))
        >>> weights = {"pairwise_robustness": np.logspace(-3, 3, 25)}
        >>> curve = po.sweep(po.GradientMatching(G) + robust, weights, {"half": G / 2})
        >>> print(*curve.in_words().split("; "), sep="\n")
        78 % as faithful, squared differences between neighbours 73 % smaller
        nearest baseline for these weights: half, 336 % above the best possible
        """
        chosen = self.knee() if best is None else best
        words = [", ".join(self._shares_in_words(chosen))]
        excesses = [
            (self._excess_at(chosen, baseline), place)
            for place, baseline in enumerate(self.baselines)
        ]
        compared = [pair for pair in excesses if np.isfinite(pair[0])]
        if compared:
            excess, place = min(compared)
            name = self._name_among_others(self.baselines[place])
            above = f"{percent(excess)} % above the best possible"
            words.append(f"nearest baseline for these weights: {name}, {above}")
        return "; ".join(filter(None, words))

    def _shares_in_words(self, best: Explanation) -> Iterator[str]:
        """What is kept, and by how much other losses are smaller."""
        shares = {} if self.ends is None else self.ends.shares(best.losses)
        for name, share in shares.items():
            if name not in self.losses or not np.isfinite(share):
                continue
            whole = f"{100.0 * share:.0f} %"
            if self.ends is not None and name in self.ends.faithful:
                yield f"{whole} as faithful"
            else:
                yield f"{_SMALLER.get(name, name)} {whole} smaller"

    def _excess_at(self, best: Explanation, baseline: Explanation) -> float:
        """F(baseline)/F(best) − 1, F that of an optimum; NaN if not compared."""
        reason = why_not_compared(baseline, self.units, self.bounds)
        rates = {name: best.rates[name] for name in self.losses if name in best.rates}
        value, optimum = (
            sum(rate * one.losses[name] for name, rate in rates.items())
            for one in (baseline, best)
        )
        if reason is not None or not optimum > 0.0:
            return np.nan
        return max(value / optimum - 1.0, 0.0)

    def _name_among_others(self, baseline: Explanation) -> str:
        """The method, with the settings in which others of it differ."""
        family = [one for one in self.baselines if one.method == baseline.method]
        settings = [
            f" {name}={value:.4g}" if isinstance(value, float) else f" {name}={value}"
            for name, value in baseline.parameters.items()
            if len({one.parameters.get(name) for one in family}) > 1
        ]
        return baseline.method + "".join(settings)

    def _column(self, loss: str) -> int:
        if loss not in self.losses:
            raise InvalidInput(
                f"no loss is called {loss!r}; there are {', '.join(self.losses)}"
            )
        return self.losses.index(loss)

    def distances(self) -> pd.DataFrame:
        """How far each baseline lies above the front.

        ``excess`` is the least relative excess of the baseline's objective over the
        optimum, min_c (F_c(baseline) − F_c*)/F_c* over the weights c of the sweep and
        their limit at zero: even for the weights that suit it best, that much was left
        on the table. ``weight.<loss>`` are those weights, and ``distance`` is
        F_c(baseline) − F_c*, the absolute distance. Where F_c* = 0 there is no other:
        excess is then 0 for what costs nothing either, such as the target at a weight
        of zero, and else infinite.

        ``units`` are those of the baseline, or "units unknown" where the target does
        not say its own: all the rest then takes both to be the same. A baseline in
        other units than the target has no excess, and ``not_compared`` says why: put it
        in these units first, by :meth:`Explanation.to_slopes` or
        :meth:`Explanation.scaled`. Nor has one that breaks a bound which all optima
        keep, or whose rows miss what they have to add up to
        (:class:`propopt.Completeness`).
        """
        return _with_counts(pd.DataFrame(self._distances()))

    def _distances(self) -> list[dict[str, Any]]:
        return [
            distance_of(
                baseline,
                self.optimized,
                self.losses,
                self.units,
                self.bounds,
                self.ends,
            )
            for baseline in self.baselines
        ]

    def nearest(self, method: str | None = None) -> Explanation:
        """The baseline that left least on the table: the least :meth:`distances`.

        Among explanations of one method with many settings, such as those of
        :meth:`propopt.explainers.ExactLime.at_widths`, it is the setting nearest to the
        front. As optima are of the same losses, no baseline is below it.

        Parameters
        ----------
        method : str, optional
            Only baselines of this method.

        Raises
        ------
        InvalidInput
            If there is no such baseline, or none that is in the units of the target.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
        >>> others = {
        ...     "half": np.eye(3) / 2,
        ...     "none": np.zeros((3, 3)),
        ...     "two": 2 * np.eye(3),
        ... }
        >>> curve = po.sweep(objective, {"sparsity": [0.1, 1.0]}, others)
        >>> curve.nearest().method
        'half'
        """
        place = self._nearest_place(method)
        if place is None:
            raise InvalidInput(
                "nearest: no baseline"
                + ("" if method is None else f" of the method {method!r}")
                + " can be compared with the optima; distances() says why"
            )
        return self.baselines[place]

    def _nearest_place(self, method: str | None) -> int | None:
        """Where the baseline with the least excess stands; None if none is compared."""
        compared = [
            (row["excess"], place)
            for place, row in enumerate(self._distances())
            if not np.isnan(row.get("excess", np.nan))
            and method in (None, row["method"])
        ]
        return min(compared)[1] if compared else None

    def to_frame(self) -> pd.DataFrame:
        """One row per explanation, with the columns of the CSV files.

        ``method``, ``weight.<loss>``, ``parameter.<name>``, ``loss.<loss>``,
        ``objective``, ``gap`` (certified and relative), ``target_error`` (estimated, to
        the same scale; blank where it is not known), ``on_front``, ``seconds``,
        ``target`` (that error in words, with its interval), ``kept`` (the share of
        faithfulness that is kept, ``kept.<loss>`` where there are several such losses)
        and ``removed.<loss>`` (of every other loss; see :class:`propopt.Shares`).
        """
        rows = [
            self._row(explanation, bool(ahead))
            for explanation, ahead in zip(self.explanations, self.on_front, strict=True)
        ]
        return _with_counts(pd.DataFrame(rows, columns=self._columns()))

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame` to a file; floats read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write all explanations to one ``.npz`` file, with their attributions.

        Attributions of points on curves are computed for it, and kept: losses and
        certificates are from now on those of attributions. A point whose attributions
        are not found is left out, with a warning, and is one of the failures in the
        file. To keep less, save :meth:`front` or one explanation.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        Refused
            If all attributions together do not fit into memory.

        Examples
        --------
        >>> import tempfile, numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
        >>> curve = po.sweep(objective, {"sparsity": [0.1, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     curve.save(f"{folder}/curve.npz")
        ...     same = po.TradeOffs.load(f"{folder}/curve.npz")
        >>> same.to_frame().equals(curve.to_frame())
        True
        """
        _require_room(self.optimized)
        self.prove(len(self.optimized))
        proved = [best for best in self.optimized if not is_deferred(best)]
        missing = [best for best in self.optimized if is_deferred(best)]
        unread = [f"no attributions were found for {best!r}" for best in missing]
        header = {
            "losses": self.losses,
            "failures": [*self.failures, *unread],
            "interrupted": self.interrupted,
            "optimized": len(proved),
            "ends": None if self.ends is None else plain_ends(self.ends),
            "units": self.units,
            "bounds": dict(self.bounds),
        }
        write_trade_offs(path, [*proved, *self.baselines], header)

    @classmethod
    def load(cls, path: str | Path) -> TradeOffs:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no trade-offs have, such as a
            certificate that contradicts the losses beside it.
        FileNotFoundError
            If there is none.
        """
        explanations, header = read_trade_offs(path)
        count = header["optimized"]
        return cls(
            optimized=tuple(explanations[:count]),
            baselines=tuple(explanations[count:]),
            losses=tuple(header["losses"]),
            failures=tuple(header["failures"]),
            interrupted=header["interrupted"],
            ends=ends_of(header["ends"]),
            units=header["units"],
            bounds=header["bounds"],
        )

    def plot(
        self,
        x: str | None = None,
        y: str | None = None,
        ax: Axes | None = None,
        *,
        scale: AxisScale = "linear",
    ) -> Axes:
        """Draw loss ``y`` against loss ``x``: by default the first two losses.

        ``scale="log"`` makes both axes logarithmic; see :func:`plot_trade_offs`.
        """
        from propopt.plots.trade_offs import plot_trade_offs

        first, second, *_ = (*self.losses, *self.losses)
        frame = self.to_frame()
        return plot_trade_offs(
            frame,
            x or first,
            y or second,
            scale=scale,
            ends=self.ends,
            units=units_of_losses(self.optimized),
            quantity=self.quantity,
            nearest=self._nearest_of_families,
            ax=ax,
        )

    @property
    def _nearest_of_families(self) -> list[int]:
        """Rows of the table: of each method with several baselines the nearest."""
        found = []
        for method, count in Counter(b.method for b in self.baselines).items():
            place = self._nearest_place(method) if count > 1 else None
            if place is not None:
                found.append(len(self.optimized) + place)
        return found

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        told = "" if self.quantity is None else f"; {printable(self.quantity)}"
        return (
            f"<TradeOffs of {', '.join(self.losses)}: {len(self.optimized)} optimized, "
            f"{len(self.baselines)} baselines{state}{told}>"
        )

    _repr_html_ = trade_offs_html

    def _columns(self) -> list[str]:
        parameters = dict.fromkeys(
            name for e in self.baselines for name in e.parameters
        )
        return [
            "method",
            *(f"weight.{name}" for name in self.losses),
            *(f"parameter.{name}" for name in parameters),
            *(f"loss.{name}" for name in self.losses),
            "objective",
            "gap",
            "target_error",
            "on_front",
            "seconds",
            "target",
            *self.share_columns.values(),
        ]

    def _row(self, explanation: Explanation, on_front: bool) -> dict[str, Any]:
        return {
            "method": explanation.method,
            **_prefixed("weight", explanation.rates),
            **_prefixed("parameter", explanation.parameters),
            **_prefixed("loss", explanation.losses),
            "objective": explanation.objective,
            "gap": explanation.gap,
            "target_error": explanation.target_error,
            "on_front": on_front,
            "seconds": explanation.seconds,
            "target": _target(explanation),
            **self.shares(explanation),
        }

    @property
    def share_columns(self) -> dict[str, str]:
        """By loss the column of its share; empty where the ends are not known."""
        if self.ends is None:
            return {}
        faithful = [name for name in self.losses if name in self.ends.faithful]
        several = len(faithful) > 1
        others = [name for name in self.losses if name not in faithful]
        return {
            **{name: f"kept.{name}" if several else "kept" for name in faithful},
            **{name: f"removed.{name}" for name in others},
        }

    def shares(self, explanation: Explanation) -> dict[str, float]:
        """By column what the explanation keeps and removes, from its losses alone."""
        if self.ends is None:
            return {}
        shares = self.ends.shares(explanation.losses)
        return {column: shares[name] for name, column in self.share_columns.items()}


def _target(explanation: Explanation) -> str | None:
    """What is known of the error of its target, in words; None for a baseline."""
    return None if explanation.gap is None else target_in_words(explanation)


def _require_room(optimized: Sequence[Explanation]) -> None:
    """Refuse to compute more attributions than fit into memory."""
    unread = [best.shape for best in optimized if is_deferred(best)]
    require_memory(
        8.0 * sum(N * D for N, D in unread),
        f"the attributions of {len(unread)} explanations",
        "save the front() alone, or single explanations",
    )


def _with_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with parameters that stay whole numbers, or flags, beside blanks."""
    names = [column for column in frame if str(column).startswith("parameter.")]
    return frame.assign(**{str(name): frame[name].convert_dtypes() for name in names})


def _prefixed(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _pick(
    explanations: Iterable[Explanation], front: NDArray[np.bool_]
) -> tuple[Explanation, ...]:
    return tuple(e for e, keep in zip(explanations, front, strict=True) if keep)
