// Starts Chromium and watches what its pages complain about. Downloads no browser.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';
import { which } from './files.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser: what CHROMIUM says, else the first one on PATH, else null. */
export const executable = process.env.CHROMIUM ?? NAMES.map(which).find(Boolean) ?? null;

const FLAGS = [
  '--no-sandbox', // continuous integration runs as root
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** Starts the browser without a window, with a home directory of its own: it also writes outside of its profile. */
export async function launch() {
  const home = mkdtempSync(join(tmpdir(), 'runtap-viewer-'));
  const env = { ...process.env, HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home };
  const browser = await chromium.launch({ executablePath: executable, headless: true, args: FLAGS, env });
  browser.on('disconnected', () => rmSync(home, { recursive: true, force: true }));
  return browser;
}

/**
 * A new page that may only speak to `origin`; `options` are those of a page of playwright's. `complaints` fills with what went wrong on it: errors of the page and
 * of its console, and requests to anywhere else.
 */
export async function open(browser, origin, path, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 800 }, ...options });
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(`page error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`console: ${message.text()}`);
  });
  page.on('requestfailed', (request) => complaints.push(`request failed: ${request.url()}`));
  await page.route(
    (url) => url.origin !== origin && url.protocol !== 'data:' && url.protocol !== 'blob:',
    (route) => {
      complaints.push(`request to elsewhere: ${route.request().url()}`);
      return route.abort();
    },
  );
  await page.goto(origin + path);
  return { page, complaints };
}
