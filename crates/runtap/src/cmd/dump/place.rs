//! Where the target writes a dump, and how the file gets to where the user wants it.
//!
//! The target opens the file itself: in its own mount namespace, as its own user. Where it can reach the user's folder
//! it is told that path as it sees it; else it writes into its own temporary folder, and the file is fetched.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use runtap_transport::discover::FileView;

use crate::exit::{self, expected, usage};
use crate::files::with_extension;
use crate::units::Bytes;

/// What `createdump` writes beside the dump.
const CRASH_REPORT: &str = ".crashreport.json";

/// The way of a dump.
#[derive(Debug)]
pub(super) struct Place {
    /// Where the user wants it; absolute.
    pub(super) ours: PathBuf,
    /// Where the target writes it, as the target sees it.
    pub(super) theirs: PathBuf,
    /// What the target is told: a percent sign begins something that the runtime fills in, two are one.
    pub(super) told: String,
    /// Why it has to be fetched from there; `None` if it appears in the right place.
    pub(super) fetched: Option<String>,
}

impl Place {
    /// Finds a way from the target to `ours`.
    ///
    /// # Errors
    /// Our folder is not there, or there is no folder that the target may write to.
    pub(super) fn find(view: &FileView, ours: &Path) -> anyhow::Result<Self> {
        let ours = std::path::absolute(ours)?;
        let Some((folder, name)) = ours.parent().zip(ours.file_name()) else {
            return Err(usage(format!("{} is no name for a file", ours.display())));
        };
        if !fs::metadata(folder).is_ok_and(|meta| meta.is_dir()) {
            return Err(usage(format!("there is no folder {}", folder.display())));
        }
        // A device would be replaced by the fetched file.
        if fs::metadata(&ours).is_ok_and(|meta| !meta.is_file()) {
            return Err(usage(format!("{} is no ordinary file", ours.display())));
        }
        let why = match view.to_target(&ours) {
            Ok(Some(theirs)) => match (usable(view, &theirs), told(&theirs)) {
                (Ok(()), Some(told)) => return Ok(Self { ours, theirs, told, fetched: None }),
                (Ok(()), None) => "its path is no UTF-8, which the protocol can't carry".to_owned(),
                (Err(why), _) => why,
            },
            Ok(None) => "the target does not see that folder".to_owned(),
            Err(error) => error.to_string(),
        };
        let temp = view.temp_dir().unwrap_or_else(|_unreadable| PathBuf::from("/tmp"));
        let theirs = free_name(view, &temp, &name.to_string_lossy());
        let told = told(&theirs).ok_or_else(|| usage(format!("{} is no UTF-8", temp.display())))?;
        usable(view, &theirs).map_err(|reason| {
            expected(
                exit::FAILED,
                format!(
                    "the target can't write to {}: {why}; nor to {}: {reason}",
                    folder.display(),
                    temp.display()
                ),
                "choose a folder with -o that the target's user may write to".to_owned(),
            )
        })?;
        Ok(Self { ours, theirs, told, fetched: Some(why) })
    }

    /// Refuses when the dump can't fit. `needed` is a guess.
    ///
    /// # Errors
    /// A file system on the way is too full.
    pub(super) fn check_space(&self, view: &FileView, needed: u64) -> anyhow::Result<()> {
        let folder = |path: &Path| path.parent().unwrap_or(path).to_owned();
        let ours = view_of_ours()?;
        let mut ways = vec![(view, folder(&self.theirs))];
        if self.fetched.is_some() {
            ways.push((&ours, folder(&self.ours)));
        }
        for (view, folder) in ways {
            // Where it can't be asked the dump itself will tell.
            let Ok(free) = view.free_space(&folder) else { continue };
            if free < needed {
                let full = format!(
                    "{} has {} left, and the dump takes about {}",
                    folder.display(),
                    Bytes(free),
                    Bytes(needed)
                );
                return Err(expected(
                    exit::FAILED,
                    full,
                    "choose another folder with -o, or a smaller --type".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// Brings the file to its place, and the crash report if there is one. Gives the path of the latter.
    ///
    /// # Errors
    /// It can't be read or written. What the target wrote stays where it is then.
    pub(super) fn finish(&self, view: &FileView, crash_report: bool) -> anyhow::Result<Option<PathBuf>> {
        let report = with_extension(&self.theirs, CRASH_REPORT);
        let our_report = with_extension(&self.ours, CRASH_REPORT);
        if self.fetched.is_some() {
            fetch(view, &self.theirs, &self.ours)?;
        }
        if !crash_report {
            return Ok(None);
        }
        if self.fetched.is_some() {
            fetch(view, &report, &our_report)?;
        }
        let written =
            fs::read(&our_report).with_context(|| format!("can't read {}", our_report.display()))?;
        serde_json::from_slice::<serde::de::IgnoredAny>(&written)
            .with_context(|| format!("{} is no whole JSON", our_report.display()))?;
        Ok(Some(our_report))
    }
}

/// Our own view of the file system.
fn view_of_ours() -> io::Result<FileView> {
    runtap_transport::discover::file_view(std::process::id())
}

/// Whether the target's user can write a file there, else why not.
fn usable(view: &FileView, theirs: &Path) -> Result<(), String> {
    let folder = theirs.parent().unwrap_or_else(|| Path::new("/"));
    match view.metadata(theirs) {
        Ok(meta) if !meta.is_file() => return Err("it is no ordinary file".to_owned()),
        Ok(_) => match view.is_writable(theirs) {
            Ok(true) => return Ok(()),
            Ok(false) => return Err("the file is there, and its user may not write to it".to_owned()),
            Err(error) => return Err(error.to_string()),
        },
        Err(_not_there) => {}
    }
    match view.is_writable(folder) {
        Ok(true) => Ok(()),
        Ok(false) => Err("its user may not write to that folder".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The path as the runtime is told it; `None` if the protocol can't carry it.
fn told(theirs: &Path) -> Option<String> {
    theirs.to_str().map(|path| path.replace('%', "%%"))
}

/// A name in the target's folder that is not taken.
fn free_name(view: &FileView, folder: &Path, name: &str) -> PathBuf {
    let safe: String =
        name.chars().map(|c| if c.is_control() || c == '\u{fffd}' { '_' } else { c }).collect();
    let me = std::process::id();
    let candidates = (0..1000).map(|n| folder.join(format!("runtap-{me}-{n}-{safe}")));
    let mut candidates = candidates.skip_while(|path| view.metadata(path).is_ok());
    candidates.next().unwrap_or_else(|| folder.join(safe))
}

/// Copies a file of the target, whole or not at all, and removes it there.
fn fetch(view: &FileView, theirs: &Path, ours: &Path) -> anyhow::Result<()> {
    let failed = || format!("can't fetch {} from the target to {}", theirs.display(), ours.display());
    let part = with_extension(ours, &format!(".{}.part", std::process::id()));
    let copied = (|| -> io::Result<()> {
        let mut from = view.open(theirs)?;
        if !from.metadata()?.is_file() {
            return Err(io::Error::other("it is no ordinary file"));
        }
        // As private as createdump makes it: it holds all secrets of the process.
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut to = options.write(true).create(true).truncate(true).open(&part)?;
        io::copy(&mut from, &mut to)?;
        fs::rename(&part, ours)
    })();
    if copied.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    copied.with_context(failed)?;
    // It stays then, and the target's folder is cleaned some day.
    let _ = view.remove_file(theirs);
    Ok(())
}
