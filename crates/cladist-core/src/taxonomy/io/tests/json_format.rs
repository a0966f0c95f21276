use super::*;

fn file(labels: &str) -> String {
    format!("{{\"format\":\"cladist-taxonomy\",\"version\":1,\"labels\":[\n{labels}\n]}}")
}

#[test]
fn every_bad_label_is_found_with_its_line() {
    let text = file(
        "{\"id\":\"a\"},\n{\"id\":\"b\",\"colour\":1},\n{\"id\":\"a\"},\n{\n\"name\":\"x\"\n},\n{\"id\":\"c\",\"parents\":[\"z\"]}",
    );
    let found = problems(Format::Json, &text);
    let expected = [
        "line 3: invalid JSON: unknown field `colour`, expected one of `id`, `name`, `description`, `alternatives`, `parents`, `root`",
        "line 4: duplicate id `a`, first declared at line 2",
        "line 7: invalid JSON: missing field `id`",
        "line 8: unknown parent `z` of `c`",
    ];
    assert_eq!(found, expected);
}

#[test]
fn other_json_and_later_versions_are_refused() {
    assert_eq!(problems(Format::Json, "{\"level_1\":[]}"), ["line 1: invalid JSON: missing field `format`"]);
    let later = "{\"format\":\"cladist-taxonomy\",\"version\":2,\"labels\":{}}";
    let expected = "line 1: expected `cladist-taxonomy` of version 1, found `cladist-taxonomy` of version 2";
    assert_eq!(problems(Format::Json, later), [expected]);
    assert_eq!(problems(Format::Json, "{\n\n]").len(), 1);
    assert_eq!(problems(Format::Json, &file("")), ["taxonomy: no label found in the file"]);
}

#[test]
fn json_looks_as_documented() {
    let text = file(
        "{\"id\":\"animals\",\"name\":\"Animals\"},\n{\"id\":\"dogs\",\"alternatives\":[\"hounds\"],\"parents\":[\"animals\"],\"root\":true}",
    );
    let taxonomy = load(Format::Json, &text).taxonomy;
    assert_eq!(String::from_utf8(to_json(&taxonomy)).unwrap(), text + "\n");
}
