"""Settings of explanations, and rows that are explained jointly."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from inspect import signature
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    final,
    get_args,
)

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points
from propopt.base.checks import read_only, read_option, read_seed, read_share
from propopt.base.errors import ImpreciseWarning, InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Outcome, Reason
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
from propopt.functions.models import CalledModel, ExactModel
from propopt.functions.outputs import Output, Target
from propopt.functions.wrapping import other_classes, wrap_with_table
from propopt.laws.background import (
    MOST_ROWS,
    N_BACKGROUND,
    Background,
    Reference,
    affordable_rows,
    canonical_order,
    row_digests,
    steps_of_row,
)
from propopt.laws.draws import Sample
from propopt.laws.mixtures import Mixtures
from propopt.laws.players import Players
from propopt.losses import PairwiseRobustness, SharedRobustness
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.neighbours import N_REFERENCE, Nearest, RowNeighbours
from propopt.losses.graphs.points import Graph, knn_graph, read_graph
from propopt.proofs.optimum import Parameter
from propopt.results.explanation import Explanation
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import MOST_LINK_STEPS
from propopt.structures.kinds import has_method, name_of
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import (
    Labels,
    joined_groups,
    name_of_group,
    numbers_of_rows,
)
from propopt.tables.schema import ColumnScale, TableSchema


if TYPE_CHECKING:
    from propopt.lime.text.word_limits import TextLaw as TextLaw
else:  # tables do not need it, so it is not imported
    TextLaw = Any


# ---- The settings, declared once


KindChoice: TypeAlias = Literal["contributions", "slopes"]

GroupsChoice: TypeAlias = Literal["auto"]

OffsetChoice: TypeAlias = Literal["auto", "main_effects"]
OffsetLike: TypeAlias = Any
"""``"auto"``, ``"main_effects"``, or a table (N, D), or None."""

RowNumbers: TypeAlias = Any
"""One number for each row, a Series or an array, or None."""

_FEWEST_REFERENCE_ROWS: Final = 100

_MOST_STEPS: Final = 1e10
_MOST_PRODUCT_STEPS: Final = 1e9
"""Operations for the contributions of all reference rows: trees, other products."""

_MOST_CALLS: Final = 500_000
"""Rows of calls of a black-box model for all reference rows."""

_NEAREST: Final = Nearest()

KNEE: Final = "knee"
A_QUARTER: Final = "a quarter of the way to the nearest rows"


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of Monte Carlo sampling: the seed, the precision and the limits.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        The seed of all draws; None is seed 0. Background and reference rows do not
        depend on it.
    precision : float, optional
        Draw until ``sampling_excess`` is at most this, such as 0.02. If the first draws
        take long, a message reports their cost.
    max_evaluations : int, optional
        The largest number of rows for which draws call the model.
    batch_rows : int, optional
        The largest number of rows in one call of the model.

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
    """The settings of an :class:`propopt.Explainer`, which documents each of them.

    :func:`propopt.explain`, :func:`propopt.compare` and problem files use the same
    names and defaults.
    """

    target: Target = None
    output: Output = "auto"
    outcome: Outcome | None = None
    sample_weight: RowNumbers = None
    groups: Mapping[str, Sequence[str]] | GroupsChoice | None = None
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
                f"sampling: expected a propopt.Sampling, got {self.sampling!r}; write "
                "sampling=po.Sampling(rng=0) for a seed"
            )
        if not (self.graph is None or isinstance(self.graph, Nearest)):
            read_graph(self.graph)  # raises if it is no graph


@final
@dataclass(eq=False, kw_only=True)
class CheckedSettings(Settings):
    """Validated settings, with a seed in place of a generator."""

    @classmethod
    def of(cls, settings: Settings) -> CheckedSettings:
        """A copy of the settings of an explainer, which may change afterwards."""
        values = {
            field.name: getattr(settings, field.name) for field in fields(Settings)
        }
        sampling = settings.sampling
        values["sampling"] = replace(sampling, rng=read_seed(sampling.rng))
        read_option(settings.metric, MetricChoice, "metric")
        if settings.kind is not None:
            read_option(settings.kind, KindChoice, "kind")
        for name, words in (
            ("groups", GroupsChoice),
            ("offset", OffsetChoice),
            ("contributions", ContributionChoice),
        ):
            if isinstance(values[name], str):
                read_option(values[name], words, name)
        return cls(**values)

    @property
    def seed(self) -> int:
        """The seed of all draws, as an integer."""
        return read_seed(self.sampling.rng)

    @property
    def nearest(self) -> Nearest:
        """The numbers of neighbours and reference rows, unless a graph is given."""
        return self.graph if isinstance(self.graph, Nearest) else _NEAREST

    @property
    def given_graph(self) -> Graph | None:
        """The graph of the rows of X, or None if none is given."""
        return self.graph if isinstance(self.graph, Graph) else None

    @property
    def law_of_columns(self) -> LawChoice:
        """The law for slopes of a table."""
        assert isinstance(self.law, str), "see RowsProblem.inapplicable"
        return self.law

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse settings that differ from their defaults, each with a reason."""
        for name, reason in reasons.items():
            value = getattr(self, name)
            default = getattr(Settings, name)
            same = isinstance(value, str | Sampling) and value == default
            if not (value is default or same):
                raise InvalidInput(f"{name}: {reason}")

    @property
    def parts(self) -> bool:
        """Whether attributions of a table are contributions, not slopes."""
        return self.kind in (None, "contributions")

    @property
    def reports_main_effects(self) -> bool:
        """Whether to report the share of differences that main effects explain."""
        return isinstance(self.offset, str) and self.offset == "main_effects"

    def is_made_as(self, kind: ContributionChoice) -> bool:
        """Whether contributions are computed by a method, not given as a table."""
        return isinstance(self.contributions, str) and self.contributions == kind

    def most_reference_rows(self, function: Function, reference: Reference) -> int:
        """The largest number of reference rows; fewer than 500 if a row is costly."""
        requested = self.nearest.n_reference
        if requested != N_REFERENCE:
            return requested
        n_columns = reference.points.shape[1]
        if not self.parts or not self.is_made_as("shapley") or n_columns < 2:
            return N_REFERENCE
        products = function.products_in(n_columns)
        if isinstance(products, Reason):  # orders in both directions, main effects
            left = _MOST_CALLS - len(reference.points)
            most = left / (N_BACKGROUND * (3 * n_columns - 2))
            costs = [linked.steps_of_row(N_BACKGROUND) for linked in function.links]
            if costs and max(costs) <= MOST_LINK_STEPS:
                most = min(most, _MOST_STEPS / max(costs))
        else:
            rows = affordable_rows(products, len(reference.points))
            steps = _MOST_STEPS if isinstance(products, Boxes) else _MOST_PRODUCT_STEPS
            most = steps / max(steps_of_row(products, rows), 1.0)
        return int(np.clip(most, _FEWEST_REFERENCE_ROWS, N_REFERENCE))

    def sizes_of(self, function: Function, reference: Reference) -> Array:
        """The scale of each column; winsorised for contributions."""
        sizes = sizes_of(function, reference, self.scale)
        is_std = isinstance(self.scale, str) and self.scale == "std"
        return (
            winsorised(function, reference, sizes) if self.parts and is_std else sizes
        )

    def refuse_joint_settings(self) -> None:
        """Refuse settings that only rows or documents explained jointly can have."""
        joint = joint_setting_of(self)
        if joint == "contributions":
            raise InvalidInput(
                "contributions: expected 'shapley' or 'slopes', which an Explainer can "
                "compute for new rows, got a table; po.explain(model, X, "
                "contributions=table) explains the rows of a table"
            )
        if joint is not None:
            raise InvalidInput(f"{joint}: {ALONE}")


ALONE: Final = (
    "it applies only to rows that are explained jointly; leave it out, or give "
    "po.explain two rows or more without data"
)


def joint_setting_of(settings: Settings) -> str | None:
    """The setting that requires rows to be explained jointly; None without one."""
    graph = settings.graph
    offset = settings.offset
    sampling = settings.sampling
    given = {
        "graph": isinstance(graph, Graph),
        "contributions": not isinstance(settings.contributions, str),
        "offset": not (offset is None or isinstance(offset, str)),
        "same_pattern": isinstance(graph, Nearest) and graph.same_pattern,
        "precision": sampling.precision is not None,
        "max_evaluations": sampling.max_evaluations is not None,
    }
    return next((name for name, is_given in given.items() if is_given), None)


_P = ParamSpec("_P")
_Arguments = TypeVar("_Arguments")
_Result = TypeVar("_Result")


def takes(
    arguments: Callable[_P, _Arguments],
) -> Callable[[Callable[[_Arguments], _Result]], Callable[_P, _Result]]:
    """Give a function of one dataclass the parameters of that dataclass.

    So a setting is declared once, and type checkers and ``help`` show it wherever it is
    an argument.
    """

    def taking(call: Callable[[_Arguments], _Result]) -> Callable[_P, _Result]:
        @wraps(call)
        def called(*args: _P.args, **named: _P.kwargs) -> _Result:
            return call(arguments(*args, **named))

        returned = signature(call).return_annotation
        made: Any = called
        made.__annotations__ = {"return": returned}
        made.__signature__ = signature(arguments).replace(return_annotation=returned)
        return called

    return taking


# ---- Rows that are explained jointly: targets, similarity, optimum


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplanationProblem(ABC):
    """Rows or documents with all inputs of their joint explanation."""

    settings: CheckedSettings
    function: Function  # the model
    points: Points  # (N, D): the encoded rows
    labels: Labels  # the names of rows and columns
    progress: bool | None = None  # whether to show bars

    @abstractmethod
    def margins(self, base_margin: RowNumbers, X: Any) -> Array | None:
        """The base margins (m,) of rows X to explain; None without.

        They are refused for outputs that are no margin, or may be none.
        """

    @property
    @abstractmethod
    def robust(self) -> PairwiseRobustness | SharedRobustness:
        """The loss of robustness between similar rows or documents."""

    @property
    def weight(self) -> tuple[float | str | None, str]:
        """The weight of robustness (None: at the knee), and its rule in words."""
        robustness = self.settings.robustness
        if isinstance(robustness, str) and robustness != KNEE:
            share = read_share(robustness, "robustness")
            return robustness, f"roughness {100.0 * share:g} % smaller"
        if robustness is None or robustness == KNEE:
            return None, "knee of the trade-off curve"
        return robustness, "given"

    def nearest(
        self, targets: Targets, metric: ColumnMetric | None = None
    ) -> Explanation:
        """The optimum for some targets; without a metric columns have equal weights."""
        weight, _ = self.weight
        return nearest_explanation(
            targets,
            self.robust,
            robustness=weight,
            metric=metric,
            progress=self.progress,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowsProblem(ExplanationProblem):
    """Rows of a table with all inputs of their joint explanation."""

    reference: Reference  # the rows that scales and laws use
    sizes: Array  # (D,): the scale of each column; 0 if constant
    model: Any = None  # the wrapped model, for the outputs of its other classes
    # all rows of the table, if they have weights or are more than the reference
    whole: Background | None = None
    # rows that replace unknown columns; by default as many as can be afforded
    background: Background | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows of the table, of which the rule has drawn its background."""
        _ = self.rule
        return {**vars(self), "whole": None}

    @classmethod
    def of(
        cls,
        settings: CheckedSettings,
        model: Any,
        data: Any,
        X: Any,
        progress: bool | None,
    ) -> RowsProblem:
        """The problem of the reference rows X, or of rows of ``data``."""
        settings.refuse(cls.inapplicable(settings))
        has_rows = not (data is None or isinstance(data, TableSchema))
        table = data if has_rows else X
        if table is None:
            raise InvalidInput(
                "fit: expected reference rows X, or a table such as Explainer(model, "
                "data=X_train)"
            )
        function, model_table = wrap_with_table(
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
            rows = model_table.read(function, X, "X")
        if has_rows or rows is None:
            points, labels = model_table.read(function, table, "data")
        else:
            points, labels = rows
        order = canonical_order(row_digests(points, function.schema))
        reference = Reference.of_points(points, labels, function.schema, order)
        whole = Background.weighed(settings.sample_weight, table, points)
        if whole is not None:
            whole = whole.ordered(function.schema)
        elif settings.parts and len(points) > MOST_ROWS:
            whole = Background.of_points(points[order])
        if rows is not None:
            points, labels = rows
        elif X is None:
            first = order[: settings.most_reference_rows(function, reference)]
            points = read_only(points[first])
            labels = labels.of_positions(first)
        return cls(
            settings=settings,
            function=function,
            reference=reference,
            sizes=settings.sizes_of(function, reference),
            points=points,
            labels=labels,
            progress=progress,
            model=model,
            whole=whole,
        ).with_groups()

    @staticmethod
    def inapplicable(settings: CheckedSettings) -> Mapping[str, str]:
        """Settings of documents, and of other kinds of attributions."""
        reasons = dict[str, str]()
        is_shapley = settings.parts and settings.is_made_as("shapley")
        if not settings.parts or settings.is_made_as("slopes"):
            reasons["sample_weight"] = (
                "it weights the background of Shapley values, and slopes have none; "
                "leave it out"
            )
            reasons["groups"] = (
                "groups of columns are players of Shapley values, and slopes have "
                "none; leave it out, or sum contributions by "
                "explanation.grouped(groups)"
            )
        if not settings.parts:
            other_kind = "it is for kind='contributions', and kind is 'slopes'"
            reasons |= dict.fromkeys(("contributions", "metric"), other_kind)
        if not isinstance(settings.law, str):
            reasons["law"] = (
                "a TextLaw is for documents, and X is a table of rows; expected one "
                f"of {', '.join(get_args(LawChoice))}, got {settings.law!r}"
            )
        elif is_shapley:
            reasons["law"] = (
                f"{settings.law!r} is for slopes, and Shapley values have no law; "
                "leave it out, or give contributions='slopes'"
            )
        if settings.reports_main_effects and not settings.parts:
            reasons["offset"] = (
                "main effects are contributions, which cannot be subtracted from "
                "slopes; give kind='contributions', or a table of slopes as offset"
            )
        elif settings.reports_main_effects and settings.groups is not None:
            reasons["offset"] = (
                "'main_effects' reports shares of single columns, not of groups; "
                "leave it out, as groups have main effects by default"
            )
        return reasons

    def margins(self, base_margin: RowNumbers, X: Any) -> Array | None:
        if base_margin is None:
            return None
        function = self.function
        if function.quantity.kind == "probability":
            raise InvalidInput(
                "base_margin: it is added to margins, and the output explained is a "
                "probability; give output='log_odds'"
            )
        if not self.settings.parts:
            raise InvalidInput(
                "base_margin: margins are added to the base value of contributions, "
                "and slopes have no base value; leave base_margin out"
            )
        points, _ = function.with_categories_of(X).read(X, "X")
        margins = numbers_of_rows(base_margin, X, len(points), "base_margin", "X")
        if not isinstance(function, CalledModel | ExactModel):
            return margins  # of a formula or a module
        structure = function.structure
        if structure is None:
            return margins  # of a module with numerical slopes
        model = structure.model
        owner = getattr(model.estimator, "__self__", None)
        if has_method(owner, "predict"):
            raise InvalidInput(
                f"base_margin: {model.name} of {name_of(owner)} may have a link, and "
                "an intercept that margins replace; give the fitted model itself"
            )
        if not model.methods:
            return margins  # of a function
        if structure.output == "value" and not self._is_sum:
            remedy = (
                "give output='margin'"
                if model.margin is not None
                else "for a log link, explain lambda X: np.log(model.predict(X))"
            )
            raise InvalidInput(
                "base_margin: it is added to margins, and predictions of "
                f"{model.name} may have a link such as exp; {remedy}"
            )
        changes = structure.with_base_margins(margins)
        if isinstance(changes, Reason):
            raise InvalidInput(f"base_margin: {changes.reason}")
        return changes

    @property
    def _is_sum(self) -> bool:
        """Whether the output is a sum of functions of its columns, or of trees."""
        read = self.function.products_in(self.points.shape[1])
        if isinstance(read, Boxes):
            return True  # a product may be exp of a sum
        return isinstance(read, SumOfProducts) and read.lengths.max(initial=0) <= 1

    @cached_property
    def coordinates(self) -> Array:
        """Coordinates (N, M) of the rows, for distances."""
        return coordinates_of(self.function, self.points, self.sizes)

    @cached_property
    def graph(self) -> Graph:
        """The graph of similar rows: nearest neighbours, if none is given."""
        settings = self.settings
        if settings.given_graph is not None:
            return graph_of_rows(settings.given_graph, len(self.points))
        if settings.parts and not settings.nearest.same_pattern:
            return self.neighbours.graph
        return knn_graph(
            self.coordinates,
            self.n_neighbors,
            same_pattern=settings.nearest.same_pattern,
        )

    @cached_property
    def neighbours(self) -> RowNeighbours:
        """The nearest neighbours of rows, for contributions."""
        return RowNeighbours(self.coordinates, self.n_neighbors)

    @cached_property
    def n_neighbors(self) -> int:
        """The number of neighbours of each row."""
        return min(self.settings.nearest.n_neighbors, len(self.points) - 1)

    @cached_property
    def weight(self) -> tuple[float | str | None, str]:
        """The weight of robustness, and its rule in words.

        Contributions have c = 1/(6σ) by default, with the mean degree σ. Before
        completeness they then move θ = 2cσ/(1 + 2cσ) = ¼ of the way from Φ to the value
        that the nearest rows suggest. Slopes take the knee.
        """
        if self.settings.robustness is not None or not self.settings.parts:
            return super().weight
        degree = float(self.n_neighbors)  # for similarities of one
        if self.settings.given_graph is not None or self.settings.nearest.same_pattern:
            degree = self.graph.total / len(self.points)
        return 1.0 / (6.0 * max(degree, 1.0 / 6.0)), A_QUARTER

    @cached_property
    def robust(self) -> PairwiseRobustness:
        """The loss of robustness on the graph, without main effects if requested."""
        N, D = self.points.shape
        shape = N, D if self.players is None else self.players.count
        robust = PairwiseRobustness(self.graph, offset=self.offset)
        if robust.offset is not None and robust.offset.shape != shape:
            noun = "X" if self.players is None else "groups"
            raise InvalidInput(
                f"offset: expected {N} rows × {shape[1]} columns, as for {noun}, got "
                f"{' × '.join(map(str, robust.offset.shape))}"
            )
        return robust

    @cached_property
    def offset(self) -> Any:
        """G (N, D): a table, main effects computed here, or None."""
        offset = self.settings.offset
        if not isinstance(offset, str):
            return offset
        if not self.settings.parts:
            return None
        return self.main_effect_rule.at(self.points, self.labels)

    @property
    def main_effect_rule(self) -> MainEffectRule:
        """The rule for main effects of any row, over the background."""
        assert isinstance(self.rule, ContributionRule), "see offset"
        return self.rule.main_effects

    def metric_of(self, targets: Targets) -> ColumnMetric | None:
        """The metric of contributions; None for slopes."""
        if targets.base is None:
            return None
        phi = targets.estimate.values
        metric = self.settings.metric
        G = self.robust.offset
        if metric == "auto":
            of_slopes = self.settings.is_made_as("slopes")
            metric = "uniform" if of_slopes or G is None else "joint"
        used = phi if G is None else G
        if metric == "effects":
            return ColumnMetric.effects(phi, used)
        if metric == "uniform":
            return ColumnMetric.uniform(phi, used)
        if G is None:
            raise InvalidInput(
                "metric: 'joint' scales columns by their interactions beyond main "
                "effects; it needs offset='main_effects', got None"
            )
        return ColumnMetric.joint([(phi, G), *self._other_classes()])

    def _other_classes(self) -> Iterator[tuple[Attributions, Attributions]]:
        """Φ and G for the other classes of a classifier."""
        rule = self.rule
        if not isinstance(rule, ContributionRule):
            return
        if not self.settings.is_made_as("shapley"):
            return
        data: Any = self.function.schema
        data = self.reference.points if data is None else data
        for function in other_classes(
            self.model, self.function, self.settings.output, data
        ):
            other = replace(rule, function=function, given_background=rule.background)
            phi = other.of(self.points, self.labels).estimate.values
            yield phi, other.main_effects.at(self.points, self.labels)

    @cached_property
    def rule(self) -> AnyRule:
        """The rule for targets: slopes or contributions.

        The structure of a function with contributions is compared at the rows.
        """
        settings = self.settings
        law = settings.law_of_columns
        rng = settings.sampling.rng
        reference = self.reference
        sampling = settings.sampling
        if not settings.parts:
            return target_rule(self.function, reference, self.sizes, law=law, rng=rng)
        rule = ContributionRule(
            function=self.function,
            reference=reference,
            kind=settings.contributions,
            law=law,
            rng=rng,
            draws=DrawPlan(100, 0, sampling.precision, sampling.max_evaluations),
            given_background=self.background,
            table=self.whole,
            players=self.players,
            progress=self.progress,
        )
        rule.checked.at(self.points, reference.labels.of_columns())
        return rule

    @cached_property
    def players(self) -> Players | None:
        """The players of the game, if groups of columns are players."""
        groups = self.settings.groups
        if groups is None:
            return None
        assert not isinstance(groups, str), "see with_groups"
        return Players.of(groups, self.reference.labels, self.points.shape[1])

    def metadata(self, points: Points) -> dict[str, Any]:
        """Fields of an explanation with the values of rows (N, D)."""
        metadata = self.function.metadata(points)
        return metadata if self.players is None else self.players.metadata(**metadata)

    @property
    def background_digest(self) -> str | None:
        """The digest of the background of contributions; None for slopes."""
        rule = self.rule
        return rule.background.digest if isinstance(rule, ContributionRule) else None

    def background_parameters(self) -> dict[str, Parameter]:
        """Parameters that describe the background of contributions."""
        rule = self.rule
        if not isinstance(rule, ContributionRule):
            return {}
        parameters: dict[str, Parameter] = {
            "background": f"{rule.background.in_words()}, "
            f"sha256:{rule.background.digest[:12]}"
        }
        if n_leaves := rule.n_streamed:
            parameters["tables"] = f"made anew in each call, for {n_leaves:,} leaves"
        if isinstance(groups := self.settings.groups, Mapping):
            parameters["groups"] = "; ".join(map(", ".join, groups.values()))
        return parameters

    def never_seen(
        self, phi: Attributions | None
    ) -> tuple[dict[str, Parameter], tuple[tuple[str, ...], ...]]:
        """Parameters on mixtures that data never has, and the groups they make.

        Shapley values (n, P) of rows say which players are used: columns of others are
        not mixed. Other attributions have no mixtures.
        """
        if phi is None or not self.settings.is_made_as("shapley"):
            return {}, ()
        assert isinstance(self.rule, ContributionRule), "they are contributions"
        background = self.rule.background
        names = self.reference.names
        units = names if self.players is None else self.players.names
        of_column = (
            np.arange(len(names)) if self.players is None else self.players.of_column
        )
        used = np.flatnonzero((phi != 0.0).any(axis=0)[of_column])
        mixtures = self._mixtures(used)
        if isinstance(mixtures, Reason):
            return {"mixtures never seen": mixtures.reason}, ()
        share, worst = mixtures.never_seen(
            background.points[:, used],
            np.unique(of_column[used], return_inverse=True)[1],
            background.weights if background.is_whole else None,
        )
        parameters: dict[str, Parameter] = {"mixtures never seen": share}
        if worst:
            columns = [names[used[j]] for j in worst]
            parameters["never together"] = name_of_group(columns, "with")
        unit_of = {name: units[k] for name, k in zip(names, of_column, strict=True)}
        groups = [[names[used[j]] for j in group] for group in mixtures.groups()]
        return parameters, joined_groups(groups, unit_of)

    def _mixtures(self, columns: Indices) -> Mixtures | Reason:
        """The mixtures of some columns of the table."""
        is_category = np.array([count is not None for count in self.reference.n_codes])
        return Mixtures.of(self.reference.points[:, columns], is_category[columns])

    def with_groups(self) -> RowsProblem:
        """The problem with the groups of columns that data has, if these are wanted."""
        if not isinstance(self.settings.groups, str):
            return self
        names = self.reference.names
        read = self.function.products_in(len(names))
        parts = self.function.links if isinstance(read, Reason) else (read,)
        columns = [part.columns for part in parts] or [np.arange(len(names))]
        used = np.unique(np.concatenate(columns))
        mixtures = self._mixtures(used)
        groups = [] if isinstance(mixtures, Reason) else mixtures.groups()
        members = [[names[used[j]] for j in group] for group in groups]
        named = {name_of_group(group): group for group in members}
        return replace(self, settings=replace(self.settings, groups=named or None))

    def main_effect_parameters(self, best: Explanation) -> dict[str, Parameter]:
        """The share of differences that main effects explain, as a parameter."""
        if not self.settings.reports_main_effects:
            return {}
        from propopt.explaining.explainers.main_effects import main_effects_of

        share = main_effects_of(
            self.function, self.points, self.labels, self.main_effect_rule.background
        ).difference_shares(best.contributions, self.graph)
        return {name: x for name, x in share.numbers.items() if x == x}

    def best(self) -> tuple[Explanation, ColumnMetric | None]:
        """The optimum for the targets of the rule, to the requested precision.

        With its metric, which the first targets determine.
        """
        rule = self.rule
        precision = self.settings.sampling.precision
        metric: ColumnMetric | None = None

        def optimum(targets: Targets) -> Explanation:
            nonlocal metric
            metric = metric or self.metric_of(targets)
            return self.nearest(targets, metric)

        if isinstance(rule, TargetRule):
            best = optimum(Targets(estimate=self._slopes(rule)))
        else:
            if precision is not None:
                rule = replace(rule, error=lambda x: optimum(x).sampling_excess)
            best = optimum(rule.of(self.points, self.labels))
        if precision is not None and not best.sampling_excess <= precision:
            source = "" if best.target is None else f" ({best.target.source})"
            warnings.warn(
                f"precision: expected a sampling_excess, a share of squares, of "
                f"{precision:.2g}, got {best.sampling_excess:.2g}{source}; "
                "give more max_evaluations if the target is sampled",
                ImpreciseWarning,
                stacklevel=3,
            )
        return best, metric

    def _slopes(self, rule: TargetRule) -> Estimate:
        """Slopes, sampled until the requested precision if they are sampled.

        The cost of the first draws is announced if they take long.
        """
        mean = rule.function
        if not isinstance(mean, SampledMean):
            return rule.at(self.points, self.labels)
        sampling = self.settings.sampling
        points = self.points
        labels = self.labels
        most = sampling.max_evaluations
        first = mean.n_samples * mean.per_draw_at(points)
        cost = cost_of(mean.function, points, labels, first)
        with cost.announced("explain: the first draws", mean.calls, self.progress):
            growing = mean.growing_at(points, labels, max_evaluations=most)
        if sampling.precision is not None:

            def error(drawn: Sample) -> float:
                estimate = rule.scaled(drawn.estimate)
                return self.nearest(Targets(estimate=estimate)).sampling_excess

            growing = growing.until(sampling.precision, most, error)
        return rule.scaled(growing.estimate)
