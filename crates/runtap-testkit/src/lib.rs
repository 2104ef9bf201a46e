//! Fake peers, fixtures and real runtimes for the tests of runtap.
