"""The place of a syntax error."""


def add(payload):
    return payload +  # expect: syntax-error
