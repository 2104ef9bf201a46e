//! The command line of a test application, in the order that `dotnet test` uses.
//!
//! `[dotnet exec] MODULE [--help | --list-tests] [--results-directory D] [--config-file F]
//! [--diagnostic-output-directory D] [user's arguments] [--filter-uid …] --server dotnettestcli TRANSPORT-OPTIONS`

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_mtp_proto::server::Mode;
use runtap_os::random_u64;

use crate::dotnet::root_variables;
use crate::module::{Module, ModuleKind};

/// The size in bytes up to which ids are passed on the command line, whose length the system limits. Longer lists use a
/// response file.
const MAX_INLINE_BYTES: usize = 16 << 10;

/// The environment variable that identifies the processes of one application.
const EXECUTION_ID: &str = "TESTINGPLATFORM_DOTNETTEST_EXECUTIONID";
const ATTEMPT: &str = "TESTINGPLATFORM_DOTNETTEST_ATTEMPTNUMBER";

/// The variable with the directory in which the platform creates `TestResults`. Without it, the platform uses the
/// application's directory, which may not be writable.
const WORKING_DIRECTORY: &str = "DOTNET_CLI_TEST_COMMAND_WORKING_DIRECTORY";
/// The variable with which the SDK prevents MSBuild from searching whole drives. Tests that build projects inherit it.
const MSBUILD_WILDCARDS: &str = "MSBUILDFAILONDRIVEENUMERATINGWILDCARD";

/// The platform's variable with exit codes that an application does not return.
const IGNORED_CODES: &str = "TESTINGPLATFORM_EXITCODE_IGNORE";

/// The options that all applications of a run share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplicationOptions {
    /// The `dotnet` host that runs managed modules. Native programs that need a runtime use the runtime of this host.
    pub dotnet: Option<PathBuf>,
    /// The directory for files that the applications produce.
    pub results_directory: Option<PathBuf>,
    /// The configuration file, `testconfig.json`.
    pub config_file: Option<PathBuf>,
    /// The directory for diagnostic logs of the platform.
    pub diagnostic_directory: Option<PathBuf>,
    /// Additional arguments, passed on unchanged.
    pub arguments: Vec<OsString>,
    /// Additional environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory. `None` for the current directory.
    pub working_directory: Option<PathBuf>,
}

impl ApplicationOptions {
    /// Returns these options for a listing that must not run tests: `runtap mtp host` then does not run a command that
    /// cannot list its tests.
    #[must_use]
    pub fn only_known_lists(&self) -> Self {
        let mut options = self.clone();
        options.environment.push(("RUNTAP_MTP_LIST".into(), "known".into()));
        options
    }

    /// Returns the exit codes that the applications are configured to ignore.
    pub fn ignored_codes(&self) -> Vec<i32> {
        let words: Vec<_> = self.arguments.iter().map(|word| word.to_string_lossy()).collect();
        let option = words.iter().enumerate().find_map(|(place, word)| {
            let value = word.trim_start_matches('-').strip_prefix("ignore-exit-code")?;
            match value.strip_prefix(['=', ':']) {
                Some(value) => Some(value.to_owned()),
                None if value.is_empty() => words.get(place + 1).map(ToString::to_string),
                None => None,
            }
        });
        let given = self.environment.iter().find(|(name, _)| name == IGNORED_CODES);
        let variable = given.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(IGNORED_CODES));
        let codes = option.or_else(|| Some(variable?.to_string_lossy().into_owned())).unwrap_or_default();
        codes.split(';').filter_map(|code| code.trim().parse().ok()).collect()
    }

    /// Returns whether the additional arguments restrict the tests that an application runs.
    pub fn restricts_tests(&self) -> bool {
        self.arguments.iter().map(|word| word.to_string_lossy()).any(|word| {
            word.starts_with('-') && (word.contains("filter") || word.contains("maximum-failed-tests"))
        })
    }
}

/// The parameters of one start of an application.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub module: &'a Module,
    pub mode: Mode,
    /// The ids of the tests to run. `None` for all tests.
    pub uids: Option<&'a [String]>,
    pub attempt: u32,
    /// The options with the address of the listener.
    pub listener: &'a [OsString],
    /// A directory for response files.
    pub scratch: &'a Path,
}

/// Returns the command, and the environment variable (`NAME=VALUE`) that identifies the processes that it starts.
pub(crate) fn command(options: &ApplicationOptions, start: &Start<'_>) -> io::Result<(Command, String)> {
    let mut command = match start.module.kind() {
        ModuleKind::Managed => {
            let dotnet = options.dotnet.clone().unwrap_or_else(|| "dotnet".into());
            let mut command = Command::new(dotnet);
            command.arg("exec").arg(start.module.path());
            command
        }
        ModuleKind::Executable => {
            let mut command = Command::new(start.module.path());
            command.envs(options.dotnet.iter().flat_map(|dotnet| root_variables(dotnet)));
            command
        }
    };
    match start.mode {
        Mode::Run => {}
        Mode::Discover => drop(command.arg("--list-tests")),
        Mode::Help => drop(command.arg("--help")),
    }
    let directories = [
        ("--results-directory", &options.results_directory),
        ("--config-file", &options.config_file),
        ("--diagnostic-output-directory", &options.diagnostic_directory),
    ];
    for (option, value) in directories {
        if let Some(value) = value {
            command.arg(option).arg(value);
        }
    }
    command.args(&options.arguments);
    if let Some(uids) = start.uids {
        filter(&mut command, uids, start.scratch)?;
    }
    command.args(["--server", "dotnettestcli"]).args(start.listener);
    if let Some(directory) = &options.working_directory {
        command.current_dir(directory);
        command.env(WORKING_DIRECTORY, std::path::absolute(directory)?);
    } else {
        command.env(WORKING_DIRECTORY, std::env::current_dir()?);
    }
    command.env(MSBUILD_WILDCARDS, "1");
    let id = format!("{:016x}{:016x}", random_u64(), random_u64());
    command.env(EXECUTION_ID, &id).env_remove(ATTEMPT);
    // Disable telemetry.
    command.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").env("TESTINGPLATFORM_TELEMETRY_OPTOUT", "1");
    if start.attempt > 1 {
        command.env(ATTEMPT, start.attempt.to_string());
    }
    command.envs(options.environment.iter().map(|(name, value)| (name, value)));
    Ok((command, format!("{EXECUTION_ID}={id}")))
}

/// Adds the filter for the tests to run. Long lists are written to a response file, except ids with a quotation mark,
/// which the platform would remove, or a line break, which would end the id.
fn filter(command: &mut Command, uids: &[String], scratch: &Path) -> io::Result<()> {
    let length: usize = uids.iter().map(|uid| uid.len() + 1).sum();
    command.arg("--filter-uid");
    if length <= MAX_INLINE_BYTES {
        command.args(uids);
        return Ok(());
    }
    let (inline, listed): (Vec<_>, Vec<_>) =
        uids.iter().partition(|uid| uid.contains(['"', '\n', '\r', '\0']));
    command.args(&inline);
    let mut lines = String::new();
    for uid in listed {
        lines.extend(["\"", uid, "\"\n"]);
    }
    let file = scratch.join(format!("uids-{:016x}.rsp", random_u64()));
    fs::write(&file, lines)?;
    let mut argument = OsString::from("@");
    argument.push(&file);
    command.arg(argument);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(
        options: &ApplicationOptions,
        module: &str,
        mode: Mode,
        uids: Option<&[String]>,
    ) -> Vec<String> {
        let scratch = tempfile::tempdir().unwrap();
        let module = Module::new(module);
        let start = Start {
            module: &module,
            mode,
            uids,
            attempt: 1,
            listener: &["--dotnet-test-pipe".into(), "/t/p".into()],
            scratch: scratch.path(),
        };
        let (command, _) = command(options, &start).unwrap();
        let all = [command.get_program()].into_iter().chain(command.get_args());
        let mut all: Vec<_> = all.map(|argument| argument.to_string_lossy().into_owned()).collect();
        for argument in &mut all {
            if let Some(file) = argument.strip_prefix('@') {
                *argument = format!("@[{}]", fs::read_to_string(file).unwrap().replace('\n', "⏎"));
            }
        }
        all
    }

    #[test]
    fn the_order_of_arguments_is_that_of_dotnet_test() {
        let options = ApplicationOptions {
            dotnet: Some("/d/dotnet".into()),
            results_directory: Some("/r".into()),
            config_file: Some("/c.json".into()),
            arguments: vec!["--suite".into(), "core".into()],
            ..ApplicationOptions::default()
        };
        assert_eq!(
            arguments(&options, "/m/a.dll", Mode::Discover, None).join(" "),
            "/d/dotnet exec /m/a.dll --list-tests --results-directory /r --config-file /c.json --suite core --server dotnettestcli --dotnet-test-pipe /t/p"
        );
        let uids = ["x y".to_owned()];
        assert_eq!(
            arguments(&ApplicationOptions::default(), "/m/a", Mode::Run, Some(&uids)),
            ["/m/a", "--filter-uid", "x y", "--server", "dotnettestcli", "--dotnet-test-pipe", "/t/p"]
        );
    }

    #[test]
    fn long_lists_are_written_to_a_response_file() {
        let mut uids: Vec<_> = (0..3000).map(|n| format!("case number {n}")).collect();
        uids.push("with \"marks\"".to_owned());
        let all = arguments(&ApplicationOptions::default(), "/m/a", Mode::Run, Some(&uids));
        assert_eq!(all.len(), 8);
        assert_eq!(all[2], "with \"marks\"");
        assert!(all[3].starts_with("@[\"case number 0\"⏎\"case number 1\"⏎"), "{}", all[3].len());
    }

    #[test]
    fn variables_of_an_outer_run_are_not_passed_on() {
        let module = Module::new("/m/a");
        let scratch = Path::new("/t/p");
        let start =
            Start { module: &module, mode: Mode::Run, uids: None, attempt: 2, listener: &[], scratch };
        let options = ApplicationOptions {
            environment: vec![("A".into(), "1".into())],
            ..ApplicationOptions::default()
        };
        let (command, mark) = command(&options, &start).unwrap();
        let variables: Vec<_> =
            command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?))).collect();
        assert!(variables.contains(&(ATTEMPT, "2")) && variables.contains(&("A", "1")));
        let here = std::env::current_dir().unwrap();
        assert!(variables.contains(&(WORKING_DIRECTORY, here.to_str().unwrap())), "{variables:?}");
        assert!(variables.contains(&(MSBUILD_WILDCARDS, "1")), "{variables:?}");
        assert!(variables.iter().any(|(name, value)| format!("{name}={value}") == mark));
    }
}
