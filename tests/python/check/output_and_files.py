"""What goes nowhere, and what is refused."""

from cowboy_sdk import actor, public, runtime


@actor
class Shop:  # expect: no-init
    @public
    def buy(self, payload):
        print("bought", payload)  # expect: no-output
        with open("log.txt") as file:  # expect: no-files
            file.write("bought")
        runtime.emit_event("bought", payload)
