//! The hash of a file's content. Its cost depends on the data, not on the length of holes.
//!
//! BLAKE3 by itself cannot skip zeros, because the number of each chunk enters its hash: a hole of a terabyte
//! would cost as much as a terabyte of data. Here the file is divided into blocks of 4,096 bytes, and
//!
//! ```text
//! data    BLAKE3 over all blocks that have a byte other than zero, in order
//! map     BLAKE3 over the runs of blocks that have none: number of the first 8 bytes, how many 8 bytes, big endian
//! hash    BLAKE3's derive_key over length of the file 8 bytes, data 32, map 32
//! ```
//! The last block may be shorter. The hash depends on the bytes only, not on where a file system has holes.

use crate::message::Hash;

/// Block length; the page size of Linux and the block size of most file systems.
const BLOCK: usize = 4_096;
const CONTEXT: &str = "farpace transfer 2: content of a file";
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Hashes a content that arrives in pieces of any length.
#[derive(Clone, Default)]
pub struct ContentHasher {
    len: u64,
    data: blake3::Hasher,
    map: blake3::Hasher,
    /// Whole zero blocks since the last other block.
    zero_blocks: u64,
    /// True if the current block has a nonzero byte; its bytes are in `data` then.
    mixed: bool,
}

impl ContentHasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        let begun = self.begun();
        if begun > 0 {
            let (head, tail) = rest.split_at(rest.len().min(BLOCK - begun));
            self.continue_block(head);
            rest = tail;
        }
        // Blocks that are not zero are added together: BLAKE3 is fastest on long inputs.
        let mut mixed = 0;
        let (blocks, last) = rest.split_at(rest.len() - rest.len() % BLOCK);
        for (at, block) in blocks.chunks_exact(BLOCK).enumerate() {
            if is_zero(block) {
                self.whole(blocks.get(mixed..at * BLOCK).unwrap_or_default());
                mixed = (at + 1) * BLOCK;
                self.zero_blocks += 1;
                self.len = self.len.saturating_add(BLOCK as u64);
            }
        }
        self.whole(blocks.get(mixed..).unwrap_or_default());
        self.continue_block(last);
    }

    /// Adds zeros, at a cost independent of their number.
    pub fn zeros(&mut self, len: u64) {
        let begun = self.begun();
        let head = if begun == 0 { 0 } else { len.min((BLOCK - begun) as u64) };
        self.continue_block(ZEROS.get(..head as usize).unwrap_or_default());
        let blocks = (len - head) / BLOCK as u64;
        self.zero_blocks = self.zero_blocks.saturating_add(blocks);
        self.len = self.len.saturating_add(blocks.saturating_mul(BLOCK as u64));
        let last = (len - head) % BLOCK as u64;
        self.continue_block(ZEROS.get(..last as usize).unwrap_or_default());
    }

    /// The hash of the content so far.
    pub fn result(&self) -> Hash {
        let mut end = self.clone();
        // A short last block.
        if !end.mixed && end.begun() > 0 {
            end.zero_blocks += 1;
        }
        end.end_run(end.len.div_ceil(BLOCK as u64));
        let mut all = blake3::Hasher::new_derive_key(CONTEXT);
        all.update(&end.len.to_be_bytes());
        all.update(end.data.finalize().as_bytes()).update(end.map.finalize().as_bytes());
        *all.finalize().as_bytes()
    }

    /// Length of the current block.
    fn begun(&self) -> usize {
        (self.len % BLOCK as u64) as usize
    }

    /// Adds whole blocks, none of which is zero.
    fn whole(&mut self, blocks: &[u8]) {
        if !blocks.is_empty() {
            self.end_run(self.len / BLOCK as u64);
            self.data.update(blocks);
            self.len = self.len.saturating_add(blocks.len() as u64);
        }
    }

    /// Adds bytes to the current block, at most to its end.
    fn continue_block(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let begun = self.begun();
        if !self.mixed && !is_zero(bytes) {
            self.mixed = true;
            self.end_run(self.len / BLOCK as u64);
            self.data.update(ZEROS.get(..begun).unwrap_or_default());
        }
        if self.mixed {
            self.data.update(bytes);
        }
        self.len = self.len.saturating_add(bytes.len() as u64);
        if self.begun() == 0 {
            self.zero_blocks += u64::from(!self.mixed);
            self.mixed = false;
        }
    }

    /// Ends the run of zero blocks, if any, before this block.
    fn end_run(&mut self, block: u64) {
        if self.zero_blocks > 0 {
            self.map.update(&block.saturating_sub(self.zero_blocks).to_be_bytes());
            self.map.update(&self.zero_blocks.to_be_bytes());
            self.zero_blocks = 0;
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Most blocks show with their first byte that they are not zero.
    bytes.first() == Some(&0) && bytes == ZEROS.get(..bytes.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(bytes: &[u8]) -> Hash {
        let mut hasher = ContentHasher::default();
        hasher.update(bytes);
        hasher.result()
    }

    /// The definition, block by block, without optimisation.
    fn by_definition(bytes: &[u8]) -> Hash {
        let (mut data, mut map, mut run) = (Vec::new(), Vec::new(), None::<(u64, u64)>);
        for (n, block) in (0..).zip(bytes.chunks(BLOCK)) {
            if block.iter().all(|byte| *byte == 0) {
                run = Some(run.map_or((n, 1), |(first, count)| (first, count + 1)));
                continue;
            }
            data.extend_from_slice(block);
            if let Some((first, count)) = run.take() {
                map.extend([first.to_be_bytes(), count.to_be_bytes()].concat());
            }
        }
        if let Some((first, count)) = run {
            map.extend([first.to_be_bytes(), count.to_be_bytes()].concat());
        }
        let len = (bytes.len() as u64).to_be_bytes();
        let parts = [&len[..], blake3::hash(&data).as_bytes(), blake3::hash(&map).as_bytes()].concat();
        blake3::derive_key(CONTEXT, &parts)
    }

    #[derive(Clone, Debug)]
    enum ContentPiece {
        Noise(usize),
        Zeros(usize, bool),
    }

    fn piece() -> impl Strategy<Value = ContentPiece> {
        let len = || prop_oneof![0..20_usize, 4_090..4_102_usize, 0..30_000_usize];
        prop_oneof![
            len().prop_map(ContentPiece::Noise),
            (len(), any::<bool>()).prop_map(|(len, hole)| ContentPiece::Zeros(len, hole))
        ]
    }

    proptest! {
        /// Breaks: equal bytes have equal hashes, for any holes and any pieces.
        #[test]
        fn any_cut_gives_what_the_definition_says(pieces in proptest::collection::vec(piece(), 0..12)) {
            let (mut hasher, mut bytes) = (ContentHasher::default(), Vec::new());
            for piece in pieces {
                let from = bytes.len();
                match piece {
                    ContentPiece::Noise(len) => bytes.extend((0..len).map(|n| if n % 9_000 < 5_000 { 0 } else { n as u8 })),
                    ContentPiece::Zeros(len, _) => bytes.resize(from + len, 0),
                }
                match piece {
                    ContentPiece::Zeros(len, true) => hasher.zeros(len as u64),
                    _ => hasher.update(&bytes[from..]),
                }
                prop_assert_eq!(hasher.result(), by_definition(&bytes));
            }
        }
    }

    /// Breaks: different releases compute the same hash.
    #[test]
    fn the_hash_is_pinned() {
        let hex = |hash: Hash| blake3::Hash::from_bytes(hash).to_hex().to_string();
        let mut mixed = vec![7; 5_000];
        mixed.resize(20_000, 0);
        mixed.push(1);
        let pinned = [hash(b""), hash(b"farpace"), hash(&[0; 4_096]), hash(&mixed)].map(hex);
        let expected = [
            "967c1219ca97259da9e0a96764595d84b58214cce326c14a6917918bc905c28e",
            "ba121c5c6e1a4e41c2877ec964ed2057df915d043f8b249ad341aaad5f231406",
            "a8c5111c4b49f5074f46f1caf6aa0a47a7168803ed69ed2817258316dee5608e",
            "d24bce302eb6cdac42f5b1c5d6f7a765f7f335cddf6f56dd3c8d831d357b1183",
        ];
        assert_eq!(pinned, expected);
    }

    /// Breaks: contents that differ in the number or position of zeros have different hashes.
    #[test]
    fn zeros_count() {
        let contents: Vec<Vec<u8>> = vec![
            vec![],
            vec![0],
            vec![0; 4_095],
            vec![0; 4_096],
            vec![0; 4_097],
            vec![0; 8_192],
            [vec![1; 4_096], vec![0; 4_096]].concat(),
            [vec![0; 4_096], vec![1; 4_096]].concat(),
            vec![1; 4_096],
            [vec![1], vec![0; 4_095]].concat(),
            vec![1],
        ];
        let mut hashes: Vec<_> = contents.iter().map(|content| hash(content)).collect();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), contents.len());
    }

    /// Breaks: the cost of a hole does not depend on its length, which a stranger chooses.
    #[test]
    fn holes_cost_nothing() {
        let begun = std::time::Instant::now();
        let mut hasher = ContentHasher::default();
        for _ in 0..1_000 {
            hasher.update(b"island");
            hasher.zeros(1 << 52);
        }
        hasher.zeros(u64::MAX);
        assert_ne!(hasher.result(), hash(b""));
        // Hashing every zero would take years.
        assert!(begun.elapsed().as_secs() < 60);
    }
}
