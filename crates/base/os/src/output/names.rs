//! Names of files: with and without extensions, free ones, the next to try.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Extensions of recordings and of what is made of them; the longest first, so that `.speedscope.json` is not taken for `.json`.
const EXTENSIONS: [&str; 10] = [
    ".firefox.json.gz",
    ".speedscope.json",
    ".chromium.json",
    ".perfetto-trace",
    ".nettrace",
    ".netperf",
    ".folded",
    ".pb.gz",
    ".svg",
    ".json",
];

/// Whether nothing has this name, not even a link to nothing.
pub fn is_free(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// How many names are tried for a file that must not be there yet.
pub const NAMES_TRIED: u32 = 100;

/// The n-th name to try, from 1: `base`, `base_2`, `base_3` …, and `extension`.
pub fn numbered(base: &Path, n: u32, extension: &str) -> PathBuf {
    match n {
        1 => with_extension(base, extension),
        n => with_extension(base, &format!("_{n}{extension}")),
    }
}

/// `path` without a known extension of ours.
pub fn without_extension(path: &Path) -> PathBuf {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return path.to_owned() };
    for extension in EXTENSIONS {
        if let Some(stem) = name.strip_suffix(extension)
            && !stem.is_empty()
        {
            return path.with_file_name(stem);
        }
    }
    path.to_owned()
}

/// `path` with `extension` behind its whole name: dots in a program's name are no extension.
pub fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// `path` with `text` before its extension: a known one of ours, else what follows the last dot.
///
/// A path with a slash at its end means a folder, and stays as it is.
pub fn insert_before_extension(path: &Path, text: &str) -> PathBuf {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return path.to_owned();
    }
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return with_extension(path, text);
    };
    let known = EXTENSIONS.iter().find_map(|known| name.strip_suffix(known).map(|stem| (stem, *known)));
    let any = || name.rfind('.').and_then(|dot| name.split_at_checked(dot));
    match known.or_else(any).filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => path.with_file_name(format!("{stem}{text}{extension}")),
        None => with_extension(path, text),
    }
}

/// Whether a file can be made under this name, or is there: no device, no pipe.
pub fn is_regular(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |meta| meta.is_file())
}

/// Longest name of a program in a file name, in bytes.
const LONGEST_NAME: usize = 100;

/// A program's name as a file may have it: a file that is called like an option, or like a command, is one to whoever says
/// `*` to a shell. A leading dot would hide it.
pub fn plain_name(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        let is_first = text.is_empty() && !c.is_alphanumeric();
        let c = if is_first || !is_plain_letter(c) { '_' } else { c };
        if text.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        text.push(c);
    }
    text
}

/// Whether a letter means nothing but itself to every shell.
pub fn is_plain_letter(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+')
}

/// Whether a word means nothing but itself to every shell, unquoted, and is no option.
pub fn is_plain_word(word: &str) -> bool {
    word.chars().all(is_plain_letter) && word.chars().next().is_some_and(|first| !matches!(first, '-' | '+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_acts_on_are_not_plain() {
        for plain in ["demo", "My.App-2_x", "käse", ".hidden", "a+b"] {
            assert!(is_plain_word(plain), "{plain}");
        }
        let acting = "$(x) `x` a;b a|b a&b a>b a<b a*b a?b a[b] {a,b} ~a a'b a\"b a\\b a#b !a -rf +x a:b a=b $x a\tb a\u{b}b";
        for acting in acting.split(' ').chain(["", "a b", "a\nb", "a\u{1b}[2Jb", "a\u{202e}b", "a\u{200b}b"])
        {
            assert!(!is_plain_word(acting), "{acting:?}");
        }
    }

    #[test]
    fn text_goes_before_the_extension() {
        let with =
            |path: &str| insert_before_extension(Path::new(path), ".7").to_str().unwrap().replace('\\', "/");
        assert_eq!(with("d.1/t.nettrace"), "d.1/t.7.nettrace");
        assert_eq!(with("t.speedscope.json"), "t.7.speedscope.json");
        assert_eq!(with("my.app.out"), "my.app.7.out");
        assert_eq!(with("d.1/t"), "d.1/t.7");
        assert_eq!(with(".hidden"), ".hidden.7");
        assert_eq!(with("d/"), "d/");
    }

    #[test]
    fn a_file_is_called_like_nothing_that_acts() {
        let names = ["Shop.Web", "--checkpoint-action=exec=id;#", "..", "a b$(id)/../x", "Größe+1"];
        let expected = ["Shop.Web", "_-checkpoint-action_exec_id__", "_.", "a_b__id__.._x", "Größe+1"];
        assert_eq!(names.map(plain_name), expected);
        assert!(plain_name(&"ä".repeat(1000)).len() <= LONGEST_NAME);
    }
}
