//! What other users can do to a name, by everything on the way to its folder. Owners and modes are looked at, also of
//! links; access lists show in the rights of the group. Judges only.

use rustix::fs::{FileType, Mode, Stat};
use rustix::process::geteuid;

use crate::exposure::Exposure;

/// The way to a folder, as far as it was gone.
#[derive(Debug)]
pub struct PathCheck {
    us: u32,
    /// Who owns `/` has everything; in a user namespace that is not root by its number.
    owner_of_all: Option<u32>,
    exposed: bool,
    passes_foreign_link: bool,
}

impl PathCheck {
    /// Nothing was passed yet.
    pub fn start() -> Self {
        Self {
            us: geteuid().as_raw(),
            owner_of_all: rustix::fs::stat("/").ok().map(|root| root.st_uid),
            exposed: false,
            passes_foreign_link: false,
        }
    }

    /// The next folder or link. In a sticky folder others take no name of ours or root's: so it is enough to look at what
    /// the next name stands for.
    pub fn pass(&mut self, entry: &Stat) {
        let owner = entry.st_uid;
        let trusted = owner == self.us || owner == 0 || Some(owner) == self.owner_of_all;
        let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
        self.passes_foreign_link |= is_link && !trusted;
        self.exposed |= !trusted || !is_link && is_writable_by_others(entry) && !is_sticky(entry);
    }

    /// How exposed names are in the folder to which the way has led.
    pub(crate) fn leads_to(&self, folder: &Stat) -> Exposure {
        match (self.exposed, is_writable_by_others(folder)) {
            (true, _) => Exposure::Open,
            (false, true) => Exposure::Shared,
            (false, false) => Exposure::Private,
        }
    }

    /// Whether another user has laid a link in the way, and may lay it elsewhere.
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
