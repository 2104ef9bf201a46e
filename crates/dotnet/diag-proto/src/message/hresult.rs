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
    BAD_ENCODING = 0x8013_1384, "the runtime could not read the request, or does not allow a value in it";
    UNKNOWN_COMMAND = 0x8013_1385, "the runtime does not know this command: it is too old";
    UNKNOWN_MAGIC = 0x8013_1386, "the runtime does not speak this version of the protocol";
    UNKNOWN_ERROR = 0x8013_1387, "an error that the runtime has no code for";
    E_FAIL = 0x8000_4005, "the command failed: no session left, no dump written, no information available";
    NOTSUPPORTED = 0x8013_1515, "this runtime was built without the feature";
    NOT_YET_AVAILABLE = 0x8013_135b, "the runtime is still suspended at startup";
    RUNTIME_UNINITIALIZED = 0x8013_1371, "the runtime has not started far enough";
    E_INVALIDARG = 0x8007_0057, "the runtime does not accept an argument of the command";
    PROFILER_ALREADY_ACTIVE = 0x8013_136a, "another profiler is loaded already";
    PROFILER_CANCEL_ACTIVATION = 0x8013_1375, "the profiler refused to be loaded";
    TYPELOAD = 0x8013_1522, "the assembly does not have the class that is needed";
    INSUFFICIENT_BUFFER = 0x8007_007a, "a buffer is too small";
    ENVVAR_NOT_FOUND = 0x8000_00cb, "there is no such environment variable";
    ENVVAR_NOT_FOUND_WIN32 = 0x8007_00cb, "there is no such environment variable";
    MOD_NOT_FOUND = 0x8007_007e, "the target could not load the library";
    PROC_NOT_FOUND = 0x8007_007f, "the library has no DllGetClassObject";
    CLASS_NOT_AVAILABLE = 0x8004_0111, "the library does not know this class id";
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
