//! What both ends can, by the options of their SYNs.

use crate::config::AckControlMode;
use farpace_wire::tcp::{self, CdlCapability, Tarr};

/// How acknowledgments are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestForm {
    /// Not at all.
    None,
    /// By the bit in place of ACK.
    Classic,
    /// By the option.
    Safe,
    /// By the bit beside ACK.
    Flag,
    /// By TARR.
    Tarr,
    /// By an old byte.
    Unilateral,
}

/// Everything that the safe form has; of the flag bit each end decides.
const OURS: CdlCapability =
    CdlCapability::REQUESTS.with(CdlCapability::CONFIRMS).with(CdlCapability::REPORTS_DELAY);

/// What an end offers in its SYN.
pub(super) fn offer(control: AckControlMode) -> tcp::AckControl {
    let capability = match control {
        AckControlMode::Safe => Some(OURS),
        AckControlMode::Flag => Some(OURS.with(CdlCapability::FLAG)),
        _ => None,
    };
    let tarr = matches!(control, AckControlMode::Safe | AckControlMode::Flag | AckControlMode::Tarr);
    tcp::AckControl {
        cdl_allow: control.is_classic(),
        capability,
        tarr: tarr.then_some(Tarr::Capable),
        ..tcp::AckControl::default()
    }
}

/// What the two ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    /// How this end asks.
    pub ask: RequestForm,
    /// How the peer may.
    pub answer: RequestForm,
}

impl Agreement {
    /// Before the peer's SYN.
    pub fn before(control: AckControlMode) -> Self {
        let ask =
            if control == AckControlMode::Unilateral { RequestForm::Unilateral } else { RequestForm::None };
        Agreement { ask, answer: RequestForm::None }
    }

    /// With a peer whose SYN or SYN-ACK has these options.
    pub fn of(control: AckControlMode, peer: &tcp::AckControl) -> Self {
        let ours = offer(control);
        if ours.cdl_allow && peer.cdl_allow {
            return Agreement { ask: RequestForm::Classic, answer: RequestForm::Classic };
        }
        if let (Some(ours), Some(theirs)) = (ours.capability, peer.capability) {
            let both = |bit: CdlCapability| ours.contains(bit) && theirs.contains(bit);
            let form = if both(CdlCapability::FLAG) { RequestForm::Flag } else { RequestForm::Safe };
            let may = |bit| if theirs.contains(bit) { form } else { RequestForm::None };
            return Agreement { ask: may(CdlCapability::CONFIRMS), answer: may(CdlCapability::REQUESTS) };
        }
        if ours.tarr.is_some() && peer.tarr == Some(Tarr::Capable) {
            return Agreement { ask: RequestForm::Tarr, answer: RequestForm::Tarr };
        }
        Self::before(control)
    }

    /// What goes into our SYN-ACK: that part of our offer which the peer has made, too.
    pub fn reply(self, control: AckControlMode) -> tcp::AckControl {
        let ours = offer(control);
        let any = |form| self.ask == form || self.answer == form;
        let safe = any(RequestForm::Safe) || any(RequestForm::Flag);
        tcp::AckControl {
            cdl_allow: any(RequestForm::Classic),
            capability: ours.capability.filter(|_| safe),
            tarr: ours.tarr.filter(|_| any(RequestForm::Tarr)),
            ..tcp::AckControl::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: who may ask whom and how, for every pair of settings: rows offer, columns reply.
    #[test]
    fn every_pair() {
        use AckControlMode as C;
        use RequestForm as F;
        let expected = |client: C, server: C| match (client, server) {
            (a, b) if a.is_classic() && b.is_classic() => F::Classic,
            (C::Flag, C::Flag) => F::Flag,
            (C::Safe | C::Flag, C::Safe | C::Flag) => F::Safe,
            (C::Safe | C::Flag | C::Tarr, C::Safe | C::Flag | C::Tarr) => F::Tarr,
            _ => F::None,
        };
        let own = |control, agreed| match (control, agreed) {
            (C::Unilateral, F::None) => F::Unilateral,
            _ => agreed,
        };
        for client in C::ALL {
            for server in C::ALL {
                let at_server = Agreement::of(server, &offer(client));
                let at_client = Agreement::of(client, &at_server.reply(server));
                let want = expected(client, server);
                assert_eq!(at_client.ask, own(client, want), "{client:?} asks {server:?}");
                assert_eq!(at_server.ask, own(server, want), "{server:?} asks {client:?}");
                assert_eq!((at_client.answer, at_server.answer), (want, want), "{client:?} {server:?}");
            }
        }
    }

    /// Breaks: a peer that can do only a part: it may be asked, or ask, and not the other.
    #[test]
    fn halves() {
        let peer = |bits| tcp::AckControl {
            capability: Some(CdlCapability::from_bits(bits)),
            ..tcp::AckControl::default()
        };
        let of = |bits| Agreement::of(AckControlMode::Flag, &peer(bits));
        assert_eq!(of(1), Agreement { ask: RequestForm::None, answer: RequestForm::Safe });
        assert_eq!(of(2), Agreement { ask: RequestForm::Safe, answer: RequestForm::None });
        assert_eq!(of(6), Agreement { ask: RequestForm::Flag, answer: RequestForm::None });
        assert_eq!(of(0), Agreement { ask: RequestForm::None, answer: RequestForm::None });
    }
}
