"""Local devnets of the Cowboy chain for tests in Python, and a client of their control API."""

from cowboy_devnet.client import ApiError, Client
from cowboy_devnet.devnet import CommandError, Devnet, DevnetError

__all__ = ["ApiError", "Client", "CommandError", "Devnet", "DevnetError"]
