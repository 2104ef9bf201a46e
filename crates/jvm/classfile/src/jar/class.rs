//! A class as reports see it: what could have been called, and which lines that is.

use std::collections::BTreeMap;

use super::Reason;
use crate::{AccessFlags, ClassFile, DecodeError, Member, Version};

/// Bytes that the names and descriptors of a class's methods may have, however small it is.
const FREE: u64 = 64 << 10;
/// Further bytes of names for each byte of the class file. Methods may share one name of 64 KiB, of which a listing has a copy
/// for each.
const RATIO: u64 = 16;

/// A class of a jar. Strings that are no text have U+FFFD in the place of what is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedClass {
    /// Its name, with slashes: `demo/Program$Inner`.
    pub name: String,
    /// Where it is: `BOOT-INF/lib/x.jar!/a/B.class`.
    pub path: String,
    /// The version of its format.
    pub version: Version,
    /// Its flags.
    pub access: AccessFlags,
    /// The class that it extends.
    pub super_name: Option<String>,
    /// Its source file, without a folder; with that of its package before it, the path below a folder of sources.
    pub source_file: Option<String>,
    /// Its methods, in the order of the file.
    pub methods: Vec<ListedMethod>,
}

/// A method of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMethod {
    /// Its name, `<init>` for constructors.
    pub name: String,
    /// Its descriptor: `(I)V`.
    pub descriptor: String,
    /// Its flags.
    pub access: AccessFlags,
    /// Bytes of its code; `None` for abstract and native methods, which nothing can trace.
    pub code_length: Option<u32>,
    /// How many instructions it has.
    pub instructions: u32,
    /// Its lines, in the order of their numbers; empty without debug information.
    pub lines: Vec<ListedLine>,
}

/// A line that has instructions of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedLine {
    /// Counted from 1.
    pub number: u16,
    /// How many instructions of the method are of this line.
    pub instructions: u32,
}

impl ListedClass {
    /// Reads what a report needs of a class file.
    ///
    /// # Errors
    /// For what is no class file, and for one whose methods have names of many times its size.
    pub fn read(path: &str, bytes: &[u8]) -> Result<Self, Reason> {
        let class = ClassFile::parse(bytes)?;
        check_names(&class, bytes.len() as u64)?;
        let methods = class.methods().iter().map(|method| ListedMethod::read(&class, method));
        Ok(Self {
            name: class.name()?.to_string(),
            path: path.to_owned(),
            version: class.version(),
            access: class.access(),
            super_name: class.super_name()?.map(|name| name.to_string()),
            source_file: class.source_file()?.map(|name| name.to_string()),
            methods: methods.collect::<Result<_, DecodeError>>()?,
        })
    }

    /// The path of its source below a folder of sources: `demo/Program.java`.
    pub fn source_path(&self) -> Option<String> {
        let file = self.source_file.as_deref()?;
        Some(
            self.name
                .rsplit_once('/')
                .map_or_else(|| file.to_owned(), |(package, _)| format!("{package}/{file}")),
        )
    }
}

fn check_names(class: &ClassFile<'_>, size: u64) -> Result<(), Reason> {
    let limit = RATIO.saturating_mul(size).saturating_add(FREE);
    let pool = class.pool();
    let mut names = 0u64;
    for method in class.methods() {
        let (name, descriptor) = (method.name(pool)?, method.descriptor(pool)?);
        names = names.saturating_add((name.as_bytes().len() + descriptor.as_bytes().len()) as u64);
        if names > limit {
            return Err(Reason::Limit { what: "bytes of names of its methods", limit });
        }
    }
    Ok(())
}

impl ListedMethod {
    fn read(class: &ClassFile<'_>, method: &Member<'_>) -> Result<Self, DecodeError> {
        let pool = class.pool();
        let mut listed = Self {
            name: method.name(pool)?.to_string(),
            descriptor: method.descriptor(pool)?.to_string(),
            access: method.access,
            code_length: None,
            instructions: 0,
            lines: Vec::new(),
        };
        let Some(code) = method.code(pool)? else { return Ok(listed) };
        listed.code_length = u32::try_from(code.bytes.len()).ok();
        let mut starts = code.lines(pool)?;
        starts.sort_by_key(|line| line.start_pc);
        let mut starts = starts.into_iter().peekable();
        let mut lines: BTreeMap<u16, u32> = BTreeMap::new();
        let mut line = None;
        for found in code.instructions() {
            let (pc, _) = found?;
            while let Some(next) = starts.next_if(|next| next.start_pc <= pc) {
                line = Some(next.line_number);
            }
            listed.instructions += 1;
            if let Some(line) = line {
                *lines.entry(line).or_default() += 1;
            }
        }
        listed.lines =
            lines.into_iter().map(|(number, instructions)| ListedLine { number, instructions }).collect();
        Ok(listed)
    }
}
