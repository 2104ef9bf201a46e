//! The invented program: a shop with two workers that process orders, and a mailer.
//!
//! ```text
//! main                 Main.main                      open until the end
//! worker-1, worker-2   Worker.run → Orders.handle → Orders.parse
//!                                                 → Store.load → Store.query ×3
//!                                                 → Prices.price, which calls itself 4 times
//!                                                 → Stock.check        every 10th throws OutOfStock, caught by handle
//!                                                 → Reports.build      every 100th, 150 ms
//! mailer               Mailer.send                    every 20th throws MailFailure, which is not caught
//! ```
//!
//! A marker with the key `orders` starts a segment every 50 orders. This module is independent of the protocol.

/// The signatures of methods, as an agent sends them. The ids are the indexes.
pub(super) const METHODS: [&str; 11] = [
    "shop/Main.main;9;([Ljava/lang/String;)V",
    "shop/Worker.run;1;()V",
    "shop/Orders.handle;1;(Lshop/Order;)V",
    "shop/Orders.parse;2;(Ljava/lang/String;)Lshop/Order;",
    "shop/Store.load;1;(J)Lshop/Order;",
    "shop/Store.query;2;(Ljava/lang/String;[Ljava/lang/Object;)Ljava/util/List;",
    "shop/Prices.price;9;(Lshop/Item;I)J",
    "shop/Stock.check;1;(Lshop/Item;)V",
    "shop/Reports.build;1;(I)Ljava/lang/String;",
    "shop/Mailer.send;1;(Ljava/lang/String;)V",
    "shop/Mailer.connect;2;()Ljava/net/Socket;",
];
const MAIN: u32 = 0;
const RUN: u32 = 1;
const HANDLE: u32 = 2;
const PARSE: u32 = 3;
const LOAD: u32 = 4;
const QUERY: u32 = 5;
const PRICE: u32 = 6;
const CHECK: u32 = 7;
const BUILD: u32 = 8;
const SEND: u32 = 9;
const CONNECT: u32 = 10;

/// The names of exceptions. The ids are the indexes.
pub(super) const EXCEPTIONS: [&str; 2] = ["shop.OutOfStock", "shop.MailFailure"];
const OUT_OF_STOCK: u32 = 0;
const MAIL_FAILURE: u32 = 1;

/// The names of threads. The ids are the indexes.
pub(super) const THREADS: [&str; 4] = ["main", "worker-1", "worker-2", "mailer"];
const MAILER: u32 = 3;

/// The classes that an agent reports.
pub(super) const CLASSES: [&str; 8] = [
    "shop/Main",
    "shop/Worker",
    "shop/Orders",
    "shop/Store",
    "shop/Prices",
    "shop/Stock",
    "shop/Reports",
    "shop/Mailer",
];

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// An event in a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShopEvent {
    Enter(u32),
    Leave(u32),
    /// A `throw` in a method, and its line.
    Throw(u32, u32, u16),
    /// A method that was left by an exception.
    Bubble(u32, u32),
    Mark(&'static str, String),
}

/// An event with its thread and time, in nanoseconds since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) thread: u32,
    pub(super) time: u64,
    pub(super) act: ShopEvent,
}

/// The program.
#[derive(Debug, Default)]
pub(super) struct Shop {
    /// The time of each thread.
    clocks: [u64; THREADS.len()],
    thread: u32,
    orders: u64,
    mails: u64,
    events: Vec<Event>,
}

impl Shop {
    fn clock(&mut self) -> &mut u64 {
        let [main, rest @ ..] = &mut self.clocks;
        usize::try_from(self.thread).ok().and_then(|at| rest.get_mut(at.checked_sub(1)?)).unwrap_or(main)
    }

    fn act(&mut self, act: ShopEvent) {
        let (thread, time) = (self.thread, *self.clock());
        self.events.push(Event { thread, time, act });
    }

    fn spend(&mut self, nanoseconds: u64) {
        *self.clock() += nanoseconds;
    }

    fn call(&mut self, method: u32, own: u64, body: impl FnOnce(&mut Self)) {
        self.act(ShopEvent::Enter(method));
        self.spend(own / 2);
        body(self);
        self.spend(own - own / 2);
        self.act(ShopEvent::Leave(method));
    }

    /// Returns the first events: `main` and the workers start.
    pub(super) fn open(&mut self) -> Vec<Event> {
        for (thread, method) in [(0, MAIN), (1, RUN), (2, RUN)] {
            self.thread = thread;
            self.act(ShopEvent::Enter(method));
        }
        std::mem::take(&mut self.events)
    }

    /// Returns the events of an order for each worker, and a mail. No clock is behind `now`.
    pub(super) fn round(&mut self, now: u64) -> Vec<Event> {
        for clock in &mut self.clocks {
            *clock = now.max(*clock);
        }
        for worker in [1, 2] {
            self.thread = worker;
            self.handle();
        }
        self.thread = MAILER;
        self.mail();
        std::mem::take(&mut self.events)
    }

    /// Returns the last events.
    pub(super) fn close(&mut self) -> Vec<Event> {
        let last = self.clocks.iter().copied().max().unwrap_or(0);
        for (thread, method) in [(1, RUN), (2, RUN), (0, MAIN)] {
            self.thread = thread;
            *self.clock() = last;
            self.act(ShopEvent::Leave(method));
        }
        std::mem::take(&mut self.events)
    }

    fn handle(&mut self) {
        self.orders += 1;
        let order = self.orders;
        if order % 50 == 1 {
            self.act(ShopEvent::Mark("orders", format!("{order} to {}", order + 49)));
        }
        self.call(HANDLE, 40 * MICROSECOND, |shop| {
            shop.call(PARSE, 20 * MICROSECOND, |_| {});
            shop.call(LOAD, 30 * MICROSECOND, |shop| {
                for _ in 0..3 {
                    shop.call(QUERY, 250 * MICROSECOND, |_| {});
                }
            });
            shop.price(4);
            shop.check(order);
            if order.is_multiple_of(100) {
                shop.call(BUILD, 150 * MILLISECOND, |_| {});
            }
        });
    }

    fn price(&mut self, depth: u32) {
        self.call(PRICE, 15 * MICROSECOND, |shop| {
            if depth > 0 {
                shop.price(depth - 1);
            }
        });
    }

    fn check(&mut self, order: u64) {
        if order.is_multiple_of(10) {
            self.act(ShopEvent::Enter(CHECK));
            self.spend(5 * MICROSECOND);
            self.act(ShopEvent::Throw(CHECK, OUT_OF_STOCK, 42));
            self.act(ShopEvent::Bubble(CHECK, OUT_OF_STOCK));
        } else {
            self.call(CHECK, 5 * MICROSECOND, |_| {});
        }
    }

    fn mail(&mut self) {
        self.mails += 1;
        if self.mails.is_multiple_of(20) {
            self.act(ShopEvent::Enter(SEND));
            self.act(ShopEvent::Enter(CONNECT));
            self.spend(MILLISECOND);
            self.act(ShopEvent::Throw(CONNECT, MAIL_FAILURE, 17));
            self.act(ShopEvent::Bubble(CONNECT, MAIL_FAILURE));
            self.act(ShopEvent::Bubble(SEND, MAIL_FAILURE));
        } else {
            self.call(SEND, 100 * MICROSECOND, |shop| shop.call(CONNECT, 300 * MICROSECOND, |_| {}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_is_balanced_and_no_clock_goes_back() {
        let mut shop = Shop::default();
        let mut events = shop.open();
        for round in 0..200 {
            events.extend(shop.round(round * 20 * MILLISECOND));
        }
        events.extend(shop.close());
        let mut stacks = vec![Vec::new(); THREADS.len()];
        let mut clocks = [0; THREADS.len()];
        let mut thrown = 0;
        for event in events {
            let at = event.thread as usize;
            assert!(event.time >= clocks[at]);
            clocks[at] = event.time;
            match event.act {
                ShopEvent::Enter(method) => stacks[at].push(method),
                ShopEvent::Leave(method) | ShopEvent::Bubble(method, _) => {
                    assert_eq!(stacks[at].pop(), Some(method));
                }
                ShopEvent::Throw(method, ..) => {
                    assert_eq!(stacks[at].last(), Some(&method));
                    thrown += 1;
                }
                ShopEvent::Mark(..) => {}
            }
        }
        assert!(stacks.iter().all(Vec::is_empty));
        // 400 orders, 200 mails.
        assert_eq!(thrown, 40 + 10);
    }
}
