"""Encoders of a few kilobytes with random weights, for the golden files.

Hidden 32, 4 heads of width 8, 3 layers, intermediate 64, 120 tokens, 40 positions. Weights are normal with standard
deviation 0.3, ten times the usual, so that a wrong sign, mask or epsilon shows; LayerNorms are off 1 and 0.
"""

import os

import torch
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
)

torch.set_num_threads(1)  # sums in one order, so that a second run writes the same bytes

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crates", "cladist-nn", "tests", "golden")
VOCAB, HIDDEN, HEADS, LAYERS, INTERMEDIATE, POSITIONS = 120, 32, 4, 3, 64, 40
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": POSITIONS,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu",
}


def bert_config(**more):
    return BertConfig(**SHAPE, type_vocab_size=2, pad_token_id=0, layer_norm_eps=1e-12, **more)


def roberta_config():
    return RobertaConfig(
        **SHAPE, type_vocab_size=1, bos_token_id=0, pad_token_id=1, eos_token_id=2, layer_norm_eps=1e-5
    )


def distilbert_config():
    return DistilBertConfig(
        vocab_size=VOCAB, dim=HIDDEN, n_heads=HEADS, n_layers=LAYERS, hidden_dim=INTERMEDIATE,
        max_position_embeddings=POSITIONS, dropout=0.0, attention_dropout=0.0, activation="gelu", pad_token_id=0,
    )


def electra_config():
    """Embeddings of half the width, so that there is a projection."""
    return ElectraConfig(**SHAPE, embedding_size=HIDDEN // 2, type_vocab_size=2, pad_token_id=0, layer_norm_eps=1e-12)


def mpnet_config():
    return MPNetConfig(**SHAPE, bos_token_id=0, pad_token_id=1, eos_token_id=2, layer_norm_eps=1e-5)


def randomise(model, seed):
    """Fills every parameter in the order of its name, so that the weights depend on the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            norm = "layernorm" in name.lower().replace("_", "")
            parameter.copy_(1 + 0.2 * noise if norm and name.endswith("weight") else 0.3 * noise)
    return model.eval()


def eager(model):
    """Attention that can hand out its probabilities."""
    model.set_attn_implementation("eager")
    return model


def bert(seed=1, **more):
    return eager(randomise(BertModel(bert_config(), **more), seed))


def roberta(seed=2):
    return eager(randomise(RobertaModel(roberta_config()), seed))


def distilbert(seed=3):
    return eager(randomise(DistilBertModel(distilbert_config()), seed))


def electra(seed=6):
    return eager(randomise(ElectraModel(electra_config()), seed))


def mpnet(seed=7):
    return eager(randomise(MPNetModel(mpnet_config()), seed))


def sequences(lengths, seed, first, last):
    """Token ids without any special one inside, framed by `first` and `last`."""
    generator = torch.Generator().manual_seed(seed)
    return [
        [first, *torch.randint(5, VOCAB, (length - 2,), generator=generator).tolist(), last] for length in lengths
    ]


def padded(ids, pad):
    """Ids `[B, T]`, attention mask `[B, T]` and lengths `[B]`."""
    longest = max(map(len, ids))
    rows = torch.tensor([row + [pad] * (longest - len(row)) for row in ids])
    lengths = torch.tensor([len(row) for row in ids])
    return rows, (torch.arange(longest) < lengths[:, None]).long(), lengths
