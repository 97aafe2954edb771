"""A problem file, a folder for what is written, and solves that stop."""

from functools import cache

import pytest
from command_line import FILE, write
from command_line import done as done_in

from propopt.solvers import Task


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, "cubic", FILE)


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """The job of a text, which is run once for all tests."""

    @cache
    def run(text, *options):
        return done_in(tmp_path_factory.mktemp("done"), text, *options)

    return run


@pytest.fixture
def stop_at(monkeypatch):
    """Make the solves with these numbers, counted from zero, raise an error."""

    def stop(errors):
        solved = []
        solve = Task.solve

        def stopping(task, *arguments):
            solved.append(arguments)
            if len(solved) - 1 in errors:
                raise errors[len(solved) - 1]
            return solve(task, *arguments)

        monkeypatch.setattr(Task, "solve", stopping)
        monkeypatch.setattr(Task, "has_curve", lambda *_: False)

    return stop
