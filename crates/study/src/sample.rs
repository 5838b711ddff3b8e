//! Points of a unit cube, for studies of more axes than a grid can cover: Latin hypercube and Sobol.

use farpace_units::RandomStream;
use std::fmt;
use std::str::FromStr;

/// How points are chosen where there are too many for a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Latin hypercube: each axis is divided into as many parts as there are samples, each used once. McKay,
    /// Beckman, Conover 1979.
    LatinHypercube(u64),
    /// The Sobol sequence with the direction numbers of Joe and Kuo 2008, from its first point, the origin: a
    /// longer sample contains the shorter, and 2^k points have one in each of 2^k parts of every axis.
    /// Without the origin they do not (Owen 2020).
    Sobol(u64),
}

/// Most samples.
pub const MAX_SAMPLES: u64 = 1_000_000;

impl Sampling {
    /// How many points.
    pub const fn count(self) -> u64 {
        match self {
            Sampling::LatinHypercube(count) | Sampling::Sobol(count) => count,
        }
    }

    /// The points, each with a number in `0..1` for every axis.
    ///
    /// # Errors
    /// More axes than the sequence has.
    pub fn points(self, axes: usize, seed: u64) -> Result<Vec<Vec<f64>>, String> {
        match self {
            Sampling::LatinHypercube(count) => Ok(latin_hypercube(count, axes, seed)),
            Sampling::Sobol(count) => sobol(count, axes),
        }
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sampling::LatinHypercube(count) => write!(f, "lhs:{count}"),
            Sampling::Sobol(count) => write!(f, "sobol:{count}"),
        }
    }
}

impl FromStr for Sampling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no sample: write lhs:200 or sobol:256");
        let (kind, count) = text.split_once(':').ok_or_else(wrong)?;
        let count: u64 = count.trim().parse().map_err(|_| wrong())?;
        if count == 0 || count > MAX_SAMPLES {
            return Err(format!("`{text}`: samples are from 1 to {MAX_SAMPLES}"));
        }
        match kind.trim() {
            "lhs" => Ok(Sampling::LatinHypercube(count)),
            "sobol" => Ok(Sampling::Sobol(count)),
            _ => Err(wrong()),
        }
    }
}

fn latin_hypercube(count: u64, axes: usize, seed: u64) -> Vec<Vec<f64>> {
    let columns = (0..axes).map(|axis| {
        let mut random = RandomStream::new(seed, &format!("latin hypercube {axis}"));
        let mut cells: Vec<u64> = (0..count).collect();
        // Fisher and Yates.
        for n in (1..cells.len()).rev() {
            cells.swap(n, random.below(n as u64 + 1) as usize);
        }
        let place = |cell: u64| (cell as f64 + random.unit()) / count as f64;
        cells.into_iter().map(place).collect::<Vec<f64>>()
    });
    let columns: Vec<Vec<f64>> = columns.collect();
    (0..count as usize).map(|n| columns.iter().map(|column| column[n].min(BELOW_ONE)).collect()).collect()
}

/// The largest number below one.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// Bits of a coordinate.
const BITS: usize = 32;

/// Degree and coefficients of the primitive polynomial, and initial direction numbers, from the second axis
/// on: the beginning of the table new-joe-kuo-6.
const JOE_KUO: [(u32, u32, &[u32]); 20] = [
    (1, 0, &[1]),
    (2, 1, &[1, 3]),
    (3, 1, &[1, 3, 1]),
    (3, 2, &[1, 1, 1]),
    (4, 1, &[1, 1, 3, 3]),
    (4, 4, &[1, 3, 5, 13]),
    (5, 2, &[1, 1, 5, 5, 17]),
    (5, 4, &[1, 1, 5, 5, 5]),
    (5, 7, &[1, 1, 7, 11, 19]),
    (5, 11, &[1, 1, 5, 1, 1]),
    (5, 13, &[1, 1, 1, 3, 11]),
    (5, 14, &[1, 3, 5, 5, 31]),
    (6, 1, &[1, 3, 3, 9, 7, 49]),
    (6, 13, &[1, 1, 1, 15, 21, 21]),
    (6, 16, &[1, 3, 1, 13, 27, 49]),
    (6, 19, &[1, 1, 1, 15, 7, 5]),
    (6, 22, &[1, 3, 1, 15, 13, 25]),
    (6, 25, &[1, 1, 5, 5, 19, 61]),
    (7, 1, &[1, 3, 7, 11, 23, 15, 103]),
    (7, 4, &[1, 3, 7, 13, 13, 15, 69]),
];

fn sobol(count: u64, axes: usize) -> Result<Vec<Vec<f64>>, String> {
    let most = JOE_KUO.len() + 1;
    if axes > most {
        return Err(format!("{axes} axes; Sobol samples have at most {most}: use lhs"));
    }
    let directions: Vec<[u32; BITS]> = (0..axes).map(directions).collect();
    let mut state = vec![0u32; axes];
    let mut points = Vec::new();
    // Gray code order.
    for n in 0..count {
        points.push(state.iter().map(|s| f64::from(*s) / 4_294_967_296.0).collect());
        let bit = (n.trailing_ones() as usize).min(BITS - 1);
        for (state, directions) in state.iter_mut().zip(&directions) {
            *state ^= directions[bit];
        }
    }
    Ok(points)
}

fn directions(axis: usize) -> [u32; BITS] {
    let mut v = [0u32; BITS];
    let Some((degree, coefficients, initial)) = axis.checked_sub(1).and_then(|n| JOE_KUO.get(n)) else {
        for (bit, v) in v.iter_mut().enumerate() {
            *v = 1 << (BITS - 1 - bit);
        }
        return v;
    };
    let degree = *degree as usize;
    for bit in 0..BITS {
        v[bit] = if let Some(m) = initial.get(bit) {
            m << (BITS - 1 - bit)
        } else {
            let mut value = v[bit - degree] ^ (v[bit - degree] >> degree);
            for k in 1..degree {
                if (coefficients >> (degree - 1 - k)) & 1 == 1 {
                    value ^= v[bit - k];
                }
            }
            value
        };
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: samples that leave parts of an axis out.
    #[test]
    fn each_part_of_an_axis_has_one_sample() {
        let points = Sampling::LatinHypercube(50).points(4, 7).unwrap();
        for axis in 0..4 {
            let mut parts: Vec<u32> = points.iter().map(|p| (p[axis] * 50.0) as u32).collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..50).collect::<Vec<_>>(), "axis {axis}");
        }
        assert_ne!(points, Sampling::LatinHypercube(50).points(4, 8).unwrap());
        assert_eq!(points, Sampling::LatinHypercube(50).points(4, 7).unwrap());
    }

    /// Breaks: the Sobol sequence: its known beginning, and its law that 2^k points have one in each of 2^k
    /// parts of every axis, and of each pair of the first two. Two words of an axis have unequal shares then.
    #[test]
    fn the_sequence_is_sobols() {
        let points = Sampling::Sobol(256).points(21, 0).unwrap();
        assert_eq!(&points[0][..3], [0.0, 0.0, 0.0]);
        assert_eq!(&points[1][..3], [0.5, 0.5, 0.5]);
        assert_eq!(&points[2][..3], [0.75, 0.25, 0.25]);
        assert_eq!(&points[3][..3], [0.25, 0.75, 0.75]);
        assert_eq!(&points[4][..3], [0.375, 0.375, 0.625]);
        for k in 1..=8 {
            let count = 1usize << k;
            for axis in 0..21 {
                let mut parts: Vec<usize> =
                    points[..count].iter().map(|p| (p[axis] * count as f64) as usize).collect();
                parts.sort_unstable();
                assert_eq!(parts, (0..count).collect::<Vec<_>>(), "{count} points on axis {axis}");
            }
        }
        let mut squares: Vec<(u32, u32)> =
            points.iter().map(|p| ((p[0] * 16.0) as u32, (p[1] * 16.0) as u32)).collect();
        squares.sort_unstable();
        squares.dedup();
        assert_eq!(squares.len(), 256);
        assert_eq!(Sampling::Sobol(100).points(21, 0).unwrap()[..], points[..100], "it can be prolonged");
        assert!(Sampling::Sobol(4).points(22, 0).is_err());
    }

    /// Breaks: what people write behind --samples.
    #[test]
    fn samples_are_written_with_their_number() {
        assert_eq!("lhs:20".parse(), Ok(Sampling::LatinHypercube(20)));
        assert_eq!("sobol:8".parse::<Sampling>().unwrap().to_string(), "sobol:8");
        for text in ["lhs", "lhs:", "lhs:0", "halton:3", "sobol:-1", "lhs:99999999"] {
            assert!(text.parse::<Sampling>().is_err(), "{text}");
        }
    }
}
