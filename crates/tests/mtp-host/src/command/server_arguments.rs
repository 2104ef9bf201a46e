//! The arguments that a server appends to the command line of a test application.

use std::ffi::OsString;

/// Moves the arguments of a server from before `--` to after the command, where a generated script has them. Thus both `mtp
/// host --from tap "$@" -- COMMAND` and `mtp host --from tap -- COMMAND` work in hand-written scripts, and a server's `--help`
/// reaches the test application. `own_options` are the options of the subcommand, and whether each has a value.
pub fn move_server_arguments(words: &mut Vec<OsString>, own_options: &[(String, bool)]) {
    let Some(end) = words.iter().position(|word| word == "--") else { return };
    let before = words.get(..end).unwrap_or_default();
    let is_verb = |pair: &[OsString]| matches!(pair, [mtp, host] if mtp == "mtp" && host == "host");
    let Some(first) = before.windows(2).position(is_verb).map(|verb| verb + 2) else { return };
    let given = before.get(first..).unwrap_or_default();
    let name = |word: &OsString| word.to_string_lossy().split('=').next().unwrap_or_default().to_owned();
    let is_given = |wanted: &str| given.iter().any(|word| name(word) == wanted);
    if !is_given("--server") || is_given("--words") {
        return;
    }
    let (mut own_words, mut server_words) = (Vec::new(), Vec::new());
    let mut between = given.iter();
    while let Some(word) = between.next() {
        let known = own_options.iter().find(|(option, _)| *option == name(word));
        // Flags such as `-v`, `-vv` and `-q`.
        let letters = word.to_str().and_then(|word| word.strip_prefix('-'));
        let is_flag =
            letters.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| b"vq".contains(&c)));
        match known {
            Some((_, takes_value)) => {
                own_words.push(word.clone());
                if *takes_value && !word.to_string_lossy().contains('=') {
                    own_words.extend(between.next().cloned());
                }
            }
            None if is_flag => own_words.push(word.clone()),
            None => server_words.push(word.clone()),
        }
    }
    let command = words.len() - end - 1;
    own_words.push(format!("--words={command}").into());
    words.splice(first..end, own_words);
    words.extend(server_words);
}
