"""Glue's schema registry on this machine: python glue_schemas.py REGISTRY [NAME:FORMAT:FILE...]

Starts AWS's local stand-in (moto) on a free port of 127.0.0.1, registers each file as the first version of a schema in
the registry (made now), and prints one line of JSON: {"endpoint": URL, "versions": {NAME: VERSION_ID}}. Stops when its
standard input ends.
"""
import json
import logging
import os
import sys

os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

import boto3  # noqa: E402  (it reads the environment)
from moto.server import ThreadedMotoServer  # noqa: E402


def main(registry, schemas):
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    glue = boto3.client("glue", endpoint_url=endpoint)
    glue.create_registry(RegistryName=registry)
    versions = {}
    for schema in schemas:
        name, data_format, path = schema.split(":", 2)
        with open(path, encoding="utf-8") as file:
            definition = file.read()
        made = glue.create_schema(
            RegistryId={"RegistryName": registry},
            SchemaName=name,
            DataFormat=data_format,
            Compatibility="NONE",
            SchemaDefinition=definition,
        )
        versions[name] = made["SchemaVersionId"]
    print(json.dumps({"endpoint": endpoint, "versions": versions}), flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
