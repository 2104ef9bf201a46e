//! Parses the command line arguments that change the environment of a process.

/// An argument without a variable name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' has no variable name (expected NAME=VALUE, or NAME to remove the variable)")]
pub struct NoName(String);

/// A change of one variable: `NAME=VALUE`, or `NAME` to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The name of the variable.
    pub name: &'a str,
    /// The new value. `None` removes the variable.
    pub value: Option<&'a str>,
}

impl<'a> Change<'a> {
    /// Parses an argument.
    ///
    /// # Errors
    /// If it has no name.
    pub fn parse(word: &'a str) -> Result<Self, NoName> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if name.is_empty() { Err(NoName(word.to_owned())) } else { Ok(Self { name, value }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        let change = |name, value| Change { name, value };
        assert_eq!(Change::parse("A=1").unwrap(), change("A", Some("1")));
        assert_eq!(Change::parse("A=").unwrap(), change("A", Some("")));
        assert_eq!(Change::parse("A=x=y z").unwrap(), change("A", Some("x=y z")));
        assert_eq!(Change::parse("A").unwrap(), change("A", None));
        for word in ["=1", "", "="] {
            assert!(Change::parse(word).is_err(), "{word}");
        }
    }
}
