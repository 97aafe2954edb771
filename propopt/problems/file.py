"""Problem files: their schema and their validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, get_args

from pydantic import ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from propopt.base.checks import did_you_mean
from propopt.base.errors import ProblemFileError, PropoptError
from propopt.base.suggestions import suggestion, suggests_arguments
from propopt.base.text import enumerated
from propopt.problems.jobs.audit import AuditSection
from propopt.problems.jobs.compare import CompareSection
from propopt.problems.jobs.explain import ExplainSection
from propopt.problems.jobs.interactions import InteractionsSection
from propopt.problems.jobs.job import JobSection
from propopt.problems.jobs.lime import LimeSection
from propopt.problems.jobs.sweep import SweepKeys
from propopt.problems.sections import (
    OneOf,
    Section,
    collect_errors,
    wrong,
)
from propopt.problems.sources import (
    MOST_MISTAKES,
    SHORT,
    Source,
    error_at,
    joint_error,
    yaml_source,
)
from propopt.problems.subject.data import ProblemFile, check_table
from propopt.problems.subject.models import Code


# ---- The schema of a problem file: a subject and one job


JOBS: Final[tuple[type[JobSection], ...]] = (
    SweepKeys,
    ExplainSection,
    LimeSection,
    InteractionsSection,
    AuditSection,
    CompareSection,
)


class ProblemSchema(SweepKeys):
    """The schema of a problem file: keys of its subject, and the keys of one job."""

    explain: ExplainSection | None = Field(
        None, description="one explanation with stated defaults; {} takes them all"
    )
    lime: LimeSection | None = Field(
        None,
        description="what the coefficients of LIME tend to, exactly, and what they "
        "hide; {} takes all defaults",
    )
    interactions: InteractionsSection | None = Field(
        None,
        description="how much features matter jointly, with intervals; {} takes all "
        "defaults",
    )
    audit: AuditSection | None = Field(
        None,
        description="whether attributions from elsewhere are right, and what would do",
    )
    compare: CompareSection | None = Field(
        None,
        description="what changed since another version, held against refits of that",
    )

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [job.key]} for job in JOBS]}
    )

    @property
    def job(self) -> JobSection:
        """The section of the job: the first one that the file has."""
        for job in JOBS[1:]:
            section: JobSection | None = getattr(self, job.key)
            if section is not None:
                return section
        return self

    def conflicts(self) -> Iterator[PropoptError]:
        """Errors of files without a job, with two jobs, or with keys of other jobs."""
        errors = [*super().conflicts()]
        yield from errors
        job_names = [one.key for one in JOBS]
        job = self.job
        keys = [key for key in job_names if getattr(self, key) is not None]
        if len(keys) != 1:
            got = enumerated(keys, "and") or "none of them"
            expected = f"expected exactly one of {enumerated(job_names, 'and')}"
            yield wrong(f"{expected}, got {got}", *keys[-1:])
            return
        of_jobs = {key for one in JOBS for key in one.job_keys()}
        of_others = (of_jobs - job.job_keys()) & self.model_fields_set
        for name in sorted(of_others):
            yield wrong(f"has no effect with {job.key}", name)
        if not (errors or of_others):
            yield from job.mistakes(self)


# ---- Sections at a location, for messages


def sections_at(location: tuple[str | int, ...]) -> list[type[Section]]:
    """The possible sections at a location, by its keys and chosen kinds."""
    sections: list[type[Section]] = [ProblemSchema]
    for step in location:
        fields = [s.model_fields[str(step)] for s in sections if step in s.model_fields]
        annotations = [
            x for field in fields for x in (field.annotation, *field.metadata)
        ]
        deeper = [
            inner for annotation in annotations for inner in _sections_in(annotation)
        ]
        chosen = [section for section in sections if step in _kinds_of(section)]
        sections = deeper or chosen or sections
    return sections


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, OneOf):
        yield from annotation.sections
    elif isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections_in(argument)


def _kinds_of(section: type[Section]) -> tuple[str, ...]:
    """The ``kind``, ``method`` or ``rule`` that chooses a section in a union."""
    for name in ("kind", "method", "rule"):
        if name in section.model_fields:
            return get_args(section.model_fields[name].annotation)
    return ()


# ---- Validation against the schema, with one message for each error


def read_schema(source: Source) -> ProblemSchema:
    """The validated content of a problem file."""
    try:
        return ProblemSchema.model_validate(source.content)
    except ValidationError as error:
        keys = [x.alias or name for name, x in ProblemSchema.model_fields.items()]
        given = [
            key for key in source.content if key in keys or did_you_mean(key, keys)
        ]
        if source.content and not given:  # nothing of another file may be shown
            message = "is not a problem file: none of its keys is valid; valid keys: "
            message += ", ".join(keys)
            raise error_at(source.path, 1, (), message) from None
        mistakes = sorted(error.errors(), key=lambda x: source.find(x["loc"])[0])
        first = mistakes[: MOST_MISTAKES + 1]  # of which the last only ends the list
        raise joint_error(_located(source, mistake) for mistake in first) from None


def _located(source: Source, detail: ErrorDetails) -> ProblemFileError:
    """An error of pydantic, in the words of a user."""
    location = detail["loc"]
    value = detail["input"]
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            fields = sections_at(location[:-1])[0].model_fields
            keys = [field.alias or name for name, field in fields.items()]
            hint = suggestion("key", location[-1]) or did_you_mean(location[-1], keys)
            message = f"unknown key{hint}; valid keys: {', '.join(keys)}"
            return source.error(location, message)
        case "missing":
            return source.lacks(*location)
        case "union_tag_not_found":
            return source.lacks(*location, context["discriminator"].strip("'"))
        case "union_tag_invalid":
            key = context["discriminator"].strip("'")
            words = context["expected_tags"]
            return source.error((*location, key), _unknown_name(value[key], words))
        case "literal_error":
            return source.error(location, _unknown_name(value, context["expected"]))
        case kind if kind in _EXPECTED:
            expected = _EXPECTED[kind].format(**context)
            return source.error(location, f"expected {expected}, got {_shown(value)}")
    part = context.get("part", ())  # of a missing key
    return source.error((*location[: len(location) - len(part)], *part), detail["msg"])


def _unknown_name(value: object, words: str) -> str:
    """What is wrong with a name, given the valid ones: ``'a', 'b' or 'c'``."""
    hint = did_you_mean(value, re.findall(r"'([^']*)'", words))
    return f"expected {words}, got {_shown(value)}{hint}"


_MAPPING = "a mapping of keys to values"
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": _MAPPING,
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number > {gt:g}",
    "greater_than_equal": "a number >= {ge:g}",
    "int_type": "a whole number",
    "less_than": "a number < {lt:g}",
    "less_than_equal": "a number <= {le:,}",
    "list_type": "a list",
    "model_attributes_type": _MAPPING,
    "model_type": _MAPPING,
    "shape": "{expected}",
    "string_pattern_mismatch": "letters, digits, '_', '-' and '.' only",
    "string_too_long": "at most {max_length} characters",
    "string_type": "text",
    "too_long": "a list of at most {max_length}",
    "too_short": "a list of at least {min_length}",
}


def _shown(value: Any) -> str:
    """A value as in the file, or its type."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= SHORT else f"{text[:40]}… ({len(text)} characters)"


@suggests_arguments
def read_problem(path: str | Path, code: Code = Code.REFUSED) -> ProblemFile:
    """Read and validate a problem file, without computing anything.

    Parameters
    ----------
    path : path
        The file.
    code : Code
        Whether Python objects that it names may be imported, which runs their modules.

    Returns
    -------
    ProblemFile
        The valid file, ready to build or run.

    Raises
    ------
    ProblemFileError
        ``file:line: path.to.key: message``, with one line for each error.
    """
    return _checked(path, code)


@suggests_arguments
def read_sections(
    sections: Mapping[str, Any],
    name: str = "problem",
    folder: str | Path = ".",
    code: Code = Code.REFUSED,
) -> ProblemFile:
    """Validate a mapping with the sections of a problem file.

    Parameters
    ----------
    sections : mapping
        The sections of a problem file, of plain values.
    name : str
        Stem of the output files, unless ``sections`` has a name.
    folder : path
        Folder of the files that it names.
    code : Code
        Whether Python objects that it names may be imported, which runs their modules.

    Returns
    -------
    ProblemFile
        The valid sections, ready to build or run.

    Raises
    ------
    ProblemFileError
        ``path.to.key: message``, with one line for each error.

    Examples
    --------
    >>> import propopt as po
    >>> file = po.problems.read_sections(
    ...     {
    ...         "data": {"sklearn": "iris"},
    ...         "function": {"name": "sine"},
    ...         "objective": {"gradient_matching": 1, "sparsity": 0.1},
    ...     }
    ... )
    >>> file.build().objective
    1 * gradient_matching + 0.1 * sparsity
    """
    return _checked(Source(dict(sections), Path(folder) / name, name), code)


def _checked(file: str | Path | Source, code: Code) -> ProblemFile:
    source = file if isinstance(file, Source) else yaml_source(file)
    with source.locating_errors(), collect_errors() as mistakes:
        mistakes.errors += source.duplicates
        with mistakes.noted():
            schema = read_schema(source)
        if mistakes.errors:
            check_table(source)
    return ProblemFile(source, schema, code, read=_checked)
