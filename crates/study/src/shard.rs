//! Parts of a study, for machines that share nothing while they run.

use std::fmt;
use std::str::FromStr;

/// One part of several of a study, for clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no shard: write 3/16, from 1/16 to 16/16");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Shard {
            number: number.trim().parse().map_err(|_| wrong())?,
            of: of.trim().parse().map_err(|_| wrong())?,
        };
        if shard.number == 0 || shard.number > shard.of { Err(wrong()) } else { Ok(shard) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// True if the run or point with this key is in the shard.
    pub(crate) fn has(self, key: &str) -> bool {
        let bits = key.get(..15).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        bits % u64::from(self.of) == u64::from(self.number - 1)
    }
}
