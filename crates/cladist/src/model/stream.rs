//! Documents in, labels out: bounded memory, the order kept, reading and scoring at the same time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use cladist_core::{Cancel, Document, Request};

use super::{Model, PredictOptions, Prediction};
use crate::error::Error;

/// Documents scored at once: enough to keep every core busy, few enough to keep memory flat.
const BATCH: usize = 256;

/// How long a batch waits for more documents: people who type or pipe slowly want their answers.
const PATIENCE: Duration = Duration::from_millis(50);

/// Some documents of a stream with their labels.
#[derive(Debug)]
pub struct Batch {
    /// The documents.
    pub documents: Vec<Document>,
    /// The labels of each.
    pub predictions: Vec<Prediction>,
}

/// What comes from the reading thread.
type Item<E> = Result<Document, E>;

impl Model {
    /// Labels documents as they come and hands them on in the same order, a few hundred at a time or fewer when the input
    /// pauses. At most three batches are in memory. Ends with the input, with the first error of `documents`, `sink` or
    /// the model, or when it is cancelled, even while `documents` waits for input.
    ///
    /// `documents` is read on a thread of its own. It is returned to nobody: a reader that blocks for ever blocks that
    /// thread alone.
    pub fn predict_stream<I, E>(
        &self,
        documents: I,
        options: &PredictOptions<'_>,
        mut sink: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<u64, E>
    where
        I: Iterator<Item = Item<E>> + Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let decoder = self.prepare(options)?;
        let work = &options.work;
        let request = Request { levels: options.levels.clone(), job: work.quiet_job(), ..Request::default() };
        let progress = work.job().progress;
        progress.stage("predict", 0);
        let (sender, receiver) = sync_channel(2 * BATCH);
        let reading = std::thread::Builder::new()
            .name("documents".to_owned())
            .spawn(move || send_all(documents, &sender))
            .map_err(|error| Error::NoThreads { n: 1, source: error.into() })?;
        let mut done = 0;
        loop {
            let (batch, failed) = next_batch(&receiver, &work.cancel)?;
            if !batch.is_empty() {
                let predictions = self.label(&batch, &decoder, options.sequences, &request)?;
                let n = batch.len() as u64;
                sink(Batch { documents: batch, predictions })?;
                progress.advance(n);
                done += n;
                if failed.is_none() {
                    continue;
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            break;
        }
        if let Err(panic) = reading.join() {
            std::panic::resume_unwind(panic);
        }
        Ok(done)
    }
}

/// Sends what there is until it ends or nobody listens any more.
fn send_all<I, E>(documents: I, sender: &SyncSender<Item<E>>)
where
    I: Iterator<Item = Item<E>>,
{
    for document in documents {
        let last = document.is_err();
        if sender.send(document).is_err() || last {
            return;
        }
    }
}

/// A full batch, or what came until the input paused; empty at the end. An error comes after what was read before it.
fn next_batch<E: From<Error>>(
    documents: &Receiver<Item<E>>,
    cancel: &Cancel,
) -> Result<(Vec<Document>, Option<E>), E> {
    let first = loop {
        match documents.recv_timeout(PATIENCE) {
            Ok(document) => break document,
            Err(RecvTimeoutError::Timeout) => cancel.check().map_err(Error::from)?,
            Err(RecvTimeoutError::Disconnected) => return Ok((Vec::new(), None)),
        }
    };
    cancel.check().map_err(Error::from)?;
    let mut batch = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    let mut next = Ok(first);
    loop {
        match next {
            Ok(Ok(document)) => batch.push(document),
            Ok(Err(error)) => return Ok((batch, Some(error))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
        if batch.len() >= BATCH {
            break;
        }
        next = documents.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
    Ok((batch, None))
}
