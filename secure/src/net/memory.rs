//! Three parties as three threads of one process. A message is handed over by moving its buffer, which the reader
//! keeps as a result ([`take`](crate::party::Received::take)) or gives to its pool.

use super::queue::{QueueChannel, Queues, Sender, queue};
use crate::id::{Neighbour, PartyId};
use std::time::Duration;

/// Connects three parties; what `deadline` is for: [`CheckedChannel::new`](super::checked::CheckedChannel::new).
pub fn network(deadline: Duration) -> [QueueChannel; 3] {
    network_over(deadline, |_, _, to| to)
}

/// Connects three parties by what `link` makes of the queue from a party to its neighbour.
pub fn network_over(deadline: Duration, link: impl Fn(PartyId, Neighbour, Sender) -> Sender) -> [QueueChannel; 3] {
    // Link i carries what party i sends to its next neighbour, back[i] what that neighbour sends to party i.
    let (forth_tx, forth_rx): (Vec<_>, Vec<_>) = (0..3).map(|_| queue()).unzip();
    let (back_tx, back_rx): (Vec<_>, Vec<_>) = (0..3).map(|_| queue()).unzip();
    let mut forth_rx: Vec<_> = forth_rx.into_iter().map(Some).collect();
    let mut back_rx: Vec<_> = back_rx.into_iter().map(Some).collect();
    PartyId::ALL.map(|id| {
        let (i, prev) = (id.index(), id.previous().index());
        let to = [link(id, Neighbour::Previous, back_tx[prev].clone()), link(id, Neighbour::Next, forth_tx[i].clone())];
        let from = [forth_rx[prev].take().expect("taken once"), back_rx[i].take().expect("taken once")];
        QueueChannel::new(id, Queues::new(to, from), deadline)
    })
}
