"""Standard output and error that outlive their readers, a full disk and ASCII."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class PatientStream(io.TextIOBase):
    """A stream to which writing never fails, so that work goes on when nobody reads.

    Characters that its encoding does not have become escapes. After a failure it is
    silent; the failure is kept for whoever wants to tell of it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute in the stubs
        """That of the stream."""
        return (self._stream and self._stream.encoding) or "utf-8"

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        return super().fileno() if self._stream is None else self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._stream is not None and self._is_open:
            with self._kept_failure():
                self._write(self._stream, text)
        return len(text)

    def flush(self) -> None:
        if self._stream is not None and self._is_open:
            with self._kept_failure():
                self._stream.flush()

    @property
    def _is_open(self) -> bool:
        """False after a failure, and where the stream was closed before this one.

        Python flushes a stream that it forgets, perhaps long after that.
        """
        closed = self._stream is None or self._stream.closed
        return not closed and self.failure is None

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            escaped = text.encode(self.encoding, "backslashreplace")
            stream.write(escaped.decode(self.encoding))

    @contextmanager
    def _kept_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = error
            # what waits in buffers would fail again when Python ends
            with suppress(OSError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())


@contextmanager
def patient_streams() -> Iterator[tuple[PatientStream, PatientStream]]:
    """Put a :class:`PatientStream` in the place of standard output and of error."""
    _take_closed_descriptors()
    before = sys.stdout, sys.stderr
    out, err = map(PatientStream, before)
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def _take_closed_descriptors() -> None:
    """Open those of the three standard descriptors that are closed.

    The next file that is opened would take their place, and what a library prints.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
