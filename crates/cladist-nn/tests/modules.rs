//! Modules of a crate depend on each other in one direction: what is specific on what is general, never back.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which other modules the top-level modules of a crate use, each with a file that does.
type Uses = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// Rust files below a folder that are part of the program, each with the top-level module it belongs to.
fn sources(root: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            // Tests may use whatever they like.
            if name == "tests" || name.ends_with("_tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let first = path.strip_prefix(root).unwrap().components().next().unwrap();
                let module = Path::new(first.as_os_str()).file_stem().unwrap().to_string_lossy().into_owned();
                found.push((module, path));
            }
        }
    }
    found.sort();
    found
}

/// Source text without comments, and without what is compiled for tests alone: an item after `#[cfg(test)]` up to the line
/// that closes it.
fn program(text: &str) -> String {
    let mut lines = text.lines();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        let code = line.split("//").next().unwrap_or_default();
        if code.trim() == "#[cfg(test)]" {
            let indent = code.len() - code.trim_start().len();
            let end = |line: &&str| {
                let here = line.len() - line.trim_start().len();
                here == indent && (line.trim() == "}" || line.trim_end().ends_with(';'))
            };
            let _ = lines.by_ref().find(end);
            continue;
        }
        kept.push_str(code);
        kept.push('\n');
    }
    kept
}

/// The first names of paths that begin with `crate::`, also in braces.
fn used(code: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                ',' if depth == 0 => {
                    found.insert(name(&list[start..at]));
                    start = at + 1;
                }
                '}' if depth == 0 => {
                    found.insert(name(&list[start..at]));
                    break;
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    found
}

/// Which top-level modules use which. Roots of the crate belong to none.
fn uses(root: &Path) -> Uses {
    let files = sources(root);
    let modules: BTreeSet<String> = files
        .iter()
        .map(|(module, _)| module.clone())
        .filter(|name| name != "lib" && name != "main")
        .collect();
    let mut uses = Uses::new();
    for (module, path) in files.into_iter().filter(|(module, _)| modules.contains(module)) {
        let code = program(&fs::read_to_string(&path).unwrap());
        let others = used(&code).into_iter().filter(|other| *other != module && modules.contains(other));
        let own = uses.entry(module.clone()).or_default();
        others.for_each(|other| {
            own.entry(other).or_insert_with(|| path.clone());
        });
    }
    uses
}

/// A way from a module back to itself, with the files that make it; `None` if there is none.
fn cycle(uses: &Uses) -> Option<String> {
    for start in uses.keys() {
        // Breadth first, so the shortest way is found.
        let mut came: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue: Vec<&str> = vec![start];
        while !queue.is_empty() {
            let mut next = Vec::new();
            for module in queue {
                for other in uses.get(module).into_iter().flat_map(BTreeMap::keys) {
                    if !came.contains_key(other.as_str()) {
                        came.insert(other, module);
                        next.push(other.as_str());
                    }
                }
            }
            queue = next;
        }
        if let Some(last) = came.get(start.as_str()) {
            let mut way = vec![start.as_str(), *last];
            while let Some(before) = way.last().filter(|module| **module != start).map(|module| came[module])
            {
                way.push(before);
            }
            way.reverse();
            let steps = way.windows(2).map(|pair| {
                let file = &uses[pair[0]][pair[1]];
                format!("{} uses {} ({})", pair[0], pair[1], file.display())
            });
            return Some(steps.collect::<Vec<_>>().join("\n"));
        }
    }
    None
}

/// Fails with the way if modules of a crate depend on each other in a circle. What `error` uses does not count: the error
/// of a crate is the sum of what its modules say, and they return it.
fn check(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let mut uses = uses(&root);
    uses.remove("error");
    assert!(!uses.is_empty(), "{} has no modules", root.display());
    if let Some(way) = cycle(&uses) {
        panic!("modules of {name} depend on each other in a circle:\n{way}");
    }
}

#[test]
fn modules_of_this_crate_depend_on_each_other_in_one_direction() {
    check("cladist-nn");
}

#[test]
fn modules_of_the_other_crates_do_too() {
    for name in ["cladist-core", "cladist-kernels", "cladist", "cladist-lab", "cladist-cli"] {
        check(name);
    }
}

#[test]
fn a_cycle_is_found_with_the_files_that_make_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\nuse crate::a::X;\n");
    write("a.rs", "use crate::{c::{X, Y}, b};\n");
    write("b/mod.rs", "mod inner;\n// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n");
    write("b/tests.rs", "use crate::a::X;\n");
    write("c.rs", "fn f() -> crate::b::Y {}\n#[cfg(test)]\nuse crate::a::X;\n");
    write("b/inner.rs", "use super::Y;\n");
    assert_eq!(cycle(&uses(folder.path())), None);
    let of_a: Vec<String> = uses(folder.path())["a"].keys().cloned().collect();
    assert_eq!(of_a, ["b", "c"]);
    write("b/inner.rs", "fn f(x: crate::a::X) {}\n");
    let way = cycle(&uses(folder.path())).unwrap();
    assert!(way.contains("a uses b") && way.contains("b uses a"), "{way}");
    assert!(way.contains("inner.rs"), "{way}");
}
