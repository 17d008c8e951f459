//! Least and greatest of integers, and the longest of texts.
//!
//! In: a slice of values. Out: the least and the greatest one; `None` without any. Or the ends of texts, and the length
//! of the longest. Nothing branches on a value: each loop is one for all instruction sets, and compiled for each.

/// The loop.
#[inline(always)]
fn extremes<T: Ord + Copy>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(least, greatest), value| (least.min(*value), greatest.max(*value))))
}

/// The loop.
#[inline(always)]
fn longest(ends: &[i32]) -> u32 {
    let begins = ends;
    let ends = ends.get(1..).unwrap_or_default();
    ends.iter().zip(begins).fold(0, |most, (end, begin)| most.max(end.abs_diff(*begin)))
}

macro_rules! extremes {
    ($($name:ident $t:ty;)*) => {
        /// The loop without instructions that not every processor has.
        pub mod scalar {
            $(
                /// See the function of that name above.
                #[must_use]
                pub fn $name(values: &[$t]) -> Option<($t, $t)> {
                    super::extremes(values)
                }
            )*

            /// See [`super::longest_text`].
            #[must_use]
            pub fn longest(ends: &[i32]) -> u32 {
                super::longest(ends)
            }
        }

        #[cfg(target_arch = "x86_64")]
        mod avx2 {
            $(
                #[target_feature(enable = "avx2")]
                pub(super) fn $name(values: &[$t]) -> Option<($t, $t)> {
                    super::extremes(values)
                }
            )*

            #[target_feature(enable = "avx2")]
            pub(super) fn longest(ends: &[i32]) -> u32 {
                super::longest(ends)
            }
        }

        #[cfg(target_arch = "x86_64")]
        mod avx512 {
            $(
                #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
                pub(super) fn $name(values: &[$t]) -> Option<($t, $t)> {
                    super::extremes(values)
                }
            )*

            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            pub(super) fn longest(ends: &[i32]) -> u32 {
                super::longest(ends)
            }
        }

        $(
            /// The least and the greatest of `values`.
            #[must_use]
            pub fn $name(values: &[$t]) -> Option<($t, $t)> {
                #[cfg(target_arch = "x86_64")]
                if crate::dispatch::avx512() {
                    // SAFETY: the processor has the features that the twin asks for.
                    return unsafe { avx512::$name(values) };
                } else if crate::dispatch::avx2() {
                    // SAFETY: the processor has AVX2.
                    return unsafe { avx2::$name(values) };
                }
                scalar::$name(values)
            }
        )*
    };
}
/// The length of the longest of the texts that `ends` are the ends of, the first one's beginning before them.
#[must_use]
pub fn longest_text(ends: &[i32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::avx512() {
        // SAFETY: the processor has the features that the twin asks for.
        return unsafe { avx512::longest(ends) };
    } else if crate::dispatch::avx2() {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::longest(ends) };
    }
    scalar::longest(ends)
}

extremes! {
    extremes_i16 i16;
    extremes_i32 i32;
    extremes_i64 i64;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn twins_find_what_sorting_finds(values in prop::collection::vec(any::<i64>(), 0..300)) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let expected = sorted.first().copied().zip(sorted.last().copied());
            prop_assert_eq!(extremes_i64(&values), expected);
            prop_assert_eq!(scalar::extremes_i64(&values), expected);
            let narrow: Vec<i32> = values.iter().map(|value| (*value >> 32) as i32).collect();
            prop_assert_eq!(extremes_i32(&narrow), scalar::extremes_i32(&narrow));
            prop_assert_eq!(extremes_i32(&narrow).map(|(least, _)| least), narrow.iter().min().copied());
            let short: Vec<i16> = values.iter().map(|value| (*value >> 48) as i16).collect();
            prop_assert_eq!(extremes_i16(&short), scalar::extremes_i16(&short));
            prop_assert_eq!(extremes_i16(&short).map(|(_, greatest)| greatest), short.iter().max().copied());
            let lengths: Vec<u32> = values.iter().map(|value| (*value >> 44) as u32 & 0xFFFFF).collect();
            let mut ends = vec![3];
            lengths.iter().for_each(|length| ends.push(ends[ends.len() - 1] + *length as i32));
            let longest = lengths.iter().max().copied().unwrap_or(0);
            prop_assert_eq!((longest_text(&ends), scalar::longest(&ends)), (longest, longest));
            #[cfg(target_arch = "x86_64")]
            if crate::dispatch::avx2() {
                // SAFETY: the processor has AVX2.
                prop_assert_eq!(unsafe { avx2::extremes_i64(&values) }, expected);
            }
        }
    }
}
