//! Signatures of methods as agents send them: `demo/Counts$Node.sum;1;(I)I`.
//!
//! [`Signature::parse`] accepts exactly the names that a virtual machine can have. The three parts are the class in
//! its internal form with the name of the method, the access flags in decimal, and the descriptor. Agents that use
//! ASM put additional flags above the 16 bits of class files (such as 0x20000, deprecated), so 32 bits are read.
//!
//! Sources: reference recordings of the original agents; JVMS 4.2 for names, JVMS 4.3.3 for descriptors.

use std::fmt;

use thiserror::Error;

/// A parsed signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature<'a> {
    /// The internal name of the class: `demo/Counts$Node`.
    pub class: &'a str,
    /// The name of the method; `<init>` for constructors, `<clinit>` for static initializers.
    pub name: &'a str,
    /// The access flags: the lower 16 bits are those of class files (JVMS 4.6).
    pub access: u32,
    /// The descriptor: `(I)I`.
    pub descriptor: &'a str,
}

/// An error for an invalid signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("invalid signature: {reason} at byte {offset}")]
pub struct SignatureError {
    /// The offset in the signature, in bytes.
    pub offset: usize,
    /// The problem at that offset.
    pub reason: Reason,
}

/// A problem of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The signature has fewer than three parts.
    #[error("expected `;`")]
    Separator,
    /// There is no `.` between class and method.
    #[error("expected `.` and the name of a method")]
    Method,
    /// A name is empty or has an invalid character.
    #[error("invalid name")]
    Name,
    /// The flags are not a decimal number of 32 bits.
    #[error("expected access flags")]
    Access,
    /// The descriptor is invalid.
    #[error("invalid descriptor of a method")]
    Descriptor,
    /// The parameters take more than 255 words.
    #[error("too many parameters for a method")]
    Parameters,
    /// An array has more than 255 dimensions.
    #[error("too many dimensions for an array")]
    Dimensions,
}

impl<'a> Signature<'a> {
    /// Parses a signature.
    ///
    /// # Errors
    /// Fails unless the text is exactly what an agent sends for a method that can exist.
    pub fn parse(text: &'a str) -> Result<Self, SignatureError> {
        let error = |offset, reason| SignatureError { offset, reason };
        let (method, rest) = text.split_once(';').ok_or_else(|| error(text.len(), Reason::Separator))?;
        let (class, name) = method.rsplit_once('.').ok_or_else(|| error(method.len(), Reason::Method))?;
        class_name(class, 0)?;
        method_name(name, class.len() + 1)?;
        let offset = method.len() + 1;
        let (flags, descriptor) = rest.split_once(';').ok_or_else(|| error(text.len(), Reason::Separator))?;
        let digits = flags.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = flags.len() > 1 && flags.starts_with('0');
        let access = flags.parse().ok().filter(|_| digits && !leading_zero);
        let access = access.ok_or_else(|| error(offset, Reason::Access))?;
        check_descriptor(descriptor, offset + flags.len() + 1)?;
        Ok(Self { class, name, access, descriptor })
    }
}

/// Formats the signature as agents send it.
impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{};{};{}", self.class, self.name, self.access, self.descriptor)
    }
}

/// Checks the internal name of a class (JVMS 4.2.1): unqualified names with slashes between them.
fn class_name(name: &str, offset: usize) -> Result<(), SignatureError> {
    let mut at = offset;
    for part in name.split('/') {
        unqualified(part, at)?;
        at += part.len() + 1;
    }
    Ok(())
}

/// Checks an unqualified name (JVMS 4.2.2): not empty, and none of `. ; [ /`.
fn unqualified(name: &str, offset: usize) -> Result<(), SignatureError> {
    let wrong = name.find(['.', ';', '[', '/']).or_else(|| name.is_empty().then_some(0));
    wrong.map_or(Ok(()), |at| Err(SignatureError { offset: offset + at, reason: Reason::Name }))
}

/// Checks the name of a method: an unqualified name without `<` and `>`, or one of the two special names.
fn method_name(name: &str, offset: usize) -> Result<(), SignatureError> {
    unqualified(name, offset)?;
    match name.find(['<', '>']) {
        Some(at) if !matches!(name, "<init>" | "<clinit>") => {
            Err(SignatureError { offset: offset + at, reason: Reason::Name })
        }
        _ => Ok(()),
    }
}

/// Checks a descriptor (JVMS 4.3.3). `offset` is its offset in the signature, for errors.
fn check_descriptor(text: &str, offset: usize) -> Result<(), SignatureError> {
    let fail = |rest: &str, reason| SignatureError { offset: offset + text.len() - rest.len(), reason };
    let mut rest = text.strip_prefix('(').ok_or_else(|| fail(text, Reason::Descriptor))?;
    let mut words = 0usize;
    let after = loop {
        if let Some(after) = rest.strip_prefix(')') {
            break after;
        }
        let begin = rest;
        rest = field_type(rest, &fail)?;
        words += if begin.starts_with(['J', 'D']) { 2 } else { 1 };
        if words > 255 {
            return Err(fail(begin, Reason::Parameters));
        }
    };
    let end = match after.strip_prefix('V') {
        Some(end) => end,
        None => field_type(after, &fail)?,
    };
    if end.is_empty() { Ok(()) } else { Err(fail(end, Reason::Descriptor)) }
}

/// Returns the text after a field type (JVMS 4.3.2).
fn field_type<'t>(
    text: &'t str,
    fail: &impl Fn(&str, Reason) -> SignatureError,
) -> Result<&'t str, SignatureError> {
    let element = text.trim_start_matches('[');
    if text.len() - element.len() > 255 {
        return Err(fail(text, Reason::Dimensions));
    }
    if let Some(rest) = element.strip_prefix(['B', 'C', 'D', 'F', 'I', 'J', 'S', 'Z']) {
        return Ok(rest);
    }
    let class = element.strip_prefix('L').ok_or_else(|| fail(element, Reason::Descriptor))?;
    let (name, rest) = class.split_once(';').ok_or_else(|| fail(class, Reason::Descriptor))?;
    // The error of `class_name` has an offset in the name, which `fail` converts.
    let inside = class_name(name, 0);
    inside.map_err(|error| fail(class.get(error.offset..).unwrap_or(class), error.reason))?;
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_that_agents_send_are_valid() {
        let lambda = Signature::parse("demo/Lam.lambda$main$0;4106;(I)I").unwrap();
        assert_eq!((lambda.class, lambda.name), ("demo/Lam", "lambda$main$0"));
        assert_eq!((lambda.access, lambda.descriptor), (4106, "(I)I"));
        for good in [
            "A.<init>;0;()V",
            "a/b/C$D.<clinit>;8;()V",
            "A.m;131073;(J[[Ljava/lang/String;D)[I",
            "kt/<no name>.get-x;1;()Lkt/<no name>;",
            "Ünïcode.größe;1;()Z",
        ] {
            let parsed = Signature::parse(good).unwrap_or_else(|error| panic!("{good}: {error}"));
            assert_eq!(parsed.to_string(), good);
        }
    }

    #[test]
    fn errors_have_the_problem_and_its_offset() {
        use Reason::{Access, Descriptor, Dimensions, Method, Name, Parameters, Separator};
        let deep = format!("A.m;1;({}I)V", "[".repeat(256));
        let many = format!("A.m;1;({}I)V", "D".repeat(127) + "I");
        for (wrong, offset, reason) in [
            ("", 0, Separator),
            ("(method 17)", 11, Separator),
            ("A;1;()V", 1, Method),
            (".m;1;()V", 0, Name),
            ("a//B.m;1;()V", 2, Name),
            ("a.B.m;1;()V", 1, Name),
            ("A.;1;()V", 2, Name),
            ("A.<new>;1;()V", 2, Name),
            ("A.m;1", 5, Separator),
            ("A.m;;()V", 4, Access),
            ("A.m;+1;()V", 4, Access),
            ("A.m;01;()V", 4, Access),
            ("A.m;4294967296;()V", 4, Access),
            ("A.m;1;", 6, Descriptor),
            ("A.m;1;()", 8, Descriptor),
            ("A.m;1;(V)V", 7, Descriptor),
            ("A.m;1;(LA)V", 8, Descriptor),
            ("A.m;1;(L;)V", 8, Name),
            ("A.m;1;(La.b;)V", 9, Name),
            ("A.m;1;()V;", 9, Descriptor),
            (&deep, 7, Dimensions),
            (&many, 135, Parameters),
        ] {
            assert_eq!(Signature::parse(wrong), Err(SignatureError { offset, reason }), "{wrong}");
        }
    }
}
