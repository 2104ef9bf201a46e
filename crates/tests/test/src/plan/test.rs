//! The properties of a test that are known before it runs.

use std::borrow::Cow;

/// The properties of a test. All except the uid and the display name depend on the framework and on the version of the
/// platform: Microsoft.Testing.Platform sends the others since 1.9, and only on request.
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
    /// The id of the test, unique in its module, and stable across runs of the same file.
    pub uid: Cow<'a, str>,
    /// The display name, not necessarily unique.
    pub name: Cow<'a, str>,
    /// The namespace of the class.
    pub namespace: Option<Cow<'a, str>>,
    /// The name of the class, usually without its namespace (`TypeName` of the protocol); `+` separates nested classes.
    pub class: Option<Cow<'a, str>>,
    /// The name of the method.
    pub method: Option<Cow<'a, str>>,
    /// The traits as keys and values, in the order in which they were sent; a key may occur several times.
    pub traits: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The source file, as recorded by the compiler.
    pub file: Option<Cow<'a, str>>,
    /// The line of the method in that file, starting at 1.
    pub line: Option<u32>,
    /// The module: its path or its name.
    pub module: Option<Cow<'a, str>>,
}

impl<'a> Test<'a> {
    /// Creates a test with only a uid and a display name.
    pub fn new(uid: impl Into<Cow<'a, str>>, name: impl Into<Cow<'a, str>>) -> Self {
        Self { uid: uid.into(), name: name.into(), ..Self::default() }
    }

    /// Converts to an owned value.
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

    /// Returns the class with its namespace, or `None` if the class is unknown.
    pub fn full_class(&self) -> Option<Cow<'_, str>> {
        let class = self.class.as_deref()?;
        match self.namespace.as_deref() {
            // Some frameworks include the namespace in the class.
            Some(namespace)
                if !namespace.is_empty()
                    && !class.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('.')) =>
            {
                Some(Cow::Owned(format!("{namespace}.{class}")))
            }
            _ => Some(Cow::Borrowed(class)),
        }
    }

    /// Returns `NAMESPACE.CLASS.METHOD`, which `dotnet test` calls `FullyQualifiedName`. `None` if the class or the
    /// method is unknown.
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
    fn an_owned_test_is_equal() {
        let uid = String::from("1");
        let mut test = Test::new(uid.as_str(), "t");
        test.traits = vec![("k".into(), "v".into())];
        test.line = Some(4);
        let owned = test.clone().into_owned();
        assert_eq!(owned, test);
    }
}
