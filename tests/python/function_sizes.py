"""How large the functions are, how fast they start, and how much memory the largest event takes.

    python3 tests/python/function_sizes.py [--no-build]

Builds the release binaries of this machine's architecture with their symbols, strips and zips them as Lambda wants
them, and prints for each: the size of zip and binary, the crates with the most code in it, the time from its start to
its first question for an event under a Runtime API on this machine (median of eleven), and for ingest the peak memory after
a 6 MB event. Standard library, cargo, nm and strip only.
"""

import base64
import collections
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUNCTIONS = ("frazil-ingest", "frazil-catalog")
STARTS = 11
CRATES_SHOWN = 12
EVENT_BYTES = 6 * 1000 * 1000
LIMIT_SECONDS = 120


def build():
    environment = dict(os.environ, CARGO_PROFILE_RELEASE_STRIP="none")
    packages = [argument for name in FUNCTIONS for argument in ("-p", name)]
    subprocess.run(
        ["cargo", "build", "--release", "--locked", *packages, "--bins"], cwd=ROOT, env=environment, check=True
    )


def zipped(binary):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.write(binary, "bootstrap")
    return file.getbuffer().nbytes


def code_by_crate(binary):
    """Bytes of functions by the crate that their demangled names begin with; generic code counts where it is named."""
    listed = subprocess.run(["nm", "--demangle", "--print-size", str(binary)], capture_output=True, text=True, check=True)
    sizes = collections.Counter()
    for line in listed.stdout.splitlines():
        # What is undefined has no address, and some of what is assembly no size.
        function = re.match(r"[0-9a-f]+ ([0-9a-f]+) [tTwW] (.*)", line)
        if function:
            crate = re.search(r"[A-Za-z_][A-Za-z0-9_]*(?=::)", function[2])
            sizes[crate.group() if crate else "C"] += int(function[1], 16)
    return sizes


class Runtime:
    """Lambda's Runtime API for one function: hands out the events it is given, then lets it wait."""

    def __init__(self, events=()):
        runtime, self.asked_at, self.answers = self, None, []
        waiting, self.is_done = list(events), threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                if runtime.asked_at is None:
                    runtime.asked_at = time.monotonic()
                if not waiting:
                    runtime.is_done.set()
                    time.sleep(LIMIT_SECONDS)
                    return
                body = waiting.pop(0)
                self.send_response(200)
                for name, value in (
                    ("Lambda-Runtime-Aws-Request-Id", "r"),
                    ("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1000) + LIMIT_SECONDS * 1000)),
                    ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f"),
                    ("Lambda-Runtime-Trace-Id", "Root=1-0-0"),
                    ("Content-Length", str(len(body))),
                ):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                runtime.answers.append((self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0))))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def start(self, binary, warehouse):
        environment = {
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.server.server_port}", "AWS_LAMBDA_FUNCTION_NAME": "f",
            "AWS_LAMBDA_FUNCTION_VERSION": "1", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "FRAZIL_WAREHOUSE": str(warehouse), "PATH": os.environ["PATH"],
        }
        return subprocess.Popen([binary], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def init_ms(binary):
    runtime = Runtime()
    with tempfile.TemporaryDirectory() as warehouse:
        # The warehouse is there when a function starts.
        started = time.monotonic()
        process = runtime.start(binary, warehouse)
        wait(runtime, process)
        process.kill()
        process.wait()
    runtime.server.shutdown()
    return (runtime.asked_at - started) * 1000


def wait(runtime, process):
    until = time.monotonic() + LIMIT_SECONDS
    while not runtime.is_done.wait(0.005):
        if process.poll() is not None or time.monotonic() > until:
            sys.exit(f"the function ended with {process.poll()}: {runtime.answers}")


def largest_event():
    records, size, offset = [], 0, 0
    while size < EVENT_BYTES - 1_000:
        value = json.dumps({"id": offset, "customer": f"customer-{offset % 977}", "total": offset * 1.5, "note": "n" * 40})
        record = {
            "topic": "orders", "partition": 0, "offset": offset, "timestamp": 1_796_040_000_000 + offset,
            "timestampType": "CREATE_TIME", "value": base64.b64encode(value.encode()).decode(), "headers": [],
        }
        records.append(record)
        size += len(json.dumps(record)) + 2
        offset += 1
    event = {"eventSource": "SelfManagedKafka", "bootstrapServers": "b:9092", "records": {"orders-0": records}}
    return json.dumps(event).encode(), len(records)


def peak_mib(binary, event):
    runtime = Runtime([event])
    with tempfile.TemporaryDirectory() as warehouse:
        process = runtime.start(binary, warehouse)
        wait(runtime, process)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
        process.wait()
    runtime.server.shutdown()
    if not runtime.answers or not runtime.answers[0][0].endswith("/response"):
        sys.exit(f"the event was refused: {runtime.answers}")
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


def main():
    if sys.argv[1:] not in ([], ["--no-build"]):
        sys.exit(__doc__)
    if not sys.argv[1:]:
        build()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    for name in FUNCTIONS:
        with tempfile.TemporaryDirectory() as folder:
            binary = pathlib.Path(folder) / "bootstrap"
            subprocess.run(["strip", "-o", str(binary), str(target / name)], check=True)
            starts = sorted(init_ms(binary) for _ in range(STARTS))
            print(
                f"{name}: zip {zipped(binary) / 1e6:.1f} MB, binary {binary.stat().st_size / 1e6:.1f} MB, "
                f"init {statistics.median(starts):.0f} ms (from {starts[0]:.0f} to {starts[-1]:.0f})"
            )
            if name == "frazil-ingest":
                event, records = largest_event()
                print(f"  peak memory {peak_mib(binary, event):.0f} MiB after an event of {len(event) / 1e6:.1f} MB, {records} records")
        sizes = code_by_crate(target / name)
        whole = sum(sizes.values())
        shown = ", ".join(f"{crate} {size / 1e6:.2f}" for crate, size in sizes.most_common(CRATES_SHOWN))
        print(f"  code {whole / 1e6:.1f} MB: {shown}")


if __name__ == "__main__":
    main()
