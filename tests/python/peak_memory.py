"""Runs a command and prints, as the last line, how many bytes of memory it had at most.

    peak_memory.py COMMAND [ARGUMENT…]

It exits as the command does. Only the standard library is used.
"""

import resource
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.stdout.flush()
print(peak if sys.platform == "darwin" else peak * 1024)  # Linux counts in kibibytes
sys.exit(done.returncode)
