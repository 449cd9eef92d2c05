"""Makes topics and fills them, from instructions in a file, a JSON object per line.

    produce.py BROKERS FILE

    {"topic": "orders", "partitions": 3}
    {"topic": "orders", "partition": 0, "timestamp": 1796040000000, "key": "aw==", "value": null, "headers": [["h", "AA=="]]}

Keys, values and the values of headers are base64, or null. Prints one JSON object: the number of records and the last
offset of each topic-partition, as the broker acknowledged them.
"""

import base64
import json
import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_SECONDS = 60
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


def decoded(text):
    return None if text is None else base64.b64decode(text)


def make_topic(brokers, name, partitions):
    admin = AdminClient({"bootstrap.servers": brokers})  # what is asked for is forgotten together with it
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(TIMEOUT_SECONDS)


def main(brokers, instructions):
    # Idempotent: in each partition, offsets follow the lines.
    producer = Producer({
        "bootstrap.servers": brokers, "enable.idempotence": True, "linger.ms": 20,
        "message.max.bytes": MAX_MESSAGE_BYTES,
    })
    records, offsets, faults = 0, {}, []

    def acknowledged(fault, message):
        if fault is not None:
            faults.append(str(fault))
        else:
            offsets[f"{message.topic()}-{message.partition()}"] = message.offset()

    for line in instructions:
        told = json.loads(line)
        if "partitions" in told:
            make_topic(brokers, told["topic"], told["partitions"])
            continue
        while True:
            try:
                producer.produce(
                    told["topic"],
                    partition=told["partition"],
                    timestamp=told["timestamp"],
                    key=decoded(told.get("key")),
                    value=decoded(told.get("value")),
                    headers=[(name, decoded(value)) for name, value in told.get("headers") or []],
                    on_delivery=acknowledged,
                )
                break
            except BufferError:
                producer.poll(0.1)
        records += 1
        producer.poll(0)
    left = producer.flush(TIMEOUT_SECONDS)
    if left or faults:
        sys.exit(f"produce: {left} records were not acknowledged, {len(faults)} refused: {faults[:3]}")
    print(json.dumps({"records": records, "last": offsets}))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: produce.py BROKERS FILE")
    with open(sys.argv[2], encoding="utf-8") as file:
        main(sys.argv[1], file)
