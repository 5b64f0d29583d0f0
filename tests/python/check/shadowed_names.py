"""Names of the SDK or of Python that the module gives another meaning."""

from cowboy_sdk import actor, public


def send(target, payload):
    return (target, payload)


def print(text):
    return text


@actor
class Counter:  # expect: no-init
    @public
    def add(self, payload):
        send(payload, b"")
        print("mine")
        return payload

    @public
    def read(self, payload):
        open = self.storage.get
        return open("count")
