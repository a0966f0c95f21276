use cladist::RunConfig;
use cladist::config::{Recipe, ThresholdSource};
use cladist::heads;
use clap::Parser;
use toml::Table;

use super::*;
use crate::args::{Cli, Command};

fn resolve(words: &[&str]) -> anyhow::Result<RunConfig> {
    let cli = Cli::try_parse_from(["cladist", "train", "--out", "x"].iter().chain(words)).unwrap();
    let Command::Train(args) = cli.command else { unreachable!("the command is train") };
    Ok(layers_of_one(&args)?.resolve()?)
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn every_recipe_resolves_and_says_what_its_name_says() {
    let mut n = 0;
    for entry in std::fs::read_dir(repository().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let config = resolve(&["--config", path.to_str().unwrap()]).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(stem.ends_with(config.head()), "{stem}");
        n += 1;
    }
    assert!(n > 0);
}

#[test]
fn flags_win_over_the_file_and_set_wins_over_flags() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "head = \"bonsai\"\n[train]\nseed = 1\nepochs = 3\n").unwrap();
    let file = file.to_str().unwrap();
    let train = |config: &RunConfig| match &config.recipe {
        Recipe::Linear(recipe) => recipe.train.clone(),
        Recipe::Neural(_) | Recipe::Mixed(_) => unreachable!("the head is linear"),
    };
    let config = resolve(&["--config", file]).unwrap();
    assert_eq!((config.head(), train(&config).seed, train(&config).epochs), ("bonsai", 1, 3));
    let config = resolve(&["--config", file, "--head", "svm", "--seed", "2"]).unwrap();
    assert_eq!((config.head(), train(&config).seed, config.common.data.seed), ("svm", 2, 2));
    let config = resolve(&["--config", file, "--seed", "2", "--set", "train.seed=3"]).unwrap();
    assert_eq!((train(&config).seed, config.common.data.seed), (3, 2));
    let config = resolve(&["--fit-thresholds", "none"]).unwrap();
    assert_eq!(config.common.thresholds, ThresholdSource::Fixed);
}

#[test]
fn of_several_heads_each_takes_what_concerns_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "head = \"svm\"\n[flat]\ndropout = 0.3\n[train]\npatience = 7\n").unwrap();
    let words = ["--config", file.to_str().unwrap(), "--set", "layer-guided.dropout=0.4"];
    let cli = Cli::try_parse_from(["cladist", "train", "--out", "x"].iter().chain(&words)).unwrap();
    let Command::Train(args) = cli.command else { unreachable!("the command is train") };
    let under = [("train.patience", "2"), ("train.monitor", "micro-f1")];
    let under = under.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let layers = Layers { under, ..layers(&args).unwrap() };
    for (head, dropout) in [("flat", 0.3), ("layer-guided", 0.4)] {
        let config = layers.resolve_one_of(heads::find(head).unwrap()).unwrap();
        let table = Table::try_from(&config).unwrap();
        assert_eq!(config.head(), head);
        assert_eq!(table[head]["dropout"].as_float(), Some(dropout));
        // The file wins over what lies under it.
        assert_eq!(table["train"]["patience"].as_integer(), Some(7));
        assert_eq!(table["train"]["monitor"].as_str(), Some("micro-f1"));
        assert_eq!(config.clone().with_seed(5).seed(), 5);
    }
}

#[test]
fn a_resolved_configuration_reads_back_as_itself() {
    for head in heads::all() {
        let config = RunConfig::new(head);
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<RunConfig>(&text).unwrap(), config, "{text}");
    }
}

#[test]
fn a_section_of_another_family_is_refused() {
    let error = resolve(&["--head", "flat", "--set", "linear.c=1"]).unwrap_err().to_string();
    assert!(error.contains("linear"), "{error}");
    let error = resolve(&["--head", "svm", "--set", "flat.dropout=0"]).unwrap_err().to_string();
    assert!(error.contains("flat"), "{error}");
    let error = resolve(&["--head", "flat", "--set", "flat.drop=0"]).unwrap_err().to_string();
    assert!(error.contains("drop"), "{error}");
    let error = resolve(&["--head", "svm", "--encoder", "scratch:tiny"]).unwrap_err().to_string();
    assert!(error.contains("--encoder"), "{error}");
}
