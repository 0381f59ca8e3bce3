"""How Hypothesis looks for examples.

By default the same examples in every run, so that the tests pass or fail every time. With
``SMALTO_HYPOTHESIS=explore`` other ones each time, and many more of them.
"""

import os

from hypothesis import HealthCheck, settings

ALWAYS = {
    "deadline": None,  # how long an example takes says more about the machine than about the code
    "suppress_health_check": [HealthCheck.too_slow],
    "print_blob": True,
}
settings.register_profile("repeatable", derandomize=True, **ALWAYS)
settings.register_profile("explore", derandomize=False, max_examples=2000, **ALWAYS)
settings.load_profile(os.environ.get("SMALTO_HYPOTHESIS", "repeatable"))
