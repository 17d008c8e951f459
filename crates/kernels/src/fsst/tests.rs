//! Codes against what they mean, and the fast twin against the scalar one; nonsense is told.

use proptest::prelude::*;

use super::*;

fn table() -> Symbols {
    Symbols::new([b"the ".as_slice(), b"e", b"ab", b"12345678", b"\0", b"carefully"[..7].as_ref()]).unwrap()
}

fn both(symbols: &Symbols, codes: &[u8], lengths: &[u32]) -> Option<(Vec<u8>, Vec<i32>)> {
    let answers = [scalar::decode_all, fast::decode_all].map(|decode_all| {
        let (mut out, mut ends) = (b"before".to_vec(), vec![0]);
        decode_all(symbols, codes, lengths, &mut out, &mut ends).then_some((out, ends))
    });
    assert_eq!(answers[0], answers[1]);
    let [answer, _] = answers;
    answer
}

#[test]
fn codes_are_symbols_and_escaped_bytes() {
    let symbols = table();
    let codes = [0, ESCAPE, b'x', 3, 4, 1, ESCAPE, ESCAPE, 5];
    let (out, ends) = both(&symbols, &codes, &[4, 0, 5]).unwrap();
    assert_eq!(out, b"beforethe x12345678\0e\xffcareful");
    assert_eq!(ends, [0, 19, 19, 29]);
    let mut one = Vec::new();
    assert!(symbols.decode(&codes[4..], &mut one));
    assert_eq!(one, b"\0e\xffcareful");
}

#[test]
fn a_table_is_its_bytes() {
    for symbols in [table(), Symbols::new([]).unwrap(), Symbols::new([b"x".as_slice(); 255]).unwrap()] {
        let mut bytes = Vec::new();
        symbols.to_bytes(&mut bytes);
        let again = Symbols::from_bytes(&bytes).unwrap();
        assert_eq!((again.words, again.lengths), (symbols.words, symbols.lengths));
        for len in 0..bytes.len() {
            assert!(Symbols::from_bytes(&bytes[..len]).is_none());
        }
        bytes.push(0);
        assert!(Symbols::from_bytes(&bytes).is_none());
    }
    assert!(Symbols::new([b"x".as_slice(); 256]).is_none());
    assert!(Symbols::new([b"123456789".as_slice()]).is_none() && Symbols::new([b"".as_slice()]).is_none());
}

#[test]
fn damaged_codes_are_told() {
    let symbols = table();
    // A code without a symbol, an escape at the end of a text, lengths that are not those of the codes.
    let damaged: [(&[u8], &[u32]); 6] = [
        (&[0, 6], &[2]),
        (&[0, ESCAPE], &[2]),
        (&[ESCAPE, ESCAPE, ESCAPE], &[3]),
        (&[0, ESCAPE, 1], &[2, 1]),
        (&[0, 1], &[1]),
        (&[0, 1], &[3]),
    ];
    for (codes, lengths) in damaged {
        assert_eq!(both(&symbols, codes, lengths), None, "{codes:?} {lengths:?}");
    }
}

/// Texts of more codes than there is room for at once, with escapes over every border.
#[test]
fn long_texts() {
    let symbols = table();
    for shift in 0..3 {
        let mut codes = vec![3; shift];
        codes.extend([ESCAPE; 20_000]);
        let (out, _) = both(&symbols, &codes, &[codes.len() as u32]).unwrap();
        assert_eq!(out.len(), 6 + 8 * shift + 10_000);
        let codes = vec![3; 20_000 + shift];
        assert_eq!(both(&symbols, &codes, &[codes.len() as u32]).unwrap().0.len(), 6 + 8 * codes.len());
    }
}

proptest! {
    #[test]
    fn twins_agree(
        codes in prop::collection::vec(prop_oneof![0u8..8, Just(ESCAPE), any::<u8>()], 0..300),
        cuts in prop::collection::vec(0u32..9, 0..40),
        count in 0usize..256,
    ) {
        let symbols = (0..count.min(255)).map(|i| vec![i as u8; i % 8 + 1]).collect::<Vec<_>>();
        let symbols = Symbols::new(symbols.iter().map(Vec::as_slice)).unwrap();
        let mut lengths = cuts;
        let cut: u32 = lengths.iter().sum();
        both(&symbols, &codes, &lengths);
        // All of them, as one more text.
        if let Some(rest) = (codes.len() as u32).checked_sub(cut) {
            lengths.push(rest);
            both(&symbols, &codes, &lengths);
        }
    }
}

/// Texts as [`Encoder`] encodes them, decoded; how many codes there are.
fn round_trip(symbols: &Symbols, texts: &[&[u8]]) -> usize {
    let (mut codes, mut lengths) = (b"before".to_vec(), vec![7]);
    Encoder::new(symbols).encode_all(texts, &mut codes, &mut lengths);
    assert_eq!((&codes[..6], lengths[0], lengths.len()), (b"before".as_slice(), 7, texts.len() + 1));
    let lengths: Vec<u32> = lengths[1..].iter().map(|length| *length as u32).collect();
    let (out, ends) = both(symbols, &codes[6..], &lengths).unwrap();
    let all: Vec<u8> = [b"before".as_slice()].into_iter().chain(texts.iter().copied()).flatten().copied().collect();
    assert_eq!(out, all);
    let mut end = 6;
    for (text, found) in texts.iter().zip(&ends[1..]) {
        end += text.len();
        assert_eq!(*found as usize, end);
    }
    codes.len() - 6
}

#[test]
fn texts_are_encoded_by_the_longest_symbol() {
    let symbols = table();
    assert_eq!(round_trip(&symbols, &[b"the 12345678e", b"", b"abab"]), 3 + 2);
    // A symbol never takes what is behind the end, zeros least of all.
    let zeros = Symbols::new([b"a\0".as_slice(), b"a", b"b\0\0\0", b"\0\0"]).unwrap();
    assert_eq!(round_trip(&zeros, &[b"a", b"a\0", b"b\0\0\0", b"b\0\0", b"b"]), 1 + 1 + 1 + 3 + 2);
    assert_eq!(round_trip(&Symbols::new([]).unwrap(), &[b"xyz", &[ESCAPE; 9]]), 2 * 12);
    assert_eq!(round_trip(&symbols, &[]), 0);
    // Longer than any number of a byte, and of as many texts as the lanes take in turn, and more.
    let long = b"the 12345678".repeat(100);
    for count in [1, 3, 4, 5, 256, 257] {
        let texts: Vec<&[u8]> = (0..count).map(|text| &long[text % 3..]).collect();
        round_trip(&symbols, &texts);
    }
    round_trip(&Symbols::new([]).unwrap(), &[&long, b"x", &long]);
}

proptest! {
    /// Texts of few letters, so that symbols are met, of any number: more than the lanes take at once, too.
    #[test]
    fn encoded_texts_are_decoded(
        symbols in prop::collection::vec(prop::collection::vec(0u8..4, 1..=8), 0..255),
        texts in prop::collection::vec(prop_oneof![9 => prop::collection::vec(0u8..5, 0..40), 1 => prop::collection::vec(0u8..5, 0..700)], 0..600),
    ) {
        let symbols = Symbols::new(symbols.iter().map(Vec::as_slice)).unwrap();
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        round_trip(&symbols, &texts);
    }
}
