"""scikit-learn's test_dict_learning.py with our names."""

from sklearn_tests import borrowed

globals().update(borrowed("test_dict_learning"))
