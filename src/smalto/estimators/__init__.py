"""Estimators: learning as scikit-learn has it."""

from smalto.estimators.dictionary_learning import DictionaryLearning
from smalto.estimators.nmf import NMF

__all__ = ["NMF", "DictionaryLearning"]
