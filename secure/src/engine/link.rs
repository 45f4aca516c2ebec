//! The client's connection to one party.

use super::worker::{Answer, Job};
use crate::error::{Error, Result};
use crate::id::PartyId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The client's connection to one party. The client asks all three before it waits for the first answer.
pub trait Link: Send {
    /// Sends a job. A party that cannot be reached any more answers by an error.
    fn ask(&mut self, job: Job);

    /// Waits for the answer to the job, for as long as the party gets on with it.
    ///
    /// # Errors
    /// The party's own; a party that is gone, or takes no round for too long.
    fn answer(&mut self) -> Result<Answer>;
}

/// The connection to a party on a thread of this process.
pub(super) struct ThreadLink {
    pub party: PartyId,
    pub jobs: Sender<Job>,
    pub answers: Receiver<Result<Answer>>,
    /// The party's rounds so far.
    pub progress: Arc<AtomicU64>,
    /// How long the party may take no round before it is given up. Longer than the parties' own deadline: what they say
    /// of one another tells more.
    pub patience: Duration,
}

impl Link for ThreadLink {
    fn ask(&mut self, job: Job) {
        // A party whose thread is gone answers by its closed channel.
        let _ = self.jobs.send(job);
    }

    fn answer(&mut self) -> Result<Answer> {
        let party = self.party;
        let mut seen = self.progress.load(Ordering::Relaxed);
        loop {
            match self.answers.recv_timeout(self.patience) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::PartyStopped { party }),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.progress.load(Ordering::Relaxed);
            if now == seen {
                return Err(Error::PartyLate { party, seconds: self.patience.as_secs() });
            }
            seen = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_party_that_takes_no_round_is_late_and_one_that_is_gone_has_stopped() {
        let ((jobs, _jobs), (answers_here, answers)) = (channel(), channel());
        let (party, patience) = (PartyId::P1, Duration::from_millis(5));
        let mut link = ThreadLink { party, jobs, answers, progress: Arc::default(), patience };
        link.progress.store(7, Ordering::Relaxed);
        assert_eq!(link.answer().err(), Some(Error::PartyLate { party, seconds: 0 }));
        answers_here.send(Ok(Answer::Done)).unwrap();
        assert!(link.answer().is_ok());
        drop(answers_here);
        assert_eq!(link.answer().err(), Some(Error::PartyStopped { party }));
    }
}
