//! The classes of JAR files, and the information about them that reports need.
//!
//! [`for_each_class`] reads the classes of an archive and of the archives in it, and [`list`] collects a
//! [`Listing`] of their methods, source files and lines. This module opens no files, and reads no more than its
//! [`Limits`] allow. A class or an inner archive that cannot be read is not an error: the rest is listed, and
//! [`Listing::unread`] has the reason.
//!
//! An archive is a JAR, WAR, EAR or JMOD file. The relevant entries are:
//!
//! | path | content |
//! | --- | --- |
//! | `a/B.class` | the class `a.B` |
//! | `BOOT-INF/classes/`, `WEB-INF/classes/`, in a JMOD file `classes/` | classes, named by their path below that
//! folder |
//! | `META-INF/versions/N/` | classes that replace those outside of the folder if the manifest has `Multi-Release:
//! true` and N is at most the [release](Options::release); the newest one is used. Otherwise ignored. |
//! | `*.jar`, `*.war` | an inner archive, such as `BOOT-INF/lib/x.jar` of a Spring Boot program; stored or deflated |
//!
//! Sources: the *JAR File Specification* (multi-release JAR files), Spring Boot's *The Executable Jar Format*.

mod archive;
mod class;

use thiserror::Error;

pub use self::archive::{for_each_class, release};
pub use self::class::{ListedClass, ListedLine, ListedMethod};
use crate::DecodeError;

/// The limits of reading an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum unpacked size of a class or an inner archive, in bytes.
    pub entry: u64,
    /// The maximum total size of everything that is unpacked and of all paths, in bytes.
    pub total: u64,
    /// The number of bytes that may be unpacked, including paths, per byte of the archive, in addition to the 64
    /// MiB for any archive. Entries may overlap and share one path.
    pub ratio: u64,
    /// The maximum nesting of archives; 0 for no inner archives.
    pub depth: u8,
    /// The maximum number of classes and of unread entries.
    pub classes: usize,
}

impl Default for Limits {
    /// Returns 256 MiB per entry, 4 GiB in total, a ratio of 100 (classes typically shrink to a third), 3 levels (a
    /// JAR in a WAR in an EAR), and a million classes.
    fn default() -> Self {
        Self { entry: 256 << 20, total: 4 << 30, ratio: 100, depth: 3, classes: 1_000_000 }
    }
}

/// The options of reading an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The Java release, such as 17, whose classes are read from multi-release JAR files.
    pub release: u16,
    /// The limits.
    pub limits: Limits,
}

impl Default for Options {
    /// Returns options for the newest classes, with the default limits.
    fn default() -> Self {
        Self { release: u16::MAX, limits: Limits::default() }
    }
}

/// An error for an archive that cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JarError {
    /// The bytes are not a ZIP file, or are damaged.
    #[error("not a JAR file: {0}")]
    NotAnArchive(String),
}

/// The reason why an entry of an archive was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// An inner archive cannot be read.
    #[error(transparent)]
    Archive(#[from] JarError),
    /// The position or the checksum of the entry is wrong.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The entry is compressed with a method that JAR files do not use.
    #[error("unsupported compression method {0}")]
    Method(u16),
    /// A limit was exceeded.
    #[error("the limit of {limit} {what} is exceeded")]
    Limit {
        /// The unit of the limit.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The entry is not a class file.
    #[error(transparent)]
    Class(#[from] DecodeError),
}

/// An entry that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The path of the entry, after `!/` in an inner archive: `BOOT-INF/lib/x.jar!/a/B.class`.
    pub path: String,
    /// The reason.
    pub reason: Reason,
}

/// The classes of an archive and of the archives in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The classes, in the order of the archive. A name may occur several times, in different inner archives: the
    /// class path of the program determines which one is loaded.
    pub classes: Vec<ListedClass>,
    /// The entries that were not read.
    pub unread: Vec<Unread>,
}

/// Lists the classes of an archive, with their methods and lines.
///
/// # Errors
/// Fails if the bytes are not a ZIP file. Entries that cannot be read are in [`Listing::unread`].
pub fn list(bytes: &[u8], options: &Options) -> Result<Listing, JarError> {
    let mut listing = Listing::default();
    let unread = for_each_class(bytes, options, |path, bytes| {
        listing.classes.push(ListedClass::read(path, bytes)?);
        Ok(())
    })?;
    listing.unread = unread;
    Ok(listing)
}
