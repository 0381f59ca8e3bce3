"""Read ahead in a background thread, so that coding does not wait for the disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

_PATIENCE = 5.0  # seconds that `close` waits for a read in progress


class ReadAhead(Generic[Item]):
    """An iterator that a background thread reads a few items ahead.

    Items come in the order of the iterator. If it raises, the exception is raised after the items
    before it. The thread ends with the iterator, or on `close`.

    Parameters
    ----------
    items : iterator
        The items to read; only the thread calls it.
    depth : int, default 2
        Maximum number of items read ahead.

    See Also
    --------
    Stream : Reads batches ahead with it.

    Examples
    --------
    >>> from smalto.sources import ReadAhead
    >>> with ReadAhead(iter([1, 2, 3])) as ahead:
    ...     list(ahead)
    [1, 2, 3]
    """

    def __init__(self, items: Iterator[Item], depth: int = 2) -> None:
        self._items = items
        self._ready: deque[Item] = deque()
        self._error: BaseException | None = None
        self._ended = self._closed = False
        self._depth = depth
        self._changed = threading.Condition()
        # A daemon: an iterator that hangs must not keep the interpreter alive.
        self._thread = threading.Thread(target=self._read, name="smalto-read-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> ReadAhead[Item]:
        return self

    def __next__(self) -> Item:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._ended or self._closed)
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """Stop the thread; items read ahead are lost."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        self._thread.join(_PATIENCE)

    def __enter__(self) -> ReadAhead[Item]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._ready) < self._depth or self._closed)
                    if self._closed:
                        return
                item = next(self._items)
                with self._changed:
                    if not self._closed:
                        self._ready.append(item)
                    self._changed.notify_all()
        except StopIteration:
            pass
        except BaseException as error:  # noqa: BLE001 (raised by __next__)
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
