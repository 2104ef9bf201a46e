//! Determines what other users can do to a name from the owners and modes of the directories and links on its path.
//! Access lists show in the group permissions.

use rustix::fs::{FileType, Mode, Stat};
use rustix::process::geteuid;

use crate::exposure::Exposure;

/// The components of a path that have been examined.
#[derive(Debug)]
pub struct PathCheck {
    us: u32,
    /// Owner of `/`, who is trusted. In a user namespace that may not be user 0.
    owner_of_all: Option<u32>,
    exposed: bool,
    passes_foreign_link: bool,
}

impl PathCheck {
    /// Creates a check without any components.
    pub fn start() -> Self {
        Self {
            us: geteuid().as_raw(),
            owner_of_all: rustix::fs::stat("/").ok().map(|root| root.st_uid),
            exposed: false,
            passes_foreign_link: false,
        }
    }

    /// Examines the next directory or link. In a sticky directory, other users cannot replace entries of the current
    /// user or root, so it is sufficient to check the owner of the next component.
    pub fn pass(&mut self, entry: &Stat) {
        let owner = entry.st_uid;
        let trusted = owner == self.us || owner == 0 || Some(owner) == self.owner_of_all;
        let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
        self.passes_foreign_link |= is_link && !trusted;
        self.exposed |= !trusted || !is_link && is_writable_by_others(entry) && !is_sticky(entry);
    }

    /// Returns the exposure of names in the directory that the path leads to.
    pub(crate) fn leads_to(&self, folder: &Stat) -> Exposure {
        match (self.exposed, is_writable_by_others(folder)) {
            (true, _) => Exposure::Open,
            (false, true) => Exposure::Shared,
            (false, false) => Exposure::Private,
        }
    }

    /// Returns whether the path contains a symbolic link of another user, who can redirect it.
    pub(crate) fn passes_foreign_link(&self) -> bool {
        self.passes_foreign_link
    }
}

fn is_writable_by_others(folder: &Stat) -> bool {
    Mode::from_raw_mode(folder.st_mode).intersects(Mode::WGRP | Mode::WOTH)
}

fn is_sticky(folder: &Stat) -> bool {
    Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX)
}
