"""Small torch modules that several tests explain; without torch those are skipped."""

from contextlib import contextmanager

import pytest


class Late:
    """A package that is imported when a test uses it, so that collecting is fast."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, attribute):
        if attribute.startswith(("_", "pytest_")):  # what collecting asks of all things
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self.name), attribute)


torch, nn = Late("torch"), Late("torch.nn")


@contextmanager
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def three_scores():
    """Three scores of three features, in double precision."""
    with seeded():
        layers = nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 3)
        return nn.Sequential(*layers).double()


def trained_otherwise():
    """One score of three features, by layers that behave in another way in training."""
    with seeded():
        layers = nn.Linear(3, 7), nn.BatchNorm1d(7), nn.Dropout(0.5), nn.Linear(7, 1)
        module = nn.Sequential(*layers).double()
        module(torch.randn(20, 3, dtype=torch.double))  # statistics of its own
    return module


def returning(function):
    """A module that returns a function of its input, and has one parameter."""

    class Returning(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0, dtype=torch.double))

        def forward(self, x):
            return function(x, self.scale)

    return Returning()
