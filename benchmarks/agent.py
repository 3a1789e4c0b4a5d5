"""What the node's agent costs while a job runs: `python benchmarks/agent.py [--seconds N] [--python PYTHON]`.

The whole of it: packed, over TLS, with everything on (reports every second, heartbeats, a lease of a broker and its endpoint, the cloud's notices, a checkpoint
in a folder, output), beside a job that tells a step a second.  Counted from when the job runs, from /proc: CPU of the agent alone, its largest resident set.
The control plane, the broker and the metadata service are one small server in this process.  Prints a line per figure; nothing in the tests is timed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import ipaddress
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

REACH_MIB = 30.0
REACH_PERCENT = 0.5
ROOT = Path(__file__).parents[1]
JOB = """
import os, pathlib, time
import skyplan_job
step = 0
while True:
    step += 1
    skyplan_job.report(step, loss=1 / step, lr=0.1)
    print("step", step, flush=True)
    if step % 30 == 5:
        with skyplan_job.checkpoint(step, framework="none") as folder:
            (folder / "state").write_bytes(bytes(1 << 20))
    time.sleep(1)
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counts: ClassVar[dict[str, int]] = {}

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        self.counts[self.path] = self.counts.get(self.path, 0) + 1
        now = dt.datetime.now(dt.UTC)
        if self.path == "/v1/report":
            self.say({"through": body["items"][-1]["seq"], "requests": []})
        elif self.path == "/v1/cut":
            self.say({"generations": [1], "cut": {"step": None}, "skipped": []})
        elif self.path == "/v1/leases":
            keys = {"access_key_id": "a", "secret_access_key": "b", "session_token": "c" * 800}
            ends = (now + dt.timedelta(hours=1)).isoformat()
            said = {"id": "l1", "store": "s3", "uri": body["uri"], "access": body["access"], "aws": keys}
            self.say({**said, "issued_at": now.isoformat(), "expires_at": ends})
        else:
            session = {"session": "s", "expires_at": now.isoformat(), "renew_after_seconds": 1800}
            self.say(
                {**session, "manifest_key": "ab" * 32, "project": "p", "nodes": 1, "stop_at": None, "broker": None}
            )

    def do_GET(self) -> None:
        self.counts["metadata"] = self.counts.get("metadata", 0) + 1
        self.say({"error": "none"}, 404)

    def do_PUT(self) -> None:
        self.say({})

    def say(self, document: dict[str, Any], status: int = 200) -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def serve(context: ssl.SSLContext | None) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def certificate(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


def config(folder: Path, url: str) -> Path:
    service = {"url": url, "ca_file": str(folder / "ca.pem")}
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text("token")
    document = {
        "project": "p",
        "job": "bench",
        "generation": 1,
        "cloud": "aws",
        "token_file": str(folder / "token"),
        "control_plane": service,
        "broker": service,
        "stores": [{"uri": "s3://data/train/", "access": "read", "reach": "broker"}],
        "checkpoint": {"uri": f"file://{folder}/store/", "folder": str(folder / "checkpoints"), "keep": 2},
        "state_folder": str(folder / "state"),
        "run_folder": str(folder / "run"),
    }
    path = folder / "agent.json"
    path.write_text(json.dumps(document))
    return path


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name + ":")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--python", default=sys.executable, help="interpreter that runs the agent")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packed = folder / "agent.pyz"
        subprocess.run(
            [sys.executable, "-m", "modules.agent.pack", str(packed)], cwd=ROOT, check=True, capture_output=True
        )
        plane, metadata = serve(certificate(folder)), serve(None)
        url = f"https://127.0.0.1:{plane.server_address[1]}"
        environment = {
            **os.environ,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{metadata.server_address[1]}",
        }
        command = [
            given.python,
            str(packed),
            "run",
            "--config",
            str(config(folder, url)),
            "--",
            sys.executable,
            "-c",
            JOB,
        ]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as agent:
            ends = time.monotonic() + 60
            while Handler.counts.get("/v1/report", 0) < 3:
                if agent.poll() is not None or time.monotonic() > ends:
                    agent.kill()
                    sys.exit(f"the agent did not begin: {agent.communicate()[1]}")
                time.sleep(0.1)
            begun, used = time.monotonic(), cpu_seconds(agent.pid)
            time.sleep(given.seconds)
            percent = 100 * (cpu_seconds(agent.pid) - used) / (time.monotonic() - begun)
            now, peak, threads = (status(agent.pid, one) for one in ("VmRSS", "VmHWM", "Threads"))
            agent.terminate()
            agent.communicate(timeout=60)
        print(f"packed      {packed.stat().st_size / 1024:6.1f} KiB; reach 200 KiB")
        print(
            f"memory      {now / 1024:6.1f} MiB (largest {peak / 1024:.1f} MiB, {threads} threads); reach {REACH_MIB:.0f} MiB"
        )
        print(f"processor   {percent:6.2f} % of a core over {given.seconds:.0f} s; reach {REACH_PERCENT} %")
        print(f"exchanges   {json.dumps(Handler.counts, sort_keys=True)}")


if __name__ == "__main__":
    main()
