//! The format of `java.util.Properties.store`, in which a JVM replies to `properties`. Text in another format is
//! kept unchanged: the properties are used only for display.

use std::collections::BTreeMap;

use runtap_model::order;

/// Parses keys and values. Lines that start with `#` or `!` are comments.
pub fn properties(text: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    order::to_map(lines.map(pair))
}

fn pair(line: &str) -> (String, String) {
    let mut escaped = false;
    let is_end = |character: char| {
        let ends = !escaped && matches!(character, '=' | ':');
        escaped = !escaped && character == '\\';
        ends
    };
    let (key, value) = match line.find(is_end) {
        Some(at) => (line.get(..at), line.get(at + 1..)),
        None => (Some(line), None),
    };
    (unescape(key.unwrap_or_default()), unescape(value.unwrap_or_default()))
}

fn unescape(text: &str) -> String {
    let mut units = Vec::new();
    let mut unit = [0; 2];
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let character = match character {
            '\\' => match rest.next() {
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    match u16::from_str_radix(&digits, 16) {
                        // This may be half of a surrogate pair, so UTF-16 is decoded at the end.
                        Ok(half) => units.push(half),
                        Err(_) => units.extend(digits.encode_utf16()),
                    }
                    continue;
                }
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend(character.encode_utf16(&mut unit).iter().copied());
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// Writes a property as `java.util.Properties.store` does.
    fn store(key: &str, value: &str) -> String {
        let escape = |text: &str, is_key: bool| {
            let mut out = String::new();
            for (index, character) in text.chars().enumerate() {
                match character {
                    ' ' if index == 0 || is_key => out.push_str("\\ "),
                    '\t' => out.push_str("\\t"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\u{c}' => out.push_str("\\f"),
                    '=' | ':' | '#' | '!' | '\\' => out.extend(['\\', character]),
                    ' '..='~' => out.push(character),
                    other => {
                        let mut units = [0; 2];
                        for unit in other.encode_utf16(&mut units) {
                            write!(out, "\\u{unit:04X}").unwrap();
                        }
                    }
                }
            }
            out
        };
        format!("{}={}\n", escape(key, true), escape(value, false))
    }

    #[test]
    fn a_reply_of_a_jvm_is_parsed() {
        let text = b"#Mon Nov 23 22:21:00 UTC 2026\njava.version=17.0.15\nline.separator=\\n\n\
            java.home=/opt/my\\:jdk\nuser.name=J\\u00FCrgen\nalone\n";
        let all = properties(text);
        let of = |key: &str| all.get(key).map(String::as_str);
        assert_eq!(of("java.version"), Some("17.0.15"));
        assert_eq!(of("line.separator"), Some("\n"));
        assert_eq!(of("java.home"), Some("/opt/my:jdk"));
        assert_eq!(of("user.name"), Some("J\u{fc}rgen"));
        assert_eq!(of("alone"), Some(""));
        assert_eq!(all.len(), 5);
    }

    proptest! {
        #[test]
        fn stored_properties_round_trip(key in "\\PC{1,12}", value: String) {
            let all = properties(store(&key, &value).as_bytes());
            prop_assert_eq!(all.into_iter().collect::<Vec<_>>(), [(key, value)]);
        }

        #[test]
        fn any_text_is_parsed(bytes: Vec<u8>) {
            prop_assert!(properties(&bytes).len() <= bytes.len());
        }
    }
}
