#!/usr/bin/env python3
"""Ratios between two programs that take turns: A B A B …, so that what disturbs the machine disturbs both.

Comparisons (A against B)
  server  1 server + 1 worker            against  one PyTorch process, sparse gradients
  hybrid  2 ranks that serve and train   against  DDP with gloo, 2 ranks, sparse gradients
  rows    1 server + 1 worker, --rows    against  the same with ten times the rows

Prints every run and then, as JSON, the medians of each side, the median of the ratios of neighbouring runs (that is
what to quote) and the smallest and largest of them. Exits with 1 when a limit that was given is missed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIGURES = ("samples_per_second", "cpu_seconds_per_million")


def run(command, timeout):
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=timeout, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def figures_of(result, command):
    result = result.get("train", result)
    try:
        return {name: float(result[name]) for name in FIGURES}
    except KeyError as missing:
        sys.exit(f"compare: {' '.join(map(str, command))} reported no {missing}")


def hyperframes(args, roles, rows):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "bench.json"
        # Unbound: Open MPI binds two ranks to a core each, and then a worker's readers share its compute core.
        command = [args.mpirun, "-np", "2", "--bind-to", "none"]
        if len(os.sched_getaffinity(0)) < 2:
            command += ["--map-by", ":OVERSUBSCRIBE"]
        command += [args.program, "bench", "train", "--rows", rows, "--steps", args.steps, "--json", report, *roles]
        command = [str(word) for word in command]
        run(command, args.timeout)
        return figures_of(json.loads(report.read_text()), command)


def pytorch(args, ranks, rows):
    command = [args.python, str(HERE / "pytorch_reference.py"), "--rows", str(rows), "--ranks", str(ranks),
               "--steps", str(args.steps)]
    return figures_of(json.loads(run(command, args.timeout).splitlines()[-1]), command)


def sides(args):
    server, hybrid = ["--ps", "1"], ["--role", "hybrid"]
    return {
        "server": (lambda: hyperframes(args, server, args.rows), lambda: pytorch(args, 1, args.rows)),
        "hybrid": (lambda: hyperframes(args, hybrid, args.rows), lambda: pytorch(args, 2, args.rows)),
        "rows": (lambda: hyperframes(args, server, args.rows), lambda: hyperframes(args, server, 10 * args.rows)),
    }[args.comparison]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", choices=("server", "hybrid", "rows"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=100, help="timed steps per rank and run")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each side")
    parser.add_argument("--program", default=str(HERE.parent / "build/release/bin/hyperframes"))
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    parser.add_argument("--min-speed-ratio", type=float, help="least A/B of samples_per_second")
    parser.add_argument("--max-speed-ratio", type=float, help="largest A/B of samples_per_second")
    parser.add_argument("--max-cpu-ratio", type=float, help="largest A/B of cpu_seconds_per_million")
    args = parser.parse_args()
    if min(args.rows, args.steps, args.repeat) < 1:
        parser.error("--rows, --steps and --repeat must be at least 1")
    for program in (args.program, args.mpirun):
        if not shutil.which(program):
            parser.error(f"there is no program {program}")

    first, second = sides(args)
    a, b = [], []
    for turn in range(args.repeat):
        for name, side, results in (("A", first, a), ("B", second, b)):
            results.append(side())
            print(f"{turn + 1}/{args.repeat} {name}: {results[-1]['samples_per_second']:.0f} samples/s, "
                  f"{results[-1]['cpu_seconds_per_million']:.2f} CPU-s per million", file=sys.stderr, flush=True)

    report = {"comparison": args.comparison, "rows": args.rows, "repeat": args.repeat, "steps": args.steps}
    for figure in FIGURES:
        ratios = [x[figure] / y[figure] for x, y in zip(a, b)]
        report[figure] = {
            "A": statistics.median(x[figure] for x in a),
            "B": statistics.median(y[figure] for y in b),
            "ratio": statistics.median(ratios),
            "smallest": min(ratios),
            "largest": max(ratios),
        }
    print(json.dumps(report, indent=2))

    speed, cpu = (report[figure]["ratio"] for figure in FIGURES)
    missed = []
    if args.min_speed_ratio is not None and speed < args.min_speed_ratio:
        missed.append(f"speed ratio {speed:.3f} < {args.min_speed_ratio}")
    if args.max_speed_ratio is not None and speed > args.max_speed_ratio:
        missed.append(f"speed ratio {speed:.3f} > {args.max_speed_ratio}")
    if args.max_cpu_ratio is not None and cpu > args.max_cpu_ratio:
        missed.append(f"CPU ratio {cpu:.3f} > {args.max_cpu_ratio}")
    for line in missed:
        print("missed: " + line, file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
