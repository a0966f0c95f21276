"""Trains and evaluates linear heads on corpus folders and prints Markdown tables.

    python3 bench/linear_table.py CORPORA_DIR [--cladist PATH] [--out RUNS_DIR] [--json FILE] CORPUS[:HEAD,HEAD][:KEY=VALUE,…] …

Needs nothing but Python's standard library and a built `cladist`. Seconds and peak memory are those of the whole
`cladist train` process: reading, training twice where dev is held out, calibrating, writing.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def run(command):
    """Output, seconds and peak resident megabytes of a child process."""
    start = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return output, time.time() - start, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora")
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--cladist", default="target/release/cladist")
    parser.add_argument("--out")
    parser.add_argument("--json")
    args = parser.parse_args()
    out = args.out or tempfile.mkdtemp(prefix="cladist-table-")
    rows = []
    for item in args.corpus:
        name, heads, *settings = item.split(":")
        sets = [part for group in settings for part in group.split(",") if part]
        for head in heads.split(","):
            folder = os.path.join(out, f"{name}-{head}")
            command = [args.cladist, "--quiet", "train", "--corpus", os.path.join(args.corpora, name)]
            command += ["--head", head, "--out", folder, "--overwrite"]
            command += [word for setting in sets for word in ("--set", setting)]
            _, seconds, megabytes = run(command)
            output, evaluating, _ = run([args.cladist, "--quiet", "evaluate", folder, "--json"])
            report = json.loads(output)
            rows.append({"corpus": name, "head": head, "sets": sets, "train_seconds": seconds,
                         "evaluate_seconds": evaluating, "peak_mb": megabytes, "report": report})
            print(f"{name} {head}: {seconds:.1f} s + {evaluating:.1f} s, {megabytes:.0f} MB", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file)
    table(rows)


def table(rows):
    columns = ["micro-f1", "macro-f1", "set-accuracy", "p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "ndcg@5",
               "r-precision-micro", "r-precision-macro", "hierarchical-f1-micro", "hierarchical-f1-macro", "ece"]
    print("\n| corpus | head | " + " | ".join(columns) + " | train s | evaluate s | peak MB |")
    print("|---" * (len(columns) + 5) + "|")
    for row in rows:
        metrics = row["report"]["metrics"]
        cells = [f"{metrics[c]:.4f}" if c in metrics else "–" for c in columns]
        print(f"| {row['corpus']} | {row['head']} | " + " | ".join(cells)
              + f" | {row['train_seconds']:.1f} | {row['evaluate_seconds']:.1f} | {row['peak_mb']:.0f} |")
    print("\n| corpus | head | R-Precision of levels 1, 2, … |\n|---|---|---|")
    for row in rows:
        levels = [f"{level['r_precision']:.4f}" if level["r_precision"] is not None else "–"
                  for level in row["report"]["per_level"]]
        print(f"| {row['corpus']} | {row['head']} | " + " / ".join(levels) + " |")
    print("\n| corpus | head | class | labels | P@5 | R@5 | F@5 |\n|---|---|---|---|---|---|---|")
    for row in rows:
        for shot in row["report"]["shots"]:
            if shot["k"] == 5 and shot["all"]:
                mean = shot["all"]
                print(f"| {row['corpus']} | {row['head']} | {shot['class']} | {shot['labels']} | "
                      f"{mean['p']:.4f} | {mean['r']:.4f} | {mean['f']:.4f} |")


if __name__ == "__main__":
    main()
