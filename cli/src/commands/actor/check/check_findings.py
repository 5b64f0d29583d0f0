"""Findings: their form in the answer, their order, and how many there are at most.

If a rule reports the same place twice, its first finding is kept.
"""

# Findings of a severity. More have one cause, and an answer has at most 1 MiB.
_MOST_FINDINGS = 500
_LONGEST_NAME = 80


def shortened(name):
    """A name of the source as it is shown in a finding."""
    return name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "..."


def finding(line, column, rule, severity, what, fix):
    """An element of the answer. Lines and columns are counted from 1, columns in characters."""
    return {
        "line": line,
        "column": column,
        "rule": rule,
        "severity": severity,
        "what": what,
        "fix": fix,
    }


class Findings:
    """What was found in a source."""

    def __init__(self, source):
        text = source.encode("utf-8").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # In UTF-8, because the offsets of nodes are in bytes.
        self.lines = text.split(b"\n")
        # By severity, so that many warnings do not hide an error.
        self._found = {"error": {}, "warning": {}}

    def error(self, *reported):
        self._report("error", *reported)

    def warning(self, *reported):
        self._report("warning", *reported)

    def _report(self, severity, rule, node, what, fix):
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        found = self._found[severity]
        if len(found) < _MOST_FINDINGS:
            found.setdefault((line, offset, rule), (severity, what, fix))

    def sorted(self):
        """All findings by line. An error replaces a warning of the same rule and place."""
        findings = []
        found = self._found["warning"] | self._found["error"]
        for (line, offset, rule), (severity, what, fix) in sorted(found.items()):
            before = self.lines[line - 1][:offset] if line <= len(self.lines) else b""
            column = len(before.decode("utf-8", "ignore")) + 1
            findings.append(finding(line, column, rule, severity, what, fix))
        return findings
