//! Frames of the CLR in the model: methods or unnamed addresses, and their origin.

use runtap_model::{Frame, Origin};

/// Creates the frame of a method, or of an unnamed address (`0xADDR`).
pub(crate) fn clr<'a>(module: Option<&'a str>, name: &'a str) -> Frame<'a> {
    let frame = Frame::new(module, name);
    let origin = if module.is_some_and(is_framework) { Origin::Runtime } else { Origin::Own };
    if is_address(name) { frame.address() } else { frame.of(origin) }
}

/// Whether a module belongs to the class libraries: `System.*` and `Microsoft.*`. Packages by Microsoft have such names too.
pub(crate) fn is_framework(module: &str) -> bool {
    ["System", "Microsoft"].iter().any(|vendor| {
        module.strip_prefix(vendor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn is_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x");
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use runtap_model::FrameKind;

    use super::*;

    #[test]
    fn the_module_determines_the_origin() {
        let of = |module, name| clr(module, name).origin;
        assert_eq!(of(Some("System.Private.CoreLib"), "A()"), Origin::Runtime);
        assert_eq!(of(Some("Microsoft.Extensions.Hosting"), "A()"), Origin::Runtime);
        assert_eq!(of(Some("System"), "A()"), Origin::Runtime);
        assert_eq!(of(Some("SystemOfOurs"), "A()"), Origin::Own);
        assert_eq!(of(Some("app"), "A()"), Origin::Own);
        assert_eq!(of(None, "A()"), Origin::Own);
        assert_eq!(of(Some("System.Private.CoreLib"), "0x7f00"), Origin::Unknown);
    }

    #[test]
    fn addresses_are_not_names() {
        let is_named = |name| clr(None, name).kind == FrameKind::Code;
        assert_eq!(["0x7f", "0x", "0x7g", "A.B()", ""].map(is_named), [false, false, true, true, true]);
    }
}
