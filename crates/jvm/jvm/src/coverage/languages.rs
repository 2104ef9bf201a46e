//! What the compilers of Kotlin and Scala add to classes.
//!
//! Owns: [`Language`], and the rules for methods that are not in the source of that language. Kotlin's are those of JaCoCo
//! 0.8.14 (`KotlinGeneratedFilter`, `SyntheticFilter`), but for `$default`; JaCoCo has none for Scala, whose rules here come
//! from class files of Scala 2.11 and the language's specification (5.3.2, *Case Classes*).
//!
//! | in classes of | left out, or kept | because |
//! | --- | --- | --- |
//! | Kotlin, Scala | methods without lines, if the class has a source file | members of data classes (`component1`, `copy`, `equals` …), methods of interfaces handed on, Scala's static forwarders |
//! | Kotlin | **`…$suspendImpl` stays**, though synthetic | the body of an open suspending function |
//! | Kotlin | `…$default` is left out, as synthetic | it fills in arguments and calls the function; JaCoCo counts it |
//! | Scala | **`$anonfun$…` stays**, though synthetic, but for `…$adapted` | the body of a function literal |
//! | Scala | members of case classes, if they have no line but that of the class: `copy`, `copy$default$N`, `productPrefix` …, `canEqual`, `equals`, `hashCode`, `toString` | made by the compiler |
//! | Scala | `readResolve()` of objects | made by the compiler |
//!
//! A member of a case class that is written on the line of the class itself is taken for the compiler's.

use runtap_classfile::attribute::{Annotation, Attribute};
use runtap_classfile::{ClassFile, DecodeError, Member};

/// A language whose compiler adds methods of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Kotlin,
    Scala,
}

impl Language {
    /// Whether a synthetic method with this name is in the source nevertheless.
    fn keeps_synthetic(self, name: &str) -> bool {
        match self {
            Self::Kotlin => name.ends_with("$suspendImpl"),
            Self::Scala => name.contains("$anonfun$") && !name.ends_with("$adapted"),
        }
    }
}

/// Whether a method is the body of a lambda, which is synthetic and in the source.
fn is_lambda(name: &str) -> bool {
    name.starts_with("lambda$")
}

/// Whether a synthetic method with this name may be in the source, if the language of its class is unknown.
pub(crate) fn may_keep_synthetic(name: &str) -> bool {
    is_lambda(name)
        || [Language::Kotlin, Language::Scala].iter().any(|language| language.keeps_synthetic(name))
}

/// What the methods of a class are judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    language: Option<Language>,
    /// Without a source file there are no lines either, so that their absence says nothing.
    has_source: bool,
    /// A case class of Scala: its line.
    case_class: Option<u16>,
}

/// A method of a class, as the rules see it.
pub(crate) struct Seen<'a> {
    pub(crate) name: &'a str,
    pub(crate) descriptor: &'a str,
    pub(crate) lines: &'a [u16],
}

impl Origin {
    pub(crate) fn of(class: &ClassFile<'_>) -> Result<Self, DecodeError> {
        let language = language(class)?;
        let mut origin = Self { language, has_source: class.source_file()?.is_some(), case_class: None };
        if language == Some(Language::Scala) {
            origin.case_class = case_class(class)?;
        }
        Ok(origin)
    }

    /// Whether a synthetic method is in the source nevertheless.
    pub(crate) fn keeps_synthetic(self, name: &str) -> bool {
        is_lambda(name) || self.language.is_some_and(|language| language.keeps_synthetic(name))
    }

    /// Whether a method that has code is the compiler's.
    pub(crate) fn made(self, method: &Seen<'_>) -> bool {
        let Some(language) = self.language else { return false };
        if self.has_source && method.lines.is_empty() {
            return true;
        }
        language == Language::Scala && (self.of_a_case_class(method) || is_read_resolve(method))
    }

    fn of_a_case_class(self, method: &Seen<'_>) -> bool {
        let Some(line) = self.case_class else { return false };
        let is_member = matches!(
            (method.name, method.descriptor),
            ("copy", _)
                | ("productPrefix" | "toString", "()Ljava/lang/String;")
                | ("productArity" | "hashCode", "()I")
                | ("productElement", "(I)Ljava/lang/Object;")
                | ("productElementName", "(I)Ljava/lang/String;")
                | ("productIterator" | "productElementNames", "()Lscala/collection/Iterator;")
                | ("canEqual" | "equals", "(Ljava/lang/Object;)Z")
        );
        let is_default = method.name.starts_with("copy$default$");
        (is_member || is_default) && method.lines.iter().all(|found| *found == line)
    }
}

fn is_read_resolve(method: &Seen<'_>) -> bool {
    (method.name, method.descriptor) == ("readResolve", "()Ljava/lang/Object;")
}

/// By what compilers leave in class files: an annotation, or attributes.
fn language(class: &ClassFile<'_>) -> Result<Option<Language>, DecodeError> {
    let pool = class.pool();
    for name in ["ScalaSig", "Scala", "TASTY"] {
        if class.attributes().find(pool, name)?.is_some() {
            return Ok(Some(Language::Scala));
        }
    }
    let Some(found) = class.attributes().find(pool, "RuntimeVisibleAnnotations")? else { return Ok(None) };
    let Attribute::RuntimeVisibleAnnotations(annotations) = found.parse(pool)? else { return Ok(None) };
    for Annotation { type_index, .. } in annotations {
        let descriptor = pool.text(type_index, "type_index")?;
        if descriptor == "Lkotlin/Metadata;" {
            return Ok(Some(Language::Kotlin));
        }
        if descriptor == "Lscala/reflect/ScalaSignature;"
            || descriptor == "Lscala/reflect/ScalaLongSignature;"
        {
            return Ok(Some(Language::Scala));
        }
    }
    Ok(None)
}

/// The line of a case class: that of the members which nobody writes.
fn case_class(class: &ClassFile<'_>) -> Result<Option<u16>, DecodeError> {
    let mut line = None;
    let mut found = 0;
    for method in class.methods() {
        let is_one = [("productPrefix", "()Ljava/lang/String;"), ("productArity", "()I")]
            .into_iter()
            .map(|(name, descriptor)| is_named(class, method, name, descriptor))
            .collect::<Result<Vec<bool>, _>>()?
            .contains(&true);
        let Some(code) = method.code(class.pool())?.filter(|_| is_one) else { continue };
        found += 1;
        let first = code.lines(class.pool())?.first().map(|line| line.line_number);
        line = line.or(first).filter(|line| Some(*line) == first);
    }
    Ok(line.filter(|_| found == 2))
}

fn is_named(
    class: &ClassFile<'_>,
    method: &Member<'_>,
    name: &str,
    descriptor: &str,
) -> Result<bool, DecodeError> {
    Ok(method.name(class.pool())? == *name && method.descriptor(class.pool())? == *descriptor)
}
