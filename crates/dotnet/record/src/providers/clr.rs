//! The keyword names of `Microsoft-Windows-DotNETRuntime`.

use runtap_wire::nearest;

use crate::providers::ProviderError;

/// The provider of the runtime's own events.
pub const CLR_PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";

/// A keyword of the CLR provider, as named by dotnet-trace's `--clrevents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClrKeyword {
    /// The name in lower case.
    pub name: &'static str,
    /// The bit in the keyword mask.
    pub bit: u64,
}

const fn k(name: &'static str, bit: u64) -> ClrKeyword {
    ClrKeyword { name, bit }
}

/// All keywords, sorted by bit. Two names may share a bit.
pub const KEYWORDS: &[ClrKeyword] = &[
    k("gc", 0x1),
    k("gchandle", 0x2),
    k("assemblyloader", 0x4),
    k("fusion", 0x4),
    k("loader", 0x8),
    k("jit", 0x10),
    k("ngen", 0x20),
    k("startenumeration", 0x40),
    k("endenumeration", 0x80),
    k("security", 0x400),
    k("appdomainresourcemanagement", 0x800),
    k("jittracing", 0x1000),
    k("interop", 0x2000),
    k("contention", 0x4000),
    k("exception", 0x8000),
    k("threading", 0x1_0000),
    k("jittedmethodiltonativemap", 0x2_0000),
    k("overrideandsuppressngenevents", 0x4_0000),
    k("type", 0x8_0000),
    k("gcheapdump", 0x10_0000),
    k("gcsampledobjectallocationhigh", 0x20_0000),
    k("gcheapsurvivalandmovement", 0x40_0000),
    k("gcheapcollect", 0x80_0000),
    k("managedheadcollect", 0x80_0000),
    k("managedheapcollect", 0x80_0000),
    k("gcheapandtypenames", 0x100_0000),
    k("gcsampledobjectallocationlow", 0x200_0000),
    k("perftrack", 0x2000_0000),
    k("stack", 0x4000_0000),
    k("threadtransfer", 0x8000_0000),
    k("debugger", 0x1_0000_0000),
    k("monitoring", 0x2_0000_0000),
    k("codesymbols", 0x4_0000_0000),
    k("eventsource", 0x8_0000_0000),
    k("compilation", 0x10_0000_0000),
    k("compilationdiagnostic", 0x20_0000_0000),
    k("methoddiagnostic", 0x40_0000_0000),
    k("typediagnostic", 0x80_0000_0000),
    k("jitinstrumentationdata", 0x100_0000_0000),
    k("profiler", 0x200_0000_0000),
    k("waithandle", 0x400_0000_0000),
    k("allocationsampling", 0x800_0000_0000),
];

/// Parses `gc+jit+exception`: names joined by `+`, in any case.
///
/// # Errors
/// Returns an error for an empty or unknown name, with the most similar known name.
pub fn clr_keywords(text: &str) -> Result<u64, ProviderError> {
    let mut bits = 0;
    for name in text.split('+') {
        let name = name.trim().to_ascii_lowercase();
        if name.is_empty() {
            return Err(ProviderError::MissingClrKeyword { text: text.to_owned() });
        }
        match KEYWORDS.iter().find(|keyword| keyword.name == name) {
            Some(keyword) => bits |= keyword.bit,
            None => {
                return Err(ProviderError::UnknownClrKeyword {
                    nearest: nearest(&name, KEYWORDS.iter().map(|keyword| keyword.name)),
                    name,
                });
            }
        }
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_in_any_case() {
        assert_eq!(clr_keywords("gc+JIT+Exception").unwrap(), 0x8011);
        assert_eq!(clr_keywords("fusion").unwrap(), clr_keywords("assemblyloader").unwrap());
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_most_similar() {
        let error = clr_keywords("gc+exceptoin").unwrap_err();
        assert_eq!(error.to_string(), "'exceptoin' is not a CLR event keyword; did you mean 'exception'?");
        let error = clr_keywords("gc++jit").unwrap_err();
        assert_eq!(error.to_string(), "missing CLR event keyword in 'gc++jit'");
        let error = clr_keywords("zzzzzzzz").unwrap_err().to_string();
        assert!(
            error.starts_with("'zzzzzzzz' is not a CLR event keyword. Valid values: gc, gchandle, "),
            "{error}"
        );
    }
}
