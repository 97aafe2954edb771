"""Sections on inputs that come later: the prior, and what is known of gradients.

A new rule for inducing inputs is a section here and its place in ``AnyInducing``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from propopt import inductive
from propopt.base.errors import InvalidInput
from propopt.problems.losses import LossSection
from propopt.problems.problem import Inductive, Plan
from propopt.problems.sections import (
    Count,
    Finite,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    section_of,
    wrong,
)
from propopt.problems.subject.data import Extent


class InducingSection(Section):
    """Which inputs carry the prior, one explanation of the new inputs for each count.

    All but ``subset`` use the gradients of all observations.
    """

    rule: str
    own_gradients: Annotated[
        bool,
        Field(
            description="explain each new input with its own gradient as one more "
            "observation, unless it is one of the observations already",
        ),
    ] = False

    def build(self, number: int) -> Iterator[Plan]:
        """The plans of this section, the ``number``-th of its list."""
        for count in getattr(self, "counts", [None]):
            rule = (
                None if self.makes is None else self.make(count=count, max_count=count)
            )
            yield Plan(
                rule=self.rule,
                inducing=rule,
                n_observations=count if rule is None else None,
                own_gradients=self.own_gradients,
                place=("inductive", "inducing", number),
            )

    def check(self, extent: Extent) -> None:
        for number, count in enumerate(getattr(self, "counts", ())):
            if count > extent.n_known:
                raise wrong(
                    f"expected at most {extent.n_known}, as many observations as there "
                    f"are, got {count}",
                    *("counts", number),
                )
        for row in getattr(self, "inputs", ()):
            if len(row) != extent.n_columns:
                raise InvalidInput(
                    f"inducing: expected {extent.n_columns} features as in X, got "
                    f"{len(row)}"
                )


class AllInputs(InducingSection):
    """Every observation."""

    rule: Literal["all"]


NumbersOfInputs: TypeAlias = Annotated[list[Count], Field(min_length=1)]
"""One explanation for each of some numbers of inputs."""


class SubsetInputs(InducingSection):
    """The first observations alone: other gradients are not known."""

    rule: Literal["subset"]
    counts: NumbersOfInputs


def _rule(rule: str, made: Any, **said: Any) -> type[InducingSection]:
    """A rule of a number of inputs, of the settings of its class."""
    return section_of(
        made,
        InducingSection,
        f"{made.__name__}Rule",
        without=("count", "max_count"),
        rule=Literal[rule],
        counts=(NumbersOfInputs, None),
        **said,
    )


RULES: Final[tuple[type[InducingSection], ...]] = (
    AllInputs,
    SubsetInputs,
    _rule("random", inductive.RandomInputs),
    _rule("kmeans", inductive.KMeansInputs),
    _rule("farthest", inductive.FarthestInputs),
    _rule(
        "greedy",
        inductive.GreedyVariance,
        tolerance="stop where so little is unexplained, before the count",
    ),
    section_of(
        inductive.GivenInputs,
        InducingSection,
        "GivenRule",
        "Inputs that the file lists.",
        rule=Literal["given"],
        inputs=(Annotated[list[list[Finite]], Field(min_length=1)], None),
    ),
)
AnyInducing: TypeAlias = Annotated[InducingSection, OneOf("rule", RULES)]

_BY_DEFAULT: Final = "by default that of kernel_robustness in the objective, or"


@partial(
    section_of,
    Inductive,
    without=("plans",),
    kernel=(Literal["gaussian", "matern"], None),
    lengthscale=(
        Positive | None,
        f"{_BY_DEFAULT} the median distance of the observations",
    ),
    mean=(
        Literal["per_feature", "none", "common"] | None,
        f"{_BY_DEFAULT} per_feature",
        None,
    ),
    jitter=(Nonnegative, None),
)
class InductiveSection(Section):
    """The Gaussian process that explains inputs from gradients at others.

    Its weights are those of the objective, divided by that of gradient matching; its
    features are similar as in the objective's smoothness.
    """

    inducing: list[AnyInducing] = Field([AllInputs(rule="all")], min_length=1)

    def build(self, robustness: LossSection | None) -> Inductive:
        """The setting, with what is not said taken from a kernel of the objective."""
        own, known = self.settings("inducing"), {"mean": "per_feature"}
        if robustness is not None and robustness.name == "kernel_robustness":
            known |= {x: robustness.settings()[x] for x in ("lengthscale", "mean")}
        own |= {name: own[name] or known.get(name) for name in ("lengthscale", "mean")}
        plans = (rule.build(n) for n, rule in enumerate(self.inducing))
        return Inductive(plans=tuple(plan for some in plans for plan in some), **own)
