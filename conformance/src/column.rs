//! The columns: real runtimes, each with a program to run, and runtap's own server.

use runtap_diag_server::ProcessDescription;
use runtap_testkit::{Launch, RealRuntime, Skip, shared_dir};

use crate::ours;

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Core31,
    Net8,
    Net9,
    Net10,
    /// `runtap_diag_server` in a program that carries out every command.
    OwnServer,
}

impl Key {
    pub(crate) const ALL: [Self; 5] = [Self::Core31, Self::Net8, Self::Net9, Self::Net10, Self::OwnServer];

    /// The beginning of its heading.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core31 => ".NET Core",
            Self::Net8 | Self::Net9 | Self::Net10 => ".NET",
            Self::OwnServer => "runtap's server",
        }
    }

    /// The version of .NET whose commands it supports; 3 is .NET Core 3.0 and 3.1.
    pub(crate) fn release(self) -> u8 {
        match self {
            Self::Core31 => 3,
            Self::Net8 => 8,
            Self::Net9 => 9,
            Self::Net10 | Self::OwnServer => 10,
        }
    }
}

/// A column that can be measured on this system.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) key: Key,
    /// The exact version, for the heading.
    pub(crate) version: String,
    pub(crate) subject: Subject,
}

#[derive(Debug)]
pub(crate) enum Subject {
    Runtime(RealRuntime),
    OwnServer,
}

impl Column {
    /// Looks for the runtime of a column.
    pub(crate) fn find(key: Key) -> Result<Self, Skip> {
        if key == Key::OwnServer {
            let version = ProcessDescription::of_this_process().info.runtime_version.unwrap_or_default();
            return Ok(Self { key, version, subject: Subject::OwnServer });
        }
        let runtime = RealRuntime::available(key.release())?;
        let program = Program::on(&runtime)?.launch.spawn();
        let version = program.lines().iter().find_map(|line| line.strip_prefix("runtime "));
        let version = version.unwrap_or_default().to_owned();
        Ok(Self { key, version, subject: Subject::Runtime(runtime) })
    }

    /// The version that the runtime reports in ProcessInfo2.
    pub(crate) fn claimed(&self) -> &str {
        match self.subject {
            Subject::Runtime(_) => &self.version,
            Subject::OwnServer => ours::CLAIMED,
        }
    }

    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.key.name(), self.version)
    }
}

/// A program that writes a round of events on request.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) launch: Launch,
    pub(crate) about: About,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    /// The name of its entry assembly.
    pub(crate) name: &'static str,
    /// The provider of its events. Each round includes events 1, 2 and 3.
    pub(crate) provider: &'static str,
    /// Whether it prints a line when a session has enabled its events. .NET Core 3.1 enables them only after its reply.
    pub(crate) prints_enabled: bool,
}

impl Program {
    /// Returns the shared folder's program if the runtime can run one, otherwise the program that mono-mcs compiles.
    pub(crate) fn on(runtime: &RealRuntime) -> Result<Self, Skip> {
        if runtime.major() < 8 || shared_dir().is_none() {
            let about = About { name: "small", provider: RealRuntime::SMALL_PROVIDER, prints_enabled: true };
            return Ok(Self { launch: runtime.small_program()?, about });
        }
        // The program has to be running when its session is stopped.
        let launch = runtime.program("logs", &["1", "--stdin", "--linger", "600"])?;
        Ok(Self { launch, about: About { name: "logs", provider: "Demo-Types", prints_enabled: false } })
    }
}
