"""Five AdamW steps of the tiny BERT under a flat head: losses, gradients and weights.

    python3 parity/training.py

Writes `training.safetensors` (pooled [CLS], binary cross-entropy), `training-cls.safetensors` (raw [CLS] of the last
layer, the same loss) and `training-multi-class.safetensors` (pooled, softmax cross-entropy) beside the tiny encoders
of `encoders.py`, whose `bert` folder holds the weights before the first step.
"""

import os

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import get_linear_schedule_with_warmup

import tiny

STEPS, WARMUP, LABELS = 5, 2, 7
ENCODER_LR, OUTPUT_LR, DECAY = 1e-3, 1e-2, 0.01
LENGTHS = [[9, 5, 12, 3], [7, 7, 2, 11], [4, 16, 6, 8], [10, 3, 5, 13], [6, 14, 9, 2]]


class Flat(nn.Module):
    """`output(pooled)`, or `output(last layer's [CLS])`."""

    def __init__(self, pooled):
        super().__init__()
        self.pooled = pooled
        self.encoder = tiny.bert() if pooled else tiny.bert(add_pooling_layer=False)
        source = tiny.bert().state_dict()
        self.encoder.load_state_dict({name: source[name] for name in self.encoder.state_dict()})
        self.output = tiny.randomise(nn.Linear(tiny.HIDDEN, LABELS), 5)

    def forward(self, ids, mask):
        out = self.encoder(input_ids=ids, attention_mask=mask)
        return self.output(out.pooler_output if self.pooled else out.last_hidden_state[:, 0])


def batches(multi_class):
    generator = torch.Generator().manual_seed(23)
    for step, lengths in enumerate(LENGTHS):
        ids, mask, lengths = tiny.padded(tiny.sequences(lengths, 100 + step, 2, 3), 0)
        targets = (torch.rand(len(lengths), LABELS, generator=generator) < 0.3).float()
        classes = torch.randint(LABELS, (len(lengths),), generator=generator)
        yield ids, mask, lengths, classes if multi_class else targets


def groups(model):
    """Encoder (with its pooler) and output, each with and without weight decay."""
    made = {}
    for name, parameter in model.named_parameters():
        bare = name.endswith("bias") or "LayerNorm" in name
        lr = OUTPUT_LR if name.startswith("output") else ENCODER_LR
        made.setdefault((lr, 0.0 if bare else DECAY), []).append(parameter)
    return [{"lr": lr, "weight_decay": decay, "params": params} for (lr, decay), params in made.items()]


def train(pooled, multi_class, dtype=torch.float32):
    model = Flat(pooled).to(dtype).train()
    optimiser = torch.optim.AdamW(groups(model), betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimiser, WARMUP, STEPS)
    golden = {f"initial.{name}": p.detach().clone() for name, p in model.output.named_parameters(prefix="output")}
    losses, norms, rates = [], [], []
    for step, (ids, mask, lengths, targets) in enumerate(batches(multi_class), 1):
        golden |= {f"batch.{step}.input_ids": ids, f"batch.{step}.lengths": lengths, f"batch.{step}.targets": targets}
        logits = model(ids, mask)
        if multi_class:
            loss = nn.functional.cross_entropy(logits, targets)
        else:
            loss = nn.functional.binary_cross_entropy_with_logits(logits, targets.to(dtype))
        optimiser.zero_grad()
        loss.backward()
        if step == 1:
            golden["logits.1"] = logits.detach()
            golden |= {f"gradient.{name}": p.grad.clone() for name, p in model.named_parameters()}
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        losses.append(loss.item())
        rates.append(optimiser.param_groups[-1]["lr"] / OUTPUT_LR)
        optimiser.step()
        schedule.step()
    golden |= {f"final.{name}": p.detach().clone() for name, p in model.named_parameters()}
    golden["loss"], golden["gradient_norm"] = torch.tensor(losses), torch.tensor(norms)
    golden["rate"] = torch.tensor(rates)  # the schedule's factor of both learning rates
    return golden


def write(name, keep=lambda key: True, **how):
    golden, exact = train(**how), train(**how, dtype=torch.float64)
    path = os.path.join(tiny.GOLDEN, f"{name}.safetensors")
    save_file({key: tensor.contiguous() for key, tensor in golden.items() if keep(key)}, path)
    print(f"{name}: {os.path.getsize(path) // 1024} KB")
    for key in ["rate", "loss", "gradient_norm"]:
        print(f"  {key}", " ".join(f"{value:.5f}" for value in golden[key].tolist()))
    for kind in ["gradient.", "final."]:
        names = [key for key in golden if key.startswith(kind)]
        apart = {key: (golden[key].double() - exact[key].double()).abs().max().item() for key in names}
        rest = [value for key, value in apart.items() if "key.bias" not in key]
        keys = [value for key, value in apart.items() if "key.bias" in key]
        print(f"  {kind}* f32 from f64: key biases {max(keys):.1e}, all others {max(rest):.1e}")


def main():
    write("training", pooled=True, multi_class=False)
    # The big tensors are covered above; here the head and the two ends of the encoder are enough.
    some = lambda key: not key.startswith(("gradient.", "final.")) or any(
        part in key for part in ["output.weight", "output.bias", "pooler", "layer.2.output", "embeddings.LayerNorm"]
    )
    write("training-cls", some, pooled=False, multi_class=False)
    write("training-multi-class", some, pooled=True, multi_class=True)


if __name__ == "__main__":
    main()
