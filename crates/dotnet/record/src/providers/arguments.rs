//! Quotes the arguments of providers, `key=value;key="value"`. The runtime treats every `=` and `;` outside of quotes as the end of
//! a key or value. Source: dotnet/runtime, `ep-provider.c`.

/// The only key of `DiagnosticSource`, whose value may contain all of these characters.
const SPECS: &str = "FilterAndPayloadSpecs";

/// Returns the arguments with quotes around values that would be split without them. `None` if none would.
pub(crate) fn quoted(arguments: &str) -> Option<String> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let mut rest = Some(arguments);
    while let Some(text) = rest {
        let (pair, behind) = split(text);
        rest = behind;
        match pair.split_once('=') {
            // A part without `=` continues the value before it.
            None if !pair.trim().is_empty() => {
                let (_, value) =
                    pairs.last_mut().filter(|(_, value)| !value.is_empty() && !value.contains('"'))?;
                value.push(';');
                value.push_str(pair);
            }
            None => {}
            Some((SPECS, value)) if !text.contains('"') => {
                let whole = text.split_once('=').map_or(value, |(_, whole)| whole);
                pairs.push((SPECS, whole.to_owned()));
                rest = None;
            }
            Some((key, value)) => pairs.push((key, value.to_owned())),
        }
    }
    let is_torn = |value: &str| value.contains(['=', ';']) && !value.contains('"');
    if !pairs.iter().any(|(_, value)| is_torn(value)) {
        return None;
    }
    let pairs = pairs.iter().map(|(key, value)| {
        if is_torn(value) { format!("{key}=\"{value}\"") } else { format!("{key}={value}") }
    });
    Some(pairs.collect::<Vec<_>>().join(";"))
}

/// Splits off the first pair and its `;`.
fn split(text: &str) -> (&str, Option<&str>) {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        is_quoted ^= c == '"';
        if c == ';' && !is_quoted {
            return (text.get(..at).unwrap_or_default(), text.get(at + 1..));
        }
    }
    (text, None)
}

/// Whether the arguments contain a backslash and a letter, which may be meant as a line break but is not one for providers.
pub(crate) fn has_escapes(arguments: &str) -> bool {
    arguments.contains("\\n") || arguments.contains("\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_be_split_are_quoted() {
        for (written, sent) in [
            ("a=b=c", "a=\"b=c\""),
            ("a=b=c;d=e", "a=\"b=c\";d=e"),
            ("FilterSpecs=A:Info;B:Warning", "FilterSpecs=\"A:Info;B:Warning\""),
            ("FilterSpecs=A:Info;B:Warning;x=1", "FilterSpecs=\"A:Info;B:Warning\";x=1"),
            ("FilterAndPayloadSpecs=L/E:-x=A.B;y=C", "FilterAndPayloadSpecs=\"L/E:-x=A.B;y=C\""),
        ] {
            assert_eq!(quoted(written).as_deref(), Some(sent), "{written}");
            assert_eq!(quoted(sent), None, "{sent}");
        }
    }

    #[test]
    fn other_values_are_unchanged() {
        for text in [
            "",
            "a=b",
            "a=b;c=d",
            "a=\"b=c;d\";e=f",
            "a",
            "a=;b",
            "a=b;",
            "a=\"b\";c",
            "FilterAndPayloadSpecs=L/E",
        ] {
            assert_eq!(quoted(text), None, "{text}");
        }
        assert!(has_escapes(r"a=L/E\r\nM/F") && !has_escapes("a=b\nc"));
    }
}
