"""Explanations of later inputs, beside other Gaussian processes; and of images.

In these tables ``gap`` is the largest difference of posterior means to ours, relative
to the largest mean. Peers know no smoothness of features; scikit-learn is given rotated
features, for which smoothness is noise of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

import propopt as po
from benchmarks.timing import OURS, Row, in_a_process, with_ratios
from propopt.inductive import GaussianProcessExplainer


N_FEATURES, N_NEW, N_WEIGHTS, N_PEER = 10, 200, 25, 2
LENGTHSCALE = 4.3  # about the median distance


@dataclass(frozen=True)
class Answers:
    """Seconds of a fit and of the answers, and the means (weights, new, features)."""

    fit: float
    sweep: float
    means: Any


def data(n_points: int) -> tuple[Any, Any, Any]:
    """Points, gradients and new points, independent and standard normal."""
    rng = np.random.default_rng(0)
    X, G = rng.normal(size=(2, n_points, N_FEATURES))
    return X, G, rng.normal(size=(N_NEW, N_FEATURES))


def robustness(count: int = N_WEIGHTS) -> Any:
    """So many of the weights, spread over all."""
    weights = np.geomspace(1e-2, 1e2, N_WEIGHTS)
    return weights[:: N_WEIGHTS // count][:count]


def grid() -> list[tuple[float, float]]:
    """25 pairs of weights, with smoothness."""
    weights = np.geomspace(1e-2, 1e2, 5)
    return [(robust, smooth) for robust in weights for smooth in weights]


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Append the wall-clock seconds of the block."""
    began = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - began)


# ---- ours and the peers; each in a process of its own


def ours(n_points: int, threads: int, smooth: bool, std: bool) -> Answers:
    """One fit, then 25 pairs of weights."""
    X, G, new = data(n_points)
    explainer = GaussianProcessExplainer(
        lengthscale=LENGTHSCALE,
        mean="none",
        features=po.graphs.chain_graph(N_FEATURES) if smooth else None,
    )
    pairs = grid() if smooth else [(w, 0.0) for w in robustness()]
    seconds: list[float] = []
    with threadpool_limits(threads):
        explainer.fit(X[:50], G[:50]).explain(new)  # imports and first calls
        with timed(seconds):
            explainer.fit(X, G)
        with timed(seconds):
            path = explainer.explain_path(new, pairs, std)
    return Answers(*seconds, np.array([answer.attributions for answer in path]))


def scikit_learn(n_points: int, threads: int, each_feature: bool) -> Answers:
    """Fit and predict for a few weights, all features at once or one by one."""
    X, G, new = data(n_points)
    columns = [[j] for j in range(N_FEATURES)] if each_feature else [slice(None)]
    seconds: list[float] = []
    means = []
    with threadpool_limits(threads):
        GaussianProcessRegressor(optimizer=None).fit(X[:50], G[:50])  # first calls
        for weight in robustness(N_PEER):
            kernel = ConstantKernel(0.5 / weight) * RBF(LENGTHSCALE)
            peer = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None)
            with timed(seconds):
                parts = [peer.fit(X, G[:, c]).predict(new) for c in columns]
            means.append(np.column_stack(parts))
    return Answers(float(np.mean(seconds)), 0.0, np.array(means))


SMOOTH_PLACES = (12, 18)
"""Those of the 5 × 5 pairs of weights that a peer is asked for."""


def scikit_learn_smooth(n_points: int, threads: int) -> Answers:
    """With smoothness: one regression, with noise of its own, per rotated feature.

    In the eigenbasis V, ς of the chain, p_j = 1 + w_s ς_j: targets ĝ_j/p_j with noise
    1/p_j give m_j and v_j, and E_j = m_j / (1 + w_s ς_j v_j).
    """
    X, G, new = data(n_points)
    values, V = np.linalg.eigh(
        2.0 * po.graphs.chain_graph(N_FEATURES).laplacian.toarray()
    )
    rotated = G @ V
    seconds: list[float] = []
    means = []
    with threadpool_limits(threads):
        GaussianProcessRegressor(optimizer=None).fit(X[:50], G[:50])  # first calls
        for place in SMOOTH_PLACES:
            weight, smooth = grid()[place]
            kernel = ConstantKernel(0.5 / weight) * RBF(LENGTHSCALE)
            columns = []
            with timed(seconds):
                for j, pull in enumerate(smooth * values):
                    p = 1.0 + pull
                    peer = GaussianProcessRegressor(kernel, alpha=1 / p, optimizer=None)
                    peer.fit(X, rotated[:, j] / p)
                    mean, deviation = peer.predict(new, return_std=True)
                    columns.append(mean / (1.0 + pull * deviation**2))
            means.append(np.column_stack(columns) @ V.T)
    return Answers(float(np.mean(seconds)), 0.0, np.array(means))


def gpytorch_exact(n_points: int, threads: int) -> Answers:
    """A batch of exact regressions, one per feature, by Cholesky in double precision.

    Needs GPyTorch: ``pip install "propopt[gp]"``.
    """
    import gpytorch
    import torch

    class Batch(gpytorch.models.ExactGP):
        """Independent features that share a kernel."""

        def __init__(self, X: Any, Y: Any, weight: float) -> None:
            noise = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(
                torch.ones_like(Y)
            )
            super().__init__(X, Y, noise)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel()
            )
            self.double().eval()  # before the numbers come, which keeps their digits
            scale, length = torch.tensor(
                [0.5 / weight, LENGTHSCALE], dtype=torch.float64
            )
            self.covar_module.outputscale = scale
            self.covar_module.base_kernel.lengthscale = length

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(X), self.covar_module(X)
            )

    torch.set_num_threads(threads)
    X, G, new = (torch.from_numpy(array) for array in data(n_points))
    batch = (N_FEATURES, 1, 1)
    seconds: list[float] = []
    means = []
    exact = gpytorch.settings.fast_computations(False, False, False)
    mean_alone = gpytorch.settings.skip_posterior_variances()
    cholesky = gpytorch.settings.max_cholesky_size(10 * n_points)
    with torch.no_grad(), threadpool_limits(threads), exact, mean_alone, cholesky:
        Batch(X[:50].repeat(batch), G[:50].T, 1.0)(new.repeat(batch))  # first calls
        for weight in robustness(N_PEER):
            with timed(seconds):
                model = Batch(X.repeat(batch), G.T.contiguous(), weight)
                mean = model(new.repeat(batch)).mean
            means.append(mean.numpy().T)
    return Answers(float(np.mean(seconds)), 0.0, np.array(means))


# ---- tables


def inductive(quick: bool) -> list[Row]:
    """25 weights at 200 new points, after one fit or by a fit for each."""
    n_points = 300 if quick else 2000
    return [row for threads in (1, 2) for row in _compared(n_points, threads)]


def _compared(n_points: int, threads: int) -> list[Row]:
    work = f"{N_WEIGHTS} weights, N={n_points}, D=10, 200 new, {threads} threads"
    best, peak = in_a_process(partial(ours, n_points, threads, False, False))
    rows = [_our_row(work, OURS, best, peak)]
    answers, peak = in_a_process(partial(ours, n_points, threads, False, True))
    rows.append(_our_row(work, "propopt, with deviations", answers, peak))
    peers: dict[str, Callable[[], Answers]] = {
        "scikit-learn, all features at once": partial(
            scikit_learn, n_points, threads, False
        ),
        "scikit-learn, one feature at a time": partial(
            scikit_learn, n_points, threads, True
        ),
    }
    if find_spec("gpytorch"):  # of the extra gp; the others come with the tests
        exact = partial(gpytorch_exact, n_points, threads)
        peers["GPyTorch, batch of features, Cholesky"] = exact
    same = best.means[:: N_WEIGHTS // N_PEER][:N_PEER]
    for name, run in peers.items():
        answers, peak = in_a_process(run)
        rows.append(_peer_row(work, name, answers, same, peak))
    return with_ratios(rows) + _with_smoothness(n_points, threads)


def _with_smoothness(n_points: int, threads: int) -> list[Row]:
    work = f"5 × 5 weights, chain smoothness, N={n_points}, {threads} threads"
    best, peak = in_a_process(partial(ours, n_points, threads, True, False))
    rows = [_our_row(work, OURS, best, peak)]
    answers, peak = in_a_process(partial(scikit_learn_smooth, n_points, threads))
    same = best.means[list(SMOOTH_PLACES)]
    name = "scikit-learn, one rotated feature at a time"
    rows.append(_peer_row(work, name, answers, same, peak))
    return with_ratios(rows)


def _peer_row(work: str, name: str, answers: Answers, same: Any, peak: float) -> Row:
    difference = np.abs(answers.means - same).max() / np.abs(same).max()
    return Row(
        work=work,
        method=name,
        seconds=N_WEIGHTS * answers.fit,
        solves=f"{N_PEER} of {N_WEIGHTS}, scaled",
        gap=float(difference),
        peak_mib=peak,
        target=">= 20x",
    )


def _our_row(work: str, name: str, answers: Answers, peak: float) -> Row:
    return Row(
        work=work,
        method=name,
        seconds=answers.fit + answers.sweep,
        solves=f"fit {answers.fit:.2f} s, sweep {answers.sweep:.2f} s",
        peak_mib=peak,
    )


def images(n_images: int, shape: po.functions.ImageShape, std: bool) -> Answers:
    """One fit on images, then a 5 × 5 grid of weights on one new image."""
    rng = np.random.default_rng(0)
    X = rng.random((n_images, shape.n_features))
    G = rng.standard_normal(X.shape)
    new = rng.random((1, shape.n_features))
    explainer = GaussianProcessExplainer(features=shape)
    seconds: list[float] = []
    with timed(seconds):
        explainer.fit(X, G)
    with timed(seconds):
        path = explainer.explain_path(new, grid(), std)
    return Answers(*seconds, len(path))


def inductive_images(quick: bool) -> list[Row]:
    """1000 images, each in a process of its own; the data are part of the peak."""
    n_images, side = (50, 32) if quick else (1000, 244)
    rows = []
    for channels in (1, 3):
        shape = po.functions.ImageShape(channels, side, side)
        for std in (False, True):
            answers, peak = in_a_process(partial(images, n_images, shape, std))
            work = f"{n_images} images of {channels} × {side} × {side}, 25 weights"
            name = f"{OURS}, with deviations" if std else OURS
            row = _our_row(work, name, answers, peak)
            target = "60 s, 8 GiB" if channels == 1 and not quick else ""
            rows.append(Row(**{**vars(row), "target": target}))
    return rows
