"""What is written and printed of interactions."""

from __future__ import annotations

from functools import partial
from typing import Any, final

from propopt.interactions import ILOCO, InteractionScores
from propopt.output.csv import write_csv
from propopt.output.progress import PlainConsole
from propopt.problems.jobs.artefacts import Writer, write_json
from propopt.problems.jobs.interactions.figure import write_interactions_figure
from propopt.problems.jobs.interactions.judged import Judged
from propopt.problems.jobs.interactions.look import InteractionsLook, all_rows
from propopt.problems.jobs.interactions.printout import print_interactions
from propopt.problems.jobs.interactions.section import InteractionsJob
from propopt.problems.jobs.look import LookReport


@final
class InteractionsReport(LookReport):
    """A run of ``interactions`` as files and as a printout.

    Parameters
    ----------
    look : InteractionsLook
        What was asked.
    fitted : ILOCO
        What answers it.
    """

    def __init__(self, look: InteractionsLook, fitted: ILOCO) -> None:
        self.look, self.fitted = look, fitted
        self.found = fitted.result_
        scheme = look.section.scheme
        self.interrupted = not scheme.is_whole(fitted.left_out_)
        self.judged = Judged.of(fitted, all_rows(look.subject)[1])

    def writers(self) -> dict[str, Writer]:
        content = self._manifest()
        return {
            "_interactions.csv": partial(self._write_csv, self.found),
            "_main_effects.csv": partial(self._write_csv, self.fitted.main_effects_),
            ".svg": self._draw,
            ".npz": self.found.save,
            ".json": partial(write_json, content),
        }

    def print(self, console: PlainConsole) -> None:
        print_interactions(self.look.section, self.fitted, self.judged, console)

    def _write_csv(self, scores: InteractionScores, path: str) -> None:
        """With intervals and p-values as the section asks for them."""
        frame = scores.to_frame(**self.look.section.inference)
        write_csv(path, frame, names_of_rows=False)

    def _draw(self, path: str) -> None:
        section, name = self.look.section, self.look.name
        main_effects = self.fitted.main_effects_
        write_interactions_figure(self.found, main_effects, section, name, path)

    def _manifest(self) -> dict[str, Any]:
        """What was done, in plain values: no model is fitted to all rows."""
        found, section = self.found, self.look.section
        return {
            "job": InteractionsJob.key,
            "name": self.look.name,
            "model": self.look.model,
            "seed": self.look.seed,
            "settings": section.model_dump(exclude_none=True),
            "method": found.method,
            "error": found.error,
            "units": found.units,
            "n_rows": found.n_rows,
            "features": list(map(str, found.names)),
            "n_sets": len(found.sets),
            "n_candidates": found.n_candidates,
            "mean_error": self.judged.mean,
            "mean_error_of_a_constant": self.judged.constant,
            "interrupted": self.interrupted,
            "notes": [*found.notes, *found.cautions],
        }
