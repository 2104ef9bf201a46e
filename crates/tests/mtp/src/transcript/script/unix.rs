//! Scripts for `/bin/sh`.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runtap_os::shell;

use super::ScriptError;

/// The beginning of every script, which identifies scripts of runtap.
pub(super) const HEAD: &[u8] =
    b"#!/bin/sh\n# Written by runtap mtp --write-module: it may be replaced.\nexec";

pub(super) fn script(_path: &Path, words: &[OsString]) -> Result<Vec<u8>, ScriptError> {
    let mut text = HEAD.to_vec();
    for word in words {
        if word.as_bytes().contains(&0) {
            return Err(ScriptError::Nul);
        }
        text.push(b' ');
        text.extend(shell::in_script(word));
    }
    text.extend_from_slice(b" \"$@\"\n");
    Ok(text)
}

/// Makes the file executable for its owner only.
pub(super) fn make_executable(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::*;
    use super::*;

    #[test]
    fn words_are_passed_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it's a module");
        let odd = ["a b", "it's", "", "$(touch x)", "a\nb\u{1b}", "-n", "grün"].map(OsString::from);
        let mut words = vec!["printf".into(), "<%s>".into()];
        words.extend(odd.clone());
        write_module(&path, &words).unwrap();
        write_module(&path, &words).unwrap();
        let output = Command::new(&path).args(["more", "$x"]).output().unwrap();
        let expected = odd.iter().fold(String::new(), |all, word| all + "<" + word.to_str().unwrap() + ">");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected + "<more><$x>");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn only_scripts_of_runtap_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (application, link) = (folder.path().join("application"), folder.path().join("link"));
        std::fs::write(&application, "#!/bin/sh\nexec something").unwrap();
        std::os::unix::fs::symlink(&application, &link).unwrap();
        let other_files = [&application, &link, &folder.path().to_owned()];
        for path in other_files {
            assert!(matches!(write_module(path, &["x".into()]), Err(ScriptError::Taken)), "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(&application).unwrap(), "#!/bin/sh\nexec something");
        let own = folder.path().join("own");
        write_module(&own, &["x".into()]).unwrap();
        write_module(&own, &["y".into()]).unwrap();
        assert!(std::fs::read_to_string(&own).unwrap().ends_with("exec y \"$@\"\n"));
    }

    #[test]
    fn scripts_that_no_server_would_start_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, word: &str| write_module(&folder.path().join(name), &[word.into()]);
        assert!(matches!(write("a.DLL", "x"), Err(ScriptError::Dll)));
        assert!(matches!(write("a", "x\0"), Err(ScriptError::Nul)));
        assert!(matches!(write("no/a", "x"), Err(ScriptError::Output(_))));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
