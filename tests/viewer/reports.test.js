// Reads test reports with readers that are not ours, and opens the page. README.md says how to run this.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { validate } from 'ctrf';
import parser from 'test-results-parser';
import { executable, launch, open } from './lib/browser.js';
import { run, which, workspace } from './lib/files.js';
import { serve } from './lib/server.js';

const noBrowser = executable === null && 'no Chromium (set CHROMIUM, or put chromium on PATH)';
const LARGE = 10_000;

/** The HTTP addresses of a folder's reports. */
const paths = (folder) =>
  Object.fromEntries(['run', 'cut-off', 'large'].map((name) => [`/${name}.html`, join(folder, `${name}.html`)]));

describe('test reports', { skip: !which('cargo') && 'no cargo on PATH' }, () => {
  const folder = join(workspace, 'reports');
  let server, browser;

  before(async () => {
    run('cargo', ['run', '-q', '-p', 'runtap-test-report', '--example', 'sample_reports', '--', folder, String(LARGE)]);
    server = await serve(paths(folder));
    if (!noBrowser) browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  const read = (name) => readFileSync(join(folder, name), 'utf8');
  const parse = (name, type) => parser.parse({ type, files: [join(folder, name)] });
  const cases = (result) => result.suites.flatMap((suite) => suite.cases);
  const shoot = async (t, page, name) => {
    const path = join(workspace, `${name}.png`);
    await page.screenshot({ path });
    t.diagnostic(`screenshot: ${path}`);
  };

  test('JUnit: test-results-parser finds every test, its state and its message', () => {
    const found = cases(parse('run.junit.xml', 'junit'));
    // 15 tests, and the module that did not complete successfully.
    assert.equal(found.length, 16);
    const count = (status) => found.filter((one) => one.status === status).length;
    assert.deepEqual([count('PASS'), count('FAIL'), count('SKIP')], [7, 7, 2]);
    const colour = found.find((one) => one.name === 'ColourIs("red")');
    assert.equal(colour.failure, 'colour differs');
    assert.equal(colour.duration, 34);
    assert.ok(found.some((one) => one.name.startsWith('</script><img src=x')), 'hostile names arrive as they are');
    assert.ok(found.some((one) => one.failure?.includes('before the handshake')));
    assert.equal(cases(parse('large.junit.xml', 'junit')).length, LARGE);
  });

  test('TRX: test-results-parser finds every test, its state and its message', () => {
    const found = cases(parse('run.trx', 'mstest'));
    // 15 tests, and the module that did not complete successfully.
    assert.equal(found.length, 16);
    const count = (status) => found.filter((one) => one.status === status).length;
    assert.deepEqual([count('PASS'), count('FAIL'), count('SKIP')], [7, 7, 2]);
    assert.ok(found.some((one) => one.failure?.includes('before the handshake')));
    const colour = found.find((one) => one.name === 'Orchard.Tests.PickingTests.ColourIs');
    assert.match(colour.failure, /^colour differs/);
    assert.match(colour.stack_trace, /PickingTests\.cs:line 41/);
    assert.equal(Number(colour.duration), 34);
    const picks = found.find((one) => one.name === 'Orchard.Tests.PickingTests.PicksApples');
    assert.deepEqual(picks.tags, ['Fast', 'Owner=fruit', 'Owner=team <b>']);
    assert.equal(cases(parse('large.trx', 'mstest')).length, LARGE);
  });

  test('CTRF: the schema of the package ctrf is satisfied, and would see what is wrong', () => {
    for (const name of ['run.ctrf.json', 'cut-off.ctrf.json', 'large.ctrf.json']) {
      const outcome = validate(JSON.parse(read(name)));
      assert.ok(outcome.valid, JSON.stringify(outcome.errors?.slice(0, 5), null, 2));
    }
    const wrong = JSON.parse(read('run.ctrf.json'));
    delete wrong.results.tests[0].status;
    assert.ok(!validate(wrong).valid);
  });

  test('a run that was cut off has failed for every reader, though none of its tests has', () => {
    const found = cases(parse('cut-off.junit.xml', 'junit'));
    const failures = found.filter((one) => one.status === 'FAIL').map((one) => one.failure);
    assert.deepEqual(failures, ['was stopped before it had run all of its tests', 'was not run: the run was stopped before']);
    assert.equal(parse('cut-off.junit.xml', 'junit').status, 'FAIL');
    const { summary, tests } = JSON.parse(read('cut-off.ctrf.json')).results;
    assert.deepEqual([summary.passed, summary.failed, tests.length], [1, 2, 3]);
    assert.match(read('cut-off.trx'), /<ResultSummary outcome="Aborted">/);
  });

  test('page: a run that was cut off says so', { skip: noBrowser }, async (t) => {
    const { page, complaints } = await open(browser, server.origin, '/cut-off.html');
    assert.equal(await page.locator('#verdict').textContent(), '2 test applications did not complete successfully');
    const notices = await page.locator('.notice').allTextContents();
    assert.equal(notices.length, 3);
    assert.match(notices[0], /Interrupted: it was stopped by a signal/);
    await shoot(t, page, 'report-cut-off');
    assert.deepEqual(complaints, []);
    await page.close();
  });

  for (const colorScheme of ['light', 'dark']) {
    test(`page, ${colorScheme}: failures come first and open, others open by a click`, { skip: noBrowser }, async (t) => {
      const { page, complaints } = await open(browser, server.origin, '/run.html', { colorScheme });
      assert.equal(await page.locator('#verdict').textContent(), '6 of 15 tests failed, 1 test application did not complete successfully');
      assert.match(await page.locator('.notice').textContent(), /Cellar\.Tests .* did not complete successfully.*134 before the handshake.*Boot\.cs/s);
      const tests = page.locator('.test');
      assert.equal(await tests.count(), 15);
      // What is opened is filled a moment later.
      await tests.first().locator('.body').waitFor();
      assert.match(await tests.first().textContent(), /ColourIs\("red"\).*colour differs.*PickingTests\.cs:line 41/s);
      assert.deepEqual(await page.locator('.test').first().locator('mark').allTextContents(), ['red', 'green']);
      await shoot(t, page, `report-${colorScheme}`);

      const flaky = tests.filter({ hasText: 'LadderHolds' });
      await flaky.locator('summary').first().click();
      await flaky.locator('.body').waitFor();
      assert.match(await flaky.textContent(), /Attempt 1: failed after 7 ms/);
      await flaky.locator('.attempt').first().locator('summary').click();
      await flaky.getByText('climbing').waitFor();
      await shoot(t, page, `report-${colorScheme}-flaky`);

      // Markup of a test is text.
      const hostile = tests.filter({ hasText: '</script><img src=x onerror=alert(1)>' });
      await hostile.first().locator('summary').first().click();
      await hostile.first().locator('.body').waitFor();
      assert.equal(await page.locator('img, iframe, #list script, #list a').count(), 0);
      await page.locator('#modules').scrollIntoViewIfNeeded();
      await shoot(t, page, `report-${colorScheme}-end`);
      assert.deepEqual(complaints, []);
      await page.close();
    });
  }

  test('page: search, states, module and order choose what is listed', { skip: noBrowser }, async () => {
    const { page, complaints } = await open(browser, server.origin, '/run.html');
    const names = () => page.locator('.test .name').allTextContents();
    const count = page.locator('#count');
    await page.keyboard.press('/');
    await page.keyboard.type('gatetests ladder');
    await page.getByText('2 of 15 tests', { exact: true }).waitFor();
    assert.deepEqual(await names(), ['LadderFolds', 'LadderHolds']);
    await page.locator('#search').fill('no such test');
    await page.getByText('0 of 15 tests', { exact: true }).waitFor();
    await page.locator('#search').fill('');
    await page.getByText('15 tests', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Skipped' }).click();
    await page.getByRole('button', { name: 'Flaky' }).click();
    assert.deepEqual(await names(), ['LadderHolds', 'WaitsForSpring']);
    await page.getByRole('button', { name: 'Skipped' }).click();
    await page.getByRole('button', { name: 'Flaky' }).click();
    await page.locator('#module').selectOption('1');
    assert.equal(await count.textContent(), '6 of 15 tests');
    await page.locator('#module').selectOption('');
    await page.locator('#order').selectOption('time');
    assert.equal((await names())[0], 'RipensLater');
    await page.locator('#order').selectOption('name');
    assert.equal((await names())[0], '(unnamed)');
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test(`page: ${LARGE} tests stay quick`, { skip: noBrowser }, async (t) => {
    const began = performance.now();
    const { page, complaints } = await open(browser, server.origin, '/large.html');
    await page.locator('.test').first().waitFor();
    const opened = performance.now() - began;
    assert.ok((await page.locator('.test').count()) < 500, 'not every row is drawn');
    assert.equal(await page.locator('#verdict').textContent(), '20 of 10,000 tests failed');

    const searching = performance.now();
    await page.locator('#search').fill('works_9999(');
    await page.getByText('1 of 10,000 tests', { exact: true }).waitFor();
    const searched = performance.now() - searching;
    await page.locator('.test summary').click();
    await page.getByText('line of output of test 9999').first().waitFor();

    await page.locator('#search').fill('');
    await page.getByText('10,000 tests', { exact: true }).waitFor();
    for (let i = 0; i < 5; i += 1) {
      const before = await page.locator('.test').count();
      await page.evaluate(() => scrollTo(0, document.querySelector('#more').offsetTop));
      await page.waitForFunction((n) => document.querySelectorAll('.test').length > n, before);
    }
    t.diagnostic(`opened in ${opened.toFixed(0)} ms, searched in ${searched.toFixed(0)} ms`);
    // Ten times what it takes on a slow machine: only something quadratic takes longer.
    assert.ok(opened < 5000 && searched < 2000, `${opened} ms, ${searched} ms`);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test('page: it asks for nothing, and its policy refuses what it did not bring', { skip: noBrowser }, async () => {
    const { page } = await open(browser, server.origin, '/run.html');
    const ran = await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.intruder = true';
      document.body.append(script);
      return window.intruder === true;
    });
    assert.equal(ran, false);
    await page.close();
  });
});
