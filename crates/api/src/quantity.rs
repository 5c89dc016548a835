//! Parses and formats Kubernetes quantities without loss: a sign, digits with a point, and a suffix or an exponent.

use std::cmp::Ordering;

/// The largest amount: 2^53 whole units, or thousandths of cpu. The sum of many such amounts is still far below 2^63.
pub const MAX_AMOUNT: i64 = 1 << 53;

/// Why a text is not a valid quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text has not the syntax of a quantity.
    #[error("is not a quantity; write a number with an optional suffix, such as 500m, 2, 1.5 or 4Gi")]
    Syntax,
    /// The quantity exceeds [`MAX_AMOUNT`].
    #[error("is too large; write at most 2^53")]
    Overflow,
    /// The quantity is negative.
    #[error("is negative; write 0 or more")]
    Negative,
}

/// Returns a quantity in billionths, the finest unit of Kubernetes; smaller fractions are rounded up, as in Kubernetes.
pub fn parse_nano(text: &str) -> Result<i128, QuantityError> {
    let Parsed { negative, digits, exponent, shift } = parse(text)?;
    let exponent = exponent + 9;
    let mut mantissa: i128 = 0;
    for digit in digits {
        mantissa = checked(mantissa.checked_mul(10).and_then(|value| value.checked_add(i128::from(digit))))?;
    }
    if mantissa == 0 {
        return Ok(0);
    }
    if negative {
        return Err(QuantityError::Negative);
    }
    mantissa = checked(mantissa.checked_mul(1 << shift))?;
    let value = match exponent.cmp(&0) {
        Ordering::Equal => mantissa,
        Ordering::Greater => {
            let factor = checked(10_i128.checked_pow(exponent.unsigned_abs()))?;
            checked(mantissa.checked_mul(factor))?
        }
        Ordering::Less => match 10_i128.checked_pow(exponent.unsigned_abs()) {
            Some(divisor) => rounded_up(mantissa, divisor),
            None => 1, // a positive number below one billionth is rounded up
        },
    };
    nano_to_units(value)?;
    Ok(value)
}

/// Rounds up to whole thousandths, as the API server does for pods and nodes. The result is in billionths, too.
pub fn round_to_milli(nano: i128) -> i128 {
    rounded_up(nano, 1_000_000) * 1_000_000
}

/// Returns whole units, rounded up as in Kubernetes.
pub fn nano_to_units(nano: i128) -> Result<i64, QuantityError> {
    bounded(rounded_up(nano, 1_000_000_000))
}

/// Returns thousandths (the unit for cpu), rounded up as in Kubernetes.
pub fn nano_to_milli(nano: i128) -> Result<i64, QuantityError> {
    bounded(rounded_up(nano, 1_000_000))
}

fn bounded(amount: i128) -> Result<i64, QuantityError> {
    let amount = i64::try_from(amount).map_err(|_| QuantityError::Overflow)?;
    if amount > MAX_AMOUNT { Err(QuantityError::Overflow) } else { Ok(amount) }
}

/// Formats an amount: cpu in cores or milli-CPU, bytes with the largest exact binary suffix, other resources as a number.
pub fn format(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        "memory" | "ephemeral-storage" => bytes(amount),
        _ if resource.starts_with("hugepages-") => bytes(amount),
        _ => amount.to_string(),
    }
}

fn bytes(amount: i64) -> String {
    let suffixes = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"];
    let exact = suffixes.iter().zip((1..=6).rev()).find(|(_, power)| amount != 0 && amount % (1 << (10 * power)) == 0);
    exact.map_or_else(|| amount.to_string(), |(suffix, power)| format!("{}{suffix}", amount >> (10 * power)))
}

fn rounded_up(value: i128, divisor: i128) -> i128 {
    value / divisor + i128::from(value % divisor != 0)
}

fn checked(value: Option<i128>) -> Result<i128, QuantityError> {
    value.ok_or(QuantityError::Overflow)
}

struct Parsed {
    negative: bool,
    digits: Vec<u8>,
    exponent: i32,
    shift: u32,
}

fn parse(text: &str) -> Result<Parsed, QuantityError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(QuantityError::Syntax);
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    let (power, shift) = suffix_value(suffix).ok_or(QuantityError::Syntax)?;
    let fraction_digits = i32::try_from(fraction.len()).map_err(|_| QuantityError::Overflow)?;
    Ok(Parsed { negative, digits, exponent: power.saturating_sub(fraction_digits), shift })
}

/// Returns the power of ten and the power of two of a suffix.
fn suffix_value(suffix: &str) -> Option<(i32, u32)> {
    let value = match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let limit = if exponent.starts_with('-') { -1000 } else { 1000 };
            return Some((exponent.parse().unwrap_or(limit).clamp(-1000, 1000), 0));
        }
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed_without_loss() {
        for (text, in_units, in_thousandths) in [
            ("0", 0, 0),
            ("2", 2, 2_000),
            ("+2", 2, 2_000),
            ("500m", 1, 500),
            ("0.5", 1, 500),
            (".5", 1, 500),
            ("5.", 5, 5_000),
            ("1.5", 2, 1_500),
            ("100u", 1, 1), // rounded up, never down
            ("1n", 1, 1),
            ("1k", 1_000, 1_000_000),
            ("1Ki", 1_024, 1_024_000),
            ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
            ("1e3", 1_000, 1_000_000),
            ("1E3", 1_000, 1_000_000),
            ("1.25e1", 13, 12_500),
            ("25e-1", 3, 2_500),
            ("1e-400", 1, 1),
            ("000000000000000000000000000000000000000000007", 7, 7_000),
            ("9007199254740992", MAX_AMOUNT, 0),
            ("-0", 0, 0),
        ] {
            let value = parse_nano(text).expect(text);
            assert_eq!(nano_to_units(value), Ok(in_units), "{text}");
            if in_thousandths != 0 || in_units == 0 {
                assert_eq!(nano_to_milli(value), Ok(in_thousandths), "{text}");
            }
        }
    }

    #[test]
    fn amounts_are_formatted_with_suffixes() {
        for (resource, amount, text) in [
            ("cpu", 500, "500m"),
            ("cpu", 2_000, "2"),
            ("memory", 4 << 30, "4Gi"),
            ("memory", 1_536, "1536"),
            ("memory", 0, "0"),
            ("nvidia.com/gpu", 8, "8"),
        ] {
            assert_eq!(format(resource, amount), text);
        }
    }

    #[test]
    fn invalid_quantities_are_refused() {
        for text in [
            "", "abc", "1x", "1 Gi", " 1", "1.2.3", "1mi", "1ki", "--1", "1e", "1e+", "1e1.5", "0x10", "1_000", "½",
            ".",
        ] {
            assert_eq!(parse_nano(text), Err(QuantityError::Syntax), "{text}");
        }
        for text in [
            "9007199254740993",
            "5Ei",
            "4611686018427387905",
            "9223372036854775807",
            "9223372036854775808",
            "12E",
            "8Ei",
            "1e19",
            "1e999999999999",
            "99999999999999999999999999999999999999999999",
        ] {
            assert_eq!(parse_nano(text), Err(QuantityError::Overflow), "{text}");
        }
        assert_eq!(nano_to_milli(parse_nano("9007199254740992").unwrap()), Err(QuantityError::Overflow));
        assert_eq!(parse_nano("-1"), Err(QuantityError::Negative));
    }
}
