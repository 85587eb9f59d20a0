#!/usr/bin/python3
"""PyTorch's DistributedDataParallel over Gloo in the network lab, beside gradwire's prediction.

usage: sudo tests/bench/compare_ddp.py build/release/gradwire CALIBRATION [BATCHES [RATE...]]

For mlp-wide, batch 64, SGD, at 2 and 4 workers: DDP as it is (buckets of 1 and 25 MiB) and with its
PowerSGD hook of rank 4 (one bucket: with two, its collectives interleave differently between ranks
and abort on Gloo).  A worker has one core, shared with every so many others, as gradwire's lab does.
The prediction gets nothing of these runs but the forward and backward pass of one worker alone, by
PyTorch (--compute FORWARD,BACKWARD); contention for cores, Gloo and TCP come from the calibration.
Prints a Markdown table.  Needs root and python3-torch; says so where they are missing.
"""
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before torch loads its BLAS
try:
    import torch
    import torch.distributed as dist
except ImportError:
    sys.exit("skipped: python3-torch is not installed")

WARM_UP = 3
CASES = [(n, rate, delay) for rate, delay in
         (("10Mbps", 0), ("100Mbps", 0), ("1Gbps", 0), ("100Mbps", 0.020)) for n in (2, 4)]


def make_model():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 10))


def train(model, batches):
    """Seconds of every batch's forward pass and of its end."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.rand(64, 784), torch.randint(10, (64,))
    forward_s, batch_s = [], []
    for _ in range(batches):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        forward_s.append(time.perf_counter() - start)
        loss.backward()
        backward_end = time.perf_counter()
        optimizer.step()
        batch_s.append((time.perf_counter() - start, backward_end - start - forward_s[-1]))
    return forward_s[WARM_UP:], batch_s[WARM_UP:]


def worker(hook, batches):
    """One rank, started by `gradwire lab`; rank 0 prints its batch times as JSON."""
    dist.init_process_group("gloo")
    options = {}
    if hook == "powersgd":
        options = {"bucket_cap_mb": 1000}
        dist._DEFAULT_FIRST_BUCKET_BYTES = 1000 << 20
    model = torch.nn.parallel.DistributedDataParallel(make_model(), **options)
    if hook == "powersgd":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=4, start_powerSGD_iter=2, use_error_feedback=True)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    _, batches_s = train(model, batches)
    if dist.get_rank() == 0:
        print(json.dumps([total for total, _ in batches_s]))
    dist.barrier()


def alone():
    """Forward and backward seconds of one worker on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    forward_s, batches_s = train(make_model(), 60)
    print(json.dumps([statistics.median(forward_s), statistics.median(b for _, b in batches_s)]))


def output(words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def network(workers, rate, delay_s):
    return ["--workers", str(workers), "--bandwidth", rate, "--latency", f"{delay_s / 2 * 1e3}ms"]


def predict(gradwire, calibration, case, algorithm, local_s):
    report = json.loads(output(
        [gradwire, "run", "--platform", "star-1g", *network(*case), "--model", "mlp-wide",
         "--network-model", "calibrated:" + calibration, "--optimizer", "sgd", "--batches", "6",
         "--compute", ",".join(f"{s * 1e6}us" for s in local_s), "--algorithm", algorithm,
         "--json", "--quiet"]))
    return statistics.median(report["results"][0]["batch_time_s"]["samples"][1:])


def main():
    gradwire, calibration = sys.argv[1:3]
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    rates = sys.argv[4:]
    script = os.path.abspath(__file__)
    local_s = json.loads(output([sys.executable, script, "alone"]))
    print(f"one worker alone: forward {local_s[0] * 1e3:.2f} ms, backward {local_s[1] * 1e3:.2f} ms\n")
    print("| workers | network | | PyTorch DDP | gradwire | error |\n|---|---|---|---|---|---|")
    for case in (c for c in CASES if not rates or c[1] in rates):
        for hook, algorithm in (("plain", "dsgd"), ("powersgd", "powersgd:rank=4")):
            samples_s = json.loads(output(
                [gradwire, "lab", *network(*case), "--", sys.executable, script, "worker", hook,
                 str(batches)]))
            measured_s = statistics.median(samples_s)
            predicted_s = predict(gradwire, calibration, case, algorithm, local_s)
            delay = f", {case[2] * 1e3:.0f} ms" if case[2] else ""
            print(f"| {case[0]} | {case[1]}{delay} | {hook} | {measured_s * 1e3:.1f} ms "
                  f"| {predicted_s * 1e3:.1f} ms | {100 * (predicted_s / measured_s - 1):+.0f} % |",
                  flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["alone"]:
        alone()
    elif len(sys.argv) < 3:
        sys.exit(__doc__)
    elif os.geteuid() != 0:
        sys.exit("skipped: the network lab needs root")
    else:
        main()
