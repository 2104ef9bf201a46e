//! A class with the information that reports need: which methods could have been called, and their lines.

use std::collections::BTreeMap;

use super::Reason;
use crate::{AccessFlags, ClassFile, DecodeError, Member, Version};

/// The total size of names and descriptors of methods that any class may have, in bytes.
const BASE_NAMES: u64 = 64 << 10;
/// The additional bytes of names per byte of the class file. Methods may share one name of 64 KiB, which is copied
/// for each.
const NAMES_RATIO: u64 = 16;

/// A class of an archive. Strings have U+FFFD in place of invalid bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedClass {
    /// The name, with slashes: `demo/Program$Inner`.
    pub name: String,
    /// The path in the archive: `BOOT-INF/lib/x.jar!/a/B.class`.
    pub path: String,
    /// The version of the format.
    pub version: Version,
    /// The access flags.
    pub access: AccessFlags,
    /// The name of the superclass; `None` for `java/lang/Object` and modules.
    pub super_name: Option<String>,
    /// The source file, without a folder; `None` if unknown. See [`source_path`](Self::source_path).
    pub source_file: Option<String>,
    /// The methods, in the order of the file.
    pub methods: Vec<ListedMethod>,
}

/// A method of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMethod {
    /// The name; `<init>` for constructors.
    pub name: String,
    /// The descriptor: `(I)V`.
    pub descriptor: String,
    /// The access flags.
    pub access: AccessFlags,
    /// The size of the code, in bytes; `None` for abstract and native methods, which cannot be traced.
    pub code_length: Option<u32>,
    /// The number of instructions.
    pub instructions: u32,
    /// The lines, sorted by number; empty without debug information.
    pub lines: Vec<ListedLine>,
}

/// A source line with instructions of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedLine {
    /// The line number, from 1.
    pub number: u16,
    /// The number of instructions of the method in this line.
    pub instructions: u32,
}

impl ListedClass {
    /// Reads the relevant information of a class file.
    ///
    /// # Errors
    /// Fails if the bytes are not a class file, or if the names of the methods are many times larger than the file.
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

    /// Returns the path of the source file below a source folder: `demo/Program.java`.
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
    let limit = NAMES_RATIO.saturating_mul(size).saturating_add(BASE_NAMES);
    let pool = class.pool();
    let mut names = 0u64;
    for method in class.methods() {
        let (name, descriptor) = (method.name(pool)?, method.descriptor(pool)?);
        names = names.saturating_add((name.as_bytes().len() + descriptor.as_bytes().len()) as u64);
        if names > limit {
            return Err(Reason::Limit { what: "bytes of method names", limit });
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
