"""All patches fitted by workers, as far as there is time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.interactions.learning.prediction import Predictor
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.minipatches.fitting import Chunk, Fitted, Pace
from propopt.interactions.minipatches.learners import Learners
from propopt.interactions.minipatches.store import Store
from propopt.interactions.refits import Refits
from propopt.output.progress import progress_bar
from propopt.workers import in_workers, read_workers, results_come_early


@final
@dataclass(frozen=True, eq=False)
class Ensemble:
    """What the patches that were fitted know.

    Parameters
    ----------
    patches : Patches
        B of them: the first of those that were drawn, or all.
    predictions : array (B, N, R)
        What is known of each prediction, zero at rows in the patch.
    used : frozenset of int
        Places of features that a learner uses.
    learners : Learners or None
        Where they are kept.
    """

    patches: Patches
    predictions: Array
    used: frozenset[int]
    learners: Learners | None


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """Fits of all patches.

    Parameters
    ----------
    refits : Refits
        Learner, table, target.
    patches : Patches
        B patches.
    keep : bool
        Keep the learners.
    n_jobs : int or None
        Workers.
    progress : bool or None
        Show a bar.
    """

    refits: Refits
    patches: Patches
    keep: bool
    n_jobs: int | None
    progress: bool | None

    def fitted(self, store: Store) -> Ensemble:
        """What the patches know; of those that were finished, after Ctrl-C.

        Parameters
        ----------
        store : Store
            Where predictions go; what it has already is not fitted again.

        Raises
        ------
        KeyboardInterrupt
            If the first of them were not finished.
        """
        done, used = store.finished.copy(), set(store.used)
        predictors: list[Predictor] = []
        with progress_bar("minipatches", len(self.patches), self.progress) as bar:
            task = bar.task_ids[0]
            bar.advance(task, int(done.sum()))
            try:
                for own, fitted in self._results(~done, store.shape[2]):
                    store.write(own.start, fitted.known, fitted.used)
                    predictors += fitted.predictors
                    used |= fitted.used
                    done[own] = True
                    bar.advance(task, own.stop - own.start)
            except KeyboardInterrupt:
                if not done[0]:
                    raise
        n_done = len(done) if done.all() else int(done.argmin())
        learners = Learners(tuple(predictors), self.refits.error) if self.keep else None
        patches = self.patches.part(slice(n_done))
        return Ensemble(patches, store.read(n_done), frozenset(used), learners)

    def _results(
        self, missing: NDArray[np.bool_], outputs: int
    ) -> Iterator[tuple[slice, Fitted]]:
        """What each call fits, in order; of one that is used no later call asks it."""
        n_workers = min(read_workers(self.n_jobs), int(missing.sum()))
        if not n_workers:
            return
        pace = Pace.of(self.refits, outputs, streams=results_come_early())
        used: set[int] = set()
        sent: deque[slice] = deque()

        def calls() -> Iterator[Chunk]:
            for own in pace.chunks(missing):
                sent.append(own)
                yield Chunk(
                    self.refits,
                    self.patches.part(own),
                    own.start,
                    outputs,
                    self.keep,
                    frozenset(range(len(self.refits.features))) - used,
                )

        for fitted in in_workers(calls(), n_workers):
            own = sent.popleft()
            pace.saw(own.stop - own.start, fitted.seconds)
            used |= fitted.used
            yield own, fitted
