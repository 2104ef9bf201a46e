//! The command line of dotnet-dump.

use std::ffi::OsString;

/// The options that select a process.
const TARGETS: [&str; 7] = ["-p", "-n", "--process-id", "--name", "--user", "--diagnostic-port", "--dport"];

/// Converts `dump collect` of dotnet-dump. Without an option that selects the target, `collect` may be the name of a process.
pub fn normalize_args(words: &mut Vec<OsString>) {
    let is_target = |word: &OsString| {
        let word = word.to_string_lossy();
        TARGETS.iter().any(|option| match option.len() {
            2 => word.starts_with(option),
            _ => word.split('=').next() == Some(option),
        })
    };
    if let [_, verb, second, rest @ ..] = &words[..]
        && verb == "dump"
        && second == "collect"
        && rest.iter().any(is_target)
    {
        words.remove(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collect_is_removed_before_an_option_that_selects_the_target() {
        for (given, converted) in [
            ("runtap dump collect -p 42", "runtap dump -p 42"),
            ("runtap dump collect -p42", "runtap dump -p42"),
            ("runtap dump collect --name=x --type mini", "runtap dump --name=x --type mini"),
            ("runtap dump collect", "runtap dump collect"),
            ("runtap dump collect --type mini", "runtap dump collect --type mini"),
            ("runtap trace collect -p 42", "runtap trace collect -p 42"),
        ] {
            let mut words: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            normalize_args(&mut words);
            assert_eq!(words, converted.split(' ').collect::<Vec<_>>());
        }
    }
}
