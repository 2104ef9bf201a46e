// Opens what runtap writes in the programs that people open it with. README.md says how to run this.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Ajv from 'ajv';
import { executable, launch, open } from './lib/browser.js';
import { sources, workspace } from './lib/files.js';
import { serve, speedscopeFolder } from './lib/server.js';

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const schema = new Ajv({ allErrors: true }).compile(readJson(join(speedscopeFolder, 'file-format-schema.json')));
const noBrowser = executable === null && 'no Chromium (set CHROMIUM, or put chromium on PATH)';

test('the schema check sees what is missing', () => {
  const file = { $schema: 'https://www.speedscope.app/file-format-schema.json', shared: { frames: [] }, profiles: [] };
  assert.ok(schema(file));
  assert.ok(!schema({ ...file, profiles: [{ type: 'sampled', name: 'no weights' }] }));
  assert.ok(!schema({ ...file, shared: {} }));
});

for (const source of sources()) {
  describe(`${source.name} files`, { skip: source.skip }, () => {
    let files, server, browser;

    before(async () => {
      files = await source.make();
      server = await serve({ '/profile.speedscope.json': files.speedscope, '/graph.svg': files.svg });
      if (!noBrowser) browser = await launch();
    });
    after(async () => {
      await browser?.close();
      await server?.close();
    });

    const missing = (t, file) => !file && (t.skip('not given'), true);
    const shoot = async (t, page, name) => {
      const path = join(workspace, `${source.name}-${name}.png`);
      await page.screenshot({ path });
      t.diagnostic(`screenshot: ${path}`);
    };

    test('speedscope: the file follows the schema and adds up', (t) => {
      if (missing(t, files.speedscope)) return;
      const file = readJson(files.speedscope);
      assert.ok(schema(file), JSON.stringify(schema.errors, null, 2));
      assert.ok(file.profiles.length > 0);
      for (const { name, unit, startValue, endValue, samples, weights } of file.profiles) {
        assert.match(name, /^Thread \(\d+\)/);
        assert.equal(unit, source.unit ?? 'nanoseconds');
        assert.equal(samples.length, weights.length, name);
        assert.equal(sum(weights), endValue - startValue, name);
        assert.ok(samples.flat().every((frame) => frame in file.shared.frames), name);
      }
    });

    test('speedscope: the page opens it and lists every thread', { skip: noBrowser }, async (t) => {
      if (missing(t, files.speedscope)) return;
      const file = readJson(files.speedscope);
      const names = file.profiles.map((profile) => profile.name);
      const { page, complaints } = await open(browser, server.origin, '/#profileURL=/profile.speedscope.json');

      const shown = `${names[file.activeProfileIndex ?? 0]} (${(file.activeProfileIndex ?? 0) + 1}/${names.length})`;
      if (names.length > 1) {
        await page.getByText(shown, { exact: false }).first().waitFor();
        await page.keyboard.press('t');
        await page.getByText('Total Weight').waitFor();
        for (const name of names) await page.getByText(name, { exact: true }).first().waitFor();
      } else {
        await page.getByText(names[0], { exact: false }).first().waitFor();
      }
      await shoot(t, page, 'speedscope-threads');
      if (names.length > 1) await page.keyboard.press('Escape');

      // The table of the sandwich view, which is text: the heaviest frame of the profile on show is in it.
      await page.getByText('Sandwich').click();
      const { samples, weights } = file.profiles[file.activeProfileIndex ?? 0];
      const selfTime = new Map();
      samples.forEach((stack, i) => selfTime.set(stack.at(-1), (selfTime.get(stack.at(-1)) ?? 0) + weights[i]));
      const [heaviest] = [...selfTime].sort((a, b) => b[1] - a[1])[0];
      await page.getByText(file.shared.frames[heaviest].name, { exact: true }).first().waitFor();
      await shoot(t, page, 'speedscope-sandwich');
      assert.deepEqual(complaints, []);
      await page.close();
    });

    test('flame graph: it draws, tells and zooms', { skip: noBrowser }, async (t) => {
      if (missing(t, files.svg)) return;
      const { page, complaints } = await open(browser, server.origin, '/graph.svg');
      assert.equal(await page.locator('parsererror').count(), 0);
      assert.notEqual((await page.locator('#title').textContent()).trim(), '');
      assert.match(await page.locator('#subtitle').textContent(), /\d+\.\d m?s recorded · [\d,]+ samples?/);
      const part = source.frame ?? '!';
      const labels = await page.locator('#frames > g > text').allTextContents();
      assert.ok(labels.some((label) => label.includes('(')), 'some frame shows its name');
      assert.ok(labels.every((label) => !label.includes('!')), 'and leaves its module to the tooltip');
      await shoot(t, page, 'flamegraph');

      // A box of a frame that is wide enough to hit and narrower than the picture.
      const boxes = page.locator('#frames > g').filter({ hasText: part });
      const widths = await boxes.locator('rect').evaluateAll((all) => all.map((r) => parseFloat(r.getAttribute('width'))));
      const chosen = widths.findIndex((width) => width > 3 && width < 95);
      assert.notEqual(chosen, -1, 'there is a box to click');
      const box = boxes.nth(chosen);
      const name = await box.locator('title').textContent();
      await box.hover();
      assert.equal((await page.locator('#details').textContent()).trim(), `Frame: ${name}`);
      await box.click();
      const width = async () => parseFloat(await box.locator('rect').getAttribute('width'));
      assert.equal(await width(), 100, `${name} fills the picture`);
      await shoot(t, page, 'flamegraph-zoomed');
      await page.locator('#unzoom').click();
      assert.ok(Math.abs((await width()) - widths[chosen]) < 0.01, 'and is as narrow as before after the reset');
      assert.deepEqual(complaints, []);
      await page.close();
    });
  });
}
