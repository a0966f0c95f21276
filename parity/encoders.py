"""Tiny BERT, RoBERTa and DistilBERT with every hidden state and attention.

    python3 parity/encoders.py

Each folder under `crates/cladist-nn/tests/golden/` gets `config.json`, weights as `save_pretrained` writes them, and
`golden.safetensors`. Half-precision folders hold rounded weights; their outputs are those of the rounded weights in f32.
"""

import json
import os
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification

import tiny

LENGTHS = [9, 5, 2]


def outputs(model, ids, mask):
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)


def difference(left, right, mask):
    """Largest absolute difference over real positions."""
    return ((left.double() - right.double()).abs() * mask[..., None]).max().item()


def write(folder, model, first, last, pad):
    """Golden outputs of `model`, which computes in f32."""
    ids, mask, lengths = tiny.padded(tiny.sequences(LENGTHS, 17, first, last), pad)
    out = outputs(model, ids, mask)
    golden = {"input_ids": ids, "lengths": lengths}
    for layer, state in enumerate(out.hidden_states):
        golden[f"hidden.{layer}"] = state.contiguous()  # [B, T, H]
    for layer, attention in enumerate(out.attentions):
        golden[f"attention.{layer + 1}"] = attention.contiguous()  # [B, heads, T, T]
    if getattr(out, "pooler_output", None) is not None:
        golden["pooled"] = out.pooler_output.contiguous()  # [B, H]
    save_file(golden, os.path.join(folder, "golden.safetensors"))
    exact = outputs(model.double(), ids, mask)
    noise = max(difference(a, b, mask) for a, b in zip(out.hidden_states, exact.hidden_states))
    model.float()
    print(f"{os.path.basename(folder)}: f32 is within {noise:.1e} of f64, |h| up to {out[0].abs().max():.2f}")


def folder(name):
    path = os.path.join(tiny.GOLDEN, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def vocabulary(path):
    """A WordPiece vocabulary for the 120 ids: special tokens, letters, their continuations, digits and some words."""
    letters = [chr(ord("a") + i) for i in range(26)]
    words = "tree branch leaf root label parent child path depth score text word page book river stone light".split()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters)]
    pieces += [str(i) for i in range(10)] + [".", ",", "!", "?", "-"] + words
    pieces += [f"[unused{i}]" for i in range(tiny.VOCAB - len(pieces))]
    with open(os.path.join(path, "vocab.txt"), "w") as file:
        file.writelines(piece + "\n" for piece in pieces)


def narrowed(dtype):
    """BERT of weights that went through `dtype`, and the same model in `dtype` for saving."""
    small = tiny.bert().to(dtype)
    wide = tiny.bert()
    wide.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in small.state_dict().items()})
    return wide, small


def main():
    transformers.logging.disable_progress_bar()
    framed = {"first": 2, "last": 3, "pad": 0}

    path = folder("bert")
    tiny.bert().save_pretrained(path)
    vocabulary(path)
    write(path, tiny.bert(), **framed)

    path = folder("roberta")
    tiny.roberta().save_pretrained(path)
    write(path, tiny.roberta(), first=0, last=2, pad=1)

    path = folder("distilbert")
    tiny.distilbert().save_pretrained(path)
    vocabulary(path)
    write(path, tiny.distilbert(), **framed)

    for name, dtype, shard in [("bert-f16", torch.float16, "1GB"), ("bert-sharded-bf16", torch.bfloat16, "40KB")]:
        wide, small = narrowed(dtype)
        path = folder(name)
        small.save_pretrained(path, max_shard_size=shard)
        write(path, wide, **framed)
    index = json.load(open(os.path.join(path, "model.safetensors.index.json")))
    assert len(set(index["weight_map"].values())) == 2, index

    # The weights of `bert` under other names, so the same golden outputs.
    path = folder("bert-prefixed")
    classifier = tiny.randomise(BertForSequenceClassification(tiny.bert_config(num_labels=7)), 4)
    classifier.bert.load_state_dict(tiny.bert().state_dict())
    classifier.save_pretrained(path)
    write(path, tiny.eager(classifier.bert), **framed)

    path = folder("bert-gamma-beta")
    tiny.bert().save_pretrained(path)
    weights = os.path.join(path, "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(weights).items()
    }
    save_file(renamed, weights, metadata={"format": "pt"})
    write(path, tiny.bert(), **framed)


if __name__ == "__main__":
    main()
