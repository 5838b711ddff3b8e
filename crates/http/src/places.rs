//! Places of connections: so many at once, and who gives way when all are taken.
//!
//! A connection that the server waits for, because its head is not whole or its answer is out, gives its
//! place to a new one. So clients that send no request cannot keep others out.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections of a server at once at most, without those that are being closed.
pub(crate) const MAX_CONNECTIONS: usize = 64;
/// Connections that are being closed at most. Beyond it new ones are closed when they are accepted.
pub(crate) const MAX_CLOSING: usize = 64;

/// The places of a server.
#[derive(Default)]
pub(crate) struct HttpPlaces {
    table: Mutex<PlaceTable>,
}

#[derive(Default)]
struct PlaceTable {
    /// The number of the next connection: the order of their age.
    next: u64,
    taken: BTreeMap<u64, TakenPlace>,
}

struct TakenPlace {
    stream: Arc<TcpStream>,
    stage: PlaceStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaceStage {
    /// The server waits for the client: it gives way.
    Waits,
    /// Its answer is under way.
    Answers,
    /// It has given way, and its thread is about to end.
    Closing,
}

/// A place of a connection; it is free again when this is dropped.
pub(crate) struct ConnectionPlace {
    places: Arc<HttpPlaces>,
    key: u64,
    pub(crate) stream: Arc<TcpStream>,
}

impl HttpPlaces {
    fn table(&self) -> MutexGuard<'_, PlaceTable> {
        // Each change of the table is whole, whatever panics elsewhere.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections whose threads have not ended.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.table().taken.len()
    }

    /// A place for a new connection. If all are taken, the oldest connection that waits is closed for it;
    /// none if all are being answered.
    pub(crate) fn take(self: &Arc<Self>, stream: TcpStream) -> Option<ConnectionPlace> {
        let mut table = self.table();
        let closing = table.count(PlaceStage::Closing);
        if table.taken.len() - closing >= MAX_CONNECTIONS {
            if closing >= MAX_CLOSING {
                return None;
            }
            let waits = |place: &&mut TakenPlace| place.stage == PlaceStage::Waits;
            let oldest = table.taken.values_mut().find(waits)?;
            oldest.stage = PlaceStage::Closing;
            // It fails if the client has closed it.
            let _ = oldest.stream.shutdown(Shutdown::Both);
        }
        let stream = Arc::new(stream);
        let key = table.next;
        table.next += 1;
        table.taken.insert(key, TakenPlace { stream: stream.clone(), stage: PlaceStage::Waits });
        Some(ConnectionPlace { places: self.clone(), key, stream })
    }
}

impl PlaceTable {
    fn count(&self, stage: PlaceStage) -> usize {
        self.taken.values().filter(|place| place.stage == stage).count()
    }
}

impl ConnectionPlace {
    /// Its request is being answered: it gives way no longer.
    pub(crate) fn answers(&self) {
        self.go_on(PlaceStage::Answers);
    }

    /// Its answer is out.
    pub(crate) fn waits(&self) {
        self.go_on(PlaceStage::Waits);
    }

    fn go_on(&self, stage: PlaceStage) {
        if let Some(place) = self.places.table().taken.get_mut(&self.key)
            && place.stage != PlaceStage::Closing
        {
            place.stage = stage;
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.table().taken.remove(&self.key);
    }
}
