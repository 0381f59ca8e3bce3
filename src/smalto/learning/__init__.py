"""Learning a dictionary: the loop, what is remembered of the past, how atoms are updated."""

from smalto.learning.callbacks.checkpoint import Checkpoint
from smalto.learning.callbacks.progress import EarlyStopping, Progress
from smalto.learning.files.model import Model
from smalto.learning.files.settings import register
from smalto.learning.learners.base import Learner
from smalto.learning.learners.batch import Batch
from smalto.learning.learners.online import Online
from smalto.learning.learners.sgd import SGD
from smalto.learning.loop import Callback, Result, learn
from smalto.learning.memory.state import Record, State
from smalto.learning.memory.statistics import Stats
from smalto.learning.one_by_one import OneByOne
from smalto.learning.options import Continuation, Replacement

__all__ = [
    "SGD",
    "Batch",
    "Callback",
    "Checkpoint",
    "Continuation",
    "EarlyStopping",
    "Learner",
    "Model",
    "OneByOne",
    "Online",
    "Progress",
    "Record",
    "Replacement",
    "Result",
    "State",
    "Stats",
    "learn",
    "register",
]
