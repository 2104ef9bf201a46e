//! How other users can interfere with names in a directory.

/// What users other than the current one and root can do to names in a directory, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// Nothing: only the current user and root can create names or change the path to the directory.
    Private,
    /// Create names, but not replace existing ones: a directory such as `/tmp`.
    Shared,
    /// Replace any name at any time, in the directory or on the path to it.
    Open,
}
