"""How predictors without some features are had: what a scheme is."""

from __future__ import annotations

from typing import Protocol

from propopt.interactions.features import Places
from propopt.interactions.left_out import LeftOut
from propopt.interactions.refits import Refits


class Scheme(Protocol):
    """:class:`DataSplit` or :class:`Minipatches`."""

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        sets: Places | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> LeftOut:
        """Predictors without sets of features, and their errors.

        Parameters
        ----------
        refits : Refits
            Learner, table, target.
        seed : int
            For all that is drawn; results do not depend on ``n_jobs``.
        sets : array of int (Q, r), optional
            The largest sets that will be asked for: those that could not be had are
            refused before anything is fitted.
        n_jobs : int or None
            Workers; another backend of joblib is respected.
        progress : bool or None
            Show a bar; None shows it on a terminal.
        """
