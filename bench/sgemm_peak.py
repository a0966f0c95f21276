"""Measured SGEMM peak of PyTorch (MKL), for the share of peak an engine reaches; prints one JSON object.

    python3 bench/sgemm_peak.py [--threads 2] [--seconds 2]

`peak_gflops` is the best window of about 50 ms over all shapes: square ones, and those of MiniLM (hidden 384) and BERT-base
(hidden 768) with 2,048 tokens.
"""

import argparse
import json
import os
import time

WINDOW = 8.0  # billions of operations
SHAPES = {
    "square 1024": (1024, 1024, 1024),
    "square 2048": (2048, 2048, 2048),
    "minilm projection": (2048, 384, 384),
    "minilm up": (2048, 384, 1536),
    "minilm down": (2048, 1536, 384),
    "base projection": (2048, 768, 768),
    "base up": (2048, 768, 3072),
    "base down": (2048, 3072, 768),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each shape")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    best, median = {}, {}
    for name, (m, k, n) in SHAPES.items():
        left, right, out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
        torch.mm(left, right, out=out)
        operations = 2e-9 * m * k * n
        calls = max(1, round(WINDOW / operations))
        rates = []
        end = time.perf_counter() + options.seconds
        while len(rates) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(calls):
                torch.mm(left, right, out=out)
            rates.append(calls * operations / (time.perf_counter() - start))
        best[name] = round(max(rates), 1)
        median[name] = round(sorted(rates)[len(rates) // 2], 1)
    print(json.dumps({
        "engine": f"torch {torch.__version__}", "threads": options.threads, "peak_gflops": max(best.values()),
        "best_gflops": best, "median_gflops": median,
    }))


if __name__ == "__main__":
    main()
