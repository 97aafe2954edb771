"""Sections on inputs that come later: the prior, and what is known of gradients.

A new rule for inducing inputs is a section here and its place in ``AnyInducing``.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    part,
    section_of,
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
        for n_observations, inputs in self._choices():
            yield Plan(
                rule=self.rule,
                inducing=inputs,
                n_observations=n_observations,
                own_gradients=self.own_gradients,
                place=("inductive", "inducing", number),
            )

    def _choices(self) -> Iterator[tuple[int | None, inductive.InducingRule | None]]:
        """How many gradients are known, and the rule among these."""
        yield None, None

    def check(self, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""


class AllInputs(InducingSection):
    """Every observation."""

    rule: Literal["all"]


class CountedSection(InducingSection):
    """One explanation for each of some numbers of inputs."""

    counts: Annotated[list[Count], Field(min_length=1)]

    def _choices(self) -> Iterator[tuple[int | None, inductive.InducingRule | None]]:
        settings = self.settings("rule", "own_gradients", "counts")
        yield from ((None, self.makes(count, **settings)) for count in self.counts)

    def check(self, extent: Extent) -> None:
        for number, count in enumerate(self.counts):
            if count > extent.n_known:
                with part("counts", number):
                    raise InvalidInput(
                        f"expected at most {extent.n_known}, as many observations as "
                        f"there are, got {count}"
                    )


class SubsetInputs(CountedSection):
    """The first observations alone: other gradients are not known."""

    rule: Literal["subset"]

    def _choices(self) -> Iterator[tuple[int | None, inductive.InducingRule | None]]:
        yield from ((count, None) for count in self.counts)


class GivenRule(InducingSection):
    """Inputs that the file lists."""

    rule: Literal["given"]
    inputs: Annotated[list[list[Finite]], Field(min_length=1)]

    def _choices(self) -> Iterator[tuple[int | None, inductive.InducingRule | None]]:
        yield None, inductive.GivenInputs(self.inputs)

    def check(self, extent: Extent) -> None:
        lengths = [len(row) for row in self.inputs if len(row) != extent.n_columns]
        if lengths:
            raise InvalidInput(
                f"inducing: expected {extent.n_columns} features as in X, got "
                f"{lengths[0]}"
            )


def _rule(rule: str, made: Any, **said: Any) -> type[CountedSection]:
    """A rule of a number of inputs, of the settings of its class."""
    return section_of(
        made,
        CountedSection,
        f"{made.__name__}Rule",
        without=("count", "max_count"),
        rule=Literal[rule],
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
    GivenRule,
)
AnyInducing: TypeAlias = Annotated[InducingSection, OneOf("rule", RULES)]


class InductiveSection(Section):
    """The Gaussian process that explains inputs from gradients at others.

    Its weights are those of the objective, divided by that of gradient matching; its
    features are similar as in the objective's smoothness.
    """

    kernel: Literal["gaussian", "matern"] = "gaussian"
    lengthscale: Annotated[
        Positive | None,
        Field(
            description="by default that of kernel_robustness in the objective, or the "
            "median distance of the observations",
        ),
    ] = None
    mean: Annotated[
        Literal["per_feature", "none", "common"] | None,
        Field(
            description="by default that of kernel_robustness in the objective, or "
            "per_feature",
        ),
    ] = None
    jitter: Nonnegative = 0.0
    inducing: list[AnyInducing] = Field([AllInputs(rule="all")], min_length=1)

    def build(self, robustness: LossSection | None) -> Inductive:
        """The setting, with what is not said taken from a kernel of the objective."""
        lengthscale, mean = self.lengthscale, self.mean
        if robustness is not None and robustness.name == "kernel_robustness":
            own = robustness.settings()
            lengthscale, mean = lengthscale or own["lengthscale"], mean or own["mean"]
        plans = (rule.build(n) for n, rule in enumerate(self.inducing))
        return Inductive(
            plans=tuple(plan for some in plans for plan in some),
            kernel=self.kernel,
            lengthscale=lengthscale,
            mean=mean or "per_feature",
            jitter=self.jitter,
        )

    def check(self, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""
        for number, rule in enumerate(self.inducing):
            with part("inductive", "inducing", number):
                rule.check(extent)
