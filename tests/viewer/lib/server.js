// Serves the page of the npm package speedscope, and the files under test, on loopback only.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';

/** The folder of speedscope's page and schema. */
export const speedscopeFolder = join(
  dirname(createRequire(import.meta.url).resolve('speedscope/package.json')),
  'dist/release',
);

const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.woff2': 'font/woff2',
};

/**
 * Serves `files` (`{'/name.ext': path}`) beside the page. Returns the origin, and `close`.
 */
export async function serve(files) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const page = pathname === '/' ? '/index.html' : pathname;
    const path = files[pathname] ?? join(speedscopeFolder, page.replaceAll('..', ''));
    try {
      const body = await readFile(path);
      response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done, failed) => server.once('error', failed).listen(0, '127.0.0.1', done));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () => new Promise((done) => server.close(done)),
  };
}
