//! Starting a command with an agent: the option of `java`, or the environment variable of all JVMs; and whether `java`
//! was built for musl, where the agent cannot be loaded and the JVM would not start.
//!
//! A file that cannot be read is not judged: for example, a script is started and reports its own errors.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use runtap_os::objfile::{ReadCache, elf};

use crate::agent::AgentOptions;

/// The variable with options for every JVM that is started with it. Such a JVM prints that it has picked them up.
pub const JAVA_TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Returns whether a command starts `java` itself.
pub fn is_java(word: &OsStr) -> bool {
    Path::new(word).file_name().is_some_and(|name| name == "java")
}

/// Adds an agent to a command: after `java`, or else to the value of [`JAVA_TOOL_OPTIONS`], which is returned.
/// `variable` is the current value.
pub fn with_agent(
    words: Vec<OsString>,
    library: &Path,
    options: &AgentOptions,
    variable: Option<&OsStr>,
) -> (Vec<OsString>, Option<OsString>) {
    with_option(words, &agent_option(library, options), variable)
}

fn agent_option(library: &Path, options: &AgentOptions) -> OsString {
    let mut option = OsString::from("-agentpath:");
    option.push(library);
    option.push("=");
    option.push(options.as_str());
    option
}

fn with_option(
    mut words: Vec<OsString>,
    option: &OsStr,
    variable: Option<&OsStr>,
) -> (Vec<OsString>, Option<OsString>) {
    if words.first().is_some_and(|word| is_java(word)) {
        words.insert(1, option.to_owned());
        return (words, None);
    }
    // The JVM splits the variable at blanks and quotes; neither the path nor the options contain any.
    let mut value = variable.filter(|value| !value.is_empty()).map(OsStr::to_owned).unwrap_or_default();
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(option);
    (words, Some(value))
}

/// Returns the file of a program that was built for musl; `None` for any other program.
pub fn built_for_musl(program: &OsStr) -> Option<PathBuf> {
    let path = find_program(program, env::var_os("PATH").as_deref())?;
    let interpreter = interpreter(&path)?;
    let name = Path::new(OsStr::from_bytes(&interpreter)).file_name()?;
    name.as_bytes().starts_with(b"ld-musl-").then_some(path)
}

/// Returns the executable file that a command resolves to.
fn find_program(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(path?).map(|folder| folder.join(program)).find(is_program)
}

/// Returns the interpreter that a program requests; `None` if unknown.
fn interpreter(path: &Path) -> Option<Vec<u8>> {
    let file = ReadCache::new(File::open(path).ok()?);
    elf::interpreter(&file).ok()?.map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_added_after_java_or_to_the_variable() {
        let option = agent_option(Path::new("/tmp/a.so"), &AgentOptions::connecting_to("h", 1));
        assert_eq!(option, "-agentpath:/tmp/a.so=host=h,port=1");
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let (found, variable) = with_option(words("/opt/jdk/bin/java -jar x.jar"), "-a".as_ref(), None);
        assert_eq!((found, variable), (words("/opt/jdk/bin/java -a -jar x.jar"), None));
        for (before, after) in [(None, "-a"), (Some(""), "-a"), (Some("-Dx=1"), "-Dx=1 -a")] {
            let (found, variable) = with_option(words("mvn java"), "-a".as_ref(), before.map(OsStr::new));
            assert_eq!((found, variable), (words("mvn java"), Some(after.into())));
        }
    }

    #[test]
    fn the_loader_of_this_system_is_read() {
        let shell = find_program("sh".as_ref(), Some("/no/such:/bin:/usr/bin".as_ref())).unwrap();
        assert!(shell.ends_with("sh"));
        let requested = interpreter(&shell).unwrap();
        assert!(requested.starts_with(b"/lib"), "{}", String::from_utf8_lossy(&requested));
        let folder = tempfile::tempdir().unwrap();
        for bytes in
            [&b"#!/bin/sh\n"[..], b"", b"\x7fELF\x02\x01", &[b"\x7fELF\x02\x01", &[0xff; 90][..]].concat()]
        {
            let file = folder.path().join("java");
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(interpreter(&file), None);
            assert_eq!(built_for_musl(file.as_os_str()), None);
        }
    }
}
