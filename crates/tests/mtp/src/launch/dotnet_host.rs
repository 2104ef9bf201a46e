//! Detection of errors of .NET's hosts, which are the launcher that is built beside each `.dll`, and `dotnet exec`.
//! Exit codes alone are ambiguous, because any program may use them.

use crate::event::HostError;

/// Returns the reason that the host printed to standard error, if it exited with the code for that reason.
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
    fn only_messages_of_a_host_are_recognized() {
        let missing = "The application to execute does not exist: '/a/it's here/b.dll'.\r\n";
        assert_eq!(error(154, missing), Some(HostError::NoApplication("/a/it's here/b.dll".to_owned())));
        assert_eq!([error(1, missing), error(154, "no\n"), error(154, "")], [None, None, None]);
        let none = "\nYou must install .NET to run this application.\n\nApp: /a/b\n";
        assert_eq!((error(131, none), error(150, none)), (Some(HostError::NoRuntime), None));
    }
}
