#!/usr/bin/env python3
"""A minimal runner of the lease protocol (docs/lease-protocol.md), with only the standard library.

It runs jobs as the user who starts it, without a sandbox and without caches:
    python3 examples/leases/runner.py http://127.0.0.1:PORT RUNNER_ID TOKEN_FILE [--once]
"""
import datetime, glob, http.client, json, os, pathlib, platform, signal, subprocess, sys, tempfile
import threading, time, urllib.error, urllib.parse, urllib.request

MARK = "LEASE_RUNNER_JOB"  # In the environment of a job's processes: its directory.
GRACE = 5.0  # Seconds that processes have to end after SIGTERM.
LAST_OUTPUT = 60.0  # Seconds to wait for output that an unreachable process may hold open.

class Refused(Exception):
    """A refusal by the server, with its reason."""

def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()

class Server:
    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/") + "/api/v1/internal/", token

    def send(self, path, body, method="POST", lease="", patience=60.0):
        """Sends until there is an answer; messages may be repeated."""
        headers = {"authorization": f"Bearer {self.token}", "cowboy-lease": lease}
        give_up, pause = time.monotonic() + patience, 0.1
        while True:
            try:
                return self.once(path, body, method, headers)
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    raise Refused(why(error)) from None
            except (OSError, http.client.HTTPException, ValueError):
                pass  # No answer, or half of one: the server may come back.
            if time.monotonic() + pause > give_up:
                raise Refused("the server does not answer")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def once(self, path, body, method, headers):
        if isinstance(body, pathlib.Path):
            with open(body, "rb") as file:
                size = str(os.fstat(file.fileno()).st_size)
                return self.ask(path, file, method, headers | {"content-length": size})
        body = json.dumps(body).encode() if isinstance(body, dict) else body
        return self.ask(path, body, method, headers)

    def ask(self, path, body, method, headers):
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=40) as answer:
            return json.loads(answer.read() or "null")

def why(error):
    """The server's reason for a refusal; the status if the answer is not the server's."""
    try:
        answer = json.loads(error.read())
        return answer.get("reason") or answer["error"]["code"]
    except (OSError, http.client.HTTPException, ValueError, AttributeError, LookupError, TypeError):
        return f"HTTP status {error.code}"

class Job:
    def __init__(self, server, runner, grant):
        self.server, self.grant, self.spec = server, grant, grant["job_spec"]
        self.ids = {"lease_id": grant["lease_id"], "runner_id": runner}
        secrets = [self.spec["env"][name].encode() for name in self.spec.get("secret_env", [])]
        self.secrets = sorted(secrets, key=len, reverse=True)
        self.hold_back = max(map(len, secrets), default=1) - 1
        self.step, self.sent, self.held, self.home = 0, 0, b"", ""
        self.process, self.reaping = None, threading.Lock()
        self.lost, self.cancel, self.late, self.ended = None, False, False, threading.Event()

    def heartbeats(self):
        """Sends a heartbeat at once, then one per interval, until the end is acknowledged."""
        while not self.lost:
            progress = {"percent": 100 * self.step // len(self.spec["steps"])}
            beat = {"type": "Heartbeat", **self.ids, "progress": progress, "ts": now()}
            try:
                ack = self.server.send("heartbeat", beat, patience=self.grant["lease_ttl_seconds"])
                self.cancel = self.cancel or ack["cancel_requested"]
            except Refused as reason:
                self.lost = reason
            if self.lost or self.cancel:
                self.stop()
            if self.ended.wait(self.grant["heartbeat_interval_seconds"]):
                return

    def cancels(self):
        """Waits for a cancellation. Without this, a heartbeat would report it later."""
        wait = {"type": "AwaitCancel", **self.ids, "wait_seconds": 30}
        while not (self.cancel or self.ended.is_set()):
            asked = time.monotonic()
            try:
                self.cancel = self.server.send("await-cancel", wait) is not None
            except Refused:
                return  # The heartbeats report the reason.
            if self.cancel:
                self.stop()
            elif time.monotonic() - asked < 1:
                self.ended.wait(1)

    def watch(self):
        """Stops the job at its time limit."""
        if not self.ended.wait(max(0, self.time_over - time.monotonic())):
            self.late = True
            self.stop()

    def processes(self):
        """All processes of the job, found by the mark that they inherit (Linux)."""
        mark, found = f"{MARK}={self.home}".encode(), []
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                if mark in pathlib.Path(path).read_bytes().split(b"\0"):
                    found.append(int(path.split("/")[2]))
            except OSError:
                pass  # It has ended, or belongs to another user.
        return found

    def signal(self, number):
        """Sends a signal to all processes of the job."""
        with self.reaping:
            ends = [(os.killpg, self.process.pid)] if self.process else []
            for kill, process in ends + [(os.kill, process) for process in self.processes()]:
                try:
                    kill(process, number)
                except OSError:
                    pass  # It has ended.

    def stop(self):
        """Ends the step and all its descendants: SIGTERM first, then SIGKILL."""
        self.signal(signal.SIGTERM)
        give_up = time.monotonic() + GRACE
        while time.monotonic() < give_up and self.processes():
            time.sleep(0.1)
        self.signal(signal.SIGKILL)

    def put(self, path, data):
        return self.server.send(path, data, method="PUT", lease=self.ids["lease_id"])

    def log(self, piece, last=False):
        """Sends a piece of the log without secrets. The possible beginning of one is held back."""
        self.held += piece
        for secret in self.secrets:
            self.held = self.held.replace(secret, b"***")
        cut = len(self.held) if last else max(0, len(self.held) - self.hold_back)
        ready, self.held = self.held[:cut], self.held[cut:]
        try:
            self.sent = self.put(f"log?offset={self.sent}", ready)["bytes"] if ready else self.sent
        except Refused as reason:
            if str(reason) != "LOG_FULL":  # Then the job continues without a log.
                raise

    def read(self, output):
        """Sends all output of a step, which never waits for a log that is not taken."""
        for piece in iter(lambda: output.read1(65536), b""):
            try:
                if not self.lost:
                    self.log(piece)
            except Refused as reason:
                self.lost = reason
                self.stop()

    def run(self, where):
        """Runs the steps; returns the exit code of the failed step, or 0."""
        env = {"PATH": os.environ["PATH"], "HOME": self.home, **self.spec["env"], MARK: self.home}
        env |= {"COWBOY_JOB_NAME": self.spec["name"], "COWBOY_ATTEMPT": str(self.grant["attempt"])}
        options = {"cwd": where, "env": env, "stdin": subprocess.DEVNULL, "start_new_session": True}
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        for self.step, step in enumerate(self.spec["steps"]):
            process = self.process = subprocess.Popen(["sh", "-c", step], **options)
            reader = threading.Thread(target=self.read, args=[process.stdout], daemon=True)
            reader.start()
            if self.lost or self.cancel or self.late:
                self.stop()
            # Until it is reaped, its id belongs to the group: no other process gets the signal.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            self.signal(signal.SIGKILL)  # Its remaining processes end with it.
            with self.reaping:
                code, self.process = process.wait(), None
            reader.join(LAST_OUTPUT)
            if self.lost:
                raise self.lost
            if code or self.cancel or self.late:
                return code if code >= 0 else 128 - code
        return 0

    def artifacts(self, where):
        """Uploads the artifacts of the job; the log is already on the server."""
        job, attempt = self.grant["job_id"], self.grant["attempt"]
        kept = [{"type": "log", "uri": f"/api/v1/jobs/{job}/log?attempt={attempt}"}]
        for wanted in self.spec.get("artifacts", []):
            for name in glob.glob(wanted["path_glob"], root_dir=where, recursive=True):
                path = pathlib.Path(where, name)
                if path.is_file() and path.resolve().is_relative_to(pathlib.Path(where).resolve()):
                    stored = self.put("artifacts/" + urllib.parse.quote(name), path.resolve())
                    kept.append({"type": wanted["type"], "uri": stored["uri"]})
        return kept

    def work(self):
        self.time_over = time.monotonic() + self.grant["max_runtime_seconds"]
        ack = {"type": "AckLease", "job_id": self.grant["job_id"], "accepted_at": now()}
        self.server.send("ack-lease", ack | self.ids)
        with tempfile.TemporaryDirectory(prefix="lease-") as self.home:
            beats = threading.Thread(target=self.heartbeats, daemon=True)
            beats.start()
            for also in [self.cancels, self.watch]:
                threading.Thread(target=also, daemon=True).start()
            try:
                return self.end()
            finally:
                # However it ends, all its processes are stopped, and then its directory is removed.
                self.ended.set()
                self.stop()
                beats.join(2 * GRACE)

    def end(self):
        began, where = now(), os.path.join(self.home, "work", self.spec["workdir"])
        os.makedirs(where)
        code = self.run(where)
        self.log(b"", last=True)
        end = self.ids | {"artifacts": self.artifacts(where)}
        status = "FAILED" if code or self.late else "SUCCEEDED"
        complete = {"type": "Complete", "status": status, "exit_code": code}
        complete |= {"timed_out": True} if self.late else {}
        complete["timings"] = {"started_at": began, "finished_at": now()}
        try:
            if not self.cancel:
                self.server.send("complete", complete | end)
                return status
        except Refused as reason:
            if str(reason) != "CANCEL_REQUESTED":
                raise
        self.server.send("cancel-ack", {"type": "CancelAck", "final_status": "CANCELED"} | end)
        return "CANCELED"

def main(url, runner, token_file, once=None):
    # As with Ctrl-C: the job's processes do not outlive the runner.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(token_file, encoding="ascii") as file:
        server = Server(url, file.read().strip())
    tags = [platform.system().lower(), platform.machine()]
    ask = {"type": "Lease", "runner_id": runner, "capabilities": tags, "wait_seconds": 30}
    while True:
        asked = time.monotonic()
        grant = server.send("lease", ask)
        if grant:
            try:
                outcome = Job(server, runner, grant).work()
            except Refused as reason:
                outcome = f"given up: {reason}"
            print(grant["job_id"], grant["job_spec"]["name"], outcome, flush=True)
            if once:
                return
        elif time.monotonic() - asked < 1:
            time.sleep(1)  # Another runner has the same name: each ends the other's wait.

if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refused as reason:
        sys.exit(f"runner.py: {reason}")
    except KeyboardInterrupt:
        sys.exit(130)
