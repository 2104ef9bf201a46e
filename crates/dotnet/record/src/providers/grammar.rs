//! Parses lists of `Name[:Keywords[:Level[:Arguments]]]`, separated by commas.

use runtap_diag_proto::{Level, MAX_FILTER_IDS};
use thiserror::Error;

use crate::providers::clr;

/// An error in a list of providers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A provider name is empty.
    #[error("missing provider name in '{text}'")]
    MissingName {
        /// The part without a name, or the whole list if the part is empty.
        text: String,
    },
    /// The keywords are not a hexadecimal number.
    #[error(
        "invalid keyword mask '{text}' for '{provider}': expected a hexadecimal number of up to 64 bits (for example 0x8001)"
    )]
    Keywords {
        /// The invalid keywords.
        text: String,
        /// The name of the provider.
        provider: String,
    },
    /// The level is neither a number nor a name.
    #[error(
        "'{text}' is not an event level; use 0 to 5, or LogAlways, Critical, Error, Warning, Informational, Verbose"
    )]
    Level {
        /// The invalid level.
        text: String,
    },
    /// Event ids are not numbers, or a range is reversed.
    #[error("'{text}' is not a list of event ids (for example 1,2,10-20)")]
    EventIds {
        /// The invalid ids.
        text: String,
    },
    /// A filter without a provider.
    #[error("'{text}' is not an event filter; use NAME=1,2,10-20, or NAME=!3 for all but these")]
    Filter {
        /// The invalid filter.
        text: String,
    },
    /// There are more ids than runtimes accept.
    #[error("'{text}' has more than {MAX_FILTER_IDS} event ids")]
    TooManyIds {
        /// The list of ids.
        text: String,
    },
    /// A quote is not closed.
    #[error("missing closing \" in '{text}'")]
    Quote {
        /// The whole list.
        text: String,
    },
    /// A keyword name is empty.
    #[error("missing CLR event keyword in '{text}'")]
    MissingClrKeyword {
        /// The list of keywords.
        text: String,
    },
    /// The name is not a keyword of the CLR provider.
    #[error("'{name}' is not a CLR event keyword{}", nearest.map_or_else(all_clr_keywords, |n| did_you_mean(Some(n))))]
    UnknownClrKeyword {
        /// The name.
        name: String,
        /// The most similar known name.
        nearest: Option<&'static str>,
    },
    /// The name is not a profile.
    #[error("'{name}' is not a profile{} Valid values: {}", nearest.map_or(".".to_owned(), |n| did_you_mean(Some(n))), all_profiles())]
    UnknownProfile {
        /// The name.
        name: String,
        /// The most similar known name.
        nearest: Option<&'static str>,
    },
}

fn all_profiles() -> String {
    let names: Vec<&str> = crate::providers::PROFILES.iter().map(|profile| profile.name).collect();
    names.join(", ")
}

fn all_clr_keywords() -> String {
    let names: Vec<&str> = clr::KEYWORDS.iter().map(|keyword| keyword.name).collect();
    format!(". Valid values: {}", names.join(", "))
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

const LEVELS: [(&str, Level); 7] = [
    ("LogAlways", Level::LogAlways),
    ("Critical", Level::Critical),
    ("Error", Level::Error),
    ("Warning", Level::Warning),
    ("Informational", Level::Informational),
    ("Info", Level::Informational),
    ("Verbose", Level::Verbose),
];

/// Parses a level: a number, or a name in any case. Numbers above 5 count as 5, as everywhere in .NET.
///
/// # Errors
/// [`ProviderError::Level`]
pub fn parse_level(text: &str) -> Result<Level, ProviderError> {
    if let Ok(number) = text.parse::<u32>() {
        return Ok(Level::from_number(number).unwrap_or(Level::Verbose));
    }
    let found = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, level)| *level).ok_or_else(|| ProviderError::Level { text: text.to_owned() })
}

/// Whether a level is a number above the highest level.
pub(crate) fn is_above_verbose(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|number| Level::from_number(number).is_none())
}

/// A provider as it was written. Omitted parts are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpec {
    /// The name. Case-sensitive.
    pub name: String,
    /// The keyword mask. `None` if omitted.
    pub keywords: Option<u64>,
    /// The level. `None` if omitted.
    pub level: Option<Level>,
    /// Whether the level was written as a number above the highest level.
    pub is_above_verbose: bool,
    /// The arguments for the provider (`key=value;key=value`).
    pub arguments: Option<String>,
}

impl ProviderSpec {
    /// Parses a list. Commas and colons inside double quotes belong to the arguments. The quotes are kept, because the runtime's own
    /// parser expects them.
    ///
    /// # Errors
    /// Returns the part that is invalid.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, ProviderError> {
        let mut parts = Vec::new();
        let mut quoted = false;
        let mut part = String::new();
        for c in text.chars() {
            quoted ^= c == '"';
            if c == ',' && !quoted {
                parts.push(std::mem::take(&mut part));
            } else {
                part.push(c);
            }
        }
        if quoted {
            return Err(ProviderError::Quote { text: text.to_owned() });
        }
        parts.push(part);
        if parts.iter().any(|part| part.trim().is_empty()) {
            return Err(ProviderError::MissingName { text: text.to_owned() });
        }
        parts.iter().map(|part| Self::parse(part)).collect()
    }

    fn parse(text: &str) -> Result<Self, ProviderError> {
        let mut fields = text.trim().splitn(4, ':');
        let name = fields.next().unwrap_or_default().trim();
        if name.is_empty() {
            return Err(ProviderError::MissingName { text: text.to_owned() });
        }
        let keywords = match fields.next().map(str::trim) {
            None | Some("") => None,
            Some(text) => Some(parse_keywords(name, text)?),
        };
        let (level, is_above_verbose) = match fields.next().map(str::trim) {
            None | Some("") => (None, false),
            Some(text) => (Some(parse_level(text)?), is_above_verbose(text)),
        };
        let arguments = fields.next().filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Self { name: name.to_owned(), keywords, level, is_above_verbose, arguments })
    }
}

/// Parses a hexadecimal mask, or names for the CLR provider as in [`clr::clr_keywords`].
fn parse_keywords(provider: &str, text: &str) -> Result<u64, ProviderError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // `from_str_radix` would accept a sign.
    if digits.bytes().all(|b| b.is_ascii_hexdigit())
        && let Ok(bits) = u64::from_str_radix(digits, 16)
    {
        return Ok(bits);
    }
    if provider == clr::CLR_PROVIDER && !text.starts_with("0x") {
        return clr::clr_keywords(text);
    }
    Err(ProviderError::Keywords { text: text.to_owned(), provider: provider.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> ProviderSpec {
        let mut list = ProviderSpec::parse_list(text).unwrap();
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    #[test]
    fn parts_may_be_omitted() {
        let spec = |keywords, level, arguments: Option<&str>| ProviderSpec {
            name: "A-B".into(),
            keywords,
            level,
            is_above_verbose: false,
            arguments: arguments.map(str::to_owned),
        };
        assert!(one("A-B:0:6").is_above_verbose && !one("A-B:0:5").is_above_verbose);
        assert_eq!(one("A-B"), spec(None, None, None));
        assert_eq!(one("A-B:0"), spec(Some(0), None, None));
        assert_eq!(one("A-B:ff:5"), spec(Some(0xff), Some(Level::Verbose), None));
        assert_eq!(
            one("A-B:0xFF:Warning:x=1;y=a:b"),
            spec(Some(0xff), Some(Level::Warning), Some("x=1;y=a:b"))
        );
        assert_eq!(one("A-B::5"), spec(None, Some(Level::Verbose), None));
        assert_eq!(one("A-B:::x=1"), spec(None, None, Some("x=1")));
        let above = ProviderSpec { is_above_verbose: true, ..spec(Some(1), Some(Level::Verbose), None) };
        assert_eq!(one("A-B:1:9"), above);
    }

    #[test]
    fn commas_in_quotes_belong_to_the_arguments() {
        let list = ProviderSpec::parse_list("L:4:5:FilterSpecs=\"A:Info,B:Warning\",M:1").unwrap();
        assert_eq!(list[0].arguments.as_deref(), Some("FilterSpecs=\"A:Info,B:Warning\""));
        assert_eq!(list[1].name, "M");
        assert!(matches!(ProviderSpec::parse_list("L:4:5:a=\"b"), Err(ProviderError::Quote { .. })));
    }

    #[test]
    fn clr_keyword_names_are_accepted_too() {
        assert_eq!(one("Microsoft-Windows-DotNETRuntime:gc+exception").keywords, Some(0x8001));
        // "a" is parsed as a hexadecimal number first.
        assert_eq!(one("Microsoft-Windows-DotNETRuntime:a").keywords, Some(10));
    }

    #[test]
    fn errors_are_described() {
        for (text, message) in [
            ("Microsoft-Windows-DotNETRuntime:gc+", "missing CLR event keyword in 'gc+'"),
            ("", "missing provider name in ''"),
            ("A,,B", "missing provider name in 'A,,B'"),
            ("A:1:4:a=b,", "missing provider name in 'A:1:4:a=b,'"),
            (":1", "missing provider name in ':1'"),
            (
                "A:-1",
                "invalid keyword mask '-1' for 'A': expected a hexadecimal number of up to 64 bits (for example 0x8001)",
            ),
            (
                "A:10000000000000000",
                "invalid keyword mask '10000000000000000' for 'A': expected a hexadecimal number of up to 64 bits (for example 0x8001)",
            ),
            (
                "A:1:loud",
                "'loud' is not an event level; use 0 to 5, or LogAlways, Critical, Error, Warning, Informational, Verbose",
            ),
        ] {
            assert_eq!(ProviderSpec::parse_list(text).unwrap_err().to_string(), message);
        }
    }
}
