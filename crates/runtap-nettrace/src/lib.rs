//! Incremental reader and writer of the nettrace event stream of .NET EventPipe.
