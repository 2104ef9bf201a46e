//! The sites where exceptions originate and end.
//!
//! [`ExceptionSites`] counts sites. The wire has a message for each `throw` of the program, and one for each call
//! that an exception ends. An exception of the JVM itself (a null pointer) has no `throw`: it originates in the
//! first call that it ends. An exception that is followed by anything but the end of the call on top was caught
//! there (*handled*; a `finally` catches too, and throws again). An exception that ends the lowest call of a stack
//! has *escaped* to code that is not traced.

use hashbrown::HashMap;
use runtap_model::order;

/// What happened to an exception at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// The program threw the exception here.
    Thrown,
    /// The exception originated here without a `throw`: it was thrown by the JVM or by code that is not traced.
    Raised,
    /// The exception was caught here.
    Handled,
    /// The exception propagated from here into code that is not traced.
    Escaped,
}

impl Fate {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thrown => "thrown",
            Self::Raised => "raised",
            Self::Handled => "swallowed",
            Self::Escaped => "escaped",
        }
    }
}

/// A site: exception, method, line if known, and fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExceptionSite {
    pub(crate) exception: u32,
    pub(crate) method: u32,
    pub(crate) line: Option<u16>,
    pub(crate) fate: Fate,
}

#[derive(Debug)]
pub(crate) struct ExceptionSites {
    sites: HashMap<ExceptionSite, u64, foldhash::fast::RandomState>,
    limit: usize,
    /// The number of exceptions at sites beyond the limit.
    pub(crate) beyond: u64,
}

impl ExceptionSites {
    pub(crate) fn new(limit: usize) -> Self {
        Self { sites: HashMap::default(), limit, beyond: 0 }
    }

    pub(crate) fn add(&mut self, site: ExceptionSite) {
        if let Some(count) = self.sites.get_mut(&site) {
            *count += 1;
        } else if self.sites.len() < self.limit {
            self.sites.insert(site, 1);
        } else {
            self.beyond += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sites.len()
    }

    /// Returns the sites with their counts, sorted.
    pub(crate) fn sorted(&self) -> Vec<(ExceptionSite, u64)> {
        let mut sites: Vec<(ExceptionSite, u64)> =
            self.sites.iter().map(|(site, count)| (*site, *count)).collect();
        order::sort(&mut sites);
        sites
    }
}
