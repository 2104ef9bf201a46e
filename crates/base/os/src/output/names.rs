//! Utilities for file names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Extensions of recordings and of files converted from them. Longer ones come first so that `.speedscope.json` wins
/// over `.json`.
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

/// Returns whether nothing exists at `path`, not even a dangling symbolic link.
pub fn is_free(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Maximum number of names to try for a new file.
pub const NAMES_TRIED: u32 = 100;

/// Returns the `n`-th name to try, counting from 1: `base`, `base_2`, `base_3` …, each followed by `extension`.
pub fn numbered(base: &Path, n: u32, extension: &str) -> PathBuf {
    match n {
        1 => with_extension(base, extension),
        n => with_extension(base, &format!("_{n}{extension}")),
    }
}

/// Returns `path` without its extension if it is one that runtap writes.
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

/// Appends `extension` to `path`. Dots in a program's name do not start an extension.
pub fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// Inserts `text` before the extension of `path`: one that runtap writes, or whatever follows the last dot. A path that
/// ends with a slash is returned unchanged.
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

/// Returns whether `path` is a regular file or does not exist.
pub fn is_regular(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |meta| meta.is_file())
}

/// Maximum length of a program's name within a file name, in bytes.
const LONGEST_NAME: usize = 100;

/// Converts the name of a program to one that is safe in a file name: without a leading dash or dot, and without
/// characters that shells interpret.
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

/// Returns whether no shell treats `c` specially.
pub fn is_plain_letter(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+')
}

/// Returns whether no shell treats the unquoted `word` specially, and it does not look like an option.
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
    fn file_names_contain_nothing_that_a_shell_interprets() {
        let names = ["Shop.Web", "--checkpoint-action=exec=id;#", "..", "a b$(id)/../x", "Größe+1"];
        let expected = ["Shop.Web", "_-checkpoint-action_exec_id__", "_.", "a_b__id__.._x", "Größe+1"];
        assert_eq!(names.map(plain_name), expected);
        assert!(plain_name(&"ä".repeat(1000)).len() <= LONGEST_NAME);
    }
}
