//! The `cladist` program: a doorway to [`cladist_cli::run`].

use cladist_kernels::process::Checked;
use mimalloc::MiMalloc;

/// Training steps allocate and free the same large tensors over and over; this allocator keeps their pages.
#[global_allocator]
static ALLOCATOR: Checked<MiMalloc> = Checked::new(MiMalloc, cladist_cli::output::out_of_memory);

fn main() -> std::process::ExitCode {
    cladist_cli::main()
}
