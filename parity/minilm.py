"""all-MiniLM-L6-v2 on four sentences: corners of every layer, to fit in kilobytes.

    python3 parity/minilm.py FOLDER

Writes `crates/cladist-nn/tests/golden/minilm.safetensors`. The sentences are in its metadata: `sentences`, a JSON list.
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import BertModel

import tiny

SENTENCES = [
    "The beekeeper labelled every jar with the meadow it came from.",
    "Rain stopped play.",
    "Naïve sorting of 1,024 unlabelled folders took the archivist's team (of three!) until half past nine, "
    "because nobody had written down which shelf belongs under which heading.",
    "Shall we re-index the branch-line timetables tomorrow?",
]
POSITIONS = 5  # [CLS] and the four tokens after it
CORNER = 8
HEADS = [0, 7]


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    tokenizer = Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids, mask, lengths = tiny.padded([encoding.ids for encoding in tokenizer.encode_batch(SENTENCES)], 0)
    model = BertModel.from_pretrained(sys.argv[1], attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        out = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    golden = {"input_ids": ids, "lengths": lengths, "pooled": out.pooler_output, "heads": torch.tensor(HEADS)}
    for layer, state in enumerate(out.hidden_states):
        golden[f"hidden.{layer}"] = state[:, :POSITIONS].contiguous()  # [B, 5, H]
    for layer, attention in enumerate(out.attentions):
        golden[f"attention.{layer + 1}"] = attention[:, HEADS, :CORNER, :CORNER].contiguous()  # [B, 2, 8, 8]
    mean = (out.last_hidden_state * mask[..., None]).sum(1) / lengths[:, None]
    golden["embedding"] = torch.nn.functional.normalize(mean)  # mean of token states, length 1
    path = os.path.join(tiny.GOLDEN, "minilm.safetensors")
    save_file(golden, path, metadata={"sentences": json.dumps(SENTENCES)})
    print(f"lengths {lengths.tolist()}, {os.path.getsize(path) // 1024} KB")


if __name__ == "__main__":
    main()
