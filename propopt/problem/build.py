"""From a checked problem file to trade-offs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from propopt import graphs, losses
from propopt.errors import InvalidInput, ProblemFileError
from propopt.explainers import EXPLAINERS, Explainer
from propopt.explanation import Explanation
from propopt.functions import Function
from propopt.losses import Objective, PropertyLoss
from propopt.problem import schema as spec
from propopt.problem.reading import Source, read_schema
from propopt.problem.tables import points_and_function
from propopt.solvers import find_solver
from propopt.tradeoffs import TradeOffs, sweep


def read_problem(path: str | Path) -> Problem:
    """Read and check a problem file; nothing is computed yet.

    Raises
    ------
    ProblemFileError
        ``file:line: path.to.key: what came, what would do``, one line per mistake.
    """
    source = Source.read(path)
    problem = Problem(source, read_schema(source))
    problem.check_names()
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
    schema: spec.ProblemSchema

    @property
    def name(self) -> str:
        """What the files written are called."""
        return self.schema.name or self.source.path.stem

    @cached_property
    def _explained(self) -> tuple[Any, Function]:
        return points_and_function(self.schema, self.source)

    @property
    def points(self) -> Any:
        """X, an array or a DataFrame (N, D)."""
        return self._explained[0]

    @property
    def function(self) -> Function:
        """The function to explain."""
        return self._explained[1]

    @cached_property
    def objective(self) -> Objective:
        """The weighted losses."""
        terms = []
        for name, loss in self.schema.objective.given.items():
            try:
                terms.append((loss.weight, self._loss(loss)))
            except InvalidInput as error:
                raise self.source.error(("objective", name), str(error)) from error
        return Objective(tuple(terms))

    @property
    def weights(self) -> dict[str, list[float]]:
        """The weights to sweep, by loss name."""
        return {
            name: values.values if isinstance(values, spec.WeightRange) else values
            for name, values in self.schema.sweep.items()
        }

    @property
    def axes(self) -> tuple[str, str]:
        """The losses on the axes of the plot."""
        if self.schema.plot is not None:
            return self.schema.plot.x, self.schema.plot.y
        first, second, *_ = (*self.objective.weights, *self.objective.weights)
        return first, second

    def explainers(self) -> list[Explainer]:
        """The baselines, one for each combination of listed settings."""
        return [
            EXPLAINERS[baseline.method](**settings)
            for baseline in self.schema.baselines
            for settings in _settings(baseline)
        ]

    def baselines(self) -> Iterator[Explanation]:
        """The explanations of the baselines, made one by one."""
        for explainer in self.explainers():
            yield explainer.explain(self.function, self.points, rng=self.schema.seed)

    def sweep(
        self,
        baselines: list[Explanation],
        *,
        solver: str | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> TradeOffs:
        """Solve for all weights of the file, beside these baselines."""
        return sweep(
            self.objective,
            self.weights,
            baselines,
            solver=solver or self.schema.solver,
            tolerance=self.schema.tolerance,
            n_jobs=n_jobs,
            progress=progress,
        )

    def check_names(self) -> None:
        """Names that refer to other parts of the file, and the solver, exist."""
        known = list(self.schema.objective.given)
        mentioned = [(("sweep", name), name) for name in self.schema.sweep]
        if self.schema.plot is not None:
            mentioned += [
                (("plot", axis), getattr(self.schema.plot, axis)) for axis in "xy"
            ]
        for location, name in mentioned:
            if name not in known:
                raise self.source.error(
                    location,
                    f"the objective has no {name!r}; it has {', '.join(known)}",
                )
        try:
            find_solver(self.schema.solver)
        except InvalidInput as error:
            raise self.source.error(("solver",), str(error)) from error

    def _loss(self, loss: spec.Loss) -> PropertyLoss:
        X = self.points
        match loss:
            case spec.GradientMatchingLoss():
                return losses.GradientMatching(self.function.gradient(X), loss.norm)
            case spec.FunctionMatchingLoss():
                return self._function_matching(loss)
            case spec.PairwiseRobustnessLoss():
                return losses.PairwiseRobustness(point_graph(loss.graph, X))
            case spec.KernelRobustnessLoss():
                kernel = RBF(loss.lengthscale)(np.asarray(X))
                kernel[np.diag_indices_from(kernel)] += loss.jitter
                return losses.KernelRobustness(kernel, mean=loss.mean)
            case spec.MaxDifferenceRobustnessLoss():
                return losses.MaxDifferenceRobustness(
                    point_graph(loss.graph, X), loss.aggregate, loss.norm
                )
            case spec.SmoothnessLoss():
                return losses.Smoothness(feature_graph(loss.graph, X))
            case spec.SparsityLoss():
                return losses.Sparsity()
        raise ProblemFileError(f"no loss for {type(loss).__name__}")

    def _function_matching(self, loss: spec.FunctionMatchingLoss) -> PropertyLoss:
        values = self.function.value(self.points)
        if loss.reference is None:
            return losses.FunctionMatching(self.points, values)
        point = np.array(loss.reference)[None, :]
        if isinstance(self.points, pd.DataFrame):
            point = pd.DataFrame(point, columns=self.points.columns)
        reference = (loss.reference, float(self.function.value(point)[0]))
        return losses.FunctionMatching(self.points, values, reference)


def point_graph(graph: Any, X: Any) -> graphs.SimilarityGraph:
    """The graph of points that a file describes."""
    match graph:
        case spec.GaussianGraph():
            return graphs.gaussian_graph(X, graph.lengthscale, cutoff=graph.cutoff)
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


def feature_graph(graph: Any, X: Any) -> graphs.SimilarityGraph:
    """The graph of features that a file describes."""
    match graph:
        case spec.PixelGraph():
            return graphs.pixel_graph(graph.height, graph.width)
        case spec.CorrelationGraph():
            return graphs.correlation_graph(X)
        case spec.GroupGraph():
            return graphs.group_graph(graph.labels)
        case spec.CompleteGraph():
            return graphs.complete_graph(X.shape[1])
        case _:
            return graphs.chain_graph(X.shape[1])


def _settings(baseline: spec.Section) -> Iterator[dict[str, Any]]:
    """All combinations of the settings that are lists."""
    fields = {k: v for k, v in dict(baseline).items() if k != "method"}
    choices = [v if isinstance(v, list) else [v] for v in fields.values()]
    for combination in itertools.product(*choices):
        yield dict(zip(fields, combination, strict=True))
