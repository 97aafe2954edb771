"""What LIME tends to at documents, with what is known of its error."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd

from propopt._typing import Array, Values
from propopt.lime.explanation.places import place_of_row
from propopt.lime.explanation.words import in_words_of
from propopt.lime.text.diagnosis import diagnose_texts
from propopt.lime.text.explanation.path import path_of_document
from propopt.lime.text.explanation.places import (
    asked_texts,
    explanation_of_documents,
    list_of_document,
    map_of_document,
    row_of_document,
)
from propopt.lime.text.explanation.row import DocumentLimits
from propopt.lime.text.explanation.runs import (
    WordRuns,
    mean_of_words,
    noise_of_words,
    run_at_document,
    runs_of,
    samples_for_words,
)
from propopt.lime.text.explanation.saved import read_words, write_saved_words
from propopt.lime.text.explanation.shown import words_html, words_text
from propopt.lime.text.explanation.subject import TextSubject
from propopt.lime.text.explanation.table import (
    aligned_attributions,
    words_frame,
    write_words,
)
from propopt.lime.text.law import TextLaw
from propopt.output.csv import write_csv
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TextLimeExplanation:
    """The coefficients that LIME tends to, for each distinct word of each document.

    g(z) = β_0 + Σ_j β_j z_j, where bit z_j says whether all occurrences of a word are
    kept; β_j is in units of the output. Documents have words of their own, so that
    numbers of words are lists with an array for each document.

    Parameters
    ----------
    rows : tuple of DocumentLimits (N,)
        What is known of each document.
    law : TextLaw
        How words are deleted, and the weights.
    n_samples : int
        Of one run of LIME; and of documents whose limits are estimated.
    names : tuple or None
        Names of the documents, where they had some.
    evaluations : int
        Texts that the model was given.
    notes : tuple of str
        What a reader has to know, a sentence each: documents that LIME says nothing of,
        and why.
    scatter : WordRuns or None
        What is known of single runs, where it is not computed any more.
    subject : TextSubject or None
        The model, and what was found. They are not saved: of a loaded explanation it is
        None.
    """

    units: ClassVar[str] = "units of the output"

    rows: tuple[DocumentLimits, ...]
    law: TextLaw
    n_samples: int
    names: tuple[Hashable, ...] | None = None
    evaluations: int = 0
    notes: tuple[str, ...] = ()
    scatter: WordRuns | None = None
    subject: TextSubject | None = None

    @property
    def explained_in_words(self) -> str:
        """What is explained, such as "probability of positive"."""
        return in_words_of(self.subject)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents, and of words of all of them."""
        return len(self.rows), len(self.vocabulary)

    @property
    def document_names(self) -> tuple[Hashable, ...]:
        """Names of the documents; their numbers where they had none."""
        return tuple(range(len(self.rows))) if self.names is None else self.names

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The distinct words of each document, as they first come."""
        return tuple(row.words for row in self.rows)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, in the order in which they first come."""
        return tuple(dict.fromkeys(word for row in self.rows for word in row.words))

    @cached_property
    def labels(self) -> Labels:
        """Names of the documents, where they had some, and all words."""
        return Labels(self.names, self.vocabulary)

    @property
    def coefficients(self) -> list[Array]:
        """β of the words of each document, (d,); NaN where LIME says nothing."""
        return [row.coefficients for row in self.rows]

    @property
    def standard_errors(self) -> list[Array]:
        """Of the coefficients, (d,): 0 of exact ones."""
        return [row.errors for row in self.rows]

    @property
    def intercept(self) -> Values:
        """β_0, (N,)."""
        return np.array([row.intercept for row in self.rows])

    @property
    def values(self) -> Values:
        """F of the documents, (N,)."""
        return np.array([row.value for row in self.rows])

    @property
    def at_row(self) -> Values:
        """The surrogate at the documents themselves, β_0 + Σ_j β_j, (N,)."""
        return np.array([row.at_row for row in self.rows])

    @property
    def local_gap(self) -> Values:
        """F less the surrogate at the documents, (N,)."""
        return np.asarray(self.values - self.at_row)

    @property
    def sources(self) -> tuple[str, ...]:
        """``"exact"``, how coefficients were estimated, or ``"none"``, (N,)."""
        return tuple(row.source for row in self.rows)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why they are not exact, a sentence for each document, (N,)."""
        return tuple(row.reason for row in self.rows)

    @property
    def is_exact(self) -> bool:
        """Whether all coefficients have no error but rounding."""
        return all(row.is_exact for row in self.rows)

    @property
    def law_in_words(self) -> str:
        """The law and its bandwidth."""
        return repr(self.law)

    @cached_property
    def runs(self) -> WordRuns:
        """How single runs of the package come out, computed when first asked."""
        return runs_of(self, self.n_samples) if self.scatter is None else self.scatter

    def to_frame(self) -> pd.DataFrame:
        """One row for each word of each document: coefficient, error, noise, source.

        The deviation and the mean of single runs are those of the package with
        ``n_samples``; they are NaN for documents of more than 500 words.
        """
        return words_frame(self)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_frame` as a list of objects; what is not known is null."""
        write_words(path, self)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file without pickles; the model stays behind.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a name or text is none that can be written.
        """
        write_saved_words(path, self)

    @classmethod
    def load(cls, path: str | Path) -> TextLimeExplanation:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        fields: dict[str, Any] = read_words(path)
        return cls(**fields)

    single_run = run_at_document
    noise = noise_of_words
    expected = mean_of_words
    required_n = samples_for_words
    position = place_of_row
    row = row_of_document
    of_rows = explanation_of_documents
    asked = asked_texts
    as_list = list_of_document
    as_map = map_of_document
    path = path_of_document
    to_attributions = aligned_attributions
    diagnose = diagnose_texts
    __repr__ = words_text
    _repr_html_ = words_html
