"""The settings of explanations, and rows that are explained together by them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from inspect import Parameter as Argument
from inspect import signature
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
)

import numpy as np

from propopt.base.arrays import Array, Attributions, Points
from propopt.base.checks import read_option, read_seed, read_share
from propopt.base.errors import ImpreciseWarning, InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.explaining.contributions import (
    AnyRule,
    ContributionChoice,
    ContributionRule,
    ContributionsLike,
)
from propopt.explaining.main_effect_rule import MainEffectRule
from propopt.explaining.targets import (
    ColumnMetric,
    LawChoice,
    MetricChoice,
    TargetRule,
    Targets,
    coordinates_of,
    graph_of_rows,
    nearest_explanation,
    sizes_of,
    target_rule,
    winsorised,
)
from propopt.functions import Function
from propopt.functions.cost import cost_of
from propopt.functions.means import SampledMean
from propopt.functions.outputs import Output, Target
from propopt.functions.wrapping import other_classes, wrap_with_table
from propopt.laws.background import (
    N_BACKGROUND,
    Background,
    affordable_rows,
    steps_of_row,
)
from propopt.laws.data_law import Reference
from propopt.laws.draws import Sample
from propopt.laws.off_data import OffData
from propopt.laws.players import Players
from propopt.losses import PairwiseRobustness, SharedRobustness
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.neighbours import N_REFERENCE, Nearest, RowNeighbours
from propopt.losses.graphs.points import Graph, knn_graph, read_graph
from propopt.proofs.optimum import is_sampled
from propopt.results.explanation import Explanation, Parameter
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import MOST_LINK_STEPS
from propopt.tables.frames import Labels
from propopt.tables.schema import ColumnScale, TableSchema


if TYPE_CHECKING:
    from propopt.lime.text.word_limits import TextLaw as TextLaw
else:  # a room that explaining a table has no use for, and does not load
    TextLaw = Any


# ---- The settings, declared once


KindChoice: TypeAlias = Literal["contributions", "slopes"]

OffsetChoice: TypeAlias = Literal["auto", "main_effects"]
OffsetLike: TypeAlias = Any
"""``"auto"``, ``"main_effects"``, or a table (N, D), or None."""

RowNumbers: TypeAlias = Any
"""One number for each row, a Series or an array, or None."""

_FEWEST_REFERENCE_ROWS: Final = 100

_MOST_STEPS: Final = 1e10
_MOST_PRODUCT_STEPS: Final = 1e9
"""Operations for the contributions of all reference rows, of trees and of others."""

_MOST_CALLS: Final = 500_000
"""Rows that a model is given for all reference rows, where it is called."""

KNEE: Final = "knee"
A_QUARTER: Final = "a quarter of the way to the nearest rows"


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How an explanation draws what it cannot compute.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        The seed of all draws; None is seed 0. Background and reference rows do not
        depend on it.
    precision : float, optional
        Draw until ``target_error`` is no larger, such as 0.02. A message says what the
        first draws cost where they take long.
    max_evaluations : int, optional
        The most rows that the model is given for draws.
    batch_rows : int, optional
        The most rows that the model is given in one call.

    Examples
    --------
    >>> import propopt as po
    >>> po.Sampling(rng=1, precision=0.02)
    Sampling(rng=1, precision=0.02, max_evaluations=None, batch_rows=None)
    """

    rng: int | np.random.Generator | None = None
    precision: float | None = None
    max_evaluations: int | None = None
    batch_rows: int | None = None


@dataclass(eq=False, kw_only=True)
class Settings:
    """The settings of an :class:`propopt.Explainer`, whose docstring explains each.

    :func:`propopt.explain`, :func:`propopt.compare` and problem files take the same
    names and defaults, from here.
    """

    target: Target = None
    output: Output = "auto"
    outcome: str | None = None
    sample_weight: RowNumbers = None
    groups: Mapping[str, Sequence[str]] | None = None
    scale: ColumnScale = "std"
    kind: KindChoice | None = None
    contributions: ContributionsLike = "shapley"
    metric: MetricChoice = "auto"
    law: LawChoice | TextLaw = "auto"
    graph: Graph | Nearest | None = None
    offset: OffsetLike = "auto"
    robustness: float | str | None = None
    sampling: Sampling = Sampling()

    def __post_init__(self) -> None:
        if not isinstance(self.sampling, Sampling):
            raise InvalidInput(
                f"sampling: expected a propopt.Sampling, got {self.sampling!r}; "
                "sampling=po.Sampling(rng=0) has a seed"
            )
        if not (self.graph is None or isinstance(self.graph, Nearest)):
            read_graph(self.graph)  # refused if it is none


@final
@dataclass(eq=False, kw_only=True)
class CheckedSettings(Settings):
    """Settings with a seed in place of a generator, and what follows from them."""

    @classmethod
    def of(cls, settings: Settings) -> CheckedSettings:
        """Those of an explainer, which may be changed afterwards."""
        own = {field.name: getattr(settings, field.name) for field in fields(Settings)}
        sampling = settings.sampling
        own["sampling"] = replace(sampling, rng=read_seed(sampling.rng))
        return cls(**own)

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return read_seed(self.sampling.rng)

    @property
    def nearest(self) -> Nearest:
        """How many rows each is compared with, where no graph says who is similar."""
        return self.graph if isinstance(self.graph, Nearest) else Nearest()

    @property
    def given_graph(self) -> Graph | None:
        """The graph of the rows of X, if one is given."""
        return self.graph if isinstance(self.graph, Graph) else None

    @property
    def law_of_columns(self) -> LawChoice:
        """The law of the slopes of a table; one that deletes words is refused."""
        if not isinstance(self.law, str):
            from propopt.lime.text import word_limits

            if isinstance(self.law, word_limits.TextLaw):
                raise InvalidInput(
                    "law: a TextLaw deletes words of documents, and X is a table of "
                    "rows"
                )
        return self.law

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse the settings that are not as they are by default, with the reason."""
        for name, reason in reasons.items():
            value, default = getattr(self, name), getattr(Settings, name)
            same = isinstance(value, str | Sampling) and value == default
            if not (value is default or same):
                raise InvalidInput(f"{name}: {reason}")

    @property
    def parts(self) -> bool:
        """Whether a table's attributions are contributions: parts of the output."""
        if self.kind is None:
            return True
        return read_option(self.kind, KindChoice, "kind") == "contributions"

    def is_made_as(self, kind: ContributionChoice) -> bool:
        """Whether contributions are of a kind; a table that is given is of none."""
        return isinstance(self.contributions, str) and self.contributions == kind

    def most_reference_rows(self, function: Function, reference: Reference) -> int:
        """As asked; of 500 fewer where contributions of a row take long, as counted."""
        asked = self.nearest.n_reference
        if asked != N_REFERENCE:
            return asked
        n_columns = reference.points.shape[1]
        if not self.parts or not self.is_made_as("shapley") or n_columns < 2:
            return N_REFERENCE
        read = function.products_in(n_columns)
        if isinstance(read, Reason):  # orders both ways, and main effects
            most = _MOST_CALLS / (N_BACKGROUND * (3 * n_columns - 2))
            costs = [linked.steps_of_row(N_BACKGROUND) for linked in function.links]
            if costs and max(costs) <= MOST_LINK_STEPS:
                most = min(most, _MOST_STEPS / max(costs))
        else:
            rows = min(affordable_rows(read), len(reference.points))
            steps = _MOST_STEPS if isinstance(read, Boxes) else _MOST_PRODUCT_STEPS
            most = steps / max(steps_of_row(read, rows), 1.0)
        return int(np.clip(most, _FEWEST_REFERENCE_ROWS, N_REFERENCE))

    def sizes_of(self, function: Function, reference: Reference) -> Array:
        """What one step of each column is; of contributions with tails cut off."""
        sizes = sizes_of(function, reference, self.scale)
        is_std = isinstance(self.scale, str) and self.scale == "std"
        return (
            winsorised(function, reference, sizes) if self.parts and is_std else sizes
        )

    def refuse_what_is_joint(self) -> None:
        """Refuse what has a meaning for rows, or documents, together."""
        joint = joint_setting_of(self)
        if joint == "contributions":
            raise InvalidInput(
                "contributions: those of rows to come are not known; expected "
                "'shapley' or 'slopes', which an Explainer makes of any row. "
                "po.explain(model, X, contributions=table) explains several rows "
                "together"
            )
        if joint is not None:
            raise InvalidInput(f"{joint}: {ALONE}")
        read_option(self.contributions, ContributionChoice, "contributions")

    def refuse_what_kinds_lack(self) -> None:
        """Refuse settings of contributions where slopes are asked for."""
        read_option(self.metric, MetricChoice, "metric")
        if isinstance(self.offset, str):
            read_option(self.offset, OffsetChoice, "offset")
        if not self.parts:
            reason = "it is of kind='contributions', and kind is 'slopes'"
            self.refuse(dict.fromkeys(("contributions", "metric"), reason))
            self.refuse({"sample_weight": _NO_BACKGROUND, "groups": _NO_GAME})
        elif self.is_made_as("shapley"):
            reason = (
                f"{self.law!r} is of slopes, and Shapley values take none; leave it "
                "out, or take contributions='slopes'"
            )
            self.refuse({"law": reason})
        elif self.is_made_as("slopes"):
            self.refuse({"sample_weight": _NO_BACKGROUND, "groups": _NO_GAME})
        main_effects = isinstance(self.offset, str) and self.offset == "main_effects"
        if self.groups is not None and main_effects:
            raise InvalidInput(
                "offset: 'main_effects' reports shares of single columns; leave it "
                "out, and groups have main effects by default"
            )


_NO_BACKGROUND: Final = (
    "it weighs the background of Shapley values, and slopes have none; leave it out"
)

_NO_GAME: Final = (
    "groups of columns are players of Shapley values, and slopes have none; leave it "
    "out, or add contributions up by explanation.grouped(groups)"
)

ALONE: Final = (
    "a row by itself is compared with fixed rows of data, where it has no meaning; "
    "leave it out, or give two rows or more to po.explain"
)


def joint_setting_of(settings: Settings) -> str | None:
    """The setting under which rows are each other's reference; None without one."""
    graph, offset, sampling = settings.graph, settings.offset, settings.sampling
    given = {
        "graph": isinstance(graph, Graph),
        "contributions": not isinstance(settings.contributions, str),
        "offset": not (offset is None or isinstance(offset, str)),
        "same_pattern": isinstance(graph, Nearest) and graph.same_pattern,
        "precision": sampling.precision is not None,
        "max_evaluations": sampling.max_evaluations is not None,
    }
    return next((name for name, is_given in given.items() if is_given), None)


class SettingsByName(TypedDict, total=False):
    """The :class:`Settings` as arguments of a call, for type checkers."""

    target: Target
    output: Output
    outcome: str | None
    sample_weight: RowNumbers
    groups: Mapping[str, Sequence[str]] | None
    scale: ColumnScale
    kind: KindChoice | None
    contributions: ContributionsLike
    metric: MetricChoice
    law: LawChoice | TextLaw
    graph: Graph | Nearest | None
    offset: OffsetLike
    robustness: float | str | None
    sampling: Sampling


_Called = TypeVar("_Called", bound=Callable[..., Any])


def takes_settings(call: _Called) -> _Called:
    """A call with the settings in its signature, each by its name and default.

    ``**settings`` of the call stands for them: :class:`SettingsByName`.
    """
    own = signature(call)
    listed = [x for x in own.parameters.values() if x.kind is not Argument.VAR_KEYWORD]
    taken = signature(Settings).parameters.values()
    called: Any = call
    called.__signature__ = own.replace(parameters=[*listed, *taken])
    return call


# ---- Rows that are explained together: what they aim at, who is alike, the optimum


MOST_STABLE = 1_000
"""Rows whose stability is computed at once: it takes two more eigenbases."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplanationProblem(ABC):
    """Rows or documents, and all that their explanation together depends on."""

    settings: CheckedSettings
    function: Function  # the model
    points: Points  # (N, D): the rows, as they are read
    labels: Labels  # their names
    progress: bool | None = None  # whether to show bars

    @property
    @abstractmethod
    def robust(self) -> PairwiseRobustness | SharedRobustness:
        """The loss of robustness, between those that are similar."""

    @property
    def weight(self) -> tuple[float | str | None, str]:
        """That of robustness, None for that at the knee; and where it comes from."""
        own = self.settings.robustness
        if isinstance(own, str) and own != KNEE:
            share = read_share(own, "robustness")
            return own, f"roughness {100.0 * share:g} % smaller"
        if own is None or own == KNEE:
            return None, "knee of the front"
        return own, "given"

    def nearest(self, known: Targets) -> Explanation:
        """The optimum for targets, with these beside it."""
        weight, _ = self.weight
        return nearest_explanation(
            known,
            self.robust,
            robustness=weight,
            metric=self.metric_of(known),
            progress=self.progress,
        )

    def metric_of(self, known: Targets) -> ColumnMetric | None:
        """How columns count; alike if None."""
        del known
        return None


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowsProblem(ExplanationProblem):
    """Rows of a table, and all that their explanation together depends on."""

    reference: Reference  # the rows that scales and laws are made of
    sizes: Array  # (D,): the scale of each feature; 0 if constant
    model: Any = None  # what the function was made of, where it has other classes
    weighted: Background | None = None  # all rows of the table, where they have weights

    @classmethod
    def of(
        cls,
        settings: CheckedSettings,
        model: Any,
        data: Any,
        X: Any,
        progress: bool | None,
    ) -> RowsProblem:
        """The reference rows X, or rows of ``data``, read as the model's table."""
        has_rows = not (data is None or isinstance(data, TableSchema))
        table = data if has_rows else X
        if table is None:
            raise InvalidInput(
                "fit: expected reference rows, X, or a table of them, Explainer(model, "
                "data=X_train)"
            )
        function, told = wrap_with_table(
            model,
            table if X is None else X,
            settings.target,
            settings.output,
            data,
            settings.sampling.batch_rows,
            settings.outcome,
        )
        rows = None
        if X is not None and X is not data:
            function = function.with_categories_of(X)
            rows = told.read(function, X, "X")
        if has_rows or rows is None:
            points, labels = told.read(function, table, "data")
        else:
            points, labels = rows
        reference = Reference.of_points(points, labels, function.schema)
        weighted = Background.weighed(settings.sample_weight, table, points)
        if rows is not None:
            points, labels = rows
        elif X is None:
            most = settings.most_reference_rows(function, reference)
            if len(points) > most:  # whatever the seed of draws: it follows from data
                rng = np.random.default_rng(0)
                chosen = np.sort(rng.choice(len(points), most, replace=False))
                points, labels = points[chosen], labels.of_positions(chosen)
        return cls(
            settings=settings,
            function=function,
            reference=reference,
            sizes=settings.sizes_of(function, reference),
            points=points,
            labels=labels,
            progress=progress,
            model=model,
            weighted=weighted,
        )

    @cached_property
    def coordinates(self) -> Array:
        """Where the rows lie, (N, M), so that distances mean something."""
        return coordinates_of(self.function, self.points, self.sizes)

    @cached_property
    def graph(self) -> Graph:
        """Who is similar: nearest neighbours, if no graph is given."""
        asked = self.settings
        if asked.given_graph is not None:
            return graph_of_rows(asked.given_graph, len(self.points))
        if asked.parts and not asked.nearest.same_pattern:
            return self.neighbours.graph
        return knn_graph(
            self.coordinates,
            self.n_neighbors,
            same_pattern=asked.nearest.same_pattern,
        )

    @cached_property
    def neighbours(self) -> RowNeighbours:
        """The rows as those that contributions are compared with."""
        return RowNeighbours(self.coordinates, self.n_neighbors)

    @property
    def n_neighbors(self) -> int:
        """How many rows each is compared with."""
        return min(self.settings.nearest.n_neighbors, len(self.points) - 1)

    @property
    def weight(self) -> tuple[float | str | None, str]:
        """By default contributions move a quarter of the way, and slopes to the knee.

        With c = 1/(6σ) and the mean degree σ, θ = 2cσ/(1 + 2cσ) = ¼ of the way from Φ
        to what the nearest rows suggest, before rows are made to add up.
        """
        if self.settings.robustness is not None or not self.settings.parts:
            return super().weight
        degree = float(self.n_neighbors)  # if no similarity fell with distance
        given, nearest = self.settings.given_graph, self.settings.nearest
        if given is not None or nearest.same_pattern:
            degree = self.graph.total / len(self.points)
        return 1.0 / (6.0 * max(degree, 1.0 / 6.0)), A_QUARTER

    @cached_property
    def robust(self) -> PairwiseRobustness:
        """Between rows that are joined by the graph, without main effects if asked."""
        N, D = self.points.shape
        shape = N, D if self.players is None else self.players.count
        robust = PairwiseRobustness(self.graph, offset=self.offset)
        if robust.offset is not None and robust.offset.shape != shape:
            owner = "X has" if self.players is None else "groups have"
            raise InvalidInput(
                f"offset: expected {N} rows × {shape[1]} columns, as {owner}, got "
                f"{' × '.join(map(str, robust.offset.shape))}"
            )
        return robust

    @property
    def uses_main_effects(self) -> bool:
        """Whether similar rows may differ in what their main effects contribute."""
        offset = self.settings.offset
        if not isinstance(offset, str):
            return False
        if offset == "main_effects" and not self.settings.parts:
            raise InvalidInput(
                "offset: main effects are parts of the output, and kind is 'slopes'; "
                "take kind='contributions', or give a table of slopes"
            )
        return self.settings.parts

    @cached_property
    def offset(self) -> Any:
        """What rows may differ in: a table, main effects that are made here, or None."""
        if not self.uses_main_effects:
            asked = self.settings.offset
            return None if isinstance(asked, str) else asked
        return self.main_effect_rule.at(self.points, self.labels)

    @cached_property
    def main_effect_rule(self) -> MainEffectRule:
        """How main effects of any row are made, over the background of contributions."""
        return self.main_effect_rule_of(self.rule)

    @staticmethod
    def main_effect_rule_of(rule: AnyRule) -> MainEffectRule:
        """That of the function and the background of a rule."""
        assert isinstance(rule, ContributionRule), "see uses_main_effects"
        names = rule.reference.labels
        return MainEffectRule.of(rule.function, rule.background, names, rule.players)

    def metric_of(self, known: Targets) -> ColumnMetric | None:
        """How columns count in contributions, by what these are; made once."""
        if known.base is None:
            return None
        if self._metrics:
            return self._metrics[0]
        self._metrics.append(self._metric_of(known.estimate.values))
        return self._metrics[0]

    @property
    def metric(self) -> ColumnMetric | None:
        """That of the contributions that were explained; None before, and of slopes."""
        return self._metrics[0] if self._metrics else None

    @cached_property
    def _metrics(self) -> list[ColumnMetric]:
        return []

    def _metric_of(self, phi: Attributions) -> ColumnMetric:
        asked = self.settings.metric
        own = isinstance(self.robust.offset, np.ndarray)
        if asked == "auto":
            of_slopes = self.settings.is_made_as("slopes")
            asked = "uniform" if of_slopes or not own else "joint"
        if asked == "effects":
            return ColumnMetric.effects(phi)
        if asked == "uniform":
            return ColumnMetric.uniform(phi)
        if not own:
            raise InvalidInput(
                "metric: 'joint' is the size of what columns do beside their own "
                "values, and offset is None; take offset='main_effects'"
            )
        assert self.robust.offset is not None, "see own"
        return ColumnMetric.joint([(phi, self.robust.offset), *self._other_classes()])

    def _other_classes(self) -> Iterator[tuple[Attributions, Attributions]]:
        """Φ and G of the other outputs of a model of several classes."""
        rule = self.rule
        if not isinstance(rule, ContributionRule):
            return
        if not self.settings.is_made_as("shapley"):
            return
        known: Any = self.function.schema
        known = self.reference.points if known is None else known
        own = self.function, self.settings.output, known
        for function in other_classes(self.model, *own):
            other = replace(rule, function=function, given_background=rule.background)
            phi = other.of(self.points, self.labels).estimate.values
            yield phi, self.main_effect_rule_of(other).at(self.points, self.labels)

    @cached_property
    def rule(self) -> AnyRule:
        """How slopes are made, or contributions."""
        asked = self.settings
        law, rng, reference = asked.law_of_columns, asked.sampling.rng, self.reference
        sampling = asked.sampling
        if not asked.parts:
            return target_rule(self.function, reference, self.sizes, law=law, rng=rng)
        return ContributionRule(
            function=self.function,
            reference=reference,
            kind=asked.contributions,
            law=law,
            rng=rng,
            draws=DrawPlan(100, 0, sampling.precision, sampling.max_evaluations),
            weighted=self.weighted,
            players=self.players,
        )

    @cached_property
    def players(self) -> Players | None:
        """Of the columns, where groups of them are one."""
        groups, names = self.settings.groups, self.reference.labels
        if groups is None:
            return None
        return Players.of(groups, names, self.points.shape[1])

    def metadata(self, points: Points) -> dict[str, Any]:
        """What an explanation says of rows (N, D): values of columns, or of groups."""
        told = self.function.metadata(points)
        return told if self.players is None else self.players.metadata(**told)

    @property
    def background_digest(self) -> str | None:
        """Of what contributions are compared with; None of slopes."""
        rule = self.rule
        return rule.background.digest if isinstance(rule, ContributionRule) else None

    def background_parameters(self) -> dict[str, Parameter]:
        """What contributions are compared with, and how far a draw moves the base."""
        rule = self.rule
        if not isinstance(rule, ContributionRule):
            return {}
        told: dict[str, Parameter] = {
            "background": f"{rule.background.in_words()}, "
            f"sha256:{rule.background.digest[:12]}"
        }
        if rule.base_error > 0.0:
            told["base error"] = rule.base_error
        if self.settings.is_made_as("shapley"):
            told["mixed rows"] = self.off_data.in_words()
        return told

    @cached_property
    def off_data(self) -> OffData | Reason:
        """How many rows that contributions are made of are far from the data."""
        rule, D = self.rule, self.points.shape[1]
        if not isinstance(rule, ContributionRule):
            return Reason("slopes are not made of mixed rows")
        own = self.players
        return OffData.of(
            self.points,
            rule.background.points,
            self.reference.points,
            lambda points: coordinates_of(self.function, points, self.sizes),
            np.arange(D) if own is None else own.of_column,
            rule.background.weights,
        )

    def main_effect_parameters(self, best: Explanation) -> dict[str, Parameter]:
        """How much of the differences of contributions follows from main effects."""
        offset = self.settings.offset
        if (
            not isinstance(offset, str) or offset != "main_effects"
        ):  # a table has no truth
            return {}
        from propopt.explaining.explainers.main_effects import main_effects_of

        rule = self.main_effect_rule
        told = self.function, self.points, self.labels, rule.background
        share = main_effects_of(*told).difference_shares(best.contributions, self.graph)
        return {"main effect": " ".join(x.sentence for x in share.findings())}

    def best(self, rule: AnyRule) -> Explanation:
        """The optimum for what the rule makes, as precisely as is asked."""
        if isinstance(rule, TargetRule):
            best = self.nearest(Targets(estimate=self._slopes(rule)))
        else:
            if self.settings.sampling.precision is not None:
                rule = replace(rule, error=self._error)
            best = self.nearest(rule.of(self.points, self.labels))
        precision = self.settings.sampling.precision
        if precision is not None and not best.target_error <= precision:
            error = "is not known" if best.target is None else best.target.in_words()
            warnings.warn(
                f"precision: a target error of {precision:.2g} was wanted: {error}; "
                "more max_evaluations would do where it is drawn",
                ImpreciseWarning,
                stacklevel=3,
            )
        return best

    def _error(self, known: Targets) -> float:
        return self.nearest(known).target_error

    def _slopes(self, rule: TargetRule) -> Estimate:
        """Slopes that are drawn on until their error costs little, where that is asked.

        What the first draws cost is said before, by default where they take long.
        """
        mean = rule.function
        if not isinstance(mean, SampledMean):
            return rule.at(self.points, self.labels)
        sampling, points, labels = self.settings.sampling, self.points, self.labels
        most = sampling.max_evaluations
        first = mean.n_samples * mean.per_draw_at(points)
        cost = cost_of(mean.function, points, labels, first)
        with cost.announced("explain: the first draws", mean.calls, self.progress):
            growing = mean.growing_at(points, labels, max_evaluations=most)
        if sampling.precision is not None:

            def error(drawn: Sample) -> float:
                return self._error(Targets(estimate=rule.scaled(drawn.estimate)))

            growing = growing.until(sampling.precision, most, error)
        return rule.scaled(growing.estimate)


def stability_in_words(best: Explanation) -> str:
    """Whether conclusions survive other weights, neighbours and draws."""
    if best.shape[0] > MOST_STABLE:
        return f"not computed for more than {MOST_STABLE:,} rows: see stability()"
    if best.program is None:
        return "not computed: columns count by a metric"
    weighed = sum(weight > 0.0 for weight in best.weights.values())
    if weighed < 2 and not is_sampled(best):
        return "nothing varies: robustness has no weight, and nothing is drawn"
    return "; ".join(x.sentence for x in best.stability().document().findings)


def note_on_others(function: Function, points: Points) -> dict[str, Parameter]:
    """Which categories of rows (N, D) data has not, as the note of an explanation."""
    schema = function.schema
    told = None if schema is None else schema.describe_new_categories(points)
    if told is None or schema is None:
        return {}
    count = int(schema.new_categories(points).any(axis=1).sum())
    noun = "row has" if count == 1 else "rows have"
    return {
        "notes": f"{count:,} {noun} categories that data has not, explained as the "
        f"model treats them: {told}"
    }


def with_note(
    parameters: Mapping[str, Parameter], note: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """What an explanation says of itself, with one note more."""
    notes = [str(own["notes"]) for own in (parameters, note) if "notes" in own]
    return {**parameters, **({"notes": "; ".join(notes)} if notes else {})}
