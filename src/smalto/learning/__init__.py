"""Dictionary learning: `learn`, its state and files, and callbacks."""

from smalto.learning._learn import Result, learn
from smalto.learning.callbacks.base import Callback
from smalto.learning.callbacks.checkpoint import Checkpoint
from smalto.learning.callbacks.early_stopping import EarlyStopping
from smalto.learning.callbacks.log import Log
from smalto.learning.callbacks.progress import Progress
from smalto.learning.files.as_json import register
from smalto.learning.files.model import Model
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats
from smalto.learning.one_by_one import OneByOne

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "Log",
    "Model",
    "OneByOne",
    "Progress",
    "Record",
    "Result",
    "State",
    "Stats",
    "learn",
    "register",
]
