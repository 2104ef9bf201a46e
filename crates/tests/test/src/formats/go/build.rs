//! Failed builds, which go 1.24 and later reports in separate events. The packages whose tests need a failed build fail
//! too, and name the build.

use std::collections::BTreeMap;
use std::mem;

use crate::formats::case::{MAX_REASON_BYTES, shortened};
use crate::formats::test_output::{OutputSize, TestOutput};

#[derive(Debug, Default)]
struct Build {
    output: TestOutput,
    has_failed: bool,
    /// The package that was reported with the output.
    reported_with: Option<String>,
}

/// The builds by import path, such as `example.org/shop [example.org/shop.test]`.
#[derive(Debug, Default)]
pub(super) struct Builds(BTreeMap<String, Build>);

impl Builds {
    pub(super) fn print(&mut self, path: String, text: &str, held: &mut OutputSize) {
        self.0.entry(path).or_default().output.push(text, held);
    }

    pub(super) fn fail(&mut self, path: String) {
        self.0.entry(path).or_default().has_failed = true;
    }

    pub(super) fn has_failed(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(|build| build.has_failed)
    }

    /// Returns the output of a failed build for a package that needs it. If several packages need it, only the first
    /// gets the output.
    pub(super) fn output(&mut self, path: &str, package: &str, held: &mut OutputSize) -> String {
        let build = self.0.entry(path.to_owned()).or_default();
        if let Some(first) = &build.reported_with {
            return format!("{} needs it too and has its output", shortened(first, MAX_REASON_BYTES));
        }
        build.reported_with = Some(package.to_owned());
        mem::take(&mut build.output).take(held)
    }

    /// Returns the failed builds that no package has named, with their output.
    pub(super) fn finish(&mut self, held: &mut OutputSize) -> Vec<(String, String)> {
        let builds = mem::take(&mut self.0).into_iter();
        let unreported = builds.filter(|(_, build)| build.has_failed && build.reported_with.is_none());
        unreported.map(|(path, build)| (path, build.output.take(held))).collect()
    }
}
