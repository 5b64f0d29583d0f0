# Asks for jobs until something ends.
# expect: (ok \d+ jobs|OutOfCycles)
# value: 10000cby
# limit: 19000000
# cells: 900000
from cowboy_sdk import runner


def attack(payload):
    count = 0
    try:
        while True:
            runner.send_message("llm", count.to_bytes(32, "big"), "x", ["hello"], {})
            count += 1
    except Exception as error:
        return f"{count} jobs, then {error}".encode()
