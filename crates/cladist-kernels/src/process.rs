//! What a program cannot ask of its process in safe code: memory that runs out, output that was closed from the start,
//! and the signal for files that grow too long.

use std::alloc::{GlobalAlloc, Layout};

/// An allocator that hands over to `exhausted`, with the number of bytes that could not be had, where the program would
/// abort. `exhausted` must not allocate.
#[derive(Debug)]
pub struct Checked<A> {
    inner: A,
    exhausted: fn(usize) -> !,
}

impl<A> Checked<A> {
    /// Wraps an allocator.
    pub const fn new(inner: A, exhausted: fn(usize) -> !) -> Self {
        Self { inner, exhausted }
    }

    fn check(&self, memory: *mut u8, bytes: usize) -> *mut u8 {
        if memory.is_null() { (self.exhausted)(bytes) } else { memory }
    }
}

// SAFETY: every call goes to the inner allocator as it came; what it returns is returned, unless the program ends.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Checked<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.check(unsafe { self.inner.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.check(unsafe { self.inner.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.check(unsafe { self.inner.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.inner.dealloc(memory, layout) }
    }
}

/// Whether standard output was closed when the program started. The standard library opens `/dev/null` in its place, so
/// that everything written would vanish without an error.
#[must_use]
pub fn stdout_was_closed() -> bool {
    #[cfg(target_os = "linux")]
    let closed = linux::STDOUT_WAS_CLOSED.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(target_os = "linux"))]
    let closed = false;
    closed
}

/// Makes writing beyond the largest file that the system allows an error, as a full disk is, instead of the end of the
/// program.
pub fn long_files_are_errors() {
    #[cfg(target_os = "linux")]
    linux::ignore_file_size();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicBool, Ordering};

    const STDOUT: c_int = 1;
    const F_GETFD: c_int = 1;
    const SIGXFSZ: c_int = 25;
    const SIG_IGN: usize = 1;

    // SAFETY: as the C library declares them.
    unsafe extern "C" {
        fn fcntl(file: c_int, command: c_int, ...) -> c_int;
        fn signal(signal: c_int, handler: usize) -> usize;
    }

    pub(super) static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

    extern "C" fn look() {
        // SAFETY: asks about a number, whether or not a file is open under it.
        let closed = unsafe { fcntl(STDOUT, F_GETFD) } == -1;
        STDOUT_WAS_CLOSED.store(closed, Ordering::Relaxed);
    }

    /// The loader calls it before the standard library starts.
    #[used]
    // SAFETY: the section holds pointers to functions of this type.
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    pub(super) fn ignore_file_size() {
        // SAFETY: ignoring a signal runs no code of ours.
        let _ = unsafe { signal(SIGXFSZ, SIG_IGN) };
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    fn exhausted(bytes: usize) -> ! {
        std::panic::panic_any(bytes)
    }

    #[test]
    fn memory_is_as_the_inner_allocator_gives_it_and_its_want_is_reported() {
        let checked = Checked::new(System, exhausted);
        let layout = Layout::array::<u8>(100).unwrap_or_else(|_| unreachable!("100 bytes are a layout"));
        // SAFETY: the layout is not empty, and what is given back was given out with it.
        unsafe {
            let memory = checked.alloc_zeroed(layout);
            assert_eq!(std::slice::from_raw_parts(memory, 100), [0; 100]);
            checked.dealloc(memory, layout);
        }
        let huge =
            Layout::array::<u8>(isize::MAX as usize - 64).unwrap_or_else(|_| unreachable!("it is a layout"));
        // SAFETY: the layout is not empty.
        let ended = std::panic::catch_unwind(|| {
            std::hint::black_box(unsafe { checked.alloc(std::hint::black_box(huge)) })
        });
        assert_eq!(
            ended.err().and_then(|bytes| bytes.downcast::<usize>().ok()).as_deref(),
            Some(&huge.size())
        );
    }

    #[test]
    fn an_open_output_is_seen() {
        assert!(!stdout_was_closed());
    }
}
