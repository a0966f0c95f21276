"""Times onnxruntime on batches that Cladist dumped; prints one JSON object.

    python3 bench/onnx_speed.py BATCHES (--model FOLDER | --random-shape LAYERS,HIDDEN,HEADS,INTERMEDIATE)
        --labels N [--mode f32|int8] [--threads 2] [--warmup 2] [--repeat 1] [--save FILE]

Exports the encoder of `torch_speed.py` with its flat head to ONNX, lets onnxruntime optimise the graph (`int8`: after
dynamic quantisation of weights), and runs the same batches, each padded to its own longest document. Exporting is not
timed. Peak memory includes the export unless `--save` names a file that an earlier run left.
"""

import os
import sys
import tempfile

import torch_speed


def export(options, path):
    """The flat model as ONNX with free batch and sequence sizes; quantised when asked for."""
    import torch

    encoder, output = torch_speed.build(options)
    encoder.set_attn_implementation("eager")

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.output = encoder, output

        def forward(self, ids, mask):
            return torch.sigmoid(self.output(self.encoder(input_ids=ids, attention_mask=mask).pooler_output))

    ids = torch.ones(2, 16, dtype=torch.long)
    dimensions = {0: "documents", 1: "tokens"}
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.onnx")
        with torch.no_grad():
            torch.onnx.export(
                Flat().eval(), (ids, torch.ones_like(ids)), plain, input_names=["ids", "mask"], output_names=["scores"],
                dynamic_axes={"ids": dimensions, "mask": dimensions}, opset_version=17, dynamo=False,
            )
        config = encoder.config
        fused = optimised(plain, os.path.join(folder, "fused.onnx"), config.num_attention_heads, config.hidden_size)
        if options.mode == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            quantize_dynamic(fused, path, weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": 1})  # f32
        else:
            os.replace(fused, path)


def optimised(source, target, heads, hidden):
    """Attention, LayerNorm and GELU fused by onnxruntime's transformer optimiser."""
    from onnxruntime.transformers import optimizer

    model = optimizer.optimize_model(source, model_type="bert", num_heads=heads, hidden_size=hidden)
    model.save_model_to_file(target)
    print(f"fused: {model.get_fused_operator_statistics()}", file=sys.stderr)
    return target


def main():
    options = torch_speed.arguments(__doc__, modes=("int8", "f32"))
    torch_speed.under_malloc(options.malloc)
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    import numpy
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = options.save or os.path.join(folder, "model.onnx")
        if not os.path.exists(path):
            export(options, path)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def step(batch):
        longest = max(map(len, batch["ids"]))
        ids = numpy.zeros((len(batch["ids"]), longest), dtype=numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, tokens in enumerate(batch["ids"]):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        return session.run(None, {"ids": ids, "mask": mask})[0]

    batches = torch_speed.read_batches(options.batches, options.limit)
    untimed, timed = torch_speed.schedule(batches, options.warmup, options.repeat)
    for batch in untimed:
        step(batch)
    clock = torch_speed.Clock()
    for batch in timed:
        scores = step(batch)
        clock.lap()
    torch_speed.report(
        timed, clock,
        engine=f"onnxruntime {onnxruntime.__version__}", mode=options.mode, threads=options.threads, malloc=options.malloc,
        mean_score=round(float(scores.mean()), 6),
    )


if __name__ == "__main__":
    main()
