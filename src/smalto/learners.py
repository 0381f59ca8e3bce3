"""Learners: how the dictionary follows from the data, and the settings that go with them."""

from smalto.learning.learners.base import Learner
from smalto.learning.learners.batch import Batch
from smalto.learning.learners.online import Online
from smalto.learning.learners.sgd import SGD
from smalto.learning.options import Continuation, Replacement

__all__ = ["SGD", "Batch", "Continuation", "Learner", "Online", "Replacement"]
