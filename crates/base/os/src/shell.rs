//! Quotes words of commands that are shown to users, who paste them into a shell. Untrusted paths and names must stay
//! one word and have no effect. Uses POSIX quotes, and `$'…'` (bash, zsh, ksh, POSIX 2024) for characters that cannot
//! be displayed.

use std::ffi::OsStr;
use std::path::Path;

/// Quotes a word for display.
pub fn word(text: impl AsRef<OsStr>) -> String {
    let text = text.as_ref();
    let bytes = text.as_encoded_bytes();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+:@%,".contains(b);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let shows = |c: char| c.is_alphanumeric() || matches!(c, ' '..='~');
    match text.to_str() {
        Some(text) if text.chars().all(shows) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let escape = |b: &u8| match b {
                b'\'' | b'\\' => format!("\\{}", char::from(*b)),
                b' '..=b'~' => char::from(*b).to_string(),
                b => format!("\\{b:03o}"),
            };
            format!("$'{}'", bytes.iter().map(escape).collect::<String>())
        }
    }
}

/// Quotes a word for a script that any POSIX shell runs, preserving every byte. Not for display: `$'…'` is not
/// supported by all shells. Words cannot contain NUL.
pub fn in_script(text: impl AsRef<OsStr>) -> Vec<u8> {
    let bytes = text.as_ref().as_encoded_bytes();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+:@%,".contains(b);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let mut quoted = b"'".to_vec();
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Quotes a path so that no command takes it for an option.
pub fn path(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        return word(Path::new(".").join(path));
    }
    word(path)
}

/// Quotes paths and joins them with spaces.
pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> String {
    paths.into_iter().map(path).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_word_as_the_original() {
        let long = "x".repeat(5000);
        let words = [
            "/tmp/dotnet-diagnostic-1-2-socket",
            "",
            "a b",
            "it's",
            "''",
            "$(touch x);`touch x`&|<>*?[]{}~#!\"\\",
            "a\nb\t\u{1b}[2J",
            "\\'\n'",
            "grün 🦀",
            "\u{202e}dlrow\u{200b}",
            "-rf",
            "--",
            &long,
        ];
        for text in words {
            let shown = word(text);
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            for shell in ["bash", "sh"] {
                // Not every sh supports `$'…'`.
                if shell == "sh" && shown.starts_with('$') {
                    continue;
                }
                let script = format!("printf %s {shown}");
                // `printf` takes a word that starts with a dash for an option.
                let script = if text.starts_with('-') { format!("printf %s -- {shown}") } else { script };
                let Ok(told) = std::process::Command::new(shell).args(["-c", &script]).output() else {
                    continue;
                };
                let expected = if text.starts_with('-') { format!("--{text}") } else { text.to_owned() };
                assert_eq!(String::from_utf8_lossy(&told.stdout), expected, "{shell}: {shown}");
            }
        }
    }

    #[test]
    fn a_path_is_no_option() {
        let slash = std::path::MAIN_SEPARATOR;
        assert_eq!(path("-rf /"), format!("'.{slash}-rf /'"));
        assert_eq!(path("/-x"), "/-x");
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            assert_eq!(path(OsStr::from_bytes(b"/x\xff1'")), r"$'/x\3771\''");
        }
    }
}
