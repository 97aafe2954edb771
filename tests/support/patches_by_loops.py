"""Algorithm 2 as it is written: a loop over sets and rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from propopt.interactions.errors_of_rows import SQUARED, RowError
from propopt.interactions.features import Features
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import draw_patches


def random_source(
    n_patches: int = 60,
    n_table: int = 14,
    n_features: int = 7,
    *,
    n_rows: int = 4,
    n_kept: float = 2,
    columns: Any = "fixed",
    n_known: int = 1,
    error: RowError | None = None,
    n_groups: int = 5,
    seed: int = 0,
) -> PatchErrors:
    """Patches with random predictions; what must not be read is not a number."""
    rng = np.random.default_rng(seed)
    patches = draw_patches(
        n_patches, n_table, n_rows, n_features, n_kept, columns, seed
    )
    predictions = 100.0 + rng.normal(size=(n_patches, n_table, n_known))
    predictions[~patches.out] = np.nan
    weights = rng.uniform(0.5, 2.0, n_table)
    return PatchErrors(
        patches=patches,
        predictions=predictions,
        y=rng.integers(0, max(n_known, 2), n_table).astype(np.float64),
        error=SQUARED if error is None else error,
        features=Features.of(list(range(n_features))),
        row_weights=weights * n_table / weights.sum(),
        n_groups=n_groups,
    )


def literal_errors(source: PatchErrors, sets: Any, kept: Any = None) -> Any:
    """Err(y_i, f_(−i)^(−T)(x_i)) of each row and set; of some patches only, if told."""
    out = source.patches.out
    if kept is not None:
        out &= np.isin(np.arange(len(out)), kept)[:, None]
    errors = np.full((len(source.y), len(sets)), np.nan)
    for q, own in enumerate(sets):
        disjoint = ~source.patches.features[:, list(own)].any(axis=1)
        for i in range(len(source.y)):
            used = source.predictions[out[:, i] & disjoint, i]
            if len(used):
                result = source.error.of(source.y[[i]], used.mean(axis=0)[None, None])
                errors[i, q] = result[0, 0]
    return errors


def literal_scores(source: PatchErrors, sets: Any) -> Any:
    """Σ_{T ⊆ S} (−1)^(|T| + 1) Err(f^(−T)) at each row."""
    scores = np.zeros((len(source.y), len(sets)))
    for q, own in enumerate(sets):
        for size in range(len(own) + 1):
            for left_out in combinations(own, size):
                part = literal_errors(source, [left_out])[:, 0]
                scores[:, q] += (-1) ** (size + 1) * part
    return scores


def literal_groups(source: PatchErrors) -> list[list[int]]:
    """The patches that remain without each of G groups that follow each other."""
    n_patches = len(source.patches)
    ends = np.linspace(0, n_patches, source.n_groups + 1).astype(int)
    everything = range(n_patches)
    return [
        [b for b in everything if not ends[g] <= b < ends[g + 1]]
        for g in range(source.n_groups)
    ]
