"""Imports that the machine refuses, and those that it knows."""

import collections.abc
import dataclasses
import json
import os.path  # expect: import-refused
import random  # expect: import-refused
from decimal import Decimal
from typing import Any

import cowboy_sdk.testing  # expect: import-refused
import math.linear  # expect: import-refused
from . import helpers  # expect: import-refused
from .helpers import add  # expect: import-refused
from cowboy_sdk import testing  # expect: import-refused
from cowboy_sdk.mock_host import set_context  # expect: import-refused
from time import time  # expect: import-refused


def now(payload):
    import datetime  # expect: import-refused

    return json.dumps(str(datetime.datetime.now())).encode()
