"""Deletes rows as another engine does: PyIceberg, copy on write, in a commit of its own.

    erase.py WAREHOUSE TABLE COLUMN VALUE…
"""

import pathlib
import sys

from pyiceberg.expressions import In

from pyiceberg_reader import Reader


def main():
    warehouse, table, column, *values = sys.argv[1:]
    reader = Reader(pathlib.Path(warehouse).resolve())
    reader.table(table).delete(In(column, [int(value) for value in values]))


if __name__ == "__main__":
    main()
