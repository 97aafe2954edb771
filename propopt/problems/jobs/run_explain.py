"""One explanation that is run: what is written, and what is printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

from propopt.explaining.explain import explain
from propopt.explaining.explainer import Explainer
from propopt.output.progress import PlainConsole
from propopt.problems.file import ProblemFile
from propopt.problems.jobs.artefacts import Writer, write_json
from propopt.problems.jobs.explain import Explain, ExplainSection
from propopt.problems.jobs.look import LookReport, SubjectLook, run_look
from propopt.problems.jobs.look_printout import (
    attributions_in_words,
    output_parts,
    print_look,
)
from propopt.problems.jobs.manifest import manifest
from propopt.problems.jobs.page import page_writers
from propopt.problems.jobs.printout import settings_in_words
from propopt.problems.parts import part
from propopt.results.explanation import Explanation


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FirstLook(SubjectLook[ExplainSection]):
    """What is explained once, with stated defaults.

    Parameters
    ----------
    make : callable
        Gives the subject when it is first asked for.
    section : ExplainSection
        The settings of :func:`propopt.explain`.
    seed : int
        For the noise on piecewise-constant models.
    name : str
        What the files written are called.
    files : sequence of paths
        What it was read from: not to be written over.
    model : str
        What the model is, in words; for the printout.
    description : str
        What the file says of itself; for the printout.
    folder : path
        From which the section names a file of interactions.
    """

    name: str = "explanation"
    model: str = ""
    description: str = ""
    folder: Path = Path()

    @classmethod
    def of(cls, file: ProblemFile) -> FirstLook:
        """The job of a problem file.

        Raises
        ------
        ProblemFileError
            If the file has another one.
        """
        file.require(Explain)
        section, folder = file.schema.explain, file.source.path.parent
        assert section is not None
        with file.source.blaming("explain"):
            scores = section.scores_file(folder)
        return cls(
            make=lambda: file.subject,
            section=section,
            seed=file.schema.seed,
            name=file.name,
            files=file.files if scores is None else (*file.files, scores),
            model=settings_in_words(file.schema.model),
            description=file.schema.description or "",
            folder=folder,
        )

    def solve(self, progress: bool | None = None) -> Explanation:
        """The explanation, by :func:`propopt.explain` or :class:`propopt.Explainer`."""
        with part("explain"):
            if self.section.reference is not None:
                return self._alone(self.section.reference, progress)
            return explain(
                self.subject.function,
                self.subject.points,
                data=self.subject.others,
                rng=self.seed,
                progress=progress,
                interactions=self.section.scores(self.folder),
                **self.section.build(self.subject),
            )

    def _alone(self, n_reference: int, progress: bool | None) -> Explanation:
        """Each row by itself, given reference rows."""
        subject = self.subject
        explainer = Explainer(
            subject.function,
            subject.others,
            n_reference=n_reference,
            rng=self.seed,
            interactions=self.section.scores(self.folder),
            **self.section.build_alone(subject),
        )
        return explainer.fit(progress=progress).explain(
            subject.points, progress=progress
        )


def run_explain(
    look: FirstLook, folder: str | Path, *, quiet: bool = False
) -> Explanation:
    """Explain a subject once, write the attributions, print what matters most.

    ===================== =============================================================
    ``<name>.npz``        the explanation: :meth:`Explanation.save`
    ``<name>_attributions.csv``
                          its attributions with their names: :meth:`Explanation.to_csv`
    ``<name>.html``       of documents: the first with their words highlighted
    ``<name>.json``       what was explained and how, and the score of the model
    ===================== =============================================================

    Parameters
    ----------
    look : FirstLook
        What is explained.
    folder : path
        Where to write; made if it is not there.
    quiet : bool
        Print nothing but warnings, which go to standard error.

    Raises
    ------
    InvalidInput
        If the folder or the names cannot be written, before any work, or the model
        cannot be explained.
    Unwritten
        If a file cannot be written at the end; the error has the explanation as
        ``result``.
    """

    def report(progress: bool | None) -> _FirstReport:
        return _FirstReport(look, look.solve(progress))

    facts = [look.description, look.model and f"model: {look.model}"]
    found: Explanation = run_look(
        look, Explain, folder, report, facts=[*filter(None, facts)], quiet=quiet
    )
    return found


@final
class _FirstReport(LookReport):
    def __init__(self, look: FirstLook, found: Explanation) -> None:
        self.look, self.found = look, found

    def writers(self) -> dict[str, Writer]:
        content = self._manifest()
        return {
            ".npz": self.found.save,
            "_attributions.csv": self.found.to_csv,
            **page_writers(self.found, self.look.subject),
            ".json": partial(write_json, content),
        }

    def print(self, console: PlainConsole) -> None:
        print_look(self.found, self.look.subject, console)

    def _manifest(self) -> dict[str, Any]:
        """What is known of the run, and how that was computed which it is close to."""
        look, found = self.look, self.found
        aims = (found.parameters.get(name) for name in ("gradient", "contributions"))
        return manifest(
            Explain.key,
            look.name,
            look.subject,
            found,
            gradient=str(next(filter(None, aims))),
            model=look.model,
            units=attributions_in_words(found, look.subject),
            **output_parts(found),
        )
