"""A club: who may call what."""

from cowboy_sdk import OWNER, SELF, actor, callable_by, public, runtime

STRANGER = b"\x99" * 20


@actor
class Club:
    @callable_by(OWNER)
    def init(self, payload):
        self.storage["members"] = []
        self.storage["initialized"] = runtime.is_initialized()

    @callable_by(OWNER)
    def admit(self, member):
        self.storage["members"] = self.storage["members"] + [member]
        return len(self.storage["members"])

    @public
    def enter(self, payload):
        self._check(bytes(self.sender))
        self.storage["last"] = bytes(self.sender)
        return runtime.owner() == self.sender

    @callable_by(SELF)
    def clean(self, payload):
        self.storage["cleaned"] = True

    @callable_by(STRANGER)
    def visit(self, payload):
        self.storage["visited"] = True

    def hidden(self, payload):
        self.storage["hidden"] = True

    def _check(self, member):
        if member not in self.storage["members"]:
            raise PermissionError("members only")
