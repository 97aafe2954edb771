"""Fits of some patches, one after the other, in whatever process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from sklearn import config_context

from propopt._typing import Array
from propopt.batches import Budget
from propopt.interactions.learning.prediction import Predictor
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.refits import Refits
from propopt.tables.frames import rows_of
from propopt.threads import one_thread


CHUNKS: Final = Budget(2**25, n_rows=200)
"""Patches that are fitted by one call of a worker, by the size of predictions."""


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """What comes of some patches.

    Parameters
    ----------
    known : array (b, N, R)
        Of the predictions at rows out of each; zero at rows in it.
    predictors : tuple of callable
        The learners, or none where they are not kept.
    """

    known: Array
    predictors: tuple[Predictor, ...] = ()


@final
@dataclass(frozen=True, eq=False)
class Chunk:
    """Some patches that are fitted together: a call that is sent to a worker.

    One thread of BLAS and OpenMP fits, whatever the number of workers, so that numbers
    do not depend on it.

    Parameters
    ----------
    refits : Refits
        Learner, table, target.
    patches : Patches
        Those that are fitted.
    first : int
        Number of the first of them.
    outputs : int
        R.
    keep : bool
        Send the learners back, too.
    """

    refits: Refits
    patches: Patches
    first: int
    outputs: int
    keep: bool

    def __call__(self) -> Fitted:
        """Fit each, and predict the rows out of it."""
        shape = (len(self.patches), self.refits.n_rows, self.outputs)
        known = np.zeros(shape)
        predictors = []
        seen = False
        with one_thread():
            for b in range(len(self.patches)):
                # all have the parameters that scikit-learn has looked at once
                with config_context(skip_parameter_validation=seen):
                    predictor = self._fit(b, known[b])
                seen = seen or bool(self.patches.features[b].any())
                if self.keep:
                    predictors.append(predictor)
        return Fitted(known, tuple(predictors))

    def _fit(self, b: int, known: Array) -> Predictor:
        refits, rows = self.refits, self.patches.rows[b]
        out = np.ones(refits.n_rows, dtype=bool)
        out[rows] = False
        places = np.flatnonzero(out)
        try:
            predict = refits.fitted(
                rows, self.patches.features[b], int(self.patches.seeds[b])
            )
            found = predict(rows_of(refits.seen, places))
        except Exception as error:
            error.add_note(
                f"while fitting patch {self.first + b}, of {len(rows)} rows and "
                f"{int(self.patches.features[b].sum())} features"
            )
            raise
        known[places] = refits.error.known(found, refits.y[places])
        return predict


def outputs_of(refits: Refits) -> int:
    """R, how many numbers are known of each prediction."""
    y = refits.y[:1]
    shape = (1,) if refits.classes is None else (1, len(refits.classes))
    return int(refits.error.known(np.zeros(shape), y).shape[1])


def chunks_of(n_patches: int, refits: Refits, outputs: int) -> Sequence[slice]:
    """Patches that are fitted together, in order; alike for any number of patches."""
    return list(CHUNKS.blocks(n_patches, 8 * refits.n_rows * outputs))
