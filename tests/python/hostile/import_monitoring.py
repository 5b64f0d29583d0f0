# Monitors every instruction.
# expect: (ok|OutOfCycles|AttributeError|KeyError)
import inspect


def attack(payload):
    monitoring = inspect.sys.monitoring
    monitoring.use_tool_id(0, "spy")
    events = monitoring.events
    monitoring.register_callback(0, events.INSTRUCTION, lambda *arguments: None)
    monitoring.set_events(0, events.INSTRUCTION | events.LINE)
    return b"watched"
