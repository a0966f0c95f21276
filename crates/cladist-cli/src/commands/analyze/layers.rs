//! `cladist analyze layers`: how encoders use their layers, several bundles side by side.

use cladist::results::four_decimals;
use cladist_core::corpus::SplitName;
use cladist_lab::analyze::layers::{self, LayerAnalysis, Studied};

use crate::args::AnalyzeLayersArgs;
use crate::flags::{data_config, source, split_name};
use crate::output::Table;
use crate::session::Session;

/// Studies the layers of bundles.
pub(super) fn run(args: &AnalyzeLayersArgs, session: &Session) -> anyhow::Result<()> {
    let asked = args.split.as_deref().map(split_name).transpose()?;
    let work = session.work();
    let mut read = |model: &cladist::Model, first: Option<SplitName>| {
        let files = source(&args.corpus, model.source())?;
        let has = |split: SplitName| !files.files(split).is_empty();
        let only_test = !has(SplitName::Dev) && has(SplitName::Test);
        let default = if only_test { SplitName::Test } else { SplitName::Dev };
        let config = data_config(&args.corpus, &model.config().common.data)?;
        let name = asked.or(first).unwrap_or(default);
        Ok(model.read_split(name, Some(&files), Some(&config), &args.bad_lines.policy(), &work)?.0)
    };
    let analysis =
        layers::run(&args.bundles, &mut read, args.limit, args.out.as_deref(), &session.open(), &work)?;
    session.view.clear();
    if args.json {
        session.output.json(&analysis)?;
    } else {
        print(&analysis, session)?;
    }
    session.output.note(format!("\nfigures and layers.json: {}", analysis.folder.display()));
    Ok(())
}

const CONVENTIONS: &str = "
mean over the tokens of a document, special ones included, then over documents; of a document in windows, the first
distance: arccos(cos)/π between the [CLS] vectors of two layers, 0 to 1
KL and entropy in nats; KL(row ‖ column) and entropy of attention averaged over heads; head KL over ordered pairs of heads";

/// Prints the tables: layers of all bundles side by side, then the matrices of each.
fn print(analysis: &LayerAnalysis, session: &Session) -> anyhow::Result<()> {
    let LayerAnalysis { split, bundles, folder: _ } = analysis;
    let n_documents = bundles.first().map_or(0, |bundle| bundle.study.n_documents);
    session.output.line(format!("layers on {split}: {n_documents} documents\n"))?;
    let heads = |measure: &str| -> Vec<String> {
        let head = |bundle: &Studied| match bundles.len() {
            1 => measure.to_owned(),
            _ => format!("{measure}: {}", bundle.name),
        };
        bundles.iter().map(head).collect()
    };
    let columns = [vec!["layer".to_owned()], heads("entropy"), heads("head KL")].concat();
    let mut table = Table::new(1, columns);
    let n_layers = bundles.iter().map(|bundle| bundle.study.n_layers).max().unwrap_or(0);
    for layer in 0..n_layers {
        // A shallower encoder has no such layer.
        let entropy = |bundle: &Studied| four_decimals(bundle.study.entropy.get(layer).copied());
        let head_kl = |bundle: &Studied| {
            four_decimals(bundle.study.head_kl.as_ref().and_then(|values| values.get(layer)).copied())
        };
        let mut row = vec![(layer + 1).to_string()];
        row.extend(bundles.iter().map(entropy));
        row.extend(bundles.iter().map(head_kl));
        table.row(row);
    }
    session.output.line(&table)?;
    for bundle in bundles {
        for (title, values) in [
            ("distance of [CLS] vectors", &bundle.study.distance),
            ("KL(row ‖ column) of attention", &bundle.study.attention_kl),
        ] {
            session.output.line(format!("\n{title}: {}\n{}", bundle.name, matrix(values)))?;
        }
    }
    session.output.note(CONVENTIONS);
    Ok(())
}

fn matrix(values: &[Vec<f64>]) -> Table {
    let numbers = (1..=values.len()).map(|n| n.to_string());
    let mut table = Table::new(1, std::iter::once("layer".to_owned()).chain(numbers));
    for (n, row) in values.iter().enumerate() {
        let cells = row.iter().map(|value| format!("{value:.3}"));
        table.row(std::iter::once((n + 1).to_string()).chain(cells));
    }
    table
}
