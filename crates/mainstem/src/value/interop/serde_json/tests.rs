//! Numbers of JSON that are doubles, by their texts: `arbitrary_precision` of `serde_json` keeps these, whatever they
//! are.

use super::is_written;

#[test]
fn a_double_stands_for_its_own_texts_alone() {
    for (text, is_it) in [
        ("0", true),
        ("-0.0", true),
        ("0e5", true),
        ("1.5", true),
        ("1.50", true),
        ("15e-1", true),
        ("0.15E+1", true),
        ("-2.5e3", true),
        ("100000000000000000000", true),
        ("1e300", true),
        ("5e-324", true),
        ("0.1", true),
        ("18446744073709551617", false),
        ("0.10000000000000000001", false),
        ("123456789012345678901234567890.5", false),
        ("1e400", false),
        ("1e-400", false),
        ("1e99999999999999999999", false),
    ] {
        assert_eq!(is_written(text.parse().unwrap(), text), is_it, "{text}");
    }
    assert!(!is_written(1.5, "-1.5"));
    assert!(!is_written(0.0, "-0.0"));
    assert!(!is_written(1.5, "15"));
    assert!(!is_written(f64::NAN, "NaN"));
}
