//! The methods that could have been called: those of JAR files and of folders of classes.
//!
//! [`Inventory`] has classes by name, with what reports need of their methods. Of several classes with the same
//! name the first one is kept, as on a class path, and the others are counted. A class that cannot be read does not
//! fail the inventory: it is listed in [`Inventory::unread`]. This module opens no files.

use std::collections::BTreeMap;

use runtap_classfile::jar::{self, JarError, ListedClass, ListedMethod, Options, Reason, Unread};
use runtap_classfile::{AccessFlags, ClassFile};

use crate::coverage::filter::{Filtered, Rules};
use crate::coverage::languages::Origin;

/// The maximum size of an inventory, in bytes.
const MAX_SIZE: u64 = 1 << 30;

/// A method with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The name; `<init>` for constructors.
    pub name: String,
    /// The descriptor: `(I)V`.
    pub descriptor: String,
    /// The access flags.
    pub access: AccessFlags,
    /// The size of the code, in bytes.
    pub code: u32,
    /// The line numbers, sorted; empty without debug information.
    pub lines: Vec<u16>,
    /// The reason why reports omit the method; `None` if they include it.
    pub filtered: Option<Filtered>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The path: `app.jar!/demo/Program.class`.
    pub path: String,
    /// The file name of the source, without a path; `None` if unknown.
    pub source_file: Option<String>,
    /// The access flags.
    pub access: AccessFlags,
    /// The reason why reports omit the whole class; `None` if they include it.
    pub filtered: Option<Filtered>,
    /// The methods with code, in the order of the file. Abstract and native methods cannot be traced.
    pub methods: Vec<Method>,
}

/// The classes that a program could have called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// The classes, by internal name.
    pub classes: BTreeMap<String, Class>,
    /// The entries that could not be read.
    pub unread: Vec<Unread>,
    /// The number of classes that have the name of an earlier one.
    pub duplicates: u64,
    /// The number of classes that multi-release JAR files have for a release of Java and later, by release.
    pub versioned: BTreeMap<u16, u64>,
    /// The approximate size of the classes, in bytes.
    pub bytes: u64,
}

impl Class {
    /// Returns the approximate size of the class with its name, in bytes.
    fn size(&self, name: &str) -> u64 {
        let method = |method: &Method| {
            size_of::<Method>() + method.name.len() + method.descriptor.len() + size_of_val(&*method.lines)
        };
        let methods: usize = self.methods.iter().map(method).sum();
        (size_of::<Self>() + name.len() + self.path.len() + methods) as u64
    }
}

impl Method {
    fn new(listed: ListedMethod, filtered: Option<Filtered>) -> Option<Self> {
        let lines = listed.lines.iter().map(|line| line.number).filter(|number| *number > 0);
        Some(Self {
            lines: lines.collect(),
            name: listed.name,
            descriptor: listed.descriptor,
            access: listed.access,
            code: listed.code_length?,
            filtered,
        })
    }

    /// Returns the first line as JaCoCo does: the smallest line number.
    pub fn first_line(&self) -> Option<u16> {
        self.lines.first().copied()
    }
}

/// Returns the file name in a `SourceFile` attribute; `None` for a class without that attribute. Compilers write a name without a
/// directory, but the attribute may contain anything, and a path could name any file on the reader's machine.
fn base_name(source_file: &str) -> Option<String> {
    let name = source_file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
    // On Windows, a colon denotes a drive letter or an alternate stream.
    (is_name && !name.contains(':')).then(|| name.to_owned())
}

impl Inventory {
    /// Adds the classes of an archive and of the archives in it. `label` is the start of each [`Class::path`].
    ///
    /// # Errors
    /// Fails if the bytes are not an archive. Entries that cannot be read are added to [`unread`](Self::unread).
    pub fn add_jar(&mut self, label: &str, bytes: &[u8], options: &Options) -> Result<(), JarError> {
        let full_path = |path: &str| format!("{label}!/{path}");
        let unread = jar::for_each_class(bytes, options, |path, bytes| self.add(full_path(path), bytes))?;
        let unread = unread.into_iter().map(|unread| Unread { path: full_path(&unread.path), ..unread });
        self.unread.extend(unread);
        Ok(())
    }

    /// Adds a class file from a folder of classes.
    pub fn add_class(&mut self, path: &str, bytes: &[u8]) {
        if let Err(reason) = self.add(path.to_owned(), bytes) {
            self.unread.push(Unread { path: path.to_owned(), reason });
        }
    }

    fn add(&mut self, path: String, bytes: &[u8]) -> Result<(), Reason> {
        let listed = ListedClass::read(&path, bytes)?;
        let file = ClassFile::parse(bytes)?;
        if self.classes.contains_key(&listed.name) {
            self.duplicates += 1;
            return Ok(());
        }
        let mut rules = Rules::new(&file, Origin::of(&file)?)?;
        let mut methods = Vec::new();
        for (listed, member) in listed.methods.into_iter().zip(file.methods()) {
            let lines: Vec<u16> = listed.lines.iter().map(|line| line.number).collect();
            let filtered = rules.method(member, &lines)?;
            methods.extend(Method::new(listed, filtered));
        }
        let class = Class {
            path,
            source_file: listed.source_file.as_deref().and_then(base_name),
            access: listed.access,
            filtered: rules.class()?,
            methods,
        };
        let bytes = self.bytes.saturating_add(class.size(&listed.name));
        if bytes > MAX_SIZE {
            return Err(Reason::Limit { what: "bytes of classes and methods in total", limit: MAX_SIZE });
        }
        self.bytes = bytes;
        if let Some(release) = jar::release(&class.path) {
            *self.versioned.entry(release).or_default() += 1;
        }
        self.classes.insert(listed.name, class);
        Ok(())
    }
}
