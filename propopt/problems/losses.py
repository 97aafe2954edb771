"""Sections of losses, of their graphs, and of baselines.

A new graph or baseline is a line of ``POINT_GRAPHS``, ``FEATURE_GRAPHS`` or
``BASELINE_SECTIONS``. A new loss has a section by its signature, and a line here if a
file needs other types or words. Other packages bring theirs by entry points of the
groups ``propopt.losses``, ``propopt.graphs`` and ``propopt.baselines``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, create_model
from sklearn.gaussian_process.kernels import RBF

from propopt import losses
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.extras import load_plugin, plugins
from propopt.base.resources import require_memory
from propopt.explaining import explainers
from propopt.explaining.explainers.main_effects import (
    MainEffects,
    main_effects_of,
)
from propopt.laws.background import N_BACKGROUND, Background
from propopt.lime import TextLaw
from propopt.lime.laws.named import law_names
from propopt.losses import Objective, PropertyLoss, graphs
from propopt.losses.graphs.grids import grid_gaussian_graph
from propopt.losses.graphs.points import PAIR_BYTES
from propopt.problems.sections import (
    KernelWidths,
    Label,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    listed_values,
    part,
    section_of,
    unshaped,
    wrong,
)
from propopt.problems.subject.subject import Subject


# ---- Sections of losses and of their graphs


class GraphSection(Section):
    """A graph of points or of features."""

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        """Make the graph for a table (n_nodes, M)."""
        return self.make(X=X, n_nodes=n_nodes)

    def conflicts(self) -> Iterator[PropoptError]:
        if vars(self).get("weights") == "uniform":
            yield from self.without_effect("uniform weights", "lengthscale")


def _graph(kind: str, made: Any, **overrides: Any) -> Any:
    """The section of a graph, with the settings of its function."""
    return section_of(
        made,
        GraphSection,
        f"{kind.title().replace('_', '')}Graph",
        without=("X", "n_nodes"),
        kind=Literal[kind],
        **overrides,
    )


_CHAIN: Final = _graph("chain", graphs.chain_graph)
_COMPLETE: Final = _graph("complete", graphs.complete_graph)
_GAUSSIAN: Final = _graph(
    "gaussian",
    graphs.gaussian_graph,
    cutoff=Annotated[float, Field(gt=0, lt=1)] | None,
)
POINT_GRAPHS: Final[tuple[type[GraphSection], ...]] = (
    _GAUSSIAN,
    _graph("grid_gaussian", grid_gaussian_graph),
    _graph("knn", graphs.knn_graph),
    _graph("cosine", graphs.cosine_graph),
    _graph("threshold", graphs.threshold_graph, threshold=Nonnegative),
    _COMPLETE,
    _CHAIN,
    *(_graph(k, load_plugin(x)) for k, x in plugins("propopt.graphs").items()),
)
FEATURE_GRAPHS: Final[tuple[type[GraphSection], ...]] = (
    _CHAIN,
    _graph("pixel", graphs.pixel_graph),
    _graph("correlation", graphs.correlation_graph),
    _graph("group", graphs.group_graph, labels=list[Label]),
    _COMPLETE,
)
PointGraph: TypeAlias = Annotated[GraphSection, OneOf("kind", POINT_GRAPHS)]
FeatureGraph: TypeAlias = Annotated[GraphSection, OneOf("kind", FEATURE_GRAPHS)]


class LossSection(Section):
    """A loss with its weight; ``name: 0.5`` is short for ``{weight: 0.5}``."""

    name: ClassVar[str]
    feature_graph: ClassVar[bool] = False
    """Whether its graph joins features, not points."""

    weight: Nonnegative = 1.0

    def build(self, subject: Subject) -> PropertyLoss:
        """Make the loss for explanations of this subject."""
        taken = signature(self.makes).parameters
        given = {
            x: _FROM_SUBJECT[x](self, subject) for x in _FROM_SUBJECT if x in taken
        }
        return self.make(**given)


# ---- Arguments of losses that come from the subject, by name


def _graph_of(section: Any, subject: Subject) -> graphs.Graph:
    if section.feature_graph:
        return section.graph.build(subject.table, subject.n_features)
    return section.graph.build(subject.coordinates, len(subject.points))


def _mean_slopes(section: Any, subject: Subject) -> MainEffects | None:
    if section.offset is None:
        return None
    function = subject.function_with_slopes
    points, labels = function.read(subject.points)
    other_rows = Background.of_points(function.read(subject.others)[0])
    other_rows = other_rows.ordered(function.schema)
    origin = "X" if subject.others is subject.points else "data that are not explained"
    background = other_rows.thinned(N_BACKGROUND)
    return main_effects_of(function, points, labels, background, origin, "gradient")


def _kernel(section: Any, subject: Subject) -> Any:
    coordinates = np.asarray(subject.coordinates)
    n_bytes = PAIR_BYTES * len(coordinates) ** 2
    require_memory(n_bytes, "a kernel of all points", "explain fewer points")
    if np.isnan(coordinates).any():
        raise InvalidInput(
            "numbers are missing, and no kernel is positive definite for distances "
            "between such rows; take pairwise_robustness, or an imputed table"
        )
    kernel = RBF(section.lengthscale)(coordinates)
    kernel[np.diag_indices_from(kernel)] += section.jitter
    return kernel


_FROM_SUBJECT: Final[Mapping[str, Callable[[Any, Subject], Any]]] = {
    "X": lambda _, subject: subject.points,
    "G": lambda _, subject: subject.estimate(subject.points),
    "values": lambda _, subject: subject.function.value(subject.points),
    "quantity": lambda _, subject: subject.function.quantity,
    "present": lambda _, subject: subject.table,
    "graph": _graph_of,
    "offset": _mean_slopes,
    "kernel_matrix": _kernel,
}
_NOT_OF_FILES: Final = (
    "X",
    "G",
    "values",
    "quantity",
    "present",
    "kernel_matrix",
    "name",
    "units",
    "perturbations",
)
_SIMILAR_POINTS: Final = (
    PointGraph,
    None,
    _GAUSSIAN.model_validate({"kind": "gaussian"}),
)


def _loss(
    made: Any,
    doc: str = "",
    *,
    called: str = "",
    **overrides: Any,
) -> type[LossSection]:
    """The section of a loss, under the default of its ``name``."""
    taken = signature(made).parameters
    if "graph" in taken:
        overrides = {"graph": _SIMILAR_POINTS, **overrides}
    section = section_of(
        made,
        LossSection,
        f"{made.__name__}Loss",
        doc,
        without=_NOT_OF_FILES,
        **overrides,
    )
    section.name = called or taken["name"].default
    section.feature_graph = overrides.get("graph") is FeatureGraph
    return section


_WRITTEN: Final[tuple[type[LossSection], ...]] = (
    _loss(losses.GradientMatching, "Σ ‖w − ∇f‖²."),
    _loss(losses.FunctionMatching, "Σ (f(x) − wᵀx)²."),
    _loss(
        losses.PairwiseRobustness,
        "Σ ‖w_n − w_n'‖² S_nn', or of what is left without main effects.",
        offset=(
            Literal["main_effects"] | None,
            "main_effects leaves out what a column's main effect gives: its mean slope "
            "over 100 rows that are not explained",
        ),
    ),
    _loss(
        losses.SharedRobustness,
        "Σ S_nn' Σ (w_nj − w_n'j)² over the words j that both documents have.",
    ),
    _loss(
        losses.KernelRobustness,
        "2 tr(Wᵀ Σ⁻¹ W) for a gaussian kernel.",
        lengthscale=Positive,
        jitter=(Nonnegative, None, 1e-8),
    ),
    _loss(
        losses.MaxDifferenceRobustness,
        "max ‖w_n − w_n'‖², or its sum over points.",
        graph=PointGraph,
    ),
    _loss(
        losses.Smoothness,
        "Σ (w_nd − w_nd')² T_dd'.",
        graph=FeatureGraph,
    ),
    _loss(losses.Sparsity, "Σ ‖w‖₁."),
)
"""Losses with other types or words in files than in Python."""


def _of_signatures() -> Iterator[type[LossSection]]:
    """Other losses of the package that need nothing but the subject and settings."""
    written = {section.makes for section in _WRITTEN}
    for public in dir(losses):
        made = getattr(losses, public)
        if made in written or not issubclass(made, PropertyLoss):
            continue
        taken = signature(made).parameters
        needed = [x for x in taken if taken[x].default is Parameter.empty]
        if "name" in taken and all(x in _FROM_SUBJECT for x in needed):
            yield _loss(made)


LOSSES: Final[tuple[type[LossSection], ...]] = (
    *_WRITTEN,
    *_of_signatures(),
    *(_loss(load_plugin(x), called=k) for k, x in plugins("propopt.losses").items()),
)


class _AnyLosses(Section):
    """The objective, with one entry for each loss."""

    of_texts: ClassVar[frozenset[str]] = frozenset({"shared_robustness"})

    def conflicts(self) -> Iterator[PropoptError]:
        if not self.losses:
            yield wrong("expected at least one loss, got none")

    @property
    def losses(self) -> dict[str, LossSection]:
        """The given losses, in the order of ``LOSSES``."""
        return {
            n: getattr(self, n) for n in type(self).model_fields if getattr(self, n)
        }

    def build(self, subject: Subject) -> Objective:
        """The weighted sum of the losses, including those with limits."""
        terms = []
        for name, loss in self.losses.items():
            with part("objective", name):
                terms.append((loss.weight, loss.build(subject)))
        with part("objective"):
            return Objective.weighed(tuple(terms))


def _optional(loss: type[LossSection]) -> Any:
    """The field of a loss: its section, only its weight, or nothing."""
    spelled = BeforeValidator(_spelled_out, json_schema_input_type=loss | Nonnegative)
    return Annotated[loss | None, spelled], None


def _spelled_out(value: Any) -> Any:
    """``{weight: value}`` for a value that is a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"weight": value}
    if not isinstance(value, dict):
        raise unshaped("a number as weight, or a mapping with settings of the loss")
    return value


if TYPE_CHECKING:
    Losses = _AnyLosses
else:
    Losses = create_model(
        "Losses",
        __base__=_AnyLosses,
        __doc__=_AnyLosses.__doc__,
        **{loss.name: _optional(loss) for loss in LOSSES},
    )


# ---- Sections of baselines; lists give one baseline for each combination


Samples: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Bins: TypeAlias = Annotated[int, Field(ge=2, le=1000)]
Lengths: TypeAlias = Annotated[list[Positive], Field(min_length=1)]
_RELATIVE = (
    "lengths are in standard deviations of the columns of data.categorical's table"
)


BANDWIDTH: Final = (
    "for documents, a hundredth of the kernel_width of lime, which is 25 by default"
)
LAW: Any = Literal[law_names()]
"""Laws of LIME by name, including those of other packages."""


class BaselineSection(Section):
    """A baseline to compare with, and its settings."""

    of_texts: ClassVar[frozenset[str]] = frozenset({"bandwidth", "first_row"})

    def build(self, *, is_text: bool = False) -> list[explainers.Baseline]:
        """The baselines of all combinations; the last listed setting varies fastest."""
        unused = self.of_tables if is_text else self.of_texts
        fields = self.settings("method", *unused)
        choices = [listed_values(value) for value in fields.values()]
        return [
            self.makes(**_with_law(self.makes, dict(zip(fields, chosen, strict=True))))
            for chosen in itertools.product(*choices)
        ]


def _with_law(made: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with the law of word deletion, if there is a bandwidth."""
    bandwidth = settings.pop("bandwidth", None)
    if bandwidth is None:
        return settings
    if made is explainers.LimePackage:
        return {**settings, "kernel_width": 100.0 * bandwidth}
    return {**settings, "law": TextLaw(bandwidth)}


def _baseline(
    made: Any, of_tables: Collection[str] = (), /, **overrides: Any
) -> type[BaselineSection]:
    """The section of a baseline; ``of_tables`` are settings for tables only."""
    section = section_of(
        made,
        BaselineSection,
        f"{made.__name__}Baseline",
        method=Literal[made.method],
        **overrides,
    )
    section.of_tables = frozenset(of_tables)
    return section


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
BASELINE_SECTIONS: Final[tuple[type[BaselineSection], ...]] = (
    _baseline(explainers.Gradient),
    _baseline(
        explainers.SmoothGrad, scale=Lengths, n_samples=Samples, relative=_RELATIVE
    ),
    _baseline(
        explainers.Lime,
        ("scale", "relative", "kernel_width"),
        without=("law",),
        bandwidth=_BANDWIDTHS,
        scale=(Lengths | None, "required for tables"),
        n_samples=Samples,
        ridge=Nonnegative,
        relative=_RELATIVE,
        first_row="for documents: the first sample is the document itself, as in lime",
    ),
    _baseline(
        explainers.LimePackage,
        ("kernel_width",),
        without=("data",),
        bandwidth=_BANDWIDTHS,
        n_samples=Samples,
    ),
    _baseline(
        explainers.ExactLime,
        ("n_bins", "weights", "law", "units", "kernel_width"),
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
        ("data", "units"),
        data=_BACKGROUND,
        units=_UNITS,
        n_permutations=Samples,
    ),
    _baseline(explainers.TreeShap, ("data",), data=_BACKGROUND),
    _baseline(explainers.ExactShap, ("data",), data=_BACKGROUND),
    *(_baseline(load_plugin(x)) for x in plugins("propopt.baselines").values()),
)
AnyBaseline: TypeAlias = Annotated[BaselineSection, OneOf("method", BASELINE_SECTIONS)]
