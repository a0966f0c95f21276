//! Input that may never come: read on a thread of its own, so that whoever waits for it can stop waiting.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::job::Cancel;

/// Bytes read at a time.
const BLOCK: usize = 1 << 16;

/// How soon a reader notices that it is to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// A stream that stops waiting when it is cancelled: the error then holds [`crate::Error::Cancelled`]. The thread that
/// waits in its place ends with the next byte, or with the program.
#[derive(Debug)]
pub struct Waiting {
    blocks: Receiver<io::Result<Vec<u8>>>,
    cancel: Cancel,
    block: io::Cursor<Vec<u8>>,
}

impl Waiting {
    /// Opens a pipe or device; the opening itself may wait for a writer.
    pub fn open(path: &Path, cancel: &Cancel) -> io::Result<Self> {
        let path = path.to_owned();
        Self::start(move || File::open(path), cancel)
    }

    /// Takes a stream such as standard input.
    pub fn new(stream: impl Read + Send + 'static, cancel: &Cancel) -> io::Result<Self> {
        Self::start(|| Ok(stream), cancel)
    }

    fn start<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(2);
        thread::Builder::new().name("input".to_owned()).spawn(move || match open() {
            Ok(stream) => send_all(stream, &sender),
            // Nobody listens any more if it cannot be sent.
            Err(error) => drop(sender.send(Err(error))),
        })?;
        Ok(Self { blocks, cancel: cancel.clone(), block: io::Cursor::default() })
    }

    /// The next bytes; none at the end.
    fn receive(&self) -> io::Result<Vec<u8>> {
        loop {
            match self.blocks.recv_timeout(PATIENCE) {
                Ok(block) => return block,
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
                Err(RecvTimeoutError::Timeout) => self.cancel.check().map_err(io::Error::other)?,
            }
        }
    }
}

fn send_all(mut stream: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; BLOCK];
    loop {
        let block = match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => Ok(buffer[..n].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let last = block.is_err();
        if sender.send(block).is_err() || last {
            return;
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.position() == self.block.get_ref().len() as u64 {
            self.block = io::Cursor::new(self.receive()?);
        }
        self.block.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn bytes_come_as_they_were_sent() {
        let text: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
        let mut read = Vec::new();
        let mut stream = Waiting::new(io::Cursor::new(text.clone()), &Cancel::default()).unwrap();
        stream.read_to_end(&mut read).unwrap();
        assert!(read == text);
        let missing = Waiting::open(Path::new("no/such/pipe"), &Cancel::default());
        assert_eq!(missing.unwrap().read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Says nothing until the test is over.
    struct Mute(Receiver<()>);

    impl Read for Mute {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(0)
        }
    }

    #[test]
    fn waiting_ends_when_it_is_cancelled() {
        let (_open, mute) = sync_channel(0);
        let cancel = Cancel::default();
        let mut stream = Waiting::new(Mute(mute), &cancel).unwrap();
        cancel.cancel();
        let error = Error::io("read", Path::new("pipe"))(stream.read(&mut [0; 1]).unwrap_err());
        assert!(matches!(error, Error::Cancelled), "{error:?}");
    }
}
