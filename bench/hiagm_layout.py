#!/usr/bin/env python3
"""WOS, RCV1-v2 and NYT in the layout of HiAGM: JSON lines with "token" and "label", which `cladist` reads as they are.

    hiagm_layout.py wos Data.txt > wos.json                            Data.xlsx of WOS-46985, saved as text with tabs
    hiagm_layout.py rcv1 rcv1-v2.topics.qrels lyrl2004_tokens_train.dat > rcv1_train.json
    hiagm_layout.py nyt nyt.taxonomy nyt_corpus/ [ids] > nyt.json      articles of LDC2008T19, .xml, anywhere below; those of
                                                                       a list of ids or file names, one a line, if given

The files are under licences of their own: bring them. Documents without a label are left out and counted.
"""

import csv
import json
import re
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path


def words(text):
    """Words in lower case."""
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?", text.lower())


def wos(table):
    """Columns Domain (level 1), area (level 2) and Abstract."""
    with open(table, newline="", encoding="utf-8", errors="replace") as file:
        csv.field_size_limit(1 << 24)
        for number, row in enumerate(csv.DictReader(file, delimiter="\t")):
            row = {(key or "").strip(): (value or "").strip() for key, value in row.items() if isinstance(value, str)}
            yield f"wos-{number}", row["Abstract"], [row["Domain"], row["area"]]


def rcv1(topics, *files):
    """`.I` number, `.W`, lines of tokens; topics are lines of code, number, 1."""
    labels = {}
    with open(topics, encoding="utf-8") as file:
        for line in file:
            code, number, _ = line.split()
            labels.setdefault(number, []).append(code)
    for name in files:
        with open(name, encoding="utf-8", errors="replace") as file:
            number, lines = None, []
            for line in file:
                if line.startswith(".I"):
                    if number:
                        yield number, " ".join(lines), labels.get(number, [])
                    number, lines = line.split()[1], []
                elif not line.startswith(".W"):
                    lines.append(line.strip())
            if number:
                yield number, " ".join(lines), labels.get(number, [])


def nyt(taxonomy, folder, ids=None):
    """Taxonomic classifiers that the taxonomy has, each with what it lies below."""
    wanted = None
    if ids:
        with open(ids, encoding="utf-8") as file:
            wanted = {Path(line.strip(" \t\n\r\"',[]")).name.split(".")[0] for line in file}
    with open(taxonomy, encoding="utf-8") as file:
        known = {label for line in file for label in line.rstrip("\n").split("\t")} - {"Root"}
    for path in sorted(Path(folder).rglob("*.xml")):
        if wanted and path.stem not in wanted:
            continue
        root = xml.parse(path).getroot()
        labels = []
        for node in root.iter("classifier"):
            if node.get("type") == "taxonomic_classifier":
                steps = (node.text or "").strip().split("/")
                for end in range(2, len(steps) + 1):
                    label = "/".join(steps[:end])
                    if label in known and label not in labels:
                        labels.append(label)
        blocks = [block for block in root.iter("block") if block.get("class") == "full_text"]
        yield path.stem, " ".join(" ".join(block.itertext()) for block in blocks), labels


KINDS = {"wos": wos, "rcv1": rcv1, "nyt": nyt}


def convert(kind, arguments, out):
    kept = left = 0
    for number, text, labels in KINDS[kind](*arguments):
        labels = [label for label in labels if label]
        if labels and text:
            kept += 1
            print(json.dumps({"id": number, "token": words(text), "label": labels}), file=out)
        else:
            left += 1
    print(f"{kept} documents, {left} left out: no text or no label", file=sys.stderr)


def self_test():
    folder = Path(tempfile.mkdtemp())

    def file(name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run(kind, *arguments):
        with open(folder / "out", "w", encoding="utf-8") as out:
            convert(kind, arguments, out)
        return [json.loads(line) for line in (folder / "out").read_text(encoding="utf-8").splitlines()]

    table = file("Data.txt", "Y1\tY2\tY\tDomain\tarea\tkeywords\tAbstract\n0\t1\t1\tCS \tMachine learning \tx\tIt's a Net, 2.\n")
    assert run("wos", table) == [{"id": "wos-0", "token": ["it's", "a", "net", "2"], "label": ["CS", "Machine learning"]}]
    topics = file("topics", "C11 7 1\nCCAT 7 1\nGCAT 9 1\n")
    tokens = file("tokens", ".I 7\n.W\nshare rise\nprofit\n\n.I 8\n.W\nnone\n\n.I 9\n.W\nrain\n")
    found = run("rcv1", topics, tokens)
    assert [(row["id"], row["token"], row["label"]) for row in found] == [
        ("7", ["share", "rise", "profit"], ["C11", "CCAT"]),
        ("9", ["rain"], ["GCAT"]),
    ]
    taxonomy = file("nyt.taxonomy", "Root\tTop/News\nTop/News\tTop/News/World\n")
    file("nyt/1.xml", "<nitf><head><docdata><identified-content>"
         "<classifier type='taxonomic_classifier'>Top/News/World/Nowhere</classifier>"
         "<classifier type='descriptor'>Peace</classifier></identified-content></docdata></head>"
         "<body><block class='lead_paragraph'><p>No.</p></block><block class='full_text'><p>One.</p><p>Two</p></block></body></nitf>")
    assert run("nyt", taxonomy, str(folder / "nyt")) == [
        {"id": "1", "token": ["one", "two"], "label": ["Top/News", "Top/News/World"]}
    ]
    file("nyt/2.xml", (folder / "nyt/1.xml").read_text(encoding="utf-8"))
    ids = file("ids", '"2003/07/01/2.xml",\n')
    assert [row["id"] for row in run("nyt", taxonomy, str(folder / "nyt"), ids)] == ["2"]
    print("fine")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    else:
        convert(sys.argv[1], sys.argv[2:], sys.stdout)
