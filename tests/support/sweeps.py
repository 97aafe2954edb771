"""Parts of tests of sweeps: scripted solvers, baselines, and tables of losses."""

import os

import numpy as np
import pytest

import propopt as po
from propopt.solvers import Prepared, Solver


WEIGHTS = [0.01, 0.1, 1.0, 10.0, 100.0]


def explanation(method="lime", *, losses=(), **fields):
    named = {f"loss{n}": float(value) for n, value in enumerate(losses)}
    return po.results.Explanation(
        attributions=np.zeros((2, 2)), method=method, losses=named, **fields
    )


def table_of(rows):
    """Trade-offs of baselines with these losses, one row each."""
    baselines = tuple(explanation(losses=row) for row in rows)
    names = tuple(f"loss{n}" for n in range(len(rows[0])))
    return po.TradeOffs(optimized=(), baselines=baselines, losses=names)


class Scripted(Solver):
    """A solver that does what a script says at each solve: an error, or a solution."""

    def __init__(self, solver, script):
        self.solver = solver
        self.script = dict(script)
        self.solved = []
        self.starts = []

    @property
    def name(self):
        return "scripted"

    def refusal(self, program):
        return self.solver.refusal(program)

    def prepare(self, program):
        return ScriptedProgram(self, self.solver.prepare(program))


class ScriptedProgram(Prepared):
    def __init__(self, owner, prepared):
        self.owner = owner
        self.prepared = prepared

    def solve(self, weights, tolerance, start=None):
        number = len(self.owner.solved)
        self.owner.solved.append(weights)
        self.owner.starts.append(start)
        if number in self.owner.script:
            raise self.owner.script[number]
        return self.prepared.solve(weights, tolerance, start)


def never_made():
    pytest.fail("a baseline was made")
    yield


def without_seconds(curve):
    return curve.to_frame().drop(columns="seconds")


def explanation_of(objective, attributions=1.0):
    shape = objective.losses[0].G.shape
    filled = np.broadcast_to(attributions, shape)
    return po.results.Explanation(attributions=filled, method="given")


class Seen(Scripted):
    """Notes the process of each program."""

    def __init__(self, solver, processes):
        super().__init__(solver, {})
        self.processes = processes

    def prepare(self, program):
        self.processes.append(os.getpid())
        return self.solver.prepare(program)
