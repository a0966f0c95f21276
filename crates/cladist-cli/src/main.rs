//! The `cladist` program: a doorway to [`cladist_cli::run`].

/// Training steps allocate and free the same large tensors over and over; this allocator keeps their pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cladist_cli::main()
}
