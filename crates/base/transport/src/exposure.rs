//! What others can do to a name in a folder.

/// What users other than ours and root can do to a name in a folder. The worse, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// Nothing: only we and root make names there, or change the way there.
    Private,
    /// Make names, and not take one that somebody has: a folder such as `/tmp`.
    Shared,
    /// Take any name at any time, there or on the way.
    Open,
}
