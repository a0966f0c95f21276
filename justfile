# `just` lists these; each is one command that a person would type often.

default:
    @just --list

# train, evaluate and predict on the built-in corpus
demo:
    cargo run --release -- demo

# everything continuous integration checks
ci:
    bash .ci/run

test:
    cargo test --workspace

lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings

# accept changed snapshots after looking at them
review:
    cargo insta review

# licences, bans and duplicate versions (needs cargo-deny)
deny:
    cargo deny check bans licenses sources

# 60 seconds of each fuzz target (needs cargo-fuzz and a nightly toolchain)
fuzz seconds="60":
    cd fuzz && for target in $(cargo +nightly fuzz list); do cargo +nightly fuzz run "$target" -- -max_total_time={{seconds}} -rss_limit_mb=4096; done
