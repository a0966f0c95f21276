"""Times PyTorch + transformers on batches that Cladist dumped; prints one JSON object.

    python3 bench/torch_speed.py BATCHES (--model FOLDER | --random-shape LAYERS,HIDDEN,HEADS,INTERMEDIATE)
        --mode train|infer --labels N [--threads 2] [--warmup 2] [--repeat 1] [--malloc best|keep|default|LIBRARY]

BATCHES has one JSON object per line and per batch: `{"ids": [[101, …, 102], …], "labels": [[3, 17], …]}`, token ids
without padding. Each batch is padded to its own longest document. f32, SDPA attention, flat head: pooler, dropout 0.1,
linear; binary cross-entropy with logits; AdamW and gradients clipped to 1. Training uses constant learning rates.

`--warmup` batches run untimed first (from the start of the file, around again if it is short), then the whole file
`--repeat` times. `--malloc`: glibc as it comes (`default`), told to keep freed memory (`keep`), a library to preload
(a path), or `best`: everything is measured under each of these, with tcmalloc and jemalloc where they are installed,
and the fastest is printed, with all rates under `tried`. Peak memory includes what importing torch takes, given as
`import_rss_mb`: hundreds of megabytes for a build with CUDA. Needs parity/requirements.txt.
"""

import argparse
import glob
import json
import os
import resource
import subprocess
import sys
import time

KEEP = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_TOP_PAD_": "67108864"}
LIBRARIES = ["/usr/lib/*/libtcmalloc_minimal.so.4", "/usr/lib/*/libjemalloc.so.2"]


def arguments(description=__doc__, modes=("train", "infer")):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batches")
    parser.add_argument("--model", help="folder with config.json and model.safetensors")
    parser.add_argument("--random-shape", help="layers,hidden,heads,intermediate of random weights")
    parser.add_argument("--mode", choices=modes, default=modes[-1])
    parser.add_argument("--labels", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--limit", type=int, help="only the first N batches")
    parser.add_argument("--dropout", type=float, default=0.1, help="of the head; the encoder's own is set to the same")
    parser.add_argument("--lr", type=float, nargs=2, default=[2e-4, 2e-3], help="encoder, output")
    parser.add_argument("--optimiser", choices=["fused", "foreach", "loop"], default="fused")
    parser.add_argument("--malloc", default="keep", help="default, keep, best, or a library to preload")
    parser.add_argument("--save", help="onnx_speed.py: where the exported model is kept")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if (options.model is None) == (options.random_shape is None):
        parser.error("one of --model and --random-shape is needed")
    return options


def settings_of(malloc):
    """Environment of an allocator: `default` and `keep` are glibc's, anything else is a library to preload."""
    if malloc == "default":
        return {}
    if malloc == "keep":
        return KEEP
    return {
        "LD_PRELOAD": malloc, "TCMALLOC_RELEASE_RATE": "0",
        "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0",
    }


def under_malloc(malloc):
    """Returns in a process that has the allocator asked for: settings are read only when a process starts.

    `best` measures in a child process per allocator and prints the fastest one's object.
    """
    if os.environ.get("CLADIST_MALLOC_SET") == malloc:
        return
    if malloc != "best":
        environment = {**os.environ, **settings_of(malloc), "CLADIST_MALLOC_SET": malloc}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    libraries = sorted(path for pattern in LIBRARIES for path in glob.glob(pattern))
    runs = []
    for choice in ["default", "keep", *libraries]:
        # The last `--malloc` of a command line is the one that counts.
        command = [sys.executable, *sys.argv, "--malloc", choice]
        runs.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    best = max(runs, key=lambda run: run["docs_per_second"])
    print(json.dumps({**best, "tried": {run["malloc"]: run["docs_per_second"] for run in runs}}))
    sys.exit()


def read_batches(path, limit=None):
    with open(path) as file:
        batches = [json.loads(line) for line in file if line.strip()][:limit]
    if not batches:
        raise SystemExit(f"no batches in `{path}`")
    return batches


def build(options):
    """The encoder, with its pooler, and the output layer."""
    import torch
    from transformers import BertConfig, BertModel, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(options.seed)
    dropout = {"hidden_dropout_prob": options.dropout, "attention_probs_dropout_prob": options.dropout}
    if options.model:
        encoder = BertModel.from_pretrained(options.model, dtype=torch.float32, **dropout)
    else:
        layers, hidden, heads, intermediate = map(int, options.random_shape.split(","))
        encoder = BertModel(BertConfig(
            num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, intermediate_size=intermediate,
            **dropout,
        ))
    output = torch.nn.Linear(encoder.config.hidden_size, options.labels)
    torch.nn.init.normal_(output.weight, std=0.02)
    torch.nn.init.zeros_(output.bias)
    return encoder, output


def tensors(batch, labels):
    """Ids and mask [B, T], targets [B, labels]."""
    import torch

    rows = [torch.tensor(ids) for ids in batch["ids"]]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
    targets = torch.zeros(len(rows), labels)
    for row, gold in enumerate(batch.get("labels", [])):
        targets[row, gold] = 1.0
    return ids, mask, targets


def schedule(batches, warmup, repeat):
    """The untimed batches, then the timed ones."""
    return [batches[i % len(batches)] for i in range(warmup)], batches * repeat


def peak_rss_mb():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


class Clock:
    """Wall and processor seconds of the timed batches."""

    def __init__(self):
        self.marks = [time.perf_counter()]
        self.processor = time.process_time()

    def lap(self):
        self.marks.append(time.perf_counter())


def report(timed, clock, **more):
    seconds = clock.marks[-1] - clock.marks[0]
    processor = time.process_time() - clock.processor
    documents = sum(len(batch["ids"]) for batch in timed)
    tokens = sum(len(ids) for batch in timed for ids in batch["ids"])
    padded = sum(len(batch["ids"]) * max(map(len, batch["ids"])) for batch in timed)
    laps = sorted(b - a for a, b in zip(clock.marks, clock.marks[1:]))
    print(json.dumps({
        **more,
        "documents": documents, "tokens": tokens, "padded_tokens": padded, "seconds": round(seconds, 4),
        "docs_per_second": round(documents / seconds, 3), "tokens_per_second": round(tokens / seconds, 1),
        "median_step_seconds": round(laps[len(laps) // 2], 5), "cpu_seconds": round(processor, 3),
        "peak_rss_mb": peak_rss_mb(),
    }))


def optimiser_of(encoder, output, options):
    import torch

    groups = {}
    for module, lr in [(encoder, options.lr[0]), (output, options.lr[1])]:
        for name, parameter in module.named_parameters():
            bare = name.endswith("bias") or "LayerNorm" in name
            groups.setdefault((lr, 0.0 if bare else 0.01), []).append(parameter)
    made = [{"params": params, "lr": lr, "weight_decay": decay} for (lr, decay), params in groups.items()]
    kind = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False}}[options.optimiser]
    return torch.optim.AdamW(made, eps=1e-8, **kind)


def main():
    options = arguments()
    under_malloc(options.malloc)
    # Read by OpenMP and MKL when torch is imported.
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    import torch

    import transformers.models.bert.modeling_bert  # noqa: F401, counted as import

    imported = peak_rss_mb()
    torch.set_num_threads(options.threads)
    encoder, output = build(options)
    training = options.mode == "train"
    encoder.train(training)
    optimiser = optimiser_of(encoder, output, options) if training else None
    parameters = [*encoder.parameters(), *output.parameters()]
    losses = []

    def logits_of(ids, mask):
        pooled = encoder(input_ids=ids, attention_mask=mask).pooler_output
        return output(torch.nn.functional.dropout(pooled, options.dropout, training))

    def step(batch):
        ids, mask, targets = tensors(batch, options.labels)
        if not training:
            with torch.inference_mode():
                return torch.sigmoid(logits_of(ids, mask))
        optimiser.zero_grad(set_to_none=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits_of(ids, mask), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        losses.append(round(loss.item(), 6))

    untimed, timed = schedule(read_batches(options.batches, options.limit), options.warmup, options.repeat)
    for batch in untimed:
        step(batch)
    clock = Clock()
    for batch in timed:
        scores = step(batch)
        clock.lap()
    report(
        timed, clock,
        engine=f"torch {torch.__version__}", mode=options.mode, threads=options.threads, malloc=options.malloc,
        attention=encoder.config._attn_implementation, optimiser=options.optimiser if training else None,
        import_rss_mb=imported, losses=losses[len(untimed):],
        mean_score=None if training else round(scores.mean().item(), 6),
    )


if __name__ == "__main__":
    main()
