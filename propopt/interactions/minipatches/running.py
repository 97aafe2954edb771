"""All patches fitted by workers, as far as there is time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import final

from propopt._typing import Array
from propopt.interactions.learning.prediction import Predictor
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.minipatches.fitting import (
    Chunk,
    Fitted,
    chunks_of,
)
from propopt.interactions.minipatches.learners import Learners
from propopt.interactions.minipatches.store import Store
from propopt.interactions.refits import Refits
from propopt.output.progress import progress_bar
from propopt.workers import in_workers, read_workers


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
    learners : Learners or None
        Where they are kept.
    """

    patches: Patches
    predictions: Array
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
        chunks = chunks_of(len(self.patches), self.refits, store.shape[2])
        done = [own for own in chunks if store.has(own)]
        wanted = [own for own in chunks if own not in done]
        predictors: list[Predictor] = []
        with progress_bar("minipatches", len(self.patches), self.progress) as bar:
            task = bar.task_ids[0]
            bar.advance(task, sum(own.stop - own.start for own in done))
            try:
                for own, fitted in self._results(wanted, store.shape[2]):
                    store.write(own.start, fitted.known)
                    predictors += fitted.predictors
                    done.append(own)
                    bar.advance(task, own.stop - own.start)
            except KeyboardInterrupt:
                if chunks[0] not in done:
                    raise
        n_done = sum(own.stop - own.start for own in _first_of(chunks, done))
        learners = Learners(tuple(predictors), self.refits.error) if self.keep else None
        return Ensemble(self.patches.part(slice(n_done)), store.read(n_done), learners)

    def _results(
        self, chunks: Sequence[slice], outputs: int
    ) -> Iterator[tuple[slice, Fitted]]:
        if not chunks:
            return
        calls = (
            Chunk(self.refits, self.patches.part(own), own.start, outputs, self.keep)
            for own in chunks
        )
        n_workers = min(read_workers(self.n_jobs), len(chunks))
        yield from zip(chunks, in_workers(calls, n_workers), strict=True)


def _first_of(chunks: Sequence[slice], done: Sequence[slice]) -> Iterator[slice]:
    """Chunks until the first that is not done."""
    return takewhile(lambda own: own in done, chunks)
