//! Local sockets, their discovery and the processes behind them.
