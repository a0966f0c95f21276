//! How much memory the program has needed.

use std::fs;

/// Starts counting anew, where the system can (Linux). It counts for the whole process, so this library leaves it to
/// programs; `cladist-lab` calls it before each of its runs.
pub fn forget_peak() {
    // What cannot be reset is counted from the start of the program, which is still an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory since then, in megabytes; `None` where the system does not tell.
#[must_use]
pub fn peak_mb() -> Option<u64> {
    peak(&fs::read_to_string("/proc/self/status").ok()?)
}

fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_a_line_of_the_status() {
        assert_eq!(peak("VmPeak:\t 1 kB\nVmHWM:\t  123456 kB\nVmRSS:\t 2 kB\n"), Some(123));
        assert_eq!(peak("Name:\tcladist\n"), None);
    }
}
