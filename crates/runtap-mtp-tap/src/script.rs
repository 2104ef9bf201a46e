//! A script in the place of a test application: servers take any executable file for one.

use std::ffi::OsString;
use std::fs::File;
use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runtap_outputs::Draft;
use runtap_transport::shell;
use thiserror::Error;

/// A script that can't be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The system does not take it.
    #[error("can't write the script: {0}")]
    Io(#[from] io::Error),
    /// The file can't be made.
    #[error(transparent)]
    Output(#[from] runtap_outputs::Error),
    /// A word that no script can have.
    #[error("a word of the command has a NUL byte")]
    Nul,
    /// There is a file that is something else, such as the application itself.
    #[error("there is a file that is no script of runtap: it is not replaced")]
    Taken,
    /// Servers would have it run by `dotnet`.
    #[error("the name of a script can't end in .dll")]
    Dll,
}

/// What each script begins with, by which it is known again.
const HEAD: &[u8] = b"#!/bin/sh\n# Written by runtap mtp --write-module: it may be replaced.\nexec";

/// Writes an executable script that starts `words` with the arguments that it gets itself behind them. It is there when it
/// is whole. A script that was written in this way before is replaced, and no other file.
///
/// # Errors
/// It can't be written there, is another file, or must not have this name; or a word has a NUL byte.
pub fn write_module(path: &Path, words: &[OsString]) -> Result<(), ScriptError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dll")) {
        return Err(ScriptError::Dll);
    }
    let text = script(words)?;
    if !may_be_replaced(path)? {
        return Err(ScriptError::Taken);
    }
    let draft = Draft::of(path)?;
    let mut file = draft.file();
    file.write_all(&text)?;
    let (_, path) = draft.appear()?;
    // What it replaces may have had another mode.
    std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    Ok(())
}

/// Whether nothing is there, or a script of ours.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            let mut start = Vec::new();
            File::open(path)?.take(HEAD.len() as u64).read_to_end(&mut start)?;
            Ok(start == HEAD)
        }
        // A link may lead to the application, and nothing else that there is can be a module.
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn script(words: &[OsString]) -> Result<Vec<u8>, ScriptError> {
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_words_arrive_as_they_are() {
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
    fn nothing_but_a_script_of_ours_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (application, link) = (folder.path().join("application"), folder.path().join("link"));
        std::fs::write(&application, "#!/bin/sh\nexec something").unwrap();
        std::os::unix::fs::symlink(&application, &link).unwrap();
        let there = [&application, &link, &folder.path().to_owned()];
        for path in there {
            assert!(matches!(write_module(path, &["x".into()]), Err(ScriptError::Taken)), "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(&application).unwrap(), "#!/bin/sh\nexec something");
        let own = folder.path().join("own");
        write_module(&own, &["x".into()]).unwrap();
        write_module(&own, &["y".into()]).unwrap();
        assert!(std::fs::read_to_string(&own).unwrap().ends_with("exec y \"$@\"\n"));
    }

    #[test]
    fn what_no_server_would_start_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, word: &str| write_module(&folder.path().join(name), &[word.into()]);
        assert!(matches!(write("a.DLL", "x"), Err(ScriptError::Dll)));
        assert!(matches!(write("a", "x\0"), Err(ScriptError::Nul)));
        assert!(matches!(write("no/a", "x"), Err(ScriptError::Output(_))));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
