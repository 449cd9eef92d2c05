"""The Lambda Runtime API for one function on this machine: python runtime_api.py BINARY PAYLOAD...

Starts the binary, hands it each payload (a file) in turn, and prints one JSON object per answer:
{"response": ...} or {"error": {"errorType", "errorMessage"}}. Stops the binary at the end. Standard library only.
"""
import json
import os
import queue
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "/2018-06-01"
LIMIT_SECONDS = 60


def main(binary, payloads):
    answers = queue.Queue()
    waiting = queue.Queue()
    for number, path in enumerate(payloads):
        with open(path, "rb") as file:
            waiting.put((f"request-{number}", file.read()))

    class Runtime(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, body=b"", headers=()):
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path != f"{VERSION}/runtime/invocation/next":
                return self.answer(404)
            request, payload = waiting.get()  # blocks when there is none left, as Lambda does
            deadline = int(time.time() * 1000) + LIMIT_SECONDS * 1000
            arn = "arn:aws:lambda:us-east-1:123456789012:function:test"
            self.answer(200, payload, [
                ("Content-Type", "application/json"),
                ("Lambda-Runtime-Aws-Request-Id", request),
                ("Lambda-Runtime-Deadline-Ms", str(deadline)),
                ("Lambda-Runtime-Invoked-Function-Arn", arn),
                ("Lambda-Runtime-Trace-Id", "Root=1-0-0"),
            ])

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            kind = "response" if self.path.endswith("/response") else "error"
            answers.put({kind: json.loads(body or b"null")})
            self.answer(202)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Runtime)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **os.environ,
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
        "AWS_LAMBDA_FUNCTION_NAME": "test",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_GROUP_NAME": "test",
        "AWS_LAMBDA_LOG_STREAM_NAME": "test",
    }
    function = subprocess.Popen([binary], env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        for _ in payloads:
            limit = time.monotonic() + LIMIT_SECONDS
            while True:
                try:
                    print(json.dumps(answers.get(timeout=0.2)), flush=True)
                    break
                except queue.Empty:
                    if function.poll() is not None and answers.empty():
                        sys.exit(f"runtime_api: {binary} ended with {function.returncode} before it answered")
                    if time.monotonic() > limit:
                        sys.exit(f"runtime_api: no answer within {LIMIT_SECONDS} s")
    finally:
        function.kill()
        function.wait()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
