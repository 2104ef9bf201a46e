//! The error codes of the protocol: HRESULTs, with names for known codes. Section "Errors" of the
//! specification; the conditions were measured on .NET 8, 9 and 10.

use std::fmt;

/// A Windows-style result code as runtimes send it. Any value can be represented; the top bit marks a failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hresult(pub u32);

macro_rules! hresults {
    ($($constant:ident = $value:literal, $meaning:literal;)*) => {
        impl Hresult {
            $(
                #[doc = concat!("`", stringify!($value), "`: ", $meaning, ".")]
                pub const $constant: Self = Self($value);
            )*

            /// Returns the name. `None` for an unknown code.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)*
                    _ => None,
                }
            }

            /// Returns a one-line description. `None` for an unknown code.
            pub fn meaning(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($meaning),)*
                    _ => None,
                }
            }
        }
    };
}

hresults! {
    OK = 0x0000_0000, "done";
    BAD_ENCODING = 0x8013_1384, "the request is malformed, or contains a value that the runtime does not allow";
    UNKNOWN_COMMAND = 0x8013_1385, "the runtime is too old to support this command";
    UNKNOWN_MAGIC = 0x8013_1386, "the runtime does not support this version of the protocol";
    UNKNOWN_ERROR = 0x8013_1387, "an error for which the runtime has no code";
    E_FAIL = 0x8000_4005, "the command failed";
    NOTSUPPORTED = 0x8013_1515, "this runtime was built without this feature";
    NOT_YET_AVAILABLE = 0x8013_135b, "the runtime is still suspended at startup";
    RUNTIME_UNINITIALIZED = 0x8013_1371, "the runtime is still starting and does not support the command yet";
    E_INVALIDARG = 0x8007_0057, "the runtime does not accept an argument of the command";
    PROFILER_ALREADY_ACTIVE = 0x8013_136a, "another profiler is already loaded";
    PROFILER_CANCEL_ACTIVATION = 0x8013_1375, "the profiler rejected the request to load it";
    TYPELOAD = 0x8013_1522, "the assembly does not contain the required class";
    INSUFFICIENT_BUFFER = 0x8007_007a, "a buffer is too small";
    ENVVAR_NOT_FOUND = 0x8000_00cb, "the environment variable does not exist";
    ENVVAR_NOT_FOUND_WIN32 = 0x8007_00cb, "the environment variable does not exist";
    MOD_NOT_FOUND = 0x8007_007e, "the target could not load the library";
    PROC_NOT_FOUND = 0x8007_007f, "the library has no DllGetClassObject";
    CLASS_NOT_AVAILABLE = 0x8004_0111, "the library does not support this class id";
}

impl Hresult {
    /// Returns whether the code is a failure.
    pub const fn is_failure(self) -> bool {
        self.0 >= 0x8000_0000
    }
}

impl fmt::Display for Hresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{:#010x} ({name})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Debug for Hresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_number_and_name() {
        assert_eq!(Hresult(0x8013_1385).to_string(), "0x80131385 (UNKNOWN_COMMAND)");
        assert_eq!(Hresult(0x8000_ffff).to_string(), "0x8000ffff");
        assert_eq!(Hresult(0x8000_ffff).meaning(), None);
        assert!(Hresult::E_FAIL.is_failure() && !Hresult::OK.is_failure() && !Hresult(1).is_failure());
    }
}
