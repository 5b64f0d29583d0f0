#!/usr/bin/env python3
"""A server of the Model Context Protocol with two tools that count days.

It communicates over standard input and output, one JSON-RPC 2.0 message per line, and needs only
Python's standard library. The answers of its tools depend only on the arguments, so runners that
call them agree byte for byte.
"""

import datetime
import json
import sys

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

DATE = {"type": "string", "format": "date", "description": "A date such as 2026-02-28"}


def days_between(arguments):
    """Days from one date to another; negative if the other is earlier."""
    first, last = date(arguments, "from"), date(arguments, "to")
    return {"days": (last - first).days}


def add_days(arguments):
    """The date a number of days after another, and its day of the week."""
    days = arguments.get("days")
    if type(days) is not int:
        raise ValueError("days: expected a whole number")
    try:
        day = date(arguments, "from") + datetime.timedelta(days=days)
    except OverflowError:
        raise ValueError("days: beyond the end of the calendar") from None
    return {"date": day.isoformat(), "weekday": WEEKDAYS[day.weekday()]}


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

TOOLS = {
    "days_between": (days_between, {"from": DATE, "to": DATE}, {"days": {"type": "integer"}}),
    "add_days": (
        add_days,
        {"from": DATE, "days": {"type": "integer"}},
        {"date": DATE, "weekday": {"type": "string", "enum": list(WEEKDAYS)}},
    ),
}


def date(arguments, name):
    """Parses an argument as a date."""
    try:
        return datetime.date.fromisoformat(arguments.get(name))
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a date like 2026-02-28") from None


class Refused(Exception):
    """A request that is answered with an error: code and reason."""


def initialize(parameters):
    asked = parameters.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "calendar", "version": "1.0.0"},
    }


def list_tools(parameters):
    def schema(properties):
        return {"type": "object", "properties": properties, "required": list(properties)}

    return {
        "tools": [
            {
                "name": name,
                "description": tool.__doc__,
                "inputSchema": schema(arguments),
                "outputSchema": schema(answer),
            }
            for name, (tool, arguments, answer) in TOOLS.items()
        ]
    }


def call_tool(parameters):
    name, arguments = parameters.get("name"), parameters.get("arguments") or {}
    if name not in TOOLS:
        raise Refused(-32602, f"no tool {name!r}: expected one of {', '.join(TOOLS)}")
    try:
        answer = TOOLS[name][0](arguments)
    except ValueError as wrong:
        # For the caller of the tool, not an error of the protocol.
        return {"content": [{"type": "text", "text": str(wrong)}], "isError": True}
    text = json.dumps(answer)
    return {"content": [{"type": "text", "text": text}], "structuredContent": answer}


METHODS = {
    "initialize": initialize,
    "ping": lambda parameters: {},
    "tools/list": list_tools,
    "tools/call": call_tool,
}


def answer(line):
    """The answer to a message; None for a notification."""
    try:
        message = json.loads(line)
    except ValueError as wrong:
        return {"id": None, "error": {"code": -32700, "message": str(wrong)}}
    if not isinstance(message, dict):
        return {"id": None, "error": {"code": -32600, "message": "a message is an object"}}
    if "id" not in message:
        return None
    try:
        method = METHODS.get(message.get("method"))
        if method is None:
            raise Refused(-32601, f"no method {message.get('method')!r}")
        return {"id": message["id"], "result": method(message.get("params") or {})}
    except Refused as refused:
        code, why = refused.args
        return {"id": message["id"], "error": {"code": code, "message": why}}


def main():
    for line in sys.stdin:
        said = answer(line)
        if said is not None:
            print(json.dumps({"jsonrpc": "2.0", **said}), flush=True)


if __name__ == "__main__":
    main()
