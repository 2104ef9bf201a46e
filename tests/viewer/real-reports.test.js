// Reads the reports that `runtap test` writes of real test applications with readers that are not ours, and opens the
// page. README.md says how to run this.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { validate } from 'ctrf';
import parser from 'test-results-parser';
import { executable, launch, open } from './lib/browser.js';
import { binary, run, shared, target, workspace } from './lib/files.js';
import { serve } from './lib/server.js';

const noBrowser = executable === null && 'no Chromium (set CHROMIUM, or put chromium on PATH)';
const DOTNET = join(target, 'peers/dotnet-10/dotnet');

/** The folder of an archive, the application in it, and the tables of the tests that it runs. */
const APPLICATIONS = [
  ['orchard', 'orchard-2.5.2/orchard.dll', ['expected-core.tsv', 'expected-odd.tsv', 'expected-artifacts.tsv']],
  ['library-mstest', 'library-mstest-4.5.2/library-mstest.dll', ['expected.tsv']],
  ['library-nunit', 'library-nunit-5.0.0/library-nunit.dll', ['expected.tsv']],
  ['library-xunit', 'library-xunit-3.2.2/library-xunit.dll', ['expected.tsv']],
];

function missing() {
  if (!shared) return 'no test applications (RUNTAP_SHARED)';
  return [binary, DOTNET].filter((file) => !existsSync(file)).map((file) => `no ${file}`)[0] ?? false;
}

/** How many tests pass, fail and are skipped, by the applications' own tables. A test that never ends has no result. */
function expected() {
  const counts = { PASS: 0, FAIL: 0, SKIP: 0 };
  const kinds = { passed: 'PASS', skipped: 'SKIP', failed: 'FAIL', error: 'FAIL', timeout: 'FAIL', cancelled: 'FAIL' };
  for (const [folder, , tables] of APPLICATIONS) {
    for (const table of tables) {
      const lines = readFileSync(join(shared, 'apps/mtp', folder, table), 'utf8').split('\n');
      const outcomes = lines.filter((line) => line && !line.startsWith('#')).map((line) => line.split('\t')[2]);
      for (const kind of outcomes.slice(1).map((outcome) => kinds[outcome])) if (kind) counts[kind] += 1;
    }
  }
  return counts;
}

describe('reports of real test applications', { skip: missing() }, () => {
  const folder = join(workspace, 'real-reports');
  const path = (name) => join(folder, name);
  let server, browser, counts, cases;

  before(async () => {
    mkdirSync(folder, { recursive: true });
    for (const [name] of APPLICATIONS) run('tar', ['-xf', join(shared, 'apps/mtp', name, 'bin.tar.xz'), '-C', folder]);
    const reports = ['junit=run.xml', 'trx=run.trx', 'ctrf=run.ctrf.json', 'html=run.html'];
    const options = ['--dotnet', DOTNET, '--no-history', '-e', 'BARE_SUITE=core+odd+artifacts', '-e', `BARE_FILES=${folder}`];
    const files = APPLICATIONS.map(([, file]) => file);
    const args = ['test', '-q', ...options, ...reports.flatMap((report) => ['--report', report]), ...files];
    const { status, stderr } = spawnSync(binary, args, { cwd: folder, encoding: 'utf8' });
    assert.equal(status, 2, stderr);
    counts = expected();
    // A test of orchard has no result, which is the application's error: a case of its own where a format has only cases.
    cases = { ...counts, FAIL: counts.FAIL + 1 };
    server = await serve({ '/run.html': path('run.html') });
    if (!noBrowser) browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  /**
   * xunit cleans up after a time-out, sometimes, and calls that an error of its own: not counted. What reads TRX knows only the
   * method, which is the test's, and the error.
   */
  const isTest = (one) => !/Test Cleanup Failure/.test(one.name) && !/TaskCanceledException/.test(one.failure ?? '');
  const read = (name, type) => {
    const suites = parser.parse({ type, files: [path(name)] }).suites;
    return suites.flatMap((suite) => suite.cases).filter(isTest);
  };
  const count = (cases) =>
    Object.fromEntries(['PASS', 'FAIL', 'SKIP'].map((status) => [status, cases.filter((one) => one.status === status).length]));

  test('JUnit: test-results-parser counts what the tables of the applications state', () => {
    const found = read('run.xml', 'junit');
    assert.deepEqual(count(found), cases);
    const torn = found.find((one) => /ThrowsLater/.test(one.name) && /page 7/.test(one.failure));
    assert.ok(torn, 'a message arrives');
    assert.ok(found.some((one) => one.name.includes('🍎')), 'names arrive as they are');
  });

  test('TRX: test-results-parser counts the same', () => {
    assert.deepEqual(count(read('run.trx', 'mstest')), cases);
  });

  test('CTRF: the schema of the package ctrf is satisfied, and counts are the same', () => {
    const report = JSON.parse(readFileSync(path('run.ctrf.json'), 'utf8'));
    const outcome = validate(report);
    assert.ok(outcome.valid, JSON.stringify(outcome.errors?.slice(0, 5), null, 2));
    const tests = report.results.tests.filter(isTest);
    const of = (status) => tests.filter((one) => one.status === status).length;
    assert.deepEqual({ PASS: of('passed'), SKIP: of('skipped') }, { PASS: cases.PASS, SKIP: cases.SKIP });
    assert.equal(tests.length, cases.PASS + cases.FAIL + cases.SKIP);
  });

  test('page: every test is on it, and nothing of them is taken for markup', { skip: noBrowser }, async (t) => {
    const { page, complaints } = await open(browser, server.origin, '/run.html');
    assert.match(await page.locator('#verdict').textContent(), /^\d+ of \d+ tests failed/);
    const total = parseInt(await page.locator('#count').textContent());
    // More of them are made when their place is scrolled to.
    const all = (total) => {
      scrollTo(0, document.querySelector('#more').offsetTop);
      return document.querySelectorAll('.test').length === total;
    };
    await page.waitForFunction(all, total);
    const names = await page.locator('.test .name').allTextContents();
    const shown = names.filter((name) => isTest({ name })).length;
    assert.equal(shown, counts.PASS + counts.FAIL + counts.SKIP);
    assert.match(await page.locator('body').textContent(), /1 started test has no result: NeverEnds/);
    assert.equal(await page.locator('img, iframe, #list script').count(), 0);
    const picture = join(workspace, 'real-report.png');
    await page.screenshot({ path: picture });
    t.diagnostic(`screenshot: ${picture}`);
    assert.deepEqual(complaints, []);
    await page.close();
  });
});
