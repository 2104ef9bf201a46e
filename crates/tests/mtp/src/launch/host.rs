//! What .NET's own hosts print when they can't start an application: the launcher that is built beside each `.dll`, and
//! `dotnet exec`. Their codes alone say nothing, since any program may end with them.

use crate::event::HostError;

/// The reason that the host gives on standard error, if it has ended with the code for that reason.
pub(super) fn error(code: i32, stderr: &str) -> Option<HostError> {
    let says = |start| stderr.lines().find_map(|line| line.trim_end().strip_prefix(start));
    match code {
        // LibHostAppRootFindFailure
        154 => {
            let path = says("The application to execute does not exist: '")?.strip_suffix("'.")?;
            Some(HostError::NoApplication(path.to_owned()))
        }
        // CoreHostLibMissingFailure
        131 => says("You must install .NET to run this application.").map(|_| HostError::NoRuntime),
        // FrameworkMissingFailure
        150 => says("You must install or update .NET to run this application.").map(|_| HostError::NoRuntime),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_host_says_counts() {
        let missing = "The application to execute does not exist: '/a/it's here/b.dll'.\r\n";
        assert_eq!(error(154, missing), Some(HostError::NoApplication("/a/it's here/b.dll".to_owned())));
        assert_eq!([error(1, missing), error(154, "no\n"), error(154, "")], [None, None, None]);
        let none = "\nYou must install .NET to run this application.\n\nApp: /a/b\n";
        assert_eq!((error(131, none), error(150, none)), (Some(HostError::NoRuntime), None));
    }
}
