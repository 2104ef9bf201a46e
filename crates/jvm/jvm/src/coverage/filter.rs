//! Which classes and methods no report counts: those that are in a class file and not in the source.
//!
//! Owns: the rules, which are those of JaCoCo 0.8.14 (its wiki page *Filtering Options*) as far as they are about whole
//! classes and whole methods. A reader who compares our files with JaCoCo's finds the same methods in both.
//!
//! | left out | because |
//! | --- | --- |
//! | classes with `ACC_SYNTHETIC`, modules | made by the compiler |
//! | classes and methods with an annotation that has `Generated` in its simple name, and that is kept in the class file | made by a generator, or said to be |
//! | methods with `ACC_SYNTHETIC`, bridges among them | made by the compiler; **but bodies of lambdas (`lambda$…`) stay**: they are in the source |
//! | `values()` and `valueOf(String)` of enums, constructors of enums without a body | made by the compiler |
//! | private constructors without parameters and without a body | they only keep others from making instances |
//! | `toString`, `hashCode`, `equals` of records made by `ObjectMethods`, accessors that return their field | made by the compiler |
//!
//! Not here: rules about single instructions (`finally`, `try` with resources, `switch` on strings), because no agent tells of
//! instructions, and rules about Groovy. Those about Kotlin and Scala are in `languages`.

use std::collections::BTreeMap;

use runtap_classfile::attribute::{Annotation, Attribute, Attributes};
use runtap_classfile::{ClassFile, Constant, DecodeError, Index, Member, Pool, Text};

use crate::coverage::languages::{Origin, Seen};

/// Why a class or a method is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filtered {
    /// Made by the compiler: `ACC_SYNTHETIC`, bridges among them.
    Synthetic,
    /// It has an annotation that says that it was generated.
    Generated,
    /// Made by the compiler for an enum.
    Enum,
    /// A private constructor that does nothing.
    PrivateConstructor,
    /// Made by the compiler for a record.
    Record,
    /// Made by the compiler of Kotlin or Scala.
    Language,
}

/// The classes that rules look for as the one that a class extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extends {
    Enum,
    Record,
    Other,
}

/// The rules for a class and its methods, with what is the same for all of them: a class file may have 65,535 methods, each
/// with as many annotations, and names of 64 KiB.
pub(crate) struct Rules<'c, 'a> {
    class: &'c ClassFile<'a>,
    origin: Origin,
    name: Text<'a>,
    extends: Extends,
    /// Whether an annotation of this type says that something was generated, by the index of its descriptor.
    generated: BTreeMap<Index, bool>,
}

impl<'c, 'a> Rules<'c, 'a> {
    pub(crate) fn new(class: &'c ClassFile<'a>, origin: Origin) -> Result<Self, DecodeError> {
        let extends = match class.super_name()?.and_then(Text::to_str).as_deref() {
            Some("java/lang/Enum") => Extends::Enum,
            Some("java/lang/Record") => Extends::Record,
            _ => Extends::Other,
        };
        Ok(Self { class, origin, name: class.name()?, extends, generated: BTreeMap::new() })
    }

    /// The rule that leaves the whole class out.
    pub(crate) fn class(&mut self) -> Result<Option<Filtered>, DecodeError> {
        if self.class.access().is_synthetic() || self.class.access().is_module() {
            return Ok(Some(Filtered::Synthetic));
        }
        Ok(self.is_generated(self.class.attributes())?.then_some(Filtered::Generated))
    }

    /// The rule that leaves a method out, which has these lines.
    pub(crate) fn method(
        &mut self,
        method: &Member<'_>,
        lines: &[u16],
    ) -> Result<Option<Filtered>, DecodeError> {
        let (pool, origin) = (self.class.pool(), self.origin);
        let name = method.name(pool)?.to_string();
        if method.access.is_synthetic() && !origin.keeps_synthetic(&name) {
            return Ok(Some(Filtered::Synthetic));
        }
        if self.is_generated(&method.attributes)? {
            return Ok(Some(Filtered::Generated));
        }
        let Some(code) = method.code(pool)? else { return Ok(None) };
        let is_private = method.access.is_private();
        let descriptor = method.descriptor(pool)?.to_string();
        if origin.made(&Seen { name: &name, descriptor: &descriptor, lines }) {
            return Ok(Some(Filtered::Language));
        }
        let body = Body { name: &name, descriptor: &descriptor, code: code.bytes };
        Ok(match self.extends {
            Extends::Enum if body.of_an_enum(self.name) => Some(Filtered::Enum),
            Extends::Record if body.of_a_record(pool) => Some(Filtered::Record),
            _ if is_private && body.does_nothing() => Some(Filtered::PrivateConstructor),
            _ => None,
        })
    }

    /// Whether an annotation has `Generated` in its simple name.
    fn is_generated(&mut self, attributes: &Attributes<'_>) -> Result<bool, DecodeError> {
        let pool = self.class.pool();
        for name in ["RuntimeVisibleAnnotations", "RuntimeInvisibleAnnotations"] {
            let Some(found) = attributes.find(pool, name)? else { continue };
            let annotations: Vec<Annotation> = match found.parse(pool)? {
                Attribute::RuntimeVisibleAnnotations(found)
                | Attribute::RuntimeInvisibleAnnotations(found) => found,
                _ => continue,
            };
            for Annotation { type_index, .. } in annotations {
                if self.is_of_generated(type_index)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether the type of an annotation has `Generated` in its simple name.
    fn is_of_generated(&mut self, type_index: Index) -> Result<bool, DecodeError> {
        if let Some(known) = self.generated.get(&type_index) {
            return Ok(*known);
        }
        let descriptor = self.class.pool().text(type_index, "type_index")?.to_string();
        let says_so = descriptor.rsplit(['/', '$']).next().is_some_and(|simple| simple.contains("Generated"));
        self.generated.insert(type_index, says_so);
        Ok(says_so)
    }
}

/// A method with code.
struct Body<'a> {
    name: &'a str,
    descriptor: &'a str,
    code: &'a [u8],
}

impl Body<'_> {
    fn of_an_enum(&self, class: Text<'_>) -> bool {
        let descriptor = self.descriptor;
        let returns = |before: &str| {
            let found = descriptor.strip_prefix(before).and_then(|rest| rest.strip_suffix(';'));
            found.is_some_and(|found| class == *found)
        };
        match self.name {
            "values" => returns("()[L"),
            "valueOf" => returns("(Ljava/lang/String;)L"),
            // aload_0, aload_1, iload_2, invokespecial, return.
            "<init>" => {
                descriptor == "(Ljava/lang/String;I)V"
                    && matches!(self.code, [0x2a, 0x2b, 0x1c, 0xb7, _, _, 0xb1])
            }
            _ => false,
        }
    }

    fn of_a_record(&self, pool: &Pool<'_>) -> bool {
        match (self.name, self.descriptor, self.code) {
            // aload_0, invokedynamic, areturn or ireturn; equals has aload_1 too.
            ("toString", "()Ljava/lang/String;", &[0x2a, 0xba, high, low, 0, 0, 0xb0])
            | ("hashCode", "()I", &[0x2a, 0xba, high, low, 0, 0, 0xac])
            | ("equals", "(Ljava/lang/Object;)Z", &[0x2a, 0x2b, 0xba, high, low, 0, 0, 0xac]) => {
                self.is_name_of(pool, high, low)
            }
            // aload_0, getfield, a return of a value.
            (_, descriptor, &[0x2a, 0xb4, high, low, 0xac..=0xb0]) => {
                descriptor.starts_with("()") && self.is_name_of(pool, high, low)
            }
            _ => false,
        }
    }

    /// Whether the field or the call site has the name of the method.
    fn is_name_of(&self, pool: &Pool<'_>, high: u8, low: u8) -> bool {
        let constant = pool.get(Index(u16::from_be_bytes([high, low])), "operand");
        let Ok(Constant::Fieldref { name_and_type, .. } | Constant::InvokeDynamic { name_and_type, .. }) =
            constant
        else {
            return false;
        };
        pool.name_and_type(name_and_type, "name_and_type").is_ok_and(|(name, _)| name == *self.name)
    }

    /// A constructor of which nothing was written: `aload_0`, `invokespecial`, `return`.
    fn does_nothing(&self) -> bool {
        self.name == "<init>" && self.descriptor == "()V" && matches!(self.code, [0x2a, 0xb7, _, _, 0xb1])
    }
}

#[cfg(test)]
mod tests {
    use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
    use runtap_classfile::code::Opcode;
    use runtap_classfile::{AccessFlags, Version};

    use super::*;

    /// A type of an annotation may have a name of 64 KiB, and 65,535 annotations of each method may be of that type.
    #[test]
    fn the_type_of_annotations_is_looked_at_once() {
        let version = Version { major: 52, minor: 0 };
        let mut class = ClassBuilder::new(version, AccessFlags::PUBLIC, "a/A", "java/lang/Object");
        let mut code = CodeBuilder::new(1, 1);
        code.op(Opcode::RETURN);
        class.method(AccessFlags::PUBLIC, "run", "()V", Some(&code)).unwrap();
        let bytes = class.finish().unwrap();
        let file = ClassFile::parse(&bytes).unwrap();
        let mut rules = Rules::new(&file, Origin::of(&file).unwrap()).unwrap();
        // The index of a text without the word.
        let index = (1..file.pool().count()).map(Index).find(|index| file.pool().text(*index, "").is_ok());
        let index = index.unwrap();
        assert!(!rules.is_of_generated(index).unwrap());
        assert_eq!(rules.generated, BTreeMap::from([(index, false)]));
        // What is known is not looked at again.
        rules.generated.insert(index, true);
        assert!(rules.is_of_generated(index).unwrap());
    }
}
