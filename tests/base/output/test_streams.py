"""Streams that outlive what they write to."""

import io

from propopt.base.streams import PatientStream


def test_a_stream_that_was_closed_before_is_silent():
    inner = io.StringIO()
    stream = PatientStream(inner)
    inner.close()
    assert stream.write("late") == 4
    stream.flush()
    stream.close()  # as Python does with a stream that it forgets
    assert stream.failure is None
