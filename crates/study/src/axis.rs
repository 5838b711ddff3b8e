//! What is varied: a path into the scenario and the values it takes, as written behind `--vary`.

use crate::quantity::{QuantityKind, QuantityValue};
use thiserror::Error;

/// Most values of one axis.
pub const MAX_VALUES: usize = 10_000;

/// A path of the scenario and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// As in `--set`: `links.wan.delay`, `flows.*.sender.congestion`.
    pub path: String,
    values: Vec<AxisValue>,
}

/// One value, or a range of them.
#[derive(Clone, Debug, PartialEq)]
enum AxisValue {
    Word(String),
    Range { from: QuantityValue, to: QuantityValue, count: Option<usize>, logarithmic: bool },
}

/// Why a text is not an axis.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}`: {problem}")]
pub struct AxisError {
    /// The text.
    pub text: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl Axis {
    /// Reads `path=values`. Values are separated by commas. `5ms..300ms*7` stands for seven values from 5 ms
    /// to 300 ms at equal distances, `5ms..300ms*log7` for seven at equal ratios. `5ms..300ms` and
    /// `5ms..300ms*log` are ranges to draw samples from.
    ///
    /// # Errors
    /// Nothing before or behind the `=`, an empty value, or a range that is none.
    pub fn parse(text: &str) -> Result<Axis, AxisError> {
        let wrong = |problem: String| AxisError { text: text.to_owned(), problem };
        let Some((path, list)) = text.split_once('=') else {
            return Err(wrong("expected PATH=VALUES, as in links.wan.delay=5ms,20ms".into()));
        };
        let path = path.trim();
        if path.is_empty() {
            return Err(wrong("there is no path before the `=`".into()));
        }
        if list.trim().is_empty() {
            return Err(wrong("there are no values behind the `=`".into()));
        }
        let mut values = Vec::new();
        for word in split(list) {
            values.push(read(word.trim()).map_err(wrong)?);
        }
        let axis = Axis { path: path.to_owned(), values };
        let count = axis.values.iter().map(AxisValue::count).sum::<usize>();
        if count > MAX_VALUES {
            return Err(wrong(format!("{count} values; the limit is {MAX_VALUES}")));
        }
        let all = axis.grid();
        if let Some(twice) = all.iter().enumerate().find(|(n, v)| all[..*n].contains(v)) {
            return Err(wrong(format!("the value {} is there twice", twice.1)));
        }
        Ok(axis)
    }

    /// The values of a grid, in order. A range without a count has its two ends.
    pub fn grid(&self) -> Vec<String> {
        let mut all = Vec::new();
        for value in &self.values {
            match value {
                AxisValue::Word(word) => all.push(word.clone()),
                AxisValue::Range { from, to, logarithmic, .. } => {
                    let count = value.count();
                    let steps = count.saturating_sub(1).max(1);
                    let digits = from.digits(*to, steps as u64, *logarithmic);
                    let at = |n: usize| from.towards(*to, n as f64 / steps as f64, *logarithmic, digits);
                    all.extend((0..count).map(|n| at(n).to_string()));
                }
            }
        }
        all
    }

    /// The first range without a count, which only samples can use.
    pub fn uncounted(&self) -> bool {
        self.values.iter().any(|value| matches!(value, AxisValue::Range { count: None, .. }))
    }

    /// True if all values are of ranges on a logarithmic scale.
    pub fn is_logarithmic(&self) -> bool {
        self.values.iter().all(|value| matches!(value, AxisValue::Range { logarithmic: true, .. }))
    }

    /// The value at `share` (0 up to 1): each word and each range has an equal part. Of `steps` shares at
    /// equal distances, those of one range are different values, if the unit allows it.
    pub fn at(&self, share: f64, steps: u64) -> String {
        let place = share.clamp(0.0, 1.0) * self.values.len() as f64;
        let index = (place as usize).min(self.values.len().saturating_sub(1));
        match self.values.get(index) {
            Some(AxisValue::Range { from, to, logarithmic, .. }) => {
                let digits = from.digits(*to, steps, *logarithmic);
                from.towards(*to, place - index as f64, *logarithmic, digits).to_string()
            }
            Some(AxisValue::Word(word)) => word.clone(),
            None => String::new(),
        }
    }
}

impl AxisValue {
    fn count(&self) -> usize {
        match self {
            AxisValue::Word(_) => 1,
            AxisValue::Range { count, .. } => count.unwrap_or(2),
        }
    }
}

/// Splits at commas outside of brackets, braces and quotes.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0i32, None);
    for (at, c) in list.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            (',', None) if depth <= 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

fn read(word: &str) -> Result<AxisValue, String> {
    if word.is_empty() {
        return Err("a value is empty: there are two commas in a row, or one at an end".into());
    }
    let is_plain = !word.starts_with(['"', '\'', '[', '{']);
    let Some((from, rest)) = word.split_once("..").filter(|_| is_plain) else {
        return Ok(AxisValue::Word(word.to_owned()));
    };
    let (to, steps) = match rest.split_once('*') {
        Some((to, steps)) => (to.trim(), Some(steps.trim())),
        None => (rest.trim(), None),
    };
    let (logarithmic, count) = match steps {
        None => (false, None),
        Some(steps) => {
            let number = steps.strip_prefix("log");
            let logarithmic = number.is_some();
            let number = number.unwrap_or(steps).trim();
            if logarithmic && number.is_empty() {
                (true, None)
            } else {
                let count: usize = number.parse().map_err(|_| {
                    format!("`{steps}` is not a number of values: write 5ms..300ms*7 or 5ms..300ms*log7")
                })?;
                (logarithmic, Some(count))
            }
        }
    };
    if count == Some(0) {
        return Err(format!("the range {word} is empty: it has 0 values"));
    }
    if count == Some(1) {
        return Err(format!("the range {word} has one value: leave the range out, and write that value"));
    }
    let end = QuantityValue::parse(to).ok_or_else(|| not_a_number(word, to))?;
    let from = from.trim();
    let mut begin = QuantityValue::parse(from).ok_or_else(|| not_a_number(word, from))?;
    // 5..300 ms
    if begin.kind == QuantityKind::Number && end.kind != QuantityKind::Number {
        let unit = to.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_'));
        begin = QuantityValue::parse(&format!("{from} {unit}")).ok_or_else(|| not_a_number(word, from))?;
    }
    if begin.kind != end.kind {
        return Err(format!("the range {word} goes from one kind of quantity to another"));
    }
    if begin.base == end.base {
        return Err(format!("the range {word} is empty: both ends are {end}"));
    }
    if begin.base > end.base {
        return Err(format!("the range {word} goes downwards: write {end}..{begin}"));
    }
    if logarithmic && begin.base <= 0.0 {
        return Err(format!("the logarithmic range {word} must begin above zero"));
    }
    if count.is_some_and(|count| count > MAX_VALUES) {
        return Err(format!("the range {word} has more than {MAX_VALUES} values"));
    }
    Ok(AxisValue::Range { from: begin, to: end, count, logarithmic })
}

fn not_a_number(range: &str, end: &str) -> String {
    format!("`{end}` in the range {range} is not a number with a unit, like 5ms, 1e-4 or 100Mbit/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(text: &str) -> Vec<String> {
        Axis::parse(text).unwrap_or_else(|e| panic!("{e}")).grid()
    }

    /// Breaks: what people write behind --vary.
    #[test]
    fn lists_and_ranges() {
        assert_eq!(grid("a.b=cubic, bbr3,farpace"), ["cubic", "bbr3", "farpace"]);
        assert_eq!(grid("l.delay=5ms..20ms*4"), ["5 ms", "10 ms", "15 ms", "20 ms"]);
        assert_eq!(grid("l.rate=1..100 Mbit/s*log3"), ["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"]);
        assert_eq!(grid("l.loss=0,1e-5..1e-3*log3"), ["0", "1e-5", "0.0001", "0.001"]);
        assert_eq!(grid("f.count=1..9*3"), ["1", "5", "9"]);
        assert_eq!(grid("l.delay=100ms..100.3ms*4"), ["100 ms", "100.1 ms", "100.2 ms", "100.3 ms"]);
        assert_eq!(grid("l.delay=100ms..100.1ms*5")[1..3], ["100.025 ms", "100.05 ms"]);
        assert_eq!(grid(r#"t.taps=["a", "b"],[]"#), [r#"["a", "b"]"#, "[]"]);
        assert_eq!(grid(r#"title="a, b..c",'x'"#), [r#""a, b..c""#, "'x'"]);
        assert_eq!(Axis::parse(" a.b = 1").unwrap().path, "a.b");
    }

    /// Breaks: samples: each word and each range has an equal share, and a range is drawn from all over.
    #[test]
    fn samples_of_an_axis() {
        let axis = Axis::parse("l.loss=0,1e-4..1e-2*log").unwrap();
        assert!(axis.uncounted());
        assert_eq!([0.0, 0.49, 0.5, 0.75].map(|share| axis.at(share, 100)), ["0", "0", "0.0001", "0.001"]);
        assert!(!axis.is_logarithmic() && Axis::parse("a=1..9*log").unwrap().is_logarithmic());
    }

    /// Breaks: a mistake behind --vary makes a study of something else, or gets no answer.
    #[test]
    fn mistakes_are_named() {
        for (text, problem) in [
            ("a.b", "expected PATH=VALUES"),
            ("=1", "no path"),
            ("a=", "no values"),
            ("a=1,,2", "empty"),
            ("a=1,", "empty"),
            ("a=5ms..5ms*3", "both ends"),
            ("a=5ms..1ms*3", "downwards: write 1 ms..5 ms"),
            ("a=5ms..9ms*0", "0 values"),
            ("a=5ms..9ms*1", "one value"),
            ("a=5ms..9ms*many", "not a number of values"),
            ("a=0..1*log3", "above zero"),
            ("a=5ms..9kB*3", "one kind"),
            ("a=low..high*3", "`high`"),
            ("a=1..2*99999", "more than 10000"),
            ("a=1,2,1", "twice"),
            ("a=1..5*3,3", "twice"),
        ] {
            let error = Axis::parse(text).expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
