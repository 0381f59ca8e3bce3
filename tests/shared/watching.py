"""A callback that notes what is done with it."""

from smalto.learning import Callback


class Watch(Callback):
    """Notes what is done with it, and raises where it is told to."""

    def __init__(self, fails=""):
        self.fails, self.done = fails, []

    def _note(self, name):
        self.done.append(name)
        if self.fails == name:
            raise ArithmeticError(name)

    def __call__(self, state, record):
        self._note("call")

    def finish(self, state):
        self._note("finish")

    def close(self):
        self._note("close")
