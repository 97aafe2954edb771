"""Options of jobs: every key is described, every argument is a key, defaults agree."""

from dataclasses import fields

import pytest

import propopt as po
from propopt import cli
from propopt.explaining.problem import Settings
from propopt.problems.file import JOBS
from propopt.problems.losses import BASELINE_SECTIONS


OF_COMMAND = {"reasons", "rows"}
"""Keys of ``explain`` that are no settings of :func:`propopt.explain`."""


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.command)
def test_each_argument_of_a_command_is_a_key_of_its_job_or_file(job, monkeypatch):
    given = {}

    def run(options):
        given.update(vars(options))
        return 0

    monkeypatch.setattr(cli, "_run_files", run)
    assert cli.main([job.command, "file.yaml"]) == 0
    of_file = {field.name for field in fields(po.problems.ProblemFile)}
    missing = given.keys() - cli.OF_COMMANDS - of_file - set(job.model_fields)
    assert not missing, f"add to {job.__name__} a field for each of {sorted(missing)}"


@pytest.mark.parametrize(
    "section", [*JOBS[1:], *BASELINE_SECTIONS], ids=lambda section: section.__name__
)
def test_each_key_of_a_job_or_baseline_is_described(section):
    keys = section.model_fields.items()
    missing = [name for name, x in keys if name != "method" and not x.description]
    assert not missing, f"{section.__name__}: give Field(description=...) to {missing}"


def test_each_key_of_explain_has_the_default_of_its_setting():
    (job,) = (job for job in JOBS if job.command == "explain")
    declared = {field.name: field.default for field in fields(Settings)}
    declared |= {field.name: field.default for field in fields(po.Sampling)}
    for name in job.model_fields.keys() - OF_COMMAND:
        assert name in declared, (
            f"{name} is a setting of po.explain (a field of Settings), or a key of the "
            "command alone: add it to OF_COMMAND of this test"
        )
        assert job.model_fields[name].default == declared[name], name
