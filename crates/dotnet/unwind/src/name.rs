//! From symbols to readable names: demangled, without the compiler's hash, and divided as .NET tools show names.

use std::fmt::Write as _;

/// The maximum length of a name: some generic Rust names are longer than a record of a trace can be.
const MAX_LENGTH: usize = 2000;

/// A function's name, in two parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionName {
    /// Crate, modules and type, separated by dots; empty for a C function.
    pub path: String,
    /// The last part of the name.
    pub name: String,
}

impl FunctionName {
    /// Creates a name from a symbol of an ELF file. Symbols of other languages stay unchanged.
    ///
    /// `_ZN5hello4Type3run17h0123456789abcdefE` is `hello.Type` and `run`.
    pub fn from_symbol(symbol: &str) -> Self {
        let mut text = String::new();
        match rustc_demangle::try_demangle(symbol) {
            // Without the hash. Writing to a string cannot fail.
            Ok(name) => {
                let _ = write!(text, "{name:#}");
            }
            Err(_) => symbol.clone_into(&mut text),
        }
        // The compiler adds suffixes to functions that it has split: `.llvm.123`, `.cold`.
        if let Some((before, _)) = text.split_once(".llvm.") {
            text.truncate(before.len());
        }
        let (path, name) = text.split_at(last_separator(&text).unwrap_or(0));
        let name = name.strip_prefix("::").unwrap_or(name);
        Self { path: truncate(plain(bare(path))), name: truncate(plain(name)) }
    }

    /// Creates a name for code without a symbol, from its address in its file.
    pub fn unnamed(address: u64) -> Self {
        Self { path: String::new(), name: format!("fun_{address:x}") }
    }
}

/// Returns the position of the last `::` outside of brackets.
fn last_separator(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().rev() {
        match byte {
            // The arrow of a function type closes no bracket.
            b'>' if at > 0 && bytes.get(at - 1) == Some(&b'-') => {}
            b'>' | b')' | b']' | b'}' => depth += 1,
            b'<' | b'(' | b'[' | b'{' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at > 0 && bytes.get(at - 1) == Some(&b':') => return Some(at - 1),
            _ => {}
        }
    }
    None
}

/// Replaces `::` by dots and removes braces: dotnet-trace drops text in braces (`main::{{closure}}`, `call{{vtable.shim}}`).
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for part in name.split(['{', '}']).filter(|part| !part.is_empty()) {
        if !plain.is_empty()
            && !plain.ends_with([':', '<', ' ', '&'])
            && part.starts_with(|c: char| c.is_alphanumeric())
        {
            plain.push_str("::");
        }
        plain.push_str(part);
    }
    plain.replace("::", ".")
}

/// Removes the brackets around a type in a method's name: `<my::Type>::new`.
fn bare(path: &str) -> &str {
    let Some(inner) = path.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else { return path };
    let mut depth = 0_usize;
    let closed_early = inner.bytes().any(|byte| {
        match byte {
            b'<' => depth += 1,
            b'>' if depth == 0 => return true,
            b'>' => depth -= 1,
            _ => {}
        }
        false
    });
    if closed_early || inner.contains(" as ") || inner.contains("->") { path } else { inner }
}

fn truncate(mut text: String) -> String {
    if text.len() > MAX_LENGTH {
        let at = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_LENGTH).last().unwrap_or(0);
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(symbol: &str) -> (String, String) {
        let FunctionName { path, name } = FunctionName::from_symbol(symbol);
        (path, name)
    }

    fn both(path: &str, name: &str) -> (String, String) {
        (path.to_owned(), name.to_owned())
    }

    #[test]
    fn rust_names_are_divided_and_others_are_unchanged() {
        assert_eq!(name("_ZN5hello4Type3run17h0123456789abcdefE"), both("hello.Type", "run"));
        assert_eq!(
            name("_ZN5hello4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"),
            both("hello.main", "closure")
        );
        assert_eq!(
            name("_ZN50_$LT$hello..Type$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE"),
            both("<hello.Type as core.fmt.Display>", "fmt")
        );
        // The v0 mangling.
        assert_eq!(name("_RNvCskwGfYPst2Cb_5hello4main"), both("hello", "main"));
        assert_eq!(name("_ZN5hello4main17h0123456789abcdefE.llvm.123"), both("hello", "main"));
        assert_eq!(name("clock_nanosleep"), both("", "clock_nanosleep"));
        assert_eq!(name(""), both("", ""));
    }

    #[test]
    fn braces_become_parts() {
        for (text, expected) in [
            ("a::b", "a.b"),
            ("a::{{closure}}::{{closure}}", "a.closure.closure"),
            ("call_once{{vtable.shim}}", "call_once.vtable.shim"),
            ("<a::{closure#0} as b>", "<a.closure#0 as b>"),
            ("a::{impl#2}::b", "a.impl#2.b"),
            ("{{closure}}", "closure"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn redundant_brackets_of_types_are_removed() {
        assert_eq!(bare("<a::B>"), "a::B");
        assert_eq!(bare("<a::B<c::D>>"), "a::B<c::D>");
        for text in ["a", "<a as b>", "<a>::b<c>", "<fn() -> a>", "<>>", ""] {
            assert_eq!(bare(text), text, "{text}");
        }
    }

    #[test]
    fn separators_in_brackets_are_ignored() {
        for (text, at) in [
            ("a::b", Some(1)),
            ("a::b::<c::d>", Some(4)),
            ("<a::b as c::d>::e", Some(14)),
            ("a::b::<fn(c::d) -> e::f>", Some(4)),
            ("a::{closure#0}", Some(1)),
            ("<a::b>", None),
            (">>::>", None),
            ("::", Some(0)),
        ] {
            assert_eq!(last_separator(text), at, "{text}");
        }
        assert_eq!(FunctionName::unnamed(0x1a2b).name, "fun_1a2b");
        let long = FunctionName::from_symbol(&"é".repeat(5000));
        assert!(long.name.len() < MAX_LENGTH + 8 && long.name.ends_with('…'));
    }
}
