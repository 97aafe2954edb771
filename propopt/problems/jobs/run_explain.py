"""One explanation that is run: what is written, and what is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from propopt.errors import Unwritten
from propopt.explaining.explain import explain
from propopt.explaining.explainer import Explainer
from propopt.output.progress import PlainConsole
from propopt.problems.file import ProblemFile
from propopt.problems.jobs.artefacts import Artefacts, Writer, write_json
from propopt.problems.jobs.explain import Explain, ExplainSection
from propopt.problems.jobs.look_printout import (
    output_parts,
    print_look,
    units_in_words,
)
from propopt.problems.jobs.manifest import manifest
from propopt.problems.jobs.page import page_writers
from propopt.problems.jobs.printout import print_subject, print_title, warnings_printed
from propopt.problems.parts import part
from propopt.problems.section import Section
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstLook:
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
    """

    make: Callable[[], Subject]
    section: ExplainSection
    seed: int = 0
    name: str = "explanation"
    files: Sequence[Path] = ()
    model: str = ""

    @classmethod
    def of(cls, file: ProblemFile) -> FirstLook:
        """The job of a problem file.

        Raises
        ------
        ProblemFileError
            If the file has another one.
        """
        file.require(Explain)
        assert file.schema.explain is not None
        return cls(
            make=lambda: file.subject,
            section=file.schema.explain,
            seed=file.schema.seed,
            name=file.name,
            files=file.files,
            model=_in_words(file.schema.model),
        )

    @cached_property
    def subject(self) -> Subject:
        """What is explained."""
        return self.make()

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
    began = time.perf_counter()
    artefacts = Artefacts.tried(folder, look.name, Explain.suffixes, look.files)
    console = PlainConsole(quiet=quiet)
    print_title(look.name, look.files, console)
    with warnings_printed():
        with console.status("the function"):
            _ = look.subject.function
        print_subject(look.subject, console)
        if look.model:
            console.print(f"model: {look.model}", markup=False)
        best = look.solve(progress=False if quiet else None)
        content = _manifest(look, best)
        writers: dict[str, Writer] = {
            ".npz": best.save,
            "_attributions.csv": best.to_csv,
            **page_writers(best, look.subject),
            ".json": partial(write_json, content),
        }
        unwritten = artefacts.write(writers)
        console.quiet = quiet and not unwritten
        print_look(best, look.section, look.subject, console)
    if unwritten:
        raise Unwritten("; ".join(unwritten), best)
    seconds = time.perf_counter() - began
    files = artefacts.in_words(writers)
    console.print(f"wrote {files} in {seconds:.1f} s\n")
    return best


def _manifest(look: FirstLook, best: Explanation) -> dict[str, Any]:
    """What is known of the run, and how that was computed which it is close to."""
    aims = (best.parameters.get(name) for name in ("gradient", "contributions"))
    return manifest(
        Explain.key,
        look.name,
        look.subject,
        best,
        gradient=str(next(filter(None, aims))),
        model=look.model,
        units=units_in_words(look.section, look.subject),
        **output_parts(best),
    )


def _in_words(model: Section | None) -> str:
    """All settings of a model, defaults too."""
    settings = {} if model is None else model.model_dump(exclude_none=True)
    kind = [str(settings.pop("kind"))] if settings else []
    return ", ".join([*kind, *(f"{name} {value}" for name, value in settings.items())])
