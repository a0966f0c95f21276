//! `cladist taxonomy`: look at, check, convert and compare vocabularies.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use cladist_core::corpus::CorpusSource;
use cladist_core::taxonomy::io::{FORMATS, Format, IdStyle, Loaded, ReadOptions, read_vocabulary, write};
use cladist_core::taxonomy::{BottomLevels, Diff, OnCycle, TopLevels};
use cladist_core::{Cancel, Error, Taxonomy};
use serde_json::json;

use super::add_labels;
use crate::args::{JsonArgs, TaxonomyCommand, TaxonomyReadArgs};
use crate::error::Usage;
use crate::output::{Table, stdout};
use crate::session::Session;

/// Runs a `taxonomy` command.
pub fn run(command: &TaxonomyCommand, session: &Session) -> anyhow::Result<()> {
    match command {
        TaxonomyCommand::Show { file, read, depth, below, json } => {
            show(&load(file, read, session)?, *depth, below.as_deref(), *json, session)
        }
        TaxonomyCommand::Convert { input, output, to, drop_top, max_levels, read } => {
            let taxonomy = load(input, read, session)?;
            let bottom = max_levels.map_or(0, |kept| taxonomy.n_levels().saturating_sub(drop_top + kept));
            let truncated = taxonomy.truncate(TopLevels(*drop_top), BottomLevels(bottom)).taxonomy;
            if truncated.n_labels() == 0 {
                return Err(Usage::Value {
                    flag: "--drop-top` and `--max-levels",
                    expected: "such that labels are left",
                    value: format!("the taxonomy has {} levels", taxonomy.n_levels()),
                }
                .into());
            }
            convert(&truncated, output, to.as_deref(), session)
        }
        TaxonomyCommand::Check { file, read, json } => check(file, read, *json, session),
        TaxonomyCommand::Diff { old, new, read, json } => {
            let (old, new) = (load(old, read, session)?, load(new, read, session)?);
            diff(&Diff::between(&old, &new), *json, session)
        }
        TaxonomyCommand::AddLabels { bundle, taxonomy, read, out, json } => {
            if taxonomy.is_none() && read.labels.is_none() {
                return Err(Usage::NoLabels.into());
            }
            let Loaded { taxonomy, warnings } = read_vocabulary(
                taxonomy.as_deref(),
                read.labels.as_deref(),
                &options(read)?,
                &session.cancel,
            )?;
            for warning in warnings {
                session.output.warn(warning);
            }
            add_labels::run(bundle, &taxonomy, out.as_deref(), *json, session)
        }
        TaxonomyCommand::Formats(args) => formats(args, session),
    }
}

fn options(args: &TaxonomyReadArgs) -> anyhow::Result<ReadOptions> {
    Ok(ReadOptions {
        format: args.from.as_deref().map(str::parse::<Format>).transpose().map_err(unknown)?,
        language: args.language.clone(),
        on_cycle: args.break_cycles.then_some(OnCycle::Break),
        id_style: if args.local_ids { IdStyle::Local } else { IdStyle::Iri },
        names: args.labels.clone(),
    })
}

fn unknown(error: cladist_core::taxonomy::io::UnknownFormat) -> cladist::Error {
    let known = FORMATS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    cladist::Error::UnknownChoice { what: "taxonomy format", name: error.0, known }
}

/// Reads a taxonomy file, or the vocabulary of a corpus folder.
fn read(path: &Path, args: &TaxonomyReadArgs, cancel: &Cancel) -> anyhow::Result<Loaded> {
    let options = options(args)?;
    if !path.is_dir() {
        return Ok(read_vocabulary(Some(path), None, &options, cancel)?);
    }
    let source = CorpusSource::folder(path)?;
    if source.taxonomy.is_none() && source.names.is_none() {
        return Err(Usage::NoVocabulary(path.to_owned()).into());
    }
    Ok(read_vocabulary(source.taxonomy.as_deref(), source.names.as_deref(), &options, cancel)?)
}

fn load(path: &Path, args: &TaxonomyReadArgs, session: &Session) -> anyhow::Result<Taxonomy> {
    let Loaded { taxonomy, warnings } = read(path, args, &session.cancel)?;
    for warning in warnings {
        session.output.warn(format!("{}: {warning}", path.display()));
    }
    Ok(taxonomy)
}

fn show(
    taxonomy: &Taxonomy,
    depth: usize,
    below: Option<&str>,
    json: bool,
    session: &Session,
) -> anyhow::Result<()> {
    let stats = taxonomy.stats();
    if json {
        return session.output.json(&stats);
    }
    let tops = match below {
        None => taxonomy.roots().to_vec(),
        Some(id) => vec![
            taxonomy.get(id).ok_or_else(|| Error::UnknownLabel { place: "--below", id: id.to_owned() })?,
        ],
    };
    let shape = if taxonomy.is_tree() { "a tree" } else { "a DAG" };
    const SHOWN: usize = 12;
    let n_levels = stats.labels_per_level.len();
    let mut levels: Vec<String> =
        stats.labels_per_level.iter().take(SHOWN).map(ToString::to_string).collect();
    if n_levels > SHOWN {
        levels.push("…".to_owned());
    }
    session.output.line(format!(
        "{} labels, {shape} of {} levels ({}), {} edges, {} leaves, {} labels with several parents",
        stats.labels,
        n_levels,
        levels.join(" / "),
        stats.edges,
        stats.leaves,
        stats.multi_parent_labels,
    ))?;
    session.output.line(format!(
        "{} named, {} described, {} with other names; at most {} children, mean level {:.2}\n",
        stats.named, stats.described, stats.with_alternatives, stats.max_children, stats.mean_depth
    ))?;
    // One write for the whole drawing: a taxonomy can have a million lines.
    let mut out = BufWriter::new(stdout()?);
    for line in taxonomy.render_tree(&tops, depth) {
        writeln!(out, "{line}").context("cannot write to standard output")?;
    }
    out.flush().context("cannot write to standard output")
}

fn convert(taxonomy: &Taxonomy, output: &Path, to: Option<&str>, session: &Session) -> anyhow::Result<()> {
    let to_stdout = output == Path::new("-");
    let format = match to {
        Some(name) => name.parse::<Format>().map_err(unknown)?,
        None if to_stdout => Format::Json,
        None => Format::of_path(output).filter(|format| format.info().is_writable()).unwrap_or(Format::Json),
    };
    if to_stdout {
        let mut out = BufWriter::new(stdout()?);
        write(taxonomy, format, &mut out).map_err(Error::from)?;
        return out.flush().context("cannot write to standard output");
    }
    let mut bytes = Vec::new();
    write(taxonomy, format, &mut bytes).map_err(Error::from)?;
    cladist_core::bundle::write_atomically(output, &bytes)?;
    session.output.note(format!("wrote {} labels as {format} to {}", taxonomy.n_labels(), output.display()));
    Ok(())
}

fn check(path: &Path, args: &TaxonomyReadArgs, as_json: bool, session: &Session) -> anyhow::Result<()> {
    // A missing file or wrong flag is an error of the command; problems of the file are its result.
    if path.is_file() || !path.exists() {
        File::open(path).map_err(Error::io("read", path))?;
    }
    let outcome = read(path, args, &session.cancel);
    match outcome {
        Ok(Loaded { taxonomy, warnings }) => {
            if as_json {
                let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
                let report =
                    json!({"ok": true, "labels": taxonomy.n_labels(), "problems": [], "warnings": warnings});
                return session.output.json(&report);
            }
            for warning in &warnings {
                session.output.line(format!("warning: {warning}"))?;
            }
            session.output.line(format!("ok: {} labels, {} levels", taxonomy.n_labels(), taxonomy.n_levels()))
        }
        Err(error) => {
            if let (true, Some(Error::Taxonomy(problems))) = (as_json, error.downcast_ref::<Error>()) {
                let rows: Vec<_> = problems
                    .0
                    .iter()
                    .map(|problem| {
                        let path = problem.origin.path.as_ref().map(|path| path.display().to_string());
                        json!({"path": path, "line": problem.origin.line, "problem": problem.kind.to_string()})
                    })
                    .collect();
                session.output.json(&json!({"ok": false, "problems": rows}))?;
            }
            Err(error)
        }
    }
}

fn diff(diff: &Diff, as_json: bool, session: &Session) -> anyhow::Result<()> {
    if as_json {
        return session.output.json(diff);
    }
    if diff.is_empty() {
        return session.output.line("no difference");
    }
    let text = |name: &Option<String>| name.clone().unwrap_or_else(|| "–".to_owned());
    let parents = |list: &[Option<String>]| {
        list.iter().map(|parent| parent.as_deref().unwrap_or("ROOT")).collect::<Vec<_>>().join(", ")
    };
    for label in &diff.added {
        session.output.line(format!("+ {}  {}", label.id, text(&label.name)))?;
    }
    for label in &diff.removed {
        session.output.line(format!("- {}  {}", label.id, text(&label.name)))?;
    }
    for change in &diff.renamed {
        session.output.line(format!(
            "renamed {}: {} → {}",
            change.id,
            text(&change.from),
            text(&change.to)
        ))?;
    }
    for change in &diff.moved {
        session.output.line(format!(
            "moved {}: {} → {}",
            change.id,
            parents(&change.from),
            parents(&change.to)
        ))?;
    }
    for change in &diff.redescribed {
        session.output.line(format!("described anew: {}", change.id))?;
    }
    for change in &diff.alternatives {
        session.output.line(format!(
            "other names of {}: {} → {}",
            change.id,
            change.from.join(", "),
            change.to.join(", ")
        ))?;
    }
    session.output.line(format!(
        "{} added, {} removed, {} renamed, {} moved",
        diff.added.len(),
        diff.removed.len(),
        diff.renamed.len(),
        diff.moved.len()
    ))
}

fn formats(args: &JsonArgs, session: &Session) -> anyhow::Result<()> {
    let can = |writable: bool| if writable { "read, write" } else { "read" };
    if args.json {
        let rows: Vec<_> = FORMATS
            .iter()
            .map(|i| json!({"name": i.name, "endings": i.endings, "writable": i.is_writable(), "description": i.description}))
            .collect();
        return session.output.json(&rows);
    }
    let mut table = Table::new(4, ["format", "files", "can", "what it is"]);
    for info in &FORMATS {
        table.row([info.name, &info.endings.join(" "), can(info.is_writable()), info.description]);
    }
    session.output.line(table)
}
