//! Zstandard streams: all their frames, with checksums compared and damage reported as such.

use std::error::Error as _;
use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three bytes of a skippable frame's magic number; the first is 0x50 to 0x5f.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Whether a stream starts with a frame, skippable or not.
pub(super) fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&FRAME) || matches!(start, [0x50..=0x5f, rest @ ..] if rest.starts_with(&SKIPPABLE))
}

/// Decodes frame after frame; the decoder of the library ends with the first.
pub(super) struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Goes to the next frame with content; false at the end of the stream.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.source).take(length), &mut io::sink())? < length {
                        return Err(damaged());
                    }
                }
                Err(error) => return Err(bad_data(&error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            self.in_frame = true;
            if self.decoder.can_collect() > 0 || buffer.is_empty() {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                let (written, found) =
                    (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
                if written.is_some() && written != found {
                    return Err(damaged());
                }
                self.in_frame = false;
            } else {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|error| bad_data(&error))?;
            }
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged Zstandard data")
}

/// The library wraps what the disk says and says the rest in debug text.
fn bad_data(error: &FrameDecoderError) -> io::Error {
    if let FrameDecoderError::WindowSizeTooBig { requested, max } = error {
        let message = format!("Zstandard data with a window of {requested} bytes; {max} are supported");
        return io::Error::new(io::ErrorKind::InvalidData, message);
    }
    let mut cause = error.source();
    while let Some(found) = cause {
        match found.downcast_ref::<io::Error>() {
            Some(disk) if disk.kind() != io::ErrorKind::UnexpectedEof && disk.get_ref().is_none() => {
                return disk.kind().into();
            }
            _ => cause = found.source(),
        }
    }
    damaged()
}
