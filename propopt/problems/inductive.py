"""Sections on inputs that come later: the prior, and what is known of gradients."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from propopt.problems.section import Count, Finite, Nonnegative, Positive, Section


Counts: TypeAlias = Annotated[list[Count], Field(min_length=1)]


class Inducing(Section):
    """Which inputs carry the prior, one explanation of the new inputs for each count.

    All but ``subset`` use the gradients of all observations.
    """

    own_gradients: Annotated[
        bool,
        Field(
            description="explain each new input with its own gradient as one more "
            "observation, unless it is one of the observations already",
        ),
    ] = False


class AllInputs(Inducing):
    """Every observation."""

    rule: Literal["all"]


class SubsetInputs(Inducing):
    """The first observations alone: other gradients are not known."""

    rule: Literal["subset"]
    counts: Counts


class RandomRule(Inducing):
    """Observed inputs, uniformly at random."""

    rule: Literal["random"]
    counts: Counts


class KMeansRule(Inducing):
    """Centres of k-means."""

    rule: Literal["kmeans"]
    counts: Counts


class FarthestRule(Inducing):
    """Each the observed input farthest from those before it."""

    rule: Literal["farthest"]
    counts: Counts


class GreedyRule(Inducing):
    """Each the observed input that the others explain least."""

    rule: Literal["greedy"]
    counts: Counts
    tolerance: Positive = Field(
        0.01, description="stop where so little is unexplained, before the count"
    )


class GivenRule(Inducing):
    """Inputs that the file lists."""

    rule: Literal["given"]
    inputs: Annotated[list[list[Finite]], Field(min_length=1)]


AnyInducing: TypeAlias = Annotated[
    AllInputs
    | SubsetInputs
    | RandomRule
    | KMeansRule
    | FarthestRule
    | GreedyRule
    | GivenRule,
    Field(discriminator="rule"),
]


class Inductive(Section):
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
