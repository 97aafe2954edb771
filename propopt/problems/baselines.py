"""Sections on baselines: what may be said of each, and how it is made.

A new baseline is a section here and its place in ``BASELINE_SECTIONS``. Fields that are
lists give one baseline for each combination of their values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field

from propopt.explainers import (
    Baseline,
    ExactLime,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
    TreeShap,
)
from propopt.problems.kernel_widths import KernelWidths, WidthRange
from propopt.problems.section import Nonnegative, Positive, Section, one_of


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

    makes: ClassVar[type[Baseline]]

    def build(self) -> list[Baseline]:
        """The baselines, the last of the listed settings varying fastest."""
        return [self.makes(**settings) for settings in self._settings()]

    def _settings(self) -> Iterator[dict[str, Any]]:
        fields = {name: value for name, value in self if name != "method"}
        choices = [_listed(value) for value in fields.values()]
        for combination in itertools.product(*choices):
            yield dict(zip(fields, combination, strict=True))


def _listed(value: Any) -> list[Any]:
    """What a setting is to be, in turn."""
    if isinstance(value, WidthRange):
        return value.build()
    return value if isinstance(value, list) else [value]


class GradientBaseline(BaselineSection):
    """Plain gradients."""

    makes = Gradient

    method: Literal["gradient"]


class SmoothGradBaseline(BaselineSection):
    """Mean gradients of perturbed points, one explanation per scale."""

    makes = SmoothGrad

    method: Literal["smoothgrad"]
    scale: Lengths
    n_samples: Samples = 100
    distribution: PerturbationLaw = "gaussian"
    relative: bool = Field(False, description=_RELATIVE)


class LimeBaseline(BaselineSection):
    """Local linear fits, one explanation per scale."""

    makes = Lime

    method: Literal["lime"]
    scale: Lengths
    n_samples: Samples = 1000
    distribution: PerturbationLaw = "gaussian"
    kernel_width: Positive | None = None
    ridge: Nonnegative = 0.0
    fit_intercept: bool = True
    relative: bool = Field(False, description=_RELATIVE)


class LimePackageBaseline(BaselineSection):
    """The lime package."""

    makes = LimePackage

    method: Literal["lime_package"]
    n_samples: Samples = 5000
    kernel_width: Positive | None = None
    discretize: bool = True
    sample_around: bool = False
    units: Literal["output", "gradient"] = "output"


class ExactLimeBaseline(BaselineSection):
    """What tabular LIME tends to, one explanation per kernel width and unit."""

    makes = ExactLime

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

    method: Literal["shap"]
    background: BackgroundRows = 100
    units: list[Literal["output", "gradient"]] = Field(["gradient"], min_length=1)
    algorithm: Literal["auto", "exact", "permutation"] = "auto"
    n_permutations: Samples = 10


class TreeShapBaseline(BaselineSection):
    """Exact Shapley values of trees, against rows of the points or their mean."""

    makes = TreeShap

    method: Literal["tree_shap"]
    background: BackgroundRows = 100


BASELINE_SECTIONS: Final[tuple[type[BaselineSection], ...]] = (
    GradientBaseline,
    SmoothGradBaseline,
    LimeBaseline,
    LimePackageBaseline,
    ExactLimeBaseline,
    ShapBaseline,
    TreeShapBaseline,
)
if TYPE_CHECKING:
    AnyBaseline: TypeAlias = BaselineSection
else:
    AnyBaseline = one_of(BASELINE_SECTIONS, "method")
