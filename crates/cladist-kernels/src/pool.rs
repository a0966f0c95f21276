//! Buffers that are used again: a step that allocates afresh spends a fifth of its time in page faults.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

static FREE: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// A slice of values that goes back to the pool when dropped.
#[derive(Debug, Default)]
pub struct Buffer(Vec<f32>);

impl Buffer {
    /// `len` values of unknown content.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let mut free = FREE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The tightest fit, so that small requests do not take large buffers.
        let fit = free
            .iter()
            .enumerate()
            .filter(|(_, buffer)| buffer.capacity() >= len && buffer.capacity() <= 2 * len + 1024)
            .min_by_key(|(_, buffer)| buffer.capacity())
            .map(|(n, _)| n);
        let mut buffer = fit.map(|n| free.swap_remove(n)).unwrap_or_default();
        drop(free);
        buffer.resize(len, 0.0);
        Self(buffer)
    }

    /// `len` zeros.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        let mut buffer = Self::new(len);
        buffer.fill(0.0);
        buffer
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        const KEPT: usize = 256;
        let buffer = std::mem::take(&mut self.0);
        if buffer.capacity() > 0 {
            let mut free = FREE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if free.len() < KEPT {
                free.push(buffer);
            }
        }
    }
}

/// Gives the pool's memory back to the system.
pub fn release() {
    FREE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
}

impl Deref for Buffer {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}
