"""``propopt lime``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, final

import numpy as np
import pandas as pd
from pydantic import Field, Tag, model_validator

from propopt.base.arrays import Values
from propopt.base.errors import InvalidInput
from propopt.base.files import write_csv, write_svg
from propopt.base.terminal import PlainConsole, print_table
from propopt.base.text import Reason, printable
from propopt.functions import Function
from propopt.functions.wrapping import word_rule_of
from propopt.lime import (
    LimeExplanation,
    TextLaw,
    TextLimeExplanation,
    limits,
    text_limits,
)
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.named import law_named
from propopt.problems.baselines import NO_EFFECT, NO_WIDTH, OF_TEXTS, Bins, Samples
from propopt.problems.jobs.job import (
    MOST_SHOWN,
    Answer,
    FileOfJob,
    SubjectLook,
    Writer,
    manifest,
    write_json,
)
from propopt.problems.sections import (
    MOST_NUMBERS,
    Count,
    KernelWidths,
    Positive,
    Section,
    listed_values,
    part,
    refuse_settings,
    shaped,
)
from propopt.problems.sources import Source
from propopt.problems.subject.data import CommonKeys, Extent
from propopt.problems.subject.subject import Subject
from propopt.results.certain import plural
from propopt.tables.documents import PatternWords, WordRule
from propopt.tables.frames import listed


# ---- The job of ``lime``: on tables, and on documents


DRAWN_ROWS: Final = 3
"""The first rows; of more the letters were too small where the file opens."""


def write_lime_figure(
    result: LimeExplanation | TextLimeExplanation,
    widths: Sequence[float],
    name: str,
    path: str,
) -> None:
    """Draw the first rows: coefficients, and beside them where kernels would lead."""
    from propopt import plots

    drawings: list[Callable[..., Any]]
    if isinstance(result, TextLimeExplanation):
        drawings = [partial(plots.lime_words, result)]
        other = partial(plots.lime_word_path, result, bandwidths=widths)
        is_path, rows = True, _known_documents(result)
    else:
        drawings = [partial(plots.lime_coefficients, result)]
        other = partial(plots.lime_path, result, widths=widths)
        is_path = result.is_exact
        rows = [*(result.row_names)]
    _write(
        rows,
        [*drawings, other] if is_path and len(widths) > 1 else drawings,
        name,
        path,
    )


def _known_documents(result: TextLimeExplanation) -> list[Hashable]:
    """The names of those of which something is known."""
    named = zip(result.row_names, result.rows, strict=True)
    return [name for name, row in named if row.is_known]


def _write(
    rows: Sequence[Hashable],
    drawings: Sequence[Callable[..., Any]],
    name: str,
    path: str,
) -> None:
    """A line for each of the first rows, a column for each drawing."""
    from matplotlib.figure import Figure

    shown = rows[:DRAWN_ROWS]
    size = (5.6 * len(drawings), 0.6 + 3.6 * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(shown), len(drawings), squeeze=False)
    named: dict[str, Any] = {}
    for row, line in zip(shown, panels, strict=True):
        for draw, axes in zip(drawings, line, strict=True):
            draw(row, ax=axes)
            if (own := axes.get_legend()) is not None:
                handles, names = axes.get_legend_handles_labels()
                named = dict(zip(names, handles, strict=True)) | named
                own.remove()
    columns = max(1, min(len(named), 2 * len(drawings)))
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside lower left",
        ncols=columns,
        frameon=False,
    )
    write_svg(figure, path, salt=printable(name))


# ---- What limits of LIME print: how they were had, and the coefficients of each row


_ROWS, _COLUMNS = 5, 12
"""Shown: the first rows, and of each the columns with the largest coefficients."""


def print_lime(
    result: LimeExplanation | TextLimeExplanation, console: PlainConsole
) -> None:
    """How coefficients were had, and a table for each of the first rows."""
    N, noun = len(result.values), "more row"
    if isinstance(result, TextLimeExplanation):
        words, noun = texts_in_words(result), "more document"
    else:
        words = lime_in_words(result)
    for line in words:
        console.print(line)
    for n in range(min(N, _ROWS)):
        if isinstance(result, TextLimeExplanation):
            _print_document(result, n, console)
        else:
            _print_row(result, n, console)
    if N > _ROWS:
        console.print()
        console.print(f"{plural(N - _ROWS, noun)} in the files")


def lime_in_words(result: LimeExplanation) -> Iterator[str]:
    """The law, what is exact, and what a reader has to know."""
    yield result.law_in_words
    if result.is_exact:
        yield "coefficients: exact, for infinitely many samples"
    else:
        yield f"coefficients: {result.source}, as {result.reason}"
    row = " and the row itself as a sample" if result.first_row else ""
    yield (
        f"sd of one run: estimated from {result.runs.n_draws:,} samples a row; mean of "
        f"runs: to the first order in 1/n, with ridge {result.ridge:g}{row}"
    )
    yield from result.notes


def print_diagnosis(diagnosis: LimeDiagnosis, console: PlainConsole) -> None:
    """What coefficients hide, what misleads most first."""
    _, *lines = repr(diagnosis).splitlines()
    console.print()
    console.print("What these coefficients hide", style="italic")
    for line in lines:
        console.print(line)


def _print_row(result: LimeExplanation, n: int, console: PlainConsole) -> None:
    names = result.labels.points
    title = (
        f"Row {n if names is None else names[n]}: f {result.values[n]:.4g}, surrogate "
        f"{result.at_row[n]:.4g} with intercept {result.intercept[n]:.4g}; of "
        f"{result.n_samples:,} samples {_share(result.effective_share[n])} count"
    )
    head = ["feature", "bin", "coefficient", "sd of one run", "mean of runs"]
    print_table(console, title, head, _lines(result, n))


def _share(share: float) -> str:
    """Per cent; no 100 % or 0 % of what is neither."""
    if 0.995 <= share < 1.0:
        return "over 99 %"
    return "under 1 %" if 0.0 <= share < 0.005 else f"{100.0 * share:.0f} %"


def _lines(result: LimeExplanation, n: int) -> Iterator[list[str]]:
    own, features = result.coefficients[n], result.labels.feature_names(result.shape[1])
    numbers = own, result.noise()[n], result.expected()[n]
    return _largest(features, result.bins[n], *numbers)


def _largest(
    names: Sequence[str],
    seconds: Sequence[str],
    own: Values,
    noise: Values,
    mean: Values,
    errors: Values | None = None,
) -> Iterator[list[str]]:
    """The largest coefficients, with their noise and what runs give in the mean."""
    order = np.argsort(-np.abs(own), kind="stable").tolist()
    for j in order[:_COLUMNS]:
        numbers = [f"{x:.4g}" for x in (own[j], noise[j], mean[j])]
        error = [] if errors is None else [f"{errors[j]:.2g}"]
        yield [names[j], seconds[j], *numbers, *error]
    if len(order) > _COLUMNS:
        most = np.abs(own[order[_COLUMNS:]]).max()
        most_words = f"≤ {most:.4g}" if most > 0.0 else "0"
        rest = plural(len(order) - _COLUMNS, "other")
        yield [rest, "", most_words, "", *([""] if errors is None else ["", ""])]


def texts_in_words(result: TextLimeExplanation) -> Iterator[str]:
    """The law, what is exact, and what a reader has to know."""
    yield result.law_in_words
    kinds = list(zip(result.sources, result.reasons, strict=True))
    for source, reason in dict.fromkeys(kinds):
        some = [n for n, kind in enumerate(kinds) if kind == (source, reason)]
        names = [result.row_names[n] for n in some]
        whose = "" if len(names) == len(kinds) else f" of {listed(names)}"
        why = f", as {reason}" if reason else ", for infinitely many samples"
        if result.rows[some[0]].is_known:
            yield f"coefficients{whose}: {source}{why}"
    yield (
        f"runs: of {result.n_samples:,} samples, with ridge 1 and the document itself "
        "as a sample, as in the package"
    )
    yield from result.notes


def _print_document(result: TextLimeExplanation, n: int, console: PlainConsole) -> None:
    row, text = result.rows[n], " ".join(result.rows[n].document.text.split())
    facts = f"Document {result.row_names[n]}: f {row.value:.4g}"
    if row.is_known:
        facts += f", surrogate {row.at_row:.4g} with intercept {row.intercept:.4g}"
    title = f"{facts}\n{text[:_CHARACTERS]}{'…' if len(text) > _CHARACTERS else ''}"
    if not row.is_known:
        console.print(f"\n{title}\n{row.reason}")
        return
    head = ["word", "times", "coefficient", "sd of one run", "mean of runs"]
    if not row.is_exact:
        head.append("standard error")
    own = row.coefficients
    own = np.where(np.abs(own) > _ROUNDING * np.abs(own).max(), own, 0.0)
    numbers = own, result.noise()[n], result.expected()[n]
    errors = None if row.is_exact else row.errors
    counts = [*map(str, row.document.counts)]
    print_table(console, title, head, _largest(row.words, counts, *numbers, errors))


_CHARACTERS: Final = 400
"""Of a document, how it begins."""
_ROUNDING: Final = 1e-12
"""Of the largest coefficient: what is smaller is zero to a reader."""


# ---- The job of ``lime``: what LIME tends to at rows, and whether to trust it


RowNumber: TypeAlias = Annotated[int, Field(ge=0, le=MOST_NUMBERS)]
RowChoice: TypeAlias = Annotated[
    Annotated[Count, Tag("count")]
    | Annotated[list[RowNumber], Field(min_length=1), Tag("list")],
    shaped(
        "rows_type",
        "expected how many rows, or a list of their numbers",
        count=int,
        list=list,
    ),
]


class LimeSection(Section):
    """The limits of LIME at some rows, by :func:`propopt.lime.limits`."""

    rows: RowChoice = Field(
        5,
        description="how many of the rows to explain, from the first; or the numbers "
        "of rows of the table, from 0, whether a model was fitted on them or not",
    )
    law: Literal["tabular", "gaussian"] = Field(
        "tabular",
        description="bins weighted by bits, as in the lime package; or normal numbers "
        "weighted by distance; of the rows that are fitted on",
    )
    n_bins: Bins = Field(4, description="of each column of numbers")
    weights: Literal["frequency", "uniform"] = Field(
        "frequency", description="how often bins of the tabular law are drawn"
    )
    kernel_width: Positive | None = Field(
        None, description="of tables; by default the package's, 0.75 √D"
    )
    bandwidth: Positive = Field(
        0.25,
        description="of documents, a hundredth of the package's kernel_width, which is "
        "25 by default",
    )
    words: Literal["lime", "model"] = Field(
        "lime",
        description="of documents, what is deleted: words as the package has them, or "
        "those that the model counts",
    )
    n_samples: Annotated[Samples, Field(ge=2)] = Field(
        5000,
        description="of one run of LIME, for its noise and its mean; and draws around "
        "each row where nothing is known exactly",
    )
    path: KernelWidths | None = Field(
        None,
        description="kernel widths at which coefficients are written too; of documents "
        "bandwidths",
    )
    diagnose: bool = Field(
        True, description="look for what coefficients hide, which takes a while"
    )

    @model_validator(mode="after")
    def _weights_of_bins(self) -> Self:
        if self.law == "gaussian":
            refuse_settings(self, "law: gaussian", ("weights",))
        return self

    @property
    def widths(self) -> list[float]:
        """Those of the path."""
        return [] if self.path is None else listed_values(self.path)

    def build(self, subject: Subject) -> LimeLaw:
        """The law of the rows that a model is fitted on."""
        return law_named(
            self.law,
            subject.others,
            subject.function.schema,
            n_bins=self.n_bins,
            weights=self.weights,
            kernel_width=self.kernel_width,
        )

    def check(self, extent: Extent) -> None:
        """Refuse more rows than there are."""
        if isinstance(self.rows, int):
            if self.rows > extent.n_points:
                raise InvalidInput(
                    f"rows: expected at most the {extent.n_points} rows to explain, "
                    f"got {self.rows}"
                )
        elif max(self.rows) >= extent.n_rows:
            raise InvalidInput(
                f"rows: expected numbers below {extent.n_rows}, of rows of the table, "
                f"got {max(self.rows)}"
            )


_NOT_OF_TABLES: Final = dict.fromkeys(("bandwidth", "words"), OF_TEXTS)
_NOT_OF_TEXTS: Final = {
    **dict.fromkeys(("law", "n_bins", "weights"), NO_EFFECT),
    "kernel_width": NO_WIDTH,
}


# ---- What LIME is asked by a problem file: rows of a table, or documents


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeLook(SubjectLook[LimeSection]):
    """The rows of a subject that LIME is asked about; ``run`` writes these files.

    ==================== ==============================================================
    ``<name>_lime.csv``  a line for each row and feature: bin, coefficient, the scatter
                         of one run, the mean of runs; of documents for each word
    ``<name>_diagnosis.csv``
                         what they hide: :meth:`LimeDiagnosis.to_frame`
    ``<name>_path.csv``  coefficients at each kernel width of ``path``, if there is one;
                         of documents at each bandwidth
    ``<name>.svg``       the first rows: coefficients with the noise of one run, and
                         over kernel widths, with changes of sign, where there are some
    ``<name>.html``      of documents: their texts with words highlighted
    ``<name>.npz``       the explanation, by its ``save``
    ``<name>.json``      what was explained and how, and the score of the model
    ==================== ==============================================================
    """

    key = "lime"
    command = "propopt lime"
    suffixes = (
        "_lime.csv",
        "_diagnosis.csv",
        "_path.csv",
        ".svg",
        ".html",
        ".npz",
        ".json",
    )

    name: str = "lime"  # what the files written are called

    @classmethod
    def of(cls, file: FileOfJob, rows: Sequence[int] | None = None) -> LimeLook:
        """The job of a problem file, for its rows or for others."""
        look = cls.asked(file)
        if rows is None:
            return look
        section = look.section.model_copy(update={"rows": list(rows)})
        return replace(look, section=section)

    @classmethod
    def check(cls, section: LimeSection, schema: CommonKeys, source: Source) -> None:
        unused = _NOT_OF_TABLES if schema.data.text is None else _NOT_OF_TEXTS
        for name, message in unused.items():
            if name in section.model_fields_set:
                raise source.error(("lime", name), message)

    @classmethod
    def check_extent(
        cls, section: LimeSection, schema: CommonKeys, extent: Extent
    ) -> None:
        del schema
        with part("lime"):
            section.check(extent)

    @classmethod
    def check_formula(
        cls, section: LimeSection, function: Function, points: Any
    ) -> None:
        del section
        function.value(points)

    def solve(
        self, progress: bool | None = None
    ) -> LimeExplanation | TextLimeExplanation:
        """What the coefficients tend to.

        By :func:`propopt.lime.limits`, of documents by
        :func:`propopt.lime.text_limits`.
        """
        with part("lime"):
            X, names = _rows(self.subject, self.section.rows)
            subject, section = self.subject, self.section
            how: dict[str, Any] = {
                "n_samples": section.n_samples,
                "rng": self.seed,
                "progress": progress,
            }
            if subject.is_text:
                law = TextLaw(section.bandwidth)
                return text_limits(subject.function, X, law, words=self._words(), **how)
            law_of_rows, data = section.build(subject), subject.others
            result = limits(subject.function, X, law_of_rows, data=data, **how)
        if result.labels.points is None and names is not None:
            return replace(result, labels=replace(result.labels, points=names))
        return result

    def answer(self, progress: bool | None) -> Answer:
        """Coefficients, what they hide, and pictures of them."""
        result, widths = self.solve(progress), self.section.widths
        asked = self.section.diagnose
        diagnosis = result.diagnose(progress=progress) if asked else None
        rules = None if diagnosis is None else [f.rule for f in diagnosis.findings]
        content = manifest(
            self.key,
            self.name,
            self.subject,
            None,
            gradient=None,
            lime=_facts(result, self.section),
            findings=None if rules is None else dict(Counter(rules)),
        )
        writers: dict[str, Writer] = {"_lime.csv": result.to_csv}
        if diagnosis is not None:
            writers["_diagnosis.csv"] = diagnosis.to_csv
        if widths:
            writers["_path.csv"] = lambda path: write_csv(
                path, path_frame(result, widths), names_of_rows=False
            )
        writers[".svg"] = partial(write_lime_figure, result, widths, self.name)
        if isinstance(result, TextLimeExplanation):
            from propopt.plots import highlight

            writers[".html"] = highlight(result, max_rows=MOST_SHOWN).to_html
        writers |= {".npz": result.save, ".json": partial(write_json, content)}

        def show(console: PlainConsole) -> None:
            print_lime(result, console)
            if diagnosis is not None:
                print_diagnosis(diagnosis, console)

        return Answer(result, writers, show)

    def _words(self) -> WordRule:
        """What is deleted."""
        if self.section.words == "lime":
            return PatternWords()
        rule = word_rule_of(self.subject.estimator)
        if isinstance(rule, Reason):
            with part("words"):
                raise InvalidInput(
                    f"those of the model are not known: {rule.reason}; take lime"
                )
        return rule


def _rows(
    subject: Subject, rows: int | Sequence[int]
) -> tuple[Any, tuple[int, ...] | None]:
    """The rows of a table, and their numbers where they have no names."""
    if isinstance(rows, int):
        return subject.points[:rows], None
    names, table = tuple(rows), subject.all_points
    if isinstance(table, pd.DataFrame | pd.Series):
        unknown = [row for row in names if row not in table.index]
        if unknown:
            raise InvalidInput(f"rows: the table has no row {listed(unknown)}")
        return table.loc[list(names)], names
    if max(names) >= len(table):
        raise InvalidInput(
            f"rows: expected numbers below {len(table)}, got {max(names)}"
        )
    return table[list(names)], names


# ---- What is written of what LIME tends to: facts of a run, and coefficients by width


def _facts(
    result: LimeExplanation | TextLimeExplanation, section: LimeSection
) -> dict[str, Any]:
    """What is known of the run, in plain values."""
    has: dict[str, Any] = {}
    numbers: Any = np.ndarray.tolist
    if isinstance(result, TextLimeExplanation):
        unused, numbers = _OF_TABLES, _known
        how = {
            "sources": list(result.sources),
            "reasons": [reason or None for reason in result.reasons],
            "rows": list(result.row_names),
            "n_words": [len(words) for words in result.words],
        }
    else:
        unused = _OF_TEXTS
        how = {
            "source": result.source,
            "reason": result.reason or None,
            "rows": list(result.row_names),
        }
        has["mean_weight"] = result.mean_weight.tolist()
        has["effective_share"] = result.effective_share.tolist()
    return {
        "settings": section.model_dump(exclude_none=True, exclude=unused),
        "law": result.law_in_words,
        **how,
        "prediction": numbers(result.values),
        "intercept": numbers(result.intercept),
        "surrogate_at_row": numbers(result.at_row),
        **has,
        "n_samples": result.n_samples,
        "units": result.units,
        "notes": list(result.notes),
        "evaluations": result.evaluations,
    }


_OF_TEXTS: Final = {"bandwidth", "words"}
_OF_TABLES: Final = {"law", "n_bins", "weights", "kernel_width"}


def _known(numbers: Any) -> list[float | None]:
    """JSON has no NaN: what is not known is null."""
    return [None if math.isnan(x) else float(x) for x in numbers]


def path_frame(
    result: LimeExplanation | TextLimeExplanation, widths: Sequence[float]
) -> pd.DataFrame:
    """A line for each row, kernel width and feature; or document, bandwidth, word."""
    if isinstance(result, TextLimeExplanation):
        names = _known_documents(result)
        head = ("document", "bandwidth", "word")
        paths = ((name, result.path(name, widths)) for name in names)
        return pd.concat(
            _long(
                head,
                [name],
                path.widths,
                result.rows[result.position(name)].words,
                path,
            )
            for name, path in paths
        )
    subject, N = result.subject, len(result.values)
    assert subject is not None
    points = np.repeat(subject.points, len(widths), axis=0)
    at = subject.limits(points, np.tile(np.asarray(widths, float), N))
    rows = result.row_names
    features = result.labels.feature_names(result.shape[1])
    return _long(("row", "kernel_width", "feature"), rows, widths, features, at)


def _long(
    head: tuple[str, str, str],
    rows: Sequence[Hashable],
    widths: Any,
    features: Sequence[str],
    path: Any,
) -> pd.DataFrame:
    """Coefficients (N·M, D), row by row and then by width, a line for each."""
    N, M, D = len(rows), len(widths), len(features)
    errors = getattr(path, "standard_errors", None)
    columns: dict[str, Any] = {
        head[0]: [row for row in rows for _ in range(M * D)],
        head[1]: np.tile(np.repeat(widths, D), N),
        head[2]: list(features) * (N * M),
        "coefficient": path.coefficients.ravel(),
        "standard_error": 0.0 if errors is None else errors.ravel(),
    }
    return pd.DataFrame(columns)
