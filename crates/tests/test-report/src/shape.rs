//! Derivation of the class of a test from its id or its name.
//!
//! Results contain neither class nor method; only lists do. This module recognizes ids and names that determine the
//! class unambiguously, and does not guess.
//!
//! | framework | shape |
//! |---|---|
//! | `NUnit` | the uid is `NAMESPACE.CLASS.NAME`, with arguments of the fixture behind the class |
//! | xunit v3 | the uid is a SHA-256 in hexadecimal digits, the name `NAMESPACE.CLASS.METHOD(ARGUMENTS)` |
//!
//! `MSTest` uses a UUID and the name of the method, which do not contain the class. Measured with `MSTest` 4.5.2, `NUnit`
//! 5.0.0 and xunit 3.2.2.

use crate::Facts;

/// Returns the class and the method according to the id and the name of a test, or `None` if they are ambiguous.
pub fn facts_from_id(uid: &str, name: &str) -> Option<Facts> {
    let (class, method) = of_nunit(uid, name).or_else(|| of_xunit(uid, name))?;
    // Arguments of a fixture may contain dots.
    let path = class.split('(').next().unwrap_or(class);
    let (namespace, type_name) = match path.rfind('.') {
        Some(dot) => (class.get(..dot), class.get(dot + 1..)),
        None => (None, Some(class)),
    };
    Some(Facts {
        namespace: namespace.map(str::to_owned),
        type_name: type_name.map(str::to_owned),
        method: is_identifier(method).then(|| method.to_owned()),
        ..Facts::default()
    })
}

/// Returns class and method.
fn of_nunit<'a>(uid: &'a str, name: &'a str) -> Option<(&'a str, &'a str)> {
    let class = uid.strip_suffix(name).filter(|_| !name.is_empty())?.strip_suffix('.')?;
    let method = name.split(['(', '<']).next().unwrap_or(name);
    let is_class = match class.split_once('(') {
        Some((path, arguments)) => is_path(path) && arguments.ends_with(')'),
        None => is_path(class),
    };
    is_class.then_some((class, method))
}

fn of_xunit<'a>(uid: &str, name: &'a str) -> Option<(&'a str, &'a str)> {
    let is_digest = uid.len() == 64 && uid.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        return None;
    }
    let path = match name.find(['(', '<']) {
        Some(end) if name.ends_with(')') => name.get(..end)?,
        Some(_) => return None,
        None => name,
    };
    let (class, method) = path.rsplit_once('.')?;
    (is_path(class) && is_identifier(method)).then_some((class, method))
}

/// Returns whether the text is a path such as `Namespace.Outer+Inner`.
fn is_path(text: &str) -> bool {
    // A generic type has the number of its parameters after a backtick, or their names.
    let bare = |part: &str| part.split(['`', '<']).next().is_some_and(is_identifier);
    text.split(['.', '+']).all(bare)
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Namespace, type and method.
    type Parts = (String, String, String);

    fn class(uid: &str, name: &str) -> Option<Parts> {
        let facts = facts_from_id(uid, name)?;
        let text = |text: Option<String>| text.unwrap_or_default();
        Some((text(facts.namespace), text(facts.type_name), text(facts.method)))
    }

    fn of(namespace: &str, type_name: &str, method: &str) -> Parts {
        (namespace.to_owned(), type_name.to_owned(), method.to_owned())
    }

    const DIGEST: &str = "9c6c9a99b5d856a2197a8638255899fe40737d4145c76423bfda72b9e9d1896a";

    #[test]
    fn ids_of_nunit_start_with_the_class() {
        assert_eq!(class("Library.Desk.ClosedDesk.A", "A"), Some(of("Library.Desk", "ClosedDesk", "A")));
        assert_eq!(
            class("Library.Desk.Outer+Inner.Nested", "Nested"),
            Some(of("Library.Desk", "Outer+Inner", "Nested"))
        );
        assert_eq!(
            class("Library.ShelfTests(\"a.b\").Divides(4.5,2)", "Divides(4.5,2)"),
            Some(of("Library", "ShelfTests(\"a.b\")", "Divides"))
        );
        assert_eq!(
            class("Library.ShelfTests(\"oak\").three in German", "three in German"),
            Some(of("Library", "ShelfTests(\"oak\")", ""))
        );
        assert_eq!(class("Tests.Größe", "Größe"), Some(of("", "Tests", "Größe")));
    }

    #[test]
    fn names_of_xunit_start_with_the_class() {
        assert_eq!(
            class(DIGEST, "Library.ShelfTests.Holds(word: \"a.b\")"),
            Some(of("Library", "ShelfTests", "Holds"))
        );
        assert_eq!(class(DIGEST, "Library.Outer+Inner.Nested"), Some(of("Library", "Outer+Inner", "Nested")));
    }

    #[test]
    fn ambiguous_names_have_no_class() {
        for (uid, name) in [
            ("apple-1", "IsRound"),
            ("1641a4bd-b9d7-8c1d-804f-bb1413d1a46a", "B"),
            ("Shop.Cart.Adds", "Shop.Cart.Adds"),
            ("Library.Adds one", "one"),
            ("two words.One", "One"),
            ("A.B.C", ""),
            (".C", "C"),
            (DIGEST, "a name with spaces, v1.2"),
            (DIGEST, "Method"),
            (DIGEST, "1.2"),
            (DIGEST, "A.B(c"),
        ] {
            assert_eq!(class(uid, name), None, "{uid} {name}");
        }
    }
}
