"""Estimators: learning as scikit-learn has it."""

from smalto.estimators.dictionary_learning import DictionaryLearning

__all__ = ["DictionaryLearning"]
