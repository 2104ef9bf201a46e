//! Texts of suggestions, with the commands of runtap.

use std::ffi::OsStr;

use runtap_diag::Error;
use runtap_discover::Fix;
use runtap_os::shell;

use crate::jvm::instead_of_attaching;

/// Formats several suggestions as consecutive steps.
pub fn text(fixes: &[Fix]) -> String {
    fixes.iter().map(format_fix).collect::<Vec<_>>().join("; then ")
}

/// Formats several suggestions, after checking whether the Java programs among them support attaching.
pub async fn text_after_checking_jvm(fixes: &[Fix]) -> String {
    let mut texts = Vec::new();
    for fix in fixes {
        let instead = match fix {
            Fix::TraceJvm { pid } => instead_of_attaching(*pid).await,
            _ => None,
        };
        texts.push(instead.unwrap_or_else(|| format_fix(fix)));
    }
    texts.join("; then ")
}

fn format_fix(fix: &Fix) -> String {
    match fix {
        Fix::Text(text) => text.to_string(),
        Fix::ChooseAnother => "'runtap ps' lists the processes that you can attach to".to_owned(),
        Fix::Choose { pid } => format!("use -p {pid}"),
        Fix::AsUser { user } => {
            // Root needs no option, and may reach processes whose user is unknown.
            let user = user.as_deref().filter(|user| *user != "root");
            let user = user.map(|user| format!("-u {} ", shell::word(user))).unwrap_or_default();
            format!("Run: sudo {user}{}", this_command())
        }
        Fix::AsRootOrInside => format!("Run: sudo {} (or run it inside that container)", this_command()),
        Fix::ExamineAsRoot { pid: Some(pid) } => format!("Run: sudo runtap doctor {pid}"),
        Fix::ExamineAsRoot { pid: None } => "Run: sudo runtap doctor".to_owned(),
        Fix::TraceJvm { pid } => format!(
            "to trace its calls: runtap jvm attach {pid} (or from its start: runtap jvm run -- java …)"
        ),
        Fix::TraceJvmFromStart => "start it with the agent instead: runtap jvm run -- java …".to_owned(),
        Fix::DetachJvm { pid } => format!("to end a trace: runtap jvm detach {pid}"),
        Fix::OriginalAgent => {
            "'runtap jvm hq' collects from the original Java agent: java -javaagent:bytefrog-tracer.jar=HOST:PORT"
                .to_owned()
        }
        Fix::CollectElsewhere { pid } => format!(
            "collect at an address that the program can reach, then attach with that address: runtap jvm hq --listen ADDR:PORT --insecure, \
             runtap jvm attach {pid} --hq ADDR:PORT"
        ),
        Fix::Resume { pid, port: None } => format!("runtap resume {pid}"),
        Fix::Resume { pid, port: Some(port) } => format!(
            "runtap resume {pid} (or record it from its first event: runtap trace --diagnostic-port {})",
            shell::word([port.as_os_str(), OsStr::new(",listen")].join(OsStr::new("")))
        ),
    }
}

/// Returns the command line of this process, to be run again as another user.
fn this_command() -> String {
    let arguments = std::env::args_os().skip(1).map(shell::word);
    std::iter::once("runtap".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns the next step after an error of the client, or `None` if unknown.
pub fn client_hint(error: &Error) -> Option<String> {
    match error {
        Error::NoSocket { .. } => {
            Some("Specify the path of a diagnostic socket; 'runtap ps --format json' lists them.".to_owned())
        }
        error => error.hint().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes choose their names and directories, and root may paste the suggested command.
    #[test]
    fn names_of_processes_are_quoted_for_the_shell() {
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
