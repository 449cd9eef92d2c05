"""Tests of environment.py with a package-free pins file: nothing is fetched."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import environment

CALL = "import sys, environment; environment.PINS['empty'] = __import__('pathlib').Path(sys.argv[1]); " \
       "print(environment.interpreter('empty'))"


class EnvironmentTests(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        self.pins = pathlib.Path(self.home.name) / "empty.txt"
        self.pins.write_text("# nothing\n")

    def start(self, home=None):
        variables = {**os.environ, "XDG_CACHE_HOME": home or self.home.name}
        return subprocess.Popen(
            [sys.executable, "-c", CALL, str(self.pins)], env=variables, cwd=pathlib.Path(__file__).parent,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def test_it_is_made_once_and_again_only_when_it_is_not_whole(self):
        processes = [self.start(), self.start()]
        outputs = [process.communicate(timeout=300) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], outputs)
        self.assertEqual(outputs[0][0], outputs[1][0])
        self.assertEqual(sum("is ready after" in stderr for _, stderr in outputs), 1, outputs)
        python = outputs[0][0].strip()
        self.assertEqual(subprocess.run([python, "-c", "print(7)"], capture_output=True, text=True).stdout, "7\n")

        (pathlib.Path(python).parent.parent / "complete").unlink()
        stdout, stderr = self.start().communicate(timeout=300)
        self.assertEqual(stdout.strip(), python)
        self.assertIn("is ready after", stderr)
        self.assertNotIn("is ready after", self.start().communicate(timeout=300)[1])

        # Other pins are another environment, and what pip refuses is never taken for whole.
        self.pins.write_text("a-package that pip cannot parse\n")
        for _ in range(2):
            process = self.start()
            self.assertIn("pip could not install", process.communicate(timeout=300)[1])
            self.assertEqual(process.returncode, 1)

    def test_what_is_missing_is_named_with_the_way_out(self):
        names = "there are aws, broker, deny, events, lambda, readers, spark, speed"
        with self.assertRaisesRegex(environment.EnvironmentFault, names):
            environment.interpreter("nope")
        blocked = pathlib.Path(self.home.name) / "file"
        blocked.touch()
        self.assertIn("set XDG_CACHE_HOME", self.start(str(blocked)).communicate(timeout=300)[1])
        environment.OLDEST_PYTHON, oldest = (9, 9), environment.OLDEST_PYTHON
        self.addCleanup(setattr, environment, "OLDEST_PYTHON", oldest)
        with self.assertRaisesRegex(environment.EnvironmentFault, "Python 9.9 or newer is needed.*FRAZIL_PYTHON"):
            environment.interpreter("readers")


if __name__ == "__main__":
    unittest.main()
