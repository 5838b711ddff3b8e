//! One colour for each thing, on every page.
//!
//! Start reading at [`Thing`].

use crate::svg::Colour;

/// Colour and dash of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub(crate) colour: Colour,
    pub(crate) dash: &'static str,
}

macro_rules! things {
    ($($(#[$doc:meta])* $variant:ident = $colour:ident, $dash:literal);* $(;)?) => {
        /// What figures show.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Thing { $($(#[$doc])* $variant),* }
        impl Thing {
            /// Its colour and dash, the same on every page.
            pub const fn style(self) -> Style {
                match self { $(Thing::$variant => Style { colour: Colour::$colour, dash: $dash }),* }
            }
            pub(crate) const fn colour(self) -> Colour {
                self.style().colour
            }
            pub(crate) const fn dash(self) -> &'static str {
                self.style().dash
            }
        }
    };
}

things! {
    /// Data that is sent for the first time.
    Data = Blue, "";
    /// Data that is sent again.
    Retransmission = Vermillion, "";
    /// The cumulative ACK.
    Ack = Ink, "";
    /// The next number to send.
    SndNxt = Ink, "6 3";
    /// The start of a SACK block.
    SackStart = Sky, "";
    /// The end of a SACK block.
    SackEnd = Green, "";
    /// The right edge of the receive window.
    WindowEdge = Purple, "8 3 2 3";
    /// The congestion window.
    Cwnd = Blue, "";
    /// The slow-start threshold.
    Ssthresh = Green, "4 3";
    /// Data in flight.
    InFlight = Orange, "3 2";
    /// The receive window.
    ReceiveWindow = Purple, "8 3 2 3";
    /// SACKed segments.
    Sacked = Green, "";
    /// Segments taken for lost.
    Lost = Vermillion, "";
    /// Retransmissions that are outstanding.
    Retransmitted = Purple, "5 3";
    /// The highest SACKed segment.
    Facked = Grey, "2 2";
    /// A retransmission timeout.
    Timeout = Orange, "5 3";
    /// A mark of a retransmission timeout at the edge of a panel.
    TimeoutMark = Vermillion, "";
    /// A rate.
    Rate = Blue, "";
    /// A rate beside another one in the same figure.
    OtherRate = Green, "";
    /// A round trip.
    RoundTrip = Green, "";
    /// The least round trip.
    LeastRoundTrip = Green, "4 3";
    /// A queue, or delay in it.
    Queue = Purple, "";
    /// A queue on the sender's side of a capture point.
    SenderQueue = Purple, "4 3";
    /// A ceiling, or another level.
    Level = Ink, "2 3";
    /// Hardly anything is transferred.
    Stop = Vermillion, "";
    /// The state Recovery.
    Recovery = Sky, "";
    /// The state Loss.
    Loss = Orange, "";
    /// A packet dropped because a queue was full.
    DropQueueFull = Purple, "";
    /// A packet dropped by what manages a queue.
    DropManaged = Ink, "";
    /// A packet dropped by a policer.
    DropPoliced = Orange, "";
    /// A packet lost at random.
    DropRandom = Green, "";
    /// A packet lost at random in a burst.
    DropBurst = Sky, "";
    /// A packet with wrong bits.
    DropBitErrors = Blue, "";
    /// A packet lost while a link was down.
    DropOutage = Vermillion, "";
    /// A packet dropped for another reason.
    DropOther = Grey, "";
    /// A count in bars or dots.
    Count = Blue, "";
}

/// Colours and dashes for lines that are no [`Thing`], such as algorithms.
const STYLES: [Style; 14] = {
    const fn style(colour: Colour, dash: &'static str) -> Style {
        Style { colour, dash }
    }
    [
        style(Colour::Blue, ""),
        style(Colour::Vermillion, "6 3"),
        style(Colour::Green, ""),
        style(Colour::Orange, "2 2"),
        style(Colour::Purple, ""),
        style(Colour::Sky, "8 3 2 3"),
        style(Colour::Grey, "4 2"),
        style(Colour::Ink, ""),
        style(Colour::Vermillion, ""),
        style(Colour::Blue, "6 3"),
        style(Colour::Green, "6 3"),
        style(Colour::Purple, "4 2"),
        style(Colour::Orange, ""),
        style(Colour::Sky, ""),
    ]
};

/// Names that are on several pages, in the order of [`STYLES`]: algorithms, and the three ways of `lab
/// compare`.
const NAMES: [(&str, usize); 20] = [
    ("farpace", 0),
    ("cubic", 1),
    ("bbr", 2),
    ("bbr1", 2),
    ("bbr3", 2),
    ("bbrv1", 2),
    ("bbrv3", 2),
    ("reno", 3),
    ("newreno", 3),
    ("star", 4),
    ("star-robust", 8),
    ("westwood", 5),
    ("westwood-plus", 13),
    ("hybla", 6),
    ("vegas", 7),
    ("veno", 9),
    ("htcp", 12),
    ("illinois", 10),
    ("lab", 10),
    ("kernel", 11),
];
/// Dashes of further lines of an algorithm in one figure.
const MORE_DASHES: [&str; 4] = ["2 3", "6 3", "8 3 2 3", "4 2"];

/// The style of an algorithm whose name is the label or a word of it: "Linux, CUBIC", "STAR 2", "neighbour of
/// cubic". Of "STAR beside CUBIC" it is that of STAR.
pub(crate) fn known_style(label: &str) -> Option<Style> {
    let of = |word: &str| NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let first = label.split(" beside ").next().unwrap_or(label);
    // The ways of `lab compare` are everyday words.
    let algorithm = |word: &str| of(word).filter(|(name, _)| !["lab", "kernel"].contains(name));
    let mut words = first.split([' ', ',', ':', '(', ')']);
    let (_, at) = of(label).or_else(|| words.find_map(algorithm))?;
    STYLES.get(*at).copied()
}

/// The styles of lines with these labels: an algorithm has its own colour on every page, and a
/// dash where several lines of a figure are its; others get styles that are left, in order. No two lines have
/// the same while there are enough.
pub fn styles<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Style> {
    let mut chosen: Vec<Option<Style>> = Vec::new();
    for name in names {
        let known = known_style(name);
        let more = known.into_iter().flat_map(|s| MORE_DASHES.map(|dash| Style { dash, ..s }));
        let free = known.into_iter().chain(more).find(|style| !chosen.contains(&Some(*style)));
        chosen.push(free);
    }
    let mut turn = 0;
    for n in 0..chosen.len() {
        if chosen[n].is_none() {
            let free = STYLES.iter().copied().find(|style| !chosen.contains(&Some(*style)));
            chosen[n] = Some(free.unwrap_or_else(|| {
                turn += 1;
                STYLES[(turn - 1) % STYLES.len()]
            }));
        }
    }
    chosen.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an algorithm has the same colour on every page, and no two lines of a figure look alike.
    #[test]
    fn a_name_keeps_its_style() {
        let one = styles(["bbr", "cubic", "mine"]);
        let other = styles(["mine", "yours", "CUBIC"]);
        assert_eq!(one[1], other[2]);
        assert_ne!(other[0], other[1]);
        assert_eq!(styles(["a", "b"])[0], STYLES[0]);
        let many: Vec<String> = (0..40).map(|i| i.to_string()).collect();
        let many = styles(many.iter().map(String::as_str));
        for i in 0..14 {
            assert!(!many[..i].contains(&many[i]));
        }
        assert_eq!(styles(["bbr", "bbr"]).iter().filter(|s| **s == STYLES[2]).count(), 1);
        let pair = styles(["farpace", "neighbour of farpace", "cubic", "neighbour of cubic"]);
        for two in pair.chunks(2) {
            assert!(two[0].colour == two[1].colour && two[0].dash != two[1].dash, "{pair:?}");
        }
        assert_eq!(styles(["x", "Linux, CUBIC", "Linux, BBRv3"])[1..], [STYLES[1], STYLES[2]]);
        let colours = |all: &[Style]| all.iter().map(|s| s.colour).collect::<Vec<_>>();
        let stars = styles(["STAR 1", "STAR beside Reno", "Reno beside STAR", "a kernel"]);
        assert_eq!(colours(&stars)[..3], [STYLES[4].colour, STYLES[4].colour, STYLES[3].colour]);
        assert_eq!(stars[3], STYLES[0]);
    }
}
