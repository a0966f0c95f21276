//! What `config.json` says, and what is refused.

use serde_json::{Value, json};

use super::super::description::{Activation, Positions, Projection};
use super::*;

fn parse(json: Value) -> Result<EncoderConfig, String> {
    EncoderConfig::parse(json.as_object().unwrap().clone())
}

/// A `config.json` with some keys changed.
fn sized(changes: Value) -> Value {
    let mut json = json!({"model_type": "bert", "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 12});
    for (key, value) in changes.as_object().unwrap() {
        json[key] = value.clone();
    }
    json
}

#[test]
fn a_new_config_reads_back_as_itself() {
    let config = EncoderConfig::bert(100, 32, 2, 4);
    assert_eq!(EncoderConfig::parse(config.source.clone()).unwrap(), config);
    let config = EncoderConfig::words(100, 50);
    assert_eq!(EncoderConfig::parse(config.source.clone()).unwrap(), config);
}

#[test]
fn families_have_their_own_keys_and_positions() {
    let distil = parse(json!({"model_type": "distilbert", "vocab_size": 9, "dim": 8, "n_layers": 1,
        "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 12, "dropout": 0.2}))
    .unwrap();
    assert_eq!((distil.hidden_size, distil.embeddings.n_types), (8, 0));
    assert_eq!((distil.dropout.mlp_output, distil.dropout.attention), (0.2, 0.1));
    let roberta =
        parse(sized(json!({"model_type": "xlm-roberta", "type_vocab_size": 1, "layer_norm_eps": 1e-5})))
            .unwrap();
    assert_eq!(roberta.embeddings.positions, Positions::Learned { rows: 12, first: 2 });
    assert_eq!(roberta.max_tokens(), 10);
    let mpnet = parse(sized(json!({"model_type": "mpnet", "pad_token_id": 5}))).unwrap();
    assert_eq!((mpnet.max_tokens(), mpnet.embeddings.n_types), (10, 0));
    assert_eq!(mpnet.attention.distance.unwrap().rows, 32);
    let narrow = parse(sized(json!({"model_type": "electra", "embedding_size": 4}))).unwrap();
    assert_eq!((narrow.embeddings.width, narrow.embeddings.projection), (4, Projection::AfterNorm));
    let wide = parse(sized(json!({"model_type": "electra", "embedding_size": 8}))).unwrap();
    assert_eq!(wide.embeddings.projection, Projection::None);
    let tanh = parse(sized(json!({"hidden_act": "gelu_new"}))).unwrap();
    assert_eq!(tanh.mlp.activation, Activation::GeluTanh);
    assert!(!tanh.fuses_layers() && roberta.fuses_layers() && narrow.fuses_layers());
    assert!(!mpnet.fuses_layers() && mpnet.fuses_embeddings());
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    for (json, word) in [
        (json!({"model_type": "t5"}), "t5; one of bert, roberta"),
        (json!({"model_type": "bert"}), "vocab_size"),
        (json!({"model_type": "bert", "hidden_act": "mish"}), "mish"),
        (sized(json!({"num_attention_heads": 3})), "3 heads"),
        (sized(json!({"num_attention_heads": 0})), "0 heads"),
        (sized(json!({"hidden_size": 0})), "width"),
        (sized(json!({"position_embedding_type": "relative_key"})), "relative_key"),
        (sized(json!({"is_decoder": true})), "is_decoder"),
        (sized(json!({"model_type": "roberta", "max_position_embeddings": 2})), "no room"),
        (sized(json!({"model_type": "mpnet", "relative_attention_num_buckets": 16})), "at least 32: 16"),
        (sized(json!({"model_type": "electra", "embedding_size": 0})), "embeddings of width 0"),
        (sized(json!({"hidden_dropout_prob": 1.0})), "hidden_dropout_prob"),
        (sized(json!({"layer_norm_eps": 1e300})), "layer_norm_eps"),
        (sized(json!({"layer_norm_eps": -1e-5})), "layer_norm_eps"),
    ] {
        let message = parse(json).unwrap_err();
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn sizes_that_no_memory_holds_are_refused() {
    for key in [
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    ] {
        for size in [1_000_000_000u64, u64::MAX] {
            let message = parse(sized(json!({ key: size }))).unwrap_err();
            assert!(message.contains(key) && message.contains(&size.to_string()), "{message}");
        }
    }
    let large = json!({"hidden_size": 1 << 16, "num_hidden_layers": 1 << 10, "intermediate_size": 1 << 18});
    let message = parse(sized(large)).unwrap_err();
    assert!(message.contains("parameters"), "{message}");
}

/// Where `MPNetEncoder.relative_position_bucket` of `transformers` 5 goes from one bucket to the next.
#[test]
fn distances_fall_into_the_buckets_of_mpnet() {
    let config = parse(sized(json!({"model_type": "mpnet"}))).unwrap();
    let bias = config.attention.distance.unwrap();
    let steps = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91];
    for n in 0..600 {
        let bucket = steps.iter().filter(|&&step| step <= n).count();
        assert_eq!(bias.bucket(-n), bucket, "{n} before");
        assert_eq!(bias.bucket(n), bucket + if n > 0 { 16 } else { 0 }, "{n} behind");
    }
}
