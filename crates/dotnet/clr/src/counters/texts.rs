//! Parses the texts in which the runtime joins tags and quantiles.

/// The maximum number of quantiles of a reading, and the maximum size of the text of a share in bytes.
const MAX_QUANTILES: usize = 32;
const MAX_SHARE: usize = 32;

/// The maximum size of a display name and of a unit in bytes.
const MAX_LABEL: usize = 1 << 10;

/// Parses `name=value` pairs joined by commas. A part without the sign continues the value before it: `route=/a,b`.
pub(super) fn tags(text: &str, sign: &str) -> Vec<(String, String)> {
    let mut tags = Vec::new();
    let mut last: Option<(String, String)> = None;
    for part in text.split(',') {
        match (part.split_once(sign), &mut last) {
            (Some((name, value)), _) => tags.extend(last.replace((name.to_owned(), value.to_owned()))),
            (None, Some((_, value))) => {
                value.push(',');
                value.push_str(part);
            }
            (None, None) if part.is_empty() => {}
            (None, None) => last = Some((part.to_owned(), String::new())),
        }
    }
    tags.extend(last);
    tags
}

/// Parses `0.5=51;0.95=96;0.99=100`. Empty for an interval without values. Shares outside 0 to 1 and repeated shares are ignored.
pub(super) fn quantiles(text: &str) -> Vec<(String, f64)> {
    let (mut shares, mut quantiles) = (Vec::new(), Vec::new());
    for part in text.split(';') {
        let Some((text, value)) = part.split_once('=').filter(|(text, _)| text.len() <= MAX_SHARE) else {
            continue;
        };
        let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
        let share = share.filter(|share| !shares.contains(share));
        if let (Some(share), Ok(value)) = (share, value.parse()) {
            shares.push(share);
            quantiles.push((text.to_owned(), value));
        }
        if quantiles.len() == MAX_QUANTILES {
            break;
        }
    }
    quantiles
}

/// Truncates a display name or a unit, which a program may choose without a limit.
pub(super) fn limited(mut text: String) -> String {
    if text.len() > MAX_LABEL {
        text.truncate(text.floor_char_boundary(MAX_LABEL));
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn tags_are_split() {
        assert_eq!(tags("", "="), of(&[]));
        assert_eq!(tags("shop=a,region=", "="), of(&[("shop", "a"), ("region", "")]));
        assert_eq!(tags("route=/a,b,q=1=2", "="), of(&[("route", "/a,b"), ("q", "1=2")]));
        assert_eq!(tags("odd", "="), of(&[("odd", "")]));
        assert_eq!(tags("owner:demo,kind:fixed", ":"), of(&[("owner", "demo"), ("kind", "fixed")]));
    }

    #[test]
    fn quantiles_are_split() {
        let parsed = quantiles("0.5=-1.5E+20;0.95=Infinity;0.99=x;y");
        assert_eq!(parsed, [("0.5".to_owned(), -1.5e20), ("0.95".to_owned(), f64::INFINITY)]);
        assert_eq!(quantiles(""), []);
    }

    #[test]
    fn quantiles_are_limited() {
        let parsed = quantiles("-0.1=1;1.1=2;NaN=3;inf=4;0=5;0.5=6;0.50=7;1=8");
        assert_eq!(
            parsed,
            [("0", 5.0), ("0.5", 6.0), ("1", 8.0)].map(|(share, value)| (share.to_owned(), value))
        );
        let many: Vec<_> = (0..100).map(|index| format!("0.{index:03}=1")).collect();
        assert_eq!(quantiles(&many.join(";")).len(), MAX_QUANTILES);
        assert_eq!(quantiles(&format!("0.{}=1", "0".repeat(MAX_SHARE))), []);
    }

    #[test]
    fn long_labels_are_truncated_at_a_character() {
        assert_eq!(limited("ms".to_owned()), "ms");
        let text = limited(format!("a{}", "é".repeat(MAX_LABEL)));
        assert_eq!((text.len(), text.chars().last()), (MAX_LABEL - 1, Some('é')));
    }
}
