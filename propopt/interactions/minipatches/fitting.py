"""Fits of some patches, one after the other, in whatever process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from propopt._typing import Array
from propopt.batches import Budget
from propopt.interactions.learning.prediction import Predictor
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.refits import Refits
from propopt.tables.frames import rows_of
from propopt.threads import one_thread


CHUNKS: Final = Budget(2**25, n_rows=200)
"""Patches that one call of a worker fits at most, by the size of predictions."""

CALL_SECONDS: Final = 2.0
"""And so many as take that long: what a run that is killed loses of each worker."""


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """What comes of some patches.

    Parameters
    ----------
    known : array (b, N, R)
        Of the predictions at rows out of each; zero at rows in it.
    used : frozenset of int
        Suspects that one of the learners uses.
    seconds : float
        That it took.
    predictors : tuple of callable
        The learners, or none where they are not kept.
    """

    known: Array
    used: frozenset[int]
    seconds: float
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
    suspects : frozenset of int
        Places of features that no learner before was seen to use.
    """

    refits: Refits
    patches: Patches
    first: int
    outputs: int
    keep: bool
    suspects: frozenset[int]

    def __call__(self) -> Fitted:
        """Fit each, and predict the rows out of it."""
        shape = (len(self.patches), self.refits.n_rows, self.outputs)
        known = np.zeros(shape)
        predictors = []
        seen, suspects = False, set(self.suspects)
        start = perf_counter()
        with one_thread():
            for b in range(len(self.patches)):
                # all have the parameters that scikit-learn has looked at once
                with config_context(skip_parameter_validation=seen):
                    predictor = self._fit(b, known[b])
                seen = seen or bool(self.patches.features[b].any())
                own = suspects & set(np.flatnonzero(self.patches.features[b]).tolist())
                suspects -= self.refits.used(predictor, own)
                if self.keep:
                    predictors.append(predictor)
        used = self.suspects - suspects
        return Fitted(known, used, perf_counter() - start, tuple(predictors))

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


@dataclass
class Pace:
    """How many patches the next call fits: as many as take :data:`CALL_SECONDS`.

    It begins with one, and at most doubles, as nothing is known of the others. No
    number depends on it.

    Parameters
    ----------
    most : int
        Patches of one call.
    size : int
        Of the next.
    """

    most: int
    size: int = 1

    @classmethod
    def of(cls, refits: Refits, outputs: int, *, streams: bool) -> Pace:
        """Of predictions of that size; where results come all at once, the most."""
        most = CHUNKS.rows(8 * refits.n_rows * outputs)
        return cls(most, 1 if streams else most)

    def saw(self, n_patches: int, seconds: float) -> None:
        """Learn from a call that has come back."""
        in_time = CALL_SECONDS * n_patches / max(seconds, 1e-9)
        size = min(in_time, max(self.size, 2 * n_patches), self.most)
        self.size = max(1, int(size))

    def chunks(self, missing: NDArray[np.bool_]) -> Iterator[slice]:
        """Patches that are missing, in order, cut when they are asked for."""
        ends = np.flatnonzero(np.diff(missing, prepend=False, append=False))
        for start, stop in ends.reshape(-1, 2).tolist():
            while start < stop:
                own = slice(start, min(start + self.size, stop))
                yield own
                start = own.stop
