//! What to do about what stands in the way, where that is a command of ours: the libraries have the other words.

use std::borrow::Cow;

use runtap_diag::Error;
use runtap_discover::Fix;
use runtap_transport::shell;

/// One thing after the other.
pub(super) fn text(fixes: &[Fix]) -> String {
    fixes.iter().map(one).collect::<Vec<_>>().join("; then ")
}

fn one(fix: &Fix) -> Cow<'static, str> {
    match fix {
        Fix::Text(text) => return text.clone(),
        Fix::ChooseAnother => return "'runtap ps' lists the processes that can be tapped".into(),
        Fix::Choose { pid } => format!("use -p {pid}"),
        Fix::AsUser { user: Some(user) } => {
            format!("run runtap as that user or as root: sudo -u {} runtap ps", shell::word(user))
        }
        Fix::AsUser { user: None } => return "run runtap as that user or as root: sudo runtap ps".into(),
        Fix::AsRootOrInside => return "run runtap as root (sudo runtap ps), or inside that container".into(),
        Fix::ExamineAsRoot { pid: Some(pid) } => format!("root can see it: sudo runtap doctor {pid}"),
        Fix::ExamineAsRoot { pid: None } => return "sudo runtap doctor".into(),
        Fix::Resume { pid, port: None } => format!("runtap resume {pid}"),
        Fix::Resume { pid, port: Some(port) } => {
            let mut listen = port.clone().into_os_string();
            listen.push(",listen");
            format!(
                "runtap resume {pid} (or record it from its first event: runtap trace --diagnostic-port {})",
                shell::word(listen)
            )
        }
    }
    .into()
}

/// What to do about an error of the client.
pub(super) fn hint(error: &Error) -> Option<String> {
    let hint = error.hint()?;
    let more = if matches!(error, Error::NoSocket { .. }) {
        ": 'runtap ps --format json' has those of all"
    } else {
        ""
    };
    Some(format!("{hint}{more}"))
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

    #[test]
    fn one_thing_after_the_other() {
        let fixes = [Fix::from("shorten it"), Fix::Resume { pid: 42, port: None }];
        assert_eq!(text(&fixes), "shorten it; then runtap resume 42");
    }
}
