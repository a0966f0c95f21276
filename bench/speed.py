"""Speed and memory of Cladist's engine against PyTorch, in one go: prints a table of ratios.

    cargo build --release --workspace --examples
    python3 bench/speed.py --model FOLDER --texts FILE.jsonl [--onnx] [--wide]

FILE.jsonl has documents with a `text`. The texts are tokenised once and both sides get the same batches of token
ids, the same weights, two threads and f32. Cladist packs sequences without padding; PyTorch pads to the longest of
each batch. Sides take turns, `--rounds` times, and the best run of each counts: the machine may be shared. With
`--malloc best` the first round tries all allocators with PyTorch, the others go on with the fastest. `--against BINARY`
is the example `speed` of another commit: it takes turns too, and the last column is this commit's speed over its.
Needs parity/requirements.txt.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LABELS = 90


def batches(options):
    """Three sets of batches: full ones of 16 × 128, documents as they come, and 8 × 128 for the wide shape."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.model)
    with open(options.texts, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    random.Random(1).shuffle(texts)
    ids = tokenizer(texts[:4000], truncation=True, max_length=256)["input_ids"]
    generator = random.Random(2)

    def cut(documents, size, n):
        groups = [documents[i : i + size] for i in range(0, size * n, size)]
        return [{"ids": g, "labels": [[generator.randrange(LABELS)] for _ in g]} for g in groups]

    # Whole rows of real tokens: documents laid end to end and cut.
    stream = [token for document in ids for token in document[1:-1]]
    start, end = ids[0][0], ids[0][-1]
    full = [[start, *stream[i : i + 126], end] for i in range(0, 126 * 1000, 126)]
    return {
        "16x128": cut(full, 16, options.batches),
        "as they come": cut(ids, 16, options.batches),
        "8x128": cut(full, 8, max(4, options.batches // 4)),
    }


def run(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(file, model, mode, options, binary=ROOT / "target" / "release" / "examples" / "speed"):
    return run([binary, model, file, mode, str(LABELS), "2"], {"RAYON_NUM_THREADS": str(options.threads)})


def torch(file, model, mode, options, script="torch_speed.py", malloc=None):
    which = ["--random-shape", f"{model},{4 * int(model.split(',')[1])}"] if "," in model else ["--model", model]
    command = [sys.executable, ROOT / "bench" / script, file, *which, "--mode", mode]
    command += ["--labels", str(LABELS), "--threads", str(options.threads), "--warmup", "2"]
    command += ["--malloc", malloc or options.malloc] if script == "torch_speed.py" else []
    return run(command)


def rate(result):
    return next(result[key] for key in ("docs_per_second", "docs/s", "docs_s") if key in result)


def memory(result):
    return result["peak_rss_mb"] - result.get("import_rss_mb", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", required=True)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--malloc", default="best", help="as torch_speed.py has it")
    parser.add_argument("--onnx", action="store_true", help="onnxruntime too")
    parser.add_argument("--wide", action="store_true", help="the 12 x 768 shape too")
    parser.add_argument("--only", default="", help="only cases whose name has this in it, such as `16x128` or `12x768`")
    parser.add_argument("--against", help="the example `speed` of another commit, to be compared with this one's")
    parser.add_argument("--json", help="write all results here")
    options = parser.parse_args()
    cases = [(options.model, name, mode) for name in ("16x128", "as they come") for mode in ("train", "infer")]
    if options.wide:
        cases += [("12,768,12", "8x128", mode) for mode in ("train", "infer")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, content in batches(options).items():
            files[name] = Path(folder) / f"{name}.jsonl"
            files[name].write_text("".join(json.dumps(batch) + "\n" for batch in content))
        print(f"{'case':34} {'cladist':>9} {'PyTorch':>9} {'ratio':>6}   {'memory':>13} {'ratio':>6}"
              f"{'against' if options.against else '':>9}")
        for model, name, mode in cases:
            line = f"{mode} {'12x768 ' if ',' in model else ''}{name}"
            if options.only not in line:
                continue
            mine, other, before, malloc = [], [], [], None
            for _ in range(options.rounds):
                other.append(torch(files[name], model, mode, options, malloc=malloc))
                # As many chances as the other side, which has tried several allocators.
                tried = len(other[-1].get("tried", "1"))
                for _ in range(tried):
                    mine.append(ours(files[name], model, mode, options))
                    if options.against:
                        before.append(ours(files[name], model, mode, options, options.against))
                malloc = other[-1]["malloc"]
            a, b = max(mine, key=rate), max(other, key=rate)
            print(
                f"{line:34} {rate(a):9.2f} {rate(b):9.2f} {rate(a) / rate(b):6.2f}   "
                f"{memory(a):5.0f}/{memory(b):5.0f}MB {memory(a) / memory(b):6.2f}"
                + (f"{rate(a) / max(map(rate, before)):9.3f}" if before else ""),
                flush=True,
            )
            results.append({"case": line, "cladist": a, "torch": b, "against": before})
        if options.onnx:
            for name in ("16x128", "as they come"):
                mine = max((ours(files[name], options.model, "infer", options) for _ in range(options.rounds)), key=rate)
                for mode in ("f32", "int8"):
                    other = torch(files[name], options.model, mode, options, "onnx_speed.py")
                    print(
                        f"{'infer ' + name + ' onnx ' + mode:34} {rate(mine):9.2f} {rate(other):9.2f} "
                        f"{rate(mine) / rate(other):6.2f}",
                        flush=True,
                    )
                    results.append({"case": f"infer {name} onnxruntime {mode}", "cladist": mine, "onnx": other})
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
