"""Start-up of the main job against that of `import numpy`: whole processes in turn, median and ratio.

Run: python benchmarks/startup.py [RUNS]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

MAIN_JOB = "from slicewise.cli.main import main; main(['plan', 'llama-3-70b'])"
COMMANDS = {
    "python -c 'pass'": [sys.executable, "-c", "pass"],
    "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
    "slicewise plan llama-3-70b": [sys.executable, "-c", MAIN_JOB],
    "slicewise --version": [sys.executable, "-c", "from slicewise.cli.main import main; main(['--version'])"],
}


def seconds(command: list[str]) -> float:
    """Wall time of one process. [s]"""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def run(runs: int) -> None:
    """Print the table."""
    for command in COMMANDS.values():
        seconds(command)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    numpy = times["python -c 'import numpy'"]
    print(f"| whole process, {runs} runs in turn | median | over `import numpy` |\n| :-- | --: | --: |")
    for name, found in times.items():
        ratio = statistics.median(a / b for a, b in zip(found, numpy, strict=True))
        print(f"| `{name}` | {statistics.median(found):.3f} s | {ratio:.2f} |")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
