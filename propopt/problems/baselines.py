"""Sections on baselines: what may be said of each, and how it is made.

A new baseline is a line of ``BASELINE_SECTIONS``; other packages bring theirs by entry
points of the group ``propopt.baselines``. Fields that are lists give one baseline for
each combination of their values. Of documents words are deleted, by the law of LIME on
texts, and settings of tables are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field

from propopt.base.extras import added, additions
from propopt.explaining import explainers
from propopt.lime import TextLaw
from propopt.lime.laws.named import law_names
from propopt.problems.sections import (
    KernelWidths,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    listed_values,
    section_of,
)


Samples: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Bins: TypeAlias = Annotated[int, Field(ge=2, le=1000)]
Lengths: TypeAlias = Annotated[list[Positive], Field(min_length=1)]
_RELATIVE = (
    "lengths are in standard deviations of the columns of data.categorical's table"
)


BANDWIDTH: Final = (
    "of documents, a hundredth of the package's kernel_width, which is 25 by default"
)
NO_EFFECT: Final = "has no effect with data.text"
NO_WIDTH: Final = (
    "of documents give bandwidth, a hundredth of it: the package's 25 is 0.25"
)
OF_TEXTS: Final = "has no effect without data.text"
LAW: Any = Literal[law_names()]
"""Of LIME, by name; those that other packages add among them."""


class BaselineSection(Section):
    """A method to compare with: the settings of a baseline."""

    of_texts: ClassVar[dict[str, str]] = {"bandwidth": OF_TEXTS, "first_row": OF_TEXTS}

    def build(self, *, is_text: bool = False) -> list[explainers.Baseline]:
        """The baselines, the last of the listed settings varying fastest."""
        unused = self.of_tables if is_text else self.of_texts
        fields = self.settings("method", *unused)
        choices = [listed_values(value) for value in fields.values()]
        return [
            self.makes(**_with_law(self.makes, dict(zip(fields, chosen, strict=True))))
            for chosen in itertools.product(*choices)
        ]


def _with_law(made: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Of documents words are deleted by a law, which has the bandwidth."""
    bandwidth = settings.pop("bandwidth", None)
    if bandwidth is None:
        return settings
    if made is explainers.LimePackage:
        return {**settings, "kernel_width": 100.0 * bandwidth}
    return {**settings, "law": TextLaw(bandwidth)}


def _baseline(
    made: Any, of_tables: Mapping[str, str] | None = None, /, **said: Any
) -> type[BaselineSection]:
    """A section of the settings of a baseline, and what of it is of tables alone."""
    section = section_of(
        made,
        BaselineSection,
        f"{made.__name__}Baseline",
        method=Literal[made.method],
        **said,
    )
    section.of_tables = of_tables or {}
    return section


def _no_effect(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, NO_EFFECT)


_BANDWIDTHS: Final = (KernelWidths, BANDWIDTH, 0.25)
_UNITS: Final = (
    Annotated[list[Literal["output", "gradient"]], Field(min_length=1)],
    "one explanation for each: differences of outputs, or these per unit of the column",
    ["gradient"],
)
_BACKGROUND: Final = (
    Samples | Literal["mean"],
    "how many of the points, drawn by the seed; or their mean",
)
_EMPTY_TEXT: Final = {
    "data": "of documents it is the text without any word; leave it out"
}
BASELINE_SECTIONS: Final[tuple[type[BaselineSection], ...]] = (
    _baseline(explainers.Gradient),
    _baseline(
        explainers.SmoothGrad,
        {
            "method": "words get no noise; take gradient, which is the effect of each, "
            "or exact_lime, for which others are deleted too"
        },
        scale=Lengths,
        n_samples=Samples,
        relative=_RELATIVE,
    ),
    _baseline(
        explainers.Lime,
        {**_no_effect("scale", "distribution", "relative"), "kernel_width": NO_WIDTH},
        without=("law",),
        bandwidth=_BANDWIDTHS,
        scale=(Lengths | None, "of tables, which need one"),
        n_samples=Samples,
        ridge=Nonnegative,
        relative=_RELATIVE,
        first_row="of documents: the first sample is the document itself, as in the "
        "package",
    ),
    _baseline(
        explainers.LimePackage,
        {
            **_no_effect("discretize", "units"),
            "kernel_width": NO_WIDTH,
        },
        without=("data",),
        bandwidth=_BANDWIDTHS,
        n_samples=Samples,
    ),
    _baseline(
        explainers.ExactLime,
        {**_no_effect("n_bins", "weights", "law", "units"), "kernel_width": NO_WIDTH},
        without=("data",),
        bandwidth=_BANDWIDTHS,
        kernel_width=(KernelWidths | None, "by default the package's, 0.75 √D"),
        n_bins=Bins,
        law=(
            LAW,
            "bins weighted by bits, as in the package; or normal numbers by distance",
        ),
        units=_UNITS,
        n_samples=Samples,
    ),
    _baseline(
        explainers.Shap,
        {**_EMPTY_TEXT, **_no_effect("units")},
        data=_BACKGROUND,
        units=_UNITS,
        n_permutations=Samples,
    ),
    _baseline(explainers.TreeShap, _EMPTY_TEXT, data=_BACKGROUND),
    _baseline(explainers.ExactShap, _EMPTY_TEXT, data=_BACKGROUND),
    *(_baseline(added(x)) for x in additions("propopt.baselines").values()),
)
AnyBaseline: TypeAlias = Annotated[BaselineSection, OneOf("method", BASELINE_SECTIONS)]
