//! Turns decoded events into the model: method names, samples, threads, counts.
