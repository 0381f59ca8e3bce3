"""scikit-learn's own tests, read from its installed package, with our names in place of its own."""

import ast
import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

import smalto.compat.sklearn as ours

MADE_FOR = "1.9"  # the version of scikit-learn that `LEFT_OUT` was made for
INSTALLED = importlib.metadata.version("scikit-learn")

LOSS = "wants a beta_loss other than 2, which raises NotImplementedError here"
INTERNAL = "tests a private function of scikit-learn, and nothing of ours"

# Tests that are left out, by file, and why. A name without [...] stands for all parameters.
LEFT_OUT = {
    "test_dict_learning": {
        "test_update_dict": INTERNAL,
    },
    "test_sparse_pca": {},
    "test_nmf": {
        "test_initialize_nn_output": INTERNAL,
        "test_initialize_close": INTERNAL,
        "test_initialize_variants": INTERNAL,
        "test_beta_divergence": INTERNAL,
        "test_special_sparse_dot": INTERNAL,
        "test_nmf_underflow": INTERNAL,
        "test_nmf_true_reconstruction": LOSS,
        "test_nmf_multiplicative_update_sparse": LOSS,
        "test_nmf_negative_beta_loss": LOSS,
        "test_minibatch_nmf_negative_beta_loss": LOSS,
        "test_nmf_decreasing[mu]": LOSS,
        "test_nmf_minibatchnmf_equivalence[-0.5]": LOSS,
        "test_nmf_minibatchnmf_equivalence[0]": LOSS,
        "test_nmf_minibatchnmf_equivalence[0.5]": LOSS,
        "test_nmf_minibatchnmf_equivalence[1]": LOSS,
        "test_nmf_minibatchnmf_equivalence[1.5]": LOSS,
        "test_nmf_minibatchnmf_equivalence[2.5]": LOSS,
        "test_minibatch_nmf_partial_fit": (
            "compares runs on different samples, equal only because both write into the given H"
        ),
    },
}


def borrowed(name):
    """Return the tests of a file of scikit-learn, and what they need, by name.

    Warnings are not errors in them, as there.
    """
    if not INSTALLED.startswith(f"{MADE_FOR}."):
        reason = f"the list of tests is for scikit-learn {MADE_FOR}, not {INSTALLED}"
        pytest.skip(reason, allow_module_level=True)
    path = Path(importlib.util.find_spec(f"sklearn.decomposition.tests.{name}").origin)
    tree = _Ours().visit(ast.parse(path.read_text(encoding="utf-8")))
    found = {"__name__": f"borrowed_{name}"}
    exec(compile(ast.fix_missing_locations(tree), path, "exec"), found)
    tests = {key: value for key, value in found.items() if key.startswith("test_")}
    for test in tests.values():
        test.pytestmark = [pytest.mark.filterwarnings("default"), *getattr(test, "pytestmark", [])]
    return {**tests, "leave_out": _leave_out(LEFT_OUT[name]), "global_random_seed": _seed}


class _Ours(ast.NodeTransformer):
    """Imports our names instead of scikit-learn's, and drops marks that are not known here."""

    def visit_ImportFrom(self, node):
        if node.module != "sklearn.decomposition":
            return node
        replaced = [alias for alias in node.names if alias.name in ours.__all__]
        others = [alias for alias in node.names if alias.name not in ours.__all__]
        imports = [ast.ImportFrom("smalto.compat.sklearn", replaced, 0)] if replaced else []
        return imports + ([ast.ImportFrom(node.module, others, 0)] if others else [])

    def visit_FunctionDef(self, node):
        node.decorator_list = [
            mark for mark in node.decorator_list if "thread_unsafe" not in ast.unparse(mark)
        ]
        return node


def _leave_out(reasons):
    @pytest.fixture(autouse=True)
    def leave_out(request):
        test = request.node.name
        reason = reasons.get(test, reasons.get(test.partition("[")[0]))
        if reason is not None:
            pytest.skip(reason)

    return leave_out


@pytest.fixture(name="global_random_seed")
def _seed():
    return 42
