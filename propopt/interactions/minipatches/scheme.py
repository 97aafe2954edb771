"""iLOCO-MP: an ensemble of learners on random rows and features, fitted once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.interactions.features import Features
from propopt.interactions.minipatches.means import PatchErrors
from propopt.interactions.minipatches.patches import (
    ColumnSampling,
    Patches,
    draw_patches,
)
from propopt.interactions.refits import Refits
from propopt.tables.frames import rows_of


@final
@dataclass(frozen=True, kw_only=True)
class Minipatches:
    """Learners on random rows and features; each predicts rows that it did not see.

    Parameters
    ----------
    n_patches : int
        B.
    rows : float, int or "sqrt"
        n, rows of a patch: a share, a number, or √N, at which intervals are proved.
    n_features : float, int or None
        m, features of a patch; None for half of up to 20, and a fifth of more.
    columns : {"fixed", "bernoulli"}
        Exactly m features, as in the paper, or each with m/M, by which pairs without
        interaction have a target of exactly zero.
    """

    n_patches: int = 10_000
    rows: float | int | str = 0.2
    n_features: float | int | None = None
    columns: ColumnSampling = "fixed"

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> PatchErrors:
        """The fitted predictors: see :meth:`Scheme.fit`."""
        del n_jobs, progress
        patches = self.draw(refits.n_rows, refits.features, seed)
        return PatchErrors(
            patches=patches,
            predictions=_predictions(refits, patches),
            y=refits.y,
            error=refits.error,
            features=refits.features,
            row_weights=np.ones(refits.n_rows),
        )

    def draw(self, n_table: int, features: Features, seed: int) -> Patches:
        """The patches of a table of so many rows."""
        n_all = len(features)
        kept = self.n_features
        if kept is None:
            kept = (
                max(2, math.ceil(0.2 * n_all)) if n_all > 20 else math.ceil(n_all / 2)
            )
        elif isinstance(kept, float):
            kept = kept * n_all
        if self.rows == "sqrt":
            n_rows = math.ceil(math.sqrt(n_table))
        elif isinstance(self.rows, float):
            n_rows = max(20, math.ceil(self.rows * n_table))
        else:
            n_rows = int(self.rows)
        return draw_patches(
            self.n_patches, n_table, n_rows, n_all, kept, self.columns, seed
        )


def _predictions(refits: Refits, patches: Patches) -> Array:
    """What is known of the predictions of each patch at the rows out of it."""
    found: Array | None = None
    for b, out in enumerate(patches.out):
        places = np.flatnonzero(out)
        predict = refits.fitted(
            patches.rows[b], patches.features[b], int(patches.seeds[b])
        )
        known = refits.error.known(
            predict(rows_of(refits.table, places.tolist())), refits.y[places]
        )
        if found is None:
            found = np.zeros((len(patches), refits.n_rows, known.shape[1]))
        found[b, places] = known
    assert found is not None
    return found
