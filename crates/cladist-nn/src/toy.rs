//! A small world for tests: a taxonomy in which a label has two parents, documents, models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use cladist_core::linear::RankerConfig;
use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{Document, LabelCounts, LabelSet, Taxonomy};

use crate::descriptions::DescriptionVector::Mean;
use crate::encoder::{Encoded, Mode};
use crate::examples::Examples;
use crate::fused::Values;
use crate::heads::attention_xml::AttentionXmlConfig;
use crate::heads::branches::BranchesConfig;
use crate::heads::enc_dec::EncDecConfig;
use crate::heads::experts::ExpertsConfig;
use crate::heads::flat::FlatConfig;
use crate::heads::hilap::HilapConfig;
use crate::heads::hmcn::HmcnConfig;
use crate::heads::layer_guided::LayerGuidedConfig;
use crate::heads::light_xml::LightXmlConfig;
use crate::heads::sgm::SgmConfig;
use crate::heads::structure::gat::HierarchyGatConfig;
use crate::heads::structure::gcn::HierarchyGcnConfig;
use crate::heads::structure::hi_match::HiMatchConfig;
use crate::heads::text_cnn::TextCnnConfig;
use crate::heads::xml_cnn::XmlCnnConfig;
use crate::heads::{AnyHeadConfig, HeadContext, Task};
use crate::model::{Design, Network, NeuralModel, Start};
use crate::parameters::{self, Place, follow_place};
use crate::shortlist::ShortlistConfig;
use crate::source::EncoderSource;
use crate::tokens::{Sequence, TokenBatch, TokensConfig};

/// Texts with their labels, each label's ancestors with it. `gold-fund` is both a metal and a fund.
const DOCUMENTS: [(&str, &str); 8] = [
    ("copper ore from the northern mine", "goods metal copper"),
    ("a gold bar and a gold coin", "goods metal"),
    ("wheat and barley after the harvest", "goods grain"),
    ("the fund bought bars of gold for its holders", "goods metal money fund gold-fund"),
    ("shares of a fund that follows the index closely through every quarter", "money fund"),
    ("the central bank raised its rate", "money rate"),
    ("barley", "goods grain"),
    ("a lower rate helps the fund", "money rate fund"),
];

pub(crate) struct Toy {
    pub(crate) taxonomy: Taxonomy,
    pub(crate) documents: Vec<Document>,
    pub(crate) gold: Vec<LabelSet>,
}

impl Toy {
    /// Eight documents; with the task `multi-class`, each has the last of its labels alone.
    pub(crate) fn new(task: Task) -> Self {
        let mut builder = Builder::new();
        for (parent, child) in [
            (None, "goods"),
            (None, "money"),
            (Some("goods"), "metal"),
            (Some("goods"), "grain"),
            (Some("metal"), "copper"),
            (Some("money"), "fund"),
            (Some("money"), "rate"),
            (Some("metal"), "gold-fund"),
            (Some("fund"), "gold-fund"),
        ] {
            builder.edge(parent, child, &Origin::default());
        }
        let taxonomy = builder.build().unwrap();
        let gold = |labels: &str| -> LabelSet {
            let labels: Vec<&str> = labels.split(' ').collect();
            let first = if task == Task::MultiClass { labels.len() - 1 } else { 0 };
            labels[first..].iter().map(|label| taxonomy.get(label).unwrap()).collect()
        };
        Self {
            documents: (DOCUMENTS.iter().enumerate())
                .map(|(n, (text, _))| Document::from_text(format!("document-{n}"), *text))
                .collect(),
            gold: DOCUMENTS.iter().map(|(_, labels)| gold(labels)).collect(),
            taxonomy,
        }
    }

    pub(crate) fn examples(&self) -> Examples<'_> {
        Examples { documents: &self.documents, gold: &self.gold }
    }

    pub(crate) fn counts(&self) -> LabelCounts {
        LabelCounts::of(&self.gold, self.taxonomy.n_labels())
    }

    /// What a model's encoder makes of all documents.
    pub(crate) fn encoded(&self, model: &NeuralModel) -> Encoded {
        let tokens = model.tokenize(&self.documents).unwrap();
        let sequences: Vec<&Sequence> = tokens.iter().flatten().collect();
        model.network.encoder.encode(&TokenBatch::new(&sequences), &model.layers, Mode::Inference(None))
    }

    /// A model that can learn, over `scratch:tiny`.
    pub(crate) fn model(&self, design: Design, seed: u64) -> NeuralModel {
        self.model_on(&Device::flex().autodiff(), design, seed)
    }

    /// The same on another device.
    pub(crate) fn model_on(&self, device: &Device, design: Design, seed: u64) -> NeuralModel {
        let source = EncoderSource::parse("scratch:tiny").unwrap();
        NeuralModel::create(
            design,
            &source,
            &self.examples(),
            self.taxonomy.clone(),
            &self.counts(),
            &Start::new(seed, device),
        )
        .unwrap()
        .0
    }
}

/// What a head is built from on an encoder of one layer and four units.
pub(crate) fn context<'a>(
    taxonomy: &'a Taxonomy,
    label_counts: &'a LabelCounts,
    device: &'a Device,
) -> HeadContext<'a> {
    HeadContext {
        taxonomy,
        only: None,
        label_counts,
        hidden_size: 4,
        n_layers: 1,
        task: Task::default(),
        label_smoothing: 0.0,
        prior_bias: false,
        labels: None,
        shortlist: None,
        trees: Box::leak(Box::default()),
        device,
        seed: 1,
    }
}

/// Values that agree one by one, and are as many.
#[track_caller]
pub(crate) fn near(got: &[f32], expected: &[f32], tolerance: f32) {
    let same = got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance * b.abs().max(1.0));
    assert!(got.len() == expected.len() && same, "{got:?} instead of {expected:?}");
}

/// A design for short texts.
pub(crate) fn design(head: AnyHeadConfig, task: Task) -> Design {
    let tokens = TokensConfig { max_tokens: 24, ..TokensConfig::default() };
    Design {
        head,
        branches: BranchesConfig::default(),
        task,
        tokens,
        label_smoothing: 0.0,
        prior_bias: false,
        shortlist: ShortlistConfig::default(),
        ranker: RankerConfig::default(),
    }
}

/// Settings of a head that fit this world: two layers, three levels, eight documents.
pub(crate) fn fitting(config: AnyHeadConfig) -> AnyHeadConfig {
    match config {
        // Drawn walks make a loss that does not fall.
        AnyHeadConfig::Hilap(config) => {
            AnyHeadConfig::Hilap(HilapConfig { hidden: 48, width: 24, reinforce_after: Some(1000), ..config })
        }
        AnyHeadConfig::Hmcn(config) => AnyHeadConfig::Hmcn(HmcnConfig { hidden: 24, ..config }),
        AnyHeadConfig::LayerGuided(config) => {
            AnyHeadConfig::LayerGuided(LayerGuidedConfig { merge_levels: true, ..config })
        }
        AnyHeadConfig::LightXml(config) => AnyHeadConfig::LightXml(LightXmlConfig { dropout: 0.1, ..config }),
        AnyHeadConfig::AttentionXml(config) => AnyHeadConfig::AttentionXml(AttentionXmlConfig {
            units: 24,
            hidden: vec![24],
            word_dropout: 0.05,
            dropout: 0.1,
            ..config
        }),
        AnyHeadConfig::XmlCnn(config) => AnyHeadConfig::XmlCnn(XmlCnnConfig {
            maps: 16,
            pieces: 4,
            hidden: 24,
            word_dropout: 0.05,
            dropout: 0.1,
            ..config
        }),
        AnyHeadConfig::Experts(config) => {
            AnyHeadConfig::Experts(ExpertsConfig { hidden: vec![32], dropout: 0.1, ..config })
        }
        AnyHeadConfig::Sgm(config) => AnyHeadConfig::Sgm(SgmConfig { hidden: 24, layers: 2, ..config }),
        AnyHeadConfig::EncDec(config) => AnyHeadConfig::EncDec(EncDecConfig { hidden: 24, ..config }),
        AnyHeadConfig::TextCnn(config) => AnyHeadConfig::TextCnn(TextCnnConfig { maps: Some(24), ..config }),
        AnyHeadConfig::HiMatch(config) => AnyHeadConfig::HiMatch(HiMatchConfig {
            node_size: 12,
            width: 8,
            match_weight: 0.1,
            vector: Mean,
            ..config
        }),
        AnyHeadConfig::HierarchyGat(config) => {
            AnyHeadConfig::HierarchyGat(HierarchyGatConfig { node_size: 12, ..config })
        }
        AnyHeadConfig::HierarchyGcn(config) => {
            AnyHeadConfig::HierarchyGcn(HierarchyGcnConfig { node_size: 12, ..config })
        }
        other => other,
    }
}

/// The plainest design.
pub(crate) fn flat() -> Design {
    design(AnyHeadConfig::Flat(FlatConfig::default()), Task::MultiLabel)
}

/// Every parameter of a model, as bytes.
pub(crate) fn bytes(model: &NeuralModel) -> Vec<u8> {
    let mut all = parameters::named(&model.network);
    if let Some(table) = model.table() {
        all.insert("rows".to_owned(), (vec![table.n_rows(), table.width()], table.values().to_vec()));
    }
    parameters::write(&all).unwrap()
}

/// A golden file or folder.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Runs something on a pool of so many threads.
pub(crate) fn on_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

/// Addresses of all parameters' values.
pub(crate) fn places(network: &Network) -> BTreeMap<String, *const f32> {
    struct Collect {
        place: Place,
        found: BTreeMap<String, *const f32>,
    }
    impl ModuleVisitor for Collect {
        follow_place!();
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.found.insert(self.place.name(), Values::of(param.val()).as_ptr());
        }
    }
    let mut collect = Collect { place: Place::default(), found: BTreeMap::new() };
    network.visit(&mut collect);
    collect.found
}
