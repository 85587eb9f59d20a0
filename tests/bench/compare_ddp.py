#!/usr/bin/python3
"""PyTorch's DistributedDataParallel over Gloo in the network lab, beside gradwire's prediction.

usage: sudo tests/bench/compare_ddp.py build/release/gradwire CALIBRATION [BATCHES [RATE...]]

For mlp-wide, batch 64, SGD, at 2 and 4 workers: DDP as it is (buckets of 1 and 25 MiB) and with its
PowerSGD hook of rank 4 (one bucket: with two, its collectives interleave differently between ranks
and abort on Gloo).  A worker has one core, shared with every so many others, as gradwire's lab does.
The prediction (exchange=gloo) gets nothing of these runs but what one worker alone takes, by
PyTorch: its forward and backward pass (--compute FORWARD,BACKWARD), and a --device-rate at which
all else, the optimizer and PowerSGD's mathematics, takes as long as there.  Contention for cores,
Gloo and TCP come from the calibration.  A run is repeated where others compute meanwhile.
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
PROCESSES = 5  # alone: the hook's mathematics takes 3 to 8 ms from process to process
CASES = [(n, rate, delay) for rate, delay in
         (("10Mbps", 0), ("100Mbps", 0), ("1Gbps", 0), ("100Mbps", 0.020)) for n in (2, 4)]


def make_model():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 10))


def train(model, batches):
    """Seconds of every batch: forward pass, backward pass, all of it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.rand(64, 784), torch.randint(10, (64,))
    times_s = []
    for _ in range(batches):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        forward_end = time.perf_counter()
        loss.backward()
        backward_end = time.perf_counter()
        optimizer.step()
        times_s.append((forward_end - start, backward_end - forward_end, time.perf_counter() - start))
    return times_s[WARM_UP:]


def data_parallel(hook):
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
    return model


def worker(hook, batches):
    """One rank, started by `gradwire lab`; rank 0 prints its batch times as JSON."""
    dist.init_process_group("gloo")
    times_s = train(data_parallel(hook), batches)
    if dist.get_rank() == 0:
        print(json.dumps([batch_s for _, _, batch_s in times_s]))
    dist.barrier()


def alone(hook):
    """Of one worker on one core: forward and backward pass of the bare model, a batch with DDP."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29501", RANK="0", WORLD_SIZE="1")
    passes_s = train(make_model(), 60)
    dist.init_process_group("gloo")
    batches_s = train(data_parallel(hook), 60)
    print(json.dumps([statistics.median(f for f, _, _ in passes_s),
                      statistics.median(b for _, b, _ in passes_s),
                      statistics.median(b for _, _, b in batches_s)]))


def output(words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def busy_s():
    """Processor seconds of everybody, and those of this process's children that have ended."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:4]]  # user, nice, system
    children = os.times()
    return (sum(ticks) / os.sysconf("SC_CLK_TCK"),
            children.children_user + children.children_system)


def undisturbed(words, tries=3):
    """Its output, of a run beside which others had at most 2 % of the cores, and whether so."""
    while True:
        start, (all_s, own_s) = time.perf_counter(), busy_s()
        text = output(words)
        all_end_s, own_end_s = busy_s()
        foreign_s = all_end_s - all_s - (own_end_s - own_s)
        tries -= 1
        quiet = foreign_s < 0.02 * os.cpu_count() * (time.perf_counter() - start) + 0.03
        if quiet or tries == 0:
            return text, quiet


def network(workers, rate, delay_s):
    return ["--workers", str(workers), "--bandwidth", rate, "--latency", f"{delay_s / 2 * 1e3}ms"]


def predict(gradwire, calibration, network_words, algorithm, local_s, rate):
    return json.loads(output(
        [gradwire, "run", "--platform", "star-1g", *network_words, "--model", "mlp-wide",
         "--network-model", "calibrated:" + calibration, "--optimizer", "sgd", "--batches", "6",
         "--compute", ",".join(f"{s * 1e6}us" for s in local_s[:2]), "--device-rate", f"{rate:.0f}f",
         "--algorithm", algorithm, "--json", "--quiet"]))["results"][0]


def batch_s(result):
    return statistics.median(result["batch_time_s"]["samples"][1:])


def rate_of(gradwire, calibration, algorithm, local_s):
    """Flop/s at which one worker alone takes the whole batch's time."""
    guess = 1e9
    one = ["--workers", "1"]
    rest_s = batch_s(predict(gradwire, calibration, one, algorithm, local_s, guess)) - sum(local_s[:2])
    return guess * rest_s / max(local_s[2] - sum(local_s[:2]), 1e-6)


def main():
    gradwire, calibration = sys.argv[1:3]
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    rates = sys.argv[4:]
    script = os.path.abspath(__file__)
    local_s, rate = {}, {}
    algorithms = {"plain": "dsgd:exchange=gloo",  # the hook's all-reduces follow one another
                  "powersgd": "powersgd:rank=4,exchange=gloo,overlap=off"}
    for hook, algorithm in algorithms.items():
        each_s = [json.loads(undisturbed([sys.executable, script, "alone", hook])[0])
                  for _ in range(PROCESSES)]
        local_s[hook] = [statistics.median(times_s) for times_s in zip(*each_s)]
        rate[hook] = rate_of(gradwire, calibration, algorithm, local_s[hook])
        print(f"one worker alone, {hook}: forward {local_s[hook][0] * 1e3:.2f} ms, backward "
              f"{local_s[hook][1] * 1e3:.2f} ms, batch {local_s[hook][2] * 1e3:.2f} ms")
    print("\n| workers | network | | PyTorch DDP | gradwire | error | |\n|---|---|---|---|---|---|---|")
    for case in (c for c in CASES if not rates or c[1] in rates):
        for hook, algorithm in algorithms.items():
            text, quiet = undisturbed([gradwire, "lab", *network(*case), "--", sys.executable, script,
                                       "worker", hook, str(batches)])
            measured_s = statistics.median(json.loads(text))
            predicted_s = batch_s(predict(gradwire, calibration, network(*case), algorithm,
                                          local_s[hook], rate[hook]))
            delay = f", {case[2] * 1e3:.0f} ms" if case[2] else ""
            print(f"| {case[0]} | {case[1]}{delay} | {hook} | {measured_s * 1e3:.1f} ms "
                  f"| {predicted_s * 1e3:.1f} ms | {100 * (predicted_s / measured_s - 1):+.0f} % "
                  f"| {'' if quiet else 'disturbed'} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["alone"]:
        alone(sys.argv[2])
    elif len(sys.argv) < 3:
        sys.exit(__doc__)
    elif os.geteuid() != 0:
        sys.exit("skipped: the network lab needs root")
    else:
        main()
