//! What to do about what stands in the way, where that is a command of ours: the libraries have the other words.

use std::ffi::OsStr;

use runtap_diag::Error;
use runtap_discover::Fix;
use runtap_os::shell;

use super::jvm;

/// One thing after the other.
pub(super) fn text(fixes: &[Fix]) -> String {
    fixes.iter().map(one).collect::<Vec<_>>().join("; then ")
}

/// The same after a look at a Java program, which may be one that can't be attached to.
pub(super) async fn text_after_a_look(fixes: &[Fix]) -> String {
    let mut texts = Vec::new();
    for fix in fixes {
        let instead = match fix {
            Fix::TraceJvm { pid } => jvm::instead_of_attaching(*pid).await,
            _ => None,
        };
        texts.push(instead.unwrap_or_else(|| one(fix)));
    }
    texts.join("; then ")
}

fn one(fix: &Fix) -> String {
    match fix {
        Fix::Text(text) => text.to_string(),
        Fix::ChooseAnother => "'runtap ps' lists the processes that can be tapped".to_owned(),
        Fix::Choose { pid } => format!("use -p {pid}"),
        Fix::AsUser { user } => {
            let user = user.as_deref().map(|user| format!("-u {} ", shell::word(user))).unwrap_or_default();
            format!("run it as that user or as root: sudo {user}{}", this_command())
        }
        Fix::AsRootOrInside => format!("run it as root (sudo {}), or inside that container", this_command()),
        Fix::ExamineAsRoot { pid: Some(pid) } => format!("root can see it: sudo runtap doctor {pid}"),
        Fix::ExamineAsRoot { pid: None } => "sudo runtap doctor".to_owned(),
        Fix::TraceJvm { pid } => format!(
            "trace it as a Java program: runtap jvm attach {pid} (or from its start: runtap jvm run -- java …)"
        ),
        Fix::Resume { pid, port: None } => format!("runtap resume {pid}"),
        Fix::Resume { pid, port: Some(port) } => format!(
            "runtap resume {pid} (or record it from its first event: runtap trace --diagnostic-port {})",
            shell::word([port.as_os_str(), OsStr::new(",listen")].join(OsStr::new("")))
        ),
    }
}

/// The command line of this process, to be run again with other rights.
fn this_command() -> String {
    let arguments = std::env::args_os().skip(1).map(shell::word);
    std::iter::once("runtap".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// What to do about an error of the client.
pub(super) fn hint(error: &Error) -> Option<String> {
    match error {
        Error::NoSocket { .. } => Some(
            "give the path of a diagnostic socket: 'runtap ps --format json' has those of all".to_owned(),
        ),
        error => error.hint().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process chooses its folders and its name, and root pastes what is suggested.
    #[test]
    fn what_a_process_is_called_is_no_command() {
        const NAME: &str = "/tmp/x $(touch it)'y";
        for fix in
            [Fix::AsUser { user: Some(NAME.to_owned()) }, Fix::Resume { pid: 42, port: Some(NAME.into()) }]
        {
            let fix = text(&[fix]);
            let (before, quoted) = fix.split_once('\'').unwrap_or_else(|| panic!("it is not quoted: {fix}"));
            assert!(!before.contains("touch") && quoted.contains(r"x $(touch it)'\''y"), "{fix}");
        }
    }
}
