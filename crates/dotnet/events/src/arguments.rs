//! Parsing the arguments of a session for a provider: `key=value;key=value`, where values may be in quotation marks.

/// Returns the value of a key. As in .NET, the last occurrence applies.
pub(crate) fn argument<'a>(arguments: &'a str, key: &str) -> Option<&'a str> {
    pairs(arguments).filter(|(name, _)| *name == key).last().map(|(_, value)| value)
}

/// Returns the keys and values; parts without `=` are ignored. Semicolons in quotation marks do not separate.
fn pairs(arguments: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut quoted = false;
    let parts = arguments.split(move |c| {
        quoted ^= c == '"';
        c == ';' && !quoted
    });
    parts.filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((key.trim(), bare.unwrap_or(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found() {
        let text = r#"SessionId=SHARED;Metrics="a;b,c";Empty=;NoValue;RefreshInterval=1;RefreshInterval=2"#;
        assert_eq!(argument(text, "SessionId"), Some("SHARED"));
        assert_eq!(argument(text, "Metrics"), Some("a;b,c"));
        assert_eq!(argument(text, "Empty"), Some(""));
        assert_eq!(argument(text, "NoValue"), None);
        assert_eq!(argument(text, "RefreshInterval"), Some("2"));
        assert_eq!(argument("", "x"), None);
        assert_eq!(argument("a=\"", "a"), Some("\""));
    }
}
