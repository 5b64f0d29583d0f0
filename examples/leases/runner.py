#!/usr/bin/env python3
"""A minimal runner of the lease protocol (docs/lease-protocol.md), of the standard library alone.

It runs jobs as the user who starts it, without a sandbox and without caches:
    python3 examples/leases/runner.py http://127.0.0.1:PORT RUNNER_ID TOKEN_FILE [--once]
"""
import datetime, glob, json, os, platform, signal, subprocess, sys, tempfile, threading, time
import urllib.error, urllib.parse, urllib.request

class Refused(Exception):
    """The server says no: with why, as it says it."""

def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()

class Server:
    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/") + "/api/v1/internal/", token

    def send(self, path, body, method="POST", lease="", patience=60.0):
        """Sends until there is an answer: the same message again does no harm."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        headers = {"authorization": f"Bearer {self.token}", "cowboy-lease": lease}
        give_up, pause = time.monotonic() + patience, 0.1
        while True:
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=40) as answer:
                    return json.loads(answer.read() or "null")
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    answer = json.loads(error.read())
                    raise Refused(answer.get("reason") or answer["error"]["code"])
            except OSError:
                pass  # Nobody answers: the server may come back.
            if time.monotonic() + pause > give_up:
                raise Refused("the server does not answer")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

class Job:
    def __init__(self, server, runner, grant):
        self.server, self.grant, self.spec = server, grant, grant["job_spec"]
        self.ids = {"lease_id": grant["lease_id"], "runner_id": runner}
        secrets = [self.spec["env"][name].encode() for name in self.spec.get("secret_env", [])]
        self.secrets = sorted(secrets, key=len, reverse=True)
        self.hold_back = max(map(len, secrets), default=1) - 1
        self.step, self.sent, self.held, self.process = 0, 0, b"", None
        self.lost, self.cancel, self.ended = False, False, threading.Event()

    def heartbeats(self):
        """One at once, then one every interval, until the end is acknowledged."""
        while not self.lost:
            progress = {"percent": 100 * self.step // len(self.spec["steps"])}
            beat = {"type": "Heartbeat", **self.ids, "progress": progress, "ts": now()}
            try:
                ack = self.server.send("heartbeat", beat, patience=self.grant["lease_ttl_seconds"])
                self.cancel = self.cancel or ack["cancel_requested"]
            except Refused:
                self.lost = True
            if self.lost or self.cancel:
                self.stop()
            if self.ended.wait(self.grant["heartbeat_interval_seconds"]):
                return

    def stop(self):
        """Ends the step and what it began, in peace first."""
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, end)
                self.process.wait(5)
            except (AttributeError, ProcessLookupError, subprocess.TimeoutExpired):
                pass  # No step has begun, all of it has ended, or it does not listen.

    def put(self, path, data):
        return self.server.send(path, data, method="PUT", lease=self.ids["lease_id"])

    def log(self, piece, last=False):
        """Sends a piece of the log without secrets. What may be the first part of one waits."""
        self.held += piece
        for secret in self.secrets:
            self.held = self.held.replace(secret, b"***")
        cut = len(self.held) if last else max(0, len(self.held) - self.hold_back)
        ready, self.held = self.held[:cut], self.held[cut:]
        try:
            self.sent = self.put(f"log?offset={self.sent}", ready)["bytes"] if ready else self.sent
        except Refused as why:
            if str(why) != "LOG_FULL":  # The job goes on without.
                raise

    def run(self, home, where):
        """Runs the steps: the exit code of the one that fails, or 0."""
        env = {"PATH": os.environ["PATH"], "HOME": home, **self.spec["env"]}
        env |= {"COWBOY_JOB_NAME": self.spec["name"], "COWBOY_ATTEMPT": str(self.grant["attempt"])}
        options = {"cwd": where, "env": env, "stdin": subprocess.DEVNULL, "start_new_session": True}
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        for self.step, step in enumerate(self.spec["steps"]):
            self.process = subprocess.Popen(["sh", "-c", step], **options)
            if self.lost or self.cancel:
                self.stop()
            for piece in iter(lambda: self.process.stdout.read1(65536), b""):
                self.log(piece)
            code = self.process.wait()
            if code:
                return code if code > 0 else 128 - code
        return 0

    def artifacts(self, where):
        """Uploads what the job asks to be kept; the log is there already."""
        job, attempt = self.grant["job_id"], self.grant["attempt"]
        kept = [{"type": "log", "uri": f"/api/v1/jobs/{job}/log?attempt={attempt}"}]
        for wanted in self.spec.get("artifacts", []):
            for name in glob.glob(wanted["path_glob"], root_dir=where, recursive=True):
                path = os.path.realpath(os.path.join(where, name))
                if os.path.isfile(path) and path.startswith(os.path.realpath(where) + os.sep):
                    with open(path, "rb") as file:
                        stored = self.put("artifacts/" + urllib.parse.quote(name), file.read())
                    kept.append({"type": wanted["type"], "uri": stored["uri"]})
        return kept

    def work(self):
        ack = {"type": "AckLease", "job_id": self.grant["job_id"], "accepted_at": now()}
        self.server.send("ack-lease", ack | self.ids)
        beats, began = threading.Thread(target=self.heartbeats), now()
        beats.start()
        try:
            with tempfile.TemporaryDirectory(prefix="lease-") as home:
                where = os.path.join(home, "work", self.spec["workdir"])
                os.makedirs(where)
                code = self.run(home, where)
                self.log(b"", last=True)
                end = self.ids | {"artifacts": self.artifacts(where)}
            status = "FAILED" if code else "SUCCEEDED"
            complete = {"type": "Complete", "status": status, "exit_code": code}
            complete["timings"] = {"started_at": began, "finished_at": now()}
            try:
                if not self.cancel:
                    self.server.send("complete", complete | end)
                    return status
            except Refused as why:
                if str(why) != "CANCEL_REQUESTED":
                    raise
            self.server.send("cancel-ack", {"type": "CancelAck", "final_status": "CANCELED"} | end)
            return "CANCELED"
        finally:
            self.ended.set()
            self.stop()
            beats.join()

def main(url, runner, token_file, once=None):
    with open(token_file, encoding="ascii") as file:
        server = Server(url, file.read().strip())
    tags = [platform.system().lower(), platform.machine()]
    ask = {"type": "Lease", "runner_id": runner, "capabilities": tags, "wait_seconds": 30}
    while True:
        grant = server.send("lease", ask)
        if grant:
            try:
                outcome = Job(server, runner, grant).work()
            except Refused as why:
                outcome = f"given up: {why}"
            print(grant["job_id"], grant["job_spec"]["name"], outcome, flush=True)
            if once:
                return

if __name__ == "__main__":
    main(*sys.argv[1:])
