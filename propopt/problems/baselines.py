"""Sections on baselines: what may be said of each, and how it is made.

A new baseline is a section here and its place in ``BASELINE_SECTIONS``. Fields that are
lists give one baseline for each combination of their values. Of documents words are
deleted, by the law of LIME on texts, and settings of tables are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field

from propopt.explaining.explainers import (
    Baseline,
    ExactLime,
    ExactShap,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
    TreeShap,
)
from propopt.lime import TextLaw
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
PerturbationLaw: TypeAlias = Literal["gaussian", "uniform", "ball"]
BackgroundRows: TypeAlias = Samples | Literal["mean"]
"""How many of the points, drawn by the seed; or their mean."""
_RELATIVE = (
    "lengths are in standard deviations of the columns of data.categorical's table"
)


class BaselineSection(Section):
    """A method to compare with: the settings of a baseline."""

    of_tables: ClassVar[Mapping[str, str]] = {}
    """Settings without a meaning for documents, and what is said then."""
    of_texts: ClassVar[Mapping[str, str]] = {}
    """Settings without a meaning for tables, and what is said then."""
    needed: ClassVar[str | None] = None
    """A setting that tables need."""

    def build(self, *, is_text: bool = False) -> list[Baseline]:
        """The baselines, the last of the listed settings varying fastest."""
        if is_text:
            of_texts = map(self._of_texts, self._settings(self.of_tables))
            return [self.makes(**settings) for settings in of_texts]
        return [self.makes(**settings) for settings in self._settings(self.of_texts)]

    def unused(self, *, is_text: bool) -> tuple[str, str] | None:
        """A setting that was given and has no effect, and what is said of it."""
        for name, message in (self.of_tables if is_text else self.of_texts).items():
            if name in self.model_fields_set:
                return name, message
        return None

    def _of_texts(self, settings: dict[str, Any]) -> dict[str, Any]:
        """What the baseline of documents takes for these."""
        return settings

    def _settings(self, unused: Iterable[str]) -> Iterator[dict[str, Any]]:
        fields = self.settings("method", *unused)
        choices = [listed_values(value) for value in fields.values()]
        for combination in itertools.product(*choices):
            yield dict(zip(fields, combination, strict=True))


NO_EFFECT: Final = "has no effect with data.text"
NO_WIDTH: Final = (
    "of documents give bandwidth, a hundredth of it: the package's 25 is 0.25"
)
_EMPTY_TEXT: Final = "of documents it is the text without any word; leave it out"
OF_TEXTS: Final = "has no effect without data.text"


def _no_effect(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, NO_EFFECT)


class LawSection(BaselineSection):
    """LIME, which on documents deletes words by a law."""

    of_texts: ClassVar[Mapping[str, str]] = {"bandwidth": OF_TEXTS}

    bandwidth: KernelWidths = Field(
        0.25,
        description="of documents, a hundredth of the package's kernel_width, which is "
        "25 by default",
    )

    def _of_texts(self, settings: dict[str, Any]) -> dict[str, Any]:
        bandwidth = settings.pop("bandwidth")
        return {**settings, "law": TextLaw(bandwidth)}


class SmoothGradBaseline(BaselineSection):
    """Mean gradients of perturbed points, one explanation per scale."""

    makes = SmoothGrad
    of_tables: ClassVar[Mapping[str, str]] = {
        "method": "words get no noise; take gradient, which is the effect of each, or "
        "exact_lime, for which others are deleted too"
    }

    method: Literal["smoothgrad"]
    scale: Lengths
    n_samples: Samples = 100
    distribution: PerturbationLaw = "gaussian"
    relative: bool = Field(False, description=_RELATIVE)


class LimeBaseline(LawSection):
    """Local linear fits, one explanation per scale, or of documents per bandwidth."""

    makes = Lime
    of_tables: ClassVar[Mapping[str, str]] = {
        **_no_effect("scale", "distribution", "relative"),
        "kernel_width": NO_WIDTH,
    }
    of_texts: ClassVar[Mapping[str, str]] = {
        **LawSection.of_texts,
        "first_row": OF_TEXTS,
    }
    needed: ClassVar[str | None] = "scale"

    method: Literal["lime"]
    scale: Lengths | None = Field(None, description="of tables, which need one")
    n_samples: Samples = 1000
    distribution: PerturbationLaw = "gaussian"
    kernel_width: Positive | None = None
    ridge: Nonnegative = 0.0
    fit_intercept: bool = True
    relative: bool = Field(False, description=_RELATIVE)
    first_row: bool = Field(
        False,
        description="of documents: the first sample is the document itself, as in the "
        "package",
    )


class LimePackageBaseline(LawSection):
    """The lime package."""

    makes = LimePackage
    of_tables: ClassVar[Mapping[str, str]] = {
        **_no_effect("discretize", "sample_around", "units"),
        "kernel_width": NO_WIDTH,
    }

    method: Literal["lime_package"]
    n_samples: Samples = 5000
    kernel_width: Positive | None = None
    discretize: bool = True
    sample_around: bool = False
    units: Literal["output", "gradient"] = "output"

    def _of_texts(self, settings: dict[str, Any]) -> dict[str, Any]:
        bandwidth = settings.pop("bandwidth")
        return {**settings, "kernel_width": 100.0 * bandwidth}


class ExactLimeBaseline(LawSection):
    """What LIME tends to, one explanation per kernel width and unit, or bandwidth."""

    makes = ExactLime
    of_tables: ClassVar[Mapping[str, str]] = {
        **_no_effect("n_bins", "weights", "law", "units"),
        "kernel_width": NO_WIDTH,
    }

    method: Literal["exact_lime"]
    kernel_width: KernelWidths | None = Field(
        None, description="by default the package's, 0.75 √D"
    )
    n_bins: Bins = 4
    weights: Literal["frequency", "uniform"] = "frequency"
    law: Literal["tabular", "gaussian"] = "tabular"
    units: list[Literal["output", "gradient"]] = Field(["gradient"], min_length=1)
    n_samples: Samples = Field(
        5000, description="draws around each row, where nothing is known exactly"
    )


class ShapBaseline(BaselineSection):
    """The shap package, against rows of the points or their mean."""

    makes = Shap
    of_tables: ClassVar[Mapping[str, str]] = {
        "background": _EMPTY_TEXT,
        **_no_effect("units"),
    }

    method: Literal["shap"]
    background: BackgroundRows = 100
    units: list[Literal["output", "gradient"]] = Field(["gradient"], min_length=1)
    algorithm: Literal["auto", "exact", "permutation"] = "auto"
    n_permutations: Samples = 10


class TreeShapBaseline(BaselineSection):
    """Exact Shapley values of trees, against rows of the points or their mean."""

    makes = TreeShap
    of_tables: ClassVar[Mapping[str, str]] = {"background": _EMPTY_TEXT}

    method: Literal["tree_shap"]
    background: BackgroundRows = 100


class ExactShapBaseline(BaselineSection):
    """Exact Shapley values of sums of products, against rows or their mean."""

    makes = ExactShap
    of_tables: ClassVar[Mapping[str, str]] = {"background": _EMPTY_TEXT}

    method: Literal["exact_shap"]
    background: BackgroundRows = 100


BASELINE_SECTIONS: Final[tuple[type[BaselineSection], ...]] = (
    section_of(
        Gradient,
        BaselineSection,
        "GradientBaseline",
        "Plain gradients.",
        method=Literal["gradient"],
    ),
    SmoothGradBaseline,
    LimeBaseline,
    LimePackageBaseline,
    ExactLimeBaseline,
    ShapBaseline,
    TreeShapBaseline,
    ExactShapBaseline,
)
AnyBaseline: TypeAlias = Annotated[BaselineSection, OneOf("method", BASELINE_SECTIONS)]
