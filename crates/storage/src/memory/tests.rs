use super::*;

#[test]
fn shares_are_all_of_the_limit_and_no_more() {
    for bytes_max in [0, 31, 1 << 20, limits::MEMORY_LIMIT_DEFAULT, u64::MAX] {
        let all: u64 = MemoryKind::ALL.iter().map(|kind| share_of(bytes_max, *kind)).sum();
        assert!(all <= bytes_max && bytes_max - all < limits::MEMORY_UNITS);
    }
    for (at, kind) in MemoryKind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, at);
    }
}

#[test]
fn charges_come_and_go_by_kind() {
    let budget = MemoryBudget::new(3_200);
    let mut first = budget.charge(MemoryKind::WriteSets, 200);
    let second = first.alike(101);
    budget.note(MemoryKind::Forwarding, 7);
    assert_eq!((budget.used(MemoryKind::WriteSets), budget.used(MemoryKind::Forwarding)), (301, 7));
    assert_eq!((budget.share(MemoryKind::WriteSets), budget.is_over(MemoryKind::WriteSets)), (300, true));
    first.resize(199);
    assert!(!budget.is_over(MemoryKind::WriteSets));
    drop(first);
    assert_eq!(budget.used(MemoryKind::WriteSets), second.bytes());
    drop(second);
    assert_eq!(MemoryKind::ALL.map(|kind| budget.used(kind)).iter().sum::<u64>(), 7);
}

#[test]
fn the_limit_may_change_while_bytes_are_held() {
    let budget = MemoryBudget::new(3_200);
    let held = budget.charge(MemoryKind::WriteSets, 200);
    assert!(!budget.is_over(MemoryKind::WriteSets));
    budget.set_bytes_max(1_600);
    assert_eq!((budget.bytes_max(), budget.share(MemoryKind::WriteSets)), (1_600, 150));
    assert!(budget.is_over(MemoryKind::WriteSets) && held.is_over());
    assert_eq!(budget.used(MemoryKind::WriteSets), 200, "nothing is taken away");
    budget.set_bytes_max(6_400);
    assert!(!held.is_over());
}
