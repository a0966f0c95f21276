use super::caml::CamlConfig;
use super::laat::LaatConfig;
use super::lwan::LwanConfig;
use super::*;
use crate::heads::Task;
use crate::heads::{AnyHeadConfig, HeadConfig};
use crate::parameters::to_vec;
use crate::toy::{self, Toy, design};

#[test]
fn pooling_is_as_worked_out_by_hand() {
    let device = Device::flex();
    let states: Tensor<2> = Tensor::from_floats([[0.5, -0.2], [1.0, 0.3]], &device);
    // u = (1, 1), w = (1, −1), b = 0.1
    let rows: Tensor<2> = Tensor::from_floats([[1.0, 1.0, 1.0, -1.0, 0.1]], &device);
    let packing = Packing::new(&[0, 2]);
    let weights = shares(rows.clone(), states.clone().tanh(), &packing);
    let logits = pool(rows, states.clone().tanh(), states, &packing);
    let weights = to_vec(weights);
    assert!(
        (weights[0] - 0.312_562_8).abs() < 1e-6 && (weights[1] - 0.687_437_2).abs() < 1e-6,
        "{weights:?}"
    );
    let logit = logits.into_scalar::<f32>();
    assert!((logit - 0.8).abs() < 1e-6, "{logit}");
}

#[test]
fn weights_over_tokens_add_up_to_one() {
    let toy = Toy::new(Task::MultiLabel);
    for head in [
        AnyHeadConfig::Caml(CamlConfig::default()),
        AnyHeadConfig::Laat(LaatConfig::default()),
        AnyHeadConfig::Lwan(LwanConfig::default()),
    ] {
        let name = head.name();
        let model = toy.model(design(head, Task::MultiLabel), 1);
        let encoded = toy.encoded(&model);
        let input = HeadInput::new(&encoded);
        let labels: Vec<LabelId> = toy.taxonomy.labels().take(2).collect();
        let weights = model.network.head.attention(&input, &labels).unwrap();
        let longest = encoded.packing().longest();
        assert_eq!(weights.dims(), [toy.documents.len(), 2, longest]);
        for row in to_vec(weights).chunks_exact(longest) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{name}: {row:?}");
        }
    }
}

#[test]
fn outputs_are_drawn_to_the_descriptions_of_gold_labels() {
    let device = Device::flex();
    let outputs: Tensor<2> = Tensor::from_floats([[1.0, 2.0], [0.0, 1.0]], &device);
    let described: Tensor<2> = Tensor::from_floats([[0.0, 2.0], [0.0, 4.0]], &device);
    // Labels 3 and 5; the first document has both, the second one of them, the third none: (0.5 + 4.5 + 4.5)/3.
    let gold = [vec![3, 5], vec![5], vec![]];
    let value = distance(outputs, described, Some(&[3, 5]), &gold).into_scalar::<f32>();
    assert!((value - 9.5 / 3.0).abs() < 1e-6, "{value}");
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let toy = Toy::new(Task::MultiLabel);
    let counts = toy.counts();
    let device = Device::flex();
    let context = toy::context(&toy.taxonomy, &counts, &device);
    let refused = |made: crate::Result<LabelPooling>, key: &str| {
        let message = made.unwrap_err().to_string();
        assert!(message.contains(key), "{message}");
    };
    refused(CamlConfig { kernel: 4, ..Default::default() }.build(&context), "caml.kernel");
    refused(CamlConfig { filters: 0, ..Default::default() }.build(&context), "caml.filters");
    let config = CamlConfig { description_weight: f64::NAN, ..Default::default() };
    refused(config.build(&context), "caml.description_weight");
    refused(LaatConfig { width: 0, ..Default::default() }.build(&context), "laat.width");
    refused(LwanConfig { dropout: -0.1, ..Default::default() }.build(&context), "lwan.dropout");
}
