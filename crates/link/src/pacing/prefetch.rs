//! Prefetching of memory.

#![allow(
    unsafe_code,
    reason = "there is no safe way yet to prefetch a cache line; prefetching affects only timing"
)]

/// Prefetches an element of a slice into the cache. Does nothing on processors other than x86-64.
#[inline]
pub(super) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = std::ptr::from_ref(element).cast::<i8>();
        for line in (0..size_of::<T>()).step_by(64) {
            // SAFETY: the intrinsic needs SSE, which every x86-64 processor has. It reads nothing and cannot
            // fault, whatever the address. The address lies within `element`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(line)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
