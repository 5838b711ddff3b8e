//! Probing over a model of a way, in virtual time.

mod model;

use farpace_units::{Rate, Span};
use model::{Line, Model};

const G: Rate = Rate::from_mbit(1_000);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}
fn near(is: f64, wanted: f64) -> bool {
    (is / wanted - 1.0).abs() < 0.05
}

/// Breaks: cards of a healthy LAN are throttled.
#[test]
fn a_way_that_carries_what_its_cards_send_stays_at_that() {
    let m = Rate::from_mbit(100);
    for jitter in [0, 50, 500] {
        let mut lines: Vec<Line> = Vec::new();
        lines.push(Line::new(G, G, Span::from_micros(20)));
        lines.push(Line::new(m, m, Span::from_micros(20)));
        for line in &mut lines {
            line.jitter = Span::from_micros(jitter);
        }
        let mut model = Model::new(jitter, lines);
        model.run(ms(3_000));
        for (at, nominal) in [(0, G), (1, m)] {
            assert!(model.up(at));
            assert!(model.history.iter().all(|(_, lane, e)| *lane != at || e.rate == nominal), "{jitter}");
        }
        eprintln!("{jitter}: {:?}", model.estimates);
    }
}

/// Breaks: a modem behind a fast card is flooded, or left half empty.
#[test]
fn a_narrow_place_behind_the_card_is_found() {
    for (seed, one_way) in [(1, 1), (2, 10), (3, 45)] {
        let mut model = Model::new(seed, vec![Line::new(G, Rate::from_mbit(80), ms(one_way))]);
        for t in 0..40 {
            model.run(ms(100));
            eprintln!(
                "{one_way} {t} {:.2} q {} up {} loss {:.3}",
                model.rate(0),
                model.queued(0, 95),
                model.up(0),
                model.estimates[0].unwrap().loss
            );
            model.clear();
        }
    }
}
