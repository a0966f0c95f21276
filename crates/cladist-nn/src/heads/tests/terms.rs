//! Every term of every head's objective: its name, its weight, and where logits tell it, its value by the formula.

use cladist_core::text::tfidf::SparseRow;

use super::*;
use crate::parameters::to_vec;

/// A term: name, weight and, unless another test has its formula, value.
type Term = (String, f64, Option<f64>);

/// A batch as a head sees it, in 64 bits.
struct Batch<'a> {
    design: &'a Design,
    toy: &'a Toy,
    /// Logits of each document and the labels of the columns.
    logits: Option<(Vec<Vec<f64>>, Vec<LabelId>)>,
    /// Output weights of each label.
    weights: Option<Vec<SparseRow>>,
}

fn term(name: impl Into<String>, weight: f64, value: Option<f64>) -> Term {
    (name.into(), weight, value)
}

impl Batch<'_> {
    /// Sums over cells of the labels that are wanted: `of(logit, target)`, and the number of cells.
    fn sum(&self, wanted: impl Fn(LabelId) -> bool, of: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
        let (logits, labels) = self.logits.as_ref()?;
        let smoothing = self.design.label_smoothing;
        let (mut sum, mut n) = (0.0, 0.0);
        for (row, gold) in logits.iter().zip(&self.toy.gold) {
            for (z, label) in row.iter().zip(labels).filter(|(_, label)| wanted(**label)) {
                let y = if gold.contains(*label) { 1.0 } else { 0.0 };
                sum += of(*z, y * (1.0 - smoothing) + smoothing / 2.0);
                n += 1.0;
            }
        }
        Some((sum, n))
    }

    /// The mean of softplus(z) − y·z.
    fn bce(&self, wanted: impl Fn(LabelId) -> bool) -> Option<f64> {
        self.sum(wanted, |z, y| z.max(0.0) + (-z.abs()).exp().ln_1p() - y * z).map(|(sum, n)| sum / n)
    }

    /// 1 − ½(F⁺ + F⁻) with soft counts.
    fn f_measure(&self) -> Option<f64> {
        let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
        let sum = |of: &dyn Fn(f64, f64) -> f64| Some(self.sum(|_| true, |z, y| of(sigma(z), y))?.0);
        let (tp, fp) = (sum(&|p, y| p * y)?, sum(&|p, y| p * (1.0 - y))?);
        let (missed, tn) = (sum(&|p, y| (1.0 - p) * y)?, sum(&|p, y| (1.0 - p) * (1.0 - y))?);
        Some(1.0 - tp / (2.0 * tp + fp + missed) - tn / (2.0 * tn + fp + missed))
    }

    /// −ln softmax(z) of the gold label, smoothed over all labels.
    fn cross_entropy(&self) -> Option<f64> {
        let (logits, labels) = self.logits.as_ref()?;
        let smoothing = self.design.label_smoothing;
        let of = |(row, gold): (&Vec<f64>, &LabelSet)| {
            let highest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let normaliser = row.iter().map(|z| (z - highest).exp()).sum::<f64>().ln() + highest;
            let hit = row.iter().zip(labels).find(|(_, label)| gold.contains(**label)).unwrap().0;
            let uniform = row.iter().map(|z| normaliser - z).sum::<f64>() / row.len() as f64;
            (1.0 - smoothing) * (normaliser - hit) + smoothing * uniform
        };
        Some(logits.iter().zip(&self.toy.gold).map(of).sum::<f64>() / logits.len() as f64)
    }

    /// Binary cross-entropy of the highest logit at or below each label, among gold labels if it is one.
    fn coherent(&self) -> Option<f64> {
        let (logits, labels) = self.logits.as_ref()?;
        let mut sum = 0.0;
        for (row, gold) in logits.iter().zip(&self.toy.gold) {
            for label in labels {
                let is_gold = gold.contains(*label);
                let below = self.toy.taxonomy.close_downward(&[*label]);
                let below = below.iter().filter(|below| !is_gold || gold.contains(**below));
                let highest = below.map(|below| row[below.index()]).fold(f64::NEG_INFINITY, f64::max);
                sum += (1.0 + if is_gold { -highest } else { highest }.exp()).ln();
            }
        }
        Some(sum / (logits.len() * labels.len()) as f64)
    }

    /// ½ Σ over edges of ‖w_parent − w_child‖².
    fn recursive(&self) -> Option<f64> {
        let weights = self.weights.as_ref()?;
        let squared = |(parent, child): (LabelId, LabelId)| {
            let pairs = weights[parent.index()].iter().zip(&weights[child.index()]);
            pairs.map(|((_, a), (_, b))| f64::from(a - b).powi(2)).sum::<f64>()
        };
        Some(self.toy.taxonomy.edges().map(squared).sum::<f64>() / 2.0)
    }

    /// The terms of [`Labelwise`], and recursive regularisation with this weight.
    fn labelwise(&self, loss: Loss, recursive: f64) -> Vec<Term> {
        let mut terms = match (self.design.task, loss) {
            (Task::MultiClass, _) => vec![term("cross-entropy", 1.0, self.cross_entropy())],
            (_, Loss::Bce) => vec![term("bce", 1.0, self.bce(|_| true))],
            (_, Loss::BceAndF) => {
                vec![term("bce", 1.0, self.bce(|_| true)), term("f-measure", 1.0, self.f_measure())]
            }
            (_, Loss::Coherent) => vec![term("coherent", 1.0, self.coherent())],
            (_, other) => panic!("no formula for {other:?} here"),
        };
        if recursive > 0.0 {
            terms.push(term("recursive", recursive, self.recursive()));
        }
        terms
    }

    fn layer_guided(&self, merged: &LayerGuidedConfig) -> Vec<Term> {
        let taxonomy = &self.toy.taxonomy;
        assert!(merged.merge_levels, "two layers for three levels");
        let level = |label: LabelId| taxonomy.level(label).min(2);
        let of = |wanted: usize| {
            let n = taxonomy.labels().filter(|&label| level(label) == wanted).count();
            let weight = n as f64 / taxonomy.n_labels() as f64;
            term(format!("bce-{wanted}"), weight, self.bce(|label| level(label) == wanted))
        };
        vec![of(1), of(2)]
    }

    fn expected(&self) -> Vec<Term> {
        match &self.design.head {
            AnyHeadConfig::Aplc(_) => vec![term("bce", 1.0, None)],
            AnyHeadConfig::AttentionXml(_) | AnyHeadConfig::TextCnn(_) | AnyHeadConfig::XmlCnn(_) => {
                self.labelwise(Loss::Bce, 0.0)
            }
            AnyHeadConfig::Biforest(config) => self.labelwise(config.loss, 0.0),
            AnyHeadConfig::Caml(config) => {
                let mut terms = self.labelwise(config.loss, 0.0);
                if config.description_weight > 0.0 {
                    terms.push(term("descriptions", config.description_weight, None));
                }
                terms
            }
            AnyHeadConfig::CodingTree(config) => self.labelwise(config.loss, config.recursive_regularisation),
            AnyHeadConfig::EncDec(_) | AnyHeadConfig::LabelSequence(_) | AnyHeadConfig::Sgm(_) => {
                vec![term("sequence", 1.0, None)]
            }
            AnyHeadConfig::Experts(config) => match config.loss {
                ExpertLoss::Individual => {
                    let n = config.experts.len() as f64;
                    config.experts.iter().map(|name| term(format!("bce-{name}"), 1.0 / n, None)).collect()
                }
                ExpertLoss::Collaborative => vec![term("bce", 1.0, None)],
            },
            AnyHeadConfig::Flat(config) => self.labelwise(config.loss, config.recursive_regularisation),
            AnyHeadConfig::HiMatch(config) => {
                let mut terms = self.labelwise(config.loss, config.recursive_regularisation);
                let names = ["match", "match-parent", "match-sibling", "match-other"];
                terms.extend(names.map(|name| term(name, config.match_weight, None)));
                terms
            }
            AnyHeadConfig::HierarchyGat(config) => {
                self.labelwise(config.loss, config.recursive_regularisation)
            }
            AnyHeadConfig::HierarchyGcn(config) => {
                self.labelwise(config.loss, config.recursive_regularisation)
            }
            AnyHeadConfig::Hilap(_) => vec![term("bce", 0.5, None), term("bce-walk", 0.5, None)],
            AnyHeadConfig::Hmcn(config) => {
                let levels = 1..=self.toy.taxonomy.n_levels();
                let levels = levels.map(|level| term(format!("bce-{level}"), 1.0, None));
                let global = [term("bce", 1.0, None)];
                global.into_iter().chain(levels).chain([term("violation", config.violation, None)]).collect()
            }
            AnyHeadConfig::Laat(config) => self.labelwise(config.loss, 0.0),
            AnyHeadConfig::LabelAttention(config) => self.labelwise(config.loss, 0.0),
            AnyHeadConfig::LayerGuided(config) => self.layer_guided(config),
            AnyHeadConfig::LightXml(config) => self.labelwise(config.loss, 0.0),
            AnyHeadConfig::Lwan(config) => self.labelwise(config.loss, 0.0),
        }
    }
}

#[test]
fn its_loss_is_the_sum_of_its_terms_each_with_its_weight() {
    let near = |a: f64, b: f64| (a - b).abs() < 2e-5 * b.abs().max(1.0);
    for (name, design) in designs() {
        let toy = Toy::new(design.task);
        let split = design.branches.split;
        let model = toy.model(design, 1);
        let documents = toy.encoded(&model);
        let labels = model.label_states_of(&model.network, &Cancel::default()).unwrap();
        let input = HeadInput::of(&documents, labels.as_ref());
        let head = &model.network.head;
        // What a branch has of a loss is a share of its own, and labels may be in two branches.
        let whole = split == Split::None;
        let logits = head.logits(&input).filter(|_| whole);
        let logits = logits.map(|(logits, labels)| {
            let rows = to_vec(logits);
            let rows =
                rows.chunks_exact(labels.len()).map(|row| row.iter().copied().map(f64::from).collect());
            (rows.collect(), labels)
        });
        let weights = head.label_vectors().filter(|_| whole);
        let expected = Batch { design: &model.design, toy: &toy, logits, weights }.expected();
        // Without a seed nothing is dropped, so measuring twice gives the same.
        let objective = || head.objective(&input, &toy.gold, &Moment { epoch: 0.0, thawed: 0.0, seed: None });
        let terms = objective().terms();
        assert_eq!(terms, objective().terms(), "{name}");
        let names = |name: &str| terms.iter().filter(|term| term.0 == name).count();
        assert_eq!(terms.len(), expected.len(), "{name}: {terms:?}");
        for ((term, weight, value), (of, expected_weight, expected)) in terms.iter().zip(&expected) {
            assert_eq!((term, names(term)), (of, 1), "{name}: {terms:?}");
            assert!(near(*weight, *expected_weight), "{name}, {term}: {weight} instead of {expected_weight}");
            assert!(value.is_finite() && *value >= 0.0, "{name}, {term}: {value}");
            if let Some(expected) = expected {
                assert!(near(*value, *expected), "{name}, {term}: {value} instead of {expected}");
            }
        }
        let sum: f64 = terms.iter().map(|(_, weight, value)| weight * value).sum();
        let total = f64::from(objective().total().unwrap().into_scalar::<f32>());
        assert!(sum > 0.0 && near(total, sum), "{name}: {total} instead of {sum}");
        // Negatives are drawn document by document, and scoring sorts documents by length.
        if !matches!(model.design.head, AnyHeadConfig::HiMatch(_)) {
            let tokens = model.tokenize(&toy.documents).unwrap();
            let loss = model.run(&tokens, Some(&toy.gold), &Request::default(), &mut []).unwrap().loss;
            assert!(near(loss, sum), "{name}: {loss} instead of {sum}");
        }
    }
}
