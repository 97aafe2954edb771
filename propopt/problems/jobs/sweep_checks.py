"""What a sweep asks for and cannot have, seen before anything is fitted."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput, MissingExtra
from propopt.problems.losses import GradientMatchingLoss, SmoothnessLoss
from propopt.problems.parts import Location
from propopt.problems.pick import check_pick
from propopt.problems.setting import ROBUSTNESS
from propopt.problems.sources.base import Faults, Source
from propopt.problems.weights import MOST_WEIGHTS, count_weights, listed_weights
from propopt.solvers import find_solver


if TYPE_CHECKING:
    from propopt.problems.schema import ProblemSchema


def check_sweep(schema: ProblemSchema, source: Source) -> None:
    """Refuse what the file alone shows to fail."""
    faults = Faults()
    for check in (
        _check_names,
        _check_weights,
        _check_setting,
        _check_words,
        _check_baselines,
        _check_columns,
        _check_solver,
    ):
        with faults.noted():
            check(schema, source)
    with faults.noted(), source.blaming():
        check_pick(schema.pick, {**schema.build_weights(), **schema.build_limits()})
    faults.refuse()


def _check_solver(schema: ProblemSchema, source: Source) -> None:
    try:
        find_solver(schema.solver)
    except (InvalidInput, MissingExtra) as error:
        message = str(error).removeprefix("solver: ")
        raise source.error(("solver",), message) from error


def check_tied(schema: ProblemSchema, source: Source) -> None:
    """Refuse an objective whose losses say nothing of the number of points."""
    if not any(loss.counts_points for loss in schema.losses.values()):
        raise source.error(
            ("objective",),
            "no loss tells the number of points; add gradient_matching or another",
        )


def _check_names(schema: ProblemSchema, source: Source) -> None:
    """Only losses of the objective have weights, limits and axes."""
    named = [(("sweep", name), name) for name in schema.sweep]
    named += [(("limits", name), name) for name in schema.limits]
    if schema.plot is not None:
        named += [(("plot", "x"), schema.plot.x), (("plot", "y"), schema.plot.y)]
    faults = Faults()
    for location, name in named:
        with faults.noted():
            _check_loss(location, name, schema, source)
    for name in schema.limits:
        with faults.noted():
            if name in schema.sweep:
                raise source.error(
                    ("limits", name), "has weights in sweep; give limits or weights"
                )
    faults.refuse()


def _check_loss(
    location: Location, name: str, schema: ProblemSchema, source: Source
) -> None:
    names = list(schema.losses)
    if name not in names:
        raise source.error(
            location,
            f"the objective has no {name!r}{did_you_mean(name, names)}; "
            f"it has {', '.join(names)}",
        )


def _check_weights(schema: ProblemSchema, source: Source) -> None:
    """Some weight is above zero, and there are not too many combinations."""
    losses = schema.losses
    smallest = {n: loss.weight for n, loss in losses.items() if n not in schema.limits}
    smallest |= {
        name: min(listed_weights(values)) for name, values in schema.sweep.items()
    }
    if not any(smallest.values()):
        raise source.error(
            ("objective",),
            "expected a weight above zero, got all zero (for some weights of the "
            "sweep, if there is one)",
        )
    tried = (*schema.sweep.values(), *schema.limits.values())
    count = prod(map(count_weights, tried))
    if count > MOST_WEIGHTS:
        raise source.error(
            ("sweep",) if schema.sweep else ("limits",),
            f"expected at most {MOST_WEIGHTS:,} combinations, got {count:,}",
        )


def _check_words(schema: ProblemSchema, source: Source) -> None:
    """No words where there are columns, and no order of words."""
    is_text = schema.data.text is not None
    if "shared_robustness" in schema.losses and not is_text:
        raise source.error(
            ("objective", "shared_robustness"),
            "is of words that documents share, and there is no data.text; rows of a "
            "table share all columns, as pairwise_robustness has it",
        )
    smoothness = schema.losses.get("smoothness")
    if is_text and isinstance(smoothness, SmoothnessLoss):
        kind = getattr(smoothness.graph, "kind", None)
        if kind not in _OF_WORDS:
            raise source.error(
                ("objective", "smoothness", "graph"),
                f"words have no place beside others to tell here; take "
                f"{' or '.join(_OF_WORDS)}",
            )


def _check_baselines(schema: ProblemSchema, source: Source) -> None:
    """No settings of tables where there are documents, and none of these elsewhere."""
    is_text, faults = schema.data.text is not None, Faults()
    for place, baseline in enumerate(schema.baselines):
        unused, needed = baseline.unused(is_text=is_text), baseline.needed
        with faults.noted():
            if unused is not None:
                name, message = unused
                raise source.error(("baselines", place, name), message)
            if needed is not None and not is_text and getattr(baseline, needed) is None:
                raise source.error(
                    ("baselines", place), "required, and missing", missing=needed
                )
    faults.refuse()


_NO_NUMBERS: Final = ("categorical", "groups", "text")
_OF_WORDS: Final = ("correlation", "complete")


def _check_columns(schema: ProblemSchema, source: Source) -> None:
    """No categories where numbers are needed."""
    for name in _NO_NUMBERS:
        if not getattr(schema.data, name):
            continue
        if schema.function is not None and name != "text":  # which was told
            raise source.error(("data", name), "a formula takes numbers alone")
        if "function_matching" in schema.losses:
            raise source.error(
                ("objective", "function_matching"),
                f"needs columns that are numbers, and there is data.{name}",
            )


# ---- the inductive setting

_OF_INDUCTIVE = ("gradient_matching", *ROBUSTNESS, "smoothness")


def _check_setting(schema: ProblemSchema, source: Source) -> None:
    """No ``inductive`` without its setting, and in it only what it knows."""
    if schema.setting == "transductive":
        if "inductive" in schema.model_fields_set:
            raise source.error(
                ("inductive",), "has no effect without setting: inductive"
            )
        return
    _check_inductive_losses(schema, source)
    _check_inductive_weights(schema, source)
    if schema.limits:
        raise source.error(
            ("limits",), "the inductive setting knows weights alone; give sweep instead"
        )
    for name in _NO_NUMBERS:
        if getattr(schema.data, name):
            raise source.error(
                ("data", name), "the inductive setting needs columns that are numbers"
            )


def _check_inductive_losses(schema: ProblemSchema, source: Source) -> None:
    """Gradient matching, one robustness, and perhaps smoothness."""
    losses = schema.losses
    for name in losses:
        if name not in _OF_INDUCTIVE:
            raise source.error(
                ("objective", name),
                f"the inductive setting knows {', '.join(_OF_INDUCTIVE)} alone",
            )
    faithfulness = losses.get("gradient_matching")
    one_robustness = sum(name in losses for name in ROBUSTNESS) == 1
    if not (isinstance(faithfulness, GradientMatchingLoss) and one_robustness):
        raise source.error(
            ("objective",),
            "the inductive setting needs gradient_matching, and either "
            "kernel_robustness or pairwise_robustness",
        )
    if faithfulness.norm != "l2":
        raise source.error(
            ("objective", "gradient_matching", "norm"),
            f"the inductive setting needs 'l2', got {faithfulness.norm!r}",
        )


def _check_inductive_weights(schema: ProblemSchema, source: Source) -> None:
    """No weight of zero for what carries from one input to another."""
    for name, loss in schema.losses.items():
        if name == "smoothness":
            continue
        if min(listed_weights(schema.sweep.get(name, [loss.weight]))) == 0.0:
            place = "sweep" if name in schema.sweep else "objective"
            raise source.error(
                (place, name),
                "the inductive setting needs a weight > 0; with none, gradients at "
                "some inputs say nothing of another",
            )
