//! Pairs own NICs with those of a neighbour.

use farpace_wire::NicKind;

/// For each own NIC, the index of the neighbour's NIC to which it sends; none if the neighbour has none.
///
/// NICs of equal kind are paired first, fastest first. The remaining ones are paired in descending order of
/// rate. The remaining own NICs are assigned to the neighbour's in round robin, fastest first. The first step
/// is that of the paper; the others are additions. NICs of unknown kind count as the slowest.
pub fn pair(ours: &[NicKind], theirs: &[NicKind]) -> Vec<Option<usize>> {
    let mut to = vec![None; ours.len()];
    let mut taken = vec![false; theirs.len()];
    let (own, others) = (fastest_first(ours), fastest_first(theirs));
    for &i in &own {
        let equal = others.iter().find(|&&j| !taken[j] && theirs[j] == ours[i]);
        if let Some(&j) = equal {
            (to[i], taken[j]) = (Some(j), true);
        }
    }
    for &i in &own {
        if to[i].is_none()
            && let Some(&j) = others.iter().find(|&&j| !taken[j])
        {
            (to[i], taken[j]) = (Some(j), true);
        }
    }
    let mut surplus = others.iter().cycle();
    for &i in &own {
        if to[i].is_none() {
            to[i] = surplus.next().copied();
        }
    }
    to
}

/// Indices of a list of kinds, fastest first, stable.
fn fastest_first(kinds: &[NicKind]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(kinds[i].rate().unwrap_or_default()), i));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: NicKind = NicKind(2);
    const G: NicKind = NicKind(3);
    const TEN_G: NicKind = NicKind(6);

    /// Breaks: a fast NIC is not paired with a slow one while a fast one is free.
    #[test]
    fn equal_kinds_are_paired_fastest_first() {
        assert_eq!(pair(&[M, G], &[G, M]), [Some(1), Some(0)]);
        assert_eq!(pair(&[G, G, M], &[M, G, G]), [Some(1), Some(2), Some(0)]);
        // No kind is equal: in descending order.
        assert_eq!(pair(&[M, TEN_G], &[NicKind::UNKNOWN, G]), [Some(0), Some(1)]);
        // One is equal, the others in descending order.
        assert_eq!(pair(&[TEN_G, G, M], &[G, M, NicKind(1)]), [Some(2), Some(0), Some(1)]);
    }

    /// Breaks: surplus NICs are used, and distributed over the neighbour's NICs.
    #[test]
    fn surplus_nics_share_the_neighbours_nics() {
        assert_eq!(pair(&[G, G, G], &[G]), [Some(0), Some(0), Some(0)]);
        assert_eq!(pair(&[G, G, M, M], &[M, G]), [Some(1), Some(1), Some(0), Some(0)]);
        assert_eq!(pair(&[G], &[M, G]), [Some(1)], "the neighbour's surplus NIC receives nothing");
        assert_eq!(pair(&[G, M], &[]), [None, None]);
        assert!(pair(&[], &[G]).is_empty());
    }
}
