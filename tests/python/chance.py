"""Where randomised tests get their numbers from.

ROOST_SEED    the seed of the run: tools/run-tests chooses and prints one; 0 without it
ROOST_RANDOM  set to 1 for new Hypothesis cases with every seed; otherwise they are always the same
"""

import os
import random

from hypothesis import HealthCheck, settings

# Read once: homes of tests take the variables of roost out of the environment.
SEED = os.environ.get("ROOST_SEED", "0")
IS_RANDOM = os.environ.get("ROOST_RANDOM") == "1"

settings.register_profile(
    "roost",
    deadline=None,
    derandomize=not IS_RANDOM,
    # Derandomized runs must not depend on what an earlier run left behind.
    **({} if IS_RANDOM else {"database": None}),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
PROFILE = settings.get_profile("roost")


def dice(*words: object) -> random.Random:
    """Random numbers that ROOST_SEED and `words` decide. pytest shows the line that this prints when the test fails."""
    print(f"seed {SEED}: ROOST_SEED={SEED} gives the same numbers again")
    return random.Random(" ".join(map(str, (SEED, *words))))
