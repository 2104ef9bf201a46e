//! Budgets for reading the files of each user's processes. Any user can create hundreds of processes that take long to read; they
//! use up only the budget of that user.

use std::collections::HashMap;

/// A budget for root, one for the current user, and one shared by all other users, each of whom gets at most a quarter of it.
#[derive(Debug)]
pub(super) struct UserBudgets {
    most: u64,
    us: u32,
    spent: HashMap<u32, u64>,
    spent_on_others: u64,
}

impl UserBudgets {
    pub(super) fn new(most: u64, us: u32) -> Self {
        Self { most, us, spent: HashMap::new(), spent_on_others: 0 }
    }

    fn is_other(&self, user: u32) -> bool {
        user != 0 && user != self.us
    }

    /// Returns what may still be spent on a process of this user.
    pub(super) fn left(&self, user: u32) -> u64 {
        let spent = self.spent.get(&user).copied().unwrap_or_default();
        if self.is_other(user) {
            (self.most / 4).saturating_sub(spent).min(self.most.saturating_sub(self.spent_on_others))
        } else {
            self.most.saturating_sub(spent)
        }
    }

    pub(super) fn spend(&mut self, user: u32, amount: u64) {
        let spent = self.spent.entry(user).or_default();
        *spent = spent.saturating_add(amount);
        if self.is_other(user) {
            self.spent_on_others = self.spent_on_others.saturating_add(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_does_not_use_up_the_budget_of_others() {
        let mut budgets = UserBudgets::new(100, 7);
        assert_eq!([0, 7, 33].map(|user| budgets.left(user)), [100, 100, 25]);
        budgets.spend(33, 1000);
        assert_eq!([0, 7, 33, 34].map(|user| budgets.left(user)), [100, 100, 0, 0]);
        let mut budgets = UserBudgets::new(100, 0);
        for user in 1000..1005 {
            assert_eq!(budgets.left(user), if user < 1004 { 25 } else { 0 });
            budgets.spend(user, budgets.left(user));
        }
        budgets.spend(0, 60);
        assert_eq!(budgets.left(0), 40);
    }
}
