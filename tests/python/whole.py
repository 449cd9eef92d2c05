"""Whether a table holds exactly the records that were produced, as another engine reads it.

    whole.py --reader pyiceberg|duckdb WAREHOUSE TABLE PARTITIONS RECORDS NEW_SINCE [MISSING_ID...]

Record `id` is at offset id // PARTITIONS of partition id % PARTITIONS, with the note "note {id}", and from id NEW_SINCE
on with the column `extra` = 2 × id. Exit 1 with the first differences.
"""

import argparse
import sys

from compare import open_reader

SHOWN = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", required=True)
    parser.add_argument("warehouse")
    parser.add_argument("table")
    parser.add_argument("numbers", type=int, nargs="+")
    arguments = parser.parse_args()
    partitions, records, new_since, *missing = arguments.numbers
    expected = {
        (number % partitions, number // partitions): (
            number, f"note {number}", 2 * number if number >= new_since else None,
        )
        for number in range(records)
        if number not in missing
    }
    faults = []
    for row in open_reader(arguments.reader, arguments.warehouse).rows(arguments.table):
        place = (row["_kafka_partition"], row["_kafka_offset"])
        found = (row["id"], row["note"], row["extra"])
        wanted = expected.pop(place, None)
        if wanted is None:
            faults.append(f"{place}: there twice, or never produced: {found}")
        elif found != wanted:
            faults.append(f"{place}: {found}, not {wanted}")
    faults += [f"{place}: missing" for place in sorted(expected)]
    if faults:
        sys.exit("\n".join([f"{len(faults)} differences, the first:", *faults[:SHOWN]]))
    print(f"{arguments.table}: {records - len(missing)} rows, each once")


if __name__ == "__main__":
    main()
