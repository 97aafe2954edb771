"""The table of an explanation by limits of LIME, and its forms for other readers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.output.archives import as_json
from propopt.output.files import written_whole


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


def lime_frame(explanation: LimeExplanation) -> pd.DataFrame:
    """One row for each row and column of X, with the units beside the numbers."""
    N, D = explanation.shape
    rows = range(N) if explanation.labels.points is None else explanation.labels.points
    errors = explanation.standard_errors
    columns: dict[str, Any] = {
        "row": [row for row in rows for _ in range(D)],
        "feature": list(explanation.labels.feature_names(D)) * N,
        "value": pd.Series(_flat(explanation.cells), dtype=object),
        "bin": _flat(explanation.bins),
        "coefficient": explanation.coefficients.ravel(),
        "standard_error": (np.zeros((N, D)) if errors is None else errors).ravel(),
        "alpha": explanation.alpha.ravel(),
        "single_run_sd": known_noise(explanation).ravel(),
        "single_run_sd_source": _source_of_noise(explanation),
        "expected": explanation.expected().ravel(),
        "n_samples": explanation.n_samples,
        **{
            name: np.repeat(values, D)
            for name, values in {
                "intercept": explanation.intercept,
                "prediction": explanation.values,
                "surrogate_at_row": explanation.at_row,
                "effective_share": explanation.effective_share,
            }.items()
        },
        "source": explanation.source,
        "units": explanation.units,
    }
    return pd.DataFrame(columns)


def known_noise(explanation: LimeExplanation) -> Array:
    """The scatter of single runs; NaN where it is not known and cannot be asked."""
    if explanation.scatter is None and explanation.subject is None:
        return np.full(explanation.shape, np.nan)
    return explanation.noise()


def _source_of_noise(explanation: LimeExplanation) -> str:
    """Deviations of runs are estimated, also where coefficients are exact."""
    if explanation.scatter is None and explanation.subject is None:
        return ""
    return f"estimate ({explanation.runs.n_draws:,} draws a row)"


def named_coefficients(explanation: LimeExplanation, n: int) -> list[str]:
    """Each column of a row with its bin in words."""
    names = explanation.labels.feature_names(explanation.shape[1])
    return list(map(described, names, explanation.bins[n]))


def described(name: str, own: str) -> str:
    """A column with its bin, which may start with a sign of its own."""
    return f"{name} {own}" if own[:1] in "<>≤≥=" else f"{name}: {own}"


def write_records(path: str | Path, explanation: LimeExplanation) -> None:
    """The table as a list of objects; what is not known is null."""
    write_plain_records(path, lime_frame(explanation))


def write_plain_records(path: str | Path, table: pd.DataFrame) -> None:
    """A table as a list of objects; JSON has no NaN, so what is not known is null."""
    records = table.to_dict(orient="records")
    text = json.dumps(
        json.loads(as_json(_plain(records))), indent=1, ensure_ascii=False
    )
    with written_whole(Path(path)) as draft:
        draft.write_text(text, encoding="utf-8")


def _plain(records: list[dict[Any, Any]]) -> list[dict[str, Any]]:
    return [{str(k): _known(v) for k, v in record.items()} for record in records]


def _known(value: object) -> object:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return None
    plain = number is None or isinstance(number, bool | int | float | str)
    return number if plain else str(number)


def _flat(table: tuple[tuple[Any, ...], ...]) -> list[Any]:
    return [cell for row in table for cell in row]
