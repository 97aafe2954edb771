"""What is written and printed of what LIME tends to, whatever it was asked about."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from propopt.output.progress import PlainConsole
from propopt.problems.jobs.artefacts import Writer, write_json
from propopt.problems.jobs.lime.look import LimeLook
from propopt.problems.jobs.lime.printout import print_diagnosis
from propopt.problems.jobs.lime.section import LimeJob
from propopt.problems.jobs.look import LookReport
from propopt.problems.jobs.manifest import manifest


class LimeReport(LookReport):
    """A run of ``lime`` as files and as a printout.

    Parameters
    ----------
    look : LimeLook
        What was asked.
    found : LimeExplanation or TextLimeExplanation
        What was found.
    diagnosis : LimeDiagnosis or None
        What it hides, if that was asked.
    """

    def __init__(self, look: LimeLook, found: Any, diagnosis: Any = None) -> None:
        self.look, self.found, self.diagnosis = look, found, diagnosis

    @property
    def widths(self) -> Sequence[float]:
        """Those of the path."""
        return self.look.section.widths

    def writers(self) -> dict[str, Writer]:
        content = manifest(
            LimeJob.key,
            self.look.name,
            self.look.subject,
            None,
            gradient=None,
            lime=self.facts(),
            findings=self._findings(),
        )
        found, diagnosis = self.found, self.diagnosis
        writers: dict[str, Writer | None] = {
            "_lime.csv": found.to_csv,
            "_diagnosis.csv": None if diagnosis is None else diagnosis.to_csv,
            "_path.csv": self.write_path if self.widths else None,
            **self.pictures(),
            ".npz": found.save,
            ".json": partial(write_json, content),
        }
        return {suffix: writer for suffix, writer in writers.items() if writer}

    def print(self, console: PlainConsole) -> None:
        self.print_found(console)
        if self.diagnosis is not None:
            print_diagnosis(self.diagnosis, console)

    def _findings(self) -> dict[str, int] | None:
        """How many things each rule found; None where nothing was looked for."""
        diagnosis = self.diagnosis
        if diagnosis is None:
            return None
        return dict(Counter(item.rule for item in diagnosis.findings))

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What is known of the run, in plain values."""

    @abstractmethod
    def write_path(self, path: str) -> None:
        """Write coefficients at each width of the path."""

    @abstractmethod
    def pictures(self) -> dict[str, Writer]:
        """What draws, by the suffix."""

    @abstractmethod
    def print_found(self, console: PlainConsole) -> None:
        """How coefficients were had, and those of the first rows."""
