//! `cladist data`: look at, check, split and convert corpora.

mod convert;
mod split;

use cladist_core::corpus::{self, CorpusStats, DataConfig, Quantiles};
use cladist_core::readers::FORMATS;
use serde_json::json;

use crate::args::{CorpusArgs, DataCheckArgs, DataCommand, DataStatsArgs, JsonArgs};
use crate::error::Usage;
use crate::flags::{data_config, source};
use crate::output::Table;
use crate::session::Session;

/// Runs a `data` command.
pub fn run(command: &DataCommand, session: &Session) -> anyhow::Result<()> {
    match command {
        DataCommand::Stats(args) => stats(args, session),
        DataCommand::Check(args) => check(args, session),
        DataCommand::Split(args) => split::run(args, session),
        DataCommand::Convert(args) => convert::run(args, session),
        DataCommand::Formats(args) => formats(args, session),
    }
}

/// How a corpus is read by a command that has no run: nothing is held out.
fn reading(args: &CorpusArgs) -> cladist::Result<DataConfig> {
    data_config(args, &DataConfig { dev: 0.0, ..DataConfig::default() })
}

fn stats(args: &DataStatsArgs, session: &Session) -> anyhow::Result<()> {
    let source = source(&args.corpus, None)?;
    let (config, work) = (reading(&args.corpus)?, session.work());
    let (stats, _) = args
        .bad_lines
        .policy()
        .apply(&work, |bad| corpus::stats(&source, &config, args.top, bad, &work.job()))?;
    session.view.clear();
    if args.json { session.output.json(&stats) } else { print_stats(&stats, session) }
}

fn print_stats(stats: &CorpusStats, session: &Session) -> anyhow::Result<()> {
    let mut table = Table::new(
        1,
        [
            "split",
            "documents",
            "empty",
            "unlabelled",
            "labels",
            "once",
            "few",
            "medium",
            "many",
            "labels/doc",
            "words",
        ],
    );
    for (name, split) in &stats.splits {
        table.row([
            name.to_string(),
            split.documents.to_string(),
            split.empty_documents.to_string(),
            split.unlabelled_documents.to_string(),
            split.labels_used.to_string(),
            split.singletons.to_string(),
            split.shots.few.to_string(),
            split.shots.medium.to_string(),
            split.shots.many.to_string(),
            format!("{:.2}", split.labels_per_document.mean),
            format!("{:.1}", split.words.mean),
        ]);
    }
    session.output.line(&table)?;
    let mut table = Table::new(2, ["split", "quantity", "min", "5%", "25%", "50%", "75%", "95%", "max"]);
    for (name, split) in &stats.splits {
        let quantities = [
            ("words", Some(split.words)),
            ("characters", Some(split.characters)),
            ("labels", Some(split.labels_per_document)),
            ("features", split.features),
        ];
        for (what, quantiles) in quantities {
            let Some(Quantiles { mean: _, min, p05, p25, p50, p75, p95, max }) = quantiles else { continue };
            let mut row = vec![name.to_string(), what.to_owned()];
            row.extend([min, p05, p25, p50, p75, p95, max].map(|value| value.to_string()));
            table.row(row);
        }
    }
    session.output.line(format!("\n{table}"))?;
    if let Some((name, split)) = stats.splits.iter().next() {
        if split.levels.len() > 1 {
            let mut table = Table::new(1, ["level", "labels", "used", "documents", "share"]);
            for level in &split.levels {
                table.row([
                    level.level.to_string(),
                    level.labels.to_string(),
                    level.labels_used.to_string(),
                    level.documents.to_string(),
                    format!("{:.3}", level.share),
                ]);
            }
            session.output.line(format!("\n{name} by level\n{table}"))?;
        }
        let mut table = Table::new(2, ["label", "name", "documents"]);
        for label in &split.top_labels {
            table.row([
                label.id.clone(),
                label.name.clone().unwrap_or_default(),
                label.documents.to_string(),
            ]);
        }
        session.output.line(format!("\nmost frequent in {name}\n{table}"))?;
        let mut table = Table::new(2, ["label", "and label", "documents"]);
        for pair in &split.top_pairs {
            table.row([pair.labels.0.clone(), pair.labels.1.clone(), pair.documents.to_string()]);
        }
        if !table.is_empty() {
            session.output.line(format!("\nmost often together in {name}\n{table}"))?;
        }
    }
    let leaks = &stats.leaks;
    if leaks.total() > 0 {
        session.output.line(format!(
            "\nleaks: {} texts of train are in test, {} of train in dev, {} of dev in test",
            leaks.train_in_test, leaks.train_in_dev, leaks.dev_in_test
        ))?;
    }
    Ok(())
}

fn check(args: &DataCheckArgs, session: &Session) -> anyhow::Result<()> {
    let report = corpus::check(&source(&args.corpus, None)?, &reading(&args.corpus)?, &session.work().job())?;
    session.view.clear();
    if args.json {
        session.output.json(&report)?;
    } else {
        session.output.line(&report)?;
    }
    if report.is_fatal() {
        return Err(Usage::Unclean(report.problems().join(", ")).into());
    }
    if !args.json {
        session.output.line(if report.is_clean() { "ok" } else { "ok, with remarks" })?;
    }
    Ok(())
}

fn formats(args: &JsonArgs, session: &Session) -> anyhow::Result<()> {
    if args.json {
        let rows: Vec<_> = FORMATS
            .iter()
            .map(|i| json!({"name": i.name, "endings": i.endings, "folder": i.is_folder(), "writable": i.is_writable(), "description": i.description}))
            .collect();
        return session.output.json(&rows);
    }
    let mut table = Table::new(4, ["format", "files", "can", "what it is"]);
    for info in &FORMATS {
        let files = if info.is_folder() { "a folder".to_owned() } else { info.endings.join(" ") };
        table.row([
            info.name,
            &files,
            if info.is_writable() { "read, write" } else { "read" },
            info.description,
        ]);
    }
    session.output.line(table)
}
