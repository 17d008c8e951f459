//! CSV in chunks, for a load and as a stream, against one reader that goes byte by byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| mainstem::read_alike(input));
