"""Lines of work that goes on where there is no terminal, and bars where there is."""

import io
import sys
import threading
import time

import pytest
from rich.progress import Progress

from propopt.base import terminal
from propopt.base.terminal import LoggedProgress, counting, progress_bar, silent


@pytest.fixture
def clock(monkeypatch):
    """Seconds, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(terminal, "perf_counter", lambda: now[0])
    return now


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_log_has_the_cost_after_the_first_part_and_a_line_a_minute(clock, capsys):
    log = LoggedProgress("fits", 0, 1000, None)
    said = {}
    for n in range(1, 101):  # ten fits in two seconds
        clock[0] = 2.0 * n
        log.advance(10)
        said[n] = lines(capsys)
    assert said[1] == ["fits: 10 of 1,000 done in 2 s, about 3.3 min left"]
    # 62 s, 122 s and 182 s: 1000 fits take 200 s
    assert [n for n, own in said.items() if own] == [1, 31, 61, 91]
    assert said[31] == ["fits: 310 of 1,000 done in 62 s, about 2.3 min left"]


def test_what_was_done_before_tells_no_speed(clock, capsys):
    log = LoggedProgress("fits", 900, 1000, None)
    clock[0] = 2.0
    log.advance(10)
    assert lines(capsys) == ["fits: 910 of 1,000 done in 2 s, about 0.3 min left"]


@pytest.mark.parametrize("wanted", [False, True, None])
def test_short_unwanted_and_silent_work_says_nothing(wanted, clock, capsys):
    with silent(wanted is None):
        log = LoggedProgress("fits", 0, 1000, wanted)
    clock[0] = 50.0
    log.advance(10)
    short = LoggedProgress("fits", 0, 10, None)
    clock[0] += 0.9
    short.advance(1)  # nine seconds in all
    assert lines(capsys) == []


@pytest.mark.parametrize(
    ("wanted", "soon", "shown"), [(None, 60, 0), (None, 0, 1), (True, 60, 1)]
)
def test_a_bar_appears_once_work_takes_a_second(wanted, soon, shown, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "_SOON", soon)
    with progress_bar("explain", 2, wanted) as advance:
        end = time.monotonic() + 20.0
        while shown and "explain" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        advance(2)
    assert (
        ("2/2" in stream.getvalue()) == ("explain" in stream.getvalue()) == bool(shown)
    )
    assert bool(stream.getvalue()) == bool(shown)
    assert not any(isinstance(one, threading.Timer) for one in threading.enumerate())
    assert sys.stderr is stream


@pytest.mark.parametrize("n_done", [2, 20, 300])
def test_two_threads_that_end_together_leave_a_true_time(n_done, monkeypatch):
    bars, now = [], [0.0]

    class Timed(Progress):
        def __init__(self, *columns, **settings):
            super().__init__(*columns, **settings, get_time=lambda: now[0])
            bars.append(self)

    monkeypatch.setattr(terminal, "Progress", Timed)
    with counting("explain", 0, 640, True) as advance:
        now[0] = 100.0  # of preparations
        advance(0)
        for n in range(n_done):
            now[0] = 113.0 + 13.0 * (n // 2)
            advance(1)
        left = 13.0 * (640 - n_done) / 2
        assert bars[0].tasks[0].time_remaining == pytest.approx(left, rel=0.02)
