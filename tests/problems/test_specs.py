"""What a file may say of a thing is what the thing takes, with the same defaults."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import propopt as po
from propopt import losses
from propopt.explaining import explainers
from propopt.lime import TextLaw
from propopt.losses import graphs
from propopt.losses.graphs.grids import grid_gaussian_graph
from propopt.problems import baselines as baseline_sections
from propopt.problems import losses as graph_sections
from propopt.problems import losses as loss_sections
from propopt.problems.file import ProblemSchema
from propopt.problems.jobs import JOBS
from propopt.problems.jobs.interactions import (
    InteractionsSection,
    MinipatchesSection,
    ScreenSection,
    SplitSection,
)


def defaults(made):
    """The names that a constructor or a function takes, with their defaults."""
    signature = inspect.signature(made).parameters.values()
    return {p.name: p.default for p in signature}


def choices(annotation):
    """All words among which a setting is chosen, however it is wrapped."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*map(choices, get_args(annotation)))


NOT_OF_FILES = {
    "lime": {"law"},
    "lime_package": {"background"},
    "exact_lime": {"background"},
}
"""Tables and laws, which a file cannot hold."""


@pytest.mark.parametrize(
    "section", baseline_sections.BASELINE_SECTIONS, ids=lambda s: s.__name__
)
def test_a_baseline_has_the_settings_of_its_class(section):
    fields = {f.name: f.default for f in dataclasses.fields(section.makes)}
    own = {"method", "bandwidth"}  # the law of texts is made of it
    given = {n: f for n, f in section.model_fields.items() if n not in own}
    assert set(given) == set(fields) - NOT_OF_FILES.get(section.makes.method, set())
    hints = get_type_hints(section.makes)
    for name, field in given.items():
        assert choices(field.annotation) == choices(hints[name]), name
        if not field.is_required() and not isinstance(field.default, list):
            assert field.default == fields[name], name


def test_the_bandwidth_of_baselines_is_that_of_the_package():
    sections = baseline_sections.BASELINE_SECTIONS
    fields = [x.model_fields.get("bandwidth") for x in sections]
    assert {x.default for x in fields if x} == {TextLaw().bandwidth}


def test_every_baseline_can_stand_in_a_file():
    made = {section.makes.method for section in baseline_sections.BASELINE_SECTIONS}
    assert made == set(explainers.BASELINES)


BUILT_BY = {
    "gaussian": graphs.gaussian_graph,
    "grid_gaussian": grid_gaussian_graph,
    "knn": graphs.knn_graph,
    "cosine": graphs.cosine_graph,
    "threshold": graphs.threshold_graph,
    "complete": graphs.complete_graph,
    "chain": graphs.chain_graph,
    "pixel": graphs.pixel_graph,
    "correlation": graphs.correlation_graph,
    "group": graphs.group_graph,
}
ALL_GRAPHS = {*graph_sections.POINT_GRAPHS, *graph_sections.FEATURE_GRAPHS}
FROM_THE_SUBJECT = {"X", "n_nodes"}


@pytest.mark.parametrize("section", ALL_GRAPHS, ids=lambda s: s.__name__)
def test_a_graph_has_the_settings_of_its_builder(section):
    (kind,) = get_args(section.model_fields["kind"].annotation)
    taken = defaults(BUILT_BY[kind])
    given = {n: f for n, f in section.model_fields.items() if n != "kind"}
    assert set(given) == set(taken) - FROM_THE_SUBJECT
    for name, field in given.items():
        assert field.is_required() == (taken[name] is inspect.Parameter.empty)
        assert field.is_required() or field.default == taken[name]


MADE = {
    "gradient_matching": (losses.GradientMatching, {"norm"}),
    "max_difference_robustness": (
        losses.MaxDifferenceRobustness,
        {"aggregate", "norm"},
    ),
    "kernel_robustness": (losses.KernelRobustness, {"mean"}),
}


@pytest.mark.parametrize("name", MADE)
def test_a_loss_has_the_settings_of_its_class(name):
    (section,) = (s for s in loss_sections.LOSSES if s.name == name)
    made, names = MADE[name]
    hints = get_type_hints(made.__init__)
    for setting in names:
        field = section.model_fields[setting]
        assert field.default == defaults(made)[setting]
        assert choices(field.annotation) == choices(hints[setting])


def test_every_loss_of_a_file_is_a_loss_of_that_name():
    of_files = {section.name for section in loss_sections.LOSSES}
    assert set(loss_sections.Losses.model_fields) == of_files
    for name in of_files:
        assert hasattr(losses, "".join(map(str.capitalize, name.split("_"))))


@pytest.mark.parametrize(
    ("section", "made", "others"),
    [
        (MinipatchesSection, po.interactions.Minipatches, {"keep", "folder"}),
        (SplitSection, po.interactions.DataSplit, {"folds", "groups"}),
        (ScreenSection, po.interactions.Screen, {"scheme"}),
    ],
)
def test_a_scheme_has_the_settings_of_its_class(section, made, others):
    taken, hints = defaults(made), get_type_hints(made)
    given = {n: f for n, f in section.model_fields.items() if n != "kind"}
    assert set(given) == set(taken) - others
    for name, field in given.items():
        assert field.default == taken[name]
        if name not in ("rows", "n_features"):  # sizes, of which sqrt is one
            assert choices(field.annotation) == choices(hints[name]), name


def test_interactions_have_the_settings_of_the_estimator_and_its_scores():
    given = InteractionsSection.model_fields
    iloco = defaults(po.interactions.ILOCO)
    for name in ("order", "sets", "error"):
        assert given[name].default == iloco[name]
    frame = po.interactions.InteractionScores.to_frame
    taken, hints = defaults(frame), get_type_hints(frame)
    for name in ("level", "adjust", "side", "against"):
        assert given[name].default == taken[name]
        assert choices(given[name].annotation) == choices(hints[name])


def test_keys_of_a_job_are_those_of_a_problem_file():
    for job in JOBS:
        assert job.key in job.own_keys()
        assert job.own_keys() <= ProblemSchema.model_fields.keys()


def test_a_graph_of_no_known_kind_is_refused_and_becomes_no_other():
    with pytest.raises(po.errors.ProblemFileError, match="expected 'gaussian'"):
        po.problems.read_sections(
            {
                "data": {"sklearn": "iris"},
                "function": {"name": "sine"},
                "objective": {"pairwise_robustness": {"graph": {"kind": "ring"}}},
            }
        )
