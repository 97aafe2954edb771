"""What LIME's coefficients of words hide: cases and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.base.errors import Refused
from propopt.base.text import Reason
from propopt.lime.diagnosis.evidence import (
    DEVIATIONS,
    Evidence,
    Gauged,
    LimeFinding,
    Rule,
    rule,
    told_by,
)
from propopt.lime.diagnosis.rules import (
    noisy_coefficient,
    sample_collapse,
    unstable_ranking,
)
from propopt.lime.single_runs import (
    SingleRun,
    expected_run,
    kept_words,
    single_text_run,
    used_words,
)
from propopt.lime.text.text_reading import (
    ExplainedDocument,
    TextLaw,
    WordCoefficients,
    announce_norms,
)
from propopt.lime.text.text_samples import SampledWords, WordMeans, limits_of
from propopt.structures.subsets.sets import SetFunction
from propopt.structures.tfidf.vectorisers import Vectoriser, document_features
from propopt.tables.documents import Document


# ---- What rules look at: limits at one document, and what is computed beside them


@final
@dataclass(frozen=True, eq=False)
class ObservedWords:
    """What a model sees of each of the d words of a document."""

    known: Truths  # (d,): whether it feeds any feature
    # (d,): how many words, itself among them, feed a feature that it feeds: the most
    alike: Positions
    beside: tuple[str, ...]  # (d,): that feature; empty where there is none
    # why features are not made of single words, a sentence for each vectoriser
    crossing: tuple[str, ...]

    @classmethod
    def of(cls, vectorisers: Sequence[Any], document: Document) -> ObservedWords:
        """What vectorisers, all that the model sees of texts, make of the words."""
        d = document.n_words
        alike, beside, crossing = np.zeros(d, np.intp), [""] * d, []
        for one in vectorisers:
            vectoriser = Vectoriser.of(one)
            if isinstance(vectoriser, Reason):
                crossing.append(vectoriser.reason)
                continue
            result = document_features(vectoriser, document)
            if isinstance(result, Reason):
                crossing.append(result.reason)
                continue
            _, place, often = np.unique(
                result.feature, return_inverse=True, return_counts=True
            )
            entries = zip(result.feature, result.word, often[place], strict=True)
            for feature, word, count in entries:
                if count > alike[word]:
                    alike[word], beside[word] = count, vectoriser.name_of(int(feature))
        known = (alike > 0) | bool(crossing)
        return cls(known, alike, tuple(beside), tuple(crossing))


PACKAGE_RIDGE: Final = 1.0
"""The package's."""

MANY_WORDS: Final = 500
"""Of documents with more tables, cards and rules compute neither runs nor paths."""

ESTIMATED: Final = "coefficients are estimated"

_ROUNDING: Final = 1e-12
"""Of f at the document."""

_GRID: Final = 2.0 ** np.linspace(-1.0, 1.0, 65)
"""Bandwidths near that of the law, over it."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TextEvidence(Evidence):
    """One document under diagnosis: N = 1 row of its d words."""

    noun: ClassVar[str] = "word"
    wider: ClassVar[str] = "a wider kernel, more samples, or the limits themselves"
    noisy: ClassVar[str] = (
        f"{{name!r}} is {{contrast:.2g}} from the median of all words, {DEVIATIONS}: a "
        "run does not tell it from words that do nothing"
    )
    least_ratio: ClassVar[float] = 1e-9  # the median is nothing from itself

    limits: ExplainedDocument  # β, with f at the document
    means: WordMeans  # what knows the limits at any bandwidth
    law: TextLaw  # how words are deleted
    # what the model sees of the words; None where that is not known
    seen: ObservedWords | None

    @classmethod
    def of(
        cls,
        limits: ExplainedDocument,
        means: WordMeans,
        law: TextLaw,
        seen: ObservedWords | None,
        n_samples: int,
    ) -> TextEvidence:
        """What is known of a document before anything is computed beside it."""
        d = limits.document.n_words
        used = np.ones(d, bool)
        if not isinstance(means, SampledWords):
            used = np.isin(np.arange(d), used_words(means))
        return cls(
            limits=limits,
            means=means,
            law=law,
            seen=seen,
            n_samples=n_samples,
            names=limits.words,
            beta=limits.coefficients[None],
            is_exact=limits.standard_errors is None,
            depends=(used if seen is None else used & seen.known)[None],
            effective_share=np.array([law.effective_share(d)]),
        )

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return len(self.names)

    @property
    def function(self) -> SetFunction | None:
        """F, where it is known for all sets of words."""
        return None if isinstance(self.means, SampledWords) else self.means

    def at(self, bandwidths: Values) -> WordCoefficients:
        """The limits at bandwidths (K,)."""
        return limits_of(self.means, bandwidths)

    @property
    def _rounding(self) -> float:
        """Of coefficients that are zero."""
        return _ROUNDING * abs(self.limits.value)

    @cached_property
    def contrast(self) -> Array:
        """How far words are from the median of all, (1, d)."""
        return np.abs(self.beta - np.median(self.beta))

    def refuse_many_words(self) -> None:
        """Runs and paths of long documents take too long."""
        if self.n_words > MANY_WORDS:
            raise Refused(f"there are more than {MANY_WORDS} words")

    @cached_property
    def run(self) -> SingleRun:
        """One run: its mean and its covariance; refused where f is not known."""
        self.refuse_many_words()
        if self.function is None:
            raise Refused(ESTIMATED)
        own = self.limits.value
        return single_text_run(
            self.function, self.law, own, self.n_samples, PACKAGE_RIDGE
        )

    @property
    def known(self) -> SetFunction | WordCoefficients:
        """f; or its limits, where it is not known."""
        if self.function is not None:
            return self.function
        return self.at(np.array([self.law.bandwidth]))

    def expected(self, kept: Truths | None = None) -> Values:
        """Coefficients in the mean of runs, where some words are fitted, (d,)."""
        own = self.limits.value
        return expected_run(
            self.known, self.law, own, self.n_samples, PACKAGE_RIDGE, kept=kept
        ).coefficients[0]

    def features_of_words(self) -> ObservedWords:
        """What the model sees, where features are made of single words."""
        if self.seen is None:
            raise Refused(_NOT_SEEN)
        if self.seen.crossing:
            raise Refused("features of the model are made of several words")
        return self.seen

    def named(self, indices: Positions, most: int = 3) -> str:
        """Some words, quoted, and how many more there are."""
        shown = ", ".join(repr(self.names[j]) for j in indices[:most].tolist())
        more = len(indices) - most
        return f"{shown} and {more} more" if more > 0 else shown


# ---- What the bandwidth decides: signs, and whether interactions are seen at all


_SMALL: Final = 0.01
"""Of the largest coefficient: signs of what is smaller near ν are no news."""


@rule("bandwidth fragility", below=1.0, weight=0.9)
def turning_word(case: TextEvidence) -> Gauged | Reason:
    """Its number is |log2(root / ν)|, of roots from half to twice ν."""
    case.refuse_many_words()
    if not np.isfinite(case.law.bandwidth):
        return Reason("there are no weights")
    if not case.is_exact:
        return Reason(ESTIMATED)
    widths = case.law.bandwidth * _GRID
    path = case.at(widths).coefficients
    distance = _to_zero(widths / case.law.bandwidth, path)
    most = np.abs(path).max(axis=0) / case.largest

    root = case.law.bandwidth * 2.0**distance
    sentence = (
        "the coefficient of {name!r}, {beta:.3g} at the bandwidth "
        f"{case.law.bandwidth:.3g}, is zero at {{root:.3g}} (kernel width "
        "{width:.3g}) and changes its sign there"
    )
    told = {"name": case.words, "beta": case.beta, "root": root, "width": 100.0 * root}
    remedy = "see the path of coefficients over bandwidths; read no sign here"
    small = {"it is small all along": most < _SMALL}
    return Gauged(np.abs(distance), most, sentence, remedy, told, excuses=small)


def _to_zero(ratios: Values, path: Values) -> Values:
    """Log2 of the nearest ratio where each coefficient is zero, (d,); else NaN."""
    logs = np.log2(ratios)[:, None]
    before, after = path[:-1], path[1:]
    turned = np.sign(before) * np.sign(after) < 0.0
    step = np.divide(before, before - after, out=np.zeros(before.shape), where=turned)
    roots = np.where(turned, logs[:-1] + step * np.diff(logs, axis=0), np.nan)
    nearest = np.argmin(np.where(turned, np.abs(roots), np.inf), axis=0)
    return np.asarray(roots[nearest, np.arange(path.shape[1])])


@rule("leaving one out", above=0.8, weight=0.9, per="all")
def leaving_one_out(case: TextEvidence) -> Gauged | Reason:
    """Its number is the share of the weight of texts that lose one word."""
    if case.n_words == 2:
        return Reason("of two words the coefficients are the same at all bandwidths")
    shares = case.law.shares(case.n_words)
    share = shares[-2] / shares.sum()

    ends = np.zeros(1)
    if share > leaving_one_out.threshold:
        ends = case.at(np.array([1e-100])).coefficients[0]
    sentence = (
        f"texts that lose one word have {100.0 * share:.0f} % of the weight: "
        "coefficients say what is lost with one word, and words that do nothing alone "
        "are not told from those that do (as ν → 0 they are from "
        f"{ends.min():.3g} to {ends.max():.3g}, with a constant that is added to all "
        "of them)"
    )
    remedy = "a wider kernel, to see what words do together"
    return Gauged(share, 1.0, sentence, remedy)


# ---- The surrogate is not f: at the document, or because f is not seen there


@rule("low fidelity: local gap", above=0.5, weight=0.7, per="row")
def sum_gap(case: TextEvidence) -> Gauged:
    """Its number is |f − Σ β| at the document over the largest |β|."""
    own = case.limits
    number = abs(own.value - own.at_row) / case.largest
    sentence = (
        f"f is {own.value:.4g} at the document and the sum of all coefficients "
        f"{own.at_row:.4g}: they do not add up to it"
    )
    remedy = "Shapley values add up to it; or look at what words do together"
    return Gauged(number, number, sentence, remedy)


@rule("blind spot", above=5.0, weight=0.8, per="row")
def blind_spot(case: TextEvidence) -> Gauged | Reason:
    """Its number is |f − E_(d−1) f| over |E_(d−1) f − E_(d−2) f|: 1 for sums."""
    if case.function is None:
        return Reason(ESTIMATED)
    means = case.function.mean_by_size()
    last, before = abs(means[-1] - means[-2]), abs(means[-2] - means[-3])
    span = float(np.ptp(means))
    ratio = last / before if before > 0.0 else (np.inf if last > 0.0 else 0.0)
    sentence = (
        f"f is {means[-1]:.4g} at the document, {means[-2]:.4g} in the mean of "
        f"texts without one word and {means[-3]:.4g} without two: what holds for "
        "all words together is in no sample, as one word at least is deleted"
    )
    remedy = "look at f less f without each word, or at Shapley values"
    small = {"f changes little with the first word": np.array(last <= _SMALL * span)}
    return Gauged(ratio, last / (span or 1.0), sentence, remedy, excuses=small)


# ---- What a run of n samples is: how many count, what ridge and choices do to it


N_KEPT: Final = 10
"""Words that the package keeps by default."""


@rule("weight collapse: ridge", above=0.05, weight=0.85, per="all")
def ridge_of_texts(case: TextEvidence) -> Gauged:
    """Its number is λ ‖Σ⁻¹‖ / n."""
    number = PACKAGE_RIDGE * case.law.inverse_norm(case.n_words) / case.n_samples

    if not number > ridge_of_texts.threshold:
        return Gauged(number, 1.0, "", case.wider)
    top = int(np.argmax(case.sizes))
    sentence = (
        f"the ridge of {PACKAGE_RIDGE:g} is {number:.2g} of the least that the samples "
        f"tell: the mean of runs of {case.n_samples:,} gives {{name!r}} "
        f"{case.expected()[top]:.3g}, the limit is {case.beta[0, top]:.3g}"
    )
    return Gauged(number, 1.0, sentence, case.wider, {"name": case.words[[top]]})


@rule("words left out", above=0.1, weight=0.5)
def words_left_out(case: TextEvidence) -> Gauged | Reason:
    """Its number is the change of β_j over the largest of the document."""
    case.refuse_many_words()
    if case.n_words <= N_KEPT:
        return Reason(f"there are no more than {N_KEPT} words")
    own, n = case.limits.value, case.n_samples
    kept = kept_words(case.known, case.law, own, N_KEPT, n_samples=n)
    fitted, whole = case.expected(kept), case.expected()
    moved = np.where(kept, np.abs(fitted - whole), np.nan) / case.largest

    sentence = (
        f"where {N_KEPT} words are kept, as by default, {{name!r}} has {{fitted:.3g}} "
        f"in the mean of runs, and {{whole:.3g}} beside all {case.n_words}: it stands "
        "for words that are left out"
    )
    told = {"name": case.words, "fitted": fitted, "whole": whole}
    remedy = "fit all words, feature_selection='none'"
    return Gauged(moved, moved, sentence, remedy, told)


# ---- Words that are not what the model sees


_NOT_SEEN: Final = "what the model sees of texts is not known"
_OWN_WORDS: Final = "take the words of the vectoriser, words='model'"


@rule("words that are one feature", above=1.0, weight=0.9)
def shared_feature(case: TextEvidence) -> Gauged | Reason:
    """Its number is how many words feed one feature with this one."""
    seen, beta = case.features_of_words(), case.beta[0]
    groups = np.array(seen.beside)
    joint = np.array([np.abs(beta[groups == name]).sum() for name in groups])

    others, places = [""] * len(groups), np.arange(len(groups))
    for j in np.flatnonzero(seen.alike > shared_feature.threshold).tolist():
        beside = (groups == groups[j]) & (places != j)
        others[j] = case.named(np.flatnonzero(beside))
    sentence = (
        "{name!r} and {others} are one feature of the model, {feature!r}, and are "
        "deleted one by one: the coefficient {beta:.3g} is what it adds beside the "
        "others, not what the feature does"
    )
    told = {"name": case.words, "others": np.array(others, object)}
    told |= {"feature": np.array(seen.beside, object), "beta": beta}
    numbers = seen.alike.astype(np.float64)
    return Gauged(numbers, joint / case.largest, sentence, _OWN_WORDS, told)


@rule("features of several words", above=0.0, weight=0.5, per="row")
def crossing_features(case: TextEvidence) -> Gauged | Reason:
    """Its number is how many vectorisers have such features."""
    if case.seen is None:
        return Reason(_NOT_SEEN)
    remedy = (
        "read a coefficient as the effect of deleting a word with all features "
        f"that it is part of, or {_OWN_WORDS}"
    )
    crossing = case.seen.crossing
    return Gauged(float(len(crossing)), 1.0, "; ".join(crossing), remedy)


@rule("unknown words", above=0.5, weight=0.35, per="row")
def unknown_words(case: TextEvidence) -> Gauged | Reason:
    """Its number is the share of words that feed no feature."""
    unknown = np.flatnonzero(~case.features_of_words().known)
    share = len(unknown) / case.n_words

    largest = np.abs(case.beta[0, unknown]).max(initial=0.0)
    sentence = (
        f"the model knows {case.n_words - len(unknown)} of {case.n_words} words; "
        f"{case.named(unknown)} change nothing, and have coefficients up to "
        f"{largest:.2g}"
    )
    return Gauged(share, share, sentence, _OWN_WORDS)


@rule("ignored words with coefficients", above=0.1, weight=0.9)
def ignored_words(case: TextEvidence) -> Gauged:
    """Its number is |β_j| over the largest of the document."""
    count = np.count_nonzero(~case.depends)

    sentence = (
        "the model ignores {name!r}; its coefficient {beta:.3g} is that of all "
        f"{count} such words, and comes of what other words do together"
    )
    numbers = np.where(case.depends, np.nan, case.sizes)
    remedy = "read coefficients less that of such words, or take a wider kernel"
    told = {"name": case.words, "beta": case.beta}
    return Gauged(numbers, case.sizes, sentence, remedy, told)


# ---- The rules of diagnosis of texts


# Weights as of tables: what is read wrongly of the model comes first.
TEXT_RULES: Final[tuple[Rule[TextEvidence], ...]] = (
    shared_feature,
    ignored_words,
    turning_word,
    leaving_one_out,
    noisy_coefficient,
    unstable_ranking,
    ridge_of_texts,
    sample_collapse,
    words_left_out,
    sum_gap,
    blind_spot,
    crossing_features,
    unknown_words,
)
"""All of them; where one does not apply it says so."""


# ---- All rules on all documents of an explanation, as one table


_ROWS: Final = 20
"""Of weights of sizes that the rules have means for, in each document."""


def told_of_documents(
    cases: dict[int, TextEvidence], vocabulary: Sequence[str], progress: bool | None
) -> list[LimeFinding]:
    """What all rules tell of documents, at their places and those of all words."""
    functions = [case.function for case in cases.values() if case.n_words <= MANY_WORDS]
    announce_norms("diagnosis", functions, _ROWS, wanted=progress)
    place = {word: j for j, word in enumerate(vocabulary)}
    return told_by(TEXT_RULES, lambda rule: _of_rule(rule, cases, place), progress)


def _of_rule(
    rule: Rule[TextEvidence], cases: dict[int, TextEvidence], place: dict[str, int]
) -> list[LimeFinding]:
    """What one rule finds in all documents; else where it was nearest."""
    told = []
    for n, case in cases.items():
        for item in rule.findings(case):
            j = item.column
            column = None if j is None else place[case.names[j]]
            told.append(replace(item, row=n, column=column))
    sign = -1.0 if rule.below else 1.0
    near = [-np.inf if np.isnan(item.number) else sign * item.number for item in told]
    worst = told[int(np.argmax(near))]
    findings = [item for item in told if item.remedy]
    if len(findings) > 1 and not rule.per_row:
        # it depends on the law and the number of words alone
        several = f"so it is of {len(findings)} of {len(cases)} documents"
        return [replace(worst, row=None, sentence=f"{worst.sentence}; {several}")]
    return findings or [worst]
