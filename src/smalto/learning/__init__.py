"""Learning a dictionary: the loop, what is remembered of the past, how atoms are updated."""

from smalto.learning.atoms import Replacement
from smalto.learning.batch import Batch
from smalto.learning.callbacks import EarlyStopping, Progress
from smalto.learning.continuation import Continuation
from smalto.learning.learner import Learner
from smalto.learning.loop import Callback, Result, learn
from smalto.learning.online import Online
from smalto.learning.sgd import SGD
from smalto.learning.state import Record, State
from smalto.learning.stats import Stats

__all__ = [
    "SGD",
    "Batch",
    "Callback",
    "Continuation",
    "EarlyStopping",
    "Learner",
    "Online",
    "Progress",
    "Record",
    "Replacement",
    "Result",
    "State",
    "Stats",
    "learn",
]
