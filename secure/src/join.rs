//! Protocols side by side, as many as a network has layers.

use crate::error::Result;
use std::future::{Future, poll_fn};
use std::task::Poll;

/// Runs all to their ends in the same rounds: every one that still waits is polled each time. (The joins of
/// `futures-util` do so up to 30 futures and beyond that poll only those that were woken, but the end of a round wakes
/// nobody.)
///
/// # Errors
/// The first that fails.
pub async fn join_all(protocols: impl IntoIterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    let mut waiting: Vec<_> = protocols.into_iter().map(Box::pin).collect();
    poll_fn(|context| {
        let mut failed = None;
        waiting.retain_mut(|protocol| match protocol.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                failed = failed.take().or(result.err());
                false
            }
        });
        match failed {
            Some(e) => Poll::Ready(Err(e)),
            None if waiting.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::protocol::multiply::multiply;
    use crate::testing::{open, share, world};
    use spec::{FixedSpec, Rounding};

    #[test]
    fn any_number_of_protocols_share_a_round() {
        for n in [0usize, 1, 30, 31, 100] {
            let x = share(1, 3, &[1, 2, 3]);
            let (_, spent, _) = world(FixedSpec::default(), Rounding::Nearest, |p| {
                let x = &x[p.id.index()];
                p.run(join_all((0..n).map(|_| async { multiply(p, x, x).await.map(drop) })))?;
                Ok(x.clone())
            });
            assert_eq!((spent.rounds, spent.bytes), (n.min(1) as u64, 72 * n as u64), "{n}");
        }
    }

    #[test]
    fn an_empty_operand_beside_another_is_empty() {
        let (x, empty) = (share(1, 3, &[1, 2, 3]), share(0, 3, &[]));
        let (squares, ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let (x, empty) = (&x[p.id.index()], &empty[p.id.index()]);
            let both = async { futures_util::try_join!(multiply(p, x, x), multiply(p, empty, empty)) };
            p.run(both).map(|(x, empty)| {
                assert!(empty.is_empty());
                x
            })
        });
        assert_eq!(open(&squares), [1, 4, 9]);
    }

    #[test]
    fn a_failure_ends_the_join() {
        let join = join_all([Ok(()), Err(Error::misuse("second")), Ok(())].map(|r| async { r }));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert_eq!(std::pin::pin!(join).poll(&mut context), Poll::Ready(Err(Error::misuse("second"))));
    }
}
