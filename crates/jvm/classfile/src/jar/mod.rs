//! The classes of jars: which a program would load from them, and what each has.
//!
//! Owns: [`for_each_class`], which walks over an archive and those in it, and [`list`], which makes a [`Listing`] of what it
//! finds: methods, source files, lines. Refuses to: touch a file; read more than its [`Limits`] allow; fail for a class or
//! an inner archive that can't be read: the rest is listed, and [`Listing::unread`] has the reason.
//!
//! An archive is a jar, a war, an ear or a jmod. In it, these are followed:
//!
//! | where | what |
//! | --- | --- |
//! | `a/B.class` | the class `a.B` |
//! | `BOOT-INF/classes/`, `WEB-INF/classes/`, in a jmod `classes/` | the same below that folder |
//! | `META-INF/versions/N/` | takes the place of the class without it if the manifest says `Multi-Release: true` and N is at most the [release](Options::release); of several, the newest one does. Otherwise left out. |
//! | `*.jar`, `*.war` | an archive in this one, such as `BOOT-INF/lib/x.jar` of a Spring Boot program; stored or deflated |
//!
//! Source: the *JAR File Specification* (multi-release jars), Spring Boot's *The Executable Jar Format*.

mod archive;
mod class;

use thiserror::Error;

pub use self::archive::{for_each_class, release};
pub use self::class::{ListedClass, ListedLine, ListedMethod};
use crate::DecodeError;

/// How much is read at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one class or of one inner archive, unpacked.
    pub entry: u64,
    /// Bytes of everything that is unpacked, and of all paths.
    pub total: u64,
    /// Bytes that may be unpacked, paths included, for each byte of the archive, beyond the 64 MiB that any archive may have.
    /// Entries may overlap, and share one path.
    pub ratio: u64,
    /// How deep archives may lie in each other: 0 for none.
    pub depth: u8,
    /// Classes, and reasons why something was not read.
    pub classes: usize,
}

impl Default for Limits {
    /// 256 MiB, 4 GiB, a hundredfold (classes shrink to a third), 3 levels (a jar in a war in an ear), a million.
    fn default() -> Self {
        Self { entry: 256 << 20, total: 4 << 30, ratio: 100, depth: 3, classes: 1_000_000 }
    }
}

/// What is read of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The release of Java whose classes a multi-release jar is to give, such as 17.
    pub release: u16,
    /// How much is read at most.
    pub limits: Limits,
}

impl Default for Options {
    /// The newest classes, within the default limits.
    fn default() -> Self {
        Self { release: u16::MAX, limits: Limits::default() }
    }
}

/// Why an archive as a whole can't be listed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JarError {
    /// Not a zip file, or a damaged one.
    #[error("not a jar: {0}")]
    NotAnArchive(String),
}

/// Why something in an archive was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// An inner archive that is none.
    #[error(transparent)]
    Archive(#[from] JarError),
    /// An entry whose place or checksum is wrong.
    #[error("damaged: {0}")]
    Damaged(String),
    /// Packed with something that jars do not have.
    #[error("compression method {0} is not one of jars")]
    Method(u16),
    /// Above a limit.
    #[error("more than the limit of {limit} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Not a class file.
    #[error(transparent)]
    Class(#[from] DecodeError),
}

/// Something that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The entry; one of an inner archive is behind `!/`: `BOOT-INF/lib/x.jar!/a/B.class`.
    pub path: String,
    /// Why.
    pub reason: Reason,
}

/// The classes of an archive and of those in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// In the order of the archive. A name that is in several inner archives is here several times: which one a program
    /// loads is for its class path to say.
    pub classes: Vec<ListedClass>,
    /// What is missing here.
    pub unread: Vec<Unread>,
}

/// The classes of an archive, with their methods and lines.
///
/// # Errors
/// If it is no zip file. What in it can't be read is in [`Listing::unread`].
pub fn list(bytes: &[u8], options: &Options) -> Result<Listing, JarError> {
    let mut listing = Listing::default();
    let unread = for_each_class(bytes, options, |path, bytes| {
        listing.classes.push(ListedClass::read(path, bytes)?);
        Ok(())
    })?;
    listing.unread = unread;
    Ok(listing)
}
