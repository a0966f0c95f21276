//! Checks of a head's settings. Each names the key, and all of them come before any parameter is allocated.

use crate::error::{Error, Result};

/// The widest layer; a square matrix of this width takes a gigabyte.
const WIDEST: usize = 16_384;
/// The widest recurrent layer, whose gates multiply the matrix by four or more.
const WIDEST_RECURRENT: usize = 4096;
/// The most layers on top of each other.
const DEEPEST: usize = 64;
/// The most values of one weight matrix: eight gigabytes.
pub(crate) const LARGEST: usize = 1 << 31;

/// The error for a setting of a head.
pub(crate) fn setting(key: &'static str, expected: &'static str, value: impl ToString) -> Error {
    cladist_core::Error::setting(key, expected, value).into()
}

/// Refuses dropout rates outside [0, 1), by key.
pub(crate) fn check_rates(rates: &[(&'static str, f64)]) -> Result<()> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some((key, rate)) => Err(setting(key, "at least 0 and below 1", rate)),
        None => Ok(()),
    }
}

/// Refuses weights of loss terms below 0 or not finite, by key.
pub(crate) fn check_weights(weights: &[(&'static str, f64)]) -> Result<()> {
    match weights.iter().find(|(_, weight)| !(*weight >= 0.0 && weight.is_finite())) {
        Some((key, weight)) => Err(setting(key, "at least 0", weight)),
        None => Ok(()),
    }
}

/// Refuses layers without units or too wide for memory, by key.
pub(crate) fn check_widths(widths: &[(&'static str, usize)]) -> Result<()> {
    match widths.iter().find(|(_, width)| !(1..=WIDEST).contains(width)) {
        Some((key, width)) => Err(setting(key, "1 to 16384", width)),
        None => Ok(()),
    }
}

/// The same where 0 stands for something else: the encoder's width, or no layer.
pub(crate) fn check_width_or_none(key: &'static str, width: usize) -> Result<()> {
    if width > WIDEST { Err(setting(key, "0 to 16384", width)) } else { Ok(()) }
}

/// The same for the hidden layers of a perceptron.
pub(crate) fn check_hidden(lists: &[(&'static str, &[usize])]) -> Result<()> {
    for (key, widths) in lists {
        if widths.len() > DEEPEST || widths.iter().any(|width| !(1..=WIDEST).contains(width)) {
            return Err(setting(key, "at most 64 widths from 1 to 16384", format!("{widths:?}")));
        }
    }
    Ok(())
}

/// The same for the units of an LSTM or a GRU.
pub(crate) fn check_recurrent(key: &'static str, units: usize) -> Result<()> {
    if (1..=WIDEST_RECURRENT).contains(&units) { Ok(()) } else { Err(setting(key, "1 to 4096", units)) }
}

/// Refuses no layer at all and too many of them.
pub(crate) fn check_layers(key: &'static str, layers: usize) -> Result<()> {
    if (1..=DEEPEST).contains(&layers) { Ok(()) } else { Err(setting(key, "1 to 64", layers)) }
}

/// Refuses a setting whose largest weight matrix, of these sizes multiplied, does not fit in memory.
pub(crate) fn check_matrix(key: &'static str, value: impl ToString, sizes: &[usize]) -> Result<()> {
    let values = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    match values {
        Some(values) if values <= LARGEST => Ok(()),
        _ => Err(setting(key, "such that no weight matrix has more than 2147483648 values", value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_by_key() {
        let key = "head.key";
        for result in [
            check_rates(&[("head.other", 0.0), (key, 1.0)]),
            check_rates(&[(key, f64::NAN)]),
            check_weights(&[(key, -1.0)]),
            check_weights(&[(key, f64::INFINITY)]),
            check_widths(&[("head.other", WIDEST), (key, 0)]),
            check_widths(&[(key, WIDEST + 1)]),
            check_width_or_none(key, WIDEST + 1),
            check_hidden(&[("head.other", &[][..]), (key, &[1, 0][..])]),
            check_hidden(&[(key, &[1; DEEPEST + 1][..])]),
            check_recurrent(key, WIDEST_RECURRENT + 1),
            check_layers(key, 0),
            check_layers(key, DEEPEST + 1),
            check_matrix(key, 3, &[LARGEST, 3]),
            check_matrix(key, 3, &[usize::MAX, 3]),
        ] {
            let message = result.unwrap_err().to_string();
            assert!(message.starts_with("`head.key` must be "), "{message}");
        }
        check_rates(&[(key, 0.0)]).unwrap();
        check_weights(&[(key, 0.0)]).unwrap();
        check_width_or_none(key, 0).unwrap();
        check_hidden(&[(key, &[][..]), (key, &[WIDEST][..])]).unwrap();
        check_matrix(key, 3, &[LARGEST, 1]).unwrap();
    }
}
