//! Dates of the proleptic Gregorian calendar, by their number of days since 1970.

/// The days from 1 March of the year 0 to 1 January 1970. A year that starts in March has its leap day at its end.
const EPOCH: i64 = 719_468;

/// Returns the year, month and day of a day since 1970.
pub fn date_of_day(days: i64) -> (i64, i64, i64) {
    // The calendar repeats every 400 years.
    let since_march = days.saturating_add(EPOCH);
    let (cycle, day) = (since_march.div_euclid(146_097), since_march.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 400 * cycle + year + i64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

/// Returns the day since 1970 of a date. `None` if the date does not exist, or the year is not in 1 to 65,535.
pub fn day_of_date(year: u16, month: u16, day: u16) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_in_month = match month {
        2 => 28 + u16::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) || year == 0 {
        return None;
    }
    let (year, month) = (i64::from(year), i64::from(month));
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + i64::from(day) - 1;
    Some(days - EPOCH)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates() {
        for (days, date) in
            [(0, (1970, 1, 1)), (-1, (1969, 12, 31)), (11_016, (2000, 2, 29)), (11_017, (2000, 3, 1))]
        {
            assert_eq!(date_of_day(days), date);
        }
        for (year, month, day) in [
            (2023, 2, 29),
            (1900, 2, 29),
            (2023, 0, 1),
            (2023, 13, 1),
            (2023, 4, 31),
            (2023, 1, 0),
            (0, 1, 1),
        ] {
            assert_eq!(day_of_date(year, month, day), None, "{year}-{month}-{day}");
        }
        assert!(day_of_date(2000, 2, 29).is_some());
        let _ = [i64::MIN, i64::MAX].map(date_of_day);
    }

    proptest! {
        #[test]
        fn dates_round_trip(days in -719_162_i64..23_217_000) {
            let (year, month, day) = date_of_day(days);
            let [year, month, day] = [year, month, day].map(|part| u16::try_from(part).unwrap());
            prop_assert_eq!(day_of_date(year, month, day), Some(days));
        }
    }
}
