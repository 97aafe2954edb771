"""What LIME tends to on documents, with all that can be asked of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias, cast, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Indices, Values
from propopt.base.declared import field, transient
from propopt.base.document import Block, Markup
from propopt.base.errors import InvalidInput, Refused
from propopt.base.html import MarkedText, marked_html
from propopt.base.resources import DrawPlan
from propopt.base.text import plural
from propopt.functions.function import EXACT
from propopt.functions.texts import TextFunction
from propopt.lime.diagnosis.diagnosis import run_rules
from propopt.lime.diagnosis.evidence import MANY_WORDS, LimeFinding, TextEvidence
from propopt.lime.diagnosis.rules import TEXT_RULES
from propopt.lime.explanation import LimeExplanation, LimeResult, ends_of
from propopt.lime.finite_samples import expected_run, single_text_run
from propopt.lime.paths import BandwidthPath, word_path
from propopt.lime.text.sampled_words import SampledWords, WordMeans
from propopt.lime.text.word_limits import LimeRecord, TextLaw
from propopt.structures.subsets.sets import SetFunction
from propopt.tables.documents import TextDocument
from propopt.tables.frames import Labels


def marked(explanation: TextLimeExplanation, n: int) -> MarkedText:
    """A document with its words in shades, and what is known of it."""
    row = explanation.rows[n]
    facts = [f"f = {row.value:.4g}"]
    if row.has_coefficients:
        facts[0] += f", surrogate {row.at_row:.4g}, intercept {row.intercept:.4g}"
        facts.append(row.source)
    else:
        facts.append(f"no coefficients: {row.reason}")
    return MarkedText(
        name=f"document {explanation.row_names[n]}",
        facts=tuple(facts),
        text=row.document.text,
        spans=row.document.spans,
        words=row.words,
        weights=row.coefficients,
        errors=row.standard_errors,
    )


ROWS_SHOWN: Final = 3
"""Documents with highlighted words on a card."""


@final
@dataclass(frozen=True, eq=False)
class TextSubject:
    """A function, a law and documents; not saved with what was found about them."""

    function: TextFunction  # f
    law: TextLaw  # of the samples
    documents: tuple[TextDocument, ...]  # (N,): the texts
    draws: DrawPlan  # texts for each document whose limits are estimated
    max_enumerated: int = 0  # so many words have all their sets asked for
    # (N,): what is known of each document at any bandwidth
    means: tuple[WordMeans | None, ...] = ()

    def of_rows(self, rows: Indices) -> TextSubject:
        """The same, about some of the documents."""
        return replace(
            self,
            documents=tuple(self.documents[n] for n in rows),
            means=tuple(self.means[n] for n in rows),
        )


@final
@dataclass(frozen=True, eq=False)
class WordRuns:
    """How runs of n samples come out for each document, (d,) each."""

    n_samples: int = field(low=1)  # of a run
    # of its coefficients; NaN where they are not known
    means: tuple[Array, ...] = field(missing=True)
    deviations: tuple[Array, ...] = field(missing=True, low=0.0)

    def of_rows(self, rows: Indices) -> WordRuns:
        """The same of some documents."""
        return WordRuns(
            self.n_samples,
            tuple(self.means[n] for n in rows),
            tuple(self.deviations[n] for n in rows),
        )


@final
class TextLimeExplanation(
    LimeResult[TextSubject, list[Array]],
    kind="propopt text lime",
    noun="saved limits of LIME on texts",
    version=2,
):
    """The coefficients that LIME tends to, for each distinct word of each document.

    g(z) = β_0 + Σ_j β_j z_j, where bit z_j says whether all occurrences of a word are
    kept; β_j is in units of the output. Documents have words of their own, so that
    numbers of words are lists with an array for each document.

    Parameters
    ----------
    rows : tuple of LimeRecord (N,)
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
    quantity : Quantity or None
        What is explained, such as the probability of a class.
    scatter : WordRuns or None
        What is known of single runs, where it is not computed any more.
    subject : TextSubject or None
        The model, and what was found. They are not saved: of a loaded explanation it is
        None.
    """

    _nouns: ClassVar[tuple[str, str]] = ("document", "word")
    _compared: ClassVar[str] = "word than without it"
    _columns: ClassVar[tuple[str, ...]] = (
        *("document", "word", "count", "coefficient", "standard_error"),
        *("single_run_sd", "expected", "n_samples"),
        *("intercept", "prediction", "surrogate_at_row", "source", "reason", "units"),
    )
    _left_behind: ClassVar[str] = (
        "the model is not saved with explanations; make it anew with "
        "propopt.lime.text_limits"
    )

    rows: tuple[LimeRecord, ...] = field(by_column=True, nonempty=True)
    law: TextLaw = field()
    names: tuple[Hashable, ...] | None = field(default=None)
    scatter: WordRuns | None = field(default=None)
    subject: TextSubject | None = transient(default=None)

    def validate(self) -> None:
        """Refuse documents that contradict themselves, and names and runs of others.

        Raises
        ------
        InvalidInput
            Where what one field says is not what another does.
        """
        for n, row in enumerate(self.rows):
            try:
                row.validate()
            except InvalidInput as error:
                raise InvalidInput(f"document {n}: {error}") from None
        if self.names is not None and len(self.names) != len(self.rows):
            raise InvalidInput(f"names: expected one for each of {len(self.rows)}")
        runs, sizes = self.scatter, [row.document.n_words for row in self.rows]
        if runs is not None and (
            list(map(len, runs.means)) != sizes
            or list(map(len, runs.deviations)) != sizes
            or runs.n_samples != self.n_samples
        ):
            raise InvalidInput("scatter: it is that of other documents or runs")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents, and of words of all of them."""
        return len(self.rows), len(self.vocabulary)

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
    def source(self) -> str:
        """All of them."""
        return " and ".join(dict.fromkeys(self.sources))

    @property
    def law_in_words(self) -> str:
        """The law and its bandwidth."""
        return repr(self.law)

    @cached_property
    def runs(self) -> WordRuns:
        """How single runs of the package come out, computed when first asked."""
        if self.scatter is not None:
            return self.scatter
        runs = [self._run_at(n, self.n_samples) for n in range(len(self.rows))]
        means, deviations = zip(*runs, strict=True)
        return WordRuns(self.n_samples, means, deviations)

    def _run_at(self, n: int, n_samples: int) -> tuple[Array, Array]:
        """Means and deviations of a run at one document, (d,); NaN where not known."""
        row = self.rows[n]
        d, subject = row.document.n_words, self.subject
        if subject is None or not row.has_coefficients or d > MANY_WORDS:
            return np.full(d, np.nan), np.full(d, np.nan)
        means = subject.means[n]
        # values of sampled words are those of the draws, and are asked of them alone
        draws = means.draws if isinstance(means, SampledWords) else None
        f = cast("SetFunction", means)
        run = single_text_run(f, self.law, row.value, n_samples, draws=draws)
        return run.coefficients[0], run.standard_deviations[0]

    def path(
        self, row: Hashable | None = None, bandwidths: ArrayLike | None = None
    ) -> BandwidthPath:
        """Coefficients of a document at many bandwidths; the model is not asked again.

        Estimated ones have standard errors; where their signs change is estimated too.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of a Series, or its position where documents had no
            names; by default the first.
        bandwidths : array (M,), optional
            ν, each positive and finite; by default 50 around that of the law.

        Raises
        ------
        InvalidInput
            If there is no such document, or a bandwidth is not positive.
        Refused
            If the explanation was loaded, or LIME says nothing of the document.
        """
        n = self.position(row)
        means = self.require_subject("path").means[n]
        if means is None:
            raise Refused(f"path: {self.rows[n].reason}")
        width = self.law.bandwidth
        return word_path(means, bandwidths, width if np.isfinite(width) else 1.0)

    # ---- what documents have in a way of their own

    @property
    def _errors(self) -> list[Array]:
        return self.standard_errors

    def _deviations(self, n_samples: int) -> list[Array]:
        self.require_subject("noise")
        return [self._run_at(n, n_samples)[1] for n in range(len(self.rows))]

    def _means(self, n_samples: int) -> list[Array]:
        if n_samples == self.n_samples:
            return list(self.runs.means)
        subject = self.require_subject("expected")
        return [
            row.coefficients
            if means is None
            else expected_run(means, subject.law, row.value, n_samples).coefficients[0]
            for means, row in zip(subject.means, self.rows, strict=True)
        ]

    def _names(self, n: int) -> Sequence[str]:
        return self.rows[n].words

    def _part(self, indices: Indices) -> dict[str, Any]:
        names = self.row_names
        return {
            "rows": tuple(self.rows[n] for n in indices),
            "names": tuple(names[n] for n in indices),
        }

    def _own_columns(self, places: Indices) -> dict[str, Any]:
        rows, lines = self.rows, places.tolist()
        words = [word for row in rows for word in row.words]
        return {
            "word": pd.Series(words, dtype=object),
            "count": np.concatenate([row.document.counts for row in rows]),
            "source": [rows[n].source for n in lines],
            "reason": [rows[n].reason for n in lines],
        }

    def _told(
        self, subject: TextSubject, n_samples: int, progress: bool | None
    ) -> list[LimeFinding]:
        seen = subject.function.vectorisers
        cases = {
            n: TextEvidence.of(row, means, self.law, seen, n_samples)
            for n, (row, means) in enumerate(zip(self.rows, subject.means, strict=True))
            if means is not None
        }
        if not cases:
            raise Refused("diagnose: LIME says nothing of these documents")
        places = {word: j for j, word in enumerate(self.vocabulary)}

        def place(n: int, j: int) -> int:
            return places[self.rows[n].words[j]]

        return run_rules(TEXT_RULES, lambda r: r.in_documents(cases, place), progress)

    @property
    def _known(self) -> tuple[str, str, str]:
        """Of how many coefficients are exact, or estimated, and why; empty of none."""
        rows, N = self.rows, plural(len(self.rows), "document")
        exact = sum(row.is_exact for row in rows)
        some = [row for row in rows if row.has_coefficients and not row.is_exact]
        words = EXACT if exact == len(rows) else f"exact in {exact} of {N}"
        if not some:
            return words if exact else "", "", ""
        largest = max(float(np.max(row.errors)) for row in some)
        reasons = list(dict.fromkeys(row.reason for row in some))
        more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
        return (
            words if exact else "",
            f"of {plural(len(some), 'document')} estimated, standard errors up to "
            f"{largest:.2g}",
            f"{reasons[0]}{more}",
        )

    def position(self, row: Hashable | None = None) -> int:
        """Where a document stands; by default the first with coefficients."""
        known = [n for n, own in enumerate(self.rows) if own.has_coefficients]
        return known[0] if row is None and known else super().position(row)

    def _title(self, n: int) -> str:
        row, whom = self.rows[n], f"document {self.row_names[n]}"
        if not row.has_coefficients:
            return f"LIME says nothing of {whom}: {row.reason}"
        return self._why(n, whom, f" ({row.intercept:.4g} without its words)")

    def _ends(self, n: int) -> Array:
        # of this document alone, where the others were not asked for yet
        runs = self._known_runs
        if runs is None:
            return ends_of(*self._run_at(n, self.n_samples))
        return ends_of(runs.means[n], runs.deviations[n])

    def _blocks(self, n: int) -> list[Block]:
        others = [k for k in range(len(self.rows)) if k != n]
        shown = sorted([n, *others[: ROWS_SHOWN - 1]])
        return [Markup(marked_html([marked(self, k) for k in shown], self.units))]


AnyLime: TypeAlias = LimeExplanation | TextLimeExplanation
"""What LIME tends to, at rows of a table or at documents."""
