"""Imports that may fail, and those that never run."""

import contextlib
from typing import TYPE_CHECKING

try:
    import numpy  # expect: import-refused
except ImportError:
    numpy = None

try:
    import tomllib  # expect: import-refused
except (ModuleNotFoundError, AttributeError):
    import tomli as tomllib  # expect: import-refused

with contextlib.suppress(ImportError):
    import requests  # expect: import-refused

try:
    import socket  # expect: import-refused
except ValueError:
    pass

if TYPE_CHECKING:
    import pathlib

if not TYPE_CHECKING:
    import socketserver  # expect: import-refused
else:
    import pickle

if False:
    import ctypes

if __name__ == "__main__":
    import sys

    sys.exit(print("not an actor"))
