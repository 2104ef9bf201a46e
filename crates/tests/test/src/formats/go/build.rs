//! Builds that have failed, of which go 1.24 and later has events of their own. The packages whose tests need one fail because of
//! it, and name it.

use std::collections::BTreeMap;
use std::mem;

use crate::formats::case::{LONGEST_REASON, shortened};
use crate::formats::printed::{Held, Printed};

#[derive(Debug, Default)]
struct Build {
    output: Printed,
    has_failed: bool,
    /// The package whose error has the output.
    told_with: Option<String>,
}

/// By import path, such as `example.org/shop [example.org/shop.test]`.
#[derive(Debug, Default)]
pub(super) struct Builds(BTreeMap<String, Build>);

impl Builds {
    pub(super) fn print(&mut self, path: String, text: &str, held: &mut Held) {
        self.0.entry(path).or_default().output.push(text, held);
    }

    pub(super) fn fail(&mut self, path: String) {
        self.0.entry(path).or_default().has_failed = true;
    }

    pub(super) fn has_failed(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(|build| build.has_failed)
    }

    /// What a build has printed because of which a package fails. Many packages may need one: the first has its output.
    pub(super) fn output(&mut self, path: &str, package: &str, held: &mut Held) -> String {
        let build = self.0.entry(path.to_owned()).or_default();
        if let Some(first) = &build.told_with {
            return format!("{} needs it too and has its output", shortened(first, LONGEST_REASON));
        }
        build.told_with = Some(package.to_owned());
        mem::take(&mut build.output).take(held)
    }

    /// The failed builds that no package has named, and their output.
    pub(super) fn finish(&mut self, held: &mut Held) -> Vec<(String, String)> {
        let builds = mem::take(&mut self.0).into_iter();
        let lonely = builds.filter(|(_, build)| build.has_failed && build.told_with.is_none());
        lonely.map(|(path, build)| (path, build.output.take(held))).collect()
    }
}
