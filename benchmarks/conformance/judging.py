"""What a library did with a case: right, wrong, refused, or ended the process."""

from __future__ import annotations

import linecache
import multiprocessing
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.conformance.cases import SINGLE, Case, made
from benchmarks.conformance.libraries import AnotherQuestion, call
from benchmarks.conformance.oracle import Reference, by_definition


PATIENCE = 120.0
"""Seconds for one case by one library."""

WORDS = ("right", "wrong", "base wrong", "refuses", "crashes", "another question")
"""The verdicts."""


@dataclass(frozen=True)
class Verdict:
    """What one library did with one case."""

    word: str  # one of WORDS
    off: float = np.nan  # largest error of a value, over the largest exact value
    base_off: float = np.nan  # error of the base, over the largest exact value
    note: str = ""


def allowed(case: Case, exact: Reference, eps: float) -> float:
    """By how much a right value may differ, in the units of the prediction.

    A Shapley value is a weighted mean of differences of two predictions, each of which
    is a sum of ``n_trees`` terms: each may round by ``(n_trees + 1) eps size``.
    """
    return 2.0 * (case.n_trees + 1) * eps * exact.size


def judged(name: str, case: Case, exact: Reference) -> Verdict:
    """One library, in single precision; its own where it raises."""
    try:
        found = call(name, case)
    except AnotherQuestion as reason:
        return Verdict("another question", note=str(reason))
    except Exception as error:  # noqa: BLE001 it is what is measured
        text = f"{type(error).__name__}: {error}".split("\n")[0][:160]
        return Verdict("refuses" if is_on_purpose(error) else "crashes", note=text)
    if found.values.shape != exact.values.shape:
        return Verdict("wrong", np.inf, note=f"values of shape {found.values.shape}")
    off = float(np.abs(found.values - exact.values).max())
    base = np.nan if found.base is None else abs(found.base - exact.base)
    most = allowed(case, exact, SINGLE)
    word = "right" if off <= most else "wrong"
    if word == "right" and base > most:
        word = "base wrong"
    largest = float(np.abs(exact.values).max()) or 1.0
    return Verdict(word, off / largest, base / largest, found.note)


def is_on_purpose(error: BaseException) -> bool:
    """Whether a ``raise`` or an ``assert`` made it, not a call that went wrong."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    assert place is not None, "it was raised"
    line = linecache.getline(place.tb_frame.f_code.co_filename, place.tb_lineno)
    return line.lstrip().startswith(("raise", "assert"))


def judgement(name: str, situation: str, library: str, seed: int) -> Verdict:
    """One library, one case, made here."""
    case = made(situation, library, seed)
    exact = by_definition(case.answer, case.rows, case.background)
    return judged(name, case, exact)


def _work(name: str, asked: Any) -> None:
    """Answer until nothing more is asked."""
    while (question := asked.recv()) is not None:
        asked.send(judgement(name, *question))


class Bench:
    """A library in a process of its own, as some cases end it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_work, args=(self.name, there))
        self._process.start()
        there.close()
        self._is_new = True

    def ask(self, *question: Any) -> Verdict:
        """One case; where the process ends, once more in a new one."""
        try:
            self._pipe.send(question)
            if self._pipe.poll(PATIENCE):
                verdict = self._pipe.recv()
                self._is_new = False
                return verdict
            found = Verdict("crashes", note=f"no answer in {PATIENCE:g} s")
            self._process.kill()
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            found = Verdict("crashes", note=f"the process ended with {code}")
        # an earlier case may have damaged its memory
        was_new = self._is_new
        self._process.join()
        self._start()
        return found if was_new else self.ask(*question)

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()
