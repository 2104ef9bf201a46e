//! A web service that tools for .NET can diagnose: `dotnet-trace`, `dotnet-counters`, `dotnet-monitor`, `runtap`.
//!
//! ```sh
//! cargo run -p axum-service -- 8080
//! curl localhost:8080/orders/17                # an order, with a span, log messages and metrics
//! curl 'localhost:8080/hot?units=100'          # work that appears in a profile
//! curl localhost:8080/truth                    # the service's own counts
//! dotnet-trace collect -n axum-service         # or runtap trace, report, tail …
//! ```
//!
//! `diagnostics.rs` makes the service diagnosable; everything else is an ordinary service with `tracing`.

#![expect(clippy::print_stdout, reason = "a program, not a library")]

mod diagnostics;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use diagnostics::Instruments;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{Instrument as _, error, field, info, info_span, warn};

/// The service and its own counts.
struct Service {
    instruments: Instruments,
    requests: AtomicU64,
    orders: AtomicU64,
    refused: AtomicU64,
    units: AtomicU64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Before the first event. A tool may make the program wait here.
    let (instruments, _diagnostics) = diagnostics::start()?;
    serve(instruments)
}

#[tokio::main]
async fn serve(instruments: Instruments) -> Result<(), Box<dyn std::error::Error>> {
    let service = Arc::new(Service {
        instruments,
        requests: AtomicU64::new(0),
        orders: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        units: AtomicU64::new(0),
    });
    let router = Router::new()
        .route("/orders/{id}", get(order))
        .route("/hot", get(hot))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), observed))
        .route("/truth", get(truth))
        .with_state(service);
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening {}", listener.local_addr()?.port());
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    axum::serve(listener, router).with_graceful_shutdown(stop).await?;
    Ok(())
}

/// Adds a span, the duration and a count for each request.
async fn observed(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let span = info_span!("request", method = %request.method(), path, status = field::Empty);
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("status", status);
    service.requests.fetch_add(1, Ordering::Relaxed);
    service.instruments.request(&route, status, start.elapsed());
    response
}

/// Handles an order. Orders whose number ends in 3 are rejected.
async fn order(State(service): State<Arc<Service>>, Path(id): Path<u64>) -> (StatusCode, String) {
    info!(order = id, customer = "anna", "order received");
    if id % 10 == 3 {
        service.refused.fetch_add(1, Ordering::Relaxed);
        warn!(order = id, "order refused");
        return (StatusCode::CONFLICT, format!("order {id} is refused\n"));
    }
    let price = price(id).instrument(info_span!("price", order = id)).await;
    service.orders.fetch_add(1, Ordering::Relaxed);
    service.instruments.orders.add(1, &[("kind", if id % 2 == 0 { "even" } else { "odd" }.into())]);
    (StatusCode::OK, format!("order {id} costs {price}\n"))
}

/// Simulates a request to another service.
async fn price(id: u64) -> u64 {
    tokio::task::yield_now().await;
    info!(order = id, "price found");
    id % 100 + 1
}

/// Does work that appears in a profile: about a millisecond per unit.
async fn hot(State(service): State<Arc<Service>>, Query(query): Query<HashMap<String, u64>>) -> String {
    let units = query.get("units").copied().unwrap_or(10).min(100_000);
    let _span = info_span!("hot", units).entered();
    let result = hot_work(units);
    service.units.fetch_add(units, Ordering::Relaxed);
    if result == 0 {
        error!(units, "the work came to nothing");
    }
    format!("{units} units\n")
}

/// The function that takes most of the time.
#[inline(never)]
fn hot_work(units: u64) -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    // A loop without calls in any build.
    let mut left = units * 500_000;
    while left > 0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        left -= 1;
    }
    std::hint::black_box(state)
}

/// Returns the service's own counts as JSON, and whether a tool reads its metrics.
async fn truth(State(service): State<Arc<Service>>) -> String {
    let Service { requests, orders, refused, units, instruments } = &*service;
    let [requests, orders, refused, units] =
        [requests, orders, refused, units].map(|count| count.load(Ordering::Relaxed));
    let measured = instruments.orders.is_enabled();
    format!(
        "{{\"requests\":{requests},\"orders\":{orders},\"refused\":{refused},\"units\":{units},\
         \"measured\":{measured}}}\n"
    )
}
