"""Files of a test, in a folder of its own, and what is read of them."""

import pytest

import propopt as po
from propopt.base.errors import ProblemFileError
from propopt.cli import main
from propopt.problems import Code


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="file.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


@pytest.fixture
def said(write, tmp_path, capsys):
    """The exit code of a command on a text and what it says, without the folder."""

    def run(text, *command):
        code = main([*command, str(write(text))])
        return code, capsys.readouterr().err.replace(f"{tmp_path}/", "").rstrip()

    return run


@pytest.fixture
def problem(write):
    """What is read of a text."""

    def read(text, code=Code.REFUSED):
        return po.problems.read_problem(write(text), code)

    return read


@pytest.fixture
def subject(problem):
    return lambda *given, **settings: problem(*given, **settings).subject


@pytest.fixture
def complaint(problem, tmp_path):
    """What a check or else the function says, without the folder."""

    def made(*given, **settings):
        file = problem(*given, **settings)
        file.check_data()
        return file.subject.function

    def check(*given, **settings):
        with pytest.raises(ProblemFileError) as caught:
            made(*given, **settings)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return check
