"""Learning a dictionary: the loop, what is remembered of the past, how atoms are updated."""

from smalto.learning.batch import Batch
from smalto.learning.callbacks import EarlyStopping, Progress
from smalto.learning.checkpoint import Checkpoint
from smalto.learning.continuation import Continuation
from smalto.learning.learner import Learner
from smalto.learning.loop import Callback, Result, learn
from smalto.learning.model import Model
from smalto.learning.one_by_one import OneByOne
from smalto.learning.online import Online
from smalto.learning.replacement import Replacement
from smalto.learning.settings import register
from smalto.learning.sgd import SGD
from smalto.learning.state import Record, State
from smalto.learning.stats import Stats

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
