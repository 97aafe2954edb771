"""What is asked about features together by a problem file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from propopt.errors import InvalidInput
from propopt.interactions import ILOCO
from propopt.interactions.features import encoded_groups
from propopt.interactions.scheme import Scheme
from propopt.output.progress import PlainConsole
from propopt.problems.file import ProblemFile
from propopt.problems.jobs.interactions.section import (
    InteractionsJob,
    InteractionsSection,
)
from propopt.problems.jobs.look import SubjectLook
from propopt.problems.jobs.printout import settings_in_words
from propopt.problems.parts import part
from propopt.problems.subject.subject import Subject


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class InteractionsLook(SubjectLook[InteractionsSection]):
    """Sets of features of a subject, of which all rows are judged.

    Parameters
    ----------
    make : callable
        Gives the subject when it is first asked for.
    section : InteractionsSection
        The settings.
    seed : int
        Of rows, patches and fits.
    name : str
        What the files written are called.
    files : sequence of paths
        What it was read from: not to be written over.
    model : str
        What the model is, in words; for the printout.
    n_jobs : int or None
        Workers that fit.
    resume : Path or None
        A folder in which fits are kept, so that a run that ended early goes on.

    Examples
    --------
    >>> import propopt as po
    >>> file = po.problems.read_sections(
    ...     {
    ...         "data": {"sklearn": "diabetes"},
    ...         "model": {"kind": "linear"},
    ...         "interactions": {"scheme": {"kind": "split"}, "sets": [["bmi", "s5"]]},
    ...     }
    ... )
    >>> found = po.problems.InteractionsLook.of(file).solve().result_
    >>> found.to_frame()[["feature_1", "feature_2"]]
      feature_1 feature_2
    0       bmi        s5
    """

    name: str = "interactions"
    model: str = ""
    n_jobs: int | None = None
    resume: Path | None = None

    @classmethod
    def of(
        cls,
        file: ProblemFile,
        n_jobs: int | None = None,
        resume: str | Path | None = None,
    ) -> InteractionsLook:
        """The job of a problem file.

        Parameters
        ----------
        file : ProblemFile
            With ``interactions``.
        n_jobs : int, optional
            Workers that fit; numbers do not depend on them.
        resume : path, optional
            A folder in which fits are kept, in one of its own by the name of the
            problem, so that a run that ended early goes on from there.

        Raises
        ------
        ProblemFileError
            If the file has another job, or fits that cannot be kept.
        """
        file.require(InteractionsJob)
        assert file.schema.interactions is not None
        own = None if resume is None else Path(resume) / file.name
        if own is not None:
            with file.source.blaming("interactions", "scheme"):
                file.schema.interactions.scheme.resumed(own)
        return cls(
            make=lambda: file.subject,
            section=file.schema.interactions,
            seed=file.schema.seed,
            name=file.name,
            files=file.files,
            model=settings_in_words(file.schema.model, frozenset({"output"})),
            n_jobs=n_jobs,
            resume=own,
        )

    def solve(self, progress: bool | None = None) -> ILOCO:
        """The fitted estimator, with scores of the sets and of each feature.

        Raises
        ------
        InvalidInput
            If the model cannot be fitted again, or a set cannot be judged.
        """
        section = self.section
        with part("model"):
            learner = self.subject.learner
        X, y = all_rows(self.subject)
        with part("interactions"):
            return ILOCO(
                learner,
                self._scheme,
                order=section.order,
                sets=section.chosen,
                error=section.error,
                groups=self._groups,
                n_jobs=self.n_jobs,
                random_state=self.seed,
                progress=progress,
            ).fit(X, y)

    @property
    def _scheme(self) -> Scheme:
        section = self.section.scheme
        return section.build() if self.resume is None else section.resumed(self.resume)

    @property
    def _groups(self) -> Mapping[Hashable, Sequence[Hashable]]:
        """Those that encode one feature each, and those of the section."""
        schema = self.subject.columns
        return self.section.all_groups({} if schema is None else encoded_groups(schema))

    def introduce(self, console: PlainConsole) -> None:
        """Sizes alone: no model is fitted to all rows, so that none has a score."""
        n_rows, n_columns = all_rows(self.subject)[0].shape
        console.print(f"{n_rows:,} rows × {n_columns} columns")


def all_rows(subject: Subject) -> tuple[Any, Any]:
    """Table (N, D) and target (N,) of a subject: what it explains, then its others.

    Raises
    ------
    InvalidInput
        If it has no target.
    """
    points, target = subject.points, subject.target
    if target is None:
        raise InvalidInput("there is no target to be fitted to; give y too")
    if subject.others is points:
        return points, target
    return _joined(points, subject.others), _joined(target, subject.others_target)


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, pd.DataFrame | pd.Series):
        return pd.concat([first, second])
    return np.concatenate([first, second])
