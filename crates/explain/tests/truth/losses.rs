//! What took the losses of networks that earlier rules got wrong.

use super::{PLACES, generator, judge, judge_without, programs, without_compression};
use farpace_explain::cause::Cause;
use farpace_units::Span;

/// Breaks: a policer that dropped only in a few places is taken for bursts that are lost, or, seen from
/// behind it where bursts have queued, for a small queue.
#[test]
fn policers_are_found_from_everywhere() {
    for seed in [60229, 60249, 60449, 60469, 60709, 60929, 61729, 62049, 62549] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.contains(&Cause::Policer), "seed {seed}");
        for (place, verdict) in PLACES.iter().zip(&judged.verdicts) {
            assert_eq!(verdict.dominant, Cause::Policer, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a queue of a few packets passes for a policer with a deep bucket: behind the path, where losses
/// are seen as holes, or at the sender, because a bucket explains some of its losses.
#[test]
fn short_queues_are_no_deep_buckets() {
    for (seed, first) in [(800013, 0), (800093, 0), (800493, 2), (800793, 0), (801233, 1)] {
        let judged = judge(seed).unwrap();
        for (place, verdict) in PLACES.iter().zip(&judged.verdicts).skip(first) {
            assert_eq!(verdict.dominant, Cause::SmallQueue, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a black hole in the first flights, which one timeout ends, passes for an outage, because what was
/// too long is sent again in parts; or the SYN-ACK that is sent again, because the ACK for it came with data
/// that the hole took, passes for a lost one.
#[test]
fn a_black_hole_is_told_by_what_was_sent_first() {
    for seed in [800379, 800719, 800959, 801079] {
        for (place, verdict) in PLACES.iter().zip(&judge(seed).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::MtuBlackHole, "seed {seed}, seen from {place}");
            assert_eq!(verdict.time_of(Cause::SynLoss), Span::ZERO, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: bursts of losses of which most are short pass for losses by chance, although chance does not make
/// runs as long as the others.
#[test]
fn bursts_are_told_from_chance_by_their_longest_runs() {
    let judged = judge(61011).unwrap();
    assert!(judged.case.causes.contains(&Cause::BurstLoss));
    for (place, verdict) in PLACES.iter().zip(&judged.verdicts) {
        assert_eq!(verdict.dominant, Cause::BurstLoss, "seen from {place}");
    }
}

/// Breaks: a few losses that lie far back in bursts, as most segments do or by chance, make a small queue.
#[test]
fn losses_that_lie_in_bursts_by_chance_are_no_small_queue() {
    for (seed, place, cause) in
        [(61430, 0, Cause::RandomLoss), (61070, 2, Cause::RandomLoss), (61411, 2, Cause::BurstLoss)]
    {
        assert_eq!(judge(seed).unwrap().verdicts[place].dominant, cause, "seed {seed}");
    }
}

/// Breaks: behind the path, where the end of a burst is seen to be missing a round trip later, a queue that
/// overflowed passes for a burst of losses, because it is gone by then.
#[test]
fn the_queue_at_a_loss_is_that_of_what_came_before_it() {
    for seed in [70251, 70571] {
        let verdicts = judge_without(programs::case(seed), 0).unwrap().verdicts;
        for (place, verdict) in PLACES.iter().zip(&verdicts) {
            assert_eq!(verdict.time_of(Cause::BurstLoss), Span::ZERO, "seed {seed}, seen from {place}");
            assert!(verdict.healthy, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: what a connection loses in a policer that it shares passes for losses by chance, or in bursts,
/// because its own data alone does not fill the bucket; or a queue that several share passes for a policer.
#[test]
fn policers_that_connections_share_are_found_where_all_are_seen() {
    for seed in [60007, 60039, 60047, 60071, 60079, 60127, 60183, 60215, 60223] {
        let case = programs::case(seed);
        let case = if seed == 60079 { without_compression(case) } else { case };
        let verdicts = judge_without(case, 0).unwrap().verdicts;
        for (place, verdict) in PLACES.iter().zip(&verdicts).skip(1) {
            assert_eq!(verdict.dominant, Cause::Policer, "seed {seed}, seen from {place}");
        }
    }
    for seed in [60086, 60238, 60246, 60286, 60366, 60630] {
        for (place, verdict) in PLACES.iter().zip(judge_without(programs::case(seed), 0).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::Congestion, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a policer whose bucket others fill, who are not in the capture, passes for chance or for a short
/// queue, although what it drops depends on what was sent before and no queue stands.
#[test]
fn policers_are_found_where_others_fill_the_bucket() {
    for seed in [300207, 300343, 300423, 300479, 300607, 300663, 300847, 300967, 301103] {
        let verdicts = judge_without(programs::case(seed), 0).unwrap().verdicts;
        assert_eq!(verdicts[0].dominant, Cause::Policer, "seed {seed}");
    }
    // Losses by chance beside a start that overflows a queue.
    assert_eq!(judge(300330).unwrap().verdicts[0].dominant, Cause::RandomLoss);
}

/// Breaks: few losses of a queue of a few packets pass for a burst or for chance, although they come while
/// more waits than at nearly all other times.
#[test]
fn a_small_queue_is_told_by_the_delay_at_its_losses() {
    for seed in [300033, 300453, 300713, 300953, 301233, 301413] {
        let verdict = &judge(seed).unwrap().verdicts[0];
        assert_eq!(verdict.dominant, Cause::SmallQueue, "seed {seed}");
    }
    // The round trip before a loss by chance may be that of an ACK that would have been delayed.
    assert_eq!(judge(301050).unwrap().verdicts[1].dominant, Cause::RandomLoss);
}

/// Breaks: behind the path, where its delay is not seen, a queue of a few packets passes for bursts or chance
/// as soon as one loss comes late; or losses by chance behind a start that overflows such a queue pass for
/// it.
#[test]
fn a_small_queue_is_told_by_its_losses_in_the_first_flights() {
    for seed in [700273, 700633, 701073, 701113] {
        assert_eq!(judge(seed).unwrap().verdicts[2].dominant, Cause::SmallQueue, "seed {seed}");
    }
    // With compressed SACKs most of what the first two lose is lost in the queue.
    let cases =
        [(710293, 2), (701193, 0)].map(|(seed, place)| (without_compression(generator::case(seed)), place));
    for (case, place) in cases.into_iter().chain([(generator::case(710053), 0)]) {
        let seed = case.seed;
        let verdict = &judge_without(case, 0).unwrap().verdicts[place];
        assert_eq!(verdict.dominant, Cause::RandomLoss, "seed {seed}");
        assert!(!verdict.time_of(Cause::SmallQueue).is_zero(), "seed {seed}");
    }
}

/// Breaks: at a sender, a policer that other hosts press passes for chance, bursts or a short queue, although
/// it drops much of a round trip piece by piece and delays none of the rest.
#[test]
fn a_policer_is_told_by_a_round_trip_that_it_thins() {
    for seed in [700007, 700023, 700087, 700231, 700287] {
        let verdict = &judge_without(programs::case(seed), 0).unwrap().verdicts[0];
        assert_eq!(verdict.dominant, Cause::Policer, "seed {seed}");
    }
}

/// Breaks: among bursts of losses the longest, after which timers had to fire, is an outage of its own; or
/// bursts while a queue is half full are the queue's.
#[test]
fn the_longest_of_many_bursts_is_one_of_them() {
    assert_eq!(judge(701131).unwrap().verdicts[0].dominant, Cause::BurstLoss);
}

/// Breaks: a silence of 15 s, in which six timers fire, is a burst of losses where shorter ones come before
/// it.
#[test]
fn a_burst_that_outlasts_many_timers_is_an_outage() {
    let verdict = &judge(700431).unwrap().verdicts[0];
    assert_eq!(verdict.dominant, Cause::Outage);
    assert!(!verdict.time_of(Cause::BurstLoss).is_zero());
}

/// Breaks: behind the path, retransmissions that are lost make a burst of the losses that they repair; or
/// Linux 2.6.17 is only recognized by what it does after a timeout.
#[test]
fn slow_repairs_have_their_own_causes() {
    for (seed, cause) in [(820136, Cause::LostRetransmission), (822475, Cause::Linux2617)] {
        for (place, verdict) in PLACES.iter().zip(&judge(seed).unwrap().verdicts) {
            assert_eq!(verdict.dominant, cause, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: behind a short queue, a start that loses every second segment makes bursts of its losses.
#[test]
fn a_short_queue_is_told_by_a_round_trip_that_it_thins() {
    for seed in [822033, 822173] {
        for (place, verdict) in PLACES.iter().zip(&judge(seed).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::SmallQueue, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: chance and bursts on one path: all losses are of the kind of most of them.
#[test]
fn single_losses_beside_bursts_are_chance() {
    let verdict = &judge(820291).unwrap().verdicts[0];
    assert_eq!(verdict.dominant, Cause::RandomLoss);
    assert!(verdict.time_of(Cause::BurstLoss) * 4 > verdict.time_of(Cause::RandomLoss));
}

/// Breaks: an outage passes for a burst where its run is one of few, or follows copies that ACKs told of, or
/// where the first copy behind it was needless because the ACKs of its segment were lost in it.
#[test]
fn an_outage_is_told_by_its_silence() {
    for (seed, place) in [(862572, 0), (862872, 0), (863111, 0), (861032, 2), (862059, 2), (862791, 2)] {
        let verdict = &judge(seed).unwrap().verdicts[place];
        assert_eq!(verdict.dominant, Cause::Outage, "seed {seed}, seen from {}", PLACES[place]);
    }
}

/// Breaks: the long run that an outage takes makes bursts of the losses by chance beside it.
#[test]
fn an_outage_tells_nothing_of_other_losses() {
    for seed in [861252, 863550, 863610] {
        let verdict = &judge(seed).unwrap().verdicts[0];
        assert_eq!(verdict.dominant, Cause::RandomLoss, "seed {seed}");
    }
}

/// Breaks: the end of a flight that a short queue dropped, and of which ACKs told, is a lost tail.
#[test]
fn an_end_of_a_flight_that_acks_tell_of_is_no_lost_tail() {
    for seed in [860033, 861053, 863193, 866713] {
        let verdict = &judge(seed).unwrap().verdicts[0];
        assert_eq!(verdict.dominant, Cause::SmallQueue, "seed {seed}");
    }
}
