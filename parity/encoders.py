"""Tiny encoders of each family with every hidden state and attention.

    python3 parity/encoders.py [FOLDER …]

Writes all folders, or those that are named. Each folder under `crates/cladist-nn/tests/golden/` gets `config.json`, weights as `save_pretrained` writes them, and
`golden.safetensors`. Half-precision folders hold rounded weights; their outputs are those of the rounded weights in f32.
"""

import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification, MPNetTokenizer

import tiny

LENGTHS = [9, 5, 2]
LONG = [30, 9, 2]  # distances of more than 8, where MPNet's buckets are logarithmic
TEXTS = ["Tree label", "the 3 leaves, <mask> of roots!", "", "[CLS] is a word here"]


def outputs(model, ids, mask):
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)


def difference(left, right, mask):
    """Largest absolute difference over real positions."""
    return ((left.double() - right.double()).abs() * mask[..., None]).max().item()


def wave(shape, layer):
    """Weights that a test can compute again: [B, T, H], of the layer's state in the loss."""
    b, t, h = (torch.arange(n) for n in shape)
    number = 7 * layer + 31 * b[:, None, None] + 13 * t[None, :, None] + 3 * h[None, None, :]
    return (number % 17 - 8).float() / 8


def gradients(model, ids, mask):
    """Of the sum of every layer's states at tokens, times `wave`."""
    out = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    states = enumerate(out.hidden_states)
    loss = sum((state * wave(state.shape, layer).to(state) * mask[..., None]).sum() for layer, state in states)
    model.zero_grad()
    loss.backward()
    return {f"gradient.{name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def write(folder, model, first, last, pad, lengths=LENGTHS, learns=False):
    """Golden outputs of `model`, which computes in f32; with `learns`, also the gradients."""
    ids, mask, lengths = tiny.padded(tiny.sequences(lengths, 17, first, last), pad)
    out = outputs(model, ids, mask)
    golden = {"input_ids": ids, "lengths": lengths}
    for layer, state in enumerate(out.hidden_states):
        golden[f"hidden.{layer}"] = state.contiguous()  # [B, T, H]
    for layer, attention in enumerate(out.attentions):
        golden[f"attention.{layer + 1}"] = attention.contiguous()  # [B, heads, T, T]
    if getattr(out, "pooler_output", None) is not None:
        golden["pooled"] = out.pooler_output.contiguous()  # [B, H]
    slopes = gradients(model, ids, mask) if learns else {}
    save_file(golden | slopes, os.path.join(folder, "golden.safetensors"))
    exact = outputs(model.double(), ids, mask)
    noise = max(difference(a, b, mask) for a, b in zip(out.hidden_states, exact.hidden_states))
    print(f"{os.path.basename(folder)}: f32 is within {noise:.1e} of f64, |h| up to {out[0].abs().max():.2f}")
    if learns:
        exact = gradients(model, ids, mask)
        noise = max((slopes[name].double() - exact[name]).abs().max().item() for name in slopes)
        print(f"  gradients are within {noise:.1e}, up to {max(g.abs().max() for g in slopes.values()):.1f}")
    model.float()


def folder(name):
    path = os.path.join(tiny.GOLDEN, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def pieces(special):
    """A WordPiece vocabulary for the 120 ids: special tokens, letters, their continuations, digits and some words."""
    letters = [chr(ord("a") + i) for i in range(26)]
    words = "tree branch leaf root label parent child path depth score text word page book river stone light".split()
    made = [*special, *letters, *("##" + c for c in letters)]
    made += [str(i) for i in range(10)] + [".", ",", "!", "?", "-"] + words
    return made + [f"[unused{i}]" for i in range(tiny.VOCAB - len(made))]


def vocabulary(path):
    with open(os.path.join(path, "vocab.txt"), "w") as file:
        file.writelines(piece + "\n" for piece in pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))


def mpnet_tokenizer(path):
    """MPNet's tokenizer as `transformers` saves it, and what it makes of a few texts.

    Its vocabulary also has BERT's `[CLS]`, which is a word like any other there.
    """
    made = pieces(["<s>", "<pad>", "</s>", "[UNK]", "<mask>", "[CLS]", "[SEP]"])[: tiny.VOCAB]
    tokenizer = MPNetTokenizer(vocab={piece: i for i, piece in enumerate(made)})
    tokenizer.save_pretrained(path)
    with open(os.path.join(path, "vocab.txt"), "w") as file:
        file.writelines(piece + "\n" for piece in made)
    with open(os.path.join(path, "texts.json"), "w") as file:
        json.dump([[text, tokenizer(text)["input_ids"]] for text in TEXTS], file, indent=1)


def narrowed(dtype):
    """BERT of weights that went through `dtype`, and the same model in `dtype` for saving."""
    small = tiny.bert().to(dtype)
    wide = tiny.bert()
    wide.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in small.state_dict().items()})
    return wide, small


FRAMED = {"first": 2, "last": 3, "pad": 0}


def bert(path):
    tiny.bert().save_pretrained(path)
    vocabulary(path)
    write(path, tiny.bert(), **FRAMED)


def roberta(path):
    tiny.roberta().save_pretrained(path)
    write(path, tiny.roberta(), first=0, last=2, pad=1)


def distilbert(path):
    tiny.distilbert().save_pretrained(path)
    vocabulary(path)
    write(path, tiny.distilbert(), **FRAMED)


def electra(path):
    tiny.electra().save_pretrained(path)
    vocabulary(path)
    write(path, tiny.electra(), **FRAMED, learns=True)


def mpnet(path):
    tiny.mpnet().save_pretrained(path)
    mpnet_tokenizer(path)
    write(path, tiny.mpnet(), first=0, last=2, pad=1, lengths=LONG, learns=True)


def half(path, dtype, shard):
    wide, small = narrowed(dtype)
    small.save_pretrained(path, max_shard_size=shard)
    write(path, wide, **FRAMED)


def bf16(path):
    half(path, torch.bfloat16, "40KB")
    index = json.load(open(os.path.join(path, "model.safetensors.index.json")))
    assert len(set(index["weight_map"].values())) == 2, index


def prefixed(path):
    """The weights of `bert` under other names, so the same golden outputs."""
    classifier = tiny.randomise(BertForSequenceClassification(tiny.bert_config(num_labels=7)), 4)
    classifier.bert.load_state_dict(tiny.bert().state_dict())
    classifier.save_pretrained(path)
    write(path, tiny.eager(classifier.bert), **FRAMED)


def gamma_beta(path):
    tiny.bert().save_pretrained(path)
    weights = os.path.join(path, "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(weights).items()
    }
    save_file(renamed, weights, metadata={"format": "pt"})
    write(path, tiny.bert(), **FRAMED)


FOLDERS = {
    "bert": bert,
    "roberta": roberta,
    "distilbert": distilbert,
    "electra": electra,
    "mpnet": mpnet,
    "bert-f16": lambda path: half(path, torch.float16, "1GB"),
    "bert-sharded-bf16": bf16,
    "bert-prefixed": prefixed,
    "bert-gamma-beta": gamma_beta,
}


def main():
    transformers.logging.disable_progress_bar()
    for name in sys.argv[1:] or FOLDERS:
        FOLDERS[name](folder(name))


if __name__ == "__main__":
    main()
