//! The `cladist` program: a doorway to [`cladist::run`].

fn main() -> std::process::ExitCode {
    cladist::main()
}
