"""Trains the omikuji package and our own models on the same features, in turns, and prints a table.

    cargo build --release -p cladist-core --example linear_bench
    python3 -m venv "$TMPDIR/omikuji" && "$TMPDIR/omikuji/bin/pip" install omikuji
    "$TMPDIR/omikuji/bin/python" bench/omikuji/bench.py CORPUS [--repeat 3] [--heads parabel,bonsai]

CORPUS is a folder with train.jsonl and test.jsonl (or .jsonl.gz). Both sides read the same file of L2-normalised
TF-IDF features; train seconds include reading it. Both use all cores and the same hyper-parameters: 3 trees, C = 1,
epsilon = 0.1, 20 passes at most, weights up to --prune dropped, beam 10.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PRESETS = {
    "parabel": dict(max_depth=20, cluster_k=2, cluster_balanced=True),
    "bonsai": dict(max_depth=3, cluster_k=100, cluster_balanced=False),
    "svm": dict(max_depth=1, n_trees=1),
}


def read(path):
    with open(path) as lines:
        next(lines)
        for line in lines:
            labels, _, features = line.rstrip("\n").partition(" ")
            pairs = (pair.split(":") for pair in features.split(" "))
            yield {int(label) for label in labels.split(",") if label}, [(int(f), float(v)) for f, v in pairs]


def run_omikuji(folder, head, prune):
    import omikuji

    hyper_param = omikuji.Model.default_hyper_param()
    for key, value in PRESETS[head].items():
        setattr(hyper_param, key, value)
    hyper_param.linear_weight_threshold = prune
    start = time.perf_counter()
    model = omikuji.Model.train_on_data(os.path.join(folder, "train.txt"), hyper_param)
    train_seconds = time.perf_counter() - start
    hits, n, score_seconds = [0, 0, 0], 0, 0.0
    for gold, features in read(os.path.join(folder, "test.txt")):
        start = time.perf_counter()
        found = [label for label, _ in model.predict(features, beam_size=10, top_k=10)]
        score_seconds += time.perf_counter() - start
        n += 1
        for place, k in enumerate((1, 3, 5)):
            hits[place] += len(gold.intersection(found[:k])) / k
    print(json.dumps({
        "train_seconds": train_seconds,
        "score_seconds": score_seconds,
        "precision": [hit / n for hit in hits],
    }))


def in_own_process(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--prune", type=float, default=0.1)
    parser.add_argument("--heads", default="parabel,bonsai")
    parser.add_argument("--binary", default=os.path.join(
        os.environ.get("CARGO_TARGET_DIR", "target"), "release", "examples", "linear_bench"))
    parser.add_argument("--omikuji", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.omikuji:
        return run_omikuji(arguments.corpus, arguments.omikuji, arguments.prune)

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.binary, "export", arguments.corpus, folder], check=True)
        print("| head | side | train s (median, all) | score s | P@1 | P@3 | P@5 |\n|---|---|---|---|---|---|---|")
        for head in arguments.heads.split(","):
            sides = {"omikuji": [], "cladist": []}
            for seed in range(arguments.repeat):
                prune = str(arguments.prune)
                sides["omikuji"].append(
                    in_own_process([sys.executable, __file__, folder, "--omikuji", head, "--prune", prune]))
                sides["cladist"].append(in_own_process([arguments.binary, "run", folder, head, prune, str(seed)]))
            medians = {}
            for side, results in sides.items():
                seconds = [result["train_seconds"] for result in results]
                medians[side] = statistics.median(seconds)
                p = [statistics.mean(result["precision"][place] for result in results) for place in range(3)]
                print(f"| {head} | {side} | {medians[side]:.1f} ({', '.join(f'{s:.1f}' for s in seconds)}) "
                      f"| {statistics.median(r['score_seconds'] for r in results):.1f} "
                      f"| {100 * p[0]:.2f} | {100 * p[1]:.2f} | {100 * p[2]:.2f} |", flush=True)
            print(f"| {head} | cladist ÷ omikuji | {medians['cladist'] / medians['omikuji']:.2f} | | | | |", flush=True)


if __name__ == "__main__":
    main()
