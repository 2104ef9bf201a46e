//! The supported options of the platform, the additional options of the application, and their help.

use runtap_mtp_proto::CommandLineOption;

use super::{LaunchError, value};

/// No limit on the number of values.
const UNLIMITED: usize = usize::MAX;

/// An option of an application, such as `--suite NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOption {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) is_hidden: bool,
    pub(crate) is_built_in: bool,
}

impl CommandOption {
    /// Creates an option without values. `name` has no dashes.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            least: 0,
            most: 0,
            is_hidden: false,
            is_built_in: false,
        }
    }

    /// Sets the minimum and maximum number of values. Values of repeated options are added up.
    #[must_use]
    pub fn values(mut self, least: usize, most: usize) -> Self {
        (self.least, self.most) = (least, most);
        self
    }

    /// Hides the option from help.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    fn arity(&self) -> String {
        match (self.least, self.most) {
            (0, 0) => "no value".to_owned(),
            (1, 1) => "1 value".to_owned(),
            (least, most) if least == most => format!("{least} values"),
            (least, UNLIMITED) => format!("at least {least} values"),
            (least, most) => format!("{least} to {most} values"),
        }
    }

    /// Converts to a protocol message.
    fn to_message(&self) -> CommandLineOption {
        let arity = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        CommandLineOption {
            name: Some(self.name.clone()),
            description: Some(self.description.clone()),
            is_hidden: Some(self.is_hidden),
            is_built_in: Some(self.is_built_in),
            obsolescence_message: None,
            provider_uid: None,
            minimum_arity: Some(arity(self.least)),
            maximum_arity: Some(arity(self.most)),
        }
    }
}

/// Name, minimum and maximum number of values, whether hidden, description.
const PLATFORM: &[(&str, usize, usize, bool, &str)] = &[
    ("?", 0, 0, true, "Show help."),
    ("config-file", 1, 1, false, "Specifies a configuration file for the application."),
    ("diagnostic", 0, 0, false, "Writes a diagnostic log."),
    ("diagnostic-file-prefix", 1, 1, false, "The prefix of the name of the diagnostic log; log by default."),
    ("diagnostic-output-directory", 1, 1, false, "Directory for diagnostic logs."),
    (
        "diagnostic-synchronous-write",
        0,
        0,
        true,
        "No effect: lines of the diagnostic log are always written immediately.",
    ),
    (
        "diagnostic-verbosity",
        1,
        1,
        false,
        "Level of the diagnostic log: Trace, Debug, Information, Warning, Error, Critical or None.",
    ),
    ("dotnet-test-http-endpoint", 1, 1, true, "The URL of the server of 'dotnet test'."),
    ("dotnet-test-http-token", 1, 1, true, "The token of the server of 'dotnet test'."),
    ("dotnet-test-pipe", 1, 1, true, "The pipe of 'dotnet test'."),
    ("dotnet-test-transport", 1, 1, true, "The transport of 'dotnet test': pipe or http."),
    ("filter-uid", 1, UNLIMITED, false, "Run only the tests with these ids."),
    ("h", 0, 0, true, "Show the command line help."),
    ("help", 0, 0, false, "Show the command line help."),
    ("ignore-exit-code", 1, 1, false, "Exit codes that count as success, separated by ';'."),
    ("info", 0, 0, false, "Show information about this application."),
    ("list-tests", 0, 0, false, "List the tests instead of running them."),
    ("maximum-failed-tests", 1, 1, false, "Stops the run after this number of failed tests."),
    ("minimum-expected-tests", 1, 1, false, "Fails the run if fewer tests are run."),
    ("results-directory", 1, 1, false, "Directory for files that the run produces."),
    ("server", 1, 1, true, "The kind of server that started the application."),
    ("timeout", 1, 1, false, "Stops the run after this time, such as 90s, 10m or 500ms."),
    (
        "zero-tests-policy",
        1,
        1,
        false,
        "Whether a run with only skipped tests succeeds: allow-skipped or strict.",
    ),
];

/// The platform's options and the additional options.
#[derive(Debug)]
pub(super) struct OptionSet {
    /// Sorted by name.
    options: Vec<CommandOption>,
}

impl OptionSet {
    pub(super) fn new(own: &[CommandOption]) -> Result<Self, LaunchError> {
        let platform = PLATFORM.iter().map(|&(name, least, most, is_hidden, description)| CommandOption {
            is_hidden,
            is_built_in: true,
            ..CommandOption::new(name, description).values(least, most)
        });
        let mut options: Vec<_> = platform.chain(own.iter().cloned()).collect();
        options.sort_by(|a, b| a.name.cmp(&b.name));
        match options.array_windows().find(|[a, b]| a.name == b.name) {
            Some([twice, _]) => Err(LaunchError::Reserved(twice.name.clone())),
            None => Ok(Self { options }),
        }
    }

    pub(super) fn to_messages(&self) -> Vec<CommandLineOption> {
        self.options.iter().map(CommandOption::to_message).collect()
    }

    fn get(&self, name: &str) -> Option<&CommandOption> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Parses `--name value…`, `--name=value` and `--name:value`. A value that starts with a dash needs one of the last
    /// two forms.
    pub(super) fn parse(&self, words: &[String]) -> Result<ParsedOptions, LaunchError> {
        let mut given: Vec<(&CommandOption, Vec<String>)> = Vec::new();
        let mut at = None;
        for word in words {
            let Some(name) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                let at: Option<usize> = at;
                let (_, values) = at
                    .and_then(|at| given.get_mut(at))
                    .ok_or_else(|| LaunchError::UnexpectedArgument(word.clone()))?;
                values.push(word.clone());
                continue;
            };
            let (name, attached) = match name.split_once(['=', ':']) {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let option = self.get(name).ok_or_else(|| LaunchError::UnknownOption(name.to_owned()))?;
            let place = given.iter().position(|(known, _)| known.name == option.name);
            let place = place.unwrap_or_else(|| {
                given.push((option, Vec::new()));
                given.len() - 1
            });
            at = Some(place);
            if let (Some(value), Some((_, values))) = (attached, given.get_mut(place)) {
                values.push(value);
            }
        }
        let mut all = Vec::new();
        for (option, values) in given {
            if !(option.least..=option.most).contains(&values.len()) {
                let (name, expected) = (option.name.clone(), option.arity());
                return Err(LaunchError::Arity { name, expected, given: values.len() });
            }
            all.push((option.name.clone(), option.is_built_in, values));
        }
        Ok(ParsedOptions(all))
    }
}

/// The specified options: name, whether it is a platform option, values.
#[derive(Debug)]
pub(super) struct ParsedOptions(Vec<(String, bool, Vec<String>)>);

impl ParsedOptions {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _, _)| known == name)
    }

    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let found = self.0.iter_mut().find(|(known, _, _)| known == name)?;
        Some(std::mem::take(&mut found.2))
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.texts(name)?.pop()
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, LaunchError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| *number > 0);
        number.map(Some).ok_or_else(|| value(name, &text, "expected a positive number"))
    }

    /// Returns the additional options of the application.
    pub(super) fn own(self) -> Vec<(String, Vec<String>)> {
        let own = self.0.into_iter().filter(|(_, is_built_in, _)| !is_built_in);
        own.map(|(name, _, values)| (name, values)).collect()
    }
}
