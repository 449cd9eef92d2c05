"""AWS on this machine: python aws_server.py [--bucket NAME] [--functions URL]

Starts AWS's local stand-in (moto) on a free port of 127.0.0.1 and prints one line of JSON: {"endpoint": URL}. Stops when
its standard input ends. Where the stand-in is not like AWS, and it matters to us, this makes it so:

- Glue: UpdateTable honours VersionId and SkipArchive, and creations and updates exclude each other.
- S3: conditional writes exclude each other.
- Step Functions executes state machines, with JSONata; a task that invokes a function calls URL/NAME/invocations.

POST /_control/faults takes a list of what shall go wrong; POST /_control/counts answers how often each operation was
asked for since the last time. An operation is the name of Glue's or Step Functions', or GET, PUT, HEAD, LIST, DELETE of S3.
"""

import argparse
import collections
import io
import json
import logging
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

import jsonata  # noqa: E402  (they read the environment)
import moto.stepfunctions.parser.asl.jsonata.jsonata as moto_jsonata  # noqa: E402
from moto.awslambda_simple.models import LambdaSimpleBackend  # noqa: E402
from moto.core.config import default_user_config  # noqa: E402
from moto.core.exceptions import JsonRESTError  # noqa: E402
from moto.glue.responses import GlueResponse  # noqa: E402
from moto.moto_server.werkzeug_app import (  # noqa: E402
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server  # noqa: E402

# Longer than any function runs.
INVOKE_TIMEOUT_SECONDS = 910


class ConcurrentModification(JsonRESTError):
    code = 400

    def __init__(self):
        super().__init__(
            "ConcurrentModificationException", "Update table failed due to concurrent modifications."
        )


def lock_glue():
    lock = threading.Lock()
    update, create = GlueResponse.update_table, GlueResponse.create_table

    def update_table(self):
        with lock:
            name = (self.parameters.get("TableInput") or {}).get("Name") or self.parameters.get("Name")
            table = self.glue_backend.get_table(self.parameters["DatabaseName"], name)
            current = str(table._current_version)
            expected = self.parameters.get("VersionId")
            if expected is not None and str(expected) != current:
                raise ConcurrentModification
            answer = update(self)
            if self.parameters.get("SkipArchive"):
                table.versions.pop(current, None)
            return answer

    def create_table(self):
        with lock:
            return create(self)

    GlueResponse.update_table, GlueResponse.create_table = update_table, create_table


def forward_invocations(functions):
    def invoke(self, function_name, qualifier, body, headers, response_headers):
        name = function_name.split(":function:")[-1].split(":")[0]
        body = body if isinstance(body, bytes) else (body or "{}").encode()
        request = urllib.request.Request(f"{functions}/{name}/invocations", data=body, method="POST")
        try:
            answer = urllib.request.urlopen(request, timeout=INVOKE_TIMEOUT_SECONDS)
            fault, body = answer.headers.get("x-amz-function-error"), answer.read()
        except urllib.error.HTTPError as error:
            fault, body = "Unhandled", error.read()
        if fault:
            response_headers["x-amz-function-error"] = fault
        return body

    LambdaSimpleBackend.invoke = invoke


def use_jsonata():
    """The stand-in's own way to JSONata needs a Java virtual machine."""

    def evaluate(expression):
        try:
            return jsonata.Jsonata(expression).evaluate(None)
        except Exception as error:
            raise moto_jsonata.JSONataException("UNKNOWN", str(error)) from None

    moto_jsonata._eval_jsonata = evaluate


class Controlled:
    """The stand-in, with faults on the way and a count of what was asked.

    A fault is {"operation", "every", "kind"}: every n-th request of the operation is

    - "lost": carried out, and the connection is cut before the answer,
    - "late": the connection is cut, and the request is carried out `delay_ms` later,
    - "refused": answered with 500 and not carried out,
    - "throttled": answered with ThrottlingException or SlowDown and not carried out,
    - "too_large": refused as Glue refuses tables of more than it holds, when it has more than `above_bytes`.
    """

    def __init__(self, application):
        self.application = application
        self.conditional = threading.Lock()
        self.lock = threading.Lock()
        self.faults = []
        self.counts = collections.Counter()
        self.seen = collections.Counter()

    def __call__(self, environ, start_response):
        path = environ.get("PATH_INFO", "")
        if path.startswith("/_control/"):
            return self.control(path, environ, start_response)
        operation = operation_of(environ)
        with self.lock:
            self.counts[operation] += 1
            self.seen[operation] += 1
            seen = self.seen[operation]
            fault = next(
                (f for f in self.faults if f["operation"] == operation and seen % f["every"] == 0), None
            )
        kind = fault and fault["kind"]
        if kind == "too_large" and int(environ.get("CONTENT_LENGTH") or 0) <= fault["above_bytes"]:
            kind = None
        if kind in ("refused", "throttled", "too_large"):
            return refuse(kind, environ, start_response)
        if kind == "late":
            length = int(environ.get("CONTENT_LENGTH") or 0)
            later = dict(environ, **{"wsgi.input": io.BytesIO(environ["wsgi.input"].read(length))})
            threading.Thread(
                target=self.carry_out, args=(later, fault.get("delay_ms", 0) / 1000), daemon=True
            ).start()
            return cut(environ, start_response)
        if kind == "lost":
            self.carry_out(environ, 0)
            return cut(environ, start_response)
        if "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ:
            with self.conditional:
                return list(self.application(environ, start_response))
        return self.application(environ, start_response)

    def carry_out(self, environ, delay_seconds):
        time.sleep(delay_seconds)
        try:
            for _ in self.application(environ, lambda *_: lambda _: None):
                pass
        except Exception as error:  # what it would have answered
            logging.info("a request whose answer is lost failed: %s", error)

    def control(self, path, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self.lock:
            if path == "/_control/faults":
                self.faults = json.loads(body)
                self.seen.clear()
                answer = {}
            else:
                answer = dict(self.counts)
                self.counts.clear()
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]


def operation_of(environ):
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return target.rsplit(".", 1)[-1]
    query = environ.get("QUERY_STRING", "")
    if "list-type=2" in query:
        return "LIST"
    if environ["REQUEST_METHOD"] == "POST" and query.split("&")[0].split("=")[0] == "delete":
        return "DELETE"
    return environ["REQUEST_METHOD"]


def refuse(kind, environ, start_response):
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    is_json = "HTTP_X_AMZ_TARGET" in environ
    if kind == "throttled":
        status, code = ("400 Bad Request", "ThrottlingException") if is_json else ("503 Slow Down", "SlowDown")
    else:
        status, code = "500 Internal Server Error", "InternalServiceException" if is_json else "InternalError"
    if kind == "too_large":
        status, code = "400 Bad Request", "InvalidInputException"
    if is_json:
        message = "Payload size exceeded" if kind == "too_large" else "as the test wants it"
        body = json.dumps({"__type": code, "Message": message})
    else:
        body = f"<Error><Code>{code}</Code><Message>as the test wants it</Message></Error>"
    start_response(status, [("Content-Type", "application/json" if is_json else "application/xml")])
    return [body.encode()]


def cut(environ, start_response):
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    start_response("200 OK", [])
    return [b""]


class Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass

    def connection_dropped(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bucket", metavar="NAME", action="append", default=[], help="a bucket to make")
    parser.add_argument("--functions", metavar="URL", help="where functions are invoked")
    arguments = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    default_user_config["lambda"] = {"use_docker": False}
    lock_glue()
    use_jsonata()
    if arguments.functions:
        forward_invocations(arguments.functions)
    application = Controlled(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    # Step Functions calls back to this server.
    os.environ["MOTO_PORT"] = str(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    for bucket in arguments.bucket:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{bucket}", method="PUT"))
    print(json.dumps({"endpoint": endpoint}), flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
