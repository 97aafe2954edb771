"""The paper's tables: networks on real data, and a table of the user's own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import pandas as pd
from matplotlib.figure import Figure

from propopt.errors import InvalidInput, Refused
from propopt.explainers import aggregate
from propopt.output.files import written_whole
from propopt.output.text import printable
from propopt.problems import Problem, read_problem
from propopt.problems.csv_tables import CsvTable
from propopt.reproduce.charts import draw_fronts
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.laws import EVERYWHERE, give_away
from propopt.reproduce.panels import Law, Panel, Result, paper_file
from propopt.results.explanation import Explanation
from propopt.tradeoffs.table import TradeOffs


TABLES = {
    "breast_cancer": "breast cancer",
    "diabetes": "diabetes",
    "wine": "wine",
    "digits": "digits",
}
LAWS: tuple[Law, ...] = (
    *EVERYWHERE,
    partial(
        give_away,
        difference="tables and networks are not the paper's; similarities of the eight "
        "nearest rows",
    ),
)
N_MIXTURES = 9
EXPLAINED = 150


def figure() -> PaperFigure:
    """Four tables that come with scikit-learn."""
    return PaperFigure(
        title="Networks on tables",
        about=_ABOUT,
        panels=tuple(
            _panel(title, paper_file(f"table_{name}")) for name, title in TABLES.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Networks with two hidden layers on tables that come with scikit-learn; the paper's own
(Wine Quality, Iranian Churn, Solar Flare) can be added with --csv and --target. Rows
are standardised, and those explained were not used to fit. Robustness compares the
eight nearest rows. Optimised aggregation mixes all other baselines in the best shares
for nine of the weights. What is not drawn lies off the chart."""


def mixtures(problem: Problem, trade_offs: TradeOffs) -> tuple[Explanation, ...]:
    """Optimised aggregation of the baselines, for some of the weights."""
    step = max(len(trade_offs.optimized) // N_MIXTURES, 1)
    return tuple(
        aggregate(problem.objective.with_weights(best.weights), trade_offs.baselines)
        for best in trade_offs.optimized[step // 2 :: step]
    )


def _panel(title: str, file: Path) -> Panel:
    return Panel(column=title, row="", file=file, laws=LAWS, rivals=mixtures)


def _draw(results: Sequence[Result]) -> Figure:
    return draw_fronts(results, (3.0, 2.9))


# a table of the user's


Task: TypeAlias = Literal["classification", "regression"]


@dataclass(frozen=True, kw_only=True)
class UserTable:
    """A CSV table of the user's own, to be treated like those of the paper.

    Parameters
    ----------
    csv : path
        Columns of numbers, and of text, which are categories.
    target : str
        The column to learn.
    task : {"classification", "regression"}, optional
        By default classification where the target is text or has two values.
    """

    csv: Path
    target: str
    task: Task | None = None

    def panel(self, folder: Path) -> Panel:
        """Its panel, with the problem file that is written into the folder.

        Raises
        ------
        InvalidInput
            If the table cannot be read, has no such column, or is none to learn from.
        """
        name = self.csv.stem
        file = folder / f"table_{name}.yaml"
        with written_whole(file) as draft:
            draft.write_text(self._problem_file(), encoding="utf-8")
        read_problem(file).check_data()  # before the other panels are worked on
        return _panel(printable(name.replace("_", " ")), file)

    def _problem_file(self) -> str:
        table = self._read()
        labels = table[self.target]
        task = self.task or _task_of(labels)
        data = {
            "csv": str(self.csv.resolve()),
            "target": self.target,
            "explain": min(EXPLAINED, max(len(table) // 3, 1)),
            "standardize": True,
            "categorical": _text_columns(table.drop(columns=self.target)),
        }
        model: dict[str, object] = {"kind": "mlp", "task": task, "hidden": [32, 16]}
        model |= {"activation": "tanh", "regularization": 1}
        if task == "classification":
            model |= {"output": "log_odds", "target_class": _commonest(labels)}
        return _TEMPLATE.format(
            csv=printable(self.csv.name), data=_flow(data), model=_flow(model)
        )

    def _read(self) -> pd.DataFrame:
        try:
            table = CsvTable.of(self.csv).read()
        except (InvalidInput, Refused) as error:
            raise InvalidInput(f"--csv: {error}") from error
        if self.target not in table:
            known = ", ".join(map(str, table))
            raise InvalidInput(
                f"--target: {self.csv.name} has no column {self.target!r}; it has "
                f"{known}"
            )
        return table


def _text_columns(table: pd.DataFrame) -> list[str]:
    return [str(c) for c in table if not pd.api.types.is_numeric_dtype(table[c])]


def _task_of(labels: pd.Series) -> Task:
    text = not pd.api.types.is_numeric_dtype(labels)
    return "classification" if text or labels.nunique() <= 2 else "regression"


def _flow(settings: dict[str, object]) -> str:
    """The settings on one line of YAML, in ASCII.

    That is JSON but for characters beyond 16 bits, which JSON writes as two halves.
    """
    text = json.dumps(settings, ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", text)


def _commonest(labels: pd.Series) -> object:
    """The label whose log-odds are explained."""
    found = labels.mode().iloc[0]
    return found.item() if pd.api.types.is_numeric_dtype(labels) else str(found)


_TEMPLATE = """\
# A network with two hidden layers on {csv}
data: {data}
model: {model}
objective:
  gradient_matching: 1
  pairwise_robustness:
    graph: {{kind: knn, n_neighbors: 8}}
sweep:
  pairwise_robustness: {{low: 1e-4, high: 100, points: 37}}
baselines:
  - {{method: gradient}}
  - {{method: smoothgrad, scale: [0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3], n_samples: 300}}
  - {{method: lime, scale: [0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3], n_samples: 1000}}
  - {{method: shap, units: [gradient, output]}}
plot: {{x: gradient_matching, y: pairwise_robustness}}
"""
