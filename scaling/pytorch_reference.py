#!/usr/bin/env python3
"""The yardstick: the benchmark model trained by PyTorch alone, on one process or with DistributedDataParallel (gloo).

Model: 26 categorical features in one nn.Embedding(rows, 16, sparse=True), `rows` split evenly over the features; 13
numeric ones; MLP 429-400-400-400-1 with ReLU; binary cross-entropy from logits; SGD. Categories follow Zipf's law.
Batches are made before the clock starts and are used in a ring. One compute thread per process.

Prints one line of JSON. Of several ranks, samples_per_second is the sum and cpu_seconds_per_million counts all of them.
"""

import os

# One thread per process, as hyperframes' ranks have. These count only when set before the libraries are loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import resource
import sys
import tempfile
import time

import numpy as np
import torch

torch.set_num_threads(1)

FEATURES = 26
NUMERICS = 13
DIM = 16
HIDDEN = 400
ZIPF = 1.05
RING = 40  # batches made ahead


def make_batches(rows, batch, seed):
    """A ring of (numerics, ids, labels). Rank r of a feature is row r of its part: the most frequent rows are
    neighbours in memory, which favours the reference."""
    rng = np.random.default_rng(seed)
    per_feature = rows // FEATURES
    cdf = np.cumsum(1.0 / np.arange(1, per_feature + 1) ** ZIPF)
    cdf /= cdf[-1]
    offsets = np.arange(FEATURES) * per_feature
    ring = []
    for _ in range(RING):
        ids = np.searchsorted(cdf, rng.random((batch, FEATURES))) + offsets
        ring.append((
            torch.from_numpy(rng.random((batch, NUMERICS), dtype=np.float32)),
            torch.from_numpy(ids.astype(np.int64)),
            torch.from_numpy((rng.random(batch) < 0.25).astype(np.float32)),
        ))
    return ring


class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.embedding = torch.nn.Embedding(rows, DIM, sparse=True)
        width = NUMERICS + FEATURES * DIM
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, HIDDEN), torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, 1),
        )

    def forward(self, numerics, ids):
        return self.mlp(torch.cat([numerics, self.embedding(ids).flatten(1)], 1)).squeeze(1)


def cpu_seconds():
    """User and system time of this process with all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def gemm_gflops():
    """A generic BLAS runs at a few GFLOP/s and would make this yardstick worthless."""
    a, b = torch.rand(1024, 400), torch.rand(400, 400)
    a @ b
    start = time.perf_counter()
    for _ in range(20):
        a @ b
    return 20 * 2 * 1024 * 400 * 400 / (time.perf_counter() - start) / 1e9


def train(rank, args, rendezvous):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    distributed = args.ranks > 1
    if distributed:
        torch.distributed.init_process_group(
            "gloo", init_method="file://" + rendezvous, rank=rank, world_size=args.ranks)
    ring = make_batches(args.rows, args.batch, args.seed + rank)
    model = Model(args.rows)
    if distributed:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_function = torch.nn.BCEWithLogitsLoss()

    def run(first, steps):
        for step in range(first, first + steps):
            numerics, ids, labels = ring[step % RING]
            optimizer.zero_grad()
            loss = loss_function(model(numerics, ids), labels)
            loss.backward()
            optimizer.step()
        return loss.item()

    run(0, args.warmup)
    if distributed:
        torch.distributed.barrier()
    wall, cpu = time.perf_counter(), cpu_seconds()
    loss = run(args.warmup, args.steps)
    cpu = cpu_seconds() - cpu  # before the barrier: waiting for the others is no work
    if distributed:
        torch.distributed.barrier()
    wall = time.perf_counter() - wall

    totals = torch.tensor([cpu, float(np.mean([len(torch.unique(b[1])) for b in ring]))], dtype=torch.float64)
    if distributed:
        torch.distributed.all_reduce(totals)
    if rank == 0:
        samples = args.steps * args.batch * args.ranks
        print(json.dumps({
            "samples_per_second": round(samples / wall, 1),
            "cpu_seconds_per_million": round(totals[0].item() / samples * 1e6, 3),
            "unique_rows_per_batch": round(totals[1].item() / args.ranks, 1),
            "rows": args.rows,
            "ranks": args.ranks,
            "batch": args.batch,
            "steps": args.steps,
            "wall_seconds": round(wall, 3),
            "loss": round(loss, 5),
            "torch": torch.__version__,
        }), flush=True)
    if distributed:
        torch.distributed.destroy_process_group()


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=positive, default=1_000_000, help="embedding rows over all features")
    parser.add_argument("--ranks", type=positive, default=1, help="1: one process; more: DDP with gloo")
    parser.add_argument("--steps", type=positive, default=100, help="timed steps per rank")
    parser.add_argument("--warmup", type=positive, default=10, help="steps before the clock starts")
    parser.add_argument("--batch", type=positive, default=2048, help="rows per rank and step")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.rows < FEATURES:
        parser.error(f"--rows must be at least {FEATURES}")

    speed = gemm_gflops()
    if speed < 15:
        print(f"warning: matrix products run at {speed:.1f} GFLOP/s; is this a generic BLAS?", file=sys.stderr)
    if args.ranks == 1:
        train(0, args, "")
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(train, (args, os.path.join(folder, "rendezvous")), nprocs=args.ranks)


if __name__ == "__main__":
    main()
