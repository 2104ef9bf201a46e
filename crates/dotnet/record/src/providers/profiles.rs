//! Named sets of providers.

use runtap_diag_proto::{Level, Provider};
use runtap_wire::nearest;

use crate::providers::{CLR_PROVIDER, ProviderError};

/// The provider whose only event is a sample of a thread's stack, once per millisecond for every managed thread.
const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// The keywords that Microsoft's client library enables by default: the bits that EventSource sets on its own events.
const EVENT_SOURCE_BITS: u64 = 0xF000_0000_0000;

/// The events of `DiagnosticSource` that become activities, with their properties. One line per event:
/// `Source/Event@Activity:-Property;…`, where `-` omits other properties.
const DATABASE_SPECS: &str = concat!(
    "FilterAndPayloadSpecs=\"",
    "SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandBefore@Activity1Start:-",
    "OperationId;ConnectionId;Command.CommandText;Command.Connection.DataSource;Command.Connection.Database",
    "\r\nSqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandAfter@Activity1Stop:-OperationId",
    "\r\nSqlClientDiagnosticListener/Microsoft.Data.SqlClient.WriteCommandBefore@Activity1Start:-",
    "OperationId;ConnectionId;Command.CommandText;Command.Connection.DataSource;Command.Connection.Database",
    "\r\nSqlClientDiagnosticListener/Microsoft.Data.SqlClient.WriteCommandAfter@Activity1Stop:-OperationId",
    "\r\nMicrosoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:-",
    "CommandId;IsAsync;Command.CommandText;Command.Connection.DataSource;Command.Connection.Database",
    "\r\nMicrosoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:-",
    "CommandId",
    "\""
);

struct Entry {
    provider: &'static str,
    keywords: u64,
    level: Level,
    arguments: Option<&'static str>,
}

/// A named set of providers.
#[derive(Clone, Copy)]
pub struct Profile {
    /// The name, as in dotnet-trace.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The required rundown keyword, if it differs from the standard one.
    pub rundown_keyword: Option<u64>,
    entries: &'static [Entry],
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Profile {
    /// Returns the providers.
    pub fn providers(&self) -> Vec<Provider> {
        let provider = |entry: &Entry| Provider {
            arguments: entry.arguments.map(str::to_owned),
            ..Provider::new(entry.provider, entry.keywords, entry.level)
        };
        self.entries.iter().map(provider).collect()
    }
}

const fn e(provider: &'static str, keywords: u64, level: Level) -> Entry {
    Entry { provider, keywords, level, arguments: None }
}

const COMMON: Entry = e(CLR_PROVIDER, 0x10_0003_801D, Level::Informational);
const SAMPLES: Entry = e(SAMPLE_PROFILER, EVENT_SOURCE_BITS, Level::Informational);

/// All profiles, with the names of dotnet-trace.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "dotnet-common",
        about: "lightweight .NET runtime events: GC, JIT, loader, exceptions, threading",
        rundown_keyword: None,
        entries: &[COMMON],
    },
    Profile {
        name: "dotnet-sampled-thread-time",
        about: "the stack of every managed thread, once a millisecond",
        rundown_keyword: None,
        entries: &[SAMPLES],
    },
    Profile {
        name: "cpu-sampling",
        about: "dotnet-common and dotnet-sampled-thread-time, under the name that older tools use",
        rundown_keyword: None,
        entries: &[COMMON, SAMPLES],
    },
    Profile {
        name: "gc-verbose",
        about: "collections, handles and sampled allocations",
        rundown_keyword: None,
        entries: &[e(CLR_PROVIDER, 0x8003, Level::Verbose)],
    },
    Profile {
        name: "gc-collect",
        about: "collections only, at very low cost",
        rundown_keyword: Some(0x1),
        entries: &[
            e(CLR_PROVIDER, 0x1, Level::Informational),
            e("Microsoft-Windows-DotNETRuntimePrivate", 0x1, Level::Informational),
        ],
    },
    Profile {
        name: "database",
        about: "commands of SqlClient and Entity Framework",
        rundown_keyword: None,
        entries: &[
            e("System.Threading.Tasks.TplEventSource", 0x80, Level::Informational),
            Entry {
                provider: "Microsoft-Diagnostics-DiagnosticSource",
                keywords: 0x3,
                level: Level::Verbose,
                arguments: Some(DATABASE_SPECS),
            },
        ],
    },
];

/// Returns the profile with this name, in any case.
///
/// # Errors
/// [`ProviderError::UnknownProfile`], with the most similar name.
pub fn profile(name: &str) -> Result<&'static Profile, ProviderError> {
    PROFILES.iter().find(|profile| profile.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        ProviderError::UnknownProfile {
            name: name.to_owned(),
            nearest: nearest(name, PROFILES.iter().map(|profile| profile.name)),
        }
    })
}
