//! Descriptions of the failures of test applications, for the text output, the events and the reports.

use runtap_mtp::{HostError, ModuleFailure};

/// Describes a module's failure in one sentence.
pub fn describe(failure: &ModuleFailure) -> String {
    let all = explain(failure);
    // The second line of a broken rule has the details; further lines are evidence.
    all.lines().take(2).collect::<Vec<_>>().join(": ")
}

/// Describes a module's failure in full: a summary on the first line, details on the others.
pub fn explain(failure: &ModuleFailure) -> String {
    match failure {
        ModuleFailure::NotStarted(why) => format!("can't be started: {why}"),
        ModuleFailure::NoHandshake(code) => no_handshake(*code),
        ModuleFailure::NotHosted { exit, why } => {
            let why = match why {
                HostError::NoApplication(path) => format!(
                    "this program only starts {path}, which does not exist. Copy that file, and all files beside it, along \
                     with the program"
                ),
                HostError::NoRuntime => {
                    "it found no .NET runtime that it can use. Set DOTNET_ROOT, or name a host with \
                                         --dotnet"
                        .to_owned()
                }
            };
            format!("exited with {exit} before it connected (MTP033): {why}")
        }
        ModuleFailure::Incompatible(why) => {
            format!("speaks no version of the protocol that is known here: {why}")
        }
        ModuleFailure::Protocol(what) => format!("broke the protocol: {what}"),
        ModuleFailure::Died { running, exit } => {
            let how = match signal(*exit) {
                Some(signal) => signal,
                None if *exit == 0 => {
                    "ended with exit code 0 in the middle of its session (MTP030): something in it ends the process, such as Environment.Exit".to_owned()
                }
                // The platform uses these codes to end a session early; other codes come from the program.
                None if matches!(exit, 3 | 7 | 10 | 11 | 13) => {
                    format!("ended with exit code {exit} in the middle of its session{}", meaning(*exit))
                }
                None => format!("ended with exit code {exit} in the middle of its session"),
            };
            if running.is_empty() { how } else { format!("{how}\nwhile it ran {}", running.join(", ")) }
        }
        ModuleFailure::ExitCode(code) => match signal(*code) {
            Some(signal) => format!("{signal} after its tests"),
            None => format!("exited with {code}{}", meaning(*code)),
        },
        ModuleFailure::Unresponsive(why) => format!("was killed: {why}"),
        ModuleFailure::NotRun(which) => format!("has not run all of its tests: {which}"),
    }
}

/// Describes a process that exited before it introduced itself.
fn no_handshake(code: Option<i32>) -> String {
    let Some(code) = code else { return "never connected (MTP033)".to_owned() };
    if let Some(signal) = signal(code) {
        return format!("{signal} before it connected (MTP033)");
    }
    // The code may not be the platform's. Codes about test results are excluded, since no test has run.
    let meant = match code {
        3..=7 | 10..=12 => format!(". If it is one, the code means{}", meaning(code)),
        _ => String::new(),
    };
    format!(
        "exited with {code} without connecting (MTP033): not an application of Microsoft.Testing.Platform, or it ended before it \
         sent anything{meant}"
    )
}

/// Describes the signal that an exit code stands for; `None` if the code stands for no signal.
fn signal(code: i32) -> Option<String> {
    let name = match code {
        130 => "SIGINT",
        132 => "SIGILL",
        133 => "SIGTRAP",
        134 => return Some("crashed (exit code 134, SIGABRT)".to_owned()),
        135 => "SIGBUS",
        136 => "SIGFPE",
        137 => return Some("was killed (exit code 137, SIGKILL): perhaps because memory ran out".to_owned()),
        139 => return Some("crashed (exit code 139, SIGSEGV)".to_owned()),
        143 => "SIGTERM",
        _ => return None,
    };
    Some(format!("was ended by a signal (exit code {code}, {name})"))
}

/// Returns the platform's meaning of an exit code.
fn meaning(code: i32) -> &'static str {
    match code {
        2 => ": tests failed, but no test's last result is a failure",
        3 => ": its session was aborted",
        4 => ": its set-up is invalid",
        5 => ": it does not know an option",
        7 => ": its test host died",
        8 => ": it ran no test",
        9 => ": it ran fewer tests than it expects",
        10 => ": its test framework could not open or close a session",
        11 => ": the process that it depends on has ended",
        12 => ": it does not speak our version of the protocol",
        13 => ": it stopped at its own limit of failed tests",
        14 => ": its coverage is below its threshold",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_explained_only_if_they_may_be_the_platforms() {
        let before = explain(&ModuleFailure::NoHandshake(Some(3)));
        assert!(
            before.contains("not an application of")
                && before.contains("If it is one, the code means: its session")
        );
        for code in [2, 8, 9] {
            assert!(!explain(&ModuleFailure::NoHandshake(Some(code))).contains("means"), "{code}");
            let during = ModuleFailure::Died { running: vec!["B2".to_owned()], exit: code };
            let text = format!("ended with exit code {code} in the middle of its session\nwhile it ran B2");
            assert_eq!(explain(&during), text);
        }
        let died = ModuleFailure::Died { running: Vec::new(), exit: 7 };
        assert!(explain(&died).ends_with(": its test host died"));
    }
}
