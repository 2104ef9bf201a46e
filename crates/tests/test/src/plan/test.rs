//! Owns: what is known about a test before it runs. Refuses to: say how it ended.

use std::borrow::Cow;

/// What is known about a test. Everything except the uid and the display name depends on the framework and on the
/// version of the platform: Microsoft.Testing.Platform sends the rest since 1.9, and only on request.
///
/// ```
/// use runtap_test::plan::Test;
///
/// let mut test = Test::new("7f1c", "Parses an empty file");
/// test.namespace = Some("App.Tests".into());
/// test.class = Some("ParserTests".into());
/// test.method = Some("EmptyFile".into());
/// assert_eq!(test.full_name().as_deref(), Some("App.Tests.ParserTests.EmptyFile"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Test<'a> {
    /// What the application calls the test; unique in its module, and the same in each run of the same file.
    pub uid: Cow<'a, str>,
    /// The name for people. Two tests may have the same one.
    pub name: Cow<'a, str>,
    /// The namespace of the class.
    pub namespace: Option<Cow<'a, str>>,
    /// The name of the class, usually without its namespace (`TypeName` of the protocol); `+` separates nested classes.
    pub class: Option<Cow<'a, str>>,
    /// The name of the method.
    pub method: Option<Cow<'a, str>>,
    /// Keys and values that the author has attached, in the order in which they were sent; a key may occur several times.
    pub traits: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The source file, as the compiler knew it.
    pub file: Option<Cow<'a, str>>,
    /// The line of the method in that file, from 1.
    pub line: Option<u32>,
    /// The module: its path or its name.
    pub module: Option<Cow<'a, str>>,
}

impl<'a> Test<'a> {
    /// A test of which only the uid and the display name are known.
    pub fn new(uid: impl Into<Cow<'a, str>>, name: impl Into<Cow<'a, str>>) -> Self {
        Self { uid: uid.into(), name: name.into(), ..Self::default() }
    }

    /// The same facts, borrowed from nobody.
    pub fn into_owned(self) -> Test<'static> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        Test {
            uid: own(self.uid),
            name: own(self.name),
            namespace: self.namespace.map(own),
            class: self.class.map(own),
            method: self.method.map(own),
            traits: self.traits.into_iter().map(|(key, value)| (own(key), own(value))).collect(),
            file: self.file.map(own),
            line: self.line,
            module: self.module.map(own),
        }
    }

    /// The class with its namespace, if the class is known.
    pub fn full_class(&self) -> Option<Cow<'_, str>> {
        let class = self.class.as_deref()?;
        match self.namespace.as_deref() {
            // Some frameworks send the namespace with the class as well.
            Some(namespace)
                if !namespace.is_empty()
                    && !class.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('.')) =>
            {
                Some(Cow::Owned(format!("{namespace}.{class}")))
            }
            _ => Some(Cow::Borrowed(class)),
        }
    }

    /// `NAMESPACE.CLASS.METHOD`, if class and method are known: what `dotnet test` calls `FullyQualifiedName`.
    pub fn full_name(&self) -> Option<Cow<'_, str>> {
        let method = self.method.as_deref()?;
        let class = self.full_class()?;
        Some(Cow::Owned(format!("{class}.{method}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_not_repeated() {
        let mut test = Test::new("1", "t");
        (test.namespace, test.class, test.method) =
            (Some("A.B".into()), Some("A.B.C".into()), Some("M".into()));
        assert_eq!(test.full_name().unwrap(), "A.B.C.M");
        test.class = Some("A.Bc".into());
        assert_eq!(test.full_name().unwrap(), "A.B.A.Bc.M", "only a whole word is the namespace");
        test.namespace = Some("".into());
        assert_eq!(test.full_name().unwrap(), "A.Bc.M");
        test.method = None;
        assert_eq!(test.full_name(), None);
    }

    #[test]
    fn an_owned_test_is_the_same() {
        let uid = String::from("1");
        let mut test = Test::new(uid.as_str(), "t");
        test.traits = vec![("k".into(), "v".into())];
        test.line = Some(4);
        let owned = test.clone().into_owned();
        assert_eq!(owned, test);
    }
}
