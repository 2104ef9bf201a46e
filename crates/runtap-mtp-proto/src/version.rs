//! Versions of the protocol: the highest that both sides name, by exact equality.

use std::fmt;

/// A version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u16, pub u16, pub u16);

impl Version {
    /// The first one.
    pub const V1_0_0: Self = Self(1, 0, 0);
    /// The host prints nothing itself.
    pub const V1_1_0: Self = Self(1, 1, 0);
    /// Lines for Azure DevOps.
    pub const V1_2_0: Self = Self(1, 2, 0);
    /// Texts for the screen.
    pub const V1_3_0: Self = Self(1, 3, 0);
    /// The control pipe.
    pub const V1_4_0: Self = Self(1, 4, 0);
    /// All that are known, from the lowest on.
    pub const ALL: [Self; 5] = [Self::V1_0_0, Self::V1_1_0, Self::V1_2_0, Self::V1_3_0, Self::V1_4_0];

    /// `1.0.0`: what is written otherwise is another version.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        let version = Self(parts.next()??, parts.next()??, parts.next()??);
        (parts.next().is_none() && version.to_string() == text).then_some(version)
    }

    /// The highest of `known` that a host names in its `;`-list.
    pub fn negotiate(offered: &str, known: &[Self]) -> Option<Self> {
        offered.split(';').filter_map(Self::parse).filter(|version| known.contains(version)).max()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_one_counts() {
        let all = &Version::ALL[..];
        assert_eq!(Version::negotiate("1.4.0;1.0.0", all), Some(Version::V1_4_0));
        assert_eq!(Version::negotiate("1.0.0;1.1.0;9.0.0", all), Some(Version::V1_1_0));
        assert_eq!(Version::negotiate("1.0.0;1.1.0", &[Version::V1_0_0]), Some(Version::V1_0_0));
        for none in ["", "0.9.0", "1.0", "1.0.0.0", "01.0.0", " 1.0.0", "+1.0.0"] {
            assert_eq!(Version::negotiate(none, all), None, "{none:?}");
        }
    }
}
