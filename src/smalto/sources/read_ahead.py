"""Reading ahead in the background, so that coding does not wait for the disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

_PATIENCE = 5.0  # seconds to wait for a read that is under way when all is over


class ReadAhead(Generic[Item]):
    """An iterator that a thread of its own keeps a few items ahead.

    Items come in the order of the iterator, and so does its exception, if it raises one: after
    the items before it. The thread ends with the iterator, or at `close`.

    Parameters
    ----------
    items : iterator
        What to read; only the thread calls it.
    depth : int, default 2
        How many items are read ahead at most.

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
        # A daemon: one that hangs in somebody's iterator does not keep the interpreter alive.
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
        """End the thread; what was read ahead is lost."""
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
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is the reader's)
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
