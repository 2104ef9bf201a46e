//! Activities: units of work, identified by ids that encode their ancestors. Tracks the activity that each thread works
//! for; does not write events.
//!
//! An id is a path of numbers, as the activity tracker of .NET assigns them: the first number is always 1 (the application
//! domain), the second one that of an activity without a parent, and further ones those of children. TraceEvent shows an
//! id as `//1/7/2/`. The numbers are in the first 12 bytes, in half bytes: 1 to 10 directly, larger ones as 0xB plus the
//! count of bytes that follow; the last 4 bytes are a checksum of the others and the process id. A path that does not fit
//! is truncated after an ancestor, and continues with 0xB and a unique number.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use uuid::Uuid;

/// The half bytes available for a path.
const PATH_LEN: usize = 24;
/// The greatest number that is encoded in a half byte.
const LAST_IMMEDIATE: u32 = 10;
/// The marker of the number of an activity whose path did not fit.
const OVERFLOW: u8 = 0xB;
/// The code of a one-byte number; the codes of longer numbers follow.
const ONE_BYTE_CODE: u8 = 0xC;
/// The constant that makes the checksum differ from the last four bytes of ids that are not paths.
const CHECKSUM: u32 = 0x599D_99AD;

static ROOTS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static CURRENT: RefCell<Vec<Activity>> = const { RefCell::new(Vec::new()) };
}

/// A unit of work, which may contain others. Clones refer to one activity.
#[derive(Debug, Clone)]
pub struct Activity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: Uuid,
    parent: Option<Uuid>,
    path: Path,
    /// The ancestor that assigns numbers when the path is full.
    above: Option<Activity>,
    children: AtomicU32,
}

impl Activity {
    /// Starts an activity within the current one of this thread, or a root activity if there is none.
    pub fn start() -> Self {
        Self::current().map_or_else(Self::root, |current| current.child())
    }

    /// Starts an activity that is not part of another one.
    pub fn root() -> Self {
        let number = ROOTS.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // Both numbers fit.
        let path = Path::default().push(1).and_then(|path| path.push(number)).unwrap_or_default();
        Self::new(path, None, None)
    }

    /// Starts an activity within this one.
    #[must_use]
    pub fn child(&self) -> Self {
        let parent = Some(self.0.id);
        if let Some(path) = self.0.path.push(self.next_child()) {
            return Self::new(path, parent, Some(self.clone()));
        }
        let mut above = Some(self);
        while let Some(ancestor) = above {
            if let Some(path) = ancestor.0.path.overflow(ancestor.next_child()) {
                return Self::new(path, parent, Some(ancestor.clone()));
            }
            above = ancestor.0.above.as_ref();
        }
        // Only after 2³² children: the numbers start again.
        Self::root()
    }

    fn new(path: Path, parent: Option<Uuid>, above: Option<Self>) -> Self {
        let inner = Inner { id: path.id(), parent, path, above, children: AtomicU32::new(0) };
        Self(Arc::new(inner))
    }

    fn next_child(&self) -> u32 {
        self.0.children.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Returns the id.
    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// Returns the id of the containing activity. `None` for a root activity.
    pub fn parent_id(&self) -> Option<Uuid> {
        self.0.parent
    }

    /// Makes this the current activity of the thread until the guard is dropped: events written meanwhile carry its id.
    #[must_use = "the activity ends with the guard"]
    pub fn enter(&self) -> Entered {
        self.push();
        Entered { id: self.0.id, thread: PhantomData }
    }

    /// Like [`enter`](Self::enter), without a guard.
    pub(crate) fn push(&self) {
        // A thread that is exiting has no current activity.
        let _ = CURRENT.try_with(|current| current.borrow_mut().push(self.clone()));
    }

    /// Ends the innermost [`push`](Self::push) of this activity on this thread.
    pub(crate) fn pop(id: Uuid) {
        let _ = CURRENT.try_with(|current| {
            let mut current = current.borrow_mut();
            if let Some(place) = current.iter().rposition(|activity| activity.0.id == id) {
                current.remove(place);
            }
        });
    }

    /// Returns the current activity of this thread.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.borrow().last().cloned()).ok().flatten()
    }

    /// Returns the ids of the current activity and of its parent.
    pub(crate) fn current_ids() -> Option<(Uuid, Option<Uuid>)> {
        let ids = |current: &RefCell<Vec<Self>>| {
            current.borrow().last().map(|activity| (activity.0.id, activity.0.parent))
        };
        CURRENT.try_with(ids).ok().flatten()
    }
}

/// A guard of a thread's current activity. See [`Activity::enter`].
#[derive(Debug)]
pub struct Entered {
    id: Uuid,
    /// Prevents sending the guard to another thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = self.thread;
        Activity::pop(self.id);
    }
}

/// A path of half bytes, of which the first `used` are valid.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    halves: [u8; PATH_LEN],
    used: usize,
}

impl Path {
    fn put(&mut self, half: u8) -> Option<()> {
        *self.halves.get_mut(self.used)? = half;
        self.used += 1;
        Some(())
    }

    /// Appends a number. `None` if it does not fit.
    fn push(self, number: u32) -> Option<Self> {
        let mut path = self;
        match u8::try_from(number) {
            Ok(half) if (1..=LAST_IMMEDIATE).contains(&number) => path.put(half)?,
            _ => {
                // The code may share its byte with the highest bits.
                let shared = path.used.is_multiple_of(2);
                path.put_long(number, shared)?;
            }
        }
        Some(path)
    }

    /// Returns the path of a descendant whose own path does not fit.
    fn overflow(self, number: u32) -> Option<Self> {
        let mut path = self;
        path.put(OVERFLOW)?;
        path.put_long(number, false)?;
        Some(path)
    }

    /// Appends a code and the bytes of the number, with the highest four bits in the byte of the code if `shared`.
    fn put_long(&mut self, number: u32, shared: bool) -> Option<()> {
        let fits = |count: u32| {
            let bits = 8 * count + if shared { 4 } else { 0 };
            bits >= 32 || number >> bits == 0
        };
        let count = (1..=4u32).find(|count| fits(*count)).unwrap_or(4);
        self.put(ONE_BYTE_CODE + u8::try_from(count - 1).ok()?)?;
        if shared {
            let high = if count < 4 { number >> (8 * count) } else { 0 };
            self.put(u8::try_from(high & 15).ok()?)?;
        } else if !self.used.is_multiple_of(2) {
            self.put(0)?;
        }
        for byte in number.to_le_bytes().into_iter().take(usize::try_from(count).ok()?) {
            self.put(byte >> 4)?;
            self.put(byte & 15)?;
        }
        Some(())
    }

    fn id(&self) -> Uuid {
        let (pairs, _) = self.halves.as_chunks::<2>();
        let mut bytes = [0; 16];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = high << 4 | low;
        }
        let (words, _) = bytes.as_chunks::<4>();
        let sum = words.iter().fold(CHECKSUM, |sum, word| sum.wrapping_add(u32::from_le_bytes(*word)));
        if let Some(last) = bytes.last_chunk_mut() {
            *last = (sum ^ std::process::id()).to_le_bytes();
        }
        Uuid::from_bytes_le(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn path(numbers: &[u32]) -> [u8; 12] {
        let path = numbers.iter().try_fold(Path::default(), |path, number| path.push(*number)).unwrap();
        *path.id().to_bytes_le().first_chunk().unwrap()
    }

    /// Paths as observed from .NET.
    #[test]
    fn paths_are_those_of_dotnet() {
        assert_eq!(path(&[1, 7])[..2], [0x17, 0]);
        assert_eq!(path(&[1, 750])[..4], [0x1d, 0xee, 0x02, 0]);
        assert_eq!(path(&[1, 64, 1, 1])[..4], [0x1c, 0x40, 0x11, 0]);
        assert_eq!(path(&[1, 2, 750])[..4], [0x12, 0xc2, 0xee, 0], "the other half of the code's byte");
    }

    #[test]
    fn every_activity_has_a_unique_id() {
        let mut seen = HashSet::new();
        let mut deep = Activity::root();
        for depth in 0..100 {
            assert!(seen.insert(deep.id()), "depth {depth}");
            let first = deep.child();
            for _ in 0..300 {
                let child = deep.child();
                assert_eq!(child.parent_id(), Some(deep.id()));
                assert!(seen.insert(child.id()), "depth {depth}");
            }
            deep = first;
        }
    }

    #[test]
    fn the_last_entered_activity_is_current() {
        assert!(Activity::current().is_none());
        let outer = Activity::start();
        assert_eq!(outer.parent_id(), None);
        let entered = outer.enter();
        let inner = Activity::start();
        assert_eq!(inner.parent_id(), Some(outer.id()));
        let second = inner.enter();
        // Guards may be dropped in any order, as spans are exited.
        drop(entered);
        assert_eq!(Activity::current().map(|it| it.id()), Some(inner.id()));
        drop(second);
        assert!(Activity::current().is_none());
    }
}
