"""The generated files are those of the devnet's document."""

import json
import subprocess
import sys
from pathlib import Path

from cowboy_devnet import Devnet

GENERATE = Path(__file__).parents[1] / "generate.py"


def check(source: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(GENERATE), source, "--check"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_generated_files_are_up_to_date(devnet: Devnet) -> None:
    checked = check(f"{devnet.rpc_url}/openapi.json")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_other_documents_are_noticed(devnet: Devnet, tmp_path: Path) -> None:
    document = devnet.client.openapi()
    schemas, paths = document["components"]["schemas"], document["paths"]
    file = tmp_path / "openapi.json"

    def stale() -> str:
        file.write_text(json.dumps(document))
        return check(str(file)).stderr.partition(";")[0]

    # The order of names does not matter.
    document["components"]["schemas"] = dict(reversed(schemas.items()))
    document["paths"] = dict(reversed(paths.items()))
    assert stale() == ""
    document["components"]["schemas"] = schemas | {"Another": {"type": "string"}}
    assert stale() == "not up to date: types.py"
    document["paths"] = paths | {"/v1/another": paths["/v1/status"]}
    assert stale() == "not up to date: types.py, _api.py"
