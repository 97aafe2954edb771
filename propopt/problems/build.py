"""From a checked problem file to trade-offs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from propopt import graphs, losses
from propopt.errors import ProblemFileError
from propopt.explainers import BASELINES, Baseline
from propopt.functions import Function
from propopt.graphs.grids import grid_gaussian_graph
from propopt.losses import Objective, PropertyLoss
from propopt.problems import losses as spec
from propopt.problems.checking import (
    OF_THE_FUNCTION,
    check_formula,
    check_schema,
    check_tied,
    listed,
)
from propopt.problems.schema import AnyBaseline, ProblemSchema
from propopt.problems.setting import Inductive, Setting, Transductive
from propopt.problems.source import Source, read_schema
from propopt.problems.tables import (
    Subject,
    check_explained,
    first_points,
    read_explained,
)
from propopt.results.explanation import Explanation
from propopt.tables.names import Labels, read_table
from propopt.threads import threads_of_run
from propopt.tradeoffs.sweep import sweep
from propopt.tradeoffs.table import TradeOffs


FIRST_ROWS = 1_000
"""Of a table, that a check reads."""


def read_problem(path: str | Path) -> Problem:
    """Read and check a problem file; nothing is computed yet.

    Raises
    ------
    ProblemFileError
        ``file:line: path.to.key: what came, what would do``, one line per mistake.
    """
    source = Source.read(path)
    problem = Problem(source, read_schema(source))
    problem.check()
    return problem


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem file whose content is valid.

    Parameters
    ----------
    source : Source
        The file, for messages.
    schema : ProblemSchema
        Its content.
    """

    source: Source
    schema: ProblemSchema

    @property
    def name(self) -> str:
        """What the files written are called."""
        return self.schema.name or self.source.path.stem

    @property
    def files(self) -> list[Path]:
        """What is read: the problem file, and its table if that is a CSV."""
        path, csv = self.source.path, self.schema.data.csv
        return [path] if csv is None else [path, path.parent / csv]

    @cached_property
    def _explained(self) -> Subject:
        return read_explained(self.schema, self.source)

    @property
    def points(self) -> Any:
        """X, an array or a DataFrame (N, D)."""
        return self._explained.points

    @property
    def function(self) -> Function:
        """The function to explain."""
        return self._explained.function

    @cached_property
    def coordinates(self) -> Any:
        """Where the points lie, (N, M): X, with categories one-hot over √2."""
        columns = self._explained.columns
        if columns is None:
            return self.points
        return columns.coordinates(self.points, scale=None)

    @property
    def n_features(self) -> int:
        """How many attributions each point gets."""
        columns = self._explained.columns
        return self.points.shape[1] if columns is None else len(columns.names)

    @cached_property
    def losses(self) -> dict[str, PropertyLoss]:
        """All losses that the file names, weighed or limited."""
        return {name: self._loss(name) for name in self.schema.objective.given}

    @property
    def setting(self) -> Setting:
        """When the inputs are known: all at once, or later."""
        if self.schema.setting == "transductive":
            return Transductive()
        return Inductive(self.schema, self.source, self._explained, self.losses)

    @property
    def objective(self) -> Objective:
        """The weighted losses."""
        given, losses = self.schema.objective.given, self.losses
        terms = [
            (given[name].weight, loss)
            for name, loss in losses.items()
            if name not in self.schema.limits
        ]
        with self.source.blaming("objective"):
            return Objective(tuple(terms))

    @property
    def weights(self) -> dict[str, list[float]]:
        """The weights to sweep, by loss name."""
        return {name: listed(values) for name, values in self.schema.sweep.items()}

    @property
    def limits(self) -> dict[PropertyLoss, list[float]]:
        """The limits to sweep, by loss."""
        given = self.schema.limits.items()
        return {self.losses[name]: listed(values) for name, values in given}

    @property
    def swept(self) -> list[str]:
        """The losses whose weight, or limit and so multiplier, varies."""
        return [*self.schema.sweep, *self.schema.limits]

    @property
    def axes(self) -> tuple[str, str]:
        """The losses on the axes of the plot."""
        if self.schema.plot is not None:
            return self.schema.plot.x, self.schema.plot.y
        first, second, *_ = (*self.losses, *self.losses)
        return first, second

    def explainers(self) -> list[Baseline]:
        """The baselines, one for each combination of listed settings."""
        return [
            explainer
            for place, baseline in enumerate(self.schema.baselines)
            for explainer in self._explainers(place, baseline)
        ]

    def baselines(self) -> Iterator[Explanation]:
        """The explanations of the baselines, each made when it is asked for."""
        for place, baseline in enumerate(self.schema.baselines):
            for explainer in self._explainers(place, baseline):
                with self.source.blaming("baselines", place):
                    made = explainer.explain(
                        self.function, self.points, rng=self.schema.seed, progress=False
                    )
                yield made

    def sweep(
        self,
        baselines: Iterable[Explanation] = (),
        *,
        solver: str | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> TradeOffs:
        """Solve for all weights and limits of the file, beside these baselines.

        In the inductive setting explanations that were made without the new inputs come
        before the baselines.
        """
        with threads_of_run(self._explained.n_rows):
            trade_offs = sweep(
                self.objective,
                self.weights,
                baselines,
                limits=self.limits,
                solver=solver or self.schema.solver,
                tolerance=self.schema.tolerance,
                n_jobs=n_jobs,
                progress=progress,
            )
            return self.setting.complete(trade_offs)

    def check(self) -> None:
        """Refuse what can be seen to fail without reading or computing anything.

        Raises
        ------
        ProblemFileError
            For a name of no loss or solver, settings that a baseline cannot have,
            weights that are all zero at once, and too many of them.
        """
        check_schema(self.schema, self.source)
        self.explainers()

    def check_data(self) -> None:
        """Refuse what :meth:`sweep` would, as far as the first rows of a table show.

        Its headers are read, the number of its rows, its target, and the values of
        these rows; a formula is evaluated at as many points. Nothing is fitted.

        Raises
        ------
        ProblemFileError
            For tables, columns, targets and outputs that cannot be, sizes that do not
            fit each other, formulas that are not finite, and an objective that does
            not say how many points there are.
        """
        rows = check_explained(self.schema, self.source, FIRST_ROWS)
        check_tied(self.schema, self.source)
        if self.schema.function is not None:
            points = first_points(self.schema, rows, FIRST_ROWS)
            check_formula(self.schema, self.schema.function, points, self.source)

    def check_all_data(self) -> None:
        """The same with all rows, and all losses that need no fitted model."""
        check_tied(self.schema, self.source)
        for name in self.schema.objective.given:
            if name not in OF_THE_FUNCTION or self.schema.function is not None:
                self._loss(name)
        _ = self.points

    def _explainers(self, place: int, baseline: AnyBaseline) -> Iterator[Baseline]:
        for settings in _settings(baseline):
            with self.source.blaming("baselines", place):
                explainer = BASELINES[baseline.method](**settings)
            yield explainer

    def _loss(self, name: str) -> PropertyLoss:
        with self.source.blaming("objective", name):
            return self._loss_of(self.schema.objective.given[name])

    def _loss_of(self, loss: spec.Loss) -> PropertyLoss:
        places = self.coordinates
        match loss:
            case spec.GradientMatchingLoss():
                G = self.function.gradient(self.points)
                return losses.GradientMatching(G, loss.norm)
            case spec.FunctionMatchingLoss():
                return self._function_matching(loss)
            case spec.PairwiseRobustnessLoss():
                return losses.PairwiseRobustness(point_graph(loss.graph, places))
            case spec.KernelRobustnessLoss():
                kernel = RBF(loss.lengthscale)(np.asarray(places))
                kernel[np.diag_indices_from(kernel)] += loss.jitter
                return losses.KernelRobustness(kernel, mean=loss.mean)
            case spec.MaxDifferenceRobustnessLoss():
                return losses.MaxDifferenceRobustness(
                    point_graph(loss.graph, places), loss.aggregate, loss.norm
                )
            case spec.SmoothnessLoss():
                return losses.Smoothness(
                    feature_graph(loss.graph, self.points, self.n_features)
                )
            case spec.SparsityLoss():
                return losses.Sparsity()
        raise ProblemFileError(f"no loss for {type(loss).__name__}")

    def _function_matching(self, loss: spec.FunctionMatchingLoss) -> PropertyLoss:
        values = self.function.value(self.points)
        if loss.reference is None:
            return losses.FunctionMatching(self.points, values)
        names = Labels(features=read_table(self.points, "X")[1].features)
        value = self.function.value(names.table(np.array([loss.reference])))
        reference = (loss.reference, float(value[0]))
        return losses.FunctionMatching(self.points, values, reference)


def point_graph(graph: Any, X: Any) -> graphs.Graph:
    """The graph of points that a file describes."""
    match graph:
        case spec.GaussianGraph():
            return graphs.gaussian_graph(X, graph.lengthscale, cutoff=graph.cutoff)
        case spec.GridGaussianGraph():
            return grid_gaussian_graph(X, graph.lengthscale)
        case spec.KnnGraph():
            return graphs.knn_graph(
                X,
                graph.n_neighbors,
                weights=graph.weights,
                lengthscale=graph.lengthscale,
            )
        case spec.ThresholdGraph():
            return graphs.threshold_graph(X, graph.threshold)
        case spec.CompleteGraph():
            return graphs.complete_graph(len(X))
        case _:
            return graphs.chain_graph(len(X))


def feature_graph(graph: Any, X: Any, n_features: int) -> graphs.Graph:
    """The graph of features that a file describes."""
    match graph:
        case spec.PixelGraph():
            return graphs.pixel_graph(graph.height, graph.width)
        case spec.CorrelationGraph():
            return graphs.correlation_graph(X)
        case spec.GroupGraph():
            return graphs.group_graph(graph.labels)
        case spec.CompleteGraph():
            return graphs.complete_graph(n_features)
        case _:
            return graphs.chain_graph(n_features)


def _settings(baseline: AnyBaseline) -> Iterator[dict[str, Any]]:
    """All combinations of the settings that are lists."""
    fields = {k: v for k, v in dict(baseline).items() if k != "method"}
    choices = [v if isinstance(v, list) else [v] for v in fields.values()]
    for combination in itertools.product(*choices):
        yield dict(zip(fields, combination, strict=True))
