//! Whose code a frame is: what pictures show by colour.

use runtap_model::Frame;

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An address without a name.
    Unknown,
    /// The framework's: modules `System.*` and `Microsoft.*`.
    Framework,
    /// Everybody else's.
    Program,
}

impl Origin {
    pub(crate) fn of(frame: Frame<'_>) -> Self {
        let framework = |module: &str| {
            ["System", "Microsoft"].iter().any(|vendor| {
                module.strip_prefix(vendor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        if !frame.has_name() {
            Self::Unknown
        } else if frame.module.is_some_and(framework) {
            Self::Framework
        } else {
            Self::Program
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_tells_the_origin() {
        let of = |module, name| Origin::of(Frame { module, name });
        assert_eq!(of(Some("System.Private.CoreLib"), "A()"), Origin::Framework);
        assert_eq!(of(Some("Microsoft.Extensions.Hosting"), "A()"), Origin::Framework);
        assert_eq!(of(Some("System"), "A()"), Origin::Framework);
        assert_eq!(of(Some("SystemOfOurs"), "A()"), Origin::Program);
        assert_eq!(of(Some("app"), "A()"), Origin::Program);
        assert_eq!(of(None, "A()"), Origin::Program);
        assert_eq!(of(Some("System.Private.CoreLib"), "0x7f00"), Origin::Unknown);
    }
}
