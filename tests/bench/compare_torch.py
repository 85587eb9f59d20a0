#!/usr/bin/python3
"""gradwire's kernels beside PyTorch's, one thread each, in one run: ratios for the README.

usage: tests/bench/compare_torch.py build/release/tests     (python3-torch; target `benchmarks` built)

Each pair runs alternately, three rounds, and the best of each side counts: what else the machine
does then hits both alike.  PyTorch's side is what its users would write: autograd for the MLP, the
rank-dAD authors' loop (NeuroDist's power iterations, Gram form) for SPI, the arithmetic of
torch.distributed's powerSGD_hook with error feedback for PowerSGD, torch.topk for the selection.
"""
import json
import os
import subprocess
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before torch loads its BLAS
import torch

torch.set_num_threads(1)


def best_ms(function, seconds=1.0):
    function()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def mlp_wide():
    layers = torch.nn.Sequential(
        torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 10))
    inputs, labels = torch.rand(64, 784), torch.randint(10, (64,))

    def step():
        layers.zero_grad()
        torch.nn.functional.cross_entropy(layers(inputs), labels).backward()
    return step


def power_iterations(rank=8, iterations=3):
    b, c = torch.randn(1024, 64), torch.randn(1024, 64)

    def step():
        k = b @ (c.t() @ c)
        lefts, rights, sigmas = [], [], []
        for _ in range(rank):
            x = torch.rand(1024, 1)
            for _ in range(iterations):
                y = k @ (b.t() @ x)
                for left, sigma in zip(lefts, sigmas):
                    y = y - sigma**2 * left * (left.t() @ x)
                x = y / y.norm()
            z = c @ (b.t() @ x)
            sigma = z.norm()
            lefts.append(x), rights.append(z / sigma), sigmas.append(sigma)
        return torch.cat(lefts, 1), torch.cat(rights, 1)
    return step


def power_sgd(rank=4):
    gradient, error, q = torch.randn(1024, 1024), torch.zeros(1024, 1024), torch.randn(1024, rank)

    def step():
        matrix = gradient + error
        p = torch.linalg.qr(matrix @ torch.linalg.qr(q)[0])[0]
        q.copy_(matrix.t() @ p)
        torch.sub(matrix, p @ q.t(), out=error)
    return step


def top_k():
    values = torch.randn(10_000_000)

    def step():
        index = torch.topk(values.abs(), 100_000).indices
        return values[index]
    return step


CASES = [("forward and backward, mlp-wide, batch 64", "mlp_bench", "forward_backward/mlp_wide",
          mlp_wide()),
         ("power iterations, 1024x1024, 64 rows, r=8, J=3", "spi_bench", "spi/robust/1024/64/8/3",
          power_iterations()),
         ("PowerSGD step, 1024x1024, r=4", "powersgd_bench", "power_sgd_step/1024/4", power_sgd()),
         ("top 100,000 of 10 million", "selection_bench", "top_k_of_normal/100000", top_k())]


def ours_ms(folder, program, case):
    output = subprocess.run(
        [f"{folder}/{program}", f"--benchmark_filter=^{case}$", "--benchmark_format=json",
         "--benchmark_repetitions=5", "--benchmark_min_time=0.1"],
        check=True, capture_output=True, text=True).stdout
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1}
    runs = [r for r in json.loads(output)["benchmarks"] if r["run_type"] == "iteration"]
    return min(r["real_time"] * unit[r["time_unit"]] for r in runs)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"PyTorch {torch.__version__}, one thread each, best of three rounds")
    print(f"{'':52}{'gradwire ms':>12}{'PyTorch ms':>12}{'ratio':>8}")
    for title, program, case, theirs in CASES:
        rounds = [(ours_ms(sys.argv[1], program, case), best_ms(theirs)) for _ in range(3)]
        ours, torchs = (min(column) for column in zip(*rounds))
        print(f"{title:52}{ours:12.3f}{torchs:12.3f}{torchs / ours:8.1f}")


main()
