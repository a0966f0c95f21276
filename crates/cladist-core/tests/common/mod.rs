//! Data that tests look at if it is at hand.

use std::io::Write as _;
use std::path::PathBuf;

/// A file or folder of the shared data (`CLADIST_SHARED`, or `shared` beside the workspace); if it is not there, the test
/// is skipped and says so.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("CLADIST_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = shared.join("data").join(name);
    if path.exists() {
        return Some(path);
    }
    // Not by `eprintln`, which a test that passes keeps to itself.
    let _ = writeln!(std::io::stderr(), "skipped: {} absent", path.display());
    None
}
