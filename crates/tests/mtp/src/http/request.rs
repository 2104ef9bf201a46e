//! Handling of one request: authorization, validation, and response.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::Server;
use crate::budget::{SMALL_MESSAGE_BYTES, Share};

/// The content type that the platform requires.
const FRAME: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Responds to a request. Errors end the connection: the platform treats any status except 200 as the end of the
/// connection.
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
    let mut headers = request.headers().get_all(AUTHORIZATION).iter();
    let is_right = headers.next().is_some_and(|header| server.token.is_in(header.as_bytes()));
    if !is_right || headers.next().is_some() {
        return Err(StatusCode::UNAUTHORIZED);
    }
    if !server.verify(connection) {
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

/// Reads the whole body, and returns it with its share of the budget. Nothing is reserved for a length that is only
/// claimed, but a large body needs a share before it is read.
async fn read(mut body: Incoming, server: &Server) -> Result<(Vec<u8>, Option<Share>), StatusCode> {
    let (max_frame_size, claimed) = (server.max_frame_size, body.size_hint());
    if claimed.lower() > max_frame_size {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut share = None;
    let mut whole = Vec::new();
    while let Some(chunk) = body.frame().await {
        // Invalid chunks, or a truncated body.
        let Ok(chunk) = chunk else { return Err(StatusCode::BAD_REQUEST) };
        // Trailers are ignored.
        let Ok(chunk) = chunk.into_data() else { continue };
        if (whole.len() as u64).saturating_add(chunk.len() as u64) > max_frame_size {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if share.is_none() && whole.len() + chunk.len() > SMALL_MESSAGE_BYTES {
            // The size of a chunked body is unknown.
            let size = claimed.exact().unwrap_or(max_frame_size);
            let request = server.budget.request(usize::try_from(size).unwrap_or(usize::MAX));
            share = request.wait_as_task().await;
            if share.is_none() {
                server.answer.exhausted();
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
        }
        whole.extend_from_slice(&chunk);
    }
    Ok((whole, share))
}
