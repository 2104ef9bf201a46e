//! What could have been called: the methods of jars and of folders of classes.
//!
//! Owns: [`Inventory`], classes by name with what reports need of their methods. Of two classes with one name the first one
//! stays, as on a class path; the others are counted. Refuses to: fail for a class that can't be read: it is among
//! [`Inventory::unread`]; touch a file.

use std::collections::BTreeMap;

use runtap_classfile::jar::{self, JarError, ListedClass, ListedMethod, Options, Reason, Unread};
use runtap_classfile::{AccessFlags, ClassFile};

use crate::coverage::filter::{Filtered, Rules};
use crate::coverage::languages::Origin;

/// The most that an inventory takes, in bytes.
const LARGEST: u64 = 1 << 30;

/// A method with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its name, `<init>` for constructors.
    pub name: String,
    /// Its descriptor: `(I)V`.
    pub descriptor: String,
    /// Its flags.
    pub access: AccessFlags,
    /// Bytes of its code.
    pub code: u32,
    /// The numbers of its lines, sorted; empty without debug information.
    pub lines: Vec<u16>,
    /// Why reports leave it out, if they do.
    pub filtered: Option<Filtered>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Where it is: `app.jar!/demo/Program.class`.
    pub path: String,
    /// Its source file, if it says it: a file name, never a path.
    pub source_file: Option<String>,
    /// Its flags.
    pub access: AccessFlags,
    /// Why reports leave all of it out, if they do.
    pub filtered: Option<Filtered>,
    /// Its methods with code, in the order of the file: abstract and native ones can't be traced.
    pub methods: Vec<Method>,
}

/// All classes that a program could have called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// By internal name.
    pub classes: BTreeMap<String, Class>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Classes that have the name of one that came before.
    pub duplicates: u64,
    /// The number of classes that multi-release jars have for a release of Java and later ones, by this release.
    pub versioned: BTreeMap<u16, u64>,
    /// Bytes that the classes take, about.
    pub bytes: u64,
}

impl Class {
    /// Bytes that it takes with its name, about.
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

    /// Its first line, as JaCoCo counts: the smallest number.
    pub fn first_line(&self) -> Option<u16> {
        self.lines.first().copied()
    }
}

/// The file name of a `SourceFile` attribute, which holds whatever made the class: compilers write a name without a
/// directory, and a path could name any file of whoever reads the coverage. `None`: nothing of it is a file name.
fn base_name(source_file: &str) -> Option<String> {
    let name = source_file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
    // A drive letter, or a stream of a file, on Windows.
    (is_name && !name.contains(':')).then(|| name.to_owned())
}

impl Inventory {
    /// Adds the classes of an archive and of those in it. `label` is what [`Class::path`] begins with.
    ///
    /// # Errors
    /// If it is no archive. What in it can't be read is added to [`unread`](Self::unread).
    pub fn add_jar(&mut self, label: &str, bytes: &[u8], options: &Options) -> Result<(), JarError> {
        let place = |path: &str| format!("{label}!/{path}");
        let unread = jar::for_each_class(bytes, options, |path, bytes| self.add(place(path), bytes))?;
        let unread = unread.into_iter().map(|unread| Unread { path: place(&unread.path), ..unread });
        self.unread.extend(unread);
        Ok(())
    }

    /// Adds a class file, of a folder of classes.
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
        if bytes > LARGEST {
            return Err(Reason::Limit { what: "bytes of classes and methods in all", limit: LARGEST });
        }
        self.bytes = bytes;
        if let Some(release) = jar::release(&class.path) {
            *self.versioned.entry(release).or_default() += 1;
        }
        self.classes.insert(listed.name, class);
        Ok(())
    }
}
