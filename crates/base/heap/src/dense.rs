//! Access to arrays that are indexed by small numbers. A number outside of an array reads as the default and writes
//! nothing, so that an algorithm on a damaged graph cannot panic.

/// A hash table with small keys.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::RandomState>;

/// Returns the element at `index`, or the default value if `index` is out of range.
#[inline]
pub(crate) fn at<T: Copy + Default>(all: &[T], index: u32) -> T {
    all.get(index as usize).copied().unwrap_or_default()
}

/// Sets the element at `index`. Does nothing if `index` is out of range.
#[inline]
pub(crate) fn set<T>(all: &mut [T], index: u32, value: T) {
    if let Some(element) = all.get_mut(index as usize) {
        *element = value;
    }
}

/// Returns a length as a number of 32 bits; [`crate::GraphBuilder`] keeps all lengths below.
#[inline]
pub(crate) fn small(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
