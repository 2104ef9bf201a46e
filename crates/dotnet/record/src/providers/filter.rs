//! Parses event ids and event filters: `NAME=1,2,10-20`, `NAME=!3`.

use runtap_diag_proto::{EventFilter, MAX_FILTER_IDS};

use crate::providers::ProviderError;

/// Parses `ID[-ID][,…]`. Returns the distinct ids in the order given.
///
/// # Errors
/// [`ProviderError::EventIds`], or [`ProviderError::TooManyIds`] for more ids than a runtime accepts.
pub fn parse_event_ids(text: &str) -> Result<Vec<u32>, ProviderError> {
    let wrong = || ProviderError::EventIds { text: text.to_owned() };
    let mut ids: Vec<u32> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_no_number| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        // Check before memory is allocated: a range may be very long.
        if u64::from(last - first) + 1 + ids.len() as u64 > MAX_FILTER_IDS as u64 {
            return Err(ProviderError::TooManyIds { text: text.to_owned() });
        }
        ids.extend((first..=last).filter(|id| !ids.contains(id)).collect::<Vec<_>>());
    }
    Ok(ids)
}

/// Parses `NAME=[!]IDS`: only these events of a provider, or all but these with `!`.
///
/// # Errors
/// [`ProviderError::Filter`], or the errors of [`parse_event_ids`].
pub fn parse_event_filter(text: &str) -> Result<(&str, EventFilter), ProviderError> {
    let Some((name, ids)) = text.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
        return Err(ProviderError::Filter { text: text.to_owned() });
    };
    let filter = match ids.trim().strip_prefix('!') {
        Some(ids) => EventFilter::except(parse_event_ids(ids)?),
        None => EventFilter::only(parse_event_ids(ids)?),
    };
    Ok((name.trim(), filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_ranges() {
        assert_eq!(parse_event_ids("80").unwrap(), [80]);
        assert_eq!(parse_event_ids("1, 2,10-12,2,11").unwrap(), [1, 2, 10, 11, 12]);
        assert_eq!(parse_event_ids("4294967295").unwrap(), [u32::MAX]);
        assert_eq!(parse_event_ids("0-9999").unwrap().len(), 10_000);
        for text in ["", "x", "1,", "5-4", "-1", "1-", "4294967296", "!1"] {
            assert!(matches!(parse_event_ids(text), Err(ProviderError::EventIds { .. })), "{text}");
        }
        for text in ["0-10000", "0-4294967295", "0-9999,10001"] {
            assert!(matches!(parse_event_ids(text), Err(ProviderError::TooManyIds { .. })), "{text}");
        }
    }

    #[test]
    fn a_filter_includes_or_excludes_ids() {
        assert_eq!(parse_event_filter("A-B=1,2").unwrap(), ("A-B", EventFilter::only([1, 2])));
        assert_eq!(parse_event_filter("A-B = !3").unwrap(), ("A-B", EventFilter::except([3])));
        for text in ["A-B", "=1", "", "A-B=", "A-B=!"] {
            assert!(parse_event_filter(text).is_err(), "{text}");
        }
    }
}
