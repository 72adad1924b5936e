"""Waits for other processes without polling: the kernel reports changed files below a folder and ended processes."""
import ctypes
import errno
import os
import select
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLOSE_ON_EXEC = 0o2000000
_MODIFIED = 0x2
_WRITTEN_MOVED_OR_MADE = _MODIFIED | 0x8 | 0x40 | 0x80 | 0x100 | 0x200  # IN_MODIFY, _CLOSE_WRITE, _MOVED_*, _CREATE, _DELETE


class Watch:
    """Watches a folder and all folders below it, also new ones. Single-threaded; use as a context manager or call close."""

    def __init__(self, folder):
        self._folder = folder
        self._events = _LIBC.inotify_init1(_CLOSE_ON_EXEC)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self._events)

    def _cover(self):
        for folder, _, _ in os.walk(self._folder):
            # The learner writes the file checkpoints/updates at every update. All else in that folder comes by a rename.
            changes = _WRITTEN_MOVED_OR_MADE & ~(_MODIFIED if os.path.basename(folder) == "checkpoints" else 0)
            status = _LIBC.inotify_add_watch(self._events, os.fsencode(folder), changes)
            if status < 0 and ctypes.get_errno() != errno.ENOENT:  # removed in the meantime
                raise OSError(ctypes.get_errno(), "inotify_add_watch", folder)

    def wait(self, condition, seconds, *processes):
        """Checks the condition whenever something changed or one of the processes ended; returns False at the timeout.

        A process is given by its id. Folders are watched before the condition is checked, so no change is missed in between.
        """
        deadline = time.monotonic() + seconds
        ends = [end for end in map(_end_of, processes) if end is not None]
        try:
            while True:
                self._cover()
                if condition():
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                ready, _, _ = select.select([self._events, *ends], [], [], left)
                if self._events in ready:
                    os.read(self._events, 65536)
                for end in set(ready) & set(ends):
                    ends.remove(end)
                    os.close(end)
        finally:
            for end in ends:
                os.close(end)


def _end_of(process):
    """A descriptor that becomes readable when the process ends; None when it has already ended."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        return None
# SPDX-License-Identifier: Apache-2.0
