//! Runs tools, without a shell. Sets the search path (the project's own tools first) and the environment of the tools;
//! errors contain the command line.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::output;

/// Folders below the workspace where `.ci/run` installs tools that the machine lacks.
const OWN_TOOLS: [&str; 2] = ["target/tools/bin", "target/tools/venv/bin"];

/// The number of lines of a log that an error shows.
const LAST_LINES: usize = 40;

/// The folder for temporary files of tools and tests, used instead of the machine's own temporary folder.
static TEMPORARY: OnceLock<PathBuf> = OnceLock::new();

/// Creates that folder; dropping the returned value removes it. Programs started by tests leave files behind when they
/// are killed.
pub fn temporary() -> Result<TempDir> {
    let folder =
        tempfile::Builder::new().prefix("runtap-").tempdir().context("cannot make a temporary folder")?;
    // Some tests start programs of another user. Only the owner of a file can remove it.
    #[cfg(unix)]
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777))
        .context("cannot open a temporary folder to others")?;
    TEMPORARY.get_or_init(|| folder.path().to_owned());
    Ok(folder)
}

/// The variable that gives the path of an already built JVM agent to builds of the program that embeds one.
pub const GIVEN_AGENT: &str = "RUNTAP_JVM_AGENT_LIBRARY";

static AGENT: OnceLock<PathBuf> = OnceLock::new();

/// Makes every following build embed this agent; otherwise each build would compile and optimize its own.
pub fn give_agent(library: PathBuf) {
    AGENT.get_or_init(|| library);
}

/// A command line that is being built.
#[derive(Debug)]
#[must_use = "a command line does nothing until it is run"]
pub struct Tool {
    command: Command,
    quiet: bool,
}

impl Tool {
    /// Creates a command for `program` that runs in the workspace's `root`.
    pub fn new(root: &Path, program: &str) -> Self {
        let search = search_path(root);
        let found =
            find_in(&search, program).map_or_else(|| OsString::from(program), PathBuf::into_os_string);
        let mut command = Command::new(found);
        command.current_dir(root).env("PATH", search).stdin(Stdio::null());
        if let Some(folder) = TEMPORARY.get() {
            command.env("TMPDIR", folder);
        }
        if let Some(library) = AGENT.get() {
            command.env(GIVEN_AGENT, library);
        }
        // Variables that cargo sets for xtask must not reach a cargo that builds something else.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let about_xtask = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
            if about_xtask.iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        Self { command, quiet: false }
    }

    /// The cargo that runs this xtask.
    pub fn cargo(root: &Path) -> Self {
        let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        Self::new(root, &cargo)
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: &[S]) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Uses another working folder; relative arguments refer to it.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Does not print the command line.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Runs it and passes its output through; an exit code other than 0 is an error.
    pub fn run(mut self) -> Result<()> {
        self.show();
        let line = self.line();
        let status = self.command.status().with_context(|| format!("cannot start `{line}`"))?;
        if !status.success() {
            bail!("`{line}` ended with {status}");
        }
        Ok(())
    }

    /// Runs it, passes its output through and returns its exit code; `None` after a signal.
    pub fn code(mut self) -> Result<Option<i32>> {
        self.show();
        let line = self.line();
        let status = self.command.status().with_context(|| format!("cannot start `{line}`"))?;
        Ok(status.code())
    }

    /// Runs it and returns what it printed on stdout; its stderr becomes part of the error.
    pub fn capture(mut self) -> Result<String> {
        self.show();
        let line = self.line();
        let output = self.command.output().with_context(|| format!("cannot start `{line}`"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`{line}` ended with {}: {}", output.status, said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it and writes all its output to `log`; the last lines of `log` become part of the error.
    pub fn run_logged(mut self, log: &Path) -> Result<()> {
        self.show();
        let line = self.line();
        let file = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        self.command.stdout(file.try_clone()?).stderr(file);
        let status = self.command.status().with_context(|| format!("cannot start `{line}`"))?;
        if !status.success() {
            let said = fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let end = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
            bail!("`{line}` ended with {status}; the end of {}:\n{end}", log.display());
        }
        Ok(())
    }

    /// Whether it can be started and exits with 0. Prints nothing.
    pub fn works(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn show(&self) {
        if !self.quiet {
            output::note(&format!("$ {}", self.line()));
        }
    }

    fn line(&self) -> String {
        let program = self.command.get_program();
        let program = Path::new(program).file_name().unwrap_or(program);
        let words = std::iter::once(program).chain(self.command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }
}

/// The path of `program`, searched in the same folders as [`Tool::new`] does.
pub fn find(root: &Path, program: &str) -> Option<PathBuf> {
    find_in(&search_path(root), program)
}

fn search_path(root: &Path) -> OsString {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let own = OWN_TOOLS.iter().map(|tools| root.join(tools));
    let all = own.filter(|path| path.is_dir()).chain(env::split_paths(&inherited));
    env::join_paths(all).unwrap_or(inherited)
}

fn find_in(search: &OsStr, program: &str) -> Option<PathBuf> {
    let suffix = env::consts::EXE_SUFFIX;
    let name = if program.ends_with(suffix) { program.to_owned() } else { format!("{program}{suffix}") };
    env::split_paths(search).map(|folder| folder.join(&name)).find(|path| path.is_file())
}
