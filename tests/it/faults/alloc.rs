//! Counts the memory that a thread allocates, so that tests can assert that damaged bytes need no more
//! memory than intact ones.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; this one hands all on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Bytes that this thread holds now, and their peak since it was last read. Memory that one
    /// thread allocates and another frees is counted wrongly, but a single thread reads a journal.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // A thread that ends frees memory after its counter is gone.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

/// Returns the peak memory in bytes of this thread during `run`, beyond the memory that it held
/// before.
pub fn most_during<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.with(|held| {
        let (now, _) = held.get();
        held.set((now, now));
        now
    });
    let result = run();
    let (_, most) = HELD.with(Cell::get);
    (result, usize::try_from(most - before).unwrap_or(0))
}

// SAFETY: every call is passed to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[test]
fn memory_is_counted() {
    let (_, most) = most_during(|| {
        drop(vec![1_u8; 1_000_000]);
        vec![1_u8; 10]
    });
    assert!((1_000_000..1_100_000).contains(&most), "{most}");
}
