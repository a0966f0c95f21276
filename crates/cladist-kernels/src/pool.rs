//! Buffers that are used again: a step that allocates afresh spends a fifth of its time in page faults.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Free buffers by capacity. Capacities come in eight steps per doubling, so that batches of different sizes share
/// buffers instead of piling them up.
struct Pool {
    free: BTreeMap<usize, Vec<Vec<f32>>>,
    /// Values in all free buffers.
    size: usize,
}

/// Free values kept at most: 512 MB.
const MOST: usize = 1 << 27;

static POOL: Mutex<Pool> = Mutex::new(Pool { free: BTreeMap::new(), size: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The capacity that serves a length.
fn class(len: usize) -> usize {
    let step = (len.next_power_of_two() / 8).max(256);
    len.next_multiple_of(step)
}

/// `len` values of unknown content. Give them back with [`give`].
#[must_use]
pub fn take(len: usize) -> Vec<f32> {
    let class = class(len);
    let found = {
        let mut pool = pool();
        let found = pool.free.get_mut(&class).and_then(Vec::pop);
        if found.is_some() {
            pool.size -= class;
        }
        found
    };
    let mut buffer = found.unwrap_or_else(|| Vec::with_capacity(class));
    buffer.resize(len, 0.0);
    buffer
}

/// `len` zeros. Give them back with [`give`].
#[must_use]
pub fn take_zeros(len: usize) -> Vec<f32> {
    let mut buffer = take(len);
    buffer.fill(0.0);
    buffer
}

/// Keeps a buffer for later, if it is one of [`take`]'s and there is room.
pub fn give(buffer: Vec<f32>) {
    let capacity = buffer.capacity();
    if capacity > 0 && class(capacity) == capacity {
        let mut pool = pool();
        if pool.size + capacity <= MOST {
            pool.size += capacity;
            pool.free.entry(capacity).or_default().push(buffer);
        }
    }
}

/// Gives the pool's memory back to the system.
pub fn release() {
    let mut pool = pool();
    pool.free.clear();
    pool.size = 0;
}

/// A slice of values that goes back to the pool when dropped.
#[derive(Debug, Default)]
pub struct Buffer(Vec<f32>);

impl Buffer {
    /// `len` values of unknown content.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self(take(len))
    }

    /// `len` zeros.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        Self(take_zeros(len))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.0));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_serves_every_length_up_to_it_and_is_its_own_class() {
        for len in (1..5000).chain([1 << 20, (1 << 20) + 1, 11_720_448]) {
            let class = class(len);
            assert!(class >= len && class <= len + len / 4 + 256, "{len} {class}");
            assert_eq!(super::class(class), class);
        }
        assert_eq!(take_zeros(1000), vec![0.0; 1000]);
        assert!(take(0).is_empty());
    }
}
