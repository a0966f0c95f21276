use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cladist::core::Cancel;
use cladist::{Document, Error, PredictOptions, Result, Work};

use crate::support::{documents, svm};

#[test]
fn a_stream_keeps_order_and_holds_few_documents() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let (read, written) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let stream = (0..3000usize).map(move |n| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(Document::from_text(n.to_string(), "kitten and engine"))
    });
    let mut ids = Vec::new();
    let done = model
        .predict_stream(stream, &PredictOptions::default(), |batch| -> Result<()> {
            written.fetch_add(batch.documents.len(), Ordering::SeqCst);
            let ahead = read.load(Ordering::SeqCst) - written.load(Ordering::SeqCst);
            assert!(ahead <= 3 * 256, "{ahead} documents were read ahead");
            ids.extend(batch.predictions.into_iter().map(|prediction| prediction.id));
            Ok(())
        })
        .unwrap();
    assert_eq!(done, 3000);
    assert!(ids.iter().enumerate().all(|(n, id)| *id == n.to_string()));
}

#[test]
fn an_error_of_the_input_comes_after_what_was_read_before_it() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let good = documents("x", 2).into_iter().map(Ok);
    let stream = good.chain([Err(Error::NoCorpus), Ok(Document::from_text("late", "x"))]);
    let mut seen = 0;
    let outcome = model.predict_stream(stream, &PredictOptions::default(), |batch| -> Result<()> {
        seen += batch.documents.len();
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::NoCorpus)));
    assert_eq!(seen, 6);
}

#[test]
fn a_stream_that_waits_for_input_can_be_cancelled() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let (sender, receiver) = std::sync::mpsc::channel::<Result<Document>>();
    let cancel = Cancel::default();
    let options = PredictOptions {
        work: Work { cancel: cancel.clone(), ..Work::default() },
        ..PredictOptions::default()
    };
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            model.predict_stream(receiver.into_iter(), &options, |_| {
                cancel.cancel();
                Ok(())
            })
        });
        // One document, and then nothing for as long as it takes.
        sender.send(Ok(Document::from_text("1", "kitten"))).unwrap();
        let outcome: Result<u64> = asked.join().unwrap();
        assert!(outcome.unwrap_err().is_cancelled());
    });
    drop(sender);
}
