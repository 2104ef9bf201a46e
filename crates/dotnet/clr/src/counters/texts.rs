//! Parses the texts in which the runtime joins tags and quantiles.

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

/// Parses `0.5=51;0.95=96;0.99=100`. Empty for an interval without values.
pub(super) fn quantiles(text: &str) -> Vec<(String, f64)> {
    let parts = text.split(';').filter_map(|part| part.split_once('='));
    parts.filter_map(|(share, value)| Some((share.to_owned(), value.parse().ok()?))).collect()
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
}
