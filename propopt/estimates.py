"""Numbers that explanations aim at, with what is known of their error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.checks import sealed
from propopt.errors import InvalidInput
from propopt.quantity import Quantity
from propopt.tables.names import Labels


Units: TypeAlias = Literal["gradient", "output", "scaled"]
"""Slopes; parts of the output; slopes times a scale."""

_UNITS_IN_WORDS: Final[Mapping[Units, str]] = {
    "gradient": "change of {} per unit of each feature",
    "scaled": "change of {} per {} of each feature",
    "output": "contribution of each feature to {}",
}
"""What attributions are, of what is explained: slopes are not contributions."""


def units_in_words(
    units: Units, quantity: Quantity | None, scale: str = "standard deviation"
) -> str:
    """What attributions are, for a card, an axis or a file.

    Parameters
    ----------
    units : {"gradient", "output", "scaled"}
        Those of numeric features.
    quantity : Quantity or None
        What is explained, which attributions from elsewhere do not know.
    scale : str
        What slopes were multiplied by, of units ``"scaled"``.

    Examples
    --------
    >>> from propopt.quantity import Quantity
    >>> churn = Quantity(model="SVC", kind="log_odds", label=1, outcome="churn")
    >>> units_in_words("scaled", churn)
    'change of the log-odds of churn = 1 per standard deviation of each feature'
    >>> units_in_words("output", None)
    'contribution of each feature to the output'
    """
    what = "output" if quantity is None else quantity.in_words()
    return _UNITS_IN_WORDS[units].format(f"the {what}", scale)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A target (N, D): computed exactly, or estimated from draws.

    Parameters
    ----------
    values : array (N, D)
        The target.
    source : str
        How it was made, in words: ``"exact"``, ``"exact (boxes)"``, ``"central
        differences, step 6.1e-06 · max(1, |x|)"``.
    exact : bool
        Whether it has no error but rounding.
    blocks : array (B, N, D), optional
        Estimates from disjoint blocks of draws, each unbiased, whose mean is
        ``values``; without them the error of an inexact target is not known.
    n_draws : int
        Draws for each point, all blocks together.
    evaluations : int
        Rows that the model was given.
    labels : Labels
        Names of points and features.
    units : {"gradient", "output", "scaled"}
        Those of numeric features.
    effects : array of bool (N, D), optional
        Which values are in units of the output, whatever the units of others: effects
        of categories and of numbers that are missing. None if none of them are.
    notes : tuple of str
        What a reader has to know, a sentence each: columns that are constant, or
        missing everywhere.
    quantity : Quantity, optional
        What is explained; None where that is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.estimates import Estimate
    >>> blocks = np.array([[[1.0, 2.0]], [[3.0, 2.0]]])
    >>> estimate = Estimate.of_blocks(blocks, source="two blocks", n_draws=20)
    >>> estimate.values, estimate.standard_errors
    (array([[2., 2.]]), array([[1., 0.]]))
    """

    values: Attributions
    source: str
    exact: bool = False
    blocks: Array | None = None
    n_draws: int = 0
    evaluations: int = 0
    labels: Labels = Labels()
    units: Units = "gradient"
    effects: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    quantity: Quantity | None = None

    def __post_init__(self) -> None:
        sealed(self.values)
        self.labels.check(self.values.shape, "labels")
        if self.blocks is None:
            return
        if self.blocks.shape[1:] != self.values.shape or len(self.blocks) < 2:
            raise InvalidInput(
                "blocks: expected two or more of the shape of the values, "
                f"{self.values.shape}, got {self.blocks.shape}"
            )
        sealed(self.blocks)

    @classmethod
    def of_blocks(
        cls,
        blocks: Array,
        *,
        source: str,
        n_draws: int,
        evaluations: int = 0,
        labels: Labels | None = None,
        notes: Sequence[str] = (),
    ) -> Estimate:
        """The mean of B unbiased estimates (B, N, D) from disjoint blocks of draws."""
        return cls(
            values=blocks.mean(axis=0),
            source=source,
            blocks=blocks,
            n_draws=n_draws,
            evaluations=evaluations,
            labels=labels or Labels(),
            notes=tuple(notes),
        )

    @staticmethod
    def blocks_of_left_out(values: Attributions, left_out: Array) -> Array:
        """Blocks of an estimate that is no mean of blocks, such as least squares.

        Parameters
        ----------
        values : array (N, D)
            The estimate Ĝ from all draws.
        left_out : array (B, N, D)
            Ĝ_(b), those with one block of draws left out.

        Returns
        -------
        array (B, N, D)
            Ĝ − (B − 1)(Ĝ_(b) − mean): their mean is Ĝ, and what is estimated from their
            scatter is the jackknife (Tukey 1958). Blocks of which it is the mean come
            back as they are.

        Examples
        --------
        >>> import numpy as np
        >>> from propopt.estimates import Estimate
        >>> blocks = np.array([1.0, 5.0, 9.0]).reshape(3, 1, 1)
        >>> left_out = np.array([7.0, 5.0, 3.0]).reshape(3, 1, 1)
        >>> Estimate.blocks_of_left_out(np.array([[5.0]]), left_out).ravel()
        array([1., 5., 9.])
        """
        apart = left_out - left_out.mean(axis=0)
        return np.asarray(values - (len(left_out) - 1) * apart)

    @property
    def standard_errors(self) -> Array | None:
        """Of each value, (N, D): scatter of the blocks/√B; None where not known."""
        if self.exact:
            return np.zeros(self.values.shape)
        if self.blocks is None:
            return None
        errors: Array = self.blocks.std(axis=0, ddof=1) / np.sqrt(len(self.blocks))
        return errors

    def scaled(self, sizes: Array) -> Estimate:
        """Slopes times one number per feature (D,), in units ``"scaled"``.

        Effects stay as they are.

        Raises
        ------
        InvalidInput
            If the units are not ``"gradient"``.
        """
        if self.units != "gradient":
            raise InvalidInput(
                f"scaled: expected a target in units 'gradient', got {self.units!r}"
            )
        if self.effects is not None:
            sizes = np.where(self.effects, 1.0, sizes)
        return replace(
            self,
            values=self.values * sizes,
            blocks=None if self.blocks is None else self.blocks * sizes,
            units="scaled",
        )
