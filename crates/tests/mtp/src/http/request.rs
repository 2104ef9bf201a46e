//! One request: who may send it, what it must be, what it is answered.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::Server;
use crate::budget::{SMALL, Share};

/// What the platform demands of a response.
const FRAME: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Everything that is wrong ends the connection: the platform takes any status but 200 for the end of all.
pub(super) async fn respond(
    server: &Arc<Server>,
    connection: u64,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match answer(server, connection, request).await {
        Ok(frame) => (StatusCode::OK, frame),
        Err(status) => (status, Vec::new()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if status == StatusCode::OK {
        headers.insert(CONTENT_TYPE, FRAME);
    } else {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

async fn answer(
    server: &Arc<Server>,
    connection: u64,
    request: Request<Incoming>,
) -> Result<Vec<u8>, StatusCode> {
    let mut given = request.headers().get_all(AUTHORIZATION).iter();
    let is_right = given.next().is_some_and(|header| server.token.is_in(header.as_bytes()));
    if !is_right || given.next().is_some() {
        return Err(StatusCode::UNAUTHORIZED);
    }
    if !server.prove(connection) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    if request.uri().path() != "/" {
        return Err(StatusCode::NOT_FOUND);
    }
    if request.method() != Method::POST {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let (frame, _share) = read(request.into_body(), server).await?;
    server.answer.answer(connection, &frame).ok_or(StatusCode::BAD_REQUEST)
}

/// The whole body, and the memory that it has. Nothing is reserved for a length that is only claimed, but a large body has a
/// share of the budget before it is read.
async fn read(mut body: Incoming, server: &Server) -> Result<(Vec<u8>, Option<Share>), StatusCode> {
    let (largest, claimed) = (server.largest, body.size_hint());
    if claimed.lower() > largest {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut share = None;
    let mut whole = Vec::new();
    while let Some(piece) = body.frame().await {
        // Chunks that are none, or an end that comes too early.
        let Ok(piece) = piece else { return Err(StatusCode::BAD_REQUEST) };
        // Trailers say nothing to us.
        let Ok(piece) = piece.into_data() else { continue };
        if (whole.len() as u64).saturating_add(piece.len() as u64) > largest {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if share.is_none() && whole.len() + piece.len() > SMALL {
            // Chunks do not say how many will come.
            let size = claimed.exact().unwrap_or(largest);
            let request = server.budget.ask(usize::try_from(size).unwrap_or(usize::MAX));
            share = request.wait_as_task().await;
            if share.is_none() {
                server.answer.exhausted();
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
        }
        whole.extend_from_slice(&piece);
    }
    Ok((whole, share))
}
