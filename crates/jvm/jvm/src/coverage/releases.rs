//! The Java releases of runs, which determine the classes that multi-release JAR files provide.
//!
//! The release is derived from `java.vm.version`, which is all that an agent reports about it.

use std::collections::BTreeSet;

use crate::coverage::inventory::Inventory;

/// The Java releases of all runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Releases {
    known: BTreeSet<u16>,
    /// Whether the release of a run is unknown.
    has_unknown: bool,
}

impl Releases {
    /// Adds the release of a run by its `java.vm.version`; `None` for agents of versions 1 to 4.
    pub fn add(&mut self, vm_version: Option<&str>) {
        match vm_version.and_then(feature_release) {
            Some(release) => drop(self.known.insert(release)),
            None => self.has_unknown = true,
        }
    }

    /// Adds the releases of other runs.
    pub fn add_all(&mut self, other: Self) {
        self.known.extend(other.known);
        self.has_unknown |= other.has_unknown;
    }

    /// Returns the release that multi-release JAR files are read for: the newest known one. If none is known, this
    /// selects the newest classes in the JAR file.
    pub fn newest(&self) -> u16 {
        self.known.last().copied().unwrap_or(u16::MAX)
    }

    /// Returns the number of classes of an inventory, read for [`newest`](Self::newest), that may not be the ones
    /// for the release of every run.
    pub fn uncertain(&self, inventory: &Inventory) -> u64 {
        let oldest = self.known.first().copied().filter(|_| !self.has_unknown).unwrap_or(0);
        inventory.versioned.iter().filter(|(release, _)| **release > oldest).map(|(_, classes)| classes).sum()
    }
}

/// Returns the feature release of a `java.vm.version`: 17 for `17.0.13+11-LTS`. Before Java 9, this was the version
/// of `HotSpot`: `25.392-b08` is Java 8.
fn feature_release(vm_version: &str) -> Option<u16> {
    let end = vm_version.find(|c: char| !c.is_ascii_digit()).unwrap_or(vm_version.len());
    let (number, rest) = vm_version.split_at_checked(end)?;
    let release = number.parse().ok()?;
    let build = rest.split_once("-b").and_then(|(_, build)| build.chars().next());
    let is_hotspot = !rest.contains('+') && build.is_some_and(|first| first.is_ascii_digit());
    Some(if is_hotspot { 8 } else { release })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_derived_from_the_vm_version() {
        for (vm_version, release) in [
            ("17.0.13+11-Debian-2deb12u1", Some(17)),
            ("11.0.21+9-post-Ubuntu-0ubuntu122.04", Some(11)),
            ("25+36-LTS", Some(25)),
            ("26-beta+12-ea", Some(26)),
            ("21", Some(21)),
            ("25.392-b08", Some(8)),
            ("11.0.11+8-jvmci-21.1-b05", Some(11)),
            ("openj9-0.38.0", None),
            ("99999999", None),
            ("", None),
        ] {
            assert_eq!(feature_release(vm_version), release, "{vm_version}");
        }
    }
}
