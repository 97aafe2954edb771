"""What LIME is asked by a problem file: rows of a table, or documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pandas as pd

from propopt.errors import InvalidInput
from propopt.functions.text import NoWords, word_rule_of
from propopt.lime import (
    LimeExplanation,
    TextLaw,
    TextLimeExplanation,
    limits,
    text_limits,
)
from propopt.problems.file import ProblemFile
from propopt.problems.jobs.lime.section import LimeJob, LimeSection
from propopt.problems.jobs.look import SubjectLook
from propopt.problems.parts import part
from propopt.problems.subject.subject import Subject
from propopt.tables.names import listed
from propopt.tables.text import PatternWords, WordRule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeLook(SubjectLook[LimeSection]):
    """The rows of a subject that LIME is asked about.

    Parameters
    ----------
    make : callable
        Gives the subject when it is first asked for.
    section : LimeSection
        The settings.
    seed : int
        Of what has to be estimated.
    name : str
        What the files written are called.
    files : sequence of paths
        What it was read from: not to be written over.
    """

    name: str = "lime"

    @classmethod
    def of(cls, file: ProblemFile, rows: Sequence[int] | None = None) -> LimeLook:
        """The job of a problem file, for its rows or for others.

        Parameters
        ----------
        file : ProblemFile
            With ``lime``.
        rows : sequence of int, optional
            Numbers of rows of the table, instead of those of the file.

        Raises
        ------
        ProblemFileError
            If the file has another job.
        """
        file.require(LimeJob)
        section = file.schema.lime
        assert section is not None
        if rows is not None:
            section = section.model_copy(update={"rows": list(rows)})
        return cls(
            make=lambda: file.subject,
            section=section,
            seed=file.schema.seed,
            name=file.name,
            files=file.files,
        )

    def solve(
        self, progress: bool | None = None
    ) -> LimeExplanation | TextLimeExplanation:
        """What the coefficients tend to.

        By :func:`propopt.lime.limits`, of documents by
        :func:`propopt.lime.text_limits`.
        """
        with part("lime"):
            X, names = _rows(self.subject, self.section.rows)
            if self.subject.is_text:
                return self._of_texts(X, progress)
            return self._of_table(X, names, progress)

    def _of_texts(self, texts: Any, progress: bool | None) -> TextLimeExplanation:
        return text_limits(
            self.subject.function,
            texts,
            TextLaw(self.section.bandwidth),
            words=self._words(),
            n_samples=self.section.n_samples,
            rng=self.seed,
            progress=progress,
        )

    def _words(self) -> WordRule:
        """What is deleted."""
        if self.section.words == "lime":
            return PatternWords()
        rule = word_rule_of(self.subject.estimator)
        if isinstance(rule, NoWords):
            with part("words"):
                raise InvalidInput(
                    f"those of the model are not known: {rule.reason}; take lime"
                )
        return rule

    def _of_table(
        self, X: Any, names: tuple[int, ...] | None, progress: bool | None
    ) -> LimeExplanation:
        found = limits(
            self.subject.function,
            X,
            self.section.build(self.subject),
            data=self.subject.others,
            n_samples=self.section.n_samples,
            rng=self.seed,
            progress=progress,
        )
        if found.labels.points is None and names is not None:
            return replace(found, labels=replace(found.labels, points=names))
        return found


def _rows(
    subject: Subject, rows: int | Sequence[int]
) -> tuple[Any, tuple[int, ...] | None]:
    """The rows of a table, and their numbers where they have no names."""
    points, others = subject.points, subject.others
    if isinstance(rows, int):
        return points[:rows], None
    names = tuple(rows)
    if isinstance(points, pd.DataFrame | pd.Series):
        whole = points if others is points else pd.concat([points, others])
        unknown = [row for row in names if row not in whole.index]
        if unknown:
            raise InvalidInput(f"rows: the table has no row {listed(unknown)}")
        return whole.loc[list(names)], names
    table = points if others is points else np.concatenate([points, others])
    if max(names) >= len(table):
        raise InvalidInput(
            f"rows: expected numbers below {len(table)}, got {max(names)}"
        )
    return table[list(names)], names
