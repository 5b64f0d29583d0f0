"""The plugin of pytest by which `cowboyctl actor test --fuzz N` sets how many examples Hypothesis
tries. Tests with a `max_examples` of their own keep it.
"""

import os

import pytest
from hypothesis import settings


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    # After Hypothesis has loaded the profile that is asked for, whose other settings stay.
    examples = int(os.environ["COWBOYCTL_MAX_EXAMPLES"])
    settings.register_profile("cowboyctl", settings(), max_examples=examples)
    settings.load_profile("cowboyctl")
