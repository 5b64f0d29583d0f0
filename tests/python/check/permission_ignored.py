"""A permission on a function is not checked by anything."""

from cowboy_sdk import OWNER, callable_by, public, runtime


@callable_by(OWNER)
def take(payload):  # expect: permission-ignored
    runtime.transfer_balance(payload, 1)


@public
def give(payload):  # expect: permission-ignored
    return payload


def read(payload):
    return payload
