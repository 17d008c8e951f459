//! What a buffer promises, on one thread and on several. The orderings themselves are checked in `loom_tests.rs`.

use super::*;
use std::thread;

#[test]
fn appends_show_in_order() {
    let buffer = AppendBuffer::with_capacity(5);
    assert!(buffer.is_empty());
    assert_eq!(buffer.push(1u32), Ok(()));
    let early = buffer.as_slice();
    assert_eq!(buffer.extend_from_slice(&[2, 3]), Ok(()));
    assert_eq!((early, buffer.as_slice()), (&[1][..], &[1, 2, 3][..]));
    assert_eq!((buffer.get(2), buffer.get(3)), (Some(3), None));
    // All or nothing.
    let full = buffer.extend_from_slice(&[4, 5, 6]).unwrap_err();
    assert!(!full.is_contended());
    assert_eq!((buffer.len(), buffer.capacity()), (3, 5));
    assert_eq!(buffer.extend_from_slice(&[4, 5]), Ok(()));
    assert_eq!(buffer.push(6), Err(full));
    assert_eq!(buffer.extend_from_slice(&[]), Ok(()));
    assert_eq!(buffer.as_slice(), [1, 2, 3, 4, 5]);
    assert_eq!(format!("{buffer:?}"), "AppendBuffer { len: 5, capacity: 5 }");
}

#[test]
fn a_second_writer_is_refused() {
    let buffer = Arc::new(AppendBuffer::with_capacity(10));
    let mut writer = buffer.writer().unwrap();
    writer.push(1i64).unwrap();
    for _ in 0..2 {
        assert!(buffer.push(2).unwrap_err().is_contended());
        assert!(buffer.extend_from_slice(&[2]).unwrap_err().is_contended());
        assert!(buffer.writer().is_none());
        assert!(buffer.owned_writer().is_none());
    }
    writer.extend_from_slice(&[3]).unwrap();
    drop(writer);
    buffer.push(4).unwrap();
    let mut owned = buffer.owned_writer().unwrap();
    assert!(buffer.writer().is_none());
    owned.push(5).unwrap();
    assert_eq!(owned.buffer().as_slice(), [1, 3, 4, 5]);
    drop(owned);
    assert_eq!(buffer.push(6), Ok(()));
}

#[test]
fn no_capacity_and_no_size() {
    assert!(AppendBuffer::<u8>::with_capacity(0).push(1).is_err());
    let buffer = AppendBuffer::with_capacity(2);
    buffer.extend_from_slice(&[(), ()]).unwrap();
    assert_eq!((buffer.push(()).is_err(), buffer.as_slice().len()), (true, 2));
}

#[test]
fn bytes_outlive_the_buffer_and_do_not_grow() {
    let buffer = Arc::new(AppendBuffer::with_capacity(4));
    buffer.extend_from_slice(&[1u16, 0x0203]).unwrap();
    let bytes = buffer.bytes();
    buffer.push(9).unwrap();
    drop(buffer);
    assert_eq!(bytes.as_ref(), [1u16.to_ne_bytes(), 0x0203u16.to_ne_bytes()].concat());
    assert_eq!(bytes.values(), [1, 0x0203]);
    fn is_owner<T: AsRef<[u8]> + Send + Sync + 'static>(_: T) {}
    is_owner(bytes);
}

#[test]
fn readers_see_a_growing_prefix() {
    let count = if cfg!(miri) { 200 } else { 100_000 };
    let buffer = Arc::new(AppendBuffer::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while seen < count {
                    let values = buffer.as_slice();
                    assert!(values.len() >= seen);
                    assert!(values[seen..].iter().enumerate().all(|(at, &value)| value == seen + at));
                    seen = values.len();
                }
            });
        }
        scope.spawn(|| {
            let mut next = 0;
            while next < count {
                if next % 3 == 0 && next + 4 <= count {
                    buffer.extend_from_slice(&[next, next + 1, next + 2, next + 3]).unwrap();
                    next += 4;
                } else {
                    buffer.push(next).unwrap();
                    next += 1;
                }
            }
        });
    });
}

#[test]
fn contending_writers_lose_nothing() {
    let each = if cfg!(miri) { 50 } else { 10_000 };
    let buffer = AppendBuffer::with_capacity(2 * each);
    thread::scope(|scope| {
        for writer in 0..2 {
            let buffer = &buffer;
            scope.spawn(move || {
                for value in 0..each {
                    while buffer.push((writer, value)).is_err() {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    for writer in 0..2 {
        let values: Vec<usize> = buffer.as_slice().iter().filter(|v| v.0 == writer).map(|v| v.1).collect();
        assert_eq!(values, (0..each).collect::<Vec<_>>());
    }
}
