"""State machines, executed by AWS's stand-in: endpoint and keys are those of the environment.

    state_machine.py create NAME FILE [PLACEHOLDER=TEXT...]    makes one of a definition, and prints its ARN
    state_machine.py run ARN COUNT                             runs it COUNT times at once; prints a JSON array of
                                                               {"status", "error", "cause", "seconds"}
"""

import json
import pathlib
import sys
import time
import uuid

import boto3

ROLE = "arn:aws:iam::123456789012:role/test"
LIMIT_SECONDS = 240


def create(name, file, *placeholders):
    definition = pathlib.Path(file).read_text(encoding="utf-8")
    for placeholder in placeholders:
        key, value = placeholder.split("=", 1)
        definition = definition.replace("${%s}" % key, value)
    made = boto3.client("stepfunctions").create_state_machine(name=name, definition=definition, roleArn=ROLE)
    print(made["stateMachineArn"])


def run(arn, count):
    client = boto3.client("stepfunctions")
    started = [
        (time.monotonic(), client.start_execution(stateMachineArn=arn, name=str(uuid.uuid4())))
        for _ in range(int(count))
    ]
    ended = []
    for since, execution in started:
        while True:
            told = client.describe_execution(executionArn=execution["executionArn"])
            seconds = time.monotonic() - since
            if told["status"] != "RUNNING":
                break
            if seconds > LIMIT_SECONDS:
                sys.exit(f"an execution runs for {seconds:.0f} s: {told}")
            time.sleep(0.1)
        ended.append({
            "status": told["status"], "error": told.get("error"), "cause": told.get("cause"),
            "seconds": round(seconds, 1),
        })
    print(json.dumps(ended))


if __name__ == "__main__":
    commands = {"create": create, "run": run}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
