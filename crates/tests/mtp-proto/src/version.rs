//! Versions of the protocol: the list that a host offers, and the choice of one version.
//!
//! Both sides compare versions as text; there are no ranges. `dotnet test` chooses the highest version that both sides
//! support.

use std::fmt;

/// A version of the protocol, in three numbers. Only the canonical form is parsed (`1.0`, `01.0.0` and `1.0.0-rc` are
/// rejected), so equal versions have equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// Supported by all hosts; the only version that the SDK 10.0.401 supports.
    pub const V1_0_0: Self = Self::new(1, 0, 0);
    /// The host does not print to the terminal, so the server may show the output of the process (dotnet/sdk#54825).
    pub const V1_1_0: Self = Self::new(1, 1, 0);
    /// Hosts may send [`AzureDevOpsLog`](crate::AzureDevOpsLog).
    pub const V1_2_0: Self = Self::new(1, 2, 0);
    /// Hosts may send [`Display`](crate::Display).
    pub const V1_3_0: Self = Self::new(1, 3, 0);
    /// The server may offer a control pipe.
    pub const V1_4_0: Self = Self::new(1, 4, 0);

    /// All versions that this crate supports, the oldest first. Hosts of MTP 2.3 and later offer exactly these
    /// versions.
    pub const ALL: [Self; 5] = [Self::V1_0_0, Self::V1_1_0, Self::V1_2_0, Self::V1_3_0, Self::V1_4_0];

    /// Creates a version from three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Parses `MAJOR.MINOR.PATCH`. `None` if the text has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.');
        let version = Self::new(number(numbers.next()?)?, number(numbers.next()?)?, number(numbers.next()?)?);
        numbers.next().is_none().then_some(version)
    }
}

fn number(text: &str) -> Option<u32> {
    let is_canonical = text == "0" || text.bytes().next().is_some_and(|first| (b'1'..=b'9').contains(&first));
    if is_canonical { text.parse().ok() } else { None }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The versions that one side supports: the value of [`SUPPORTED_VERSIONS`](crate::HandshakeKey::SUPPORTED_VERSIONS) in
/// a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions(Vec<Version>);

impl Versions {
    /// Returns all versions that this crate supports.
    pub fn all() -> Self {
        Self(Version::ALL.to_vec())
    }

    /// Creates a list of versions in the given order.
    pub fn new(versions: impl IntoIterator<Item = Version>) -> Self {
        Self(versions.into_iter().collect())
    }

    /// Parses a list of versions separated by `;`. Invalid entries are ignored, because they cannot be chosen.
    pub fn parse(list: &str) -> Self {
        Self(list.split(';').filter_map(Version::parse).collect())
    }

    /// Returns the versions in order.
    pub fn iter(&self) -> impl Iterator<Item = Version> + '_ {
        self.0.iter().copied()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the list contains `version`.
    pub fn contains(&self, version: Version) -> bool {
        self.0.contains(&version)
    }

    /// Returns the highest version in both lists, regardless of their order. `None` if they have no version in common.
    pub fn highest_common(&self, other: &Self) -> Option<Version> {
        self.iter().filter(|version| other.contains(*version)).max()
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, version) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { ";" };
            write!(f, "{separator}{version}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_chosen() {
        let sdk = Versions::parse("1.0.0");
        let newest = Versions::parse("1.4.0;1.0.0;1.10.0;1.9.0");
        assert_eq!(sdk.highest_common(&newest), Some(Version::V1_0_0));
        assert_eq!(newest.highest_common(&newest), Some(Version::new(1, 10, 0)), "by number, not by text");
        assert_eq!(sdk.highest_common(&Versions::parse("0.9.0")), None);
        assert_eq!(sdk.highest_common(&Versions::parse("")), None);
    }

    #[test]
    fn only_the_canonical_form_is_a_version() {
        for text in
            ["", "1", "1.0", "01.0.0", "1.0.0.0", "1.0.0-rc", "+1.0.0", " 1.0.0", "1..0", "4294967296.0.0"]
        {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert_eq!(Versions::parse("1.4.0;;x; 1.3.0;1.0.0").to_string(), "1.4.0;1.0.0");
        assert_eq!(Versions::all().to_string(), "1.0.0;1.1.0;1.2.0;1.3.0;1.4.0");
    }
}
