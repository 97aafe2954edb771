"""Standard streams that survive a closed pipe, a full disk and ASCII encodings."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class PatientStream(io.TextIOBase):
    """A stream to which writing never fails, so a run continues without a reader.

    Characters outside of its encoding become escapes. After a failure nothing more is
    written; ``failure`` has the error.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute in the stubs
        """The encoding of the stream."""
        return (self._stream and self._stream.encoding) or "utf-8"

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        return super().fileno() if self._stream is None else self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._write(text)
        return len(text)

    def flush(self) -> None:
        self._write(None)

    def _write(self, text: str | None) -> None:
        """Write a text, or flush; nothing after a failure, or if the stream is closed.

        Python flushes a stream when it is collected, perhaps long after that.
        """
        stream = self._stream
        if stream is None or stream.closed or self.failure is not None:
            return
        try:
            if text is None:
                stream.flush()
            else:
                stream.write(text)
        except UnicodeEncodeError:
            escaped = str(text).encode(self.encoding, "backslashreplace")
            self._write(escaped.decode(self.encoding))
        except OSError as error:
            self.failure = error
            # buffered text would fail again when Python ends
            with suppress(OSError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())


@contextmanager
def patient_streams() -> Iterator[tuple[PatientStream, PatientStream]]:
    """Replace standard output and standard error by :class:`PatientStream`."""
    _take_closed_descriptors()
    before = sys.stdout, sys.stderr
    out, err = map(PatientStream, before)
    sys.stdout = out
    sys.stderr = err
    try:
        yield out, err
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def _take_closed_descriptors() -> None:
    """Open the standard descriptors that are closed.

    Otherwise the next file that is opened gets one, and all that libraries print.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
